"""Items of a few tasks only: representative tasks, and a selector inside them.

Without a selector inside, the subset is all items of the tasks. With one, both tasks and items are
fewer ("Random + BenTo", Zhao et al. 2024, Table 5).
"""

import hashlib
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from fewbench.errors import MethodError
from fewbench.methods.base import Selector
from fewbench.methods.needs import Extra, Need, extras_of, for_sources, needs_of
from fewbench.methods.subset import Subset
from fewbench.methods.written import Piece, check_hash, check_number, with_settings, write
from fewbench.scores import Scores
from fewbench.support import IntArray, child_seed, some
from fewbench_papers.bento.choosers import (
    FittedTasks,
    RidgeTasks,
    TaskChooser,
    describe_chooser,
    make_chooser,
)
from fewbench_papers.bento.matrix import TaskMatrix, of_items
from fewbench_papers.bento.transferability import MATRIX, Transferability

FROM_SCORES = (FittedTasks, RidgeTasks)  # these need no matrix setting
INSIDE = 1  # separates the draw inside the tasks from the draw of the tasks


@dataclass(frozen=True)
class WholeTasks:
    """All items of the tasks, task after task; a random part of the last task if necessary."""

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Take `budget` items, with tasks in the order of the items."""
        order = np.random.default_rng(seed).permutation(scores.n_items)
        order = order[np.argsort(scores.task_of[order], kind="stable")][:budget]
        return Subset(items=tuple(scores.item_ids[np.sort(order)]))


@dataclass(frozen=True)
class TaskSettings:
    """Settings that each task chooser has in addition to its own.

    - `tasks`: Number of tasks; 0 takes as few as hold the budget.
    - `share`: With `tasks=0`, the part of a task's items that counts as its size: 0.05 takes as
      many tasks as hold the budget in a twentieth of their items.
    - `matrix`: What tasks are compared by: a transferability file, `scores` of the source models,
      or `text` of the items (BM25). Required by choosers that compare tasks.
    - `hash`: Hash of the file from `describe`; other content is an error.
    """

    tasks: int = 0
    share: float = 1.0
    matrix: str = ""
    hash: str | None = None

    def __post_init__(self) -> None:
        check_number("tasks", self.tasks, 0)
        check_number("share", self.share, 1e-6, 1)


@dataclass(frozen=True)
class WithinTasks:
    """Choose tasks, then items of these tasks with the selector `inside`."""

    chooser: TaskChooser
    settings: TaskSettings = field(default_factory=TaskSettings)
    inside: Selector = field(default_factory=WholeTasks)

    @property
    def within(self) -> tuple[Selector, ...]:
        """The selector inside, if it takes a part of the tasks' items."""
        return () if isinstance(self.inside, WholeTasks) else (self.inside,)

    @property
    def needs(self) -> tuple[Need, ...]:
        """Several tasks, and what they are compared by."""
        needs = [Need("tasks", 2, "with one task there is nothing to choose from")]
        if self.settings.matrix == "text" and self.chooser.compares:
            needs.append(Need("task text", 1, "tasks are compared by their items' texts", True))
        if self.settings.matrix in ("", "scores") and self.chooser.compares:
            needs.append(Need("sources", 5, "few source models distinguish few tasks"))
        return (*needs, *needs_of(self.inside))

    @property
    def extras(self) -> tuple[Extra, ...]:
        """Those of the selector inside."""
        return extras_of(self.inside)

    def describe(self) -> str:
        """Return the parts as the command line writes them, and a hash of the file's content."""
        settings = self.settings
        if settings.matrix not in ("", "scores", "text") and settings.hash is None:
            settings = replace(settings, hash=_load(settings.matrix)[1])
        name, _, own_settings = describe_chooser(self.chooser).rstrip(")").partition("(")
        shared = write("", settings).strip("()")
        both = ",".join(filter(None, (own_settings, shared)))
        return f"{name}({both})" if both else name

    def for_sources(self, scores: Scores) -> "WithinTasks":
        """Return this selector with the one inside fixed."""
        return replace(self, inside=for_sources(self.inside, scores))

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Choose tasks that hold the budget, and `budget` of their items.

        MethodError if they hold fewer, or the matrix has other tasks.
        """
        sizes = np.bincount(scores.task_of, minlength=len(scores.tasks))
        notes: tuple[str, ...] = ()
        order: IntArray = np.zeros(1, dtype=np.intp)
        if len(scores.tasks) > 1:
            matrix = self._matrix(scores, sizes)
            order, notes = self._tasks(matrix, sizes, budget, seed)
        place = np.full(len(sizes), -1)
        place[order] = np.arange(len(order))
        items = np.flatnonzero(place[scores.task_of] >= 0)
        items = items[np.argsort(place[scores.task_of[items]], kind="stable")]
        if len(items) < budget:
            raise MethodError(
                f"the {len(order)} tasks have {len(items)} items, and the budget is {budget}",
                hint="take more tasks, or use tasks=0 for as many as needed",
            )
        taken = scores.take(items=items)
        inside = for_sources(self.inside, scores)  # as they are on all items
        subset = inside.select(taken, budget, child_seed(seed, INSIDE))
        return subset.model_copy(update={"notes": (*subset.notes, *notes)})

    def _tasks(
        self, matrix: TaskMatrix, sizes: IntArray, budget: int, seed: int
    ) -> tuple[IntArray, tuple[str, ...]]:
        if self.settings.tasks:
            k = self.settings.tasks
            if k > len(sizes):
                raise MethodError(f"tasks={k}, but there are {len(sizes)}")
            ordered = self.chooser.order(matrix, k, seed)
            return ordered.tasks, ordered.notes
        needed = min(budget / self.settings.share, int(sizes.sum()))
        k = 1
        while True:  # a choice of more tasks need not contain one of fewer
            ordered = self.chooser.order(matrix, k, seed)
            sizes_held = np.cumsum(sizes[ordered.tasks])
            if sizes_held[-1] >= needed - 1e-9 or k == len(sizes):
                enough = int(np.searchsorted(sizes_held, needed - 1e-9)) + 1
                return ordered.tasks[: enough if ordered.nested else k], ordered.notes
            mean = sizes_held[-1] / k
            k = min(len(sizes), k + max(1, int((needed - sizes_held[-1]) / (2 * mean))))

    def _matrix(self, scores: Scores, sizes: IntArray) -> TaskMatrix:
        if self.settings.matrix in ("", "scores") or not self.chooser.compares:
            return TaskMatrix.of_scores(scores)
        if self.settings.matrix == "text":
            return of_items(scores)
        transfer, digest = _load(self.settings.matrix)
        check_hash(self.settings.matrix, digest, self.settings.hash)
        lacking = [task for task in scores.tasks if task not in transfer.tasks]
        if lacking:
            raise MethodError(
                f"{self.settings.matrix}: {len(lacking)} of {len(scores.tasks)} tasks are not in "
                f"it: {some(lacking)}",
                hint=f"its tasks are {some(transfer.tasks)}",
            )
        at = np.array([transfer.tasks.index(task) for task in scores.tasks])
        whole = TaskMatrix.of_transfer(transfer)
        ease = None if whole.ease is None else whole.ease[at]
        macro = scores.average == "macro"
        return TaskMatrix(whole.rows[at], tuple(scores.tasks), sizes, ease, whole.kind, macro)


def read_within(piece: Piece) -> WithinTasks:
    """Make a selector from a piece such as bento-le(components=5,tasks=3,matrix=FILE)."""
    shared = {setting.name for setting in fields(TaskSettings)}
    own_settings = {key: value for key, value in piece.settings.items() if key not in shared}
    shared_settings = {key: value for key, value in piece.settings.items() if key in shared}
    chooser = make_chooser(Piece(piece.name, own_settings))
    if (
        chooser.compares
        and not isinstance(chooser, FROM_SCORES)
        and not shared_settings.get("matrix")
    ):
        raise MethodError(
            f"{piece.name} compares tasks, but no matrix is given",
            hint=f"use {piece.name}(matrix=FILE) for transferability, matrix=scores for the source "
            "models' scores, or matrix=text for the items' texts",
        )
    return WithinTasks(chooser, with_settings(TaskSettings, shared_settings, piece.name))


def _load(path: str) -> tuple[Transferability, str]:
    source = Path(path)
    if source.is_dir():
        source = source / MATRIX
    if not source.is_file():
        raise MethodError(
            f"{source}: no such file",
            hint="matrix=FILE that fewbench transfer measure wrote, or scores, or text",
            kind="missing",
        )
    now = source.stat()
    return _read_matrix(source, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=2)
def _read_matrix(source: Path, changed: int, size: int) -> tuple[Transferability, str]:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    return Transferability.load(source), digest
