"""Start of an evaluation: when to stop, and checks of targets, scores and items."""

import math
from collections.abc import Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from pydantic import Field, model_validator

from fewbench._json import Frozen
from fewbench._names import counted, some
from fewbench._types import FloatArray
from fewbench.algorithms.sampling import LEAST_OF_TASK, items_of_share
from fewbench.errors import EvaluationError, MethodError
from fewbench.methods import Method, Provenance, StaticMethod, Subset
from fewbench.methods.subset import Given
from fewbench.scores import Scores, read_costs
from fewbench.scores.costs import AMOUNT, amount, factor_and_unit

COST = "cost"
"""Column of the items with the cost of running each."""
BENCHMARK = "benchmark.parquet"
"""File in the folder of an evaluation without sources: its items."""
SCORES = "scores.parquet"
"""File in the folder of an evaluation whose sources include evaluated models: the sources."""


class Stop(Frozen):
    """When to stop asking a target: at the limit that is reached first.

    Attributes
    ----------
    items : int, optional
        Most items to run.
    half_width : float, optional
        Stop once half of the interval's width is at most this, on the scale of the scores.
    level : float
        Level of that interval.
    cost : float, optional
        Most to spend per target, in the unit of the items' column `cost`. A run (`fewbench.run`)
        counts the costs that the runner reports. A text may name the unit, as in `75 $`.
    unit : str
        Unit of the cost; only for what is shown.
    tokens : int, optional
        Most tokens per target; for runs only.
    seconds : float, optional
        Longest time of all targets together, over all runs in the folder; for runs only.
    repeats : int
        How many times each item is run: a new round over the items begins once all of them ran.
        Its score is the mean of its answers.
    epochs : int
        How many answers a runner gives to an item at a time, each at the cost of one.

    Examples
    --------
    >>> Stop(items=100, half_width=0.03).describe()
    'at most 100 items, or an interval of ±0.03 at 90%'
    >>> Stop(cost=75, unit="$").describe()
    'at most $75.00'
    """

    items: int | None = None
    half_width: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    level: float = Field(default=0.9, gt=0, lt=1)
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    unit: str = ""
    tokens: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    repeats: int = Field(default=1, ge=1)
    epochs: int = Field(default=1, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _with_unit(cls, values: Any) -> Any:
        """Take the unit from a cost such as 75 $."""
        cost = values.get("cost") if isinstance(values, dict) else None
        amounts = AMOUNT.fullmatch(cost) if isinstance(cost, str) else None
        if amounts is None:
            return values
        factor, unit = factor_and_unit(amounts)
        number = amounts["number"] if factor == 1 else factor * float(amounts["number"])
        return values | {"cost": number, "unit": unit}

    @model_validator(mode="after")
    def _check(self) -> "Stop":
        limits = (self.items, self.half_width, self.cost, self.tokens, self.seconds)
        if all(limit is None for limit in limits):
            raise ValueError("give items, half_width, cost, tokens or seconds")
        return self

    @property
    def kept(self) -> tuple[int | None, float | None, float | None]:
        """The limits that an evaluation keeps; its cost, tokens, time, repeats may become others.

        These end an evaluation whatever the answers are. A half width does not.
        """
        return self.items, self.half_width, None if self.half_width is None else self.level

    def check_without_run(self, scores: Scores) -> None:
        """Raise EvaluationError for a limit that only a run can keep."""
        if self.tokens is not None or self.seconds is not None:
            limit = "tokens" if self.seconds is None else "time"
            raise EvaluationError(
                f"a limit on {limit} needs a model that fewbench runs",
                hint="use fewbench run (in Python fewbench.run), or a number of items",
                kind="unsupported",
            )
        if self.cost is not None:
            costs_of(scores)

    def describe(self) -> str:
        """Return the limits in words."""
        limits = []
        if self.items is not None:
            limits.append(f"at most {self.items} items")
        if self.cost is not None:
            limits.append(f"at most {amount(self.cost, self.unit or 'of cost')}")
        if self.tokens is not None:
            limits.append(f"at most {self.tokens:,} tokens")
        if self.seconds is not None:
            limits.append(f"at most {self.seconds / 60:,.3g} minutes")
        if self.half_width is not None:
            limits.append(f"an interval of ±{self.half_width:g} at {self.level:.0%}")
        times = f", each run {self.repeats} times" if self.repeats > 1 else ""
        return ", or ".join(limits) + times

    def budget(self, method: Method, scores: Scores) -> int:
        """Return how many items a method may choose.

        Where only a cost is given: as many as the cheapest items would be, or as the mean cost
        allows if the method needs to know the number. Where only the width of the interval is
        given: three times what plain random sampling needs if its width is checked only at the end.

        Raises
        ------
        MethodError
            If `items` is out of range, or missing and the method needs it.
        ScoresError
            If `cost` is given and the items have no costs.
        EvaluationError
            If `half_width` is not narrower than the scale.
        """
        n_items, widest = scores.n_items, scores.scale.span / 2
        if self.half_width is not None and self.half_width >= widest:
            raise EvaluationError(
                f"every interval is narrower than a half width of {self.half_width:g}: scores are "
                f"from {scores.scale.low:g} to {scores.scale.high:g}",
                hint=f"use a half width below {widest:g}, such as {0.06 * widest:g}",
            )
        if self.items is not None:
            check_budget(self.items, n_items)
            return self.items
        if self.cost is not None and COST in scores.items:
            costs = self.epochs * costs_of(scores)
            costs = np.sort(costs) if method.extends else np.full(n_items, costs.mean())
            return max(1, int((np.cumsum(costs) <= self.cost * (1 + 1e-9)).sum()))
        if not method.extends:
            raise MethodError(
                f"{method.describe()} needs a number of items",
                hint="add a budget: the most items to run",
                kind="missing",
            )
        if self.half_width is not None:
            half_width = self.half_width / scores.scale.span
            return min(n_items, 3 * _items_for(half_width, self.level, n_items))
        return n_items


def _items_for(half_width: float, level: float, n_items: int) -> int:
    """Return how many items plain random sampling needs for an interval, at a score of .5."""
    from scipy.special import ndtri

    n = (float(ndtri(0.5 + level / 2)) / (2 * half_width)) ** 2
    return math.ceil(n / (1 + (n - 1) / n_items))


def costs_of(scores: Scores) -> FloatArray:
    """Return the cost of running each item, shape (items,); ScoresError without usable ones."""
    return read_costs(scores, COST)


def count_items(budget: int | str, scores: Scores | None) -> int:
    """Return the number of items of a budget: a number, or a share such as 10%.

    A share is that share of each task's items, and at least 20 items of each task, or all of a
    smaller one.

    Raises
    ------
    MethodError
        If the text is neither a number nor a share above 0% and up to 100%, or the items are
        unknown.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> scores = simulate(n_models=10, n_items=400, n_tasks=4)
    >>> np.bincount(scores.task_of).tolist(), count_items("25%", scores)
    ([37, 81, 121, 161], 110)
    """
    if isinstance(budget, SupportsIndex):
        return index(budget)
    text = str(budget).strip()
    try:
        if not text.endswith("%"):
            return int(text)
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise MethodError(
            f"the budget {text!r} is not a number of items",
            hint="write a number, or a share as in 10%; fewbench plan, start and run take a sum of "
            "money as --cost",
            kind="range",
        )
    if scores is None:
        raise MethodError(
            f"budget {text}: the items are not known before the run", hint="give a number of items"
        )
    return items_of_share(share, np.bincount(scores.task_of))


def share_note(budget: int | str, scores: Scores) -> str | None:
    """Return how many items a share is, and why, or None for a number of items.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> share_note("25%", simulate(n_models=10, n_items=400, n_tasks=4))
    "110 items: 25% of each task's items, at least 20 of each"
    """
    if isinstance(budget, int) or not budget.strip().endswith("%"):
        return None
    share, n_items = budget.strip(), count_items(budget, scores)
    return f"{n_items:,} items: {share} of each task's items, at least {LEAST_OF_TASK} of each"


def check_budget(budget: int, n_items: int) -> None:
    """Raise MethodError unless 1 <= budget <= n_items."""
    if not 1 <= budget <= n_items:
        raise MethodError(
            f"budget of {budget:,}: the benchmark has {counted(n_items, 'item')}",
            hint=f"use a budget from 1 to {n_items:,}",
            kind="range",
        )


def check_subset(
    subset: Subset, wanted: Provenance, scores: Scores, method: StaticMethod
) -> Subset:
    """Return a subset for these scores, with a note if it was chosen from others.

    The user's own subset has no provenance. EvaluationError if the budget or method differ, or if
    it is a random sample of other items.
    """
    if len(subset.items) != wanted.budget:
        raise EvaluationError(
            f"the subset has {counted(len(subset.items), 'item')}, but the budget is "
            f"{wanted.budget:,}"
        )
    provenance = subset.provenance
    if provenance is not None and (provenance.settings, provenance.seed) != (
        wanted.settings,
        wanted.seed,
    ):
        raise EvaluationError(
            f"the subset was chosen by {provenance.method} ({provenance.settings}) with "
            f"seed {provenance.seed}, not by {wanted.method} ({wanted.settings}) with seed "
            f"{wanted.seed}",
            hint="use the subset with its method, or remove its provenance to keep only its items",
        )
    if provenance is None or provenance.fingerprint == wanted.fingerprint:
        return subset
    if lacking := [item for item in subset.items if item not in scores.items.index]:
        raise EvaluationError(
            f"{len(lacking):,} of the {counted(len(subset.items), 'chosen item')} are not in the "
            f"scores: {some(lacking)}",
            hint="use scores that have them, or choose the items again",
        )
    if method.plain_sampling or subset.is_sample:  # of all items as they were
        again = method.selector.select(scores, wanted.budget, wanted.seed)
        same = (again.items, again.chances) == (subset.items, subset.chances)
        if same and not isinstance(method.selector, Given):  # which returns what it was given
            return again.model_copy(update={"provenance": wanted})
        raise EvaluationError(
            "the subset is a random sample that these scores would not give: their items, weights "
            "or source models differ from those it was drawn with",
            hint="use those scores, or draw the items again: most stay the same",
            kind="changed",
        )
    note = "the items were chosen from other scores: others may suit these source models better"
    moved = subset.at(range(len(subset.items)), scores)
    return moved.model_copy(update={"notes": (*moved.notes, note), "provenance": wanted})


def check_followed(
    own: Provenance, leads: Provenance, method: Method, place: str, *, is_extended: bool
) -> None:
    """Raise EvaluationError unless one run can follow the other.

    Only their limits may differ, and of a method that does not extend its choice not even the
    number of items. `place` names the other run; `is_extended` if items came to it later.
    """
    if is_extended:
        raise EvaluationError(
            f"{place} was extended: its old and its new items were drawn with chances of their "
            "own, which a second folder does not have",
            hint="run the target in that folder, which asks it the same items: name it there (-t), "
            "or start anew on all items",
            kind="changed",
        )
    differ = []
    if own.average != leads.average:
        differ.append(f"--average {leads.average}, not {own.average}")
    elif own.fingerprint != leads.fingerprint:
        differ.append("other scores of source models, or other items")
    if own.settings != leads.settings:
        differ.append(f"method {leads.method}, not {own.method}")
    if own.seed != leads.seed:
        differ.append(f"seed {leads.seed}, not {own.seed}")
    if own.budget != leads.budget and not method.extends:
        differ.append(f"{leads.budget} items, which {own.method} chooses at once, not {own.budget}")
    if differ:
        raise EvaluationError(
            f"{place} was run with {'; and with '.join(differ)}",
            hint="its items need the same scores, method and seed: pass those of that run",
            kind="changed",
        )


def check_targets(scores: Scores, targets: Sequence[str]) -> None:
    """Raise EvaluationError unless targets have distinct names that no source has."""
    if isinstance(targets, str):
        raise EvaluationError(
            f"targets is the text {targets!r}, not a list", hint=f"use [{targets!r}]"
        )
    if not targets or any(not target.strip() for target in targets):
        raise EvaluationError("no target, or one without a name", hint="name the new models")
    if len(set(targets)) < len(targets):
        raise EvaluationError(
            f"a target is given twice among {some(targets)}", hint="give each one once"
        )
    present = [target for target in targets if target in scores.models.index]
    if present:
        raise EvaluationError(
            f"{some(present)} is a source model already",
            hint="give the target a different name (-t NAME); the score of a source model is known",
            kind="taken",
        )


def with_items(method: Method, subset: Subset) -> Method:
    """Return the method with the subset as selector if the subset is the user's own."""
    if not isinstance(method, StaticMethod):
        raise EvaluationError(
            f"{method.describe()} is adaptive and takes no given subset",
            hint="start with --method and --budget instead: the first items are the same",
            kind="conflict",
        )
    provenance = subset.provenance
    if provenance is None or provenance.settings.startswith("given("):
        return StaticMethod(Given(subset), method.predictor)
    return method
