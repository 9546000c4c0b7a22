"""What is drawn by chance in a measurement: exemplars, and the questions that are scored.

Every draw follows from the seed and from names (of the task and its questions), never from
positions or numbers of tasks, so that what is added later leaves earlier draws as they were.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fewbench._seeds import child_seed
from fewbench.errors import TransferError
from fewbench.transfer.task import Question, Task

IntArray = NDArray[np.intp]


def shuffled(questions: Sequence[Question], seed: int, *names: str | int) -> IntArray:
    """Return positions of the questions in an order that follows from their ids and the names."""
    by_id = np.array(sorted(range(len(questions)), key=lambda at: questions[at].id), dtype=np.intp)
    keys = [name if isinstance(name, int) else _number(name) for name in names]
    return by_id[np.random.default_rng(child_seed(seed, *keys)).permutation(len(questions))]


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


class Exemplars:
    """The questions of a task that may be shown, and which of them each seed shows.

    They are the task's pool. Without one, some of its questions are set aside, once for all seeds:
    as many as `sets` draws need, but no more than half of the questions.

    Parameters
    ----------
    task : Task
    number : int
        Exemplars of one draw.
    sets : int
        Draws that share no exemplar, where questions are set aside and suffice for them.
    seed : int

    Raises
    ------
    TransferError
        If there are too few questions.
    """

    def __init__(self, task: Task, number: int, sets: int, seed: int) -> None:
        self._task, self._number, self._seed = task, number, seed
        self.aside: frozenset[int] = frozenset()
        if task.pool:
            self.shown = task.pool
            if len(self.shown) < number:
                raise TransferError(
                    f"task {task.name!r} has {len(self.shown)} questions to draw {number} "
                    "exemplars from",
                    hint=f"--exemplars {len(self.shown)}, or a larger pool",
                )
            return
        questions = task.questions
        if len(questions) < 2 * number:
            raise TransferError(
                f"task {task.name!r} has {len(questions)} questions and no pool of exemplars; to "
                f"set {number} of them aside it must have {2 * number}",
                hint="give it a pool, use fewer exemplars, or leave it out",
            )
        most = min(sets, len(questions) // 2 // number)
        places = shuffled(questions, seed, "aside", task.name)[: most * number]
        self.aside = frozenset(places.tolist())
        self.shown = tuple(questions[at] for at in places)

    def of(self, seed: int) -> tuple[Question, ...]:
        """Return the exemplars of one of the measurement's seeds, all different."""
        number = self._number
        if self.aside and (seed + 1) * number <= len(self.shown):
            return self.shown[seed * number : (seed + 1) * number]
        order = shuffled(self.shown, self._seed, "exemplars", self._task.name, seed)
        return tuple(self.shown[at] for at in order[:number])

    @property
    def always_same(self) -> bool:
        """Whether all seeds show the same exemplars, in different orders."""
        return len(self.shown) == self._number
