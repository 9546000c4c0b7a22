"""An evaluation that is opened again goes on from its record, whatever became of the method."""

import json
from collections import OrderedDict

import numpy as np
import pytest

from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.journal import Journal
from fewbench.public import open_scores
from fewbench.testing import simulate
from fewbench_papers.tinybenchmarks import item_response

from .test_journal import finished


@pytest.fixture(scope="module")
def table():
    return simulate(22, 60, seed=5, options=3)


@pytest.fixture(scope="module")
def targets(table):
    return table.take(models=[20])


NAME = "model-20"


def begun(sources, targets, folder, method, items=3):
    evaluation = Evaluation(sources, method, 8, [NAME])
    evaluation.save(folder)
    asked = evaluation.ask()[NAME]
    for item in asked[:items]:
        evaluation.tell_table(targets.take(items=targets.positions([item])), NAME)
    return evaluation


def lines(folder):
    return (folder / "answers.jsonl").read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("kind", ["npz", "items"])
def test_scores_of_any_kind_of_file_are_read_again(sources, tmp_path, kind):
    """As the command line starts runs from them: an .npz file, or a table of items alone."""
    path = tmp_path / {"npz": "scores.npz", "items": "items.csv"}[kind]
    if kind == "npz":
        tasks = sources.items["task"].to_numpy(str)
        np.savez(path, scores=sources.values, models=sources.model_ids, tasks=tasks,
                 items=sources.item_ids.astype(str))  # fmt: skip
    else:
        sources.items[["task"]].rename_axis("id").to_csv(path)
    scores = open_scores(path).scores
    evaluation = Evaluation(scores, "random", 8, [NAME])
    evaluation.save(tmp_path / "run", path)
    opened = Evaluation.open(tmp_path / "run")
    assert opened.ask() == evaluation.ask()
    assert opened.scores.fingerprint == scores.fingerprint


def test_the_method_does_not_start_while_items_are_open(sources, targets, tmp_path, two_rounds):
    class Unwilling(type(two_rounds)):
        def start(self, *args):
            raise AssertionError("started")

    evaluation = begun(sources, targets, tmp_path, two_rounds)
    opened = Evaluation.open(tmp_path, sources, Unwilling())
    assert opened.ask() == evaluation.ask()
    assert len(opened.ask()[NAME]) == 1
    with pytest.raises(AssertionError, match="started"):
        opened.estimate()


def test_a_changed_method_goes_on_and_says_so(sources, targets, tmp_path, two_rounds):
    class Newer(type(two_rounds)):
        def describe(self):
            return "two-rounds(newer)"

    evaluation = begun(sources, targets, tmp_path, two_rounds)
    opened = Evaluation.open(tmp_path, sources, Newer())
    (note,) = opened.notes
    assert "two-rounds as two-rounds" in note
    assert "continues from the recorded answers with two-rounds(newer)" in note
    assert opened.ask() == evaluation.ask()
    said, before = finished(opened, targets)[NAME], finished(evaluation, targets)[NAME]
    assert said.score == before.score
    assert note in said.warnings
    assert Evaluation.open(tmp_path, sources, two_rounds).notes == ()


def test_a_changed_static_method_keeps_the_items_that_were_chosen(sources, targets, tmp_path):
    evaluation = begun(sources, targets, tmp_path, "kmedoids-ridge")
    path = tmp_path / "evaluation.json"
    header = json.loads(path.read_text())
    for made in (header["provenance"], header["subset"]["provenance"]):
        made["settings"] = "medoids+older"
    header["subset"]["items"] = header["subset"]["items"][::-1]
    path.write_text(json.dumps(header))
    opened = Evaluation.open(tmp_path, sources)
    assert "as medoids+older" in opened.notes[0]
    assert opened.ask() == evaluation.ask()
    opened.tell_table(targets)
    assert opened.ask() == {}
    assert opened.notes[0] in opened.estimate()[NAME].warnings


def test_unknown_probabilities_are_kept(sources, targets, tmp_path):
    evaluation = Evaluation(sources, "kmedoids-ridge", 8, [NAME])
    evaluation.save(tmp_path)
    asked = evaluation.ask()[NAME]
    options = {item: [0.2, 0.3, 0.5] for item in asked} | {asked[0]: [np.nan] * 3}
    evaluation.tell(NAME, dict.fromkeys(asked, 1.0), options)
    assert "NaN" not in (tmp_path / "answers.jsonl").read_text()
    opened = Evaluation.open(tmp_path, sources)
    assert opened.estimate() == evaluation.estimate()
    assert opened.record.answers(NAME).probabilities is None
    rest = sources.positions(asked[1:])
    assert opened.record.answers(NAME, rest).probabilities.shape == (1, 7, 3)


def spoiled(folder, number):
    """Damage one line; return the file as it is then."""
    kept = lines(folder)
    kept[number] = kept[number][: len(kept[number]) // 2] + b"\n"
    (folder / "answers.jsonl").write_bytes(b"".join(kept))
    return b"".join(kept)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_repaired_folder_opens(sources, targets, tmp_path, two_rounds, number, adaptive):
    method = two_rounds if adaptive else "random-ridge"
    begun(sources, targets, tmp_path, method)
    content = spoiled(tmp_path, number)
    with pytest.raises(EvaluationError, match=f"line {number + 1} is damaged.*fewbench repair"):
        Evaluation.open(tmp_path, sources, two_rounds if adaptive else None)
    assert Journal(tmp_path).repair() == [number + 1]
    assert (tmp_path / "answers.jsonl.damaged").read_bytes() == content
    opened = Evaluation.open(tmp_path, sources, two_rounds if adaptive else None)
    assert len(opened.record.answered(NAME)) == (3 if number == 0 else 2), "answers are lost"
    said = finished(opened, targets)[NAME]
    assert said.items_run >= 7
    again = Evaluation.open(tmp_path, sources, two_rounds if adaptive else None)
    assert again.estimate()[NAME] == said
    assert Journal(tmp_path).repair() == []


def test_a_correction_of_a_lost_answer_is_an_answer(sources, targets, tmp_path):
    evaluation = begun(sources, targets, tmp_path, "random-ridge", items=1)
    evaluation.tell_table(targets, correct=False)
    item = evaluation.scores.item_ids[evaluation.record.asked(NAME)[0]]
    other = 1.0 - evaluation.record.scores(NAME)[evaluation.record.asked(NAME)[0]]
    evaluation.tell(NAME, {item: other}, correct=True)
    spoiled(tmp_path, 1)
    Journal(tmp_path).repair()
    opened = Evaluation.open(tmp_path, sources)
    assert opened.record.scores(NAME)[opened.record.asked(NAME)[0]] == other


def test_a_crash_before_the_next_round_was_noted(sources, targets, tmp_path, two_rounds):
    """The answers are on the disk, what they led to is not: asked again, and noted."""
    evaluation = Evaluation(sources, two_rounds, 8, [NAME, "other"])
    evaluation.save(tmp_path)
    evaluation.ask()
    evaluation.tell_table(targets, NAME)
    second = evaluation.ask()[NAME]
    (tmp_path / "answers.jsonl").write_bytes(b"".join(lines(tmp_path)[:-1]))
    opened = Evaluation.open(tmp_path, sources, two_rounds)
    assert opened.waiting() == []
    opened.tell_table(targets.take(items=targets.positions(second[:1])), NAME)
    again = Evaluation.open(tmp_path, sources, two_rounds)
    assert again.ask()[NAME] == second[1:]
    asked = [json.loads(line) for line in lines(tmp_path) if b"targets" in line]
    assert [len(one["items"]) for one in asked] == [4, 4]


@pytest.mark.parametrize("damage", ["kept", "deleted", "empty", "torn", "other"])
def test_fits_are_kept_in_the_folder(sources, targets, tmp_path, monkeypatch, damage):
    evaluation = Evaluation(sources, "fluid(random=0.5,step=4)", 8, [NAME])
    evaluation.save(tmp_path)
    evaluation.ask()
    evaluation.tell_table(targets)
    asked = evaluation.ask()
    (tmp_path / "answers.jsonl").write_bytes(b"".join(lines(tmp_path)[:-1]))

    fits = []
    fit_irt = item_response.fit_irt
    monkeypatch.setattr(item_response, "fit_irt", lambda *a: fits.append(a) or fit_irt(*a))

    def ask_anew():
        monkeypatch.setattr(item_response, "_kept", OrderedDict())
        copy = lines(tmp_path)
        found = Evaluation.open(tmp_path, sources).ask()
        (tmp_path / "answers.jsonl").write_bytes(b"".join(copy))
        return found

    assert ask_anew() == asked
    assert not fits, "the fit of the start was not kept"
    (path,) = tmp_path.glob("item-response-*.npz")
    content = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    elif damage != "kept":
        changed = {"empty": b"", "torn": content[: len(content) // 2], "other": b"fit"}
        path.write_bytes(changed[damage])
    assert ask_anew() == asked
    assert len(fits) == (0 if damage == "kept" else 1)
    assert path.read_bytes()[:2] == b"PK", "the file is not made again"


@pytest.mark.parametrize("is_finished", [True, False])
def test_an_estimate_needs_no_writing(
    sources, targets, tmp_path, two_rounds, monkeypatch, is_finished
):
    evaluation = begun(sources, targets, tmp_path, two_rounds, items=4)
    if is_finished:
        finished(evaluation, targets)
    else:  # killed before it noted the second round
        (tmp_path / "answers.jsonl").write_bytes(b"".join(lines(tmp_path)[:-1]))
    kept, opened = lines(tmp_path), open

    def refuse(path, mode="r", *args, **kwargs):
        if str(path).startswith(str(tmp_path)) and set(mode) & set("wax+"):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, mode, *args, **kwargs)

    def refuse_temporary(dir=None, **kwargs):
        raise PermissionError(13, "Permission denied", str(dir))

    monkeypatch.setattr("io.open", refuse)
    monkeypatch.setattr("tempfile.mkstemp", refuse_temporary)
    read_only = Evaluation.open(tmp_path, sources, two_rounds)
    estimate = read_only.estimate()[NAME]
    if not is_finished:  # items that are not noted are not asked
        with pytest.raises(PermissionError):
            Evaluation.open(tmp_path, sources, two_rounds).ask()
    assert lines(tmp_path) == kept
    monkeypatch.undo()
    assert Evaluation.open(tmp_path, sources, two_rounds).estimate()[NAME] == estimate


def test_an_evaluation_whose_target_was_removed_meanwhile_adds_nothing(tmp_path, sources):
    evaluation = Evaluation(sources, "random", 8, ["one", "two"])
    evaluation.save(tmp_path)
    first, second = evaluation.ask()["one"][:2]
    evaluation.tell("one", {first: 1.0})
    Journal(tmp_path).forget("one")
    with pytest.raises(EvaluationError, match="rewritten"):
        evaluation.tell("one", {second: 1.0})
    assert Evaluation.open(tmp_path, sources).targets == ("two",)


def test_a_target_whose_first_line_is_lost_stays(tmp_path, sources):
    evaluation = Evaluation(sources, "random", 8, ["one"])
    evaluation.save(tmp_path)
    evaluation.tell("one", dict.fromkeys(evaluation.ask()["one"], 1.0))
    evaluation.follow("two")
    evaluation.tell("two", dict.fromkeys(evaluation.ask()["two"][:3], 0.0))
    followed = next(at for at, line in enumerate(lines(tmp_path)) if b'"lead"' in line)
    spoiled(tmp_path, followed)
    assert Journal(tmp_path).repair() == [followed + 1]
    opened = Evaluation.open(tmp_path, sources)
    assert opened.targets == ("one", "two")
    assert len(opened.record.answered("two")) == 3
