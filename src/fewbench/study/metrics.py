"""Metrics of estimates against the truth over targets (notation as in the documentation).

Arrays have shape (targets,), values are in [0, 1] and 1 is best. A metric is NaN where it is not
defined, such as a rank correlation of one target or of equal estimates. Weights say how often each
target counts, for resampling.
"""

import numpy as np

from fewbench._types import FloatArray
from fewbench.evaluation.bounds import EXACT, ranks_among

TOP = 10
TIED = 1.5 * 10.0**-EXACT
"""Scores nearer than this are equal up to rounding."""


def point_metrics(truth: FloatArray, estimate: FloatArray, sources: FloatArray) -> dict[str, float]:
    """Return every metric of point estimates.

    Parameters
    ----------
    truth, estimate : ndarray, shape (targets,)
    sources : ndarray, shape (sources,)
        Full scores of the sources, for the ranks of targets.

    Examples
    --------
    >>> m = point_metrics(np.array([0.2, 0.6]), np.array([0.3, 0.6]), np.array([0.25, 0.9]))
    >>> round(m["mae"], 3), m["kendall_tau"], m["rank_mae"]
    (0.05, 1.0, 0.5)
    """
    once = weighted_metrics(truth, estimate, sources, np.ones((1, len(truth))))
    return {name: float(values[0]) for name, values in once.items()}


def weighted_metrics(
    truth: FloatArray, estimate: FloatArray, sources: FloatArray, weights: FloatArray
) -> dict[str, FloatArray]:
    """Return every metric of point estimates for each row of weights, shape (rows,).

    `weights` has shape (rows, targets) and says how often each target counts, a whole number.
    """
    # Equal scores must tie in spite of rounding.
    truth, estimate, sources = (np.round(scores, EXACT) for scores in (truth, estimate, sources))
    error = np.abs(estimate - truth)
    rank, guessed = ranks_among(sources, truth), ranks_among(sources, estimate)
    off = np.abs(rank - guessed)
    total = weights.sum(axis=1)
    by_rank = weights / rank
    squares = weights @ error**2
    return {
        "mae": _over(weights @ error, total),
        "rmse": np.sqrt(_over(squares, total)),
        "nrmse": np.sqrt(_over(squares, weights @ truth**2)),
        "max_error": np.where(total > 0, np.where(weights > 0, error, 0.0).max(axis=1), np.nan),
        **weighted_correlations(truth, estimate, weights),
        "rank_mae": _over(weights @ off, total),
        "weighted_mae": _over(by_rank @ error, by_rank.sum(axis=1)),
        "weighted_rank_mae": _over(by_rank @ off, by_rank.sum(axis=1)),
        "top10_recall": top_recall(truth, estimate, sources, weights, TOP),
        "ndcg": _ndcg(truth, estimate, sources, weights),
    }


def weighted_correlations(
    truth: FloatArray, estimate: FloatArray, weights: FloatArray
) -> dict[str, FloatArray]:
    """Return correlations and the share of pairs in order, for each row of weights."""
    true, said = _signs(truth), _signs(estimate)
    differ, apart, agree = (
        ((weights @ pairs) * weights).sum(axis=1)
        for pairs in (np.abs(true), np.abs(said), true * said)
    )
    varied = (differ > 0) & (apart > 0)
    return {
        # Kendall's tau-b, ties counted as the field does.
        "kendall_tau": np.where(varied, _over(agree, np.sqrt(differ * apart)), np.nan),
        # Ranks minus their mean are sums of signs; ties share their mean rank.
        "spearman": np.where(varied, _pearson(weights @ true, weights @ said, weights), np.nan),
        "pearson": np.where(varied, _pearson(truth, estimate, weights), np.nan),
        # Equal estimates count half.
        "pairwise_accuracy": _over((differ + agree) / 2, differ),
    }


def kendall_tau(a: FloatArray, b: FloatArray) -> float:
    """Return Kendall's tau-b; NaN if either is constant."""
    return float(weighted_correlations(a, b, np.ones((1, len(a))))["kendall_tau"][0])


def pearson(a: FloatArray, b: FloatArray) -> float:
    """Return Pearson's correlation; NaN if either is constant."""
    return float(weighted_correlations(a, b, np.ones((1, len(a))))["pearson"][0])


def _pearson(a: FloatArray, b: FloatArray, weights: FloatArray) -> FloatArray:
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        x, y = (v - (weights * v).sum(axis=1, keepdims=True) / total for v in (a, b))
    both = (weights * x * y).sum(axis=1)
    return _over(both, np.sqrt((weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1)))


def top_recall(
    truth: FloatArray, estimate: FloatArray, sources: FloatArray, weights: FloatArray, k: int
) -> FloatArray:
    """Share of the true best k of sources and targets that the estimates find."""
    counts = _with_sources(sources, weights)
    most = np.minimum(k, counts.sum(axis=1))[:, None]

    def best(targets: FloatArray) -> FloatArray:
        order = np.argsort(-np.concatenate([sources, targets]), kind="stable")
        sorted_counts = counts[:, order]
        before = np.cumsum(sorted_counts, axis=1) - sorted_counts
        taken = np.empty_like(counts)
        taken[:, order] = np.clip(most - before, 0, sorted_counts)
        return taken

    both = np.minimum(best(truth), best(estimate)).sum(axis=1)
    return np.where(weights.any(axis=1), _over(both, most[:, 0]), np.nan)


def _ndcg(
    truth: FloatArray, estimate: FloatArray, sources: FloatArray, weights: FloatArray
) -> FloatArray:
    """Normalized discounted cumulative gain of the whole list; gains are the true scores."""
    counts = _with_sources(sources, weights)
    gains = np.concatenate([sources, truth])
    length = int(counts.sum(axis=1).max())
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(length) + 2))])

    def gain(targets: FloatArray) -> FloatArray:
        order = np.argsort(-np.concatenate([sources, targets]), kind="stable")
        last = np.cumsum(counts[:, order], axis=1).astype(np.intp)
        first = np.concatenate([np.zeros((len(last), 1), np.intp), last[:, :-1]], axis=1)
        return np.asarray((discounts[last] - discounts[first]) @ gains[order])

    return np.where(weights.any(axis=1), _over(gain(estimate), gain(truth)), np.nan)


def _with_sources(sources: FloatArray, weights: FloatArray) -> FloatArray:
    """Return how often each source (once) and target counts, shape (rows, both)."""
    return np.concatenate([np.ones((len(weights), len(sources))), weights], axis=1)


def _signs(values: FloatArray) -> FloatArray:
    """Return the sign of each pair's difference, 0 if equal up to rounding."""
    gaps = values[:, None] - values
    return np.where(np.abs(gaps) < TIED, 0.0, np.sign(gaps))


def _over(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)
