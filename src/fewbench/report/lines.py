"""Error against budget, one picture per split."""

from __future__ import annotations

import math
from collections.abc import Mapping

from markupsafe import Markup

from fewbench.report.identity import Look
from fewbench.report.results import Cell, Results
from fewbench.report.scales import Scale, nice_step, nice_ticks, spread
from fewbench.report.svg import (
    drawing,
    join,
    num,
    rule,
    tag,
    text,
    text_width,
    wrap,
)
from fewbench.report.words import items, points, tick

WIDTH, LEFT, TOP, BOTTOM, SIZE = 360.0, 32.0, 22.0, 36.0, 12.0
LABEL, LEADING, AIR = 118.0, 13.0, 3.0


def _upper(results: Results) -> float:
    """The top of the shared axis, in percentage points."""
    tops = [
        100 * (c["mae"] + (c["mae_se"] if c.has("mae_se") else 0.0))
        for c in results.cells.values()
        if c.has("mae")
    ]
    high = max(tops, default=1.0) or 1.0
    return math.ceil(high / nice_step(high, 5) - 1e-9) * nice_step(high, 5)


def error_lines(results: Results, split: str, looks: Mapping[str, Look]) -> Markup:
    """Mean absolute error of each method as its budget grows."""
    names = results.ranked(results.focus, split) or list(results.methods)
    series = {m: [results.at(m, b, split) for b in results.budgets] for m in names}
    series = {m: [c for c in row if c.has("mae")] for m, row in series.items()}
    series = {m: row for m, row in series.items() if row}
    names_drawn = [wrap(m, LABEL, SIZE) for m in series]
    gutter = 22 + max((text_width(line, SIZE) for n in names_drawn for line in n), default=0)
    sizes = [LEADING * len(n) + AIR for n in names_drawn]
    height = max(280.0, TOP + BOTTOM + sum(sizes))
    right, floor = WIDTH - gutter, height - BOTTOM
    y = Scale(0, _upper(results), floor, TOP)
    first, last = results.budgets[0], results.budgets[-1]
    # A little air on both sides keeps the first mark off the axis.
    x = Scale(first, last, LEFT + 10, right - 8, log=last > 4 * first > 0)

    frame = [text(0, 10, "pp", "unit")]
    for value in nice_ticks(0, y.high, 5):
        frame.append(rule(LEFT, y(value), right, y(value), "grid" if value else "axis"))
        frame.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    taken = -math.inf
    for budget in results.budgets:
        half = text_width(f"{budget:,}", SIZE) / 2
        frame.append(rule(x(budget), floor, x(budget), floor + 4, "axis"))
        if x(budget) - half > taken + 5:
            frame.append(text(x(budget), floor + 17, f"{budget:,}", "tick", "middle"))
            taken = x(budget) + half
    frame.append(text((LEFT + right) / 2, floor + 33, "items answered", "unit", "middle"))

    # The best are drawn last, on top.
    lines = [_one(series[m], looks[m], x, y) for m in reversed(series)]
    ends = [y(100 * series[m][-1]["mae"]) for m in series]
    spots = spread(ends, sizes, TOP - 6, floor)
    labels = [
        _label(looks[m], drawn, (x(series[m][-1].budget), end), (right, spot))
        for m, drawn, end, spot in zip(series, names_drawn, ends, spots, strict=True)
    ]
    told = f"Mean absolute error against the number of items, {split} split"
    return drawing(WIDTH, height, told, *frame, *lines, *labels)


def _one(row: list[Cell], look: Look, x: Scale, y: Scale) -> Markup:
    spots = [(x(c.budget), y(100 * c["mae"])) for c in row]
    pieces: list[Markup] = []
    banded = [c for c in row if c.has("mae_se")]
    if len(banded) > 1:
        over = [(x(c.budget), y.clamp(100 * (c["mae"] + c["mae_se"]))) for c in banded]
        under = [(x(c.budget), y.clamp(100 * (c["mae"] - c["mae_se"]))) for c in banded]
        outline = "L".join(f"{num(a)} {num(b)}" for a, b in [*over, *reversed(under)])
        pieces.append(tag("path", d=f"M{outline}Z", cls="band"))
    if len(spots) > 1:
        path = "L".join(f"{num(a)} {num(b)}" for a, b in spots)
        pieces.append(tag("path", d=f"M{path}", cls="line dashed" if look.hollow else "line"))
    for cell, (a, b) in zip(row, spots, strict=True):
        if len(row) == 1 and cell.has("mae_se"):
            low, high = (y.clamp(100 * (cell["mae"] + s * cell["mae_se"])) for s in (-1, 1))
            pieces.append(rule(a, low, a, high, "whisker"))
        se = f" ± {points(cell['mae_se'])}" if cell.has("mae_se") else ""
        told = f"{look.name}, {items(cell.budget)}: {points(cell['mae'])}{se} pp"
        pieces.append(tag("g", tag("title", told), look.mark(a, b, 3.6)))
    return tag("g", join(pieces), cls=look.cls)


def _label(
    look: Look, name: list[str], end: tuple[float, float], spot: tuple[float, float]
) -> Markup:
    """The method's name beside its line's end, with a thread when it had to move."""
    right, middle = spot
    path = f"M{num(end[0] + 5)} {num(end[1])}L{num(right + 3)} {num(middle)}"
    first = middle + 4 - LEADING * (len(name) - 1) / 2
    words = [text(right + 18, first + LEADING * k, line, "name") for k, line in enumerate(name)]
    thread = tag("path", d=path, cls="thread")
    return tag("g", tag("title", look.name), thread, look.mark(right + 10, middle, 3.2), *words,
               cls=look.cls)  # fmt: skip
