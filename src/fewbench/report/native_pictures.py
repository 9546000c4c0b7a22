"""Pictures of a study of native sources: curves, maps of items, distances, families."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewbench.report.cloud import cloud
from fewbench.report.identity import Look
from fewbench.report.scales import Scale, nice_range, nice_ticks
from fewbench.report.svg import drawing, fit, num, rule, tag, text, text_width
from fewbench.report.words import fixed, tick

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 360.0, 250.0, 40.0, 22.0, 42.0, 14.0
SIZE = 12.0
POINT = Look("", "c0", "circle")
FOUND = Look("as found", "c1", "diamond")
Spot = tuple[float, float]
SOURCES = Look("sources", "c0", "circle")
TARGETS = Look("targets", "c1", "square")
STEPS = 60
ROOM = 64.0  # what a name needs left of its line
ROW, HEAD, BARS = 25.0, 30.0, 118.0
MOST = 8
PAIRS_LEFT, PAIRS_RIGHT, PAIRS_ROW, PAIRS_TOP, PAIRS_BOTTOM = 116.0, 16.0, 26.0, 26.0, 34.0
WITH = Look("with its family", "c0", "circle")
WITHOUT = Look("without", "c1", "square")


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


def distance_curve(spread: dict[str, Any]) -> Markup | None:
    """Share of the items that lie within a distance of their medoids, by sources and targets."""
    sides = [
        (look, [d / any_ for d in spread[key]])
        for look, key, any_ in (
            (SOURCES, "source", spread["source_any"]),
            (TARGETS, "target", spread["target_any"]),
        )
        if any_
    ]
    if len(sides) < 2:
        return None
    _, high = nice_range(0.0, max(max(values) for _, values in sides), 5)
    x, y = Scale(0, high, LEFT, WIDTH - RIGHT), Scale(0, 1, HEIGHT - BOTTOM, TOP)
    body = [text(0, 10, "items, %", "unit")]
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        body.append(rule(LEFT, y(value), WIDTH - RIGHT, y(value), "grid" if value else "axis"))
        body.append(text(LEFT - 6, y(value) + 4, tick(100 * value), "tick", "end"))
    for value in nice_ticks(0, high, 5):
        body.append(text(x(value), y(0) + 17, tick(100 * value), "tick", "middle"))
    for look, values in sides:
        ordered, n = sorted(values), len(values)
        spots = [(ordered[min(n - 1, k * n // STEPS)], k / STEPS) for k in range(STEPS + 1)]
        spots = [(0.0, 0.0), *spots]
        path = "L".join(f"{num(x(a))} {num(y(b))}" for a, b in spots)
        told = f"Half of the items are within {100 * ordered[n // 2]:.0f}% by {look.name}"
        # Names stand where the lines are apart: low for those farther off, high for the nearer.
        share = 0.25 if look is TARGETS else 0.75
        at = ordered[min(n - 1, int(share * n))]
        left = look is SOURCES and x(at) > LEFT + ROOM
        side, anchor = (-9, "end") if left else (9, None)
        line = tag("path", d=f"M{path}", cls="line" if look is SOURCES else "line long")
        name = text(x(at) + side, y(share) + 4, look.name, "name haloed", anchor)
        body.append(tag("g", tag("title", told), line, name, cls=look.cls))
    middle = (LEFT + WIDTH - RIGHT) / 2
    body.append(text(middle, HEIGHT - 4, "distance to the medoid, % of that between any two items",
                     "unit", "middle"))  # fmt: skip
    return drawing(WIDTH, HEIGHT, "Items within a distance of their medoids", *body)


def distance_bars(spread: dict[str, Any]) -> Markup | None:
    """Mean distances: chosen by all sources, and by half of them."""
    whole, half = spread["shares"], spread["half"]
    groups = [
        (
            "All sources choose the medoids",
            [("the sources", whole["sources"], "c0"), ("the targets", whole["targets"], "c1")],
        ),
        (
            "Half of the sources choose",
            [
                ("those who chose", half["chose"], "c0"),
                ("the other sources", half["held_out"], "c2"),
                ("the targets", half["targets"], "c1"),
            ],
        ),
    ]
    values = [v for _, rows in groups for _, v, _ in rows if v is not None]
    if not values:
        return None
    _, high = nice_range(0.0, max(*values, 0.01), 5)
    x = Scale(0, high, BARS, WIDTH - 46)
    body, y = [], 4.0
    for title, rows in groups:
        body.append(text(0, y + 12, title, "strong"))
        y += HEAD - 6
        body.append(rule(BARS, y, BARS, y + (ROW - 3) * len(rows) - 4, "axis"))
        for name, value, cls in rows:
            body.append(text(BARS - 8, y + 13, name, "", "end"))
            if value is not None:
                bar = tag("rect", x=BARS, y=y + 2, width=max(x(value) - BARS, 1), height=14.0,
                          cls=f"column {cls}")  # fmt: skip
                body += [bar, text(x(value) + 6, y + 13, f"{100 * value:.0f}%", "value")]
            y += ROW - 3
        y += 14
    body.append(text(WIDTH, y + SIZE - 4, "mean distance, % of that between any two items", "unit",
                     "end"))  # fmt: skip
    return drawing(WIDTH, y + SIZE, "Mean distance of items to their medoids", *body)


@dataclass(frozen=True)
class Grid:
    """The larger families' native sources; `more` families are left out of it."""

    columns: list[tuple[str, int]]
    rows: list[tuple[str, int, list[tuple[str, str, float, bool]]]]
    more: int


def family_grid(affinity: dict[str, Any]) -> Grid:
    """Mean number of native sources of each family, the shade by how far it is above chance."""
    pairs = {(p["family"], p["source_family"]): p for p in affinity["pairs"]}
    targets = {p["family"]: p["targets"] for p in affinity["pairs"]}
    sources = {p["source_family"]: p["sources"] for p in affinity["pairs"]}
    both = sorted(
        {*targets} & {*sources}, key=lambda f: (-min(targets[f], sources[f]), -sources[f], f)
    )
    shown = both[:MOST]
    rows = []
    for family in shown:
        cells = []
        for other in shown:
            pair = pairs[family, other]
            ratio = pair["natives"] / pair["chance"] if pair["chance"] else 1.0
            shade = min(max(math.log2(max(ratio, 1e-9)), 0.0), 1.0)
            cells.append((fixed(pair["natives"], 1), fixed(pair["chance"], 1), shade,
                          family == other))  # fmt: skip
        rows.append((family, targets[family], cells))
    columns = [(family, round(sources[family])) for family in shown]
    return Grid(columns, rows, len({*targets} | {*sources}) - len(shown))


def family_pairs(rows: Sequence[dict[str, Any]], measure: Measure) -> Markup | None:
    """Each family's targets with and without sources of their family, joined by a line."""
    ends = [f"{measure.key}_{side}" for side in ("with", "without")]
    rows = [row for row in rows if all(row[key] is not None for key in ends)]
    if not rows:
        return None
    values = [measure.factor * row[key] for row in rows for key in ends]
    low, high = nice_range(min(values), max(values), 4)
    height = PAIRS_TOP + PAIRS_ROW * len(rows) + PAIRS_BOTTOM
    floor = height - PAIRS_BOTTOM
    x = Scale(low, high, PAIRS_LEFT + 8, WIDTH - PAIRS_RIGHT)
    body = []
    for value in nice_ticks(low, high, 4):
        body.append(rule(x(value), PAIRS_TOP - 6, x(value), floor, "grid"))
        body.append(text(x(value), floor + 14, tick(value), "tick", "middle"))
    for look, at in ((WITH, PAIRS_LEFT + 12), (WITHOUT, PAIRS_LEFT + 142)):
        key = [look.mark(at, 7, 3.8), text(at + 9, 11, look.name, "name")]
        body.append(tag("g", *key, cls=look.cls))
    for k, row in enumerate(rows):
        y = PAIRS_TOP + PAIRS_ROW * k + PAIRS_ROW / 2 - 4
        one, other = (measure.factor * row[key] for key in ends)
        said = " and ".join(
            f"{fixed(v, measure.places)} {look.name}" for v, look in ((one, WITH), (other, WITHOUT))
        )
        pieces = [
            tag("title", f"{row['family']}: {measure.title.lower()} {said}"),
            text(PAIRS_LEFT - 6, y + 4, fit(str(row["family"]), PAIRS_LEFT - 8, 12), "", "end"),
            rule(x(one), y, x(other), y, "target"),
        ]
        pieces += [
            tag("g", look.mark(x(v), y, 4.2), cls=look.cls)
            for v, look in ((one, WITH), (other, WITHOUT))
        ]
        body.append(tag("g", *pieces))
    body.append(text(WIDTH - PAIRS_RIGHT, floor + 30, measure.unit, "unit", "end"))
    return drawing(WIDTH, height, f"{measure.title} with and without the family", *body)
