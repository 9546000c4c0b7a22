"""Sources: what an estimate uses of source models, whether their whole table is there or a part."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fewbench._types import FloatArray, IntArray
from fewbench.errors import PackError
from fewbench.scores.benchmark import Average, Benchmark, ItemTable, positions_in
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.scores.scale import Scale

if TYPE_CHECKING:
    from fewbench.scores.table import Scores


@dataclass(frozen=True)
class Origin:
    """How a pack's method was set up on the whole table, and the fingerprint of the table.

    `provenance` and `subset` have the fields of these classes of `fewbench.methods`; no subset if
    items are chosen as answers arrive. `errors` has those of
    `fewbench.uncertainty.held_out.HeldOut`, `backtest` the method's errors by kind of target.
    """

    fingerprint: str
    provenance: Mapping[str, Any]
    subset: Mapping[str, Any] | None
    errors: Mapping[str, FloatArray]
    backtest: Sequence[Mapping[str, Any]] = ()


class Sources(ItemTable, ABC):
    """Source models with their scores: `Scores`, or what a pack holds of them.

    `learned` has what was learned from the whole table, by name.
    """

    models: pd.DataFrame
    scale: Scale
    probabilities: OptionProbabilities | None
    origin: Origin | None
    learned: dict[str, NDArray[Any]]
    if TYPE_CHECKING:  # subclasses compute them, or have them as fields

        @property
        def is_binary(self) -> bool:
            """Whether every score is 0 or 1."""

        @property
        def fingerprint(self) -> str:
            """A hash of everything that estimates depend on."""

        @property
        def whole(self) -> "Sources":
            """The models that ran most of the items."""

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.models)

    @cached_property
    def model_ids(self) -> list[str]:
        """Model ids, in order."""
        return [str(model) for model in self.models.index]

    @cached_property
    def benchmark(self) -> Benchmark:
        """The items without the models."""
        return Benchmark(self.items, self.scale, self.average)

    def model_positions(self, models: Iterable[str]) -> IntArray:
        """Return the positions of model ids; ScoresError names unknown ids."""
        return positions_in(self.models.index, list(models), "model")

    def remember(self, name: str, make: Callable[[], ArrayLike]) -> NDArray[Any]:
        """Return what was learned from the whole table under this name, or learn it now."""
        if name not in self.learned:
            self.learned[name] = np.asarray(make())
        return self.learned[name]

    @abstractmethod
    def averaged(self, average: Average) -> "Sources":
        """Return the same scores with another definition of the full score."""

    def _check_average(self, average: Average) -> None:
        if self.origin is not None and average != self.average:
            raise PackError(
                f"the pack's full score is a {self.average} average, not {average}",
                hint="leave out --average, or make a pack with it",
            )

    @abstractmethod
    def table(self) -> "Scores":
        """Return the whole table; PackError if a pack holds the chosen items alone."""

    @abstractmethod
    def columns(self, items: IntArray, *, filled: bool = False) -> FloatArray:
        """Return the scores on some items, shape (models, items); NaN where not run, or filled.

        Raises PackError for items that a pack does not hold.
        """

    @abstractmethod
    def full_scores(self) -> FloatArray:
        """Return each model's full score, shape (models,), missing cells filled."""

    @abstractmethod
    def task_scores(self) -> FloatArray:
        """Return each model's mean score per task, shape (models, tasks)."""
