"""The look of all charts: colors, type, marks of methods, and how a chart goes into a page.

Charts hold the light colors, so that notebooks and exported pictures need nothing else. In a page,
`page_spec` puts CSS variables in their place: a page then turns dark with the reader's system.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    import altair as alt

LIGHT = {
    "paper": "#fdfcfa", "ink": "#1d1c1a", "soft": "#65615a", "line": "#d9d4cb",
    "faint": "#ebe7e0", "rest": "#bdb7ac", "ref": "#7d786f", "warn": "#b8540a",
    "m0": "#1f62b8", "m1": "#bf4408", "m2": "#0b5345", "m3": "#b23a8e", "m4": "#a98600",
    "m5": "#4a2c82", "m6": "#3f97bd", "m7": "#8c2332", "m8": "#6b8e23", "m9": "#8a6a55",
    "m10": "#3c4a6b",
}  # fmt: skip
"""Colors by the name of their CSS variable; m0 to m10 are those of methods, safe for color-blind
readers in their first six, and told apart by marks besides."""
DARK = {
    "paper": "#16171a", "ink": "#ece9e3", "soft": "#a5a199", "line": "#3a3b40",
    "faint": "#292a2e", "rest": "#55565c", "ref": "#9a958c", "warn": "#f0a868",
    "m0": "#5b9cf0", "m1": "#f0803c", "m2": "#2fa583", "m3": "#f3a6d6", "m4": "#ecd564",
    "m5": "#8f74ea", "m6": "#a5e3f5", "m7": "#dd5562", "m8": "#a8cf5a", "m9": "#c9a58c",
    "m10": "#93a5c9",
}  # fmt: skip
SANS = "-apple-system,BlinkMacSystemFont,Segoe UI,Roboto,Helvetica Neue,Arial,sans-serif"
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
COLORS = 11
FIXED = (
    "fewbench", "greedy-ridge", "fewbench-static", "aipw", "tailored", "collaborative",
    "disco-pds-rf", "anchor-points", "gp-irt-anchor", "metabench", "fluid",
)  # fmt: skip
"""Methods whose look is theirs on every page; no other method has one of these colors if it can."""
LOOKS = COLORS * len(SHAPES)
"""Colors and shapes together; no two places below it look the same."""
KEY = 4
"""Number of the best methods that keep their color and name among many; the others are gray."""
FEW = 6
"""Up to this number of methods, all keep their color and name."""
_VARIABLES = {color: f"var(--{name})" for name, color in LIGHT.items()}


@dataclass(frozen=True)
class Look:
    """The color and mark of a method, the same in all charts: the mark still tells in gray."""

    name: str
    color: str
    shape: str
    dash: tuple[int, ...] = ()

    @property
    def hex(self) -> str:
        """The color on light paper."""
        return LIGHT[self.color]


def looks(methods: Iterable[str], reference: str | None = None) -> dict[str, Look]:
    """Return a look for each method, which follows from its name: the same on every page.

    Methods that are not in `FIXED` start from a number made of their name, and take the first color
    from there that no other method of the page has; of more methods than colors, marks and dashes
    tell which is which.

    Examples
    --------
    >>> looks(["random", "fewbench"], "random")["fewbench"]
    Look(name='fewbench', color='m0', shape='circle', dash=())
    >>> looks(["ridge", "fewbench"])["ridge"] == looks(["fewbench", "aipw", "ridge"])["ridge"]
    True
    """
    names = list(dict.fromkeys(methods))
    places = {name: FIXED.index(name) for name in names if name in FIXED and name != reference}
    for name in names:
        if name in places or name == reference:
            continue
        start, used = crc32(name.encode()), set(places.values())
        colors = {place % COLORS for place in used}
        steps = [(start + step) % (2 * LOOKS) for step in range(2 * LOOKS)]
        free = [place for place in steps if place not in used and place >= COLORS]
        places[name] = next((place for place in free if place % COLORS not in colors), free[0])
    chosen: dict[str, Look] = {}
    for name in names:
        if name == reference:
            chosen[name] = Look(name, "ref", "circle", (2, 3))
            continue
        place = places[name]
        dash = () if place < LOOKS else (6, 3)
        chosen[name] = Look(name, f"m{place % COLORS}", SHAPES[place % len(SHAPES)], dash)
    return chosen


def finite(value: Any, places: int = 5) -> float | None:
    """Return a number for a chart, rounded, or None where it is missing.

    Examples
    --------
    >>> finite(0.1234567), finite(float("nan")), finite(None)
    (0.12346, None, None)
    """
    if value is None or value != value or not math.isfinite(float(value)):
        return None
    return round(float(value), places)


def rows(values: Iterable[Mapping[str, Any]]) -> alt.Data:
    """Return records as the data of a chart: a tuple, which Altair does not copy at every step."""
    import altair as alt

    return alt.Data(values=tuple(map(dict, values)))  # type: ignore[no-untyped-call]


def ticks() -> alt.ExprRef:
    """Return the number of ticks of a horizontal axis: as many as its width can label."""
    import altair as alt

    return alt.ExprRef(expr="max(2, floor(width / 60))")


def params() -> list[alt.Parameter]:
    """Return what a page sets in every chart with methods: those in focus, those switched off."""
    import altair as alt

    return [alt.param(name="focus", value=[]), alt.param(name="off", value=[])]


SHOWN = "indexof(off, datum.method) < 0"
"""Filter of a chart with `params`: the method is not switched off."""
FOCUSED = "indexof(focus, datum.method) >= 0"
VIVID = f"length(focus) ? {FOCUSED} : datum.key"
"""Whether a row has its color: in focus, or, without a focus, one of those that matter."""
DIMMED = f"length(focus) && !({FOCUSED})"


def methods(values: Iterable[Mapping[str, Any]]) -> alt.Chart:
    """Return a chart of rows with a `method` each, without those that are switched off."""
    import altair as alt

    return alt.Chart(rows(values)).transform_filter(SHOWN)


def color(found: Mapping[str, Look], *, always: bool = False) -> Any:
    """Return the color of rows by their `method`; gray for those that matter less."""
    import altair as alt

    names = list(found)
    scale = alt.Scale(domain=names, range=[found[name].hex for name in names])
    of_method = alt.Color("method:N", scale=scale, legend=None)
    if always:
        return of_method
    return alt.when(VIVID).then(of_method).otherwise(alt.value(LIGHT["rest"]))


def shape(found: Mapping[str, Look]) -> alt.Shape:
    """Return the mark of rows by their `method`."""
    import altair as alt

    names = list(found)
    scale = alt.Scale(domain=names, range=[found[name].shape for name in names])
    return alt.Shape("method:N", scale=scale, legend=None)


def dimmed(strong: float = 1.0, weak: float = 0.12) -> Any:
    """Return the opacity of rows: weak while other methods are in focus."""
    import altair as alt

    return alt.when(DIMMED).then(alt.value(weak)).otherwise(alt.value(strong))


def keys(best_first: Sequence[str], reference: str | None) -> set[str]:
    """Return the methods that keep color and name: all of a few, else the best, the reference."""
    if len(best_first) <= FEW:
        return set(best_first)
    return {*best_first[:KEY], *(name for name in best_first if name == reference)}


def finished(
    chart: Any, told: str, height: float | None = None, width: float | str = 420, right: float = 10
) -> Any:
    """Return a chart with the look of all, a text for screen readers, and its size.

    `right` is room for names beside the chart, in pixels.
    """
    size: dict[str, Any] = {"width": width}
    if height is not None:
        size["height"] = height
    padding = {"left": 2, "right": right, "top": 6, "bottom": 2}
    return chart.properties(description=told, padding=padding, **size).configure(**config())


def config() -> dict[str, Any]:
    """Return the Vega-Lite configuration of all charts."""
    quiet = {
        "labelColor": LIGHT["soft"], "labelFontSize": 12, "titleColor": LIGHT["soft"],
        "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": LIGHT["faint"],
        "domainColor": LIGHT["line"], "tickColor": LIGHT["line"], "labelFont": SANS,
        "titleFont": SANS, "labelPadding": 5,
    }  # fmt: skip
    return {
        "background": LIGHT["paper"],
        "font": SANS,
        "view": {"stroke": None},
        "axis": quiet,
        "axisX": {"grid": False, "titlePadding": 8},
        "axisY": {
            "domain": False, "ticks": False, "labelLimit": 200, "titleAngle": 0,
            "titleAlign": "left", "titleAnchor": "end", "titleX": -30, "titleY": -8,
            "titleBaseline": "bottom",
        },
        "text": {"color": LIGHT["ink"], "fontSize": 12},
        "legend": {"disable": True},
        "rule": {"color": LIGHT["line"]},
        "autosize": {"type": "fit", "contains": "padding"},
    }  # fmt: skip


def unchecked(make: Callable[[], Any]) -> Any:
    """Return the chart that `make` makes, without a check of its parts: tests check every chart."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        return make()


def page_spec(chart: Any) -> dict[str, Any]:
    """Return a chart as plain values for a page: CSS variables for colors, no own configuration."""
    spec = chart.to_dict(validate=False)
    for name in ("$schema", "config", "background"):
        spec.pop(name, None)
    return dict(with_variables(spec))


def page_config() -> dict[str, Any]:
    """Return the configuration that the charts of a page share."""
    look = {**config(), "background": None}
    return dict(with_variables(look))


def with_variables(value: Any) -> Any:
    """Return values with CSS variables in place of the colors."""
    if isinstance(value, str):
        return _VARIABLES.get(value, value)
    if isinstance(value, Mapping):
        return {key: with_variables(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [with_variables(part) for part in value]
    return value
