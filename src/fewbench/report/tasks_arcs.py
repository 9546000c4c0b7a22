"""The strongest transfers from task to task, drawn as chords of a circle."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from fewbench.report.scales import spread
from fewbench.report.svg import drawing, fit, num, tag, text, text_width
from fewbench.report.tasks_map import BOLD, colour
from fewbench.report.words import fixed

SIZE, PITCH, NAMES = 12.0, 13.0, 196.0
SMALL, LARGE, AIR = 90.0, 225.0, 20.0
MOST = 400  # more chords are one blot, and a heavy page
LISTED = 30
Place = tuple[float, float]


def arcs(found: dict[str, Any], chosen: Sequence[str]) -> Markup | None:
    """Tasks on a circle in the order of their clusters, a chord for each strong transfer.

    Chords have the colour of the task that the exemplars come from.  Names stand level beside
    the circle, joined to their task by a thread; of very many tasks only those chosen and those
    with most chords have room.
    """
    tasks, clusters, drawn = found["tasks"], found["clusters"], strongest(found)
    if len(tasks) < 2 or not drawn:
        return None
    radius = min(max(3.95 * len(tasks), SMALL), LARGE)
    named = _named(found, set(chosen), 2 * int((2 * radius + 2 * AIR) // PITCH) - 2)
    widest = max((text_width(tasks[i], BOLD * SIZE) for i in named), default=0.0)
    side = min(widest, NAMES) + AIR + 12
    middle = (radius + side, radius + AIR + 12)
    spots = [_on(middle, radius, i, len(tasks)) for i in range(len(tasks))]
    strength = [value for _, _, value in drawn]
    low, high = min(strength), max(strength)
    leaving: dict[int, list[Markup]] = defaultdict(list)
    for source, target, value in reversed(drawn):
        a, b = spots[source], spots[target]
        # Chords bend towards the middle, the farther their ends are apart the closer to it.
        bend = [m + 0.3 * ((p + q) / 2 - m) for m, p, q in zip(middle, a, b, strict=True)]
        path = f"M{num(a[0])} {num(a[1])}Q{num(bend[0])} {num(bend[1])} {num(b[0])} {num(b[1])}"
        share = (value - low) / (high - low) if high > low else 1.0
        told = tag("title", f"{tasks[source]} → {tasks[target]}: {fixed(value, 3)}")
        leaving[source].append(
            tag("path", told, d=path, cls="chord", style=f"--h:{0.25 + 0.6 * share:.2f}")
        )
    labels = _labels(found, named, set(chosen), middle, radius)
    body = []
    for i in sorted(range(len(tasks)), key=lambda i: i in labels):
        mine = tasks[i] in chosen
        dot = tag(
            "circle",
            cx=spots[i][0],
            cy=spots[i][1],
            r=_dot(len(tasks)) + (1.4 if mine else 0),
            cls="node own" if mine else "node",
        )
        told = tag("title", f"{tasks[i]}, cluster {clusters[i]}")
        body.append(
            tag("g", *leaving[i], tag("g", told, dot, labels.get(i, Markup(""))),
                cls=f"series {colour(clusters[i])}")
        )  # fmt: skip
    width, height = 2 * middle[0], 2 * middle[1]
    shown = f"The {len(drawn)} strongest transfers between {len(tasks)} tasks"
    picture = drawing(width, height, shown, *body, cls="lines")
    return tag("div", picture, style=f"width:{num(width)}px")


def strongest(found: dict[str, Any]) -> list[tuple[int, int, float]]:
    """The transfers that are drawn, the strongest first."""
    known = [(int(i), int(j), float(v)) for i, j, v in found["arcs"] if v is not None]
    return sorted(known, key=lambda arc: (-arc[2], arc[0], arc[1]))[:MOST]


def table(found: dict[str, Any]) -> dict[str, Any]:
    """The strongest transfers in words."""
    tasks = found["tasks"]
    rows = [[tasks[i], tasks[j], fixed(v, 3)] for i, j, v in strongest(found)[:LISTED]]
    return {"header": ["Exemplars of", "help on", "above the column’s mean"], "rows": rows}


def said(found: dict[str, Any]) -> str:
    """Where strong transfers begin, and how many of them stay within a cluster."""
    every = [(int(i), int(j)) for i, j, _ in found["arcs"]]
    tasks, clusters = found["tasks"], found["clusters"]
    if not every:
        return "No transfer is stronger than the others."
    first = Counter(i for i, _ in every).most_common(2)
    begin = " and ".join(f"{tasks[i]} ({n})" for i, n in first)
    inside = sum(clusters[i] == clusters[j] for i, j in every) / len(every)
    sizes = Counter(clusters)
    pairs = len(tasks) * (len(tasks) - 1)
    chance = sum(n * (n - 1) for n in sizes.values()) / pairs
    if len(every) == 1:
        return f"The strongest transfer is from {tasks[every[0][0]]} to {tasks[every[0][1]]}."
    words = f"The {len(every):,} strongest transfers begin most often at {begin}."
    if len(sizes) > 1:
        words += f" {100 * inside:.0f}% stay within a cluster; {100 * chance:.0f}% would by chance."
    return words


def _dot(tasks: int) -> float:
    return 4.2 if tasks <= 80 else 2.4 if tasks <= 200 else 1.4


def _on(middle: Place, radius: float, i: int, n: int) -> Place:
    """Where a task lies: clockwise from the top, half a step from it to keep both halves even."""
    angle = 2 * math.pi * (i + 0.5) / n
    return middle[0] + radius * math.sin(angle), middle[1] - radius * math.cos(angle)


def _named(found: dict[str, Any], chosen: set[str], room: int) -> list[int]:
    """The tasks whose names are written, as many on either side as there is room for."""
    tasks = found["tasks"]
    ends = Counter(end for i, j, _ in strongest(found) for end in (i, j))
    order = sorted(range(len(tasks)), key=lambda i: (tasks[i] not in chosen, -ends[i], i))
    sides: tuple[list[int], list[int]] = ([], [])
    for i in order:
        side = sides[_left(i, len(tasks))]
        if len(side) < room // 2:
            side.append(i)
    return sorted([*sides[0], *sides[1]])


def _left(i: int, n: int) -> bool:
    return 2 * i + 1 > n


def _labels(
    found: dict[str, Any], named: Sequence[int], chosen: set[str], middle: Place, radius: float
) -> dict[int, Markup]:
    """Names level beside the circle; a thread leads to those that had to move."""
    tasks = found["tasks"]
    made = {}
    outer = radius + AIR
    for left in (False, True):
        here = [i for i in named if _left(i, len(tasks)) == left]
        spots = [_on(middle, radius, i, len(tasks)) for i in here]
        wanted = [_on(middle, outer, i, len(tasks))[1] for i in here]
        ends = (middle[1] - outer - 10, middle[1] + outer + 10)
        places = spread(wanted, [PITCH] * len(here), *ends)
        for i, spot, y in zip(here, spots, places, strict=True):
            # Names hug the circle: each begins where the next larger circle is at its height.
            off = math.sqrt(max(outer**2 - (y - middle[1]) ** 2, 12.0**2))
            sign = -1 if left else 1
            x = middle[0] + sign * off
            mine = tasks[i] in chosen
            thread = f"M{num(spot[0])} {num(spot[1])}L{num(x)} {num(y)}"
            words = text(x + sign * 4, y + 4, fit(tasks[i], NAMES, BOLD * SIZE if mine else SIZE),
                         "name strong" if mine else "name", "end" if left else None)  # fmt: skip
            made[i] = tag("g", tag("path", d=thread, cls="thread"), words)
    return made
