"""What is drawn by chance in a measurement: exemplars, and the questions that are scored.

Every draw follows from the seed and from names (of the task and its questions), never from
positions or numbers of tasks, so that what is added later leaves earlier draws as they were.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fewbench._names import counted, some
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
                    f"task {task.name!r} has {counted(len(self.shown), 'question')} to draw "
                    f"{counted(number, 'exemplar')} from",
                    hint=f"--exemplars {len(self.shown)}, or a larger pool",
                )
            return
        questions = task.questions
        if len(questions) < 2 * number:
            raise TransferError(
                f"task {task.name!r} has {counted(len(questions), 'question')} and no pool of "
                f"exemplars; to set {number} of them aside it must have {2 * number}",
                hint=(f"--exemplars {most}, " if (most := len(questions) // 2) else "")
                + "a pool for it, or leave it out",
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

    def shared(self, seeds: int) -> bool:
        """Whether some of so many seeds share exemplars for too few could be set aside."""
        return bool(self.aside) and seeds * self._number > len(self.shown)

    @property
    def always_same(self) -> bool:
        """Whether all seeds show the same exemplars, in different orders."""
        return len(self.shown) == self._number


def notes_on_draws(
    names: Sequence[str],
    exemplars: Sequence[Exemplars],
    seeds: int,
    left_out: Mapping[str, Sequence[str]],
) -> tuple[str, ...]:
    """Return what a reader of the result should know about the draws, in words.

    Parameters
    ----------
    names : sequence of str
        Of the tasks.
    exemplars : sequence of Exemplars
        Theirs.
    seeds : int
    left_out : mapping of str to sequences of str
        Ids of questions that are not scored for they equal exemplars, of tasks that have some.
    """
    both = list(zip(names, exemplars, strict=True))
    notes = [
        f"{name}: not scored, for they equal exemplars: {some(ids)}"
        for name, ids in left_out.items()
    ]
    same = [name for name, each in both if each.always_same]
    if same and seeds > 1:
        notes.append(
            f"as many questions to draw exemplars from as exemplars: {some(same)}; their "
            "seeds differ in the order of exemplars only"
        )
    if few := [name for name, each in both if each.shared(seeds) and name not in same]:
        notes.append(
            f"too few questions set aside for {counted(seeds, 'seed')}, so that some of them "
            f"share exemplars: {some(few)}"
        )
    if aside := sum(len(each.aside) for each in exemplars):
        tasks = sum(bool(each.aside) for each in exemplars)
        notes.append(
            f"{counted(aside, 'question')} of {counted(tasks, 'task')} without a pool "
            f"{'is' if aside == 1 else 'are'} set aside as exemplars"
        )
    return tuple(notes)
