"""Right or wrong out of continuous scores."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
CUTS = np.linspace(0.01, 0.99, 99)


def best_cuts(values: FloatArray, group_of: NDArray[np.intp]) -> FloatArray:
    """Return for each group of items the cut above which a score is taken for right.

    The one that best keeps the models' means, as tinyBenchmarks chooses it (Polo et al. 2024,
    arXiv 2402.14992, section 3.3): least mean absolute difference between the share of a model's
    scores above the cut and their mean. Where all scores are 0 or 1 any cut does, 0.5 is taken.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        In [0, 1]; NaN where a model was not run.
    group_of : ndarray of int, shape (items,)
        Groups are 0, 1, …, none of them empty.

    Returns
    -------
    ndarray, shape (groups,)

    Examples
    --------
    >>> best_cuts(np.array([[0.2, 0.3, 0.9, 0.8]]), np.zeros(4, dtype=int)).round(2).tolist()
    [0.3]
    """
    cuts = np.full(int(group_of.max()) + 1, 0.5)
    for group in range(len(cuts)):
        part = values[:, group_of == group]
        run = ~np.isnan(part)
        if ((part == 0) | (part == 1) | ~run).all():
            continue
        run_rows = run.any(axis=1)
        part, run = part[run_rows], run[run_rows]
        count = run.sum(axis=1)
        mean = np.where(run, part, 0.0).sum(axis=1) / count
        off = [
            float(np.abs((part > cut).sum(axis=1) / count - mean).mean()) for cut in CUTS
        ]  # NaN is not above
        cuts[group] = CUTS[int(np.argmin(off))]
    return cuts


def binary(values: FloatArray, cuts: FloatArray) -> FloatArray:
    """Return 1 where a score is above its item's cut, 0 elsewhere, NaN where it is NaN.

    Parameters
    ----------
    values : ndarray, shape (models, items)
    cuts : ndarray, shape (items,)
    """
    return np.where(np.isnan(values), np.nan, (values > cuts).astype(np.float64))
