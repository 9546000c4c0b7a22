"""Metrics of estimates against the truth over targets (notation as in the documentation).

All take arrays of shape (targets,) in [0, 1], 1 being best, and return a float; NaN where a
metric is not defined, such as a rank correlation of one target.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fewbench.evaluation.ranks import EXACT, ranks_among

FloatArray = NDArray[np.float64]
TOP = 10


def point_metrics(truth: FloatArray, estimate: FloatArray, sources: FloatArray) -> dict[str, float]:
    """Return every metric of point estimates.

    Parameters
    ----------
    truth, estimate : ndarray, shape (targets,)
    sources : ndarray, shape (sources,)
        The sources' full scores, among which targets are ranked.

    Examples
    --------
    >>> m = point_metrics(np.array([0.2, 0.6]), np.array([0.3, 0.6]), np.array([0.25, 0.9]))
    >>> round(m["mae"], 3), m["kendall_tau"], m["rank_mae"]
    (0.05, 1.0, 0.5)
    """
    # Equal scores must tie, though sums of floats came out a hair apart.
    truth, estimate, sources = (np.round(scores, EXACT) for scores in (truth, estimate, sources))
    error = np.abs(estimate - truth)
    rank, guessed = ranks_among(sources, truth), ranks_among(sources, estimate)
    off = np.abs(rank - guessed)
    weights = (1 / rank) / (1 / rank).sum()
    return {
        "mae": float(error.mean()),
        "rmse": math.sqrt(float((error**2).mean())),
        "nrmse": _over(math.sqrt(float((error**2).mean())), math.sqrt(float((truth**2).mean()))),
        "max_error": float(error.max()),
        "kendall_tau": kendall_tau(truth, estimate),
        "spearman": pearson(average_ranks(truth), average_ranks(estimate)),
        "pearson": pearson(truth, estimate),
        "pairwise_accuracy": pairwise_accuracy(truth, estimate),
        "rank_mae": float(off.mean()),
        "weighted_mae": float(weights @ error),
        "weighted_rank_mae": float(weights @ off),
        "top10_recall": top_recall(truth, estimate, sources),
        "ndcg": ndcg(truth, estimate, sources),
    }


def kendall_tau(a: FloatArray, b: FloatArray) -> float:
    """Kendall's tau-b, ties counted as the field does."""
    signs_a, signs_b = _pair_signs(a), _pair_signs(b)
    untied = math.sqrt(float((signs_a != 0).sum()) * float((signs_b != 0).sum()))
    return _over(float((signs_a * signs_b).sum()), untied)


def pairwise_accuracy(truth: FloatArray, estimate: FloatArray) -> float:
    """Share of pairs of targets put in the right order; equal estimates count half."""
    true, said = _pair_signs(truth), _pair_signs(estimate)
    differ = true != 0
    right = (true == said)[differ].sum() + 0.5 * (said == 0)[differ].sum()
    return _over(float(right), float(differ.sum()))


def pearson(a: FloatArray, b: FloatArray) -> float:
    """Pearson's correlation."""
    x, y = a - a.mean(), b - b.mean()
    return _over(float(x @ y), math.sqrt(float(x @ x) * float(y @ y)))


def average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1, equal values sharing the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse])


def top_recall(truth: FloatArray, estimate: FloatArray, sources: FloatArray, k: int = TOP) -> float:
    """Share of the true best k of sources and targets together that the estimates find."""
    k = min(k, len(sources) + len(truth))
    best = np.argsort(-np.concatenate([sources, truth]), kind="stable")[:k]
    found = np.argsort(-np.concatenate([sources, estimate]), kind="stable")[:k]
    return len(np.intersect1d(best, found)) / k


def ndcg(truth: FloatArray, estimate: FloatArray, sources: FloatArray) -> float:
    """Normalised discounted cumulative gain of the whole list, gains being the true scores."""
    true, said = np.concatenate([sources, truth]), np.concatenate([sources, estimate])
    discount = 1 / np.log2(np.arange(len(true)) + 2)
    gain = float(true[np.argsort(-said, kind="stable")] @ discount)
    return _over(gain, float(np.sort(true)[::-1] @ discount))


def _pair_signs(values: FloatArray) -> NDArray[np.float64]:
    rows, columns = np.triu_indices(len(values), 1)
    return np.sign(values[rows] - values[columns])


def _over(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else math.nan
