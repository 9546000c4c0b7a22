"""Rows of dots: for each method one dot per budget, with an interval and its number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fewbench.report.identity import Look
from fewbench.report.scales import Scale, nice_ticks
from fewbench.report.svg import drawing, fit, join, rule, tag, text
from fewbench.report.words import items

WIDTH, LEFT, RIGHT, TOP, SIZE = 360.0, 40.0, 306.0, 26.0, 12.0
NAME, ROW, AIR, BOTTOM = 19.0, 16.0, 8.0, 34.0


@dataclass(frozen=True)
class Dot:
    """One value with its interval, NaN where there is none."""

    budget: int
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Axis:
    """The shared axis: its range, the line to look at, and how numbers are written.

    `left` and `right` say in a word or two what lies on either side of the line.
    """

    low: float
    high: float
    line: float
    line_name: str
    show: Callable[[float], str]
    show_tick: Callable[[float], str]
    left: str
    right: str
    ticks: int = 4
    log: bool = False


def dot_rows(
    rows: Sequence[tuple[Look, Sequence[Dot]]], axis: Axis, told: str, heading: str = "items"
) -> Markup:
    """The picture; names stand above their rows, so that long ones fit on a phone."""
    x = Scale(axis.low, axis.high, LEFT, RIGHT, log=axis.log)
    height = TOP + sum(NAME + ROW * len(dots) + AIR for _, dots in rows) + BOTTOM
    floor = height - BOTTOM
    ticks = nice_ticks(axis.low, axis.high, axis.ticks)
    if axis.log:
        ticks = [v for v in (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30) if axis.low <= v <= axis.high]
    frame = [text(LEFT - 10, TOP - 12, heading, "unit", "end")]
    for value in ticks:
        frame.append(rule(x(value), TOP - 4, x(value), floor, "grid"))
        frame.append(text(x(value), floor + 14, axis.show_tick(value), "tick", "middle"))
    at = x(axis.line)
    frame.append(rule(at, TOP - 6, at, floor, "target"))
    frame.append(text(at, TOP - 12, axis.line_name, "unit strong", "middle"))
    frame.append(text(LEFT, floor + 30, axis.left, "unit"))
    frame.append(text(RIGHT, floor + 30, axis.right, "unit", "end"))
    body, y = [], TOP
    for look, dots in rows:
        body.append(_method(look, dots, x, y, axis.show))
        y += NAME + ROW * len(dots) + AIR
    return drawing(WIDTH, height, told, *frame, *body)


def _method(
    look: Look, dots: Sequence[Dot], x: Scale, top: float, show: Callable[[float], str]
) -> Markup:
    name = fit(look.name, WIDTH - LEFT, SIZE)
    pieces = [text(LEFT, top + 12, name, "name haloed")]
    for k, dot in enumerate(dots):
        y = top + NAME + ROW * k + ROW / 2 - 1
        told = f"{look.name}, {items(dot.budget)}: {show(dot.value)}"
        marks = [text(LEFT - 10, y + 4, f"{dot.budget:,}", "tick", "end")]
        if dot.low <= dot.high:
            told += f" [{show(dot.low)} to {show(dot.high)}]"
            marks.append(rule(x.clamp(dot.low), y, x.clamp(dot.high), y, "interval"))
        if math.isfinite(dot.value):
            marks.append(look.mark(x.clamp(dot.value), y, 3.8))
        marks.append(text(WIDTH - 4, y + 4, show(dot.value), "value", "end"))
        pieces.append(tag("g", tag("title", told), *marks))
    return tag("g", tag("title", look.name), join(pieces), cls=look.cls)
