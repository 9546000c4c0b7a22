"""plan: the fewest items for what is wanted, by exact errors of random sampling; honest limits."""

import time
from dataclasses import replace

import numpy as np
import pytest

import fewbench
from fewbench import plan, versus
from fewbench._seeds import child_seed
from fewbench.errors import FewbenchError
from fewbench.evaluation.auto import choose_method
from fewbench.methods import find_method
from fewbench.methods.adaptive.fewbench import FewbenchSession
from fewbench.scores import Scale, from_arrays
from fewbench.show.page import as_text
from fewbench.study import SplitSettings, make_split
from fewbench.study.backtest import NEAR, Backtest
from fewbench.study.cell import Cell, run_cell
from fewbench.study.inference import expected_random_mae
from fewbench.study.plan import CHOOSING, backtests_by_relation
from fewbench.study.splits import Split
from fewbench.testing import simulate
from fewbench.uncertainty.held_out import measure


def graded(n_models=60, n_items=120, seed=0):
    """Models of different ability, items of different difficulty, and little chance: a few items
    tell the ability."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=n_models), rng.normal(size=n_items)
    right = ability[:, None] + 0.3 * rng.normal(size=(n_models, n_items)) > difficulty
    return replace(simulate(n_models, n_items, seed=seed), values=right.astype(float))


TABLE = graded()
QUICK = {"methods": ["greedy-ridge"], "expect": "like", "repeats": 3}


def nothing_in_common(n_models=48, n_items=300, seed=0):
    """Models differ in ability, but their answers to an item say nothing of other items."""
    rng = np.random.default_rng(seed)
    answers = rng.random((n_models, n_items)) < rng.uniform(0.1, 0.9, n_models)[:, None]
    return from_arrays(answers, models=[f"m{i}" for i in range(n_models)])


@pytest.fixture(scope="module")
def by_error():
    return plan(TABLE, error=0.05, **QUICK)


def exact_error(scores, n, seed=0):
    """What plain random sampling is expected to err by, over the targets that were judged."""
    repeats = range(CHOOSING, CHOOSING + QUICK["repeats"])
    splits = [make_split(scores, SplitSettings("random"), seed, repeat) for repeat in repeats]
    return np.mean([expected_random_mae(scores, n, split.targets).mean() for split in splits])


def test_the_answer_is_the_least_number_of_items_with_that_error(by_error):
    (one,) = by_error.forecasts
    assert one.method == "greedy-ridge"
    assert one.is_better
    assert one.error <= 0.05 < one.error * 1.1
    assert one.error_low < one.error < one.error_high
    assert one.items_low <= one.items <= one.items_high
    assert one.ratio_high < 1
    assert by_error.answer.startswith(f"Run {one.items} items with greedy-ridge: expected error ")


def test_random_sampling_s_need_is_exact(by_error):
    (one,) = by_error.forecasts
    assert one.random_items > one.items
    assert exact_error(TABLE, one.random_items) <= one.error * (1 + 1e-9)
    assert exact_error(TABLE, one.random_items - 1) > one.error
    assert one.random_error == pytest.approx(exact_error(TABLE, one.items))


def test_where_nothing_is_to_be_learned_random_sampling_is_planned():
    made = plan(nothing_in_common(), error=0.04, repeats=3, expect="like", methods="greedy-ridge")
    (one,) = made.forecasts
    assert one.method == "random"
    assert not one.is_better
    assert one.items == one.random_items
    assert one.error == one.random_error <= 0.04
    assert one.breakeven is None
    assert made.learning is None
    assert any("nothing better than random sampling" in note for note in made.notes)


def test_the_first_method_is_kept_unless_another_is_clearly_better():
    """greedy-ridge and a close relative cannot be told apart: the order decides."""
    pair = ["greedy+answers+ridge(alpha=2)", "greedy-ridge"]
    made = plan(TABLE, budget=12, methods=pair, expect="like", repeats=3)
    assert made.forecasts[0].method == pair[0]
    made = plan(TABLE, budget=12, methods=["random-stratified", "greedy-ridge"], expect="like",
                repeats=3)  # fmt: skip
    assert made.forecasts[0].method == "greedy-ridge"
    assert "random-stratified has not" in made.forecasts[0].reason


def test_an_error_that_no_interval_shows_is_said():
    """Where stronger models get all right, one item has no error, and no interval shows that."""
    values = np.vstack([graded(20, 60, seed=1).values, np.ones((10, 60))])
    table = from_arrays(values, models=[f"m{at}" for at in range(30)])
    made = plan(table, error=0.01, expect="stronger", methods="greedy-ridge", repeats=3)
    (one,) = made.forecasts
    assert (one.items, one.error) == (1, 0)
    assert "too wide to show an error that small: plan with a half width" in made.answer
    assert one.reason == "each held-out target has one score on all its items"


def test_models_that_guess_are_named():
    guesses = np.random.default_rng(0).random((40, 200)) < 0.5
    made = plan(
        from_arrays(guesses, models=[f"m{i}" for i in range(40)]),
        budget=30, methods=["greedy-ridge"], repeats=3, expect="like",
    )  # fmt: skip
    assert any("hardly differ in ability" in note for note in made.notes)


def test_few_models_are_named():
    made = plan(
        TABLE.take(models=range(0, 24, 2)), budget=20, repeats=3, expect="like", methods="random"
    )
    assert any("12 models are few" in note for note in made.notes)


def test_an_error_that_no_part_of_the_items_reaches():
    made = plan(TABLE, error=0.0005, **QUICK)
    (one,) = made.forecasts
    assert one.items == 120
    assert one.error == 0
    assert made.answer.startswith("Run all 120 items")
    assert made.learning is None


def test_the_error_at_a_number_of_items_is_the_same_everywhere():
    made = plan(TABLE, half_width=0.05, **QUICK)
    last = made.learning.errors[-1]
    judged = made.curves[made.curves["backtest"] == "judging"].set_index(["method", "items"])
    one = judged.loc[(made.learning.method, made.learning.items)]
    assert one["error"] == pytest.approx(last.value * made.scale.span)


def test_a_wanted_width_is_that_of_the_intervals():
    made = plan(TABLE, half_width=0.06, methods=["greedy-ridge"], expect="like", repeats=3)
    (one,) = made.forecasts
    assert one.half_width <= 0.06 < one.half_width * 1.2
    assert one.coverage > 0.7
    assert one.random_items >= one.items
    assert f"half width {100 * one.half_width:.1f} pp" in made.answer


def test_a_wanted_difference_is_distinguished():
    near = plan(TABLE, difference=0.1, power=0.95, fixed_items=True, **QUICK)
    (one,) = near.forecasts
    assert one.margin <= 0.1
    assert "95% of pairs that differ by 10 pp are distinguished" in near.answer
    assert any("normal" in note for note in near.notes)


def test_a_difference_that_all_items_do_not_show_needs_more_questions():
    """The share of pairs told apart, (t + z) sqrt(S^2 / N), is that of a simulation."""
    table = nothing_in_common(n_items=200)
    made = plan(table, difference=0.05, methods=["random"], expect="like", repeats=3)
    (one,) = made.forecasts
    assert (one.items, one.margin) == (200, one.margin_of_all)
    rng, half = np.random.default_rng(0), one.margin_of_all / 2
    right = rng.random((2, 4000, 200)) < np.array([0.5 + half, 0.5 - half])[:, None, None]
    apart = right[0] * 1.0 - right[1]
    error = np.sqrt((apart.var(axis=1) * 200 + 2) / 201 / 200)
    assert np.mean(apart.mean(axis=1) > 1.6525 * error) == pytest.approx(0.8, abs=0.06)
    assert made.questions_needed == pytest.approx(200 * (one.margin_of_all / 0.05) ** 2, abs=1)
    assert made.answer.startswith(
        "Even all 200 items do not distinguish models that differ by 5 pp"
    )


def test_random_sampling_tells_differences_as_a_simulation_does():
    """The margin is 2.49 standard errors of the difference of two targets on the same items."""
    how = {"methods": ["random"], "expect": "like", "repeats": 3, "fixed_items": True}
    made = plan(nothing_in_common(), difference=0.15, **how)
    n = made.forecasts[0].items
    rng = np.random.default_rng(1)
    p = 0.5
    pairs = rng.random((2, 4000, n)) < p
    error = (pairs[0].mean(axis=1) - pairs[1].mean(axis=1)).std() * np.sqrt((300 - n) / 299)
    assert 2.486 * error == pytest.approx(0.15, rel=0.2)  # the models are not all at one half


def on_new_models(wide, n_old, method, n, seeds):
    """Estimates, truth and half widths of differences of models that were not planned with."""
    new = np.arange(n_old, wide.n_models)
    for seed in range(seeds):
        split = Split(np.arange(n_old), new[seed % 2 :: 2])
        cell = Cell(method, find_method(method), n, "given", split, seed, 0, 0.9, False, None, True)
        yield run_cell(wide, cell, "")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "difference"), [("greedy-ridge", 0.2), ("random", 0.1)])
def test_the_promised_share_of_differences_is_told(method, difference):
    """With the planned items, so many intervals of differences between new models exclude 0."""
    wide = simulate(160, 400, seed=6)
    wide = replace(wide, models=wide.models.drop(columns="family"))
    how = {"methods": [method], "expect": "like", "repeats": 5, "fixed_items": True}
    one = plan(wide.take(models=range(100)), difference=difference, power=0.8, **how).forecasts[0]
    assert one.method == method
    assert one.margin == pytest.approx(difference, rel=0.1)
    told = []
    for found in on_new_models(wide, 100, method, one.items, 4):
        truth, estimate = np.array(found.truth), np.array(found.estimate)
        near = np.abs(truth[:, None] - truth - difference) < difference / 5
        told += list((estimate[:, None] - estimate > found.pair_halves())[near])
    assert len(told) >= 150
    assert 0.72 < np.mean(told) < 0.95


@pytest.mark.parametrize("method", ["greedy-ridge", "random", "aipw"])
def test_the_half_width_of_a_difference_is_that_of_versus(method):
    table = simulate(44, 120, seed=3)
    found = next(on_new_models(table, 40, method, 20, 1))
    old, names = table.take(models=range(40)), list(table.model_ids[40::2])
    seed = child_seed(0, 3, 0)
    evaluation = fewbench.Evaluation(old, method, 20, names, seed)
    while asked := evaluation.ask():
        for name, items in asked.items():
            row = table.cells[table.model_positions([name])[0]]
            at = [list(table.item_ids).index(item) for item in items]
            evaluation.tell(name, dict(zip(items, row[at].tolist(), strict=True)))
    verdict = versus((evaluation, names[0]), (evaluation, names[1]), fixed_items=True)
    half = (verdict.interval.high - verdict.interval.low) / 2
    assert found.pair_halves()[0, 1] == pytest.approx(half, rel=1e-6)


def test_new_families_stronger_and_weaker_models_are_planned_for_by_themselves():
    made = plan(TABLE, budget=30, methods=["random"], repeats=3)
    assert [one.target for one in made.forecasts] == [
        "like",
        "family",
        "stronger",
        "weaker",
    ]
    without = replace(TABLE, models=TABLE.models.drop(columns="family"))
    assert len(plan(without, budget=30, methods=["random"], repeats=3).forecasts) == 3
    with pytest.raises(FewbenchError, match="family"):
        plan(without, budget=30, expect="family")
    one = replace(TABLE, models=TABLE.models.assign(family="all"))
    made = plan(one, budget=30, methods=["random"], repeats=3)
    assert any("of a new family" in note for note in made.notes)


def test_costs_are_those_of_the_chosen_items_and_pay_after_enough_models():
    cheap = dict.fromkeys(TABLE.item_ids, 1.0)
    made = plan(TABLE, budget=20, **QUICK).forecasts[0]
    assert made.cost == 20
    assert made.full_cost == 120
    assert made.random_cost == made.random_items
    assert made.breakeven == -(-60 * 120 // (120 - 20))
    assert made.breakeven_random == -(-60 * 120 // (made.random_items - 20))
    doubled = plan(TABLE, budget=20, costs={k: 2 * v for k, v in cheap.items()}, **QUICK)
    assert doubled.forecasts[0].cost == 40
    assert doubled.forecasts[0].breakeven == made.breakeven
    assert "pays after 72 new models" in " ".join(as_text(doubled.page(), "cost").split())
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "range"):
        plan(TABLE, budget=20, price=0.0)
    prices = np.where(np.arange(120) < 60, 1.0, 9.0)
    priced = replace(TABLE, items=TABLE.items.assign(tokens=prices))
    one = plan(priced, budget=20, costs="tokens", **QUICK).forecasts[0]
    assert 20 < one.cost < 180
    assert one.full_cost == prices.sum()


def test_a_cost_buys_as_many_items_as_it_does_at_their_mean_cost():
    prices = np.random.default_rng(0).lognormal(1, 0.8, 120)
    priced = replace(TABLE, items=TABLE.items.assign(cost=prices))
    settings = {"repeats": 3, "expect": "like"}
    made = plan(priced.take(models=range(0, 60, 4)), cost="75 $", **settings)
    (forecast,) = made.forecasts
    assert forecast.items == int(75 / prices.mean())
    assert abs(forecast.cost - forecast.items * prices.mean()) < 12  # a sample, as models are few
    text = " ".join(as_text(made.page(), "cost").split())
    assert "Cost $ Cost of a full run" in text
    assert f"{forecast.items} items with fewbench is the mean over the held-out models" in text
    assert "--cost '75 $' -o DIR" in text
    by_itself = plan(priced.benchmark, budget=forecast.items)
    assert by_itself.expected.cost == pytest.approx(forecast.items * prices.mean())
    assert plan(priced.benchmark, cost=75).expected.items == forecast.items


def test_the_learning_curve_says_whether_more_sources_help(by_error):
    learning = by_error.learning
    assert learning.sources == (5, 20, 45)
    assert learning.errors[0].value > learning.errors[-1].value
    assert "source models" in learning.says
    one = by_error.forecasts[0]
    assert one.items / NEAR <= learning.items <= one.items * NEAR
    assert learning.items in by_error.curves["items"].to_numpy()


def test_the_scale_of_the_scores(by_error):
    percent = replace(TABLE, scale=Scale(0, 100))
    made = plan(percent, error=5, **QUICK)
    one, same = made.forecasts[0], by_error.forecasts[0]
    assert one.items == same.items
    assert one.error == pytest.approx(100 * same.error)
    assert one.ratio == pytest.approx(same.ratio)
    assert made.curves["error"].max() == pytest.approx(100 * by_error.curves["error"].max())


def test_the_same_from_the_cache(by_error, tmp_path):
    shown = []
    first = plan(TABLE, error=0.05, cache=tmp_path / "c", **QUICK,
                 progress=lambda done, total: shown.append((done, total)))  # fmt: skip
    assert first.to_json() == by_error.to_json()
    assert plan(TABLE, error=0.05, cache=tmp_path / "c", **QUICK).to_json() == by_error.to_json()
    assert all(done <= total for done, total in shown)
    assert shown[-1][0] == shown[-1][1]


def test_a_first_plan_comes_before_the_answer_and_does_not_change_it(by_error):
    seen, done = [], []
    made = plan(TABLE, error=0.05, **QUICK, on_first=lambda one: seen.append((one, len(done))),
                progress=lambda *counts: done.append(counts))  # fmt: skip
    assert made.to_json() == by_error.to_json()
    ((first, at),) = seen
    assert 0 < at < len(done)
    assert first.forecasts[0].method == "greedy-ridge"
    assert first.forecasts[0].half_width > 0
    assert first.learning is None


@pytest.mark.slow
def test_the_first_plan_of_a_large_table_takes_less_than_half_a_minute():
    """447 models on 1,650 items, for models like the sources."""

    class Seen(Exception):
        pass

    def stop(first):
        raise Seen(first)

    table = simulate(447, 1650, seed=0)
    table = replace(table, models=table.models.drop(columns="family"))
    started = time.process_time()
    with pytest.raises(Seen) as seen:
        plan(table, error=0.02, on_first=stop)
    assert time.process_time() - started < 30
    (like,) = seen.value.args[0].forecasts
    assert like.items < like.random_items
    assert seen.value.args[0].answer.startswith(f"Run {like.items} items with {like.method}")


def test_a_method_that_fails_everywhere_leaves_the_others():
    plain = replace(TABLE, items=TABLE.items.drop(columns="text"))
    made = plan(plain, budget=20, methods=["bm25-sim", "greedy-ridge"], expect="like",
                repeats=3)  # fmt: skip
    assert made.forecasts[0].method == "greedy-ridge"
    assert any("bm25-sim failed" in note for note in made.notes)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "nothing to plan for"),
        ({"error": 0.1, "budget": 5}, "2 goals are given"),
        ({"error": 0}, "between 0 and 1"),
        ({"error": float("nan")}, "between 0 and 1"),
        ({"half_width": 2}, "between 0 and 1"),
        ({"budget": 0}, "budget of 0"),
        ({"budget": 2.5}, "whole number"),
        ({"budget": 120}, "needs no plan"),
        ({"error": 0.1, "expect": "lik"}, "did you mean like"),
        ({"error": 0.1, "methods": "greedy-rigde"}, "did you mean greedy-ridge"),
        ({"error": 0.1, "repeats": 2}, "repeats must be 3 or more"),
        ({"error": 0.1, "level": 1}, "level"),
        ({"error": 0.1, "costs": "tokens"}, "no column 'tokens'"),
        ({"error": 0.1, "costs": {"item-0": 1}}, "119 items without a cost"),
    ],
)
def test_mistakes(asked, said):
    with pytest.raises(FewbenchError) as raised:
        plan(TABLE, **asked)
    assert said in str(raised.value)


def test_too_few_models_to_divide():
    found = plan(TABLE.take(models=[0, 1, 2]), error=0.1)
    assert found.forecasts == ()
    assert found.expected.error <= 0.1


def test_where_nothing_is_clear_the_plan_is_what_a_run_does_by_default():
    """A few targets show nothing; with few source models, runs use fewbench."""
    few = TABLE.take(models=range(12))
    settings = {"budget": 30, "repeats": 3, "expect": "like"}
    (forecast,) = plan(few, **settings).forecasts
    assert (forecast.method, forecast.is_better) == ("fewbench", False)
    assert forecast.ratio < 1 < forecast.ratio_high
    assert "by default, runs use fewbench" in forecast.reason
    (forecast,) = plan(few, methods="fewbench", **settings).forecasts
    assert forecast.method == "random"


def test_a_plan_and_a_run_take_one_method():
    """Also where the few splits of the plan show nothing better than random sampling."""
    table = simulate(44, 60, seed=4)
    (forecast,) = plan(table, budget=12, expect="like", repeats=3).forecasts
    assert forecast.method == choose_method(table, 12).method == "aipw"


def test_the_parts_on_which_errors_are_measured_run_once(monkeypatch):
    """They show the errors for new families, too."""
    started = []
    start = FewbenchSession.__init__
    monkeypatch.setattr(
        FewbenchSession,
        "__init__",
        lambda self, method, scores, budget, seed, targets: (
            started.extend(targets),
            start(self, method, scores, budget, seed, targets),
        )[1],
    )
    judging, _ = backtests_by_relation(TABLE, "family", range(5), 0, 0.9, by_folds=True)
    held = measure(find_method("fewbench"), TABLE, 20, 0, [20], divisions=1, shares_fits=True)
    n_started = len(started)
    cells = judging["family"].cells(
        ["fewbench"], [20], intervals=True, held={("fewbench", 20): held}
    )
    errors = np.concatenate(
        [np.subtract(one.truth, one.estimate) for one in (run_cell(TABLE, c, "") for c in cells)]
    )
    assert len(started) == n_started
    assert errors == pytest.approx(held.errors[:, 0, 0], abs=1e-6)


def test_one_run_of_a_method_predicts_at_each_budget_as_runs_of_its_own(monkeypatch):
    backtest = Backtest(TABLE, SplitSettings("random", most=4), range(1), 0)
    cells = backtest.cells(["fewbench"], [80, 70])
    started = []
    start = FewbenchSession.__init__
    monkeypatch.setattr(
        FewbenchSession, "__init__", lambda self, *how: started.append(start(self, *how))
    )
    together = [run_cell(TABLE, cell, "") for cell in cells]
    assert len(started) == 1
    alone = [run_cell(TABLE, replace(cell, ladder=()), "") for cell in cells]
    assert [one.estimate for one in together] == [one.estimate for one in alone]
    assert together[0].estimate != together[1].estimate
