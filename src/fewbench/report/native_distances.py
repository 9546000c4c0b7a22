"""Pictures of how far items are from the medoids that stand for them."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from fewbench.report.identity import Look
from fewbench.report.native_pictures import BOTTOM, HEIGHT, LEFT, RIGHT, SIZE, TOP, WIDTH
from fewbench.report.scales import Scale, nice_range, nice_ticks
from fewbench.report.svg import drawing, num, rule, tag, text
from fewbench.report.words import tick

SOURCES = Look("sources", "c0", "circle")
TARGETS = Look("targets", "c1", "square")
STEPS = 60
ROOM = 64.0  # what a name needs left of its line
ROW, HEAD, BARS = 25.0, 30.0, 118.0


def within(spread: dict[str, Any]) -> Markup | None:
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


def bars(spread: dict[str, Any]) -> Markup | None:
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
