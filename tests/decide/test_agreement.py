"""The same answers give one interval and one verdict, whichever function is asked."""

import itertools
import json

import numpy as np
import pytest

import fewbench
from fewbench.cli import main
from fewbench.decide.multiple import adjusted_p_values
from fewbench.evaluation import Evaluation, Stop
from fewbench.testing import simulate

pytestmark = pytest.mark.filterwarnings("ignore::fewbench.errors.EstimateWarning")
TABLE = simulate(60, 150, seed=5)
SOURCES, NEW = TABLE.take(models=range(30)), TABLE.take(models=range(30, 60))
NAMES = ["step-1", "step-2", "step-3"]
LEVEL = 0.9


def evaluated(method, rows, stop):
    evaluation = Evaluation(SOURCES, method, targets=NAMES, stop=stop)
    truth = dict(zip(NAMES, NEW.values[rows], strict=True))
    while any((asked := evaluation.ask()).values()):
        for name, items in asked.items():
            evaluation.tell(name, dict(zip(items, truth[name][NEW.positions(items)], strict=True)))
    return evaluation


def p_value(found):
    """Return the p-value behind the probability that A is better."""
    return 2 * min(found.chance_a_better, 1 - found.chance_a_better)


def ends(interval):
    return interval.low, interval.high


def same(value):
    """Sums in another order are the same."""
    return pytest.approx(value, abs=1e-12)


def agree(evaluation, known, at_least, fixed):
    """Check one set of three targets; return the verdicts between them."""
    how = {"level": LEVEL, "fixed_items": fixed}
    estimates = evaluation.estimate(LEVEL, warn=False)
    score = float(SOURCES.full_scores()[SOURCES.model_ids.index(known)])
    for name, one in estimates.items():
        target = evaluation, name
        check = fewbench.gate(target, at_least=at_least, **how).checks[0]
        assert (same(check.value), check.kind) == (one.score, one.interval_kind)
        low, high = ends(check.interval)
        if fixed:
            assert (low, high) == same(ends(one.interval))
        else:  # a model may do better or worse on other questions, and in another run
            assert low < one.interval.low
            assert high > one.interval.high
        assert check.verdict == (
            "pass" if low >= at_least else "fail" if high < at_least else "undecided"
        )

        apart = fewbench.versus(target, known, next_items=0, **how)
        low, high = ends(apart.interval)
        # Beside a random sample, the other items of the known model count, too.
        is_moved = not evaluation.method.plain_sampling
        if fixed and is_moved:
            assert (low, high) == same([end - score for end in ends(one.interval)])
        elif is_moved:
            assert low < one.interval.low - score
            assert high > one.interval.high - score
        assert apart.verdict == ("better" if low > 0 else "worse" if high < 0 else "undecided")
        check = fewbench.gate(target, not_below=known, **how).checks[0]
        assert (check.value, check.interval) == (apart.difference, apart.interval)
        named = {"better": "pass", "worse": "fail", "undecided": "undecided"}
        assert check.verdict == named[apart.verdict]
        looking = fewbench.versus(target, known, sequential=True, next_items=0, **how)
        check = fewbench.gate(target, not_below=known, sequential=True, **how).checks[0]
        assert check.interval == looking.interval

    every = [*NAMES, known]
    pairs = {
        pair: fewbench.versus(
            *((evaluation, name) if name in NAMES else name for name in pair), next_items=0, **how
        )
        for pair in itertools.combinations(every, 2)
    }
    p_values = np.array([p_value(one) for one in pairs.values()])
    for one in fewbench.rank(evaluation, models=[known], **how).targets:
        others = {name for pair in pairs if one.target in pair for name in pair} - {one.target}
        assert set(one.tied_with) <= others
        for pair, p, by_holm in zip(pairs, p_values, adjusted_p_values(p_values), strict=True):
            if one.target in pair:
                is_tied = bool({*pair} & {*one.tied_with})
                # Jointly, at least as often as by Holm's rule, and no more often than alone.
                assert not (is_tied and by_holm <= 0.9 * (1 - LEVEL))
                assert is_tied or p <= 1 - LEVEL

    run = fewbench.track(evaluation, **how)
    for point in run.points:
        one = estimates[point.checkpoint]
        assert (point.score, *ends(point.interval)) == same((one.score, *ends(one.interval)))
    for change in run.changes:
        turned = pairs[change.before, change.after]
        assert ends(change.interval) == same((-turned.interval.high, -turned.interval.low))
        times = len(NAMES) - 1 if change == run.changes[-1] and len(run.changes) > 3 else 1
        assert change.p_value == pytest.approx(min(1, times * p_value(turned)), abs=1e-12)
    adjusted = adjusted_p_values(np.array([one.p_value for one in run.changes]))
    for one, p in zip(run.changes, adjusted, strict=True):
        sign = "better" if one.difference > 0 else "worse"
        assert one.verdict == (sign if p <= 1 - LEVEL else "undecided")
    return {one.verdict for one in pairs.values()}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["random", "fewbench", "fewbench-static"])
def test_five_functions_agree_on_200_sets_of_answers(method):
    rng, seen = np.random.default_rng(1), set()
    for at in range(23):  # of three targets
        rows, known = rng.choice(30, 3, replace=False), SOURCES.model_ids[rng.integers(30)]
        seen |= agree(
            evaluated(method, rows, Stop(items=30)), known, round(rng.uniform(0.2, 0.8), 2), at % 2
        )
    assert seen == {"better", "worse", "undecided"}


@pytest.mark.parametrize("fixed", [False, True])
def test_a_run_that_stops_by_width_has_one_interval_too(fixed):
    stop = Stop(items=80, half_width=0.09, level=LEVEL)
    for method in ("random", "fewbench"):
        evaluation = evaluated(method, [1, 2, 3], stop)
        agree(evaluation, SOURCES.model_ids[0], 0.4, fixed)


def test_five_commands_print_the_same_interval(tmp_path, capsys, monkeypatch):
    scores = fewbench.save_scores(SOURCES, tmp_path / "scores.parquet")
    evaluated("fewbench", [4, 5, 6], Stop(items=30)).save(tmp_path / "run", scores)

    def said(command, *words):
        monkeypatch.setattr("sys.argv", ["fewbench", command, *words, "--json"])
        with pytest.raises(SystemExit):
            main()
        return json.loads(capsys.readouterr().out)

    run, (a, b) = str(tmp_path / "run"), NAMES[:2]
    estimate = said("estimate", run)[a]["interval"]
    fixed = said("gate", f"{run}:{a}", "--at-least", "0.5", "--fixed-items")["checks"][0]
    assert fixed["interval"] == same(estimate)
    tracked = said("track", run)
    assert tracked["points"][0]["interval"] == same(estimate)
    apart = said("versus", f"{run}:{b}", f"{run}:{a}")
    check = said("gate", f"{run}:{b}", "--not-below", f"{run}:{a}")["checks"][0]
    change = tracked["changes"][0]
    assert apart["interval"] == check["interval"] == change["interval"]
    ranked = {one["target"]: one for one in said("rank", run)["targets"]}
    assert ranked[a]["score"] == same(apart["score_b"])
