"""Errors of chosen tasks: against their number, beside chance, of each model, and over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewbench.report.identity import Look, looks
from fewbench.report.scales import Scale, nice_range, nice_ticks, spread
from fewbench.report.svg import drawing, fit, num, rule, tag, text, text_width, wrap
from fewbench.report.tasks_map import BOLD
from fewbench.report.words import fixed, percent, points, tick

WIDTH, LEFT, TOP, BOTTOM, RIGHT, SIZE = 360.0, 32.0, 36.0, 38.0, 10.0, 12.0
LABEL, LEADING, AIR = 112.0, 13.0, 3.0
MARKED = 15  # so many marks on a line can be told apart
GAP = Look("sim minus le", "c0", "circle")
Place = tuple[float, float]
Values = Sequence[float | None]
ROWS_LEFT, ROWS_RIGHT, ROW, ROWS_TOP, ROWS_BOTTOM = 116.0, 52.0, 25.0, 26.0, 34.0
THESE = Look("these tasks", "c0", "circle")
ANCHORED = Look("with an anchor", "c0", "circle", hollow=True)
RANDOM_TASKS = Look("random tasks", "ref", "square", hollow=True)
RANDOM_QUESTIONS = Look("random questions", "ref", "diamond", hollow=True)
ALL = Look("all tasks", "c0", "circle")
CHOSEN = Look("chosen tasks", "c1", "square")
MOST_MODELS, MOST_TASKS = 40, 16
SHARES = 196.0  # what the names of tasks need, left of their bars


def error_curves(found: dict[str, Any], k: int | None) -> Markup | None:
    """The error of each method against k, the band of random tasks behind; `k` is marked."""
    ks, chosen = found["k"], found["chosen"]
    given = {
        RANDOM_TASKS: found["random_mean"],
        RANDOM_QUESTIONS: found["random_questions"] or [None] * len(ks),
        **{look: found["methods"][m] for m, look in looks(list(found["methods"]), None).items()},
    }
    # What the page is about is drawn last, on top.
    order = sorted(given, key=lambda look: look.name == chosen)
    rows = {look: row for look in order if (row := _known(ks, given[look]))}
    if not rows:
        return None
    names = [wrap(look.name, LABEL, SIZE) for look in rows]
    sizes = [LEADING * len(name) + AIR for name in names]
    gutter = 24 + max(text_width(line, SIZE) for name in names for line in name)
    height = max(290.0, TOP + BOTTOM + sum(sizes))
    right, floor = WIDTH - gutter, height - BOTTOM
    # The band is cut at the frame: the lines are what is to be compared.
    _, high = nice_range(0, 100 * max(v for row in rows.values() for _, v in row), 5)
    x, y = Scale(ks[0], ks[-1], LEFT + 10, right - 8), Scale(0, high, floor, TOP)
    body = [text(0, 12, "NRMSE, %", "unit"), *_frame(ks, x, y, right)]
    band = _band(ks, found["random_low"], found["random_high"], x, y)
    body.append(tag("g", tag("title", "random tasks, 5% to 95%"), *band, cls=RANDOM_TASKS.cls))
    body += _marked_k(ks, k, x, floor)
    tails = [y(100 * row[-1][1]) for row in rows.values()]
    spots = spread(tails, sizes, TOP - 6, floor)
    for (look, row), name, tail, spot in zip(rows.items(), names, tails, spots, strict=True):
        line = _line(row, look, x, y)
        label = _label(look, name, (x(row[-1][0]), tail), (right, spot))
        cls = f"series {look.cls}{'' if look.name == chosen else ' behind'}"
        body.append(tag("g", tag("title", look.name), *line, *label, cls=cls))
    told = "Error against the number of tasks chosen"
    return drawing(WIDTH, height, told, *body, cls="lines")


def difference_curve(found: dict[str, Any], k: int | None) -> Markup | None:
    """The error of sim less that of le against k, with its interval and the line of no gap."""
    ks = found["k"]
    row = _known(ks, found["sim_minus_le"])
    if not row:
        return None
    ends = [v for key in ("low", "high") for _, v in _known(ks, found[key])]
    every = [100 * v for v in (0.0, *ends, *(value for _, value in row))]
    low, high = nice_range(min(every), max(every), 5)
    right, floor = WIDTH - RIGHT, 290.0 - BOTTOM
    x, y = Scale(ks[0], ks[-1], LEFT + 12, right - 10), Scale(low, high, floor, TOP)
    body = [text(0, 12, "NRMSE of sim minus that of le, pp", "unit"), *_frame(ks, x, y, right)]
    body.append(rule(LEFT, y(0), right, y(0), "target"))
    band = _band(ks, found["low"], found["high"], x, y)
    body += [*_marked_k(ks, k, x, floor, named=False), tag("g", *band, cls=GAP.cls)]
    body.append(tag("g", *_line(row, GAP, x, y), cls=GAP.cls))
    # The sides are named where the frame is widest, clear of the marks at k = 1.
    if high > 0:
        body.append(text(right, TOP + 8, "le is better ↑", "unit haloed", "end"))
    if low < 0:
        body.append(text(right, floor - 6, "sim is better ↓", "unit haloed", "end"))
    return drawing(WIDTH, 290.0, "Error of sim minus error of le against k", *body)


def _known(ks: Sequence[int], values: Values) -> list[Place]:
    return [
        (k, value)
        for k, value in zip(ks, values, strict=True)
        if value is not None and math.isfinite(value)
    ]


def _frame(ks: Sequence[int], x: Scale, y: Scale, right: float) -> list[Markup]:
    floor = y(y.low)
    made = []
    for value in nice_ticks(y.low, y.high, 5):
        line = "axis" if value == y.low else "grid"
        made.append(rule(LEFT, y(value), right, y(value), line))
        made.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    taken: list[float] = []
    for k in dict.fromkeys([ks[0], ks[-1], *ks]):
        room = 5 + text_width(str(ks[-1]), SIZE)
        if all(abs(x(k) - at) >= room for at in taken):
            taken.append(x(k))
            made.append(text(x(k), floor + 17, str(k), "tick", "middle"))
    middle = (LEFT + right) / 2
    return [*made, text(middle, floor + BOTTOM - 4, "tasks chosen, k", "unit", "middle")]


def _marked_k(
    ks: Sequence[int], k: int | None, x: Scale, floor: float, *, named: bool = True
) -> list[Markup]:
    if k is None or not ks[0] <= k <= ks[-1]:
        return []
    made = [rule(x(k), TOP - 3, x(k), floor, "target")]
    if named:  # below the unit, which stands at the left
        made.append(text(max(x(k), 18.0), TOP - 7, f"k = {k}", "unit strong", "middle"))
    return made


def _band(ks: Sequence[int], low: Values, high: Values, x: Scale, y: Scale) -> list[Markup]:
    floors, tops = (
        [f"{num(x(k))} {num(y.clamp(100 * v))}" for k, v in _known(ks, side)]
        for side in (low, high)
    )
    if len(floors) < 2 or len(tops) < 2:
        return []
    return [tag("path", d=f"M{'L'.join([*tops, *reversed(floors)])}Z", cls="band")]


def _line(row: Sequence[Place], look: Look, x: Scale, y: Scale) -> list[Markup]:
    spots = [(x(k), y(100 * value)) for k, value in row]
    made = []
    if len(row) > 1:
        path = "M" + "L".join(f"{num(a)} {num(b)}" for a, b in spots)
        made += [tag("path", d=path, cls="line"), tag("path", d=path, cls="reach")]
    for (a, b), (k, value) in zip(spots, row, strict=True):
        told = tag("title", f"{look.name}, k = {k:g}: {fixed(100 * value, 1)}")
        dot = look.mark(a, b, 3.4) if len(row) <= MARKED else tag(
            "circle", cx=a, cy=b, r=1.6, cls="mark")  # fmt: skip
        made.append(tag("g", told, dot))
    return made


def _label(look: Look, name: Sequence[str], end: Place, spot: Place) -> list[Markup]:
    """The name beside the line's end, with a thread where it had to move."""
    right, middle = spot
    path = f"M{num(end[0] + 5)} {num(end[1])}L{num(right + 3)} {num(middle)}"
    first = middle + 4 - LEADING * (len(name) - 1) / 2
    words = (text(right + 18, first + LEADING * k, line, "name") for k, line in enumerate(name))
    return [tag("path", d=path, cls="thread"), look.mark(right + 10, middle, 3.2), *words]


def better_where(found: dict[str, Any]) -> str:
    """Where one of the two is better, by the intervals that leave out zero."""
    sides: dict[str, list[int]] = {"le": [], "sim": []}
    for k, low, high in zip(found["k"], found["low"], found["high"], strict=True):
        if low is not None and high is not None and (low > 0 or high < 0):
            sides["le" if low > 0 else "sim"].append(k)
    said = [f"{name} is better at k = {_runs(ks)}" for name, ks in sides.items() if ks]
    if not said:
        return "At no k does the interval of sim − le leave out zero: neither is clearly better."
    rest = sum(map(len, sides.values())) < len(found["k"])
    clear = " and ".join(said)
    end = "; elsewhere the interval holds zero" if rest else ""
    return f"By intervals that leave out zero, {clear}{end}."


def _runs(ks: Sequence[int]) -> str:
    """Numbers with neighbours joined.

    >>> _runs([1, 2, 3, 5])
    '1–3, 5'
    """
    runs: list[list[int]] = []
    for k in ks:
        if runs and k == runs[-1][1] + 1:
            runs[-1][1] = k
        else:
            runs.append([k, k])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in runs)


def at_k(found: dict[str, Any], k: int | None) -> str:
    """The errors of all methods at the k chosen beforehand, never at the best."""
    if k not in found["k"]:
        return ""
    at = found["k"].index(k)
    mine = found["methods"].get(found["chosen"])
    others = [(m, v[at]) for m, v in found["methods"].items() if m != found["chosen"]]
    told = [] if mine is None else [(found["chosen"], mine[at])]
    said = ", ".join(f"{m} {points(v, 1)}%" for m, v in [*told, *others] if v is not None)
    return f"At k = {k}: {said}." if said else ""


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


def error_rows(judgement: dict[str, Any]) -> Markup:
    """The error of these tasks beside that of random tasks and of random questions."""
    tasks, questions = judgement["random_tasks"], judgement["random_questions"]
    rows = [_error(THESE, judgement["nrmse"], judgement["low"], judgement["high"])]
    if judgement["anchor_ratio"]:
        rows.append(_error(ANCHORED, judgement["anchor_ratio"]["nrmse"]))
    for look, part in ((RANDOM_TASKS, tasks), (RANDOM_QUESTIONS, questions)):
        if part:
            ends = (part["mean"] + side * part["spread"] for side in (-1, 1))
            rows.append(_error(look, part["mean"], *ends))
    return _rows_on_axis(rows, "NRMSE, %", "Error of these tasks and of chance", tick, start=0.0)


def _error(look: Look, value: float, low: float | None = None, high: float | None = None) -> Row:
    spot = Spot(look, 100 * value)
    if low is not None and high is not None:
        spot = Spot(look, 100 * value, 100 * max(low, 0.0), 100 * high)
    return Row(look.name, [spot], f"{points(value, 1)}%")


def model_rows(judgement: dict[str, Any]) -> Markup | None:
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
    return _rows_on_axis(rows, unit, told, tick, key=(ALL, CHOSEN))


def _rows_on_axis(
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
    top = ROWS_TOP if key else 8.0
    floor = top + ROW * len(rows)
    x = Scale(low, high, ROWS_LEFT + 8, WIDTH - ROWS_RIGHT - 4)
    body = []
    for value in nice_ticks(low, high, 4):
        body.append(rule(x(value), top - 4, x(value), floor, "grid"))
        body.append(text(x(value), floor + 14, show(value), "tick", "middle"))
    at = ROWS_LEFT + 8
    for look in key:
        said = [look.mark(at, 7, 3.8), text(at + 9, 11, look.name, "name")]
        body.append(tag("g", *said, cls=look.cls))
        at += 24 + text_width(look.name, SIZE)
    if key:
        body.append(text(WIDTH, 11, "gap", "unit", "end"))
    for k, row in enumerate(rows):
        body.append(_row(row, x, top + ROW * k + ROW / 2 - 2))
    body.append(text(WIDTH - ROWS_RIGHT, floor + 30, unit, "unit", "end"))
    return drawing(WIDTH, floor + ROWS_BOTTOM, told, *body)


def _row(row: Row, x: Scale, y: float) -> Markup:
    said = ", ".join(f"{s.look.name} {fixed(s.value, 1)}{_ends(s)}" for s in row.spots)
    pieces = [
        tag("title", said if len(row.spots) == 1 else f"{row.name}: {said}"),
        text(ROWS_LEFT - 6, y + 4, fit(row.name, ROWS_LEFT - 8, SIZE), "", "end"),
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


def stability_bars(tasks: Sequence[dict[str, Any]], chosen: Sequence[str]) -> Markup | None:
    """How often resampled seeds choose each task; those of the selection are coloured."""
    mine = set(chosen)
    seen = sorted(tasks, key=lambda t: (-t["share"], t["task"] not in mine, t["task"]))
    shown = [t for t in seen if t["share"] > 0][:MOST_TASKS]
    if not shown:
        return None
    # The axis is the same whatever the shares, so that a short bar means seldom.
    x, floor = Scale(0, 1, SHARES, WIDTH - 44), ROWS_TOP + 20.0 * len(shown)
    body = []
    for at, look in ((SHARES, Look("chosen", "c0", "")), (SHARES + 66, Look("not", "ref", ""))):
        sample = tag("rect", x=at, y=2.0, width=10.0, height=10.0, cls="column")
        body.append(tag("g", sample, text(at + 15, 11, look.name, "name"), cls=look.cls))
    body.append(rule(SHARES, ROWS_TOP - 2, SHARES, floor - 2, "axis"))
    for k, task in enumerate(shown):
        y, name = ROWS_TOP + 20.0 * k, task["task"]
        bar = tag("rect", x=SHARES, y=y + 1, width=max(x(task["share"]) - SHARES, 1.0),
                  height=13.0, cls=f"column {'c0' if name in mine else 'ref'}")  # fmt: skip
        width = BOLD * SIZE if name in mine else SIZE
        words = text(SHARES - 7, y + 12, fit(name, SHARES - 8, width),
                     "strong" if name in mine else "", "end")  # fmt: skip
        end = text(x(task["share"]) + 6, y + 12, percent(task["share"]), "value")
        told = tag("title", f"{name}: chosen by {percent(task['share'])}")
        body.append(tag("g", told, words, bar, end))
    return drawing(WIDTH, floor, "How often resampled seeds choose each task", *body)
