"""What running each item costs: a column of the items, or numbers by item id."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some
from fewbench._text import quoted
from fewbench._types import FloatArray
from fewbench.errors import ScoresError
from fewbench.scores.benchmark import ItemTable
from fewbench.scores.table import Scores

ANSWER_COSTS = "answer_costs"
"""Column of a told table's items: JSON, model → what its answers to the item cost. Else empty."""

LEAST_COST, MOST_COST = 1e-100, 1e100
"""Sums, products and quotients of costs between these are finite."""
LACKING = 0.1
"""Share of the answers that may lack a cost."""
AMOUNT = re.compile(
    r"\s*(?P<before>[$€£¥]?)\s*(?P<number>[\d.]+(?:[eE][-+]?\d+)?)\s*(?P<after>[^\d\s.][^\d.]*)?\s*"
)
"""A number with its unit, before or after it."""
THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6}
"""What numbers are written in that are counts, as 1.5k tokens."""


def amount(value: float, unit: str) -> str:
    """Return an amount with its unit, if there is one.

    Examples
    --------
    >>> amount(72.5, "$"), amount(1234.5, "s"), amount(0.25, ""), amount(0.0024, "$")
    ('$72.50', '1,234 s', '0.25', '$0.0024')
    """
    is_money = unit in ("$", "€", "£", "¥")
    form = ",.0f" if value >= 1000 else ".2f" if is_money and value >= 0.01 else ".4g"
    return f"{unit}{value:{form}}" if is_money else f"{value:{form}} {unit}".strip()


def read_amounts(values: Iterable[object]) -> FloatArray:
    """Return numbers, also those of texts with a unit such as $0.0044, and NaN for other values.

    If the units differ, all texts with a unit become NaN.

    Examples
    --------
    >>> read_amounts([2, "0.5", "$0.0044", "free"]).tolist(), read_amounts(["1 $", "1 €"]).tolist()
    ([2.0, 0.5, 0.0044, nan], [nan, nan])
    >>> read_amounts(["1.5k", "800", "2 M"]).tolist(), read_amounts(["$1.5k", "$800"]).tolist()
    ([1500.0, 800.0, 2000000.0], [1500.0, 800.0])
    >>> read_amounts(["1.5k tokens", "800 tokens"]).tolist()
    [1500.0, 800.0]
    """
    column = pd.Series(list(values), dtype=object)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, copy=True)
    matches = {at: AMOUNT.fullmatch(str(column[at])) for at in np.flatnonzero(np.isnan(numbers))}
    found = {at: match for at, match in matches.items() if match is not None}
    parts = {at: factor_and_unit(match) for at, match in found.items()}
    if len({unit for _, unit in parts.values()}) == 1:
        for at, (factor, _) in parts.items():
            numbers[at] = factor * pd.to_numeric(found[at]["number"], errors="coerce")
    return numbers


def factor_and_unit(match: re.Match[str]) -> tuple[float, str]:
    """Return what the number of an `AMOUNT` counts, and its unit: "k tokens" are 1000 tokens."""
    first, _, rest = (match["after"] or "").strip().partition(" ")
    if first in THOUSANDS:
        return THOUSANDS[first], match["before"] or rest.strip()
    return 1.0, match["before"] or " ".join([first, rest]).strip()


def with_answer_costs(told: Scores, costs: Iterable[tuple[str, int, float]]) -> Scores:
    """Return a told table with costs of answers: (model, column of the item, cost or NaN)."""
    of_items: list[dict[str, float]] = [{} for _ in told.item_ids]
    for model, at, cost in costs:
        if not math.isnan(cost):
            of_items[at][model] = of_items[at].get(model, 0.0) + cost
    texts = [json.dumps(known) if known else "" for known in of_items]
    if not any(texts):
        return told
    column = pd.Series(texts, told.items.index, dtype=object)
    return told.changed(items=told.items.assign(**{ANSWER_COSTS: column}))


def break_even(source_cost: float, instead: float, cost: float) -> int | None:
    """Return after how many new models the source models have paid, or None if nothing is saved.

    `source_cost` is that of all source models, `cost` that of a new model, and `instead` what a new
    model would cost without the sources. DISCO's appendix B, in GPU hours:

    >>> break_even(385 * 8.53, instead=8.53, cost=0.07)
    389
    """
    return math.ceil(source_cost / (instead - cost) - 1e-9) if instead > cost else None


def cost_of_answers(told: Scores, model: str, items: Sequence[str]) -> float | None:
    """Return what a model's answers to items cost, None if the table states hardly any cost.

    The few answers without a cost count as the mean of the others.
    """
    if ANSWER_COSTS not in told.items:
        return None
    texts = told.items[ANSWER_COSTS].loc[list(items)]
    costs = [cost for text in texts if (cost := json.loads(text or "{}").get(model)) is not None]
    if len(costs) < (1 - LACKING) * len(texts):
        return None
    return float(sum(costs)) * len(texts) / max(len(costs), 1)


def read_costs(
    benchmark: ItemTable, costs: Mapping[str, float] | str | None, *, positive: bool = False
) -> FloatArray:
    """Return the cost of running each item, shape (items,), in the unit of what is given.

    Parameters
    ----------
    benchmark : Benchmark or Scores
    costs : str, mapping of item id to number, or None
        The items' column that holds the costs, or the costs. None: every item costs 1.
    positive : bool
        Refuse a cost of 0 as well.

    Raises
    ------
    ScoresError
        If there is no such column, a cost is missing, no number, below 0 or above 1e100, or all
        are 0.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> read_costs(simulate(4, 3), {"item-0": 1, "item-1": 2.5, "item-2": 0}).tolist()
    [1.0, 2.5, 0.0]
    """
    if costs is None:
        return np.ones(benchmark.n_items)
    where = ""
    if isinstance(costs, str):
        if costs not in benchmark.items:
            columns = [str(column) for column in benchmark.items.columns]
            raise ScoresError(
                f"the items have no column {costs!r}",
                hint=did_you_mean(
                    costs,
                    columns,
                    f"they have {some(columns, 8)}; to add it, import the scores with "
                    f"--keep-item {quoted(costs)} (a column of the scores) or --items FILE (a "
                    f"table with columns item and {costs})",
                ),
            )
        values, where = benchmark.items[costs], f" in column {costs!r}"
    else:
        values = pd.Series([costs.get(item, math.nan) for item in benchmark.item_ids])
    numbers = read_amounts(values)
    allowed = (numbers >= LEAST_COST) & (numbers <= MOST_COST)
    if not positive:
        allowed |= numbers == 0
    if not allowed.all():
        bad = benchmark.item_ids[~allowed]
        least = "above 0" if positive else "of 0 or more"
        raise ScoresError(
            f"{counted(len(bad), 'item')} without a cost {least}{where}: {some(bad)}",
            hint=f"give every item a number of at most {MOST_COST:g}",
        )
    if not numbers.sum() > 0:
        raise ScoresError(f"all items cost 0{where}", hint="give at least one item a cost above 0")
    return numbers
