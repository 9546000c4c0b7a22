"""Error against budget, all methods in one picture per split."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from fewbench.report.bands import (
    FEW,
    budget_axis,
    ends,
    mean_and_band,
    series,
    told,
    upper,
)
from fewbench.report.identity import Look
from fewbench.report.results import Cell, Results
from fewbench.report.scales import Scale, nice_ticks, spread
from fewbench.report.svg import drawing, join, num, rule, tag, text, text_width, wrap
from fewbench.report.words import tick

WIDTH, LEFT, TOP, BOTTOM, SIZE = 360.0, 32.0, 22.0, 36.0, 12.0
LABEL, LEADING, AIR = 118.0, 13.0, 3.0


def error_lines(results: Results, split: str, looks: Mapping[str, Look]) -> Markup:
    """Mean absolute error of each method as its budget grows.

    Few bands are all shown; of many, only that of the line pointed at.
    """
    rows = series(results, split)
    names_drawn = [wrap(m, LABEL, SIZE) for m in rows]
    gutter = 22 + max((text_width(line, SIZE) for n in names_drawn for line in n), default=0)
    sizes = [LEADING * len(n) + AIR for n in names_drawn]
    height = max(280.0, TOP + BOTTOM + sum(sizes))
    right, floor = WIDTH - gutter, height - BOTTOM
    y = Scale(0, upper(results), floor, TOP)
    first, last = results.budgets[0], results.budgets[-1]
    # A little air on both sides keeps the first mark off the axis.
    x = Scale(first, last, LEFT + 10, right - 8, log=last > 4 * first > 0)

    frame = [text(0, 10, "pp", "unit")]
    for value in nice_ticks(0, y.high, 5):
        frame.append(rule(LEFT, y(value), right, y(value), "grid" if value else "axis"))
        frame.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    frame += budget_axis(results.budgets, x, floor, SIZE)
    frame.append(text((LEFT + right) / 2, floor + 33, "items answered", "unit", "middle"))

    tails = [y(100 * row[-1]["mae"]) for row in rows.values()]
    spots = spread(tails, sizes, TOP - 6, floor)
    # The best are drawn last, on top.
    drawn = [
        tag(
            "g", _one(row, looks[m], x, y),
            _label(looks[m], name, (x(row[-1].budget), tail), (right, spot)),
            cls=f"series {looks[m].cls}",
        )
        for (m, row), name, tail, spot in zip(rows.items(), names_drawn, tails, spots, strict=True)
    ]  # fmt: skip
    label = f"Mean absolute error against the number of items, {split} split"
    cls = "lines" if len(rows) <= FEW else "lines bare"
    return drawing(WIDTH, height, label, *frame, *reversed(drawn), cls=cls)


def _one(row: list[Cell], look: Look, x: Scale, y: Scale) -> Markup:
    pieces = mean_and_band(row, look, x, y)
    if len(row) > 1:
        # A line is thin: what is pointed at is wider than what is seen.
        path = "L".join(f"{num(x(c.budget))} {num(y(100 * c['mae']))}" for c in row)
        pieces.append(tag("path", d=f"M{path}", cls="reach"))
    for cell in row:
        a, b = x(cell.budget), y(100 * cell["mae"])
        if len(row) == 1 and cell.has("mae_sd"):
            low, high = (y.clamp(end) for end in ends(cell))
            pieces.append(rule(a, low, a, high, "whisker"))
        pieces.append(tag("g", tag("title", told(look, cell)), look.mark(a, b, 3.6)))
    return join(pieces)


def _label(
    look: Look, name: list[str], end: tuple[float, float], spot: tuple[float, float]
) -> Markup:
    """The method's name beside its line's end, with a thread when it had to move."""
    right, middle = spot
    path = f"M{num(end[0] + 5)} {num(end[1])}L{num(right + 3)} {num(middle)}"
    first = middle + 4 - LEADING * (len(name) - 1) / 2
    words = [text(right + 18, first + LEADING * k, line, "name") for k, line in enumerate(name)]
    thread = tag("path", d=path, cls="thread")
    return tag("g", tag("title", look.name), thread, look.mark(right + 10, middle, 3.2), *words)
