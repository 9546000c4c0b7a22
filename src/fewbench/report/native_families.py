"""Families of native sources: who is native to whom, and what is lost without one's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewbench.report.identity import Look
from fewbench.report.native_pictures import Measure
from fewbench.report.scales import Scale, nice_range, nice_ticks
from fewbench.report.svg import drawing, fit, rule, tag, text
from fewbench.report.words import fixed, tick

MOST = 8
WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 360.0, 116.0, 16.0, 26.0, 26.0, 34.0
WITH = Look("with its family", "c0", "circle")
WITHOUT = Look("without", "c1", "square")


@dataclass(frozen=True)
class Grid:
    """The larger families' native sources; `more` families are left out of it."""

    columns: list[tuple[str, int]]
    rows: list[tuple[str, int, list[tuple[str, str, float, bool]]]]
    more: int


def grid(affinity: dict[str, Any]) -> Grid:
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


def pairs(rows: Sequence[dict[str, Any]], measure: Measure) -> Markup | None:
    """Each family's targets with and without sources of their family, joined by a line."""
    ends = [f"{measure.key}_{side}" for side in ("with", "without")]
    rows = [row for row in rows if all(row[key] is not None for key in ends)]
    if not rows:
        return None
    values = [measure.factor * row[key] for row in rows for key in ends]
    low, high = nice_range(min(values), max(values), 4)
    height = TOP + ROW * len(rows) + BOTTOM
    floor = height - BOTTOM
    x = Scale(low, high, LEFT + 8, WIDTH - RIGHT)
    body = []
    for value in nice_ticks(low, high, 4):
        body.append(rule(x(value), TOP - 6, x(value), floor, "grid"))
        body.append(text(x(value), floor + 14, tick(value), "tick", "middle"))
    for look, at in ((WITH, LEFT + 12), (WITHOUT, LEFT + 142)):
        key = [look.mark(at, 7, 3.8), text(at + 9, 11, look.name, "name")]
        body.append(tag("g", *key, cls=look.cls))
    for k, row in enumerate(rows):
        y = TOP + ROW * k + ROW / 2 - 4
        one, other = (measure.factor * row[key] for key in ends)
        said = " and ".join(
            f"{fixed(v, measure.places)} {look.name}" for v, look in ((one, WITH), (other, WITHOUT))
        )
        pieces = [
            tag("title", f"{row['family']}: {measure.title.lower()} {said}"),
            text(LEFT - 6, y + 4, fit(str(row["family"]), LEFT - 8, 12), "", "end"),
            rule(x(one), y, x(other), y, "target"),
        ]
        pieces += [
            tag("g", look.mark(x(v), y, 4.2), cls=look.cls)
            for v, look in ((one, WITH), (other, WITHOUT))
        ]
        body.append(tag("g", *pieces))
    body.append(text(WIDTH - RIGHT, floor + 30, measure.unit, "unit", "end"))
    return drawing(WIDTH, height, f"{measure.title} with and without the family", *body)
