"""Two methods on the same targets: how their errors compare, and how sure that is."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
RESAMPLES = 2000


@dataclass(frozen=True)
class Ratio:
    """Ratio of mean absolute errors, with its bootstrap standard error and 90 % interval."""

    ratio: float
    se: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Mean difference of absolute errors, its 90 % interval, and a two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float


def error_ratio(errors: pd.DataFrame, other: pd.DataFrame, seed: int) -> Ratio:
    """Ratio of two methods' errors; targets are resampled, with all their repeats.

    Parameters
    ----------
    errors, other : DataFrame
        Columns target, repeat, error, of the same targets and repeats.
    """
    ours, theirs = _by_target(errors, other)
    drawn = _draws(len(ours), seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = ours[drawn].sum(axis=1) / theirs[drawn].sum(axis=1)
        ratio = float(ours.sum() / theirs.sum())
    ratios = ratios[np.isfinite(ratios)]
    if len(ours) < 2 or not len(ratios):
        return Ratio(ratio, np.nan, np.nan, np.nan)
    low, high = np.quantile(ratios, [0.05, 0.95])
    return Ratio(ratio, float(ratios.std()), float(low), float(high))


def error_difference(errors: pd.DataFrame, other: pd.DataFrame, seed: int) -> Difference:
    """Difference of two methods' errors; p-value by flipping the signs of targets' differences.

    Parameters
    ----------
    errors, other : DataFrame
        Columns target, repeat, error, of the same targets and repeats.
    """
    ours, theirs = _by_target(errors, other)
    gaps = ours - theirs
    mean = float(gaps.sum())
    low, high = np.quantile(gaps[_draws(len(gaps), seed)].sum(axis=1), [0.05, 0.95])
    flips = np.random.default_rng(seed).choice([-1.0, 1.0], (RESAMPLES, len(gaps)))
    as_far = np.abs((flips * gaps).sum(axis=1)) >= abs(mean) - 1e-15
    return Difference(mean, float(low), float(high), (as_far.sum() + 1) / (RESAMPLES + 1))


def _by_target(errors: pd.DataFrame, other: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Return each target's part of the two mean errors, over the repeats in which both met it.

    The parts add up to the mean absolute errors, in which every repeat weighs the same.
    """
    both = errors.merge(other, on=["target", "repeat"], suffixes=("", "_other"))
    among = both.groupby("repeat")["target"].transform("size") * both["repeat"].nunique()
    shares = both[["error", "error_other"]].div(among, axis=0)
    parts = shares.groupby(both["target"], sort=True).sum()
    return parts["error"].to_numpy(np.float64), parts["error_other"].to_numpy(np.float64)


def _draws(count: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(count, size=(RESAMPLES, count))
