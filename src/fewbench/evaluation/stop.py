"""Stop: when a target has been run on enough items."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench.errors import EvaluationError, MethodError
from fewbench.methods import Method
from fewbench.scores import Scores

COST = "cost"
"""Column of the items that holds what it costs to run each."""
FEWEST = 10
"""Answers before a half width may end the run."""


class Stop(BaseModel):
    """When to stop asking a target: whichever limit is reached first.

    Attributes
    ----------
    items : int, optional
        Most items to run.
    half_width : float, optional
        Stop once the interval is at most this much to either side of the estimate, on the scale
        of the scores.
    level : float
        Level of that interval.
    cost : float, optional
        Most to spend, in the unit of the items' column `cost`.

    Examples
    --------
    >>> Stop(items=100, half_width=0.03).describe()
    'at most 100 items, or an interval of ±0.03 at 90%'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: int | None = None
    half_width: float | None = Field(default=None, gt=0)
    level: float = Field(default=0.9, gt=0, lt=1)
    cost: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _check(self) -> "Stop":
        if self.items is None and self.half_width is None and self.cost is None:
            raise ValueError("give items, half_width or cost")
        return self

    def describe(self) -> str:
        """Return the limits in words."""
        said = []
        if self.items is not None:
            said.append(f"at most {self.items} items")
        if self.cost is not None:
            said.append(f"at most {self.cost:g} of cost")
        if self.half_width is not None:
            said.append(f"an interval of ±{self.half_width:g} at {self.level:.0%}")
        return ", or ".join(said)

    def budget(self, method: Method, scores: Scores) -> int:
        """Return how many items a method may choose.

        Raises
        ------
        MethodError
            If `items` is missing and the method must know how many items it may ask, or is out of
            range.
        EvaluationError
            If `cost` is given and the items have no costs.
        """
        n_items = scores.n_items
        if self.items is not None:
            if not 1 <= self.items <= n_items:
                raise MethodError(
                    f"a budget of {self.items} items, where there are {n_items}",
                    hint=f"use a budget from 1 to {n_items}",
                )
            return self.items
        if self.cost is not None:
            mean = float(costs_of(scores).mean())
            return max(1, min(n_items, int(self.cost / mean))) if mean > 0 else n_items
        if not method.extends:
            raise MethodError(
                f"{method.describe()} has to know how many items it may choose",
                hint="add a budget of items, the most that you would run",
            )
        return n_items


def costs_of(scores: Scores) -> FloatArray:
    """Return what it costs to run each item, shape (items,).

    Raises
    ------
    EvaluationError
        If the items have no column `cost`, or a cost is missing or negative.
    """
    import pandas as pd

    if COST not in scores.items:
        raise EvaluationError(
            "the items have no column 'cost'",
            hint="import the scores with --items FILE, a table with columns item and cost",
        )
    costs = pd.to_numeric(scores.items[COST], errors="coerce").to_numpy(dtype=np.float64)
    if not (costs >= 0).all():
        bad = scores.item_ids[~(costs >= 0)]
        raise EvaluationError(
            f"{counted(len(bad), 'item')} without a cost of 0 or more, such as {bad[0]!r}",
            hint="give every item a number in the column 'cost'",
        )
    return np.asarray(costs)
