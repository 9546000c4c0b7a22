"""General forms that several results share: intervals, pairs, bars, and a course with its band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewbench.scores import Unit
from fewbench.show.charts import theme
from fewbench.show.charts.theme import LIGHT, finished, finite

MOST = 60
"""Most rows of a chart; more cannot be read."""
Rows = Sequence[Mapping[str, Any]]
ENDS = ("value", "low", "high")


def in_unit(rows: Rows, unit: Unit, keys: Sequence[str] = ENDS) -> list[dict[str, Any]]:
    """Return rows with their scores, errors or differences as they are printed."""
    return [
        {**row, **{k: v * unit.factor for k in keys if (v := row.get(k)) is not None}}
        for row in rows
    ]


def intervals(
    rows: Rows, title: str, told: str, line: float | None = None, form: str = ".4~g"
) -> Any:
    """A row for each value with its interval, in the order given.

    Parameters
    ----------
    rows : sequence of dict
        `name`, `value`, `low` and `high` (None where there is no interval), and, optionally,
        `color`, a name of `theme.LIGHT`.
    title : str
        Title of the horizontal axis.
    told : str
        The chart in words.
    line : float, optional
        Where an upright line stands, such as no difference.
    form : str
        Number format of tooltips; with "d", all values are whole numbers.
    """
    import altair as alt

    values: list[dict[str, Any]] = [
        {"name": str(row["name"]), "color": LIGHT[row.get("color", "m0")],
         **{key: finite(row[key]) for key in ENDS}}
        for row in rows[:MOST]
    ]  # fmt: skip
    base = alt.Chart(theme.rows(values))
    y = alt.Y("name:N", sort=[row["name"] for row in values],
              axis=alt.Axis(title=None, labelColor=LIGHT["ink"]))  # fmt: skip
    color = alt.Color("color:N", scale=None)
    scale, axis = alt.Scale(zero=False, padding=8), alt.Axis(title=title, tickCount=theme.ticks())
    if form == "d" and values:
        ends = [int(row[key] or 0) for row in values for key in ("low", "value", "high")]
        step = 1 + (max(ends) - min(ends)) // 8
        axis.values, axis.format = list(range(min(ends), max(ends) + 1, step)), "d"
    bar = base.transform_filter("isValid(datum.low)").mark_rule(
        strokeWidth=5, strokeCap="round", opacity=0.35
    ).encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", y=y, color=color)  # fmt: skip
    dot = base.mark_point(filled=True, size=64, opacity=1).encode(
        x=alt.X("value:Q", scale=scale, axis=axis), y=y, color=color,
        tooltip=[alt.Tooltip("name:N"),
                 *(alt.Tooltip(f"{key}:Q", format=form) for key in ENDS)],
    )  # fmt: skip
    drawn = alt.Chart(theme.rows([] if line is None else [{"line": line}]))
    upright = drawn.mark_rule(color=LIGHT["soft"]).encode(x=alt.X("line:Q", scale=scale, axis=axis))
    return finished(alt.layer(upright, bar, dot), told, 26 * max(len(values), 1) + 44)


def pairs(rows: Rows, names: tuple[str, str], title: str, told: str) -> Any | None:
    """A row for each pair of values, joined by a line: `name`, `one`, `other`.

    `names` are those of the two values, which the marks' colors and shapes tell apart.
    """
    import altair as alt

    if not rows:
        return None
    values: list[dict[str, Any]] = [
        {"name": str(row["name"]), "one": finite(row["one"]), "other": finite(row["other"])}
        for row in rows[:MOST]
    ]
    base = alt.Chart(theme.rows(values))
    y = alt.Y("name:N", sort=[row["name"] for row in values],
              axis=alt.Axis(title=None, labelColor=LIGHT["ink"]))  # fmt: skip
    scale, axis = alt.Scale(zero=False, padding=8), alt.Axis(title=title, tickCount=theme.ticks())
    joined = base.mark_rule(color=LIGHT["soft"]).encode(
        x=alt.X("one:Q", scale=scale, axis=axis), x2="other:Q", y=y
    )
    marks = [
        base.mark_point(filled=True, size=60, opacity=1, color=LIGHT[color], shape=shape).encode(
            x=alt.X(f"{key}:Q", scale=scale, axis=axis), y=y,
            tooltip=["name:N", alt.Tooltip("one:Q", title=names[0], format=".4~g"),
                     alt.Tooltip("other:Q", title=names[1], format=".4~g")],
        )
        for key, color, shape in (("one", "m0", "circle"), ("other", "m1", "square"))
    ]  # fmt: skip
    key = [
        alt.Chart(theme.rows([{"said": f"{sign} {name}"}]))
        .mark_text(align="left", baseline="bottom", color=LIGHT[color], fontWeight=500)
        .encode(text="said:N", x=alt.value(at), y=alt.value(-6))
        for name, color, sign, at in zip(names, ("m0", "m1"), "●■", (0, 110), strict=True)
    ]
    return finished(alt.layer(joined, *marks, *key), told, 22 * len(values) + 64)


def bars(rows: Rows, title: str, told: str, high: float | None = None) -> Any | None:
    """A bar for each share of 1: `name`, `value`, `color` (a name of `theme.LIGHT`)."""
    import altair as alt

    values: list[dict[str, Any]] = [
        {"name": str(row["name"]), "value": finite(row["value"]), "color": LIGHT[row["color"]]}
        for row in rows[:MOST] if row["value"] is not None
    ]  # fmt: skip
    if not values:
        return None
    base = alt.Chart(theme.rows(values))
    y = alt.Y("name:N", sort=[row["name"] for row in values],
              axis=alt.Axis(title=None, labelColor=LIGHT["ink"]))  # fmt: skip
    most = high or 1.15 * max(row["value"] or 0 for row in values) or 1.0
    x = alt.X("value:Q", scale=alt.Scale(domain=[0, most], nice=False),
              axis=alt.Axis(title=title, format="%", tickCount=theme.ticks()))  # fmt: skip
    bar = base.mark_bar(opacity=0.75, height=12).encode(
        x=x, y=y, color=alt.Color("color:N", scale=None),
        tooltip=["name:N", alt.Tooltip("value:Q", format=".1%")],
    )  # fmt: skip
    texts = base.mark_text(align="left", dx=5, color=LIGHT["soft"]).encode(
        x=x, y=y, text=alt.Text("value:Q", format=".0%")
    )
    return finished(alt.layer(bar, texts), told, 22 * len(values) + 44)


def course(points: Rows, title: str, axis: str, marked: Rows = ()) -> Any | None:
    """A value with its band along a course: answered items, steps of training, source models.

    Parameters
    ----------
    points : sequence of dict
        `step`, a number or a name, `score`, and `low` and `high` or None, in order. Several curves
        have a `curve`, their name, and a color each.
    title : str
        What a step is: the title of the horizontal axis.
    axis : str
        Title of the vertical axis.
    marked : sequence of dict
        Points of their own, with `name`, drawn as diamonds.

    Returns
    -------
    Chart or None
        None below two points.
    """
    import altair as alt

    scored = [row for row in points if row["score"] is not None]
    if len(scored) < 2:
        return None
    named = isinstance(scored[0]["step"], str)

    curves = list(dict.fromkeys(name for row in scored if (name := row.get("curve"))))

    def plain(row: Mapping[str, Any]) -> dict[str, Any]:
        step = row["step"] if named else finite(row["step"])
        own = {"curve": row["curve"]} if curves else {}
        return {"step": step, **own} | {k: finite(row.get(k)) for k in ("score", "low", "high")}

    values = [plain(row) for row in scored]
    color: Any = alt.value(LIGHT["m0"])
    if curves:
        colors = [LIGHT[f"m{at % theme.COLORS}"] for at in range(len(curves))]
        scale_of = alt.Scale(domain=curves, range=colors)
        key = alt.Legend(title=None, orient="top", symbolOpacity=1)
        color = alt.Color("curve:N", scale=scale_of, legend=key)
    base = alt.Chart(theme.rows(values))
    scale = alt.Scale(zero=False)
    more: dict[str, Any] = {} if named else {"format": ",~r", "tickCount": theme.ticks()}
    x = alt.X(
        "step:O" if named else "step:Q",
        sort=[row["step"] for row in values] if named else alt.Undefined,
        scale=alt.Undefined if named else alt.Scale(zero=False, nice=False, padding=8),
        axis=alt.Axis(title=title, labelAngle=0, labelOverlap="greedy", **more),
    )  # fmt: skip
    upright = alt.Axis(title=axis, tickCount=5)
    band = (
        base.transform_filter("isValid(datum.low)")
        .mark_area(opacity=0.16)
        .encode(x=x, y=alt.Y("low:Q", scale=scale, axis=upright), y2="high:Q", color=color)
    )
    y = alt.Y("score:Q", scale=scale, axis=upright)
    line = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=color)
    tips = [alt.Tooltip("step:N" if named else "step:Q", title=title),
            *(alt.Tooltip(f"{k}:Q", format=".4~g") for k in ("score", "low", "high"))]  # fmt: skip
    tips = [*([alt.Tooltip("curve:N")] if curves else []), *tips]
    size = 40 if len(values) < 60 else 12
    dot = base.mark_circle(size=size, opacity=1).encode(x=x, y=y, color=color, tooltip=tips)
    extra = alt.Chart(theme.rows({**plain(row), "name": row["name"]} for row in marked))
    mark = extra.mark_point(
        filled=True, shape="diamond", size=110, opacity=1, color=LIGHT["m1"]
    ).encode(x=x, y=y, tooltip=["name:N", *tips])  # fmt: skip
    first, last = values[0], values[-1]
    text = f"{axis} by {title}: {first['score']:.4g} at {first['step']}, {last['score']:.4g} at "
    text += f"{last['step']}"
    if last["low"] is not None and last["high"] is not None:
        text += f" (interval {last['low']:.4g} to {last['high']:.4g})"
    for row in marked:
        if row["score"] is not None:
            text += f"; {row['name']}: {row['score']:.4g}"
    ends = {row["curve"]: row for row in values} if curves else {}
    for name, row in ends.items():
        text += f"; {name}: {row['score']:.4g}"
    return finished(alt.layer(band, line, dot, mark), f"{text}.", 240)
