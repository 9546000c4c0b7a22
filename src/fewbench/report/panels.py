"""Square panels, one per method: estimated against true score, and rank against rank."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from fewbench.report.identity import Look
from fewbench.report.results import Estimate
from fewbench.report.scales import Scale, nice_range, nice_ticks
from fewbench.report.svg import drawing, join, num, rule, tag, text
from fewbench.report.words import points, tick

SIDE, LEFT, BOTTOM, MARGIN = 200.0, 30.0, 26.0, 8.0
MOST = 400
# Above this many dots nobody can point at one, and names would make up most of the file.
TOLD = 150
RIGHT, FLOOR = SIDE - MARGIN, SIDE - BOTTOM


def thin(values: Sequence[Estimate], most: int = MOST) -> list[Estimate]:
    """At most `most` values, evenly taken from low to high truth."""
    ordered = sorted(values, key=lambda e: (e.truth, e.target))
    if len(ordered) <= most:
        return ordered
    return [ordered[i * len(ordered) // most] for i in range(most)]


def score_range(groups: Sequence[Sequence[Estimate]]) -> tuple[float, float]:
    """One axis for all panels of a split, in percent, so that they can be compared."""
    seen = [v for group in groups for e in group for v in (100 * e.truth, 100 * e.value)]
    if not seen:
        return 0.0, 100.0
    low, high = nice_range(min(seen), max(seen), 5)
    # No score lies beyond 0 or 100: an estimate that does is drawn on the frame.
    return max(low, 0.0), min(high, 100.0)


def scores(values: Sequence[Estimate], look: Look, span: tuple[float, float]) -> Markup:
    """Each target's estimate against its true score, with its interval."""
    x, y = Scale(*span, LEFT, RIGHT), Scale(*span, FLOOR, MARGIN)
    ticks = [(v, tick(v)) for v in nice_ticks(*span, 5)]
    hits, misses, dots = "", "", []
    shown = thin(values)
    for e in shown:
        a, b = x.clamp(100 * e.truth), y.clamp(100 * e.value)
        told = f"{e.target}: true {points(e.truth, 1)}, estimated {points(e.value, 1)}"
        if e.low <= e.high:
            told += f" [{points(e.low, 1)} to {points(e.high, 1)}]"
            line = f"M{num(a)} {num(y.clamp(100 * e.low))}V{num(y.clamp(100 * e.high))}"
            hits, misses = (hits, misses + line) if e.misses else (hits + line, misses)
        dots.append(_dot(a, b, told if len(shown) <= TOLD else None))
    whiskers = [tag("path", d=d, cls=c) for d, c in ((hits, "whisker"), (misses, "whisker miss"))]
    told = f"Estimated against true score, {look.name}"
    return _panel(look, told, (x, y), ticks, "%", [*whiskers, *dots])


def ranks(values: Sequence[Estimate], look: Look) -> Markup:
    """Each target's estimated place against its true place, the best at the top right."""
    n = len(values)
    true, guessed = places([e.truth for e in values]), places([e.value for e in values])
    # Half a place of air at both ends keeps the first and the last inside the frame.
    x, y = Scale(n + 0.5, 0.5, LEFT, RIGHT), Scale(n + 0.5, 0.5, FLOOR, MARGIN)
    wanted = sorted({1, *(round(v) for v in nice_ticks(0, n, 3) if v >= 1)})
    if len(wanted) > 2 and wanted[1] - 1 < n / 8:
        wanted.pop(1)
    shown = {(e.target, e.truth) for e in thin(values)}

    def told(e: Estimate, t: float, g: float) -> str:
        return f"{e.target}: true place {tick(t)}, estimated {tick(g)}"

    dots = [
        _dot(x(t), y(g), told(e, t, g) if n <= TOLD else None)
        for e, t, g in zip(values, true, guessed, strict=True)
        if (e.target, e.truth) in shown
    ]
    label = f"Estimated against true place among {n} targets, {look.name}"
    return _panel(look, label, (x, y), [(v, str(v)) for v in wanted], "place", dots)


def places(values: Sequence[float]) -> list[float]:
    """Places from the highest down, equal values sharing the mean of their places.

    >>> places([0.2, 0.9, 0.2])
    [2.5, 1.0, 2.5]
    """
    order = sorted(values, reverse=True)
    first = {v: i for i, v in reversed(list(enumerate(order, 1)))}
    last = {v: i for i, v in enumerate(order, 1)}
    return [(first[v] + last[v]) / 2 for v in values]


def _dot(x: float, y: float, told: str | None) -> Markup:
    if told is None:
        return Markup(f'<circle cx="{num(x)}" cy="{num(y)}" r="2.6" class="dot"/>')
    return tag("circle", tag("title", told), cx=x, cy=y, r=2.6, cls="dot")


def _panel(
    look: Look,
    told: str,
    axes: tuple[Scale, Scale],
    ticks: list[tuple[float, str]],
    unit: str,
    body: list[Markup],
) -> Markup:
    x, y = axes
    frame = [
        tag("path", d=f"M{num(LEFT)} {num(MARGIN)}V{num(FLOOR)}H{num(RIGHT)}", cls="axis"),
        rule(LEFT, FLOOR, RIGHT, MARGIN, "diagonal"),
        # Off the diagonal there are few dots, so the axes are named inside the frame.
        text(LEFT + 6, MARGIN + 10, f"estimated {unit}", "unit"),
        text(RIGHT, FLOOR - 7, f"true {unit}", "unit", "end"),
    ]
    for value, shown in ticks:
        frame.append(rule(x(value), FLOOR, x(value), FLOOR + 3, "axis"))
        frame.append(rule(LEFT - 3, y(value), LEFT, y(value), "axis"))
        # The outermost numbers lean inwards, so that three digits stay in the picture.
        anchor = "end" if x(value) > RIGHT - 6 else "middle"
        frame.append(text(x(value) + (3 if anchor == "end" else 0), FLOOR + 17, shown, "tick",
                          anchor))  # fmt: skip
        frame.append(text(LEFT - 6, y(value) + 4, shown, "tick", "end"))
    return drawing(SIDE, SIDE, told, *frame, tag("g", join(body), cls=look.cls), cls="square")
