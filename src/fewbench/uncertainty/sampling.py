"""Plain random sampling: its intervals and its expected error.

The intervals of a simple random sample need no assumption about the model: exact hypergeometric
intervals for right and wrong answers, betting intervals for other scores.
"""

import math
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._seeds import child_seed
from fewbench._types import FloatArray, IntArray
from fewbench.errors import FewbenchError
from fewbench.scores import Scores

ORDERS, NODES = 16, 400
DRAWS = 2048
"""Random subsets to compute an expected error without a closed form."""
JUDGED = 50
INSIDE = 21
"""Number of scores in an interval to average an expected error over."""


def check_level(level: float) -> None:
    """Raise FewbenchError unless 0 < level < 1."""
    if not 0.0 < level < 1.0:
        raise FewbenchError(
            f"level {level} is not between 0 and 1", hint="use a share such as 0.9", kind="range"
        )


@lru_cache(maxsize=4096)
def exact_interval(hits: int, n: int, n_items: int, level: float) -> tuple[float, float]:
    """Equal-tailed hypergeometric interval for the share of right items of n_items.

    From the least to the greatest number of right items that a one-sided test at (1 - level) / 2
    does not reject, given `hits` of n.

    Examples
    --------
    >>> low, high = exact_interval(10, 20, 1000, 0.9)
    >>> round(low, 3), round(high, 3)
    (0.304, 0.696)
    """
    check_level(level)
    # Half of the misses on each side: a verdict of "better" is then wrong as rarely as one of
    # "worse".
    tail = (1.0 - level) / 2.0
    right = range(hits, n_items - (n - hits) + 1)
    # Bisection: more right items make as many hits likelier.
    low = bisect_right(right, tail, key=lambda r: _chance(range(hits, n + 1), n_items, r, n))
    high = bisect_left(right, -tail, key=lambda r: -_chance(range(hits + 1), n_items, r, n)) - 1
    return right[low] / n_items, right[high] / n_items


@lru_cache(maxsize=2**16)  # a p value asks for an interval at 30 levels, with much the same chances
def _chance(hits: range, n_items: int, right: int, n: int) -> float:
    """Return the chance of any of these numbers of hits; see `hypergeometric`."""
    return float(hypergeometric(np.array(hits), n_items, np.array(right), n).sum())


def hypergeometric(
    hits: NDArray[Any], n_items: int, right: NDArray[Any], n: int
) -> NDArray[np.float64]:
    """Return the chance of a number of hits among n of n_items items, of which some are right.

    SciPy's own takes a second to import.

    Examples
    --------
    >>> hypergeometric(np.arange(3), 10, np.array(4), 2).round(3).tolist()
    [0.333, 0.533, 0.133]
    """
    from scipy.special import gammaln

    def choose(total: NDArray[Any], count: NDArray[Any]) -> NDArray[np.float64]:
        rest = total - count
        possible = (count >= 0) & (rest >= 0)
        a, b = np.where(possible, count, 0), np.where(possible, rest, 0)
        logarithms = gammaln(total + 1.0) - gammaln(a + 1.0) - gammaln(b + 1.0)
        return np.where(possible, logarithms, -np.inf)

    chances = choose(right, hits) + choose(n_items - right, n - hits)
    return np.asarray(np.exp(chances - choose(np.array(n_items), np.array(n))))


def betting_interval(answers: FloatArray, n_items: int, level: float) -> tuple[float, float]:
    """Interval for the mean of n_items scores in [0, 1] from a simple random sample of them.

    Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 2024,
    Section 5 (sampling without replacement): a mean stays while bets against it have won less than
    1 / (1 - level). The capital is averaged over `ORDERS` random orders of the sample.

    Parameters
    ----------
    answers : ndarray, shape (n,)
        A simple random sample, drawn without replacement.
    n_items : int
        Number of all items.
    level : float
        Coverage, which holds for any scores in [0, 1] and any n.

    Examples
    --------
    >>> low, high = betting_interval(np.tile([0.4, 0.6], 25), 1000, 0.9)
    >>> round(low, 2), round(high, 2)
    (0.44, 0.56)
    """
    check_level(level)
    x = np.asarray(answers, dtype=np.float64)
    n, alpha = len(x), 1 - level
    least, most = float(x.sum()) / n_items, (float(x.sum()) + n_items - n) / n_items
    if n >= n_items:
        return least, least
    # Only means that the known answers leave possible need a bet against them.
    means = np.linspace(least, most, NODES)
    # The seed follows from n alone, so that equal answers always give the same interval.
    rng = np.random.default_rng(n)
    capital = np.zeros(NODES)
    drawn = np.arange(n)
    for _ in range(ORDERS):
        y = x[rng.permutation(n)]
        before = np.concatenate([[0.0], np.cumsum(y)[:-1]])
        # Shrunk towards 1/2 and 1/4, as if one more answer was seen: the first bets must not rest
        # on a variance of 0.
        guess = (0.5 + np.cumsum(y)) / (drawn + 2)
        variance = (0.25 + np.cumsum((y - guess) ** 2)) / (drawn + 2)
        variance = np.concatenate([[0.25], variance[:-1]])  # known before each bet
        # The stake for a fixed number of answers: n in place of t log(1 + t), which would serve all
        # times t.
        stake = np.sqrt(2 * math.log(2 / alpha) / (n * variance))
        rest = (n_items * means[:, None] - before) / (n_items - drawn)  # mean of the rest
        # Drawing without replacement: a mean is refuted where the items left could no longer give
        # it.
        possible = ((rest > -1e-12) & (rest < 1 + 1e-12)).all(axis=1)
        rest = np.clip(rest, 1e-9, 1 - 1e-9)
        # A stake of at most half of what could lose all keeps the capital positive, so that the bet
        # stays valid.
        above = np.log1p(np.minimum(stake, 0.5 / rest) * (y - rest)).sum(axis=1)
        below = np.log1p(-np.minimum(stake, 0.5 / (1 - rest)) * (y - rest)).sum(axis=1)
        # Half of the capital on either side: the mean of two fair games is a fair game.
        both = np.logaddexp(above, below) - math.log(2)
        capital += np.where(possible, np.exp(np.minimum(both, 50.0)), np.inf) / ORDERS
    # Markov: capital with an expectation of 1, which a mean over orders keeps, reaches 1 / alpha
    # with a chance of at most alpha.
    kept = means[capital < 1 / alpha]
    step = float(means[1] - means[0])
    ends = (kept[0], kept[-1]) if len(kept) else (x.mean(), x.mean())  # between two nodes
    return max(least, float(ends[0]) - step), min(most, float(ends[1]) + step)


def interval_at(
    score: float, n: int, n_items: int, level: float, effect: float = 1.0
) -> tuple[float, float]:
    """Return the interval of n random items around a score, as wide as `random` makes it.

    That of the nearest number of right answers, widened by sqrt(`effect`), the `sampling_effect`,
    and moved to the score. Where that exceeds 0 or 1 and is cut off, it also holds the interval
    interpolated between the numbers of right answers below and above: else it would be too narrow.

    Examples
    --------
    >>> [round(end, 3) for end in interval_at(0.7, 30, 1000, 0.9)]
    [0.538, 0.832]
    >>> [round(end, 3) for end in interval_at(0.4, 1, 1000, 0.9)]
    [0.02, 1.0]
    """
    if n >= n_items:
        return score, score
    wider = math.sqrt(effect)

    def around(hits: int, score: float) -> tuple[float, float]:
        low, high = exact_interval(hits, n, n_items, level)
        return score - wider * (hits / n - low), score + wider * (high - hits / n)

    expected = round(score * n, 9)  # 7.5 of 30 is the same number of hits on every processor
    # The nearest one, or both where two are as near: neither right nor wrong answers come first.
    nearest = [
        around(hits, score) for hits in {math.ceil(expected - 0.5), math.floor(expected + 0.5)}
    ]
    low, high = min(low for low, _ in nearest), max(high for _, high in nearest)
    if low < 0 or high > 1:
        below = math.floor(expected)
        ends = [np.clip(around(hits, hits / n), 0, 1) for hits in (below, min(below + 1, n))]
        between = (ends[0] + (expected - below) * (ends[1] - ends[0])).tolist()
        low, high = min(low, between[0]), max(high, between[1])
    return max(0.0, min(low, score)), min(1.0, max(high, score))


def expected_random_error(score: float, n: int, n_items: int, effect: float = 1.0) -> float:
    """Mean absolute error of plain random sampling of n of n_items items at a full score.

    Exact for scores of 0 or 1: E|X / n - K / N|, X hypergeometric with K = N · score right items.
    Otherwise multiplied by sqrt(`effect`), with `effect` from `sampling_effect`.

    Examples
    --------
    >>> round(expected_random_error(0.5, 50, 1000), 4)
    0.0547
    """
    return float(expected_random_errors(np.array([score]), n, n_items, effect)[0])


def expected_random_errors(scores: FloatArray, n: int, n_items: int, effect: float) -> FloatArray:
    """Return `expected_random_error` at several full scores, shape (scores,)."""
    # Between whole numbers of right items it is interpolated.
    right = np.clip(np.asarray(scores) * n_items, 0, n_items)
    below = np.floor(right + 1e-9)
    low, high = (
        hypergeometric_error(k, n, n_items) for k in (below, np.minimum(below + 1, n_items))
    )
    share = np.clip(right - below, 0, 1)
    return np.asarray(math.sqrt(effect) * (low + share * (high - low)))


def hypergeometric_error(right: NDArray[Any], n: int, n_items: int) -> FloatArray:
    """Return E|X / n - K / N| for samples of n of N items, K of them right, shape (K,).

    Closed form of Diaconis & Zabell 1991, Statistical Science 6(3).
    """
    if n >= n_items:
        return np.zeros(len(right))
    # A mean absolute deviation needs the chance of one count alone, not a sum over all counts.
    above = np.floor(n * right / n_items + 1e-9) + 1  # the first count above the mean
    chance = hypergeometric(above, n_items, right, n)
    return np.asarray(2 * above * (n_items - right - n + above) / n_items * chance / n)


def error_within(low: float, high: float, n: int, n_items: int, effect: float = 1.0) -> float:
    """Return plain random sampling's expected error, averaged over an interval of scores.

    So five equal answers do not give an error of 0.
    """
    return float(expected_random_errors(np.linspace(low, high, INSIDE), n, n_items, effect).mean())


def drawn_error(values: FloatArray, weights: FloatArray, n: int, seed: int) -> FloatArray:
    """Return plain random sampling's mean absolute error over random subsets, shape (models,).

    For scores between 0 and 1 and macro averages. A subset's estimate is its weighted mean.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        NaN where a model did not run an item; its mean is then over those that it ran.
    weights : ndarray, shape (items,)
    n : int
        Items per subset; all models share the `DRAWS` subsets.
    """
    rng = np.random.default_rng(child_seed(seed, 8, n))
    ran = ~np.isnan(values)
    counted = (weights[:, None] * ran.T) if not ran.all() else weights[:, None]
    weighed = np.where(ran, values * weights, 0.0).T
    truth = weighed.sum(axis=0) / counted.sum(axis=0)
    total = np.zeros(len(values))
    done, chunk = 0, max(1, min(DRAWS, 2**22 // len(weights)))  # at most 32 MB at a time
    while done < DRAWS:
        keys = rng.random((min(chunk, DRAWS - done), len(weights)))
        last = np.partition(keys, n - 1, axis=1)[:, n - 1 : n]
        drawn = (keys <= last).astype(np.float64)
        with np.errstate(invalid="ignore"):  # a subset without an item that a model ran
            means = np.nan_to_num(drawn @ weighed / (drawn @ counted), nan=0.5)
        total += np.abs(means - truth).sum(axis=0)
        done += len(keys)
    return np.asarray(total / DRAWS)


def sampling_effect(scores: Scores, n: int) -> float:
    """Variance of plain random sampling over that of binary scores with the same full scores.

    1 for scores of 0 and 1 and a micro average; else the squared ratio of mean errors, drawn for
    at most `JUDGED` sources and by the closed form.
    """
    if n >= scores.n_items or (scores.is_binary and scores.counts_equally):
        return 1.0
    return float(scores.remember(f"sampling effect {n}", lambda: _effect(scores, n)))


def _effect_of_weights(scores: Scores) -> float:
    """Return that of unequal weights (Kish 1965, "Survey Sampling", section 11.7)."""
    return float(scores.n_items * scores.item_weights @ scores.item_weights)


def _effect(scores: Scores, n: int) -> float:
    if not scores.n_models:
        return _effect_of_weights(scores)
    if scores.unrun_share and (ran := scores.ran) is not scores:  # filled, they do not vary
        of_ran = sampling_effect(ran, min(n, ran.n_items - 1))
        return of_ran * _effect_of_weights(scores) / _effect_of_weights(ran)
    rows = np.linspace(0, scores.n_models - 1, min(scores.n_models, JUDGED)).astype(np.intp)
    values = scores.filled_cells[rows]
    expected = expected_random_errors(
        np.clip(values @ scores.item_weights, 0, 1), n, scores.n_items, 1.0
    ).mean()
    if expected <= 0:
        return 1.0
    return float((drawn_error(values, scores.item_weights, n, 0).mean() / expected) ** 2)


def standard_error(score: float, n: float, n_items: int) -> float:
    """Return sqrt(p (1 - p) (1/n - 1/N)) with p = (n · score + 1) / (n + 2).

    Plain random sampling's standard error, shrunk from 0 and 1: the unit to compare errors in.
    """
    # One right and one wrong answer more: 5 of 5 right answers must not have an error of 0.
    p = (n * score + 1) / (n + 2)
    return math.sqrt(p * (1 - p) * max(1 / n - 1 / n_items, 0.0))


def within_strata(answers: FloatArray, stratum_of: IntArray) -> tuple[FloatArray, float, float]:
    """Return how much narrower the interval of a sample is that is spread over strata.

    Neighboring strata are joined until each has two answers. The variance within them, with half an
    answer's worth for equal answers, is compared with that of a simple random sample. Numbers of
    items per stratum are whole, so the sample's shares are a little off: the differences of
    neighbors' means say how much that costs.

    Parameters
    ----------
    answers : ndarray, shape (n,)
    stratum_of : ndarray of int, shape (n,)

    Returns
    -------
    deviations : ndarray, shape (n,)
        Answers less the mean of their stratum.
    ratio : float
        Standard error over that of a simple random sample, at most 1.
    freedom : float
        Degrees of freedom of the standard error.

    Examples
    --------
    >>> answers, strata = np.repeat([0.0, 1.0], 30), np.repeat([0, 1], 30)
    >>> deviations, ratio, freedom = within_strata(answers, strata)
    >>> bool(deviations.any()), round(ratio, 2), freedom
    (False, 0.23, 60.0)
    """
    n = len(answers)
    ends = np.flatnonzero(np.diff(np.sort(stratum_of), append=np.inf)) + 1
    kept: list[int] = []
    for end in ends.tolist():
        if end - (kept[-1] if kept else 0) >= 2:
            kept.append(end)
    if len(kept) < 2:
        return answers - answers.mean(), 1.0, max(n - 1.0, 1.0)
    kept[-1] = n  # a last stratum of one answer joins the one before
    group_of = np.empty(n, dtype=np.intp)
    group_of[np.argsort(stratum_of, kind="stable")] = np.searchsorted(kept, np.arange(n), "right")
    sizes = np.bincount(group_of)
    means = np.bincount(group_of, answers) / sizes
    deviations = answers - means[group_of]
    freedom = n - len(sizes) + 2.0
    within = (float(deviations @ deviations) + 0.5) / freedom
    rounding = float(((means - np.roll(means, -1)) ** 2).sum()) / (6 * n)
    about = answers - answers.mean()
    total = (float(about @ about) + 0.5) / (n - 1)
    return deviations, math.sqrt(min(1.0, (within + rounding) / total)), freedom
