"""A few items that tell much of the ability, wherever on the scale it is."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.irt.steps import DIGITS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Grid = Literal["quantiles", "range"]


def ability_grid(abilities: FloatArray, count: int, grid: Grid) -> FloatArray:
    """Return abilities at which items are compared, increasing, shape (count,).

    The middles of `count` bins, that hold as many of the models each, or are as wide.

    Parameters
    ----------
    abilities : ndarray, shape (models,)

    Examples
    --------
    >>> ability_grid(np.array([0.0, 1.0, 10.0]), 2, "quantiles").tolist()
    [0.5, 5.5]
    >>> ability_grid(np.array([0.0, 1.0, 10.0]), 2, "range").tolist()
    [2.5, 7.5]
    """
    middles = (np.arange(count) + 0.5) / count
    if grid == "quantiles":
        return np.asarray(np.quantile(abilities, middles))
    low, high = abilities.min(), abilities.max()
    return np.asarray(low + middles * (high - low))


def informative_on_a_grid(information: FloatArray) -> IntArray:
    """Return for each ability in turn the item, of those not taken yet, that tells most there.

    Of items whose information is equal to `DIGITS` digits the first is taken.

    Parameters
    ----------
    information : ndarray, shape (abilities, items)
        Not more abilities than items.

    Examples
    --------
    >>> informative_on_a_grid(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])).tolist()
    [0, 2]
    """
    left = np.round(information, DIGITS)
    chosen = np.empty(len(information), dtype=np.intp)
    for row, told in enumerate(left):
        chosen[row] = np.argmax(told)
        left[:, chosen[row]] = -np.inf
    return chosen
