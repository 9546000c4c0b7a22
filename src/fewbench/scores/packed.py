"""Scores of a pack that holds the source models' answers to its chosen items alone."""

from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench._names import counted
from fewbench._types import FloatArray, IntArray
from fewbench.errors import PackError
from fewbench.scores.benchmark import Average, check_labels
from fewbench.scores.scale import Scale
from fewbench.scores.table import Origin, Sources


@dataclass(eq=False, repr=False)
class ChosenAnswers(Sources):
    """The source models' answers to chosen items, and what was learned from all.

    Parameters
    ----------
    models, items : DataFrame
        As for `Scores`; all items of the benchmark.
    chosen : ndarray of int, shape (chosen,)
        Positions of the chosen items.
    answers, filled_answers : ndarray, shape (models, chosen)
        The answers, and the answers with missing cells filled.
    full, by_task : ndarray, shapes (models,) and (models, tasks)
        Scores on all items.
    is_binary : bool
        Whether every score of the table is 0 or 1.
    """

    models: pd.DataFrame
    items: pd.DataFrame
    scale: Scale
    average: Average
    origin: Origin
    chosen: IntArray
    answers: FloatArray
    filled_answers: FloatArray
    full: FloatArray
    by_task: FloatArray
    is_binary: bool
    learned: dict[str, NDArray[Any]]
    probabilities: None = None
    fingerprint: str = field(init=False)
    whole: Sources = field(init=False)

    def __post_init__(self) -> None:
        self.fingerprint, self.whole = self.origin.fingerprint, self
        self._place = np.full(len(self.items), -1)
        self._place[self.chosen] = np.arange(len(self.chosen))
        check_labels(self.models.index, "model")
        self._check_items()

    def table(self) -> NoReturn:
        """Raise PackError: the other items are not here."""
        kept = counted(len(self.chosen), "chosen item")
        raise PackError(
            f"the pack contains the source models' answers to its {kept} only",
            hint="use the table that the pack was made from, in its place or with --scores",
        )

    def averaged(self, average: Average) -> Sources:
        """Return these scores; PackError for another definition of the full score."""
        self._check_average(average)
        return self

    def columns(self, items: IntArray, *, filled: bool = False) -> FloatArray:
        """Return the scores on some of the chosen items, shape (models, items)."""
        places = self._place[items]
        if (places < 0).any():
            self.table()
        return (self.filled_answers if filled else self.answers)[:, places]

    def full_scores(self) -> FloatArray:
        """Return each model's full score, shape (models,)."""
        return self.full

    def task_scores(self) -> FloatArray:
        """Return each model's mean score per task, shape (models, tasks)."""
        return self.by_task
