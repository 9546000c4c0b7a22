"""Rows on one axis: errors beside those of chance, models' scores, how often tasks are chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewbench.report.identity import Look
from fewbench.report.scales import Scale, nice_range, nice_ticks
from fewbench.report.svg import drawing, fit, rule, tag, text, text_width
from fewbench.report.tasks_map import BOLD
from fewbench.report.words import fixed, percent, points, tick

WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM, SIZE = 360.0, 116.0, 52.0, 25.0, 26.0, 34.0, 12.0
THESE = Look("these tasks", "c0", "circle")
ANCHORED = Look("with an anchor", "c0", "circle", hollow=True)
RANDOM_TASKS = Look("random tasks", "ref", "square", hollow=True)
RANDOM_QUESTIONS = Look("random questions", "ref", "diamond", hollow=True)
ALL = Look("all tasks", "c0", "circle")
CHOSEN = Look("chosen tasks", "c1", "square")
MOST_MODELS, MOST_TASKS = 40, 16
SHARES = 196.0  # what the names of tasks need, left of their bars


@dataclass(frozen=True)
class Spot:
    """A value with its mark, and its interval where there is one."""

    look: Look
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Row:
    """One line of the picture: its name, its marks, and what stands at its end."""

    name: str
    spots: Sequence[Spot]
    end: str


def errors(judgement: dict[str, Any]) -> Markup:
    """The error of these tasks beside that of random tasks and of random questions."""
    tasks, questions = judgement["random_tasks"], judgement["random_questions"]
    rows = [_error(THESE, judgement["nrmse"], judgement["low"], judgement["high"])]
    if judgement["anchor_ratio"]:
        rows.append(_error(ANCHORED, judgement["anchor_ratio"]["nrmse"]))
    for look, part in ((RANDOM_TASKS, tasks), (RANDOM_QUESTIONS, questions)):
        if part:
            ends = (part["mean"] + side * part["spread"] for side in (-1, 1))
            rows.append(_error(look, part["mean"], *ends))
    return _rows(rows, "NRMSE, %", "Error of these tasks and of chance", tick, start=0.0)


def _error(look: Look, value: float, low: float | None = None, high: float | None = None) -> Row:
    spot = Spot(look, 100 * value)
    if low is not None and high is not None:
        spot = Spot(look, 100 * value, 100 * max(low, 0.0), 100 * high)
    return Row(look.name, [spot], f"{points(value, 1)}%")


def models(judgement: dict[str, Any]) -> Markup | None:
    """Each model's full score and its score on the chosen tasks, the best model first."""
    given = sorted(judgement["models"], key=lambda m: (-m["full"], m["model"]))
    # Of very many models as many are drawn as can be read, evenly from the best to the worst.
    if len(given) > MOST_MODELS:
        last = len(given) - 1
        given = [given[round(k * last / (MOST_MODELS - 1))] for k in range(MOST_MODELS)]
    if not given:
        return None
    every = [m[key] for m in given for key in ("full", "chosen")]
    share = all(0 <= value <= 1 for value in every)
    factor, places, unit = (100, 1, "score, %") if share else (1, 2, "score")
    rows = []
    for m in given:
        gap = factor * (m["chosen"] - m["full"])
        said = fixed(gap, places)
        spots = [Spot(ALL, factor * m["full"]), Spot(CHOSEN, factor * m["chosen"])]
        rows.append(Row(m["model"], spots, f"+{said}" if gap > 0 and float(said) else said))
    told = "Full score and score on the chosen tasks of each model"
    return _rows(rows, unit, told, tick, key=(ALL, CHOSEN))


def _rows(
    rows: Sequence[Row],
    unit: str,
    told: str,
    show: Callable[[float], str],
    *,
    start: float | None = None,
    key: Sequence[Look] = (),
) -> Markup:
    ends = [v for r in rows for s in r.spots for v in (s.value, s.low, s.high) if math.isfinite(v)]
    low, high = nice_range(min(ends) if start is None else start, max(ends), 4)
    top = TOP if key else 8.0
    floor = top + ROW * len(rows)
    x = Scale(low, high, LEFT + 8, WIDTH - RIGHT - 4)
    body = []
    for value in nice_ticks(low, high, 4):
        body.append(rule(x(value), top - 4, x(value), floor, "grid"))
        body.append(text(x(value), floor + 14, show(value), "tick", "middle"))
    at = LEFT + 8
    for look in key:
        said = [look.mark(at, 7, 3.8), text(at + 9, 11, look.name, "name")]
        body.append(tag("g", *said, cls=look.cls))
        at += 24 + text_width(look.name, SIZE)
    if key:
        body.append(text(WIDTH, 11, "gap", "unit", "end"))
    for k, row in enumerate(rows):
        body.append(_row(row, x, top + ROW * k + ROW / 2 - 2))
    body.append(text(WIDTH - RIGHT, floor + 30, unit, "unit", "end"))
    return drawing(WIDTH, floor + BOTTOM, told, *body)


def _row(row: Row, x: Scale, y: float) -> Markup:
    said = ", ".join(f"{s.look.name} {fixed(s.value, 1)}{_ends(s)}" for s in row.spots)
    pieces = [
        tag("title", said if len(row.spots) == 1 else f"{row.name}: {said}"),
        text(LEFT - 6, y + 4, fit(row.name, LEFT - 8, SIZE), "", "end"),
        text(WIDTH, y + 4, row.end, "value", "end"),
    ]
    if len(row.spots) == 2:
        pieces.append(rule(x(row.spots[0].value), y, x(row.spots[1].value), y, "target"))
    for s in row.spots:
        marks = [s.look.mark(x(s.value), y, 4.2)]
        if s.low <= s.high:
            marks.insert(0, rule(x(s.low), y, x(s.high), y, "interval"))
        pieces.append(tag("g", *marks, cls=s.look.cls))
    return tag("g", *pieces)


def _ends(spot: Spot) -> str:
    if not spot.low <= spot.high:
        return ""
    return f" [{fixed(spot.low, 1)} to {fixed(spot.high, 1)}]"


def often(tasks: Sequence[dict[str, Any]], chosen: Sequence[str]) -> Markup | None:
    """How often resampled seeds choose each task; those of the selection are coloured."""
    mine = set(chosen)
    seen = sorted(tasks, key=lambda t: (-t["share"], t["task"] not in mine, t["task"]))
    shown = [t for t in seen if t["share"] > 0][:MOST_TASKS]
    if not shown:
        return None
    # The axis is the same whatever the shares, so that a short bar means seldom.
    x, floor = Scale(0, 1, SHARES, WIDTH - 44), TOP + 20.0 * len(shown)
    body = []
    for at, look in ((SHARES, Look("chosen", "c0", "")), (SHARES + 66, Look("not", "ref", ""))):
        sample = tag("rect", x=at, y=2.0, width=10.0, height=10.0, cls="column")
        body.append(tag("g", sample, text(at + 15, 11, look.name, "name"), cls=look.cls))
    body.append(rule(SHARES, TOP - 2, SHARES, floor - 2, "axis"))
    for k, task in enumerate(shown):
        y, name = TOP + 20.0 * k, task["task"]
        bar = tag("rect", x=SHARES, y=y + 1, width=max(x(task["share"]) - SHARES, 1.0),
                  height=13.0, cls=f"column {'c0' if name in mine else 'ref'}")  # fmt: skip
        width = BOLD * SIZE if name in mine else SIZE
        words = text(SHARES - 7, y + 12, fit(name, SHARES - 8, width),
                     "strong" if name in mine else "", "end")  # fmt: skip
        end = text(x(task["share"]) + 6, y + 12, percent(task["share"]), "value")
        told = tag("title", f"{name}: chosen by {percent(task['share'])}")
        body.append(tag("g", told, words, bar, end))
    return drawing(WIDTH, floor, "How often resampled seeds choose each task", *body)
