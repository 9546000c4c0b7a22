"""A curve over the steps of a run: a local level behind the checkpoints' own estimates.

The true scores are a random walk over the steps, and each checkpoint's estimate is its true score
plus an error. Errors of neighbors are much alike: both rest on the same source models, and partly
on the same items. That shared part moves the whole curve and is not smoothed away; only the part
of its own can be (`OWN` of the variance).

The walk's size is not fixed: the curve is the mean over a grid of sizes, weighted by the
likelihood of the estimates. A checkpoint is moved by at most one standard error of its own part,
so that a sudden loss is not hidden by its neighbors.
"""

from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray

OWN = 0.2
"""Share of an error's variance that neighbors do not share. Too small smooths too little."""
FEWEST = 4
"""Different steps from which neighbors are used."""
SIZES = np.geomspace(0.002, 0.2, 16)
"""Standard deviations of the walk from one checkpoint to the next, in [0, 1]."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve through estimates, one value per checkpoint.

    Attributes
    ----------
    scores : ndarray, shape (checkpoints,)
    shrinkage : ndarray, shape (checkpoints,)
        Standard error of the curve over that of the checkpoint's own estimate, at most 1.
    left_out : ndarray, shape (checkpoints,)
        What the other checkpoints predict of each estimate; NaN if neighbors are not used.
    """

    scores: FloatArray
    shrinkage: FloatArray
    left_out: FloatArray


def times_of(steps: FloatArray) -> FloatArray:
    """Return steps on the scale of the walk: the square roots of the gaps, 1 for a typical gap.

    Longer gaps allow larger changes, but less than in proportion: curves are steepest early.

    >>> times_of(np.array([0.0, 100, 200, 600])).tolist()
    [0.0, 1.0, 2.0, 4.0]
    """
    every, place = np.unique(steps, return_inverse=True)
    gaps = np.diff(every)
    if not len(gaps):
        return np.zeros(len(steps))
    return np.asarray(np.concatenate([[0.0], np.cumsum(np.sqrt(gaps / np.median(gaps)))])[place])


def smooth(steps: FloatArray, estimates: FloatArray, errors: FloatArray) -> Curve:
    """Draw a curve through estimates.

    Parameters
    ----------
    steps : ndarray, shape (checkpoints,)
    estimates, errors : ndarray, shape (checkpoints,)
        Estimated scores in [0, 1] and their standard errors; 0 if the score is known.

    Examples
    --------
    >>> estimates = np.array([0.50, 0.53, 0.49, 0.52, 0.50])
    >>> drawn = smooth(np.arange(5.0), estimates, np.full(5, 0.04))
    >>> bool(np.ptp(drawn.scores) < np.ptp(estimates)), bool(drawn.shrinkage.max() < 1)
    (True, True)
    """
    n = len(estimates)
    if len(np.unique(steps)) < FEWEST or not (errors > 0).any():
        return Curve(estimates, np.ones(n), np.full(n, np.nan))
    noise = OWN * errors**2
    times = times_of(steps)
    walk = np.minimum.outer(times, times)
    tiny = 1e-6 * np.eye(n)  # two known scores at one step
    weights, means, variances, left_out = [], [], [], []
    for size in SIZES:
        inverse = np.linalg.inv(size**2 * walk + np.diag(noise) + tiny)
        sums = inverse.sum(axis=1)
        # The level of the whole curve is unknown: a flat prior, integrated out.
        precision = inverse - np.outer(sums, sums) / sums.sum()
        pulled = precision @ estimates
        log_det = np.linalg.slogdet(inverse)[1]
        weights.append(0.5 * (log_det - np.log(sums.sum()) - estimates @ pulled))
        means.append(estimates - noise * pulled)
        variances.append(noise - noise**2 * np.diag(precision))
        left_out.append(estimates - pulled / np.diag(precision))
    weight = np.exp(np.array(weights) - max(weights))
    weight /= weight.sum()
    mean = weight @ np.array(means)
    own = weight @ (np.array(variances) + (np.array(means) - mean) ** 2)
    limit = np.sqrt(noise)
    scores = np.clip(mean, estimates - limit, estimates + limit)
    share = np.divide(own, noise, out=np.ones(n), where=noise > 0)
    shrinkage = np.sqrt(1 - OWN + OWN * np.clip(share, 0.0, 1.0))
    return Curve(np.clip(scores, 0.0, 1.0), shrinkage, weight @ np.array(left_out))
