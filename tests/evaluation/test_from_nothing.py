"""Without sources, and with sources that ran a part of the items each."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fewbench.errors import MethodError, ScoresError
from fewbench.evaluation import Evaluation
from fewbench.scores import Benchmark, Scores, from_arrays
from fewbench.testing import simulate
from fewbench.uncertainty.sampling import exact_interval


def benchmark(**columns) -> Benchmark:
    tasks = ["easy"] * 150 + ["hard"] * 50
    ids = [f"q{at}" for at in range(200)]
    return Benchmark(pd.DataFrame({"task": tasks} | columns, index=ids))


def answers(table: Benchmark, seed: int = 0) -> dict[str, float]:
    chance = np.where(table.task_of == 0, 0.8, 0.3)
    right = np.random.default_rng(seed).random(table.n_items) < chance
    return dict(zip(table.item_ids, right.astype(float), strict=True))


def evaluated(scores, known, budget=40, **how):
    evaluation = Evaluation(scores, budget=budget, targets=["new"], **how)
    while asked := evaluation.ask():
        evaluation.tell("new", {item: known[item] for item in asked["new"]})
    return evaluation


def parts(n_models: int, n_items: int, run: int, seed: int = 0) -> tuple[Scores, Scores]:
    """Return models that ran some items each, and the next model's whole row."""
    whole = simulate(n_models + 1, n_items, 3, seed=seed)
    rng = np.random.default_rng(seed)
    cells = np.full((n_models, n_items), np.nan)
    for row in range(n_models):
        at = rng.permutation(n_items)[:run]
        cells[row, at] = whole.values[row, at]
    table = from_arrays(
        cells, models=whole.model_ids[:-1], items=list(whole.item_ids), tasks=list(whole.items.task)
    )
    return table, whole.take(models=[n_models])


def test_a_benchmark_alone_has_the_exact_interval_of_a_random_sample():
    table = benchmark()
    known = answers(table)
    evaluation = evaluated(table, known)
    found = evaluation.estimate()["new"]
    assert evaluation.provenance.method == "fewbench"
    assert "no source models" in str(evaluation.reason)
    right = found.answers_right
    assert found.score == pytest.approx(right / 40)
    assert (found.interval.low, found.interval.high) == exact_interval(right, 40, 200, 0.9)
    assert found.interval_kind == "exact"
    assert found.rank is None
    assert found.warnings == ()
    assert set(found.task_intervals) == {"easy", "hard"}


@pytest.mark.parametrize("method", ["fewbench", "random"])
@pytest.mark.parametrize("answered", [10, 30])
def test_a_task_s_score_is_the_mean_of_its_answers(method, answered):
    """Also of a run that was interrupted: nothing else says how hard a task is."""
    table, known = benchmark(), answers(benchmark())
    evaluation = Evaluation(table, method, 40, ["new"])
    items = evaluation.ask()["new"][:answered]
    evaluation.tell("new", {item: known[item] for item in items})
    valid = "they are a random sample, so the" if method == "fewbench" else "the estimate uses"
    with pytest.warns(match=f"of 40 items answered: {valid}"):
        found = evaluation.estimate()["new"]
    for task in ("easy", "hard"):
        of_task = [known[item] for item in items if table.items.loc[item, "task"] == task]
        assert found.tasks[task] == pytest.approx(np.mean(of_task))


def test_weights_of_items_count():
    table = benchmark(weight=np.where(np.arange(200) < 150, 1.0, 9.0))
    known = answers(table)
    truth = float(table.item_weights @ np.array([known[item] for item in table.item_ids]))
    plain = np.mean(list(known.values()))
    scores = [evaluated(table, known, 80, seed=s).estimate()["new"].score for s in range(30)]
    assert abs(np.mean(scores) - truth) < 0.03 < abs(plain - truth)


def test_all_items_give_the_score_itself():
    table = benchmark(weight=np.linspace(1, 2, 200))
    known = answers(table)
    found = evaluated(table, known, 200).estimate()["new"]
    truth = float(table.item_weights @ np.array([known[item] for item in table.item_ids]))
    assert found.score == pytest.approx(truth)
    assert found.interval.low == pytest.approx(truth) == found.interval.high


def test_fractions_are_taken_where_nothing_is_known_of_them():
    table = benchmark()
    known = {item: 0.25 + score / 2 for item, score in answers(table).items()}
    found = evaluated(table, known).estimate()["new"]
    assert found.interval_kind == "sampled"
    assert found.interval.low <= np.mean(list(known.values())) <= found.interval.high
    reach = (found.interval.high - found.interval.low) / 2
    assert found.random.half_width == pytest.approx(reach)  # of the same scores


def test_scores_in_between_have_student_s_width_where_they_spread():
    """Most at one end: the rare other ones decide, and a bet is needed."""
    table, rng = benchmark(), np.random.default_rng(0)
    for spread, kind, most in ((0.2, "sampled", 1.1), (0.02, "sampled", 1.1), (None, "betting", 3)):
        values = rng.choice([1.0, 0.9, 0.4], len(table.item_ids), p=[0.8, 0.1, 0.1])
        if spread is not None:
            values = np.clip(rng.normal(0.6, spread, len(values)), 0, 1)
        known = dict(zip(table.item_ids, values.tolist(), strict=True))
        evaluation = evaluated(table, known, 30, method="random")
        found = evaluation.estimate(warn=False)["new"]
        said = values[evaluation.record.answered("new")]
        t = stats.t.ppf(0.95, 29) * said.std(ddof=1) * np.sqrt(1 / 30 - 1 / len(values))
        width = (found.interval.high - found.interval.low) / 2
        assert found.interval_kind == kind
        assert 0.9 < width / t < most


def test_a_task_without_an_answer_has_the_full_score():
    table = benchmark(task=["easy"] * 199 + ["rare"])
    found = evaluated(table, answers(benchmark()), 10, method="random").estimate()["new"]
    assert found.tasks["rare"] == pytest.approx(found.score)


def test_other_methods_say_how_many_whole_models_they_need():
    with pytest.raises(MethodError, match="0 source"):
        Evaluation(benchmark(), "greedy-ridge", 10)


def test_models_that_ran_a_part_make_the_estimate_more_precise():
    widths, errors = {1: [], 60: []}, []
    for seed in range(12):
        table, new = parts(60, 300, 100, seed)
        known = dict(zip(new.item_ids, new.values[0], strict=True))
        for n in widths:
            found = evaluated(table.take(models=np.arange(n)), known, 60).estimate()["new"]
            widths[n].append(found.interval.high - found.interval.low)
            assert found.interval_kind == "sampled"
            if n == 60:
                errors.append(found.interval.low <= new.values.mean() <= found.interval.high)
    assert np.mean(widths[60]) < 0.95 * np.mean(widths[1])
    assert np.mean(errors) >= 0.75


def test_whole_models_are_used_by_themselves_where_they_are_enough():
    table, new = parts(5, 200, 60)
    whole = simulate(56, 200, 3, seed=0)
    both = from_arrays(
        np.vstack([whole.values[6:], table.values]),
        models=[*whole.model_ids[6:], *table.model_ids],
        items=list(whole.item_ids),
        tasks=list(whole.items.task),
    )
    known = dict(zip(new.item_ids, new.values[0], strict=True))
    alone = evaluated(both.take(models=np.arange(50)), known, method="fewbench")
    mixed = evaluated(both, known, method="fewbench")
    assert mixed.estimate()["new"].score == alone.estimate()["new"].score
    assert both.whole.n_models == 50


def test_an_item_that_no_model_ran_has_its_tasks_mean():
    scores = from_arrays([[1, np.nan, 0, 0]], models=["a"], tasks=["x", "x", "y", "y"])
    assert scores.filled[0].tolist() == [1, 1, 0, 0]
    with pytest.raises(ScoresError, check=lambda error: error.kind == "unanswered"):
        from_arrays([[np.nan, np.nan]], models=["a"])


def test_a_large_benchmark_alone_divides_by_no_sources():
    ids = [f"q{at}" for at in range(4001)]
    table = Benchmark(pd.DataFrame({"task": ["only"] * 4001}, index=ids))
    found = evaluated(table, dict.fromkeys(ids, 1.0), budget=10).estimate()["new"]
    assert (found.interval.low, found.interval.high) == exact_interval(10, 10, 4001, 0.9)


def test_answers_that_are_no_first_part_of_the_sample_are_a_warning():
    table = benchmark()
    evaluation = Evaluation(table, budget=60, targets=["new"])
    asked = evaluation.ask()["new"]
    known = answers(table)

    def warnings(items):
        evaluation.tell("new", {item: known[item] for item in items})
        return " ".join(evaluation.estimate()["new"].warnings)

    assert "random sample, so the estimate is valid" in warnings(asked[:20])
    easy = [item for item in asked if table.items["task"][item] == "easy"]
    said = warnings(easy)
    assert "asked have no answer" in said
    assert "so the estimate is valid;" not in said
    assert "asked have no answer" not in warnings(asked)
    other = Evaluation(table, budget=60, targets=["new"])
    other.ask()
    other.tell("new", {item: known[item] for item in easy})
    assert "none of 'hard'" in " ".join(other.estimate()["new"].warnings)
    open_ = other.estimate()["new"].task_intervals["hard"]
    assert (open_.low, open_.high) == (0, 1)
    other.skip("new", [item for item in asked if item not in easy])
    assert other.estimate()["new"].task_intervals["hard"] == open_


@pytest.mark.parametrize("skips", [False, True])
def test_every_answer_of_a_sample_counts_whenever_it_was_asked(skips):
    table = benchmark(task=["all"] * 200)
    known = answers(table)
    evaluation = Evaluation(table, budget=40, targets=["new"])
    asked = evaluation.ask()["new"]
    lost = [*asked[3:30:3], asked[35]]
    given = [item for item in asked if item not in lost]
    evaluation.tell("new", {item: known[item] for item in given})
    if skips:
        evaluation.skip("new", lost)
    mean = sum(known[item] for item in given) / len(given)
    assert evaluation.estimate()["new"].score == pytest.approx(mean)
