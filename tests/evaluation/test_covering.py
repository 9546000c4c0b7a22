"""Intervals hold the truth at their level: for targets like the sources, and for others.

Short simulations; real tables are for tests/results/test_coverage.py and benchmarks/intervals.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.evaluation import Evaluation, Stop
from fewbench.scores import Scores, from_arrays
from fewbench.testing import simulate
from fewbench.uncertainty.sampling import exact_interval

pytestmark = pytest.mark.slow


def judged(method, sources, targets, budget=None, seed=0, stop=None, level=0.9):
    """Estimate all targets; return the estimates and whether each interval holds the truth."""
    evaluation = Evaluation(sources, method, budget, targets.model_ids, seed, stop=stop)
    while asked := evaluation.ask():
        for name, items in asked.items():
            row = targets.take(targets.model_positions([name]), targets.positions(items))
            evaluation.tell_table(row, name)
    found = list(evaluation.estimate(level, warn=False).values())
    ends = np.array([[one.interval.low, one.interval.high] for one in found]).T
    truth = targets.full_scores()
    return found, (ends[0] - 1e-9 <= truth) & (truth <= ends[1] + 1e-9)


def divided(n_sources, n_targets, n_items, seed, average="micro", **kind):
    """Divide a table in sources and targets of other families."""
    table = simulate(n_sources + n_targets, n_items, seed=seed, **kind).averaged(average)
    rows = np.arange(n_sources + n_targets)
    return table.take(models=rows[:n_sources]), table.take(models=rows[n_sources:])


def widths(estimates):
    """Return the intervals' widths over those of the same number of random items."""
    return [
        (one.interval.high - one.interval.low) / (2 * one.random.half_width) for one in estimates
    ]


@pytest.mark.parametrize(
    ("method", "average", "kind", "least"),
    [
        ("fewbench", "micro", {}, 0.79),
        ("random", "micro", {"continuous": True}, 0.87),
        ("random", "macro", {}, 0.87),
        ("random-stratified", "macro", {}, 0.87),
        ("disco-pds-knn", "micro", {"options": 4}, 0.79),
    ],
)
def test_intervals_cover_new_models_of_new_families(method, average, kind, least):
    """At 90 %, over 5 tables of 16 targets that are kin in pairs; of samples more surely."""
    covered = []
    for seed in range(5):
        sources, targets = divided(44, 16, 120, seed, average, **kind)
        covered.extend(judged(method, sources, targets, 20, seed)[1])
    assert np.mean(covered) > least


@pytest.mark.parametrize(("n_sources", "widest"), [(3, 1.0), (18, 0.85)])
def test_few_sources_leave_an_interval_that_holds_and_is_no_wider_than_random_s(n_sources, widest):
    covered, found = [], []
    for seed in range(30):  # targets of a seed share the sample's error
        sources, targets = divided(n_sources, 4, 200, seed)
        estimates, hits = judged("fewbench", sources, targets, 30, seed)
        assert {one.interval_kind for one in estimates} == {"sampled"}
        covered.extend(hits)
        found += widths(estimates)
    assert 0.83 < np.mean(covered) < 0.97
    assert np.mean(found) < widest


def adversaries(sources, draws, seed=0):
    """Targets unlike all sources: so many draws of each kind, by name."""
    rng = np.random.default_rng(seed)
    n = sources.n_items
    hard = (sources.values.mean(axis=0).argsort().argsort() < n // 2).astype(float)
    rows: dict[str, np.ndarray] = {}
    for draw in range(draws):
        like = sources.values[rng.integers(sources.n_models)]
        coin = rng.integers(0, 2, n).astype(float)
        rows |= {
            f"coin/{draw}": coin,
            f"half noise/{draw}": np.where(rng.random(n) < 0.5, like, coin),
            f"inverted/{draw}": 1 - like,
            f"all right/{draw}": np.ones(n),
            f"all wrong/{draw}": np.zeros(n),
            f"hard half/{draw}": hard,
        }
    return from_arrays(
        np.array(list(rows.values())),
        models=list(rows),
        items=sources.item_ids.tolist(),
        tasks=sources.items["task"].tolist(),
    )


def by_kind(targets: Scores, values):
    """Group values by the kind of target."""
    found: dict[str, list] = {}
    for name, value in zip(targets.model_ids, values, strict=True):
        found.setdefault(name.split("/")[0], []).append(value)
    return {kind: np.array(of) for kind, of in found.items()}


@pytest.mark.parametrize("method", ["fewbench", "fewbench-static"])
def test_targets_unlike_all_sources_are_covered(method):
    """Models of the sources put all right at .90 and all wrong at .18, and are sure of it."""
    sources = simulate(40, 300, seed=1)
    targets = adversaries(sources, 12)
    estimates, hits = judged(method, sources, targets, 30)
    covered = by_kind(targets, hits)
    errors = by_kind(targets, np.array([one.score for one in estimates]) - targets.full_scores())
    equal = ("all right", "all wrong")
    assert np.mean([np.abs(errors[kind]) for kind in equal]) < 1 / 30  # an item in thirty
    assert all(covered[kind].all() for kind in equal)
    for kind in ("inverted", "hard half"):
        assert covered[kind].mean() >= 0.8, kind
    # What chance answers look like is seen late in 30 of them.
    assert np.mean([covered["coin"], covered["half noise"]]) >= 0.75


def test_a_method_of_a_paper_covers_or_warns_of_targets_unlike_all_sources():
    sources = simulate(40, 300, seed=1)
    targets = adversaries(sources, 12)
    estimates, hits = judged("kmedoids-ridge", sources, targets, 50)
    warned = [any("errors on them may not hold" in w for w in one.warnings) for one in estimates]
    assert np.mean(hits | np.array(warned)) >= 0.8
    assert np.mean(warned) > 0.2
    assert np.mean(np.array(widths(estimates))[warned]) >= 1


@pytest.mark.parametrize("method", ["kmedoids-ridge", "anchor-points", "disco-jsd-ridge"])
def test_targets_beyond_the_sources_are_covered_or_warned_of(method):
    """The strongest of all are estimated from weaker ones, as a new model that beats all."""
    found, covered = [], []
    for seed in range(2):
        table = simulate(60, 300, seed=seed)
        order = np.argsort(table.full_scores())
        sources, targets = (table.take(models=np.sort(at)) for at in (order[:42], order[42:]))
        estimates, hits = judged(method, sources, targets, 40)
        found += estimates
        covered.extend(hits)
    warned = np.array([any("nearly all source models" in w for w in e.warnings) for e in found])
    assert (np.array(covered) | warned).mean() >= 0.8
    assert warned.mean() > 0.5
    ratios = np.array(widths(found))[warned]
    assert ratios.mean() > 0.9, "at least as wide as that of the same number of random items"


@pytest.mark.parametrize(("method", "half_width"), [("random", 0.1), ("fewbench", 0.08)])
def test_intervals_hold_where_their_width_ended_the_run(method, half_width):
    """The answers that made an interval narrow also chose when to stop."""
    covered, n_run = [], []
    for seed in range(2):
        sources, targets = divided(30, 20, 120, seed)
        stop = Stop(half_width=half_width)
        estimates, hits = judged(method, sources, targets, seed=seed, stop=stop)
        covered.extend(hits)
        n_run += [one.items_run for one in estimates]
        for one in estimates:
            assert (one.interval.high - one.interval.low) / 2 <= half_width + 1e-9
    assert np.mean(covered) > 0.83
    assert len(set(n_run)) > 1
    assert np.mean(n_run) < 0.7 * 120


@pytest.mark.parametrize(
    ("method", "average", "n_sources"),
    [("fewbench", "micro", 0), ("random-stratified", "micro", 20), ("random", "macro", 20)],
)
@pytest.mark.parametrize("is_skewed", [False, True])
def test_intervals_of_samples_hold_for_one_model_over_seeds(method, average, n_sources, is_skewed):
    """Whatever the model: an interval of a sample speaks of the draw, not of other models."""
    table = simulate(n_sources + 1, 400, 6, seed=2).averaged(average)
    sources = table.take(models=np.arange(n_sources))
    target = table.take(models=[n_sources])
    if is_skewed:  # good at some tasks
        chances = np.linspace(0.05, 0.95, 6)[table.task_of]
        row = (np.random.default_rng(0).random(400) < chances).astype(float)
        target = replace(target, values=row[None])
    found = [judged(method, sources, target, 80, seed) for seed in range(120)]
    assert np.mean([covered[0] for _, covered in found]) > 0.83
    if not n_sources and is_skewed:
        plain = [np.ptp(exact_interval(one.answers_right, 80, 400, 0.9)) for [one], _ in found]
        own = [one.interval.high - one.interval.low for [one], _ in found]
        assert np.mean(own) < 0.85 * np.mean(plain)
        assert 0.95 < np.mean(widths([one for [one], _ in found])) < 1.05  # its line is as wide


def test_equal_answers_leave_their_exact_interval():
    """Sources of a narrow range, and a target that is right on all items: none is like it."""
    rng = np.random.default_rng(0)
    easy = rng.random(200) < 0.5
    chances = np.where(easy, 0.97, rng.uniform(0.4, 0.8, (40, 1)))
    values = (rng.random((40, 200)) < chances).astype(float)
    sources = from_arrays(values, models=[f"s{at}" for at in range(40)])
    for right in (0.0, 1.0):
        target = from_arrays(np.full((1, 200), right), models=["new"])
        for method in ("fewbench", "greedy-ridge"):
            [estimate], covered = judged(method, sources, target, 30)
            assert covered.all(), (method, right, estimate.interval)


def test_an_estimate_says_when_fewbench_switched_to_a_sample():
    table = simulate(60, 400, seed=1)
    for answers, switches in (
        (np.random.default_rng(0).permutation(table.values[5]), True),
        (table.values[5], False),
    ):
        known = dict(zip(table.item_ids, answers, strict=True))
        evaluation = Evaluation(table, "fewbench", 60, targets=["new"])
        while asked := evaluation.ask():
            evaluation.tell("new", {item: known[item] for item in asked["new"]})
        estimate = evaluation.estimate(warn=False)["new"]
        assert (estimate.interval_kind == "sampled") is switches
        assert any("drawn at random" in each for each in estimate.warnings) is (switches)
