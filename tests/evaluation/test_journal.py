"""An evaluation on disk: every tell is there before it returns, and nothing is asked twice."""

import json
import os
import time

import pytest

from fewbench.errors import EvaluationError, MethodError
from fewbench.evaluation import Evaluation
from fewbench.scores import save_scores
from fewbench.testing import simulate

NAMES = ["model-13", "model-14"]


@pytest.fixture
def table():
    return simulate(15, 30, seed=1, options=3)


def lines(folder):
    return (folder / "answers.jsonl").read_bytes().splitlines(keepends=True)


def begun(sources, targets, folder, method="random-ridge", items=3):
    """An evaluation in which the first target has answered some of its items, in two tells."""
    evaluation = Evaluation(sources, method, 8, NAMES, seed=2)
    evaluation.save(folder)
    asked = targets.positions(evaluation.ask()["model-13"])
    for at in (asked[:1], asked[1:items]):
        evaluation.tell_table(targets.take(models=[0], items=at), "model-13")
    return evaluation


def finished(evaluation, targets):
    while evaluation.ask():
        evaluation.tell_table(targets)
    return evaluation.estimate()


def test_every_tell_is_on_the_disk_before_it_returns(sources, targets, tmp_path, monkeypatch):
    evaluation = begun(sources, targets, tmp_path)
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    evaluation.tell_table(targets)
    assert len(lines(tmp_path)) == 5
    assert synced[-1] == (tmp_path / "answers.jsonl").stat().st_size
    assert len(synced) == 2


def test_what_cannot_be_written_was_not_told(sources, targets, tmp_path, monkeypatch):
    evaluation = begun(sources, targets, tmp_path)
    before, asked = lines(tmp_path), evaluation.ask()

    def fail(handle):
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no space left"):
            evaluation.tell_table(targets)
    assert lines(tmp_path) == before
    assert evaluation.ask() == asked
    assert finished(evaluation, targets) == Evaluation.open(tmp_path, sources).estimate()


@pytest.mark.parametrize("adaptive", [False, True])
def test_resumed_after_every_tell(sources, targets, tmp_path, adaptive, two_rounds):
    method = two_rounds if adaptive else "disco-jsd-ridge"
    whole = finished(Evaluation(sources, method, 8, NAMES, seed=2), targets)
    Evaluation(sources, method, 8, NAMES, seed=2).save(tmp_path)
    told = []
    for _ in range(16):  # one item at a time, opened anew for each
        evaluation = Evaluation.open(tmp_path, sources, two_rounds if adaptive else None)
        name, items = list(evaluation.ask().items())[-1]
        assert (name, items[0]) not in told
        told.append((name, items[0]))
        row = targets.model_positions([name])
        one = targets.take(models=row, items=targets.positions(items[:1]))
        evaluation.tell_table(one, name)
    assert evaluation.ask() == {}
    assert evaluation.estimate() == whole
    opened = Evaluation.open(tmp_path, sources, two_rounds if adaptive else None)
    assert opened.estimate() == whole


def test_saved_in_the_middle_of_the_second_round(sources, targets, tmp_path, two_rounds):
    """Asks and tells are kept in their order."""
    whole = Evaluation(sources, two_rounds, 8, NAMES)
    evaluation = Evaluation(sources, two_rounds, 8, NAMES)
    evaluation.tell_table(targets)
    second = evaluation.ask()["model-13"]
    at = targets.positions(second[:1])
    evaluation.tell_table(targets.take(models=[0], items=at), "model-13")
    evaluation.save(tmp_path)
    kept = [json.loads(line) for line in lines(tmp_path)]
    assert [one.get("target", one.get("targets")) for one in kept] == [
        NAMES,
        "model-13",
        "model-14",
        ["model-13"],
        ["model-14"],
        "model-13",
    ]
    opened = Evaluation.open(tmp_path, sources, two_rounds)
    assert opened.ask() == evaluation.ask()
    assert opened.ask()["model-13"] == second[1:]
    assert finished(opened, targets) == finished(whole, targets)


def test_a_torn_last_line_is_skipped_and_asked_again(sources, targets, tmp_path):
    begun(sources, targets, tmp_path)
    whole = lines(tmp_path)
    for torn in (whole[2][:-1], whole[2][:20], b"{", b"\x00\xff"):
        (tmp_path / "answers.jsonl").write_bytes(whole[0] + whole[1] + torn)
        opened = Evaluation.open(tmp_path, sources)
        assert len(opened.ask()["model-13"]) == 7
    opened.tell_table(targets)
    assert lines(tmp_path)[:2] == whole[:2]
    whole = finished(Evaluation(sources, "random-ridge", 8, NAMES, seed=2), targets)
    assert Evaluation.open(tmp_path, sources).estimate() == whole


def damaged(**change):
    def spoil(line):
        entry = json.loads(line)
        del entry["crc32"]  # as lines of older versions, whose changes are not noticed
        return json.dumps({**entry, **change}).encode() + b"\n"

    return spoil


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda line: line[:30] + b"\n", "line 2 is damaged"),
        (lambda line: b"\n", "line 2 is damaged"),
        (lambda line: b"\xff\xfe\n", "line 2 is damaged"),
        (lambda line: b"[1]\n", "line 2 is damaged"),
        (damaged(scores=[]), "line 2 is damaged"),
        (damaged(probabilities=[]), "line 2 is damaged"),
        (damaged(scores=["right"]), "line 2 is damaged"),
        (damaged(extra=1), "line 2 is damaged"),
        (damaged(target="nobody"), "entry 2 does not fit"),
        (damaged(items=["nope"]), "entry 2 does not fit"),
        (damaged(scores=[7.0]), "entry 2 does not fit"),
    ],
)
def test_a_damaged_line_in_the_middle_is_an_error(sources, targets, tmp_path, spoil, says):
    begun(sources, targets, tmp_path)
    asked, first, second = lines(tmp_path)
    (tmp_path / "answers.jsonl").write_bytes(asked + spoil(first) + second)
    with pytest.raises(EvaluationError) as caught:
        Evaluation.open(tmp_path, sources)
    assert says in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_the_scores_are_found_by_themselves_or_given(sources, targets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    macro = sources.averaged("macro")
    save_scores(sources, "scores.parquet")
    evaluation = Evaluation(macro, "random-ridge", 8, NAMES)
    evaluation.save("kept", "scores.parquet")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    opened = Evaluation.open(tmp_path / "kept")
    assert opened.scores.average == "macro"
    assert opened.ask() == evaluation.ask()
    (tmp_path / "scores.parquet").unlink()
    with pytest.raises(EvaluationError, match="--scores"):
        Evaluation.open(tmp_path / "kept")
    moved = save_scores(sources, "moved.parquet")
    assert Evaluation.open(tmp_path / "kept", moved).ask() == evaluation.ask()
    assert Evaluation.open(tmp_path / "kept", macro).ask() == evaluation.ask()


def test_other_scores_are_refused(sources, tmp_path):
    Evaluation(sources, "random", 8, NAMES).save(tmp_path)
    with pytest.raises(EvaluationError, match="--scores FILE"):
        Evaluation.open(tmp_path)
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
        Evaluation.open(tmp_path, sources.averaged("macro"))


def test_what_cannot_be_saved_or_opened(sources, tmp_path, two_rounds):
    evaluation = Evaluation(sources, "random", 8, NAMES)
    evaluation.save(tmp_path / "one")
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "taken"):
        Evaluation(sources, "random", 3, ["x"]).save(tmp_path / "one")
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "missing"):
        Evaluation.open(tmp_path / "none", sources)
    Evaluation(sources, two_rounds, 8, NAMES).save(tmp_path / "two")
    with pytest.raises(MethodError, match="two-rounds"):
        Evaluation.open(tmp_path / "two", sources)
    header = tmp_path / "one" / "evaluation.json"
    for text, says in [
        ("", "the file"),
        ("{}", "Field required"),
        (header.read_text().replace('"format": 1', '"format": 2'), "format"),
        (header.read_text().replace('"targets"', '"models"'), "targets"),
    ]:
        header.write_text(text)
        with pytest.raises(EvaluationError) as caught:
            Evaluation.open(tmp_path / "one", sources)
        assert says in str(caught.value)
        assert "evaluation.json" in str(caught.value)


def test_the_same_items_are_asked_whatever_the_method_would_choose_now(sources, tmp_path):
    """The chosen items are kept; a newer version that chose others would change nothing."""
    evaluation = Evaluation(sources, "random", 8, NAMES)
    evaluation.save(tmp_path)
    path = tmp_path / "evaluation.json"
    header = json.loads(path.read_text())
    header["subset"]["items"] = header["subset"]["items"][::-1]
    path.write_text(json.dumps(header))
    asked = Evaluation.open(tmp_path, sources).ask()["model-13"]
    assert asked == list(evaluation.subset.items[::-1])


def test_opening_takes_as_long_as_there_are_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    benchmark = simulate(1, 4000, seed=1).benchmark

    def seconds(n):
        evaluation = Evaluation(benchmark, "random", n)
        evaluation.save(tmp_path / str(n))
        for item in evaluation.ask()["target"]:
            evaluation.tell("target", {item: 1.0})
        best = []
        for _ in range(3):
            started = time.process_time()
            Evaluation.open(tmp_path / str(n))
            best.append(time.process_time() - started)
        return min(best)

    assert seconds(3000) < 1.5 * 3 * seconds(1000)


def older(folder, asked):
    """The lines of an evaluation that was saved before lines had a kind, one of each kind."""
    one, two, three, four = asked[:4]
    (folder / "answers.jsonl").write_text(f"""\
{{"targets":["first","second"],"items":["{one}","{two}","{three}","{four}"]}}
{{"target":"first","facts":{{"model":"m"}}}}
{{"target":"first","items":["{one}","{two}"],"scores":[1.0,0.0],"texts":{{"{one}":"A"}}}}
{{"target":"first","items":["{three}","{four}"]}}
{{"target":"first","items":["{four}"],"again":true}}
{{"target":"first","again":["{four}"]}}
{{"target":"third","of":"first","lead":{{"rounds":[["{one}"]],"scores":{{"{one}":1.0}},"budget":8}}}}
{{"target":"third","phases":[{{"before":[],"chances":{{"{one}":0.5}}}}]}}
{{"removed":["{two}"]}}
""")


def test_lines_without_a_kind_open_as_before_and_new_lines_have_one(table, tmp_path):
    sources = table.take(models=range(12))
    evaluation = Evaluation(sources, "random", 8, ["first", "second"], seed=2)
    evaluation.save(tmp_path)
    asked = evaluation.ask()["first"]
    older(tmp_path, asked)
    opened = Evaluation.open(tmp_path, sources)
    assert [entry.kind for entry in opened.entries] == [
        *("asked", "batch", "answers", "skipped", "skipped"),
        *("batch", "followed", "drawn", "removed"),
    ]
    record, ids = opened.record, sources.item_ids
    assert opened.targets == ("first", "second", "third")
    assert ids[record.answered("first")].tolist() == asked[:2]
    assert ids[record.open("first")].tolist() == asked[3:4]
    assert ids[sorted(record.skipped("first"))].tolist() == asked[2:3]
    assert ids[record.lead("third").rounds[0]].tolist() == asked[:1]
    opened.tell("first", {asked[3]: 1.0})
    new = [json.loads(line) for line in lines(tmp_path)[9:]]
    assert [line["items"] for line in new if line["kind"] == "answers"] == [[asked[3]]]
    again = Evaluation.open(tmp_path, sources)
    assert again.record.answered("first").tolist() == opened.record.answered("first").tolist()


@pytest.mark.parametrize("kind", ["scored", 3, None])
def test_a_line_of_an_unknown_kind_is_damaged(sources, targets, tmp_path, kind):
    begun(sources, targets, tmp_path)
    first, *rest = lines(tmp_path)
    odd = json.dumps({"kind": kind, "nothing": 1}).encode() + b"\n"
    (tmp_path / "answers.jsonl").write_bytes(first + odd + b"".join(rest))
    with pytest.raises(EvaluationError, match="line 2 is damaged"):
        Evaluation.open(tmp_path, sources)
