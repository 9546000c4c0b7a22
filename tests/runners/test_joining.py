"""Targets that join a run: in one folder, and in folders of their own with --items-of."""

import json
import sys

import numpy as np
import pytest

import fewbench
from fewbench import versus
from fewbench.errors import EvaluationError, RunError
from fewbench.evaluation import Evaluation
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.runners.lm_eval.setup import Setup
from fewbench.testing import simulate

TABLE = simulate(30, 240, 3, seed=5)
SOURCES = TABLE.take(models=range(26))
ROWS = {f"ckpt-{at}": TABLE.values[25 + at].tolist() for at in (1, 2, 3, 4)}
RIGHT = {name: dict(zip(TABLE.item_ids, row, strict=True)) for name, row in ROWS.items()}
SCRIPT = """
import json, pathlib, sys
right = json.loads(pathlib.Path(sys.argv[1]).read_text())
for line in sys.stdin:
    item = json.loads(line)["item"]
    print(item, file=open("asked.txt", "a"))
    print(json.dumps({"item": item, "score": right[item]}), flush=True)
"""
WAYS = ("function", "command")


@pytest.fixture
def go(tmp_path, monkeypatch):
    """Run a checkpoint by a function or by a program; return the number of items it was asked."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answer.py").write_text(SCRIPT)
    for name, right in RIGHT.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(right))

    def run(way, scores, name, folder, stop=40, model=None, method="fewbench", **settings):
        given, asked = {"folder": folder, "targets": [name], **settings}, tmp_path / "asked.txt"
        asked.write_text("")

        def answer(item):
            print(item, file=asked.open("a"))
            return RIGHT[model or name][item]

        if way == "command":
            runner = CommandRunner([sys.executable, "-S", "answer.py", f"{model or name}.json"])
            run_with(runner, scores, method, stop, **given)
        else:
            fewbench.run(scores, method, stop, answer, **given)
        return len(asked.read_text().splitlines())

    return run


def opened(folder, scores):
    return Evaluation.open(folder, scores if scores is SOURCES else None)


def items_of(folder, name, scores):
    return opened(folder, scores).record.answered(name).tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scores", [SOURCES, TABLE.benchmark], ids=["sources", "none"])
def test_checkpoints_in_one_folder_run_the_same_items_once(go, tmp_path, way, scores):
    folder = tmp_path / "run"
    for name in ("ckpt-1", "ckpt-2", "ckpt-3"):
        assert go(way, scores, name, folder) == 40
    assert go(way, scores, "ckpt-2", folder) == 0  # it is finished
    items = [items_of(folder, name, scores) for name in ("ckpt-1", "ckpt-2", "ckpt-3")]
    assert items[0] == items[1] == items[2]
    run = opened(folder, scores)
    found = versus((run, "ckpt-2"), "ckpt-3")
    assert found.items_common == 40
    assert found.pairing is None
    assert {one.target for one in fewbench.rank(run).targets} == set(run.targets)
    assert [one.checkpoint for one in fewbench.track(run).points] == list(run.targets)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scores", [SOURCES, TABLE.benchmark], ids=["sources", "none"])
def test_items_of_another_folder(go, tmp_path, way, scores):
    go(way, scores, "ckpt-1", tmp_path / "one")
    benchmark = None if way == "command" and scores is not SOURCES else scores  # that of the run
    go(way, benchmark, "ckpt-2", tmp_path / "two", None, items_of=tmp_path / "one")
    go(way, scores, "ckpt-3", tmp_path / "more", 60, items_of=f"{tmp_path / 'two'}:ckpt-2")
    one, two = (
        items_of(tmp_path / "one", "ckpt-1", scores),
        items_of(tmp_path / "two", "ckpt-2", scores),
    )
    more = items_of(tmp_path / "more", "ckpt-3", scores)
    assert one == two == more[:40]
    assert len(more) == 60
    assert go(way, scores, "ckpt-2", tmp_path / "two", items_of=tmp_path / "one") == 0
    with pytest.raises(RunError, match="nowhere: no evaluation here"):
        go(way, scores, "ckpt-4", tmp_path / "four", items_of="nowhere")
    with pytest.raises(EvaluationError, match=r"seed 0.*1"):
        go(way, scores, "ckpt-4", tmp_path / "four", seed=1, items_of=tmp_path / "one")
    assert not (tmp_path / "four" / "evaluation.json").exists()


def test_a_target_that_joins_is_killed_and_resumed(tmp_path):
    """Ctrl-C after 7 items, in a folder with a finished target."""
    folder, asked = tmp_path / "run", []

    def answer(item):
        if len(asked) == 7:
            raise KeyboardInterrupt
        asked.append(item)
        return RIGHT["ckpt-2"][item]

    given = (SOURCES, "fewbench", 40)
    fewbench.run(*given, RIGHT["ckpt-1"].get, targets=["ckpt-1"], folder=folder)
    stopped = fewbench.run(*given, answer, targets=["ckpt-2"], folder=folder)
    assert stopped.stopped == "interrupted"
    assert list(stopped.targets) == ["ckpt-2"]
    rest = {"targets": ["ckpt-2"], "accept_changes": True}
    again = fewbench.run(*given, RIGHT["ckpt-2"].get, folder=folder, **rest)
    alone = fewbench.run(
        *given, RIGHT["ckpt-2"].get, targets=["ckpt-2"], folder=tmp_path / "b", items_of=folder
    )
    assert again.estimates == alone.estimates
    assert items_of(folder, "ckpt-1", SOURCES) == items_of(folder, "ckpt-2", SOURCES)


def test_a_target_keeps_its_model_and_all_keep_the_settings(go, tmp_path):
    folder = tmp_path / "run"
    go("command", SOURCES, "ckpt-1", folder)
    go("command", SOURCES, "ckpt-2", folder)  # another program: another model
    with pytest.raises(RunError, match="ckpt-2 ran differently: program is"):
        go("command", SOURCES, "ckpt-2", folder, model="ckpt-3")
    for change, said in (
        ({"stop": 30}, "limits: at most 40 items, now at most 30 items"),
        ({"method": "random"}, "method: fewbench, now random"),
        ({"seed": 3}, "seed: 0, now 3"),
    ):
        with pytest.raises(RunError, match=said) as error:
            go("command", SOURCES, "ckpt-3", folder, **change)
        assert "--items-of" in str(error.value)
    assert Evaluation.open(folder, SOURCES).targets == ("ckpt-1", "ckpt-2")


def test_settings_that_differ_between_targets_are_refused(tmp_path):
    """Not the model's: the number of few-shot examples, say."""

    class Runner(fewbench.runners.function.FunctionRunner):
        def __init__(self, model, shots):
            super().__init__(RIGHT["ckpt-1"].get)
            self.facts, self.model_name = {"model": model, "num_fewshot": str(shots)}, model

    def run(model, shots, **settings):
        return run_with(
            Runner(model, shots), SOURCES, "random", 9, folder=tmp_path / "run", **settings
        )

    run("a", 5)
    assert list(run("b", 5).targets) == ["b"]
    with pytest.raises(RunError, match=r"num_fewshot.*0,.*5"):
        run("c", 0)
    assert list(run("a", 5, targets=["a"]).targets) == ["a"]
    run("d", 0, accept_changes=True)


def test_a_target_without_a_name_has_that_of_its_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def my_model(item):
        return 1.0

    def named(answer, **settings):
        return list(fewbench.run(SOURCES, "random", 5, answer, **settings).targets)

    assert named(my_model) == ["my_model"]
    assert named(lambda item: 1.0) == ["target"]
    assert named({"a": my_model, "b": my_model}) == ["a", "b"]
    assert Setup("hf", {"pretrained": "org/model"}).target == "org/model"
    assert Setup("dummy").target == "dummy"
    (tmp_path / "solve.py").write_text("")
    for command, name in (
        (["/usr/bin/python3", "-u", str(tmp_path / "solve.py"), "--fast"], "solve"),
        (["./bin/answer", "3"], "answer"),
    ):
        assert CommandRunner(command).model_name == name
    # The second call does not name the target: it is the one that was run so.
    right = tmp_path / "right.json"
    right.write_text(json.dumps(RIGHT["ckpt-1"]))

    def ran(targets):
        runner = CommandRunner([sys.executable, "-c", SCRIPT, str(right)])
        return run_with(runner, SOURCES, "random", 5, folder=tmp_path / "run", targets=targets)

    for targets in (["mine"], None):
        assert list(ran(targets).targets) == ["mine"]
    ran(["other"])  # Without a name, an old result could be taken for that of a new checkpoint.
    with pytest.raises(RunError, match=r"'mine'.*'other'"):
        ran(None)


def test_a_name_of_a_source_model_is_refused_with_what_to_do(tmp_path):
    name = str(TABLE.model_ids[3])
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "taken") as error:
        fewbench.run(SOURCES, "random", 5, {name: RIGHT["ckpt-1"].get})
    assert "-t NAME" in str(error.value)


def test_a_target_that_leaves_the_shared_items_is_noted(tmp_path):
    table = simulate(60, 300, 3, seed=2)
    order = table.full_scores().argsort()
    weak, near, strong = (order[at] for at in (4, 5, -5))
    kept = table.take(models=np.delete(order, [4, 5, -5]))
    results = []
    for name, row in (("weak", weak), ("near", near), ("strong", strong)):
        right = dict(zip(table.item_ids, table.values[row], strict=True))
        results.append(
            fewbench.run(kept, "fewbench", 40, right.get, targets=[name], folder=tmp_path)
        )
    left = [[note for note in result.notes if "of its own" in note] for result in results]
    assert [len(notes) for notes in left] == [0, 0, 1]
    opened = fewbench.Evaluation.open(tmp_path, kept)
    lead, own = (opened.record.rounds(name) for name in ("near", "strong"))
    pairs = zip(lead, own, strict=False)
    shared = [ours for theirs, ours in pairs if np.array_equal(theirs, ours)]
    items = np.concatenate(shared)
    score = opened.record.scores("strong")[items].mean()
    assert left[2][0].startswith(f"strong scores {score:.1%} on its first {len(items)} items, ")


def test_another_function_in_the_same_folder_is_another_target(tmp_path):
    def old(item):
        return 1.0

    def new(item):
        return 0.0

    for answer in (old, new, old):
        result = fewbench.run(TABLE.benchmark, "random", 10, answer, folder=tmp_path)
        assert result.estimates[answer.__name__].score == pytest.approx(answer(""))
    assert Evaluation.open(tmp_path).targets == ("old", "new")
