"""Heat maps of how alike tasks are, in the order of their clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from fewbench.report.identity import COLOURS, Look
from fewbench.report.scales import spread
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
    return "ref" if cluster is None else f"c{cluster % COLOURS}"


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
    return Look("", colour(cluster), "square").swatch()
