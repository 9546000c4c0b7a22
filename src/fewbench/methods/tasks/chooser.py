"""The protocol of ways of choosing tasks, and what they return.

Every one is a dataclass of its settings with `order(matrix, k, seed)`, so that it can be written
like other parts: `bento-le(components=5)`.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from fewbench._types import FloatArray, IntArray
from fewbench.methods.tasks.matrix import TaskMatrix


@dataclass(frozen=True, eq=False)
class Ordered:
    """Chosen tasks in the order of choice.

    Attributes
    ----------
    tasks : ndarray of int, shape (k,)
    nested : bool
        Whether the first j of them are what is chosen for j.
    gains : ndarray, shape (k,), optional
        What each added to the coverage, where tasks are chosen by it.
    coverage, bound : float, optional
        What the chosen tasks reach, and what no others exceed.
    notes : tuple of str
        What a user should know of the choice.
    """

    tasks: IntArray
    nested: bool = True
    gains: FloatArray | None = None
    coverage: float | None = None
    bound: float | None = None
    notes: tuple[str, ...] = ()


class TaskChooser(Protocol):
    """Chooses k tasks; `compares` is whether by how alike they are."""

    compares: ClassVar[bool]

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Return k tasks in the order of choice."""
