"""What tasks are compared by: a row of numbers for each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.errors import MethodError
from fewbench.methods.tasks.transferability import Transferability, sizes_of
from fewbench.scores import Scores

PAST_SCORES = "past models' scores"


@dataclass(frozen=True, eq=False)
class TaskMatrix:
    """Tasks, a row of numbers for each, and how large and how easy they are.

    Attributes
    ----------
    rows : ndarray, shape (tasks, columns)
        Transferability to each target, scores of each past model, or BM25 with each task's text.
    names : tuple of str, length tasks
    sizes : ndarray, shape (tasks,)
        Questions of each task; all 1 where they are not known.
    ease : ndarray, shape (tasks,), optional
        What one model, or the past models on average, score on each task.
    kind : str
        What the rows are, in words.
    weigh_tasks : bool
        Whether the full score is the mean over tasks, not over questions.
    models, families : tuple of str
        Of past scores: the names of the columns' models, and their families ("" for none).
    """

    rows: FloatArray
    names: tuple[str, ...]
    sizes: IntArray
    ease: FloatArray | None
    kind: str
    weigh_tasks: bool = False
    models: tuple[str, ...] = ()
    families: tuple[str, ...] = ()

    @property
    def sizes_known(self) -> bool:
        """Whether the number of questions of each task is known."""
        return bool((self.sizes > 1).any())

    def with_sizes(self, sizes: Mapping[str, int]) -> "TaskMatrix":
        """Return the same rows with known numbers of questions; MethodError if one lacks."""
        return replace(self, sizes=sizes_of(self.names, sizes))

    @cached_property
    def groups(self) -> IntArray:
        """Number the groups of models that count as one, shape (columns,) (see `column_groups`)."""
        return column_groups(self.rows.T, self.families)

    def of_models(self, models: IntArray) -> "TaskMatrix":
        """Return past scores of some models, given by position."""
        rows = np.ascontiguousarray(self.rows[:, models])
        return replace(
            self,
            rows=rows,
            ease=rows.mean(axis=1),
            models=tuple(self.models[at] for at in models) if self.models else (),
            families=tuple(self.families[at] for at in models) if self.families else (),
        )

    @property
    def weights(self) -> FloatArray:
        """What each task counts in the full score, shape (tasks,), summing to 1."""
        counts = np.ones(len(self.names)) if self.weigh_tasks else self.sizes
        return np.asarray(counts / counts.sum())

    @classmethod
    def of_transfer(
        cls,
        transfer: Transferability,
        seeds: IntArray | None = None,
        *,
        weigh_tasks: bool = False,
    ) -> "TaskMatrix":
        """Take the mean over seeds, all or some; ease is known where every task was a target."""
        rows = transfer.mean if seeds is None else transfer.mean_over(seeds)
        ease = rows.mean(axis=0) if transfer.is_square else None
        sizes = transfer.n_questions
        return cls(rows, transfer.tasks, sizes, ease, "in-context transferability", weigh_tasks)

    @classmethod
    def of_scores(cls, scores: Scores) -> "TaskMatrix":
        """Take past models' scores on each task, shape (tasks, models)."""
        rows = np.ascontiguousarray(scores.task_scores().T)
        sizes = np.bincount(scores.task_of, minlength=len(rows))
        return cls(
            rows,
            tuple(scores.tasks),
            sizes,
            rows.mean(axis=1),
            PAST_SCORES,
            scores.average == "macro",
            tuple(scores.model_ids),
            families_of(scores),
        )

    def __post_init__(self) -> None:
        if len(self.names) < 2:
            raise MethodError("there is one task: nothing to choose from")
        if not np.isfinite(self.rows).all():
            raise MethodError(f"{self.kind} of the tasks are not all known")


def families_of(scores: Scores) -> tuple[str, ...]:
    """Return each model's family, "" where none is known."""
    if "family" not in scores.models:
        return ("",) * scores.n_models
    return tuple(map(str, scores.models["family"].fillna("")))


def column_groups(rows: FloatArray, families: tuple[str, ...] = ()) -> IntArray:
    """Number the groups of models that count as one: a family's, and those with the same scores.

    Parameters
    ----------
    rows : ndarray, shape (models, tasks)
    families : tuple of str
        Of each model, "" for none; may be left out.

    Returns
    -------
    ndarray of int, shape (models,)

    Examples
    --------
    >>> column_groups(np.array([[0.1], [0.2], [0.3], [0.2]]), ("x", "", "x", "")).tolist()
    [0, 1, 0, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(rows)
    same = np.unique(np.round(rows, 12), axis=0, return_inverse=True)[1].reshape(n)
    known = np.array([bool(family) for family in families], dtype=bool)
    _, family = np.unique(np.array(families, dtype=object), return_inverse=True)
    # Models are joined to a node for their scores and to one for their family.
    at, to = np.arange(n), [same + n]
    rows_of, offset = [at], n + int(same.max(initial=-1)) + 1
    if known.any():
        rows_of.append(np.flatnonzero(known))
        to.append(family[known] + offset)
    ends = np.concatenate(rows_of), np.concatenate(to)
    size = offset + n
    graph = coo_array((np.ones(len(ends[0])), ends), (size, size))
    labels = connected_components(graph, directed=False)[1][:n]
    _, first, found = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[found], dtype=np.intp)
