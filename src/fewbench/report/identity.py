"""Which colour and which mark a method has, the same in every picture of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fewbench.report.svg import num, tag

COLOURS = 11
_SHAPES = ("circle", "square", "up", "diamond", "down", "hexagon")


@dataclass(frozen=True)
class Look:
    """A method's colour class and mark: the mark still tells methods apart in grey."""

    name: str
    cls: str
    shape: str
    hollow: bool = False

    def mark(self, x: float, y: float, size: float = 4.0) -> Markup:
        """The method's mark, centred on a point."""
        cls = "mark hollow" if self.hollow else "mark"
        if self.shape == "circle":
            return tag("circle", cx=x, cy=y, r=size, cls=cls)
        return tag("path", d=_outline(self.shape, x, y, size), cls=cls)

    def swatch(self) -> Markup:
        """The mark as a small inline picture for tables and captions."""
        return tag(
            "svg", self.mark(7, 7, 4.6), viewBox="0 0 14 14", cls=f"swatch {self.cls}",
            aria_hidden="true", xmlns="http://www.w3.org/2000/svg",
        )  # fmt: skip


def _outline(shape: str, x: float, y: float, size: float) -> str:
    sides, turn, grow = {
        "square": (4, 45, 1.25),
        "diamond": (4, 0, 1.3),
        "up": (3, -90, 1.35),
        "down": (3, 90, 1.35),
        "hexagon": (6, 0, 1.1),
        "cross": (4, 0, 1.0),
    }[shape]
    corners = []
    for k in range(sides):
        angle = math.radians(turn + 360 * k / sides)
        corners.append((x + grow * size * math.cos(angle), y + grow * size * math.sin(angle)))
    return "M" + "L".join(f"{num(a)} {num(b)}" for a, b in corners) + "Z"


def looks(methods: Sequence[str], reference: str | None) -> Mapping[str, Look]:
    """A look for each method, by its place in the input and not by how well it did."""
    found: dict[str, Look] = {}
    for name in methods:
        if name == reference:
            found[name] = Look(name, "ref", "circle", hollow=True)
            continue
        place = len([n for n in found if n != reference])
        found[name] = Look(
            name,
            f"c{place % COLOURS}",
            _SHAPES[place % len(_SHAPES)],
            hollow=place // len(_SHAPES) % 2 == 1,
        )
    return found
