"""plan, compare, audit and pack where no models ran the whole benchmark, or too few."""

import json

import numpy as np
import pandas as pd
import pytest

from fewbench.checks import audit, drop
from fewbench.errors import ScoresError, StudyError
from fewbench.evaluation import Evaluation
from fewbench.packs import pack
from fewbench.scores import Benchmark, Scores, from_arrays
from fewbench.scores.roles import as_scores
from fewbench.study import Plan, compare, plan
from fewbench.testing import simulate
from fewbench.uncertainty.sampling import exact_interval

N = 400
LEFT_OUT = "30 of 54 models ran less than half of the items and are left out: "
ITEMS = Benchmark(
    pd.DataFrame({"task": ["x", "y"] * (N // 2)}, index=[f"q{at}" for at in range(N)])
)


def table(sparse: int, whole: int, n_items: int = N, run: int = 100) -> Scores:
    """Return models that ran some items each, then models that ran all."""
    known = simulate(sparse + whole, n_items, 3, seed=1)
    cells = known.values.copy()
    for row in range(sparse):
        cells[row, np.random.default_rng(row).permutation(n_items)[run:]] = np.nan
    return from_arrays(
        cells,
        models=list(known.model_ids),
        items=list(known.item_ids),
        tasks=list(known.items["task"]),
    )


@pytest.fixture(scope="module")
def sparse():
    return table(30, 0)


@pytest.fixture(scope="module")
def mixed():
    return table(30, 24)


def test_of_a_benchmark_alone_the_interval_is_exact_at_worst():
    found = plan(ITEMS, half_width=0.05)
    assert isinstance(found, Plan)
    n = found.expected.items

    def half(n):
        low, high = exact_interval(n // 2, n, N, 0.9)
        return (high - low) / 2

    assert half(n) <= 0.0525
    assert half(n - 20) > 0.05
    assert max(one.items for one in found.scores) == n
    assert found.answer.startswith(f"Run {n} items of {N}: half width 5.0 pp")
    by_score = [one.items for one in found.scores]
    assert by_score == by_score[::-1]  # a width that is the wanted one up to rounding is enough
    assert found.to_frame().index.tolist() == [at / 10 for at in range(1, 10)]
    assert json.loads(found.to_json())["expected"]["items"] == n


def test_a_budget_gives_the_half_width_to_expect():
    found = plan(ITEMS, budget=100)
    assert {one.items for one in found.scores} == {100}
    low, high = exact_interval(50, 100, N, 0.9)
    assert found.expected.half_width == pytest.approx((high - low) / 2)


def test_of_few_items_all_are_run():
    found = plan(Benchmark(ITEMS.items.iloc[:5]), half_width=0.02)
    assert found.answer.startswith("Run all 5 items: no part of them is enough")
    assert len(found.notes) == 1  # when repeats pay


def test_what_models_ran_of_the_items_makes_the_plan_shorter(sparse):
    nothing, some = plan(ITEMS, half_width=0.05), plan(sparse, half_width=0.05)
    assert max(one.items for one in some.scores) < nothing.expected.items
    assert "what 30 models ran" in str(some).lower()
    assert "20 full runs made intervals 0.41 to 0.75 times as wide" in " ".join(some.notes)


def test_the_forecast_is_what_runs_have(sparse):
    new = simulate(31, N, 3, seed=1)
    expected = plan(sparse, budget=100).to_frame()["half_width"]
    ratios = []
    for seed in range(8):
        evaluation = Evaluation(sparse, "fewbench", 100, seed=seed, targets=["new"])
        known = dict(zip(new.item_ids, new.values[seed], strict=True))
        while asked := evaluation.ask():
            evaluation.tell("new", {item: known[item] for item in asked["new"]})
        found = evaluation.estimate()["new"]
        half = (found.interval.high - found.interval.low) / 2
        ratios.append(half / np.interp(found.score, expected.index, expected))
    assert np.mean(ratios) == pytest.approx(1, abs=0.12)


def test_differences_on_exactly_these_items_need_models_that_ran_most_items(sparse):
    assert [one.share for one in plan(sparse, difference=0.25).apart] == [0.3, 0.5]
    with pytest.raises(StudyError, match="no models that ran all items"):
        plan(sparse, difference=0.05, fixed_items=True)


def test_plan_backtests_on_whole_models_where_they_are_enough(mixed):
    made = plan(mixed, budget=20, methods="random-ridge", expect="like", repeats=3)
    assert isinstance(made, Plan)
    assert made.n_models == 24
    assert made.notes[0].startswith(LEFT_OUT)
    assert made.notes[0].endswith(" of 400 items) and 27 more")


def test_compare_uses_whole_models(mixed):
    found = compare(mixed, ["random-ridge"], [20], repeats=2)
    assert any(warning.startswith(LEFT_OUT) for warning in found.warnings)
    assert set(found.cells["method"]) == {"random", "random-ridge"}


def test_audit_uses_whole_models(mixed):
    found = audit(mixed)
    assert found.table["fingerprint"] == mixed.fingerprint
    assert (found.table["models"], found.table["left_out"], found.table["known"]) == (54, 30, 24)
    assert LEFT_OUT in str(found)
    assert len(found.of_kind("left-out").table.rows) == 30
    assert found.of_kind("left-out").what.startswith("30 of 54 models")


def test_where_no_model_ran_nearly_all_items_the_plan_is_of_a_random_sample():
    holes = table(40, 0, run=260)
    found = plan(holes, half_width=0.05)
    assert found.expected == plan(ITEMS, half_width=0.05).expected
    assert found.notes[0].startswith("0 of 40 models ran 95% of the items or more: too few to")
    assert found.facts["fingerprint"] == holes.fingerprint
    assert plan(holes, difference=0.05).apart == plan(ITEMS, difference=0.05).apart
    checked = audit(holes)
    assert checked.page("t.parquet").next == ["fewbench plan t.parquet --budget 100"]
    assert "--drop incomplete" not in checked.of_kind("missing").advice
    with pytest.raises(ScoresError, check=lambda error: error.kind == "too-few") as raised:
        drop(holes, checked, ["incomplete"])
    assert raised.value.hint.startswith("every model lacks more than 5% of the items: run what")


def test_a_pack_is_made_of_whole_models(mixed):
    made = pack(mixed, "greedy-ridge", 20, backtest=False)
    assert LEFT_OUT in str(made.parts)


@pytest.mark.parametrize(
    ("run", "least"),
    [
        (audit, "audit needs 1 model that"),
        (lambda scores: compare(scores, ["random-ridge"], [20]), "compare needs 3 models that"),
        (lambda scores: pack(scores, budget=20), "a pack needs 2 models that"),
    ],
)
def test_without_whole_models_the_error_says_how_many_there_are(run, least, sparse):
    for scores in (as_scores(ITEMS), sparse):
        with pytest.raises(ScoresError, match=f"{least} ran half of the 400 items or more"):
            run(scores)
