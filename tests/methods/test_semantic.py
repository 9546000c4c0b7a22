"""Clusters of the items' texts: whose embeddings they are, and that they are the items' own."""

import shutil
import socket
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from fewbench.errors import MethodError, MissingExtraError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.replay import replay
from fewbench.methods import StaticMethod, find_method
from fewbench.methods.needs import needs_of
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.selection.semantic import Semantic
from fewbench.scores import from_arrays
from fewbench.study import compare
from fewbench.testing import simulate
from fewbench.testing.conformance import StaticSettings

TABLE = simulate(10, 60, seed=4)
POINTS = np.random.default_rng(0).normal(size=(60, 5))


class TestAFunctionOfTheTexts(StaticSettings):
    estimates = False

    @pytest.fixture
    def method(self):
        return StaticMethod(Semantic(embeddings=letters), Mean())


def letters(texts):
    """How often each letter is in a text."""
    return np.array([[text.count(letter) for letter in "abdefgiklmnoprstu"] for text in texts])


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A folder of embeddings, where the command would be run."""
    monkeypatch.chdir(tmp_path)
    order = np.random.default_rng(1).permutation(60)
    ids = TABLE.item_ids.astype(str)
    np.savez("points.npz", items=ids[order], embeddings=POINTS[order].astype(np.float32))
    return tmp_path


def with_texts(scores, texts):
    return replace(scores, items=scores.items.assign(text=texts))


# What is chosen


def test_items_nearest_the_centres_stand_for_their_clusters():
    """Three kinds of questions in two tasks: one item of each, with its share (Eq. 5)."""
    words = ["red apple pear plum", "train bus tram rail", "moon star comet sky"]
    kinds = [0] * 6 + [1] * 3 + [2] * 1 + [0] * 4 + [1] * 4
    texts = [f"{words[kind]} {'xyzuvw'[n % 6]}" for n, kind in enumerate(kinds)]
    values = np.random.default_rng(0).integers(0, 2, (4, 18))
    tasks = ["one"] * 10 + ["two"] * 8
    scores = with_texts(from_arrays(values, models=list("abcd"), tasks=tasks), texts)
    subset = Semantic(restarts=20).select(scores, 5, 0)
    found = {}
    for at, weight in zip(scores.positions(subset.items), subset.weights, strict=True):
        found[tasks[at], kinds[at]] = weight * 18
    assert found == pytest.approx(
        {("one", 0): 6, ("one", 1): 3, ("one", 2): 1, ("two", 0): 4, ("two", 1): 4}
    )
    macro = Semantic(restarts=20).select(scores.averaged("macro"), 4, 0)
    assert sum(macro.weights) == pytest.approx(1.0)


def test_sources_play_no_part():
    other = replace(TABLE, values=1.0 - TABLE.values)
    for method in (Semantic(), Semantic(embeddings=POINTS)):
        assert method.select(TABLE, 9, 2) == method.select(other, 9, 2)
        assert method.select(TABLE, 9, 2) == method.select(TABLE.take(models=[3]), 9, 2)


def test_where_the_vectors_lie_does_not_matter():
    at_zero = Semantic(embeddings=POINTS).select(TABLE, 9, 2)
    far = Semantic(embeddings=POINTS + 1e7).select(TABLE, 9, 2)
    assert at_zero == far


def test_dimensions_change_the_choice():
    large = simulate(5, 400, seed=1)
    assert Semantic(dimensions=3).select(large, 9, 2) != Semantic().select(large, 9, 2)


# The same embeddings in every form


def test_file_array_and_function_choose_the_same(saved):
    rounded = POINTS.astype(np.float32)
    forms = [
        "points.npz",
        saved / "points.npz",
        rounded,
        lambda texts: rounded,
    ]
    chosen = [Semantic(embeddings=form).select(TABLE, 9, 2) for form in forms]
    assert all(subset == chosen[0] for subset in chosen)
    written = find_method("semantic(embeddings=points.npz)+mean").selector.select(TABLE, 9, 2)
    assert written == chosen[0]


def test_other_items_and_another_order_find_their_own_by_id(saved):
    some = np.random.default_rng(3).permutation(60)[:41]
    part = TABLE.take(items=some)
    by_id = Semantic(embeddings="points.npz").select(part, 7, 2)
    assert by_id == Semantic(embeddings=POINTS[some].astype(np.float32)).select(part, 7, 2)
    with pytest.raises(MethodError, match=r"60 rows for 41 items .*numpy\.savez"):
        Semantic(embeddings=POINTS).select(part, 7, 2)


def test_an_array_is_kept_apart_from_its_owner():
    mine = POINTS.copy()
    method = Semantic(embeddings=mine)
    before, said = method.select(TABLE, 9, 2), method.describe()
    mine[:] = mine[::-1].copy()
    assert method.select(TABLE, 9, 2) == before
    assert method == Semantic(embeddings=POINTS)
    assert method != Semantic(embeddings=mine)
    assert len({method, Semantic(embeddings=POINTS), Semantic()}) == 2
    assert said == method.describe() == Semantic(embeddings=POINTS).describe()


def test_a_function_is_called_once_for_the_same_texts():
    calls = []

    def count(texts):
        calls.append(len(texts))
        return letters(texts)

    method = StaticMethod(Semantic(embeddings=count), Mean())
    compare(TABLE, [method], [5, 9], repeats=2, level=None)
    assert calls == [60]


def test_a_function_that_cannot_be_hashed_works_too():
    @dataclass
    class Model:
        letters: str

        def __call__(self, texts):
            return letters(texts)

    chosen = Semantic(embeddings=Model("a")).select(TABLE, 9, 2)
    assert chosen == Semantic(embeddings=letters).select(TABLE, 9, 2)


# What cannot be


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([None, *["word"] * 59], "1 of 60 items have no text: 'item-0' (hint: import the scores"),
        ([*["word"] * 58, "  ", float("nan")], "2 of 60 items have no text: 'item-58', 'item-59'"),
    ],
)
def test_items_without_text_are_named(texts, says):
    with pytest.raises(MethodError) as caught:
        Semantic().select(with_texts(TABLE, texts), 5, 0)
    assert says in str(caught.value)


def test_a_table_without_texts_says_how_to_give_them():
    bare = from_arrays(TABLE.values, models=TABLE.model_ids)
    with pytest.raises(MethodError, match=r"--items FILE.*embeddings=FILE\.npz"):
        Semantic().select(bare, 5, 0)
    with pytest.raises(MethodError, match="have no text"):
        Semantic(embeddings=letters).select(bare, 5, 0)
    assert len(Semantic(embeddings=POINTS).select(bare, 5, 0).items) == 5


def test_numbers_are_texts():
    chosen = Semantic().select(with_texts(TABLE, np.arange(60) % 7), 7, 0)
    assert len(chosen.items) == 7


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (Semantic(embeddings=POINTS, model="folder"), "both embeddings and a model"),
        (Semantic(restarts=0), "restarts is 0"),
        (Semantic(dimensions=0), "dimensions is 0"),
        (Semantic(embeddings="lost.npz"), "lost.npz: no such file"),
        (Semantic(embeddings="."), "cannot be read"),
        (Semantic(model="lab/name-of-a-hub"), "no such folder"),
        (Semantic(model="points.npz"), "no such folder"),
        (Semantic(hash="abc"), "has hash none, not abc"),
        (Semantic(embeddings="points.npz", hash="abc"), "points.npz: the content has hash"),
        (Semantic(embeddings=POINTS[:59]), "the embeddings: 59 rows for 60 items"),
        (Semantic(embeddings=lambda texts: POINTS[:59]), "59 rows for 60 texts"),
        (Semantic(embeddings=lambda texts: POINTS * np.nan), "60 rows hold NaN"),
        (Semantic(embeddings=lambda texts: "words"), "not numbers"),
        (Semantic(embeddings=lambda texts: None), "not numbers"),
    ],
)
def test_what_cannot_be_is_said(saved, method, says):
    with pytest.raises(MethodError) as caught:
        method.select(TABLE, 5, 0)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (POINTS[0], "shape (5,)"),
        (POINTS[:0], "shape (0, 5)"),
        (POINTS[:, :0], "shape (60, 0)"),
        (POINTS[None], "shape (1, 60, 5)"),
        (POINTS.astype(str), "not numbers"),
        (POINTS.astype(object), "not numbers"),
        (POINTS + 0j, "not numbers"),
        (np.where(np.arange(60)[:, None] == 7, np.inf, POINTS), "1 rows hold NaN or infinity"),
    ],
)
def test_an_array_of_another_kind_is_said_at_once(array, says):
    with pytest.raises(MethodError) as caught:
        Semantic(embeddings=array)
    assert says in str(caught.value)


IDS = TABLE.item_ids.astype(str)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"vectors": POINTS}, "no array 'embeddings', 'items'; it has 'vectors'"),
        ({"embeddings": POINTS}, "no array 'items'"),
        ({}, "it has none"),
        ({"items": IDS[:59], "embeddings": POINTS}, "59 items and 60 embeddings"),
        ({"items": IDS[:59], "embeddings": POINTS[:59]}, "for 1 of 60 items: 'item-59'"),
        ({"items": np.arange(60), "embeddings": POINTS}, "for 60 of 60 items: 'item-0'"),
        ({"items": np.repeat(IDS[:30], 2), "embeddings": POINTS}, "items appear twice: 'item-0'"),
        ({"items": IDS[:, None], "embeddings": POINTS}, "shape (60, 1)"),
        ({"items": POINTS[:, 0], "embeddings": POINTS}, "items of type float64"),
        ({"items": IDS, "embeddings": POINTS * np.nan}, "60 rows hold NaN"),
        ({"items": TABLE.item_ids, "embeddings": POINTS}, "no plain numbers and texts"),
    ],
)
def test_a_file_of_another_kind_is_said(tmp_path, arrays, says):
    path = tmp_path / "e.npz"
    np.savez(path, **arrays)
    with pytest.raises(MethodError) as caught:
        Semantic(embeddings=path).select(TABLE, 5, 0)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"item,1,2\n", b"PK\x03\x04 torn", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_none_is_said(tmp_path, content):
    path = tmp_path / "e.npz"
    path.write_bytes(content)
    with pytest.raises(MethodError, match=r"cannot be read as \.npz"):
        Semantic(embeddings=path).select(TABLE, 5, 0)


def test_an_item_more_in_the_file_is_no_error(tmp_path):
    path = tmp_path / "e.npz"
    np.savez(path, items=[*IDS, "of another table"], embeddings=np.vstack([POINTS, POINTS[:1]]))
    chosen = Semantic(embeddings=path).select(TABLE, 5, 0)
    assert chosen == Semantic(embeddings=POINTS).select(TABLE, 5, 0)


# What it says of itself, and what that is good for


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (Semantic(), "semantic"),
        (Semantic(dimensions=7, restarts=3), "semantic(dimensions=7,restarts=3)"),
        (Semantic(embeddings=letters), "semantic(embeddings=letters)"),
    ],
)
def test_a_description(method, says):
    assert method.describe() == says


def test_a_description_of_a_file_is_read_back_and_holds_only_for_its_content(saved):
    path = Path("points.npz")
    method = find_method("semantic(embeddings=points.npz,restarts=2)+mean")
    said = method.describe()
    assert said.startswith("semantic(embeddings=points.npz,restarts=2,hash=")
    again = find_method(said)
    assert again.describe() == said
    assert again.selector.select(TABLE, 5, 0) == method.selector.select(TABLE, 5, 0)
    np.savez(path, items=IDS, embeddings=POINTS[::-1])
    assert method.describe() != said
    with pytest.raises(MethodError, match="the content has hash"):
        again.selector.select(TABLE, 5, 0)


def test_a_study_runs_again_when_the_file_has_changed(saved):
    def study():
        return compare(
            TABLE,
            ["semantic(embeddings=points.npz)+mean", "clustering-semantic"],
            [6],
            repeats=2,
            level=None,
            cache="cells.jsonl",
        ).cells.set_index("method")["mae"]

    first = study()
    lines = len(Path("cells.jsonl").read_bytes().splitlines())
    assert study().equals(first)
    assert len(Path("cells.jsonl").read_bytes().splitlines()) == lines  # nothing was run
    np.savez("points.npz", items=IDS, embeddings=POINTS[::-1])
    second = study()
    assert len(Path("cells.jsonl").read_bytes().splitlines()) == lines + 2
    name = "semantic(embeddings=points.npz)+mean"
    assert second[name] != first[name]
    assert second.drop(name).equals(first.drop(name))


def test_an_evaluation_goes_on_with_its_items_though_the_embeddings_changed(saved):
    evaluation = Evaluation(TABLE, "semantic(embeddings=points.npz)+mean", 5, ["new"])
    evaluation.save("run")
    assert Evaluation.open("run", TABLE).ask() == evaluation.ask()
    np.savez("points.npz", items=IDS, embeddings=POINTS[::-1])
    again = Evaluation.open("run", TABLE)
    assert again.ask() == evaluation.ask()
    assert "hash=" in again.notes[0]


def test_a_text_is_needed_unless_embeddings_are_given():
    assert [need.what for need in needs_of(find_method("clustering-semantic"))] == ["text"]
    assert [need.what for need in Semantic(embeddings=letters).needs] == ["text"]
    assert [need.what for need in Semantic(model="folder").needs] == ["text"]
    for given in (POINTS, "points.npz", Path("points.npz")):
        assert Semantic(embeddings=given).needs == ()


# A local model


@pytest.fixture
def model(tmp_path):
    """A model2vec model of a few words, in a local folder."""
    model2vec = pytest.importorskip("model2vec")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[UNK]", *sorted({word for text in TABLE.items["text"] for word in text.split()})]
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.random.default_rng(0).normal(size=(len(words), 6)).astype(np.float32)
    made = model2vec.StaticModel(vectors, tokenizer)
    made.save_pretrained(tmp_path / "model")
    return tmp_path / "model", dict(zip(words, vectors, strict=True))


def test_a_local_model_embeds_the_texts(model, monkeypatch):
    folder, vectors = model

    def refuse(*args, **settings):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    means = [np.mean([vectors[w] for w in text.split()], axis=0) for text in TABLE.items["text"]]
    method = Semantic(model=folder)
    assert method.select(TABLE, 7, 1) == Semantic(embeddings=np.array(means)).select(TABLE, 7, 1)
    said = method.describe()
    assert said.startswith(f"semantic(model={folder},hash=")
    (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
    assert method.describe() != said


def test_texts_are_embedded_whole(model):
    folder, vectors = model
    one, two, three = list(vectors)[1:4]
    texts = [f"{one} " * 3000 + f"{(two, three)[n % 2]} " * 3000 for n in range(60)]
    subset = Semantic(model=folder).select(with_texts(TABLE.averaged("macro"), texts), 6, 0)
    at = TABLE.positions(subset.items)
    assert {(TABLE.task_of[n], n % 2) for n in at} == {(t, n) for t in range(3) for n in range(2)}


def test_a_folder_without_a_model_is_said(model, tmp_path):
    shutil.rmtree(model[0])
    (tmp_path / "model").mkdir()
    with pytest.raises(MethodError, match="cannot be loaded as a model2vec model"):
        Semantic(model=tmp_path / "model").select(TABLE, 5, 0)


def test_without_the_package_it_says_what_to_install(tmp_path):
    from importlib.util import find_spec

    if find_spec("model2vec"):
        pytest.skip("model2vec is installed")
    with pytest.raises(MissingExtraError, match=r"fewbench\[text\]"):
        Semantic(model=tmp_path).select(TABLE, 5, 0)


def test_it_is_no_worse_than_half_the_scale():
    """On texts that go with the difficulty the estimate has to do with the truth."""
    table = simulate(30, 200, seed=2)
    sources, targets = table.take(models=range(20)), table.take(models=range(20, 30))
    said = replay(find_method("clustering-semantic"), sources, targets, 40, 0).scores
    assert np.abs(said - targets.full_scores()).mean() < 0.08
