"""Scores of a pack: of the source models, only what the pack's method needs.

A pack keeps the answers of the source models either on the chosen items alone, or on all items. It
also keeps what fewbench learned from the whole table (`Scores.remember`), and the method's errors
on the source models.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fewbench._names import counted
from fewbench._types import FloatArray, IntArray
from fewbench.errors import PackError
from fewbench.scores.benchmark import Average, check_labels
from fewbench.scores.scale import Scale
from fewbench.scores.table import Scores


class Columns:
    """Answers on some items of a benchmark, taken by the items' positions as `columns[:, items]`.

    Taking anything else raises PackError, so no method mistakes missing answers for results.

    >>> columns = Columns(np.array([[1.0, 0.0]]), np.array([2, 5]), 6)
    >>> columns[:, np.array([5, 2])].tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, values: FloatArray, kept: IntArray, n_items: int) -> None:
        self._values = values
        self._place = np.full(n_items, -1)
        self._place[kept] = np.arange(len(kept))

    def __getitem__(self, key: Any) -> FloatArray:
        """Return the answers on items, shape (models, items)."""
        if not (isinstance(key, tuple) and len(key) == 2 and key[0] == slice(None)):
            self._refuse()
        places = self._place[key[1]]
        if (np.asarray(places) < 0).any():
            self._refuse()
        return self._values[:, places]

    def __array__(self, *_: object, **__: object) -> NoReturn:
        """Raise PackError: the other items are not here."""
        self._refuse()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # asked by Python and numpy
            raise AttributeError(name)
        self._refuse()

    def _refuse(self) -> NoReturn:
        kept = counted(int((self._place >= 0).sum()), "chosen item")
        raise PackError(
            f"the pack holds the source models' answers on its {kept} only",
            hint="use the scores that the pack was made from, or a pack that is made for this",
        )


@dataclass(frozen=True)
class Origin:
    """How a pack's method was set up on the whole table.

    Attributes
    ----------
    provenance : mapping
        Fields of `fewbench.methods.Provenance`.
    subset : mapping, optional
        Fields of `fewbench.methods.Subset`; None if the method chooses items as answers arrive.
    errors : mapping of str to ndarray
        Errors on held-out sources: the fields of `fewbench.evaluation.errors.HeldOut`.
    """

    provenance: Mapping[str, Any]
    subset: Mapping[str, Any] | None = None
    errors: Mapping[str, FloatArray] = field(default_factory=dict)


class PackedScores(Scores):
    """Scores that a pack holds. Made by `whole_table` or `chosen_columns`."""

    origin: Origin
    is_whole: bool
    """Whether the answers to all items are here."""

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.models)

    @property
    def whole(self) -> Scores:
        """The scores themselves: a pack is made of models that ran most of the items."""
        return self

    def full_scores(self) -> FloatArray:
        """Return each model's full score, shape (models,)."""
        return super().full_scores() if self.is_whole else self._kept("full")

    def task_scores(self) -> FloatArray:
        """Return each model's mean score per task, shape (models, tasks)."""
        return super().task_scores() if self.is_whole else self._kept("tasks")

    def _kept(self, name: str) -> FloatArray:
        found: FloatArray = vars(self)["sums"][name]
        return found

    def remember(self, name: str, make: Callable[[], ArrayLike]) -> NDArray[Any]:
        """Return what was learned from the whole table; PackError if the pack does not have it."""
        if not self.is_whole and name not in vars(self)["learned"]:
            raise PackError(
                f"the pack does not hold what this needs ({name})",
                hint="use the scores that the pack was made from",
            )
        return super().remember(name, make)

    def averaged(self, average: Average) -> Scores:
        """Return these scores; PackError for another definition of the full score."""
        if average != self.average:
            raise PackError(
                f"the pack's full score is a {self.average} average, not {average}",
                hint="leave out --average, or make a pack with it",
            )
        return self

    def take(self, models: ArrayLike | None = None, items: ArrayLike | None = None) -> Scores:
        """Return the scores of some models and items; PackError if the pack lacks answers."""
        return self._plain().take(models, items)

    def complete(self) -> Scores:
        """Return the scores with missing cells filled; PackError if the pack lacks answers."""
        return self._plain().complete()

    def _plain(self) -> Scores:
        values = self.held if self.is_whole else np.asarray(self.values)  # which refuses
        return Scores(values, self.models, self.items, None, self.scale, self.average)

    def __repr__(self) -> str:
        """Return the size of the table in a line."""
        return (
            f"PackedScores: {counted(self.n_models, 'source model')}, "
            f"{counted(self.n_items, 'item')}, {counted(len(self.tasks), 'task')}"
        )


def whole_table(
    scores: Scores, origin: Origin, learned: Mapping[str, NDArray[Any]], fingerprint: str
) -> PackedScores:
    """Return the scores of a pack with the answers to all items.

    `fingerprint` is that of the table that the pack was made from.
    """
    made = _made(scores.models, scores.items, scores.scale, scores.average)
    kept = {name: value for name, value in vars(scores).items() if name in ("_given", "_whole")}
    vars(made).update(kept, is_whole=True, origin=origin)
    vars(made).update(learned=dict(learned), fingerprint=fingerprint, digest=fingerprint)
    return made


def chosen_columns(
    models: pd.DataFrame,
    items: pd.DataFrame,
    scale: Scale,
    average: Average,
    *,
    kept: IntArray,
    values: FloatArray,
    filled: FloatArray,
    full: FloatArray,
    tasks: FloatArray,
    is_binary: bool,
    origin: Origin,
    learned: Mapping[str, NDArray[Any]],
    fingerprint: str,
) -> PackedScores:
    """Return the scores of a pack with the answers to the chosen items alone.

    Parameters
    ----------
    models, items : DataFrame
        As for `Scores`; all items of the benchmark.
    kept : ndarray of int, shape (kept,)
        Positions of the chosen items.
    values, filled : ndarray, shape (models, kept)
        The answers, and the answers with missing cells filled.
    full, tasks : ndarray, shapes (models,) and (models, tasks)
        Scores on all items.
    is_binary : bool
        Whether every score of the table is 0 or 1.
    """
    made = _made(models, items, scale, average)
    columns = cast(FloatArray, Columns(filled, kept, len(items)))
    vars(made).update(
        cells=(columns_run := cast(FloatArray, Columns(values, kept, len(items)))),
        _whole=columns_run,
        filled=columns,
        is_whole=False,
        is_binary=is_binary,
        sums={"full": full, "tasks": tasks},
        origin=origin,
        learned=dict(learned),
        fingerprint=fingerprint,
        digest=fingerprint,
    )
    return made


def _made(
    models: pd.DataFrame, items: pd.DataFrame, scale: Scale, average: Average
) -> PackedScores:
    made = PackedScores.__new__(PackedScores)
    vars(made).update(models=models, items=items, probabilities=None, scale=scale, average=average)
    check_labels(models.index, "model")
    made._check_items()
    return made
