"""Charts of a plan: error by number of items, and by number of source models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewbench.scores import Unit
from fewbench.show.charts import forms, theme
from fewbench.show.charts.labels import spread
from fewbench.show.charts.theme import finished, finite

RANDOM = "random"
HEIGHT = 260.0
LABEL = 19.0
"""Height of a method's name, where the axes take a quarter of HEIGHT."""
STEP = 1.25
"""Least ratio of the numbers of items that the axis names: closer ones would touch."""


def error_by_items(curves: Sequence[Mapping[str, Any]], target: str, unit: Unit) -> Any | None:
    """Error of the backtested methods by number of items; random sampling by its exact error.

    Each backtest of a method is a line of its own: they are on different models.

    Parameters
    ----------
    curves : sequence of dict
        `target`, `method`, `backtest` (judging or choosing), `items`, `error`, `error_low`,
        `error_high`, `random_error`, as in a plan's JSON.
    target : str
        The relation of targets to source models.
    unit : Unit
        How errors are printed.
    """
    import altair as alt

    rows = [row for row in curves if row["target"] == target and row["error"] is not None]
    if not rows:
        return None
    title = unit.points_title("expected error")
    values = [_point(row, unit) for row in rows if row["method"] != RANDOM]
    exact = {(row["backtest"], row["items"]): row["random_error"] for row in rows}
    values += [
        {
            "method": RANDOM, "backtest": backtest, "items": n, "low": None, "high": None,
            "error": finite(error * unit.factor, 3), "line": "exact",
        }
        for (backtest, n), error in sorted(exact.items())
    ]  # fmt: skip
    looks = theme.looks([value["method"] for value in values], RANDOM)
    numbers = sorted({value["items"] for value in values})
    named = [n for at, n in enumerate(numbers) if not at or n >= STEP * numbers[at - 1]]
    x = alt.X(
        "items:Q",
        scale=alt.Scale(type="log", domain=[numbers[0], numbers[-1]], nice=False, padding=10),
        axis=alt.Axis(values=named, title="number of items (log scale)", format=",d",
                      labelOverlap="greedy"),
    )  # fmt: skip
    top = max(value["high"] or value["error"] for value in values) or 1.0
    axis, scale = alt.Axis(title=title, tickCount=5), alt.Scale(domain=[0, top], nice=False)
    base = theme.methods(values)
    band = base.transform_filter("datum.low !== null && datum.backtest == 'judging'").mark_area(
        opacity=0.14
    ).encode(
        x=x, y=alt.Y("low:Q", axis=axis, scale=scale), y2="high:Q", detail="method:N",
        color=theme.color(looks, always=True),
    )  # fmt: skip
    y = alt.Y("error:Q", axis=axis, scale=scale)
    dash = alt.StrokeDash(
        "line:N", legend=None,
        scale=alt.Scale(domain=["judging", "choosing", "exact"], range=[[1, 0], [5, 4], [2, 3]]),
    )  # fmt: skip
    line = base.mark_line(strokeWidth=2).encode(
        x=x, y=y, detail=["method:N", "backtest:N"], strokeDash=dash,
        color=theme.color(looks, always=True), opacity=theme.dimmed(),
    )  # fmt: skip
    spot = base.mark_point(filled=True, size=46, opacity=1).encode(
        x=x, y=y, shape=theme.shape(looks), color=theme.color(looks, always=True),
        opacity=theme.dimmed(),
        tooltip=["method:N", "backtest:N", alt.Tooltip("items:Q", title="items"),
                 *(alt.Tooltip(f"{key}:Q", format=".2f") for key in ("error", "low", "high"))],
    )  # fmt: skip
    label = theme.methods(_ends(values, top)).mark_text(
        align="left", dx=9, baseline="middle", limit=110
    ).encode(
        x=x, y=alt.Y("at:Q", axis=axis, scale=scale), text="method:N",
        color=theme.color(looks, always=True),
    )  # fmt: skip
    text = "; ".join(
        f"{value['method']} ({value['backtest']}): {value['error']:.2f} at {value['items']:,}"
        for value in values
    )
    chart = alt.layer(band, line, spot, label).add_params(*theme.params())
    return finished(chart, f"{title} by number of items. {text}.", HEIGHT)


def _point(row: Mapping[str, Any], unit: Unit) -> dict[str, Any]:
    ends = {"error": "error", "low": "error_low", "high": "error_high"}
    which = {"method": row["method"], "backtest": row["backtest"], "line": row["backtest"]}
    return (
        which
        | {"items": row["items"]}
        | {
            key: None if row[name] is None else finite(row[name] * unit.factor, 3)
            for key, name in ends.items()
        }
    )


def _ends(values: Sequence[dict[str, Any]], top: float) -> list[dict[str, Any]]:
    """Return where the name of each method stands: `at` the end of its main line, or near it."""
    ends: dict[str, dict[str, Any]] = {}
    for value in sorted(values, key=lambda row: (row["backtest"] != "choosing", row["items"])):
        ends[value["method"]] = value
    centers = [HEIGHT * (1 - value["error"] / top) for value in ends.values()]
    apart = spread(centers, [LABEL] * len(ends), 0.0, HEIGHT)
    return [
        value | {"at": top * (1 - center / HEIGHT)}
        for value, center in zip(ends.values(), apart, strict=True)
    ]


def error_by_sources(learning: Mapping[str, Any], unit: Unit) -> Any | None:
    """Error by number of source models: `sources`, a list of `sources`, `error`, `low`, `high`."""
    points = [
        {"step": size["sources"], "score": size["error"], "low": size["low"], "high": size["high"]}
        for size in learning["sources"]
    ]
    shown = forms.in_unit(points, unit, ("score", "low", "high"))
    return forms.course(shown, "number of source models", unit.points_title("expected error"))
