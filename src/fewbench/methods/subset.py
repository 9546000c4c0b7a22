"""Subset: the chosen items, with weights and where they come from."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from fewbench._json import Frozen, parse_json
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench._types import FloatArray
from fewbench.algorithms.sampling import whole_chances
from fewbench.errors import MethodError
from fewbench.scores import Average, Scores


class Provenance(Frozen):
    """What made a subset or an estimate: enough to repeat it, and to refuse other scores.

    `method` is the user's method name, `settings` its parts written out. `credit` says where the
    source models' results were published, with license and citation.
    """

    method: str
    settings: str
    budget: int
    seed: int
    fingerprint: str
    average: Average
    version: str
    credit: str = ""


class Subset(Frozen):
    """Chosen items and their weights, in the order of choice.

    A subset is meaningful only with its method's predictor; `provenance` names both.

    Attributes
    ----------
    items : tuple of str
        Item ids, each once.
    weights : tuple of float, optional
        Each item's share of the estimate, 0 or more, with the sum 1. By default the items' weights
        in the full score.
    chances : tuple of float or None, optional
        The probability, above 0 and at most 1, with which each item was drawn, or None for an item
        that was chosen. By default all were chosen.
    notes : tuple of str
        Notes for the user on the choice.
    provenance : Provenance, optional
        Set by fewbench.

    Examples
    --------
    >>> subset = Subset(items=("q1", "q7"), weights=(0.25, 0.75))
    >>> Subset.from_json(subset.to_json()) == subset
    True
    """

    items: Annotated[tuple[str, ...], Field(min_length=1)]
    weights: tuple[float, ...] | None = None
    chances: tuple[Annotated[float, Field(gt=0, le=1)] | None, ...] | None = None
    notes: tuple[str, ...] = ()
    provenance: Provenance | None = None

    @model_validator(mode="after")
    def _check(self) -> "Subset":
        if len(set(self.items)) < len(self.items):
            raise ValueError("an item appears twice")
        for name, values in (("weight", self.weights), ("chance", self.chances)):
            if values is not None and len(values) != len(self.items):
                n_items = counted(len(self.items), "item")
                raise ValueError(f"{counted(len(values), name)} for {n_items}")
        weights = self.weights or (1.0,)
        if not (all(0 <= weight < math.inf for weight in weights) and sum(weights) > 0):
            raise ValueError("weights are negative, not finite or all 0")
        return self

    @property
    def is_sample(self) -> bool:
        """Whether all items were drawn with known probabilities."""
        return self.chances is not None and None not in self.chances

    def weights_over(self, scores: Scores) -> FloatArray:
        """Return the subset's weights, else the items' weights in the full score, shape (n,)."""
        if self.weights is None:
            return scores.item_weights[scores.positions(self.items)]
        return np.array(self.weights)

    def chances_over(self, scores: Scores) -> FloatArray | None:
        """Return every item's chance to be drawn, shape (items,), or None if some were chosen."""
        if not self.is_sample:
            return None
        chances = np.full(scores.n_items, np.nan)
        chances[scores.positions(self.items)] = self.chances
        return whole_chances(chances, len(self.items))

    def at(
        self, places: Sequence[int], scores: Scores, *, is_same_question: bool = False
    ) -> "Subset":
        """Return the items at these places, weighed for these scores.

        Items of a sample weigh what they count over their chance. Weights that a method gave by
        another rule, such as the sizes of clusters, stay in proportion if the full score is the
        same mean of the items that are left; else MethodError.
        """
        items = tuple(self.items[at] for at in places)
        if not items:
            raise MethodError(
                "none of the chosen items is in the scores", hint="use scores of the same items"
            )
        chances = None if self.chances is None else tuple(self.chances[at] for at in places)
        weights = None
        if self.weights is not None:
            if not self.is_sample and not is_same_question:
                raise MethodError(
                    "the method weighed its items for the scores that it chose them from",
                    hint="ask the question that they were chosen for, or use a method whose items "
                    "are a sample or have no weights, such as fewbench, aipw or random-ridge",
                    kind="changed",
                )
            over = np.array([self.weights[at] for at in places])
            if self.is_sample:
                over = scores.item_weights[scores.positions(items)] / np.array(chances)
            if not over.any():
                raise MethodError(
                    "the chosen items that are left have no weight in the estimate",
                    hint="start a new evaluation with the scores of now",
                )
            weights = tuple((over / over.sum()).tolist())
        return self.model_copy(update={"items": items, "weights": weights, "chances": chances})

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per item, in the order of choice, with its weight if there are weights."""
        index = pd.Index(self.items, name="item")
        return pd.DataFrame({} if self.weights is None else {"weight": self.weights}, index=index)

    def __repr__(self) -> str:
        """Return the number of items, the first ones and the method."""
        by_method = ""
        if (origin := self.provenance) is not None:
            is_part = len(self.items) < origin.budget
            batch = f", the first batch of {origin.budget}" if is_part else ""
            by_method = f" chosen by {origin.method}{batch}"
        return f"Subset: {counted(len(self.items), 'item')}{by_method}: {some(self.items)}"

    def __str__(self) -> str:
        """Return the same as `repr`."""
        return repr(self)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(max_rows=20))

    def to_json(self) -> str:
        """Return the subset as indented JSON."""
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Subset":
        """Read a subset from JSON; MethodError names what does not fit."""
        return parse_json(cls, text, "not a subset", MethodError)


@dataclass(frozen=True)
class Given:
    """A user's own subset, whatever the scores."""

    subset: Subset

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Return the items."""
        return self.subset

    def describe(self) -> str:
        """Return the number of items, and a hash of them and their weights."""
        content = self.subset.model_dump_json(include={"items", "weights"})
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        return f"given(items={len(self.subset.items)},hash={digest})"
