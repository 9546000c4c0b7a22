"""More items for a run: answers and their order stay, and all answers are a sample of all items."""

import sys

import numpy as np
import pandas as pd
import pytest

from fewbench import Benchmark
from fewbench.algorithms.sampling import permanent_order
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.extending import _drawn, extend
from fewbench.methods.record import Drawing
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.scores import save_scores
from fewbench.testing import simulate

NAME = "model-00"


@pytest.fixture(scope="module")
def table():
    return simulate(30, 400, seed=3, n_tasks=4)


def parts(table, seed=0):
    """Return the items of all tasks but the last, and a few of the last one."""
    last = np.flatnonzero(table.task_of == len(table.tasks) - 1)
    later = np.random.default_rng(seed).permutation(last)[: len(last) - 10]
    return np.setdiff1d(np.arange(table.n_items), later)


def finished(evaluation, table):
    right = dict(zip(table.item_ids, table.values[0], strict=True))
    while asked := evaluation.ask():
        for name, items in asked.items():
            evaluation.tell(name, {item: right[item] for item in items})
    return evaluation


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def begun(table, folder, old, n_sources=0, method="fewbench", items=40):
    sources = table.take(items=old).benchmark
    path = None
    if n_sources:
        sources = table.take(models=np.arange(1, 1 + n_sources), items=old)
        path = save_scores(sources, folder / "scores.parquet")
    evaluation = Evaluation(sources, method, items, [NAME])
    evaluation.save(folder / "run", path)
    return finished(evaluation, table)


@pytest.mark.parametrize(("n_sources", "method"), [(0, "fewbench"), (6, "fewbench"), (6, "random"),
                                                   (29, "fewbench"), (6, "aipw")])  # fmt: skip
def test_answers_stay_and_the_whole_is_estimated(table, tmp_path, n_sources, method):
    old = parts(table)
    before = begun(table, tmp_path, old, n_sources, method)
    ran = before.scores.item_ids[before.record.answered(NAME)].tolist()
    done = extend(tmp_path / "run", table.benchmark)
    assert done.items == 400 - len(old)
    evaluation = Evaluation.open(tmp_path / "run")
    assert set(ran) <= set(evaluation.scores.item_ids[evaluation.record.answered(NAME)])
    asked = evaluation.ask()[NAME]
    assert len(asked) == done.asked[NAME]
    assert not set(asked) & set(ran), "nothing is run twice"
    finished(evaluation, table)
    estimate = Evaluation.open(tmp_path / "run").estimate(warn=False)[NAME]
    assert (estimate.items_total, estimate.items_run) == (400, 40 + len(asked))
    assert abs(estimate.score - table.full_scores()[0]) < 0.15
    assert estimate.interval_kind in ("exact", "sampled")


def test_an_extended_sample_is_unbiased(tmp_path):
    """With a last task that is far harder than the others."""
    errors, covered = [], []
    for seed in range(10):
        table = simulate(1, 300, seed=seed, n_tasks=3)
        values = table.values.copy()
        last = table.task_of == len(table.tasks) - 1
        values[0, last] = np.random.default_rng(seed).random(last.sum()) < 0.1
        table = table.changed(values=values)
        folder = tmp_path / str(seed)
        folder.mkdir()
        begun(table, folder, parts(table, seed), items=45)
        extend(folder / "run", table.benchmark)
        evaluation = finished(Evaluation.open(folder / "run"), table)
        estimate = evaluation.estimate(warn=False)[NAME]
        truth = table.full_scores()[0]
        errors.append(estimate.score - truth)
        covered.append(estimate.interval.low <= truth <= estimate.interval.high)
    assert abs(np.mean(errors)) < 2.5 * np.std(errors) / np.sqrt(len(errors))
    assert np.mean(covered) > 0.6


def test_the_order_of_old_items_stays(table):
    old = parts(table)
    tasks, cohorts = table.task_of, np.ones(400, dtype=int)
    cohorts[old] = 0
    first = old[permanent_order(tasks[old], 5)]
    whole = permanent_order(tasks, 5, cohorts)
    assert whole[np.isin(whole, old)].tolist() == first.tolist()
    share = np.isin(whole[:100], old).mean()
    assert share == pytest.approx(len(old) / 400, abs=0.02), "every beginning has its part of each"


def test_a_target_that_joins_later_runs_the_items_of_both(table, tmp_path):
    old = parts(table)
    begun(table, tmp_path, old)
    n_new = extend(tmp_path / "run", table.benchmark).asked[NAME]
    evaluation = finished(Evaluation.open(tmp_path / "run"), table)
    evaluation.follow("second", NAME)
    right = dict(zip(table.item_ids, table.values[1], strict=True))
    while asked := evaluation.ask():
        evaluation.tell("second", {item: right[item] for item in asked["second"]})
    again = Evaluation.open(tmp_path / "run")
    items = [set(again.record.answered(name).tolist()) for name in again.targets]
    assert items[0] == items[1]
    assert len(items[0]) == 40 + n_new
    ours, theirs = (each.estimate(warn=False)["second"] for each in (again, evaluation))
    assert ours.score == pytest.approx(theirs.score)
    assert ours.interval_kind != "held-out"


def test_what_cannot_be_extended_is_refused_before_anything_is_written(table, tmp_path):
    old = parts(table)
    begun(table, tmp_path, old, 29, "greedy-ridge")
    before = {
        path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()
    }
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "unsupported"):
        extend(tmp_path / "run", table.benchmark)
    with pytest.raises(EvaluationError, match=f"has all {len(old)} items already"):
        extend(tmp_path / "run", Benchmark(table.items.iloc[old]))
    after = {
        path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()
    }
    assert {n: b for n, b in after.items() if n in before} == before


@pytest.mark.parametrize("n_sources", [0, 6])
def test_scores_given_after_it_may_have_lost_items(table, tmp_path, n_sources):
    """What is gone leaves the score; scores from before the extension lose none of its items."""
    old = parts(table)
    begun(table, tmp_path, old, n_sources)
    extend(tmp_path / "run", table.benchmark)
    before = Evaluation.open(
        tmp_path / "run", table.take(models=range(1, 1 + n_sources), items=old)
    )
    assert before.scores.n_items == 400
    assert not before.notes
    for items in (old[5:], np.arange(5, 400)):
        lost = table.take(models=range(1, 1 + n_sources), items=items)
        now = Evaluation.open(tmp_path / "run", lost)
        assert now.scores.n_items == 395
        assert "5 items left the scores" in " ".join(now.notes)


def test_scores_of_a_different_benchmark_are_refused_after_it(table, tmp_path):
    begun(table, tmp_path, parts(table))
    names = {name: f"other-{name}" for name in table.item_ids}
    other = table.changed(items=table.items.rename(index=names))
    for n_items in (len(parts(table)), 400):
        with pytest.raises(EvaluationError, match=f"none of the {n_items} items"):
            Evaluation.open(tmp_path / "run", other)
        if n_items < 400:
            extend(tmp_path / "run", table.benchmark)


def test_two_extensions_at_once_are_one(table, tmp_path, monkeypatch):
    """A folder that another process extends before the lock is taken is not extended again."""
    begun(table, tmp_path, parts(table))
    folder, read = tmp_path / "run", Evaluation.open

    def slowly(place, *given, **how):
        evaluation = read(place, *given, **how)
        monkeypatch.setattr(Evaluation, "open", read)
        extend(folder, table.benchmark)
        return evaluation

    monkeypatch.setattr(Evaluation, "open", slowly)
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "changed"):
        extend(folder, table.benchmark)
    assert Evaluation.open(folder).scores.n_items == 400


def test_items_that_the_method_could_not_estimate_with_are_refused_before_they_are_taken(tmp_path):
    whole = simulate(25, 25, 1, seed=1)
    table, items = whole.take(items=range(5)), whole.benchmark.items
    evaluation = Evaluation(table, "fewbench-static", 5, ["new"])
    evaluation.save(tmp_path / "run", save_scores(table, tmp_path / "scores.parquet"))
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"], 1.0))
    before = evaluation.estimate()
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "unsupported"):
        extend(tmp_path / "run", Benchmark(items))
    assert Evaluation.open(tmp_path / "run").estimate() == before
    extend(tmp_path / "run", Benchmark(items.iloc[:6]))
    assert Evaluation.open(tmp_path / "run").estimate()["new"].items_total == 6


ANSWER_ALL = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"item": json.loads(line)["item"], "score": 1}), flush=True)
"""


@pytest.mark.parametrize("named", ["before", "more", "whole"])
@pytest.mark.parametrize("tasks", [1, 2])
def test_a_program_goes_on_with_whichever_file_of_an_extended_run(tmp_path, named, tasks):
    rows = [{"id": f"q{n:02}", "task": f"task-{n // 60 % tasks}"} for n in range(90)]
    whole = pd.DataFrame(rows).set_index("id")
    files = {"before": whole[:60], "more": whole[60:], "whole": whole}

    evaluation = Evaluation(Benchmark(files["before"]), "fewbench", 20, ["t"])
    evaluation.save(tmp_path)
    evaluation.tell("t", dict.fromkeys(evaluation.ask()["t"][:12], 1.0))
    extend(tmp_path, Benchmark(files["more"]))
    runner = CommandRunner([sys.executable, "-S", "-c", ANSWER_ALL], timeout=20)
    given = Benchmark(files[named])
    run_with(runner, given, "fewbench", 20, folder=tmp_path, targets=["t"])
    answered = Evaluation.open(tmp_path).record.answered("t")
    assert len(answered) == 30
    assert (answered >= 60).sum() == 10


def test_chances_count_all_earlier_phases(table):
    """An item of a later phase could have been drawn before, at the mean chance of that phase."""
    old = np.arange(100)
    evaluation = Evaluation(table.take(items=old).benchmark, "fewbench", 40, [NAME])
    asked = evaluation.record.asked(NAME)
    phases = [(asked, {90: 0.2, 91: 0.4}), (np.append(asked, [90, 91]), {92: 0.5})]
    drawings = []
    for before, drawn in phases:
        chances = np.full(100, np.nan)
        chances[[*drawn]] = [*drawn.values()]
        drawings.append(Drawing(before, chances))
    evaluation._choosing.session.drawn = lambda _: tuple(drawings)
    evaluation.ask()
    found = _drawn(evaluation, None, table.take(items=np.arange(200)), np.arange(100, 200))
    after = found[NAME][1].chances
    of_first, of_second = 2 / (100 - len(asked)), 1 / (98 - len(asked))
    assert after[92] == pytest.approx(1 - (1 - of_first) * (1 - 0.5))
    assert after[90] == pytest.approx(1 - (1 - 0.2) * (1 - of_second))
    assert after[91] == pytest.approx(1 - (1 - 0.4) * (1 - of_second))
    assert np.isnan(after[:90]).all()
