"""Full scores from a sample with known probabilities, assisted by a model's predictions.

The difference estimator (Särndal, Swensson & Wretman 1992, "Model Assisted Survey Sampling",
chapter 6): predictions m of all items, plus the weighted mean of the sample's residuals,

    estimate = sum of known answers + lambda sum_rest w m + sum_sample c (y - lambda m)

with c in proportion to w / chance. It is unbiased given whatever chose the known items, however
wrong the predictions are; they only make it more precise. A sample may have several phases, each
unbiased given the ones before it; their estimates are averaged by their expected precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray

PRIOR = 4.0
"""So many items' worth of the model's own variance count beside the residuals."""
TUNING_PRIOR = 6.0
"""So many items count for lambda = 1."""
MOST_TUNED = 1.2
FEWEST = 5
"""Fewest sampled items for a standard error of a wanted score."""


@dataclass(frozen=True, eq=False)
class Phase:
    """One phase of a sample.

    Attributes
    ----------
    known : ndarray, shape (wanted,)
        Weighted sums of the answers before it.
    left : ndarray, shape (wanted,)
        Weights of the items without an answer before it.
    expected : ndarray, shape (wanted,)
        Weighted sums of the predictions of these items.
    sampled : ndarray of int, shape (n,)
        Places of the phase's items among all answers.
    loads : ndarray, shape (wanted, n)
        Weights of the phase's items over their chances.
    variance : float
        Expected variance of the first wanted score's estimate.
    """

    known: FloatArray
    left: FloatArray
    expected: FloatArray
    sampled: IntArray
    loads: FloatArray
    variance: float


@dataclass(frozen=True, eq=False)
class Assisted:
    """Estimates of wanted scores, shape (wanted,).

    `errors` are standard errors, NaN for fewer than 5 sampled items; `freedom` are their degrees of
    freedom. `influence`, shape (n,), is what each answer adds to the error of the first score, NaN
    for items outside the sample. `item_share` is that of `SampleErrors`.
    """

    scores: FloatArray
    errors: FloatArray
    freedom: FloatArray
    influence: FloatArray
    item_share: float


@dataclass(frozen=True, eq=False)
class SampleErrors:
    """Where the error of a sample's estimate comes from: what a difference of two needs of each.

    Attributes
    ----------
    influence : ndarray, shape (items,)
        What each answer adds to the error, up to a factor (NaN for items outside the sample).
    chances : ndarray, shape (items,)
        Each item's chance to be in the sample.
    item_share : float
        Share of the estimate's variance that one item adds whose answer is off by 1.
    """

    influence: FloatArray
    chances: FloatArray
    item_share: float


def assisted(
    phases: Sequence[Phase],
    answers: FloatArray,
    predicted: FloatArray,
    noise: FloatArray,
    spread: float,
    sizes: FloatArray,
) -> Assisted:
    """Estimate the wanted scores from the phases of a sample.

    Parameters
    ----------
    phases : sequence of Phase
    answers, predicted, noise : ndarray, shape (n,)
        Answers in [0, 1], their predictions and the variances that the model expects.
    spread : float
        Variance of the predictions over all items.
    sizes : ndarray, shape (wanted,)
        Number of items of each wanted score.

    Examples
    --------
    >>> nothing, all_ = np.zeros(1), np.ones(1)
    >>> phase = Phase(nothing, all_, np.array([0.6]), np.arange(8), np.full((1, 8), 1 / 8), 1.0)
    >>> found = assisted([phase], np.array([1.0, 1, 1, 0, 1, 1, 0, 1]), np.full(8, 0.5),
    ...     np.full(8, 0.25), 0.04, np.array([100.0]))
    >>> found.scores.round(2).tolist(), found.errors.round(2).tolist()
    ([0.85], [0.16])
    """
    # Weights in proportion to 1 / variance give the mean of unbiased estimates least variance.
    precision = np.array([1 / max(phase.variance, 1e-12) for phase in phases])
    shares = precision / precision.sum()
    n, wanted = len(answers), len(phases[0].known)
    answered, expected = np.zeros(wanted), np.zeros(wanted)
    loads = np.zeros((wanted, n))
    for share, phase in zip(shares, phases, strict=True):
        answered += share * phase.known
        expected += share * phase.expected
        sums = phase.loads.sum(axis=1)
        scale = np.divide(phase.left, sums, out=np.zeros(wanted), where=sums > 0)
        loads[:, phase.sampled] += share * scale[:, None] * phase.loads
    used = loads > 0
    counts = used.sum(axis=1)
    tuned = _tuned(loads[0], answers, predicted, spread)
    residuals = answers - tuned * predicted
    totals = np.maximum(loads.sum(axis=1), 1e-12)
    estimates = answered + tuned * expected + loads @ residuals
    # About their mean, not about 0: if weights are proportional to 1 / chance, their sum is fixed,
    # so a common shift of the residuals causes no error.
    about = residuals - (loads @ residuals / totals)[:, None]
    relative = (counts[:, None] * loads / totals[:, None]) ** 2
    observed = (relative * about**2).sum(axis=1)
    # PRIOR more answers with the variance that the model expects: equal answers do not give 0.
    prior = PRIOR * (relative * noise).sum(axis=1) / np.maximum(counts, 1)
    variance = (observed + prior) / (counts + PRIOR - 1) / np.maximum(counts, 1)
    # Items that were run are known: sampling without replacement leaves 1 - n / N.
    variance *= np.maximum(1 - counts / sizes, 0.0) * totals**2
    return Assisted(
        estimates,
        np.where(counts >= FEWEST, np.sqrt(variance), np.nan),
        np.maximum(counts - 1.0, 1.0),
        np.where(used[0], loads[0] * about[0], np.nan),
        float(relative[0].sum() / max(counts[0], 1) / max(observed[0] + prior[0], 1e-12)),
    )


def _tuned(loads: FloatArray, answers: FloatArray, predicted: FloatArray, spread: float) -> float:
    """Return the multiple of the predictions that leaves the least variance, within [0, 1.2]."""
    total = loads.sum()
    if total <= 0:
        return 1.0
    # Equal answers show nothing of the predictions: the multiple would be that of the prior alone.
    if np.ptp(answers) == 0:  # all right or all wrong
        return 0.0
    share = loads / total
    emphasis = (np.count_nonzero(loads) * share) ** 2
    x = predicted - share @ predicted
    prior = TUNING_PRIOR * max(spread, 1e-4)
    both = float((emphasis * x * (answers - share @ answers)).sum())
    return float(np.clip((both + prior) / ((emphasis * x * x).sum() + prior), 0.0, MOST_TUNED))


def sample_errors(
    answers: FloatArray,
    predicted: FloatArray,
    weights: FloatArray,
    items: IntArray,
    chances: FloatArray,
) -> tuple[FloatArray, FloatArray, tuple[SampleErrors, ...]]:
    """Return standard errors of weighted means of residuals, and where each comes from.

    For a sample whose weights are in proportion to 1 / chance. Two more answers count, with the
    variance that answers of such a mean have: equal answers do not give 0.

    Parameters
    ----------
    answers, predicted : ndarray, shape (targets, n)
        Each prediction is made without its own answer.
    weights : ndarray, shape (n,)
    items : ndarray of int, shape (n,)
        Positions of the answered items.
    chances : ndarray, shape (items,)
        Each item's chance to be in the sample.

    Returns
    -------
    errors, freedom : ndarray, shape (targets,)
        Standard errors and their degrees of freedom.
    sources : tuple of SampleErrors
        One for each target.

    Examples
    --------
    >>> answers = np.array([[1.0, 0.0, 1.0, 1.0]])
    >>> errors, freedom, (source,) = sample_errors(
    ...     answers, np.full((1, 4), 0.5), np.ones(4), np.arange(4), np.full(100, 0.04))
    >>> errors.round(2).tolist(), freedom.tolist(), source.influence[:4].round(2).tolist()
    ([0.24], [3.0], [0.06, -0.19, 0.06, 0.06])
    """
    n, n_items = answers.shape[1], len(chances)
    shares = weights / weights.sum()
    emphasis = (n * shares) ** 2
    residuals = answers - predicted
    about = residuals - (residuals @ shares)[:, None]
    mean = (n * (answers @ shares) + 1) / (n + 2)
    squares = (emphasis * about**2).sum(axis=1) + 2 * mean * (1 - mean)
    variance = squares / (n + 1) / n * max(1 - n / n_items, 0.0)
    influence = np.full((len(answers), n_items), np.nan)
    influence[:, items] = shares * about
    of_item = float(emphasis.mean()) / squares
    sources = zip(influence, of_item.tolist(), strict=True)
    return (
        np.sqrt(variance),
        np.full(len(answers), max(n - 1.0, 1.0)),
        tuple(SampleErrors(row, chances, share) for row, share in sources),
    )
