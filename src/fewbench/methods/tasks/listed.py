"""Tasks that a user lists."""

from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote

import numpy as np

from fewbench._names import some
from fewbench.errors import MethodError
from fewbench.methods.tasks.chooser import Ordered
from fewbench.methods.tasks.matrix import TaskMatrix


@dataclass(frozen=True)
class ListedTasks:
    """Tasks that a user names, in their order: what a person or a language model suggests.

    Parameters
    ----------
    names : str
        Names, joined by |; signs that have a meaning there are written as in addresses: a comma
        as %2C.
    """

    names: str = ""
    compares: ClassVar[bool] = False

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Take the first k; MethodError if one is unknown, named twice, or there are fewer."""
        names = [unquote(name.strip()) for name in self.names.split("|") if name.strip()]
        if unknown := [name for name in names if name not in matrix.names]:
            raise MethodError(
                f"no such task: {some(unknown)}", hint=f"tasks are {some(matrix.names, 9)}"
            )
        if len(set(names)) < len(names):
            raise MethodError("a task is listed twice")
        if len(names) < k:
            raise MethodError(
                f"{len(names)} tasks are listed and {k} are to be chosen",
                hint="list as many, by --list or in names=a|b|c",
            )
        return Ordered(np.array([matrix.names.index(name) for name in names[:k]], dtype=np.intp))
