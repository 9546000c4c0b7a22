"""Targets that are run anew, removed, or refused."""

import pytest

from fewbench.errors import RunError
from fewbench.evaluation import Evaluation
from fewbench.runners.driving import run_with
from fewbench.runners.function import FunctionRunner
from fewbench.runners.run_folder import remove_target, renew
from fewbench.testing import simulate

TABLE = simulate(21, 60, seed=1)
SOURCES = TABLE.take(models=range(20))
RIGHT = dict(zip(TABLE.item_ids, TABLE.values[20], strict=True))


class Runner(FunctionRunner):
    """A runner that may refuse its items."""

    def __init__(self, score, shots, refused=False):
        super().__init__(score)
        self.facts, self._refused = {"model": "m", "num_fewshot": str(shots)}, refused

    def check_items(self, items):
        if self._refused:
            raise RunError("other documents", hint="use the same")
        return []


def right(item):
    return RIGHT[item]


def wrong(item):
    return 1 - RIGHT[item]


def run(folder, name, score=right, **how):
    runner = Runner(score, how.pop("shots", 0), how.pop("refused", False))
    return run_with(runner, SOURCES, "random", 10, folder=folder, targets=[name], **how)


def targets(folder):
    return Evaluation.open(folder, SOURCES).targets


@pytest.mark.parametrize("how", [{"shots": 2}, {"refused": True}])
def test_a_refused_run_leaves_no_target_behind(tmp_path, how):
    folder = tmp_path / "run"
    run(folder, "first")
    before = {path.name: path.read_bytes() for path in folder.glob("*.json*")}
    with pytest.raises(RunError):
        run(folder, "ghost", **how)
    assert targets(folder) == ("first",)
    assert {path.name: path.read_bytes() for path in folder.glob("*.json*")} == before
    with pytest.raises(RunError):
        run(tmp_path / "new", "ghost", refused=True)
    assert not (tmp_path / "new").exists()
    assert run(folder, "ghost").targets["ghost"].items_run == 10


def test_a_target_is_removed_and_the_others_stay(tmp_path):
    folder = tmp_path / "run"
    for name, score in (("first", wrong), ("second", right)):
        run(folder, name, score)
    before = Evaluation.open(folder, SOURCES).estimate()["second"]
    kept = remove_target(folder, "first")
    assert kept == tmp_path / "run.1"
    assert targets(kept) == ("first", "second")
    assert targets(folder) == ("second",)
    after = Evaluation.open(folder, SOURCES)
    assert after.estimate()["second"].score == before.score
    found = run(folder, "first", right)
    assert found.estimates["first"].score == before.score
    assert not found.reused
    with pytest.raises(RunError, match="'third'"):
        remove_target(folder, "third")
    run(tmp_path / "alone", "first")
    with pytest.raises(RunError, match="'first'"):
        remove_target(tmp_path / "alone", "first")


def test_one_of_two_targets_is_run_anew(tmp_path):
    folder = tmp_path / "run"
    run(folder, "first", right)
    run(folder, "second", wrong)
    assert renew(folder, ["second"]) == tmp_path / "run.1"
    assert run(folder, "second", right).targets["second"].items_run == 10
    assert targets(folder) == ("first", "second")
    estimates = Evaluation.open(folder, SOURCES).estimate()
    assert estimates["first"].score == estimates["second"].score
    assert renew(folder, ["third"]) is None
    assert renew(folder, ["first", "second"]) == tmp_path / "run.2"
    assert not folder.exists()
