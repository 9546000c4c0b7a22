"""Types of arrays, as annotations name them.

help() prints what a name stands for: numpy.ndarray, and not the types that NumPy makes it of.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import ArrayLike, NDArray

    BoolArray = NDArray[np.bool_]
    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]
    AnyArray = NDArray[Any]
else:
    AnyArray = BoolArray = FloatArray = IntArray = np.ndarray

    class ArrayLike:
        """What `numpy.asarray` takes: an array, a number, or lists of numbers."""


__all__ = ["AnyArray", "ArrayLike", "BoolArray", "FloatArray", "IntArray"]
