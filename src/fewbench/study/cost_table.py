"""What a plan costs: source models, new models, what is stored, and when the sources have paid."""

import math
from typing import TYPE_CHECKING

import numpy as np

from fewbench.scores import Scores
from fewbench.show.page import Section, Table

if TYPE_CHECKING:
    from fewbench.study.forecast import Plan


def break_even(source_cost: float, instead: float, cost: float) -> int | None:
    """Return after how many new models the source models have paid; None if nothing is saved.

    `source_cost` is that of all source models, `cost` that of a new model, and `instead` what a new
    model would cost without the sources. DISCO's appendix B, in GPU hours:

    >>> break_even(385 * 8.53, instead=8.53, cost=0.07)
    389
    """
    return math.ceil(source_cost / (instead - cost) - 1e-9) if instead > cost else None


def bytes_per_item(scores: Scores) -> float:
    """Return the mean size of a model's answer to an item, uncompressed.

    That of its option probabilities, if the table has some, as they are stored; else of its score:
    a byte where the table has at most 255 distinct ones, else eight.

    >>> from fewbench.testing import simulate
    >>> bytes_per_item(simulate(4, 20)), bytes_per_item(simulate(20, 60, continuous=True))
    (1.0, 8.0)
    """
    if scores.probabilities is not None:
        return float(scores.items["n_options"].mean()) * scores.probabilities.dtype.itemsize
    known = scores.filled_cells[:]
    return 1.0 if len(np.unique(known[~np.isnan(known)])) <= 255 else 8.0


def cost_section(plan: "Plan", unit: str) -> Section:
    """Return what models cost and store, and after how many new models the sources have paid.

    Costs are in `unit`, or in that of the price if the plan has one.
    """
    one = plan.forecasts[0]
    head = [("Cost", False)]
    head += [(unit.capitalize() if plan.price is None else "At the price", True)]
    head += [("Of a full run", True), ("Storage", True)]
    size = plan.bytes_per_item
    rows = [
        _row(f"A new model, all {plan.n_items:,} items", one.full_cost, one.full_cost,
             _bytes(size * plan.n_items)),
        _row(f"A new model, {one.items:,} items with {one.method}", one.cost, one.full_cost,
             _bytes(size * one.items)),
    ]  # fmt: skip
    lines = []
    if one.is_better:
        rows += [
            _row(
                f"A new model, {one.random_items:,} random items for the same",
                one.random_cost,
                one.full_cost,
                _bytes(size * one.random_items),
            ),
            [
                f"The {plan.n_models:,} source models, if you run them",
                _amount(plan.n_models * one.full_cost),
                "–",
                _bytes(size * plan.n_models * plan.n_items),
            ],
            ["Of these, the chosen items", "–", "–", _bytes(size * plan.n_models * one.items)],
        ]
        if one.breakeven is not None:
            said = (
                f"Running the source models pays after {one.breakeven:,} new models, compared with "
            )
            said += "running these in full"
            if one.breakeven_random is not None:
                said += f"; after {one.breakeven_random:,}, compared with random items"
            lines.append(f"{said}.")
    if plan.price is not None:
        lines.append(f"The price is {plan.price:g} for a unit of the costs ({unit}).")
    return Section("cost", "Cost", tables=[Table("Cost", head, rows)], lines=lines)


def _row(what: str, cost: float, full: float, stored: str) -> list[str]:
    return [what, _amount(cost), f"{cost / full:.1%}", stored]


def _amount(cost: float) -> str:
    """Write a cost with four digits, or to a unit if it is larger.

    >>> _amount(127.373), _amount(0.0006), _amount(36000), _amount(123456.7)
    ('127.4', '0.0006', '36,000', '123,457')
    """
    return f"{cost:,.0f}" if cost >= 1000 else f"{cost:.4g}"


def _bytes(count: float) -> str:
    """Write a size in powers of 1,000.

    >>> _bytes(950), _bytes(224_672), _bytes(86_540_000)
    ('950 B', '225 KB', '86.5 MB')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError
