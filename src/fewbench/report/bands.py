"""How far a method's repeats lie apart: a panel for each, its mean in a band."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from fewbench.report.dotrows import Axis, Dot, dot_rows
from fewbench.report.identity import Look
from fewbench.report.results import Cell, Results
from fewbench.report.scales import Scale, nice_step, nice_ticks
from fewbench.report.svg import drawing, fit, join, num, rule, tag, text, text_width
from fewbench.report.words import fixed, items, points, tick

SIDE, HEIGHT, LEFT, TOP, BOTTOM, MARGIN = 200.0, 170.0, 30.0, 8.0, 38.0, 8.0
SIZE = 13.5  # of the panels' text where they are smallest
# So many bands can lie over each other in one picture and still be told apart.
FEW = 2
Spot = tuple[float, float]


def ends(cell: Cell) -> tuple[float, float]:
    """One standard deviation below and above the mean error, in percentage points."""
    spread = cell["mae_sd"]
    return 100 * max(cell["mae"] - spread, 0.0), 100 * (cell["mae"] + spread)


def upper(results: Results) -> float:
    """The top of the axis that all pictures of the error share, in percentage points."""
    tops = [
        ends(c)[1] if c.has("mae_sd") else 100 * c["mae"]
        for c in results.cells.values()
        if c.has("mae")
    ]
    high = max(tops, default=1.0) or 1.0
    step = nice_step(high, 5)
    return math.ceil(high / step - 1e-9) * step


def series(results: Results, split: str) -> dict[str, list[Cell]]:
    """The cells with an error of each method, budgets upwards, the best method first."""
    names = results.ranked(results.focus, split) or list(results.methods)
    rows = {m: [results.at(m, b, split) for b in results.budgets] for m in names}
    rows = {m: [c for c in row if c.has("mae")] for m, row in rows.items()}
    return {m: row for m, row in rows.items() if row}


def spread_known(results: Results) -> bool:
    """Whether any method's repeats are known to differ."""
    return any(c.has("mae_sd") for c in results.cells.values())


def several(results: Results) -> bool:
    """Whether the bands need a picture each, because one would hold too many."""
    most = max((len(series(results, split)) for split in results.splits), default=0)
    return len(results.budgets) > 1 and most > FEW and spread_known(results)


def told(look: Look, cell: Cell) -> str:
    """Mean and spread of a cell in words."""
    spread = f" ± {points(cell['mae_sd'])}" if cell.has("mae_sd") else ""
    return f"{look.name}, {items(cell.budget)}: {points(cell['mae'])}{spread} pp"


def mean_and_band(row: Sequence[Cell], look: Look, x: Scale, y: Scale) -> list[Markup]:
    """A method's band, and its line on top."""
    pieces = []
    banded = [c for c in row if c.has("mae_sd")]
    if len(banded) > 1:
        under = [(x(c.budget), y.clamp(ends(c)[0])) for c in banded]
        over = [(x(c.budget), y.clamp(ends(c)[1])) for c in banded]
        pieces.append(tag("path", d=f"M{_path([*over, *reversed(under)])}Z", cls="band"))
    if len(row) > 1:
        spots = [(x(c.budget), y(100 * c["mae"])) for c in row]
        dashed = "line dashed" if look.hollow else "line"
        pieces.append(tag("path", d=f"M{_path(spots)}", cls=dashed))
    return pieces


def _path(spots: Sequence[Spot]) -> str:
    return "L".join(f"{num(a)} {num(b)}" for a, b in spots)


def budget_axis(budgets: Sequence[int], x: Scale, floor: float, size: float) -> list[Markup]:
    """A mark for every budget, and as many of their numbers as there is room for.

    The first and the last are always named, for they say how far the picture goes.
    """

    def edges(budget: int) -> Spot:
        half = text_width(f"{budget:,}", size) / 2
        return x(budget) - half - 2.5, x(budget) + half + 2.5

    named: list[int] = []
    for budget in dict.fromkeys([budgets[-1], budgets[0], *budgets]):
        low, high = edges(budget)
        if all(high <= edges(other)[0] or edges(other)[1] <= low for other in named):
            named.append(budget)
    pieces = []
    for budget in budgets:
        pieces.append(rule(x(budget), floor, x(budget), floor + 4, "axis"))
        if budget in named:
            pieces.append(text(x(budget), floor + 17, f"{budget:,}", "tick", "middle"))
    return pieces


def panels(
    results: Results, split: str, looks: Mapping[str, Look]
) -> list[tuple[Look, str, Markup]]:
    """A small picture for each method, all on the same axes; the reference in each of them."""
    rows = series(results, split)
    high, focus = upper(results), results.focus or 0
    made = []
    for name, row in rows.items():
        at = results.at(name, focus, split)
        spread = f" ± {points(at['mae_sd'])}" if at.has("mae_sd") else ""
        said = f"{points(at['mae'])}{spread} pp" if at.has("mae") else ""
        behind = None if name == results.reference else results.reference
        picture = _panel(
            results.budgets, high, (looks[name], row),
            (looks[behind], rows[behind]) if behind in rows else None,
            f"Mean error of {name} against the number of items, and its spread over repeats, "
            f"{split} split",
        )  # fmt: skip
        made.append((looks[name], said, picture))
    return made


def _panel(
    budgets: Sequence[int],
    high: float,
    own: tuple[Look, list[Cell]],
    behind: tuple[Look, list[Cell]] | None,
    label: str,
) -> Markup:
    right, floor = SIDE - MARGIN, HEIGHT - BOTTOM
    first, last = budgets[0], budgets[-1]
    # The outermost numbers stand in the middle under their marks, so the marks stay inside.
    air = max(4.0, text_width(f"{last:,}", SIZE) / 2 - MARGIN + 1)
    x = Scale(first, last, LEFT + 8, right - air, log=last > 4 * first > 0)
    y = Scale(0, high, floor, TOP)
    frame = []
    for value in nice_ticks(0, high, 5):
        frame.append(rule(LEFT, y(value), right, y(value), "grid" if value else "axis"))
        frame.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    frame += budget_axis(budgets, x, floor, SIZE)
    frame.append(text((LEFT + right) / 2, HEIGHT - 4, "items answered", "unit", "middle"))
    # Errors fall, so the corner at the top right is free.
    frame.append(text(right, TOP + 12, "error, pp", "unit haloed", "end"))
    if behind:
        look, row = behind
        frame.append(tag("g", join(mean_and_band(row, look, x, y)), cls=f"behind {look.cls}"))
    look, row = own
    marks = [
        tag("g", tag("title", told(look, c)), look.mark(x(c.budget), y(100 * c["mae"]), 2.8))
        for c in row
    ]
    body = join([*mean_and_band(row, look, x, y), *marks])
    return drawing(SIDE, HEIGHT, label, *frame, tag("g", body, cls=look.cls), cls="square")


def one_budget(results: Results, split: str, looks: Mapping[str, Look]) -> Markup:
    """With a single budget there is no line to follow: a row for each method."""
    rows = series(results, split)
    cells = [row[0] for row in rows.values()]
    line = results.reference if results.reference in rows else next(iter(rows), None)
    name = line if line == results.reference else "lowest"
    axis = Axis(
        0.0, upper(results), 100 * rows[line][0]["mae"] if line else 0.0,
        fit(name or "", 90, 12), fixed, tick, "error, pp", "",
    )  # fmt: skip
    dots = [(looks[c.method], [Dot(c.budget, 100 * c["mae"], *_interval(c))]) for c in cells]
    return dot_rows(dots, axis, f"Mean absolute error and its spread over repeats, {split} split")


def _interval(cell: Cell) -> Spot:
    return ends(cell) if cell.has("mae_sd") else (math.nan, math.nan)
