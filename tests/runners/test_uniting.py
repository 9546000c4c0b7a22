"""Two folders of one benchmark become one."""

import pytest

from fewbench import Benchmark, Evaluation, run
from fewbench.errors import RunError
from fewbench.runners.uniting import unite_runs
from fewbench.testing import simulate

WHOLE = simulate(4, 80, seed=1)


def ran(folder, name, row, items=20, **how):
    right = dict(zip(WHOLE.item_ids, WHOLE.values[row], strict=True))
    run(WHOLE.benchmark, budget=items, score=right.get, targets=[name], folder=folder, **how)


def test_targets_of_another_machine_join_with_their_answers(tmp_path):
    for folder in ("one", "two"):
        ran(tmp_path / folder, "step-1", 0)
    ran(tmp_path / "one", "step-2", 1)
    ran(tmp_path / "two", "step-3", 2)
    apart = Evaluation.open(tmp_path / "two").estimate(warn=False)["step-3"]
    assert unite_runs(tmp_path / "one", [tmp_path / "two"]) == {"step-3": 20}
    joined = Evaluation.open(tmp_path / "one")
    assert joined.targets == ("step-1", "step-2", "step-3")
    assert joined.estimate(warn=False)["step-3"].score == apart.score
    assert unite_runs(tmp_path / "one", [tmp_path / "two"]) == {}, "again, nothing is new"


def test_other_answers_and_other_benchmarks_are_refused_before_anything_is_written(tmp_path):
    ran(tmp_path / "one", "step-1", 0)
    before = (tmp_path / "one" / "answers.jsonl").read_bytes()
    ran(tmp_path / "two", "step-1", 3)
    with pytest.raises(RunError, match="'step-1'"):
        unite_runs(tmp_path / "one", [tmp_path / "two"])
    ran(tmp_path / "seed", "step-2", 1, seed=5)
    with pytest.raises(RunError, match=r"seed 5, not 0"):
        unite_runs(tmp_path / "one", [tmp_path / "seed"])
    assert (tmp_path / "one" / "answers.jsonl").read_bytes() == before


def test_a_run_that_is_refused_takes_no_items_in(tmp_path):
    items = list(WHOLE.item_ids)
    first = Benchmark(WHOLE.items.iloc[:60])
    right = dict(zip(items, WHOLE.values[0], strict=True))
    run(first, budget=20, score=right.get, targets=["m/x"], folder=tmp_path / "run")
    files = {path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    with pytest.raises(RunError, check=lambda error: error.kind == "taken"):
        run(WHOLE.benchmark, budget=20, score=right.get, targets=["m:x"], folder=tmp_path / "run")
    now = {path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    assert {path: now[path] for path in files} == files
    assert not set(now) - set(files) - {tmp_path / "run" / "run.lock"}
    run(WHOLE.benchmark, budget=20, score=right.get, targets=["m/x"], folder=tmp_path / "run")
    assert Evaluation.open(tmp_path / "run").estimate(warn=False)["m/x"].items_run == 27
