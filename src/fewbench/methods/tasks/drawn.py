"""Random tasks."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench.methods.tasks.chooser import Ordered
from fewbench.methods.tasks.matrix import TaskMatrix


@dataclass(frozen=True)
class RandomTasks:
    """Tasks drawn at random; every set of a size is equally likely."""

    compares: ClassVar[bool] = False

    def order(self, matrix: TaskMatrix, k: int, seed: int) -> Ordered:
        """Draw k tasks; a larger k extends a smaller one."""
        return Ordered(np.random.default_rng(seed).permutation(len(matrix.names))[:k])
