"""Intervals of estimates: they hold at their level, and say where they cannot be trusted."""

import re
from dataclasses import replace

import numpy as np
import pytest
from fewbench.evaluation.calibration import cross_fit

from fewbench.evaluation import Evaluation, Stop
from fewbench.evaluation.bounds import known_bounds
from fewbench.evaluation.intervals import ErrorModel
from fewbench.evaluation.replay import replay
from fewbench.evaluation.sampling import betting_interval, interval_at
from fewbench.methods import find_method
from fewbench.scores import from_arrays
from fewbench.testing import simulate


def judge(method, sources, targets, budget, level=0.9):
    evaluation = Evaluation(sources, method, budget, targets.model_ids)
    evaluation.tell_table(targets)
    return evaluation.estimate(level)


def by_strength(table, share=0.7):
    """Divide models: the weakest share, and the strongest ones."""
    order = np.argsort(table.full_scores())
    cut = int(share * table.n_models)
    return table.take(models=np.sort(order[:cut])), table.take(models=np.sort(order[cut:]))


@pytest.mark.parametrize("method", ["greedy-ridge", "anchor-points", "disco-jsd-ridge"])
def test_targets_beyond_the_sources_are_covered_or_warned_of(method):
    """The strongest of all are estimated from weaker ones, as a new model that beats all."""
    found = [
        (estimate, truth)
        for seed in range(2)
        for sources, targets in [by_strength(simulate(60, 300, seed=seed))]
        for estimate, truth in zip(
            judge(method, sources, targets, 40).values(), targets.full_scores(), strict=True
        )
    ]
    covered = np.array([e.interval.low <= truth <= e.interval.high for e, truth in found])
    warned = np.array([any("nearly all source models" in w for w in e.warnings) for e, _ in found])
    assert covered.mean() >= 0.6
    assert (covered | warned).mean() >= 0.9
    assert warned.mean() > 0.5
    loud = next(e for e, _ in found if e.beyond_sources > 0.5)
    assert loud.interval_kind == "frontier"
    assert any(
        f"mean error of {method} is" in w and "of random sampling" in w for w in loud.warnings
    )


def test_targets_like_the_sources_are_rarely_flagged():
    flagged = []
    for seed in range(3):
        table = simulate(60, 300, seed=seed)
        even = np.arange(60) % 4 == 0  # families of two are divided, too: as like as can be
        sources = table.take(models=np.flatnonzero(~even))
        targets = table.take(models=np.flatnonzero(even))
        for estimate in judge("random-ridge", sources, targets, 40).values():
            flagged.append(estimate.beyond_sources > 0.5)
            assert estimate.interval_kind in ("cross-fitted", "frontier")
            assert estimate.interval_sources >= 9
    assert np.mean(flagged) < 0.1


def test_sources_that_only_guess_do_not_show_how_a_better_model_answers():
    """All sources say always yes or always no, and so differ in no ability."""
    rng = np.random.default_rng(0)
    table = simulate(30, 200, 1, seed=0)
    key = np.arange(200) % 2 == 0
    yes = np.arange(30) % 2 == 0
    noise = rng.random(table.values.shape) < 0.03
    values = (np.where(yes[:, None], key, ~key) ^ noise).astype(float)
    sources = replace(table, values=values)
    said = ErrorModel(find_method("random-ridge"), sources, 20, 0).warn(1)
    assert any("hardly differ in ability" in warning for warning in said)
    healthy = ErrorModel(find_method("random-ridge"), table, 20, 0).warn(1)
    assert not any("hardly differ" in warning for warning in healthy)
    assert ErrorModel(find_method("random"), sources, 20, 0).warn(1) == []


def test_a_method_that_errs_as_much_as_random_sampling_says_so():
    table = simulate(40, 200, seed=1)
    evaluation = Evaluation(table, "sort-and-search", 30, ["new"])
    assert any("that of random sampling is" in w for w in evaluation.warnings())
    assert Evaluation(table, "greedy-ridge", 30, ["new"]).warnings() == []


def test_fractional_scores_of_a_random_sample():
    """Where sources allow it is as narrow as their errors; else valid for any scores."""
    table = simulate(60, 400, seed=2, continuous=True)
    # Scores near .5: the variance of right and wrong answers is far from theirs.
    table = replace(table, values=0.4 + 0.2 * table.values)
    few, rest = table.take(models=range(4)), table.take(models=range(4, 60))
    for estimate in judge("random", rest, few, 50).values():
        binary = np.ptp(interval_at(estimate.score, 50, 400, 0.9))
        assert estimate.interval_kind == "cross-fitted"
        assert estimate.interval.high - estimate.interval.low < 0.5 * binary
    for name, estimate in judge("random", few, rest.take(models=range(3)), 50).items():
        evaluation = Evaluation(few, "random", 50, [name])
        items = few.positions(evaluation.ask()[name])
        answers = rest.values[rest.model_ids.index(name), items]
        assert estimate.interval_kind == "betting"
        ends = estimate.interval.low, estimate.interval.high
        assert ends == pytest.approx(betting_interval(answers, 400, 0.9))


def test_a_sample_that_varies_more_than_the_sources_do_is_not_judged_by_them():
    """Sources of .3 to .6 on every item; a target that is all but right or all but wrong."""
    rng = np.random.default_rng(0)
    table = simulate(30, 400, seed=1, continuous=True)
    means = rng.uniform(0.3, 0.6, (30, 1))
    sources = replace(table, values=np.clip(means + rng.normal(0, 0.05, (30, 400)), 0, 1))
    covered = []
    for seed in range(20):
        whole = np.where(np.random.default_rng(seed).random(400) < 0.6, 0.99, 0.01)
        evaluation = Evaluation(sources, "random", 30, ["new"], seed)
        asked = evaluation.ask()["new"]
        evaluation.tell("new", dict(zip(asked, whole[sources.positions(asked)], strict=True)))
        ends = evaluation.estimate()["new"].interval
        covered.append(ends.low <= whole.mean() <= ends.high)
    assert np.mean(covered) >= 0.8


@pytest.mark.parametrize("method", ["random-ridge", "aipw"])
def test_sources_that_all_fail_leave_the_answers_bounds(method):
    """No method errs on sources of which all answers are wrong; a new model may be right."""
    table = simulate(12, 100, seed=0)
    evaluation = Evaluation(replace(table, values=0 * table.values), method, 20, ["new"])
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"], 1.0))
    estimate = evaluation.estimate()["new"]
    assert estimate.interval_kind == "bounds"
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx((0.2, 1.0))
    assert estimate.expected_error is None
    assert any("nearly all source models" in warning for warning in estimate.warnings)


def test_beyond_the_sources_is_said_at_any_level():
    sources, targets = by_strength(simulate(30, 200, seed=2))
    best = targets.model_ids[int(targets.full_scores().argmax())]
    beyond = [judge("greedy-ridge", sources, targets, 40, level)[best] for level in (0.5, 0.99)]
    assert beyond[0].beyond_sources == beyond[1].beyond_sources > 0.3


def test_plain_sampling_is_not_advised_against_itself():
    for seed in range(4):
        table = simulate(30, 120, seed=seed).averaged("macro")
        assert Evaluation(table, "random", 20, ["new"], seed).warnings() == []


@pytest.mark.parametrize("sizes", [(298, 2), (5, 5, 5, 100, 100, 100)])
def test_the_error_of_random_sampling_of_macro_averages_is_that_of_the_method(sizes):
    """Few items of a small task weigh much; a task that was not drawn weighs nothing."""
    rng = np.random.default_rng(0)
    tasks = np.repeat([f"t{at}" for at in range(len(sizes))], sizes)
    values = (rng.random((40, len(tasks))) < rng.uniform(0.2, 0.8, (40, 1))).astype(float)
    table = from_arrays(values, models=[f"m{at}" for at in range(40)], tasks=tasks)
    past = cross_fit(find_method("random"), table.averaged("macro"), 20, 0, divisions=5).past
    assert past.mean_random == pytest.approx(past.mean_error, rel=0.3)


def test_five_wrong_of_five_do_not_make_the_error_nothing():
    table = simulate(20, 100, seed=3)
    evaluation = Evaluation(table, "random", 5, ["new"])
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"], 0.0))
    estimate = evaluation.estimate()["new"]
    assert estimate.score == 0
    assert estimate.expected_error > 0.05
    assert estimate.random.expected_error > 0.05


def coverage(method, average, repeats, seed0=0, **kind):
    hits, level = [], 0.9
    for seed in range(seed0, seed0 + repeats):
        table = simulate(60, 120, seed=seed, **kind).averaged(average)
        rows = np.arange(60)
        sources, targets = table.take(models=rows[:44]), table.take(models=rows[44:])
        evaluation = Evaluation(sources, method, 20, targets.model_ids, seed)
        evaluation.tell_table(targets)
        for estimate, truth in zip(
            evaluation.estimate(level).values(), targets.full_scores(), strict=True
        ):
            hits.append(estimate.interval.low - 1e-9 <= truth <= estimate.interval.high + 1e-9)
    return float(np.mean(hits))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "average", "kind"),
    [
        ("random", "micro", {"continuous": True}),
        ("random", "macro", {}),
        ("random-stratified", "macro", {}),
        ("disco-pds-knn", "micro", {"options": 4}),
    ],
)
def test_intervals_cover_new_models_of_new_families(method, average, kind):
    """At 90 %, over 8 tables of 16 targets; two standard errors below that for kin in pairs."""
    assert coverage(method, average, 8, **kind) > 0.84


def test_past_errors_are_measured_once_a_folder(tmp_path, monkeypatch):
    table = simulate(24, 80, seed=1)
    sources, targets = by_strength(table)
    evaluation = Evaluation(sources, "random-ridge", 20, targets.model_ids)
    evaluation.save(tmp_path / "run")
    evaluation.tell_table(targets)
    estimates = evaluation.estimate()
    for name in ("cross_fits", "frontier_fits"):
        monkeypatch.setattr(f"fewbench.evaluation.intervals.{name}", None)
    again = Evaluation.open(tmp_path / "run", sources)
    assert again.estimate() == estimates
    (tmp_path / "run" / "calibration.json").write_text("{torn")
    with pytest.raises(TypeError):  # it is measured anew, by what was taken away here
        Evaluation.open(tmp_path / "run", sources).estimate()


@pytest.mark.parametrize("method", ["greedy-ridge", "fewbench"])
@pytest.mark.parametrize("by_width", [False, True])
def test_beyond_sources_that_show_no_errors_there_it_is_as_wide_as_random_sampling(
    method, by_width
):
    """The strongest of all models, and errors among the weaker ones alone."""
    table = simulate(90, 300, seed=1)
    table = replace(table, models=table.models.drop(columns="family"))
    sources, targets = by_strength(table, 0.6)
    said = replay(find_method(method), sources, targets, 30, 0)
    answers = [targets.values[row, at] for row, at in enumerate(said.items)]
    errors = ErrorModel(find_method(method), sources, 30, 0, looks=[10] if by_width else None)
    errors.frontier = None  # too few sources, or none that differ
    found = errors.judge(said.scores, said.items, answers, 0.9, said.spread)
    beyond = [one.is_beyond for one in found]
    assert np.mean(beyond) > 0.5
    for row, one in enumerate(found):
        if one.is_beyond:
            low, high = interval_at(said.scores[row], 30, 300, 0.9, any_time=by_width)
            least, most = known_bounds(sources.item_weights, said.items[row], answers[row])
            assert one.low <= max(low, least)
            assert one.high >= min(high, most)
    assert "as wide as that of as many random items" in errors.beyond_warning(method, 1)


@pytest.mark.parametrize("stop", [Stop(items=20), Stop(items=20, half_width=0.25)])
def test_beside_an_estimate_stands_what_random_prints_of_the_same_answers(stop):
    table = simulate(24, 80, seed=3)
    sources, target = table.take(models=range(1, 24)), table.take(models=[0])

    def estimated(method, target, sources=sources):
        evaluation = Evaluation(sources, method, targets=target.model_ids, stop=stop)
        while any(evaluation.ask().values()):
            evaluation.tell_table(target)
        return evaluation.estimate()[target.model_ids[0]]

    plain, ridge = (estimated(name, target) for name in ("random", "random-ridge"))
    if plain.items_run == ridge.items_run:  # the same items, of which only the mean is taken
        assert ridge.random.interval == plain.interval == plain.random.interval
    ends = plain.interval
    assert plain.random.half_width == pytest.approx((ends.high - ends.low) / 2)
    assert plain.answered == f"{plain.answers_right} of {plain.items_run} right"
    assert plain.answers_right == round(plain.score * plain.items_run)
    # Chosen items are no sample of all: what they show of the score is not what random would show.
    for method in ("fewbench", "greedy-ridge", "stratified+mean"):
        if stop.half_width is None or find_method(method).extends:
            chosen = estimated(method, target)
            assert chosen.random.interval is None
            n, right = chosen.items_run, chosen.answers_right
            assert chosen.answered == f"{right} of {n} right"
            low, high = interval_at(chosen.score, n, 80, 0.9, any_time=stop.half_width is not None)
            assert chosen.random.half_width == pytest.approx((high - low) / 2)
    fractions = simulate(24, 80, seed=3, continuous=True)
    sources, target = fractions.take(models=range(1, 24)), fractions.take(models=[0])
    chosen = estimated("random-ridge", target, sources)
    assert chosen.answers_right is chosen.random.interval is None
    assert re.fullmatch(rf"{chosen.items_run} answers with a mean of 0\.\d+", chosen.answered)
