"""Charts of a study of native sources: maps of items, distances, families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewbench.show.charts import forms, theme
from fewbench.show.charts.theme import LIGHT, finished, finite

STEPS, MOST_ITEMS = 60, 3000


def item_maps(items: Mapping[str, Any], stands_for: Sequence[int]) -> list[tuple[str, Any]]:
    """Both maps of items on the same axes; a star for each medoid, by the items it stands for."""
    import altair as alt

    both = [*items["source"], *items["target"]]
    ends = [[f(spot[k] for spot in both) for f in (min, max)] for k in (0, 1)]
    made = []
    for side, name in (("source", "as sources answer"), ("target", "as targets answer")):
        shares = [f"{100 * share:.0f}%" for share in items[f"{side}_share"]]
        step = max(1, len(items[side]) // MOST_ITEMS)
        dots = [{"a": finite(a, 3), "b": finite(b, 3)} for a, b in items[side][::step]]
        stars = [
            {"a": finite(items[side][at][0], 3), "b": finite(items[side][at][1], 3),
             "item": str(item), "stands for": n}
            for at, item, n in zip(items["medoids"], items["medoid_ids"], stands_for, strict=True)
        ]  # fmt: skip
        x = alt.X("a:Q", scale=alt.Scale(domain=ends[0], padding=8),
                  axis=alt.Axis(title=f"first component, {shares[0]} of variance (easier →)",
                                tickCount=5))  # fmt: skip
        y = alt.Y("b:Q", scale=alt.Scale(domain=ends[1], padding=8),
                  axis=alt.Axis(title=f"second component, {shares[1]}", tickCount=5))  # fmt: skip
        crowd = alt.Chart(theme.rows(dots)).mark_circle(color=LIGHT["m0"], size=12, opacity=0.4)
        chosen = alt.Chart(theme.rows(stars)).mark_point(
            filled=True, color=LIGHT["m1"], opacity=0.9, stroke=LIGHT["paper"], strokeWidth=1,
            shape="M0,-1L0.24,-0.34L0.95,-0.31L0.39,0.13L0.59,0.81L0,0.42L-0.59,0.81L-0.39,0.13"
            "L-0.95,-0.31L-0.24,-0.34Z",
        ).encode(
            x=x, y=y, tooltip=["item:N", "stands for:Q"],
            size=alt.Size("stands for:Q", legend=None, scale=alt.Scale(range=[60, 320])),
        )  # fmt: skip
        told = f"{len(items[side]):,} items {name}; stars are the {len(stars)} medoids."
        chart = alt.layer(crowd.encode(x=x, y=y), chosen)
        made.append((f"Items {name}", finished(chart, told, 280)))
    return made


def distances(spread: Mapping[str, Any]) -> Any | None:
    """Share of the items that lie within a distance of their medoids, by sources and targets."""
    import altair as alt

    values: list[dict[str, Any]] = []
    told = []
    for name, key in (("sources", "source"), ("targets", "target")):
        any_ = spread[f"{key}_any"]
        if not any_:
            return None
        ordered = sorted(d / any_ for d in spread[key])
        n = len(ordered)
        spots = [(0.0, 0.0), *((ordered[min(n - 1, k * n // STEPS)], k / STEPS)
                               for k in range(STEPS + 1))]  # fmt: skip
        values += [{"who": name, "distance": finite(a, 4), "share": finite(b, 4)} for a, b in spots]
        told.append(f"half of the items are within {100 * ordered[n // 2]:.0f}% by {name}")
    color = alt.Color("who:N", legend=None, scale=alt.Scale(
        domain=["sources", "targets"], range=[LIGHT["m0"], LIGHT["m1"]]))  # fmt: skip
    base = alt.Chart(theme.rows(values))
    x = alt.X("distance:Q", axis=alt.Axis(
        title="distance to the medoid, share of that between any two items", format="%",
        tickCount=5))  # fmt: skip
    y = alt.Y("share:Q", axis=alt.Axis(title="items", format="%", tickCount=4))
    dash = alt.StrokeDash("who:N", legend=None, scale=alt.Scale(
        domain=["sources", "targets"], range=[[1, 0], [7, 4]]))  # fmt: skip
    line = base.mark_line(strokeWidth=2, interpolate="monotone").encode(
        x=x, y=y, color=color, strokeDash=dash, order="share:Q"
    )
    names = [
        next(row for row in values if row["who"] == who and (row["share"] or 0) >= at)
        for who, at in (("sources", 0.75), ("targets", 0.25))
    ]
    label = alt.Chart(theme.rows(names)).mark_text(align="left", dx=9, fontWeight=500)
    chart = alt.layer(line, label.encode(x=x, y=y, text="who:N", color=color))
    return finished(chart, f"Items within a distance of their medoids: {'; '.join(told)}.", 250)


def mean_distances(spread: Mapping[str, Any]) -> Any | None:
    """Mean distances: medoids chosen by all sources, and by half of them."""
    whole, half = spread["shares"], spread["half"]
    rows: list[dict[str, Any]] = [
        {"name": f"{who}, by {by}", "value": value, "color": color}
        for by, who, value, color in (
            ("all", "sources", whole["sources"], "m0"),
            ("all", "targets", whole["targets"], "m1"),
            ("half", "those who chose", half["chose"], "m0"),
            ("half", "other sources", half["held_out"], "m2"),
            ("half", "targets", half["targets"], "m1"),
        )
    ]
    known = [row for row in rows if row["value"] is not None]
    told = "; ".join(f"{row['name']}: {row['value']:.0%}" for row in known)
    title = "mean distance, share of that between any two items"
    return forms.bars(rows, title, f"Mean distance of items to their medoids. {told}.")


def trials(rows: Sequence[Mapping[str, Any]], key: str, factor: float, title: str) -> Any | None:
    """Each method's mean over trials by number of items, with a band of one standard deviation."""
    import altair as alt

    values: list[dict[str, Any]] = []
    for row in rows:
        mean, sd = row[key], row[f"{key}_sd"]
        if mean is None:
            continue
        ends = (None, None) if sd is None else (factor * (mean - sd), factor * (mean + sd))
        values.append(
            {"method": row["method"], "items": row["budget"], "mean": factor * mean}
            | dict(zip(("low", "high"), ends, strict=True))
        )
    if not values:
        return None
    looks = theme.looks(dict.fromkeys(value["method"] for value in values))
    color = theme.color(looks, always=True)
    color.legend = alt.Legend(title=None, orient="top", symbolOpacity=1, offset=14)
    base = alt.Chart(theme.rows(values))
    x = alt.X("items:Q", scale=alt.Scale(zero=False, nice=False, padding=8),
              axis=alt.Axis(title="items", tickCount=5))  # fmt: skip
    scale, upright = alt.Scale(zero=False), alt.Axis(title=title, tickCount=5)
    band = (
        base.transform_filter("isValid(datum.low)")
        .mark_area(opacity=0.12)
        .encode(x=x, y=alt.Y("low:Q", scale=scale, axis=upright), y2="high:Q", color=color)
    )
    y = alt.Y("mean:Q", scale=scale, axis=upright)
    tips = ["method:N", "items:Q", *(alt.Tooltip(f"{k}:Q", format=".4~g")
                                     for k in ("mean", "low", "high"))]  # fmt: skip
    line = base.mark_line(strokeWidth=2, point=True).encode(x=x, y=y, color=color, tooltip=tips)
    told = "; ".join(
        f"{v['method']}: {v['mean']:.3g} at {v['items']} items"
        for v in values if v["items"] == values[-1]["items"]
    )  # fmt: skip
    return finished(alt.layer(band, line), f"{title} by items. {told}.", 260)


def families(rows: Sequence[Mapping[str, Any]], key: str, factor: float, title: str) -> Any | None:
    """Each family's targets with and without sources of their family."""
    values = [
        {"name": row["family"], "one": factor * row[f"{key}_with"],
         "other": factor * row[f"{key}_without"]}
        for row in rows if row[f"{key}_with"] is not None and row[f"{key}_without"] is not None
    ]  # fmt: skip
    told = "; ".join(f"{v['name']}: {v['one']:.3g} with, {v['other']:.3g} without" for v in values)
    return forms.pairs(values, ("with its family", "without"), title, f"{title}. {told}.")
