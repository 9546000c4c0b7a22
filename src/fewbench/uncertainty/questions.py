"""How far a score on these items may be from the score on all such questions, and in another run.

The items of a benchmark are a sample of all possible questions, and a model that runs again answers
some of them differently (Miller 2024, "Adding error bars to evals", arXiv 2411.00640). A decision
about models therefore has this error beside that of the estimate:

    variance = S^2 sum w^2

with S^2 the variance over items of what is compared, a score or a difference, and w the items'
weights, so that sum w^2 is 1 / N where all items count the same. The error does not shrink with the
number of items run. For a simple random sample, both errors together are the usual s^2 / n.

All scores are in [0, 1]. `EXTRA` more items that differ keep S^2 from 0, as Agresti & Min 2005 do
(Biometrics 61(2)): two models that answer N items alike may still differ by
t sqrt(2 / (N (N + 1))). Scores between 0 and 1 differ there as much as on other items.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fewbench._blocks import Matrix
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms import ties

AS_MODELS = "on questions like these and if run again"
"""What a verdict on models is about, in words."""
EXTRA = 2.0
"""So many more items on which two models differ count beside the observed ones."""
PRIOR = 4.0
"""So many items count that differ as often as the source models predict."""
NEAREST = 20
"""Source models closest in score, whose answers predict a target's."""
FEWEST_ANSWERS = 2.0
TINY, NOTHING = 1e-9, 1e-12


@dataclass(frozen=True, eq=False)
class Questions:
    """Error of a mean over a benchmark's items, as the items were drawn and the models run.

    Parameters
    ----------
    variance : float
        Variance of the mean, not of one item.
    freedom : float
        Degrees of freedom.
    score : float, optional
        The one score that is compared with a number, or None for the difference of two models.
    answers : int, optional
        Number of answers, all right or wrong and a simple random sample: then the interval of the
        score needs no other error.

    Examples
    --------
    >>> alike = Questions(variance_of(np.zeros(437)) / 437, 436)
    >>> round(100 * alike.half(0.9), 2)  # percentage points
    0.53
    """

    variance: float
    freedom: float
    score: float | None = None
    answers: int | None = None

    def half(self, level: float) -> float:
        """Return the half width at a level, by Student's t."""
        from scipy.special import stdtrit

        return math.sqrt(self.variance) * float(stdtrit(self.freedom, 0.5 + level / 2))

    def reaches(self, level: float) -> tuple[float, float]:
        """Return how far the interval reaches below and above.

        For a single score, the interval of Clopper & Pearson 1934 of as many right or wrong answers
        as have this variance: errors near 0 and 1 are skewed. Where fewer clusters or items say
        what it is, of fewer, by the quantiles of Student's t (Korn & Graubard 1998, Survey
        Methodology 24(2)).

        Examples
        --------
        >>> [round(reach, 3) for reach in Questions(0.0009, 99, score=0.9).reaches(0.9)]
        [0.064, 0.045]
        """
        from scipy.special import stdtrit

        if (p := self.score) is None:
            return self.half(level), self.half(level)
        n = self.answers or self.freedom + 1
        if self.answers is None and 0 < p < 1:
            n = max(p * (1 - p) / max(self.variance, TINY), FEWEST_ANSWERS)
            few, many = stdtrit((min(self.freedom, n - 1), n - 1), 0.5 + level / 2)
            n = max(n * float(many / few) ** 2, FEWEST_ANSWERS)
        low, high = binomial_interval(p, n, level)
        return max(p - low, 0.0), max(high - p, 0.0)


def binomial_interval(share: float, n: float, level: float) -> tuple[float, float]:
    """Return Clopper & Pearson's interval for any share of n right answers.

    `exact_interval` of infinitely many items.

    >>> [round(end, 3) for end in binomial_interval(0.5, 20, 0.9)]
    [0.302, 0.698]
    """
    from scipy.special import betaincinv

    tail, hits = (1 - level) / 2, share * n
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return low, high


def variance_of(apart: FloatArray, loads: FloatArray | None = None, extra: float = EXTRA) -> float:
    """Return S^2 of a difference that all items, or a sample of them, show.

        S^2 = (sum (d - mean d)^2 + 2 s0^2) / (n + 1)

    with s0^2 from `usual_square`. For items that were drawn, or count, unequally, with
    u = loads / sum loads and m = 1 / sum u^2:

        S^2 = (m sum u (d - sum u d)^2 + 2 s0^2) / (m + 1)

    Parameters
    ----------
    apart : ndarray, shape (n,)
        Differences of two models' answers.
    loads : ndarray, shape (n,), optional
        Squared weight of each item in the score over its chance to be drawn, up to a factor.
    extra : float
        Number of further items on which the two differ.

    Examples
    --------
    >>> apart = np.array([1.0, 0.0, 0.0, -1.0])
    >>> variance_of(apart), variance_of(apart, np.full(4, 7.0))
    (0.8, 0.8)
    >>> scores = np.array([0.61, 0.64, 0.70, 0.75])
    >>> bool(np.isclose(variance_of(scores), np.var(scores, ddof=1)))
    True
    """
    n, squares, usual = _squares_of(apart, loads)
    return (squares + extra * usual) / (n + 1)


def _squares_of(apart: FloatArray, loads: FloatArray | None = None) -> tuple[float, float, float]:
    """Return how many items these count as, sum (d - mean d)^2 over so many, and s0^2."""
    shares = np.full(len(apart), 1.0) if loads is None else loads
    shares = shares / shares.sum()
    n, mean = 1 / float(shares @ shares), float(shares @ apart)
    moments = (apart - mean) ** 2, apart**2, np.abs(apart) > TINY
    squares, whole, differing = (n * shares @ values for values in moments)
    return n, float(squares), float(usual_square(squares, whole, differing))


def usual_of(apart: FloatArray) -> float:
    """Return s0^2 of differences, shape (n,); 1 without any."""
    return _squares_of(apart)[2] if len(apart) else 1.0


def usual_square(squares: FloatArray, whole: FloatArray, differing: FloatArray) -> FloatArray:
    """Return s0^2, the square that one more item adds on which two models differ.

    1 for right and wrong answers, and where nothing shows it. Scores in between differ by less:
    their variance over the items on which the two differ. Where these are all items, S^2 is that of
    the usual t test.

    Parameters
    ----------
    squares, whole, differing : ndarray, of any shape
        Sums of (d - mean d)^2 and of d^2, and number of items with d other than 0.
    """
    own = squares / np.maximum(differing - 1, 1)
    is_whole = (whole >= differing * (1 - TINY)) | (squares <= TINY * whole)
    return np.where(is_whole, 1.0, np.minimum(own, 1.0))


def predicted_disagreement(cells: Matrix, full: FloatArray, a: float, b: float) -> FloatArray:
    """Return by item the squared difference to expect of models with these scores, shape (items,).

    For right and wrong answers, it is the chance that they differ. From the answers of the source
    models nearest in score, as if the two were independent given an item.

    Parameters
    ----------
    cells : ndarray, shape (sources, items)
    full : ndarray, shape (sources,)
        Their full scores.
    a, b : float

    Examples
    --------
    >>> cells = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    >>> predicted_disagreement(cells, cells.mean(axis=1), 0.5, 0.5).tolist()
    [0.0, 0.0, 0.5]
    """
    one, other = (np.asarray(cells[nearest(full, score)], dtype=np.float64) for score in (a, b))
    squares = (one**2).mean(axis=0) + (other**2).mean(axis=0)
    return np.asarray(squares - 2 * one.mean(axis=0) * other.mean(axis=0))


def nearest(full: FloatArray, score: float) -> IntArray:
    """Return the positions of the source models nearest in score, the nearest first."""
    return ties.argsort(np.abs(full - score), scale=1.0)[:NEAREST]


def variance_of_chosen(
    apart: FloatArray, predicted: FloatArray, difference: float, weights: FloatArray, ratio: float
) -> float:
    """Return S^2 of a difference from chosen items, which tell models apart better than others do.

    The observed disagreement over the predicted one, times that predicted for all items:

        r = (sum_common d^2 + 4 mean p) / (sum_common p + 4 mean p)
        S^2 = (N max(r mean p - D^2, 0) + 2 s0^2) / (N + 1)

    Parameters
    ----------
    apart : ndarray, shape (n,)
        Differences of the answers on the common items.
    predicted : ndarray, shape (items,)
        From `predicted_disagreement`.
    difference : float
        The estimated difference of the scores.
    weights : ndarray, shape (items,)
        The items' weights in the score.
    ratio : float
        r, from `disagreement_ratio`.

    Examples
    --------
    >>> predicted, apart = np.repeat([0.5, 0.1], [20, 180]), np.tile([1.0, -1.0], 10)
    >>> ratio = disagreement_ratio(apart, np.arange(20), predicted)
    >>> round(variance_of_chosen(apart, predicted, 0.0, np.full(200, 1 / 200), ratio), 2)
    0.28
    """
    n_items = len(predicted)
    mean = float(weights**2 @ predicted / (weights @ weights))
    squares = n_items * max(ratio * mean - difference**2, 0.0)
    return (squares + EXTRA * usual_of(apart)) / (n_items + 1)


def disagreement_ratio(apart: FloatArray, items: IntArray, predicted: FloatArray) -> float:
    """Return the observed disagreement of two models over the predicted one, shrunk towards 1.

    >>> round(disagreement_ratio(np.zeros(46), np.arange(46), np.full(100, 0.25)), 2)
    0.08
    """
    prior = PRIOR * float(predicted.mean())
    observed, expected = float(apart @ apart), float(predicted[items].sum())
    return (observed + prior) / max(expected + prior, TINY)


def variance_without_pairs(a: float, b: float) -> float:
    """Return S^2 of the difference of two models without a common item, as if independent.

    >>> variance_without_pairs(0.5, 0.5)
    0.5
    """
    return a * (1 - a) + b * (1 - b)


def variance_of_score(score: float, n_items: float, answers: FloatArray | None = None) -> float:
    """Return S^2 of a single score.

    p (1 - p) with p = (N score + 1) / (N + 2), as few answers hide how far scores near 0 or 1 vary,
    or for answers that are not only right and wrong that of `variance_of`, with s0^2 at most p (1 -
    p).

    Examples
    --------
    >>> round(variance_of_score(1.0, 8), 2), round(variance_of_score(0.5, 8, np.full(4, 0.5)), 2)
    (0.09, 0.1)
    """
    p = (n_items * score + 1) / (n_items + 2)
    if answers is None or bool(np.isin(answers, (0.0, 1.0)).all()):
        return p * (1 - p)
    n, squares, usual = _squares_of(from_end(answers))
    return (squares + EXTRA * min(usual, p * (1 - p))) / (n + 1)


def from_end(answers: FloatArray) -> FloatArray:
    """Return answers as distances from the end of the scale, 0 or 1, where more of them are."""
    return 1 - answers if (answers == 1).sum() > (answers == 0).sum() else answers


def questions_by_task(
    apart: FloatArray, task_of: IntArray, squares: FloatArray, loads: FloatArray | None = None
) -> Questions:
    """Return the error of a macro average, whose tasks are fixed and whose items are drawn.

    Each task varies about its own mean, those with one answer about a common one. With S^2 that of
    `variance_of` for deviations from these means, as the prior counts once and not once a task, and
    s^2 the same without the prior:

        v_t = S^2 (sum_t (d - mean_t d)^2 / s^2 + 2) / (n_t + 1) sum_t w^2

    Degrees of freedom are Satterthwaite's, with n_t + 1 for a task.

    Parameters
    ----------
    apart : ndarray, shape (n,)
        Differences of the answers, or answers.
    task_of : ndarray of int, shape (n,)
    squares : ndarray, shape (tasks,)
        Sum of the squared weights of each task's items: 1 / (T^2 N_t) in a macro average.
    loads : ndarray, shape (n,), optional
        As for `variance_of`; a task then has n_t = (sum_t load)^2 / sum_t load^2 answers.

    Examples
    --------
    >>> apart, task_of = np.array([1.0, 0, 0, -1, 0, 0]), np.array([0, 0, 0, 1, 1, 1])
    >>> error = questions_by_task(apart, task_of, np.full(2, 1 / 12))
    >>> round(error.variance, 3), round(error.freedom, 1)
    (0.093, 8.0)
    """
    together = joined_tasks(np.bincount(task_of, minlength=len(squares)))
    task_of, squares = together[task_of], np.asarray(np.bincount(together, squares), dtype=float)
    loads = np.ones(len(apart)) if loads is None else loads

    def by_task(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(task_of, values, len(squares)))

    totals = np.maximum(by_task(loads), TINY)
    counts = totals**2 / np.maximum(by_task(loads**2), TINY**2)
    means = by_task(loads * apart) / totals
    moments = (apart - means[task_of]) ** 2, apart**2, np.abs(apart) > TINY
    of_tasks = (counts * by_task(loads * values) / totals for values in moments)
    terms = task_terms(counts, squares, *of_tasks)
    variance, freedom = variance_by_task([term.sum() for term in terms])
    return Questions(float(variance), float(freedom))


def joined_tasks(counts: IntArray) -> IntArray:
    """Return which tasks vary about one mean: those with one answer or none are one, (tasks,)."""
    own = np.where(counts > 1, np.arange(len(counts)), len(counts))
    return np.asarray(np.unique(own, return_inverse=True)[1])


def task_terms(
    count: FloatArray,
    load: FloatArray,
    squares: FloatArray,
    whole: FloatArray,
    differing: FloatArray,
) -> list[FloatArray]:
    """Return what a task adds to the sums from which `variance_by_task` follows.

    Arrays of any shape: the number of answers, what the variance counts, and as for `usual_square`.
    """
    freedom = np.maximum(count - 1, 0)
    squares = squares + NOTHING * freedom  # without any, all tasks vary alike
    own, more = squares * load / (count + 1), EXTRA * load / (count + 1)
    products = (one * other / (count + 1) for one, other in ((own, own), (own, more), (more, more)))
    return [squares, whole, differing, freedom, own, more, *products]


def variance_by_task(sums: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return the variance and degrees of freedom of a sum over tasks, from that of `task_terms`."""
    squares, whole, differing, freedom, own, more, *products = sums
    prior = EXTRA * usual_square(squares, whole, differing)
    total, times = (squares + prior) / (freedom + EXTRA), freedom / np.maximum(squares, TINY**2)
    variance = total * (times * own + more)
    spread = total**2 * (times**2 * products[0] + 2 * times * products[1] + products[2])
    freedom = np.divide(variance**2, spread, where=spread > 0, out=np.ones_like(variance))
    return variance, freedom


def clustered(
    plain: Questions,
    apart: FloatArray,
    weights: FloatArray,
    cluster_of: IntArray,
    task_of: IntArray,
    n_items: int,
) -> Questions:
    """Return the error where items belong together, such as several questions on one passage.

    Parameters
    ----------
    plain : Questions
        The error as if items were independent.
    apart, weights : ndarray, shape (n,)
        Differences of the answers, and the items' weights, with sum 1.
    cluster_of, task_of : ndarray of int, shape (n,)
        Items vary about the means of these tasks: all 0 unless tasks are fixed.
    n_items : int
        Number of all items N, of which these n are a simple random sample. What clusters add is
        multiplied by n (N - 1) / ((n - 1) N): a sample has that much fewer pairs than N items have.

    Examples
    --------
    >>> apart, weights, of = np.array([1.0, 1, -1, -1]), np.full(4, 0.25), np.array([0, 0, 1, 1])
    >>> plain = Questions(variance_of(apart) / 4, 3)
    >>> error = clustered(plain, apart, weights, of, np.zeros(4, dtype=int), 4)
    >>> plain.variance, round(error.variance, 2), round(error.freedom, 2)
    (0.3, 1.05, 1.0)
    """
    n = len(apart)
    means = np.bincount(task_of, weights * apart) / np.maximum(np.bincount(task_of, weights), TINY)
    parts = weights * (apart - means[task_of])
    _, cluster_of = np.unique(cluster_of, return_inverse=True)
    sums = np.bincount(cluster_of, parts)
    squares = np.array(sums @ sums), np.array(parts @ parts)
    more, freedom = added_by_clusters(*squares, weights, cluster_of, task_of)
    variance = plain.variance + float(more) * n * (n_items - 1) / ((n - 1) * n_items)
    return replace(plain, variance=variance, freedom=float(freedom), answers=None)


def added_by_clusters(
    of_clusters: FloatArray,
    of_items: FloatArray,
    weights: FloatArray,
    cluster_of: IntArray,
    task_of: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Return what clusters add to the variance of weighted means, and the degrees of freedom.

    The squares of the clusters' sums have another expectation than the variance, and vary more than
    as many equal clusters' would, as large clusters weigh most. Both follow from the sizes if all
    pairs of items of a cluster have one correlation, which the squares show: with G the covariance
    of the sums,

        variance = sum_c (sum_c w (d - mean d))^2 . var(mean) / tr G,   (tr G)^2 / tr G^2 degrees

    (Bell & McCaffrey 2002, Survey Methodology 28(2); Imbens & Kolesár 2016, Review of Economics and
    Statistics 98(4)). C equal clusters have C / (C - 1) and C - 1.

    Parameters
    ----------
    of_clusters, of_items : ndarray, of any shape
        Sums of the squares of w (d - mean d), summed by cluster, and of each item.
    weights, cluster_of, task_of : ndarray, shape (items,)
        Weights have the sum 1; tasks are 0 to T - 1, and items vary about the means of theirs.
    """
    held, single = np.zeros((2, cluster_of.max() + 1, task_of.max() + 1))
    np.add.at(held, (cluster_of, task_of), weights)
    np.add.at(single, (cluster_of, task_of), weights**2)
    sizes = held.sum(axis=1)
    # For the sums before the means are removed: variances, covariances with those of tasks, and of
    # these; for independent items, and for items that are alike within a cluster.
    alone = single.sum(axis=1), single, np.diag(single.sum(axis=0))
    alike = sizes**2, sizes[:, None] * held, held.T @ held
    least, most = float(alone[0].sum()), float(alike[0].sum())
    shares, turned = held / np.maximum(held.sum(axis=0), TINY), -np.eye(held.shape[1])

    def traces(correlation: float) -> tuple[float, float]:
        """Return tr G and tr G^2, of G = diag(own) + left middle left'."""
        own, across, within = (
            (1 - correlation) * one + correlation * other
            for one, other in zip(alone, alike, strict=True)
        )
        left = np.hstack([shares, across])
        middle = np.block([[within, turned], [turned, np.zeros_like(turned)]])
        rest = ((left @ middle) * left).sum(axis=1)
        inner = middle @ (left.T @ left)
        return own.sum() + rest.sum(), (own**2 + 2 * own * rest).sum() + (inner * inner.T).sum()

    (first, none), (_, half), (last, full) = map(traces, (0.0, 0.5, 1.0))
    ratio = np.divide(of_clusters, of_items, out=np.ones_like(of_clusters), where=of_items > 0)
    r = np.clip((ratio - 1) * least / max(most - least, TINY * least), 0.0, 1.0)
    true = np.maximum((1 - r) * least + r * most, TINY)
    trace = np.maximum((1 - r) * first + r * last, TINY * true)
    squared = none * (1 - r) * (1 - 2 * r) + 4 * half * r * (1 - r) + full * r * (2 * r - 1)
    more = np.maximum(of_clusters * true / trace - of_items, 0.0)
    return more, np.maximum(trace**2 / np.maximum(squared, TINY * trace**2), 1.0)
