"""Maps of the tasks by cluster: how alike tasks are, and the strongest transfers as chords.

These are drawn here and not by Vega: it has no chords, and of a map of 150 × 150 cells it would
make 22,500 elements, which is slow and heavy; runs of equal cells make a few hundred.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewbench.charts.labels import spread
from fewbench.charts.theme import COLORS
from fewbench.report.svg import drawing, fit, num, rule, tag, text, text_width
from fewbench.report.words import fixed

SIDE, NAMES, SIZE = 456.0, 190.0, 11.0  # two maps and the names fill the page's width
HEAD, EDGE, FOOT = 40.0, 11.0, 36.0
MOST_NAMED = 90  # rows lower than a line of text cannot all be named
MOST_CELLS = 150  # along a side: with more tasks a cell is the mean of several
LEAST = 214.0  # what the words above and below a map need
LEVELS = 16
BOLD = 1.09  # how much wider bold letters are
WORDS = {
    "sim": "S: how alike tasks are",
    "le": "S′: the same by eigenmaps",
}
Matrix = Sequence[Sequence[float | None]]
ARC_SIZE, PITCH, ARC_NAMES = 12.0, 13.0, 196.0
SMALL, LARGE, AIR = 90.0, 225.0, 20.0
MOST_ARCS = 400  # more chords are one blot, and a heavy page
LISTED = 30
Place = tuple[float, float]


@dataclass(frozen=True)
class Shape:
    """How many tasks a cell stands for, the cells along a side, and how large one is."""

    tasks: int
    each: int
    cells: int
    wide: float
    high: float

    @property
    def named(self) -> bool:
        """Whether every row has its name."""
        return self.tasks <= MOST_NAMED

    @property
    def width(self) -> float:
        """How wide the map is, without what stands around it."""
        return self.cells * self.wide

    @property
    def height(self) -> float:
        """How high the map is, without what stands around it."""
        return self.cells * self.high


def shape(tasks: int) -> Shape:
    """Whole units, so that cells meet without seams."""
    each = math.ceil(tasks / MOST_CELLS)
    cells = math.ceil(tasks / each)
    wide = min(float(SIDE // cells), 28.0)
    return Shape(tasks, each, cells, wide, max(wide, SIZE) if tasks <= MOST_NAMED else wide)


def maps(found: dict[str, Any], chosen: Sequence[str]) -> list[Markup]:
    """The names and then each map, of one height, to stand side by side.

    Each picture is drawn at its own size, one unit a pixel: shrunk, the names could not be read.
    """
    size = shape(len(found["tasks"]))
    drawn = [_names(found, set(chosen), size)]
    return drawn + [
        _map(found, key, set(chosen), size) for key in WORDS if found.get(key) is not None
    ]


def colour(cluster: int | None) -> str:
    """The colour class of a cluster, the same in every picture."""
    return "ref" if cluster is None else f"m{cluster % COLORS}"


def _names(found: dict[str, Any], chosen: set[str], size: Shape) -> Markup:
    """All names beside their rows, or, with many tasks, those of the chosen ones."""
    tasks = found["tasks"]
    shown = [i for i, t in enumerate(tasks) if size.named or t in chosen]
    rows = [HEAD + (i / size.each + 0.5) * size.high for i in shown]
    places = rows
    if not size.named:
        # Where there is no room for all, the names are taken evenly from top to bottom.
        most = min(int(size.height // (SIZE + 2)), len(shown))
        taken = [round((at + 0.5) * len(shown) / most - 0.5) for at in range(most)]
        shown, rows = [shown[at] for at in taken], [rows[at] for at in taken]
        places = spread(rows, [SIZE + 2.0] * len(rows), HEAD, HEAD + size.height)
    letters = {i: BOLD * SIZE if tasks[i] in chosen else SIZE for i in shown}
    room = min(max((text_width(tasks[i], letters[i]) for i in shown), default=0.0) + 18, NAMES)
    body = []
    for i, row, y in zip(shown, rows, places, strict=True):
        mine = tasks[i] in chosen
        words = fit(tasks[i], room - 16, letters[i])
        pieces = [tag("title", tasks[i])]
        pieces.append(text(room - 14, y + 4, words, "little strong" if mine else "little", "end"))
        if mine:
            pieces.append(_mark(room - 5, y, "right"))
        if abs(row - y) > 0.5:
            pieces.append(rule(room - 2, y, room, row, "target"))
        body.append(tag("g", *pieces))
    return _at_size(room, _tall(size), "Names of the tasks", body)


def _mark(x: float, y: float, way: str) -> Markup:
    """A small triangle that points at a chosen task's row or column."""
    corners = {"right": [(-3, -4), (-3, 4), (4, 0)], "down": [(-4, -4), (4, -4), (0, 3)]}[way]
    path = "L".join(f"{num(x + a)} {num(y + b)}" for a, b in corners)
    return tag("path", d=f"M{path}Z", cls="here")


def _map(found: dict[str, Any], key: str, chosen: set[str], size: Shape) -> Markup:
    tasks, clusters, left = found["tasks"], found["clusters"], EDGE
    cells = _cells(found[key], size)
    # The extreme hundredths are shaded like their neighbours, or a few would hide the rest.
    low, high = _ends(cells)
    body = [text(0, 12, WORDS[key], "strong")]
    body += _edges(clusters, size)
    for i, task in enumerate(tasks):
        if task in chosen:
            body.append(_mark(left + (i / size.each + 0.5) * size.wide, HEAD - 12, "down"))
    runs: dict[int, list[str]] = {}
    for r, row in enumerate(cells):
        y = num(HEAD + (r + 0.5) * size.high)
        start = 0
        while start < size.cells:
            level, stop = _level(row[start], low, high), start + 1
            while stop < size.cells and _level(row[stop], low, high) == level:
                stop += 1
            if level is not None:
                runs.setdefault(level, []).append(
                    f"M{num(left + start * size.wide)} {y}h{num((stop - start) * size.wide)}"
                )
            start = stop
    for level, paths in sorted(runs.items()):
        body.append(
            tag("path", d="".join(paths), cls="cell", stroke_width=size.high, style=_shade(level))
        )
    body.append(_between(clusters, size))
    if size.each == 1 and size.named:
        body += _rows(found, key, size)
    body += _legend(low, high, size)
    told = f"{WORDS[key]}, {len(tasks)} tasks in the order of their clusters"
    return _at_size(max(left + size.width + 6, LEAST), _tall(size), told, body)


def _cells(matrix: Matrix, size: Shape) -> list[list[float]]:
    """Means over the tasks of each cell; NaN on the diagonal, which would hide the rest."""
    known = [
        [math.nan if i == j or v is None else float(v) for j, v in enumerate(row)]
        for i, row in enumerate(matrix)
    ]
    if size.each == 1:
        return known
    cuts = [range(c * size.each, min((c + 1) * size.each, size.tasks)) for c in range(size.cells)]
    made = []
    for rows in cuts:
        line = []
        for columns in cuts:
            values = [v for i in rows for j in columns if math.isfinite(v := known[i][j])]
            line.append(sum(values) / len(values) if values else math.nan)
        made.append(line)
    return made


def _ends(cells: Sequence[Sequence[float]]) -> tuple[float, float]:
    values = sorted(v for row in cells for v in row if math.isfinite(v))
    if not values:
        return 0.0, 0.0
    spare = len(values) // 100
    return values[spare], values[-1 - spare]


def _level(value: float, low: float, high: float) -> int | None:
    if not math.isfinite(value):
        return None
    share = 0.5 if high <= low else (value - low) / (high - low)
    return min(max(int(share * LEVELS), 0), LEVELS - 1)


def _shade(level: int) -> str:
    return f"--h:{0.06 + 0.94 * level / (LEVELS - 1):.2f}"


def _bounds(clusters: Sequence[int]) -> list[tuple[int, int]]:
    """Where each run of one cluster begins and ends."""
    cuts = [i for i in range(1, len(clusters)) if clusters[i] != clusters[i - 1]]
    return list(zip([0, *cuts], [*cuts, len(clusters)], strict=True))


def _edges(clusters: Sequence[int], size: Shape) -> list[Markup]:
    """A bar in the cluster's colour at the left and on top of each run of its tasks."""
    made = []
    for start, stop in _bounds(clusters):
        first, last = start / size.each, stop / size.each
        told = tag("title", f"cluster {clusters[start]}, {stop - start} tasks")
        air = 0.5 if (last - first) * size.wide > 3 else 0.0
        top = tag("rect", x=EDGE + first * size.wide + air, y=HEAD - 7,
                  width=(last - first) * size.wide - 2 * air, height=4.0, cls="column")  # fmt: skip
        side = tag("rect", x=EDGE - 7, y=HEAD + first * size.high + air, width=4.0,
                   height=(last - first) * size.high - 2 * air, cls="column")  # fmt: skip
        made.append(tag("g", told, top, side, cls=colour(clusters[start])))
    return made


def _between(clusters: Sequence[int], size: Shape) -> Markup:
    """Thin gaps between clusters, as long as they do not cover the cells."""
    cuts = [start / size.each for start, _ in _bounds(clusters)[1:]]
    if size.cells > 100 or len(cuts) > size.cells / 3:
        cuts = []
    path = "".join(
        f"M{num(EDGE + c * size.wide)} {num(HEAD)}v{num(size.height)}"
        f"M{num(EDGE)} {num(HEAD + c * size.high)}h{num(size.width)}"
        for c in cuts
    )
    return tag("path", d=path, cls="gap") if path else Markup("")


def _rows(found: dict[str, Any], key: str, size: Shape) -> list[Markup]:
    """Rows that can be pointed at: which other task is most like this one."""
    made = []
    for i, task in enumerate(found["tasks"]):
        values = [(v, j) for j, v in enumerate(found[key][i]) if j != i and v is not None]
        if not values:
            continue
        value, j = max(values, key=lambda one: (one[0], -one[1]))
        told = f"{task}, cluster {found['clusters'][i]}: most like {found['tasks'][j]}"
        made.append(
            tag("rect", tag("title", f"{told} ({fixed(value, 2)})"), x=EDGE,
                y=HEAD + i * size.high, width=size.width, height=size.high, cls="across")
        )  # fmt: skip
    return made


def _legend(low: float, high: float, size: Shape) -> list[Markup]:
    y, at = HEAD + size.height + 12, EDGE + 44
    made = [text(at - 6, y + 9, fixed(low), "tick", "end")]
    made += [
        tag("path", d=f"M{num(at + 6 * k)} {num(y + 5)}h6", cls="cell", stroke_width=10.0,
            style=_shade(k))
        for k in range(LEVELS)
    ]  # fmt: skip
    return [*made, text(at + 6 * LEVELS + 6, y + 9, fixed(high), "tick")]


def _tall(size: Shape) -> float:
    return HEAD + size.height + FOOT


def _at_size(width: float, height: float, told: str, body: Sequence[str]) -> Markup:
    picture = drawing(width, height, told, *body)
    return tag("div", picture, style=f"width:{num(width)}px")


def swatch(cluster: int | None) -> Markup:
    """The cluster's colour for tables."""
    box = tag("rect", x=-4.2, y=-4.2, width=8.4, height=8.4)
    return tag("svg", box, cls=f"swatch {colour(cluster)}", viewBox="-7 -7 14 14",
               aria_hidden="true")  # fmt: skip


def transfer_arcs(found: dict[str, Any], chosen: Sequence[str]) -> Markup | None:
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
    widest = max((text_width(tasks[i], BOLD * ARC_SIZE) for i in named), default=0.0)
    side = min(widest, ARC_NAMES) + AIR + 12
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
    return sorted(known, key=lambda arc: (-arc[2], arc[0], arc[1]))[:MOST_ARCS]


def transfers_table(found: dict[str, Any]) -> dict[str, Any]:
    """The strongest transfers in words."""
    tasks = found["tasks"]
    rows = [[tasks[i], tasks[j], fixed(v, 3)] for i, j, v in strongest(found)[:LISTED]]
    return {"header": ["Exemplars of", "help on", "above the column’s mean"], "rows": rows}


def transfers_said(found: dict[str, Any]) -> str:
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
            size = BOLD * ARC_SIZE if mine else ARC_SIZE
            words = text(x + sign * 4, y + 4, fit(tasks[i], ARC_NAMES, size),
                         "name strong" if mine else "name", "end" if left else None)  # fmt: skip
            made[i] = tag("g", tag("path", d=thread, cls="thread"), words)
    return made
