"""How well the first k tasks of each order do, and which of two orders is better where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fewbench.report.identity import Look, looks
from fewbench.report.scales import Scale, nice_range, nice_ticks, spread
from fewbench.report.svg import drawing, num, rule, tag, text, text_width, wrap
from fewbench.report.words import fixed, points, tick

WIDTH, LEFT, TOP, BOTTOM, RIGHT, SIZE = 360.0, 32.0, 36.0, 38.0, 10.0, 12.0
LABEL, LEADING, AIR = 112.0, 13.0, 3.0
MARKED = 15  # so many marks on a line can be told apart
TASKS = Look("random tasks", "ref", "square", hollow=True)
QUESTIONS = Look("random questions", "ref", "diamond", hollow=True)
GAP = Look("sim minus le", "c0", "circle")
Place = tuple[float, float]
Values = Sequence[float | None]


def curves(found: dict[str, Any], k: int | None) -> Markup | None:
    """The error of each method against k, the band of random tasks behind; `k` is marked."""
    ks, chosen = found["k"], found["chosen"]
    given = {
        TASKS: found["random_mean"],
        QUESTIONS: found["random_questions"] or [None] * len(ks),
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
    body.append(tag("g", tag("title", "random tasks, 5% to 95%"), *band, cls=TASKS.cls))
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


def difference(found: dict[str, Any], k: int | None) -> Markup | None:
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
