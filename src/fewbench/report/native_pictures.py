"""Pictures of native sources: maps of items, and how well targets are estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewbench.report.cloud import cloud
from fewbench.report.identity import Look
from fewbench.report.scales import Scale, nice_range, nice_ticks
from fewbench.report.svg import drawing, num, rule, tag, text, text_width
from fewbench.report.words import fixed, tick

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 360.0, 250.0, 40.0, 22.0, 42.0, 14.0
SIZE = 12.0
POINT = Look("", "c0", "circle")
FOUND = Look("as found", "c1", "diamond")
Spot = tuple[float, float]


def item_maps(items: dict[str, Any], stands_for: Sequence[int]) -> list[tuple[str, Markup]]:
    """Both maps on the same axes; a star for each medoid, larger the more items it stands for."""
    both = [*items["source"], *items["target"]]
    reach = 1.03 * max((abs(v) for spot in both for v in spot), default=1.0) or 1.0
    low = [min(0.0, *(spot[k] for spot in both)) - 0.03 * reach for k in (0, 1)]
    high = [max(0.0, *(spot[k] for spot in both)) + 0.03 * reach for k in (0, 1)]
    # One unit is as long on both axes, so that distances are what they look.
    unit = (WIDTH - 16) / max(high[0] - low[0], 1e-9)
    height = min(max(unit * (high[1] - low[1]), 160.0), 330.0)
    unit = min(unit, height / max(high[1] - low[1], 1e-9))
    middle = (WIDTH - unit * (high[0] - low[0])) / 2
    x = Scale(low[0], high[0], middle, WIDTH - middle)
    floor = 20 + height
    y = Scale(low[1], high[1], floor, floor - unit * (high[1] - low[1]))
    made = []
    for side, name in (("source", "as sources answer"), ("target", "as targets answer")):
        first, second = (f"{100 * share:.0f}%" for share in items[f"{side}_share"])
        spots = [(x(a), y(b)) for a, b in items[side]]
        body = [
            rule(8, y(0), WIDTH - 8, y(0), "grid"),
            rule(x(0), 20, x(0), floor, "grid"),
            *cloud(spots),
            *(
                _star(spots[at], item, n, max(stands_for, default=1))
                for at, item, n in sorted(
                    zip(items["medoids"], items["medoid_ids"], stands_for, strict=True),
                    key=lambda one: -one[2],
                )
            ),
            text(8, 12, f"↑ second component, {second} of variance", "unit"),
            text(WIDTH - 8, floor + 15, f"easier → (first component, {first} of variance)",
                 "unit", "end"),
        ]  # fmt: skip
        told = f"Items {name}, medoids as stars"
        made.append((f"Items {name}", drawing(WIDTH, floor + 22, told, *body, cls="c0")))
    return made


def _star(spot: Spot, item: str, n: int, most: int) -> Markup:
    x, y = spot
    size = 4.5 + 5.5 * math.sqrt(n / max(most, 1))
    corners = []
    for k in range(10):
        r, angle = size * (1.0 if k % 2 == 0 else 0.42), math.radians(-90 + 36 * k)
        corners.append(f"{num(x + r * math.cos(angle))} {num(y + r * math.sin(angle))}")
    told = f"{item}, stands for {n} item{'' if n == 1 else 's'}"
    star = tag("path", d="M" + "L".join(corners) + "Z", cls="star")
    return tag("g", tag("title", told), star, cls="c1")


@dataclass(frozen=True)
class Measure:
    """What is drawn upwards."""

    key: str
    title: str
    unit: str
    factor: float
    places: int


TAU = Measure("kendall_tau", "Ranking", "Kendall τ", 1.0, 2)
ERROR = Measure("mae", "Error", "error, pp", 100.0, 1)


@dataclass(frozen=True)
class Across:
    """What is drawn across: the steps' places, how they are written, and what they are."""

    places: Sequence[float]
    names: Sequence[str]
    label: str
    told: Callable[[dict[str, Any]], str]


def curve(
    steps: Sequence[dict[str, Any]],
    across: Across,
    measure: Measure,
    found: dict[str, Any] | None = None,
) -> Markup | None:
    """Mean and 90 % interval at each step; `found` is the method as it is, marked apart."""
    rows = [
        (place, name, step)
        for place, name, step in zip(across.places, across.names, steps, strict=True)
        if step[measure.key] is not None
    ]
    if not rows:
        return None
    shown = [step for _, _, step in rows] + ([found] if found else [])
    ends = [
        measure.factor * step[key]
        for step in shown
        for key in (measure.key, f"{measure.key}_low", f"{measure.key}_high")
        if step[key] is not None
    ]
    low, high = nice_range(min(ends), max(ends), 5)
    x = Scale(across.places[0], across.places[-1], LEFT + 18, WIDTH - RIGHT - 14)
    floor = HEIGHT - BOTTOM
    top = TOP + 14 if found else TOP  # the name of what is marked stands below the unit
    y = Scale(low, high, floor, top)
    body = [text(0, 10, measure.unit, "unit")]
    for value in nice_ticks(low, high, 5):
        body.append(rule(LEFT, y(value), WIDTH - RIGHT, y(value), "grid"))
        body.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    body += _names(across, x, floor)
    body.append(rule(LEFT, floor, WIDTH - RIGHT, floor, "axis"))
    if found and found[measure.key] is not None:
        at = x(found["natives"])
        body.append(rule(at, top - 2, at, floor, "target"))
        words = f"as found: {tick(round(found['natives'], 1))}"
        near = at + text_width(words, SIZE) / 2 > WIDTH - RIGHT
        body.append(text(WIDTH - RIGHT if near else at, top - 7, words, "unit strong haloed",
                         "end" if near else "middle"))  # fmt: skip
    body.append(_line(rows, x, y, measure, across))
    if found and found[measure.key] is not None:
        value = measure.factor * found[measure.key]
        told = f"as found, {tick(round(found['natives'], 1))} sources: {_told(found, measure)}"
        mark = FOUND.mark(x(found["natives"]), y(value), 4.6)
        body.append(tag("g", tag("title", told), mark, cls=FOUND.cls))
    body.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, across.label, "unit", "middle"))
    return drawing(WIDTH, HEIGHT, f"{measure.title} by {across.label}", *body)


def _names(across: Across, x: Scale, floor: float) -> list[Markup]:
    """Names below, the first and the last before others where there is no room for all."""
    order = [0, len(across.places) - 1, *range(1, len(across.places) - 1)]
    taken: list[Spot] = []
    made = []
    for k in dict.fromkeys(order):
        at, half = x(across.places[k]), text_width(across.names[k], SIZE) / 2 + 3
        made.append(rule(at, floor, at, floor + 4, "axis"))
        if all(at + half <= a or b <= at - half for a, b in taken):
            taken.append((at - half, at + half))
            made.append(text(at, floor + 18, across.names[k], "tick", "middle"))
    return made


def _line(
    rows: Sequence[tuple[float, str, dict[str, Any]]],
    x: Scale,
    y: Scale,
    measure: Measure,
    across: Across,
) -> Markup:
    spots = [(x(place), y(measure.factor * step[measure.key])) for place, _, step in rows]
    sides: list[list[Spot]] = [[], []]
    for place, _, step in rows:
        for side, end in zip(sides, ("low", "high"), strict=True):
            if (value := step[f"{measure.key}_{end}"]) is not None:
                side.append((x(place), y(measure.factor * value)))
    pieces = []
    if len(sides[0]) > 1:
        pieces.append(tag("path", d=f"M{_path([*sides[1], *reversed(sides[0])])}Z", cls="band"))
    if len(spots) > 1:
        pieces.append(tag("path", d=f"M{_path(spots)}", cls="line"))
    for spot, (_, _, step) in zip(spots, rows, strict=True):
        told = f"{across.told(step)}: {_told(step, measure)}"
        pieces.append(tag("g", tag("title", told), POINT.mark(*spot, 3.8)))
    return tag("g", *pieces, cls=POINT.cls)


def _told(step: dict[str, Any], measure: Measure) -> str:
    said = fixed(measure.factor * step[measure.key], measure.places)
    low, high = step[f"{measure.key}_low"], step[f"{measure.key}_high"]
    if low is not None and high is not None:
        ends = (fixed(measure.factor * end, measure.places) for end in (low, high))
        said += f" [{' to '.join(ends)}]"
    return said


def _path(spots: Sequence[Spot]) -> str:
    return "L".join(f"{num(a)} {num(b)}" for a, b in spots)
