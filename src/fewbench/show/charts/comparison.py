"""Charts of a comparison: error by items, ratio to random sampling, coverage, scores, ranks.

Each takes the tables of a `Comparison` and the name of a split, and gives one chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from fewbench.scores import Unit
from fewbench.show.charts import theme
from fewbench.show.charts.labels import spread
from fewbench.show.charts.theme import FOCUSED, SHOWN, Look, finished, finite

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

RANDOM = ("random", "random sampling", "random-sampling", "random_sampling")
MOST_TARGETS = 150
"""Most targets in a chart of scores or ranks; more would make a page heavy."""
COUNTED = {"items": "number of items", "sources": "number of source models"}
LINES, LABEL = 300.0, 132.0  # height of the chart of lines, width of its names


def reference_of(cells: pd.DataFrame) -> str | None:
    """Return the random draw that the others are compared with: by name, else by its ratio of 1."""
    names = [str(name) for name in dict.fromkeys(cells["method"])]
    for wanted in RANDOM:
        for name in names:
            if name.lower() == wanted:
                return name
    if "ratio_to_random" in cells:
        for name in names:
            if (cells.loc[cells["method"] == name, "ratio_to_random"] == 1).all():
                return name
    return None


def looks_of(cells: pd.DataFrame) -> dict[str, Look]:
    """Return the looks of the methods of a comparison."""
    return theme.looks([str(m) for m in dict.fromkeys(cells["method"])], reference_of(cells))


def focus_of(cells: pd.DataFrame) -> int | None:
    """Return the number of items that single-budget charts show: the middle one."""
    budgets = sorted({int(budget) for budget in cells["budget"]})
    return budgets[(len(budgets) - 1) // 2] if budgets else None


def order_of(cells: pd.DataFrame, split: str) -> list[str]:
    """Return the methods of a split, lowest error first at the middle number of items."""
    here = cells[(cells["split"] == split) & (cells["budget"] == focus_of(cells))]
    errors = dict(zip(here["method"].astype(str), here["mae"], strict=True))
    every = [str(m) for m in dict.fromkeys(cells.loc[cells["split"] == split, "method"])]
    return sorted(every, key=lambda m: (not errors.get(m, math.nan) >= 0, errors.get(m, 0.0)))


def error_by_sources(cells: pd.DataFrame, split: str, unit: Unit) -> Any | None:
    """Error of each method by number of source models, at the middle number of items; or None.

    Rows of the split with fewer source models are those of splits whose name ends with its name.
    """
    own = (cells["split"] == split) | cells["split"].str.endswith(f"-source {split}")
    here = cells[own & (cells["budget"] == focus_of(cells))]
    if here["n_sources"].nunique() < 2:
        return None
    rows = here.assign(split=split, budget=here["n_sources"])
    return error_by_items(rows, split, unit, of="sources")


def error_by_items(
    cells: pd.DataFrame, split: str, unit: Unit, of: Literal["items", "sources"] = "items"
) -> Any:
    """Mean absolute error of each method by number of items; with one number, a row a method.

    Parameters
    ----------
    cells : DataFrame
        `Comparison.cells`.
    split : str
    unit : Unit
        How errors are printed.
    of : {"items", "sources"}
        What the column `budget` counts.
    """
    import altair as alt

    found, best = looks_of(cells), order_of(cells, split)
    keys = theme.keys(best, reference_of(cells))
    values: list[dict[str, Any]] = [
        {
            "method": str(row["method"]), "items": int(row["budget"]),
            "error": finite(row["mae"] * unit.factor, 3), "key": str(row["method"]) in keys,
            "low": _end(row, -1, unit), "high": _end(row, 1, unit),
        }
        for row in cells[cells["split"] == split].to_dict("records") if row["mae"] == row["mae"]
    ]  # fmt: skip
    budgets = sorted({row["items"] for row in values})
    if len(budgets) < 2:
        return _one_budget(values, best, found, split, unit)
    tops = [row["high"] or row["error"] for row in values]
    scale = alt.Scale(domain=[0, 1.04 * max(tops, default=1.0)], nice=False, clamp=True)
    log = budgets[-1] > 4 * budgets[0]
    x = alt.X(
        "items:Q",
        scale=alt.Scale(type="log" if log else "linear", domain=[budgets[0], budgets[-1]],
                        nice=False, padding=10),
        axis=alt.Axis(values=budgets, title=COUNTED[of], labelOverlap="greedy", format=",d"),
    )  # fmt: skip
    base = alt.Chart(theme.rows(values)).transform_filter(SHOWN)
    title = unit.points_title("error")
    tooltip = [
        alt.Tooltip("method:N", title="method"), alt.Tooltip("items:Q", title=of),
        alt.Tooltip("error:Q", title=title, format=".2f"),
        alt.Tooltip("low:Q", title="− 1 sd", format=".2f"),
        alt.Tooltip("high:Q", title="+ 1 sd", format=".2f"),
    ]  # fmt: skip
    y = alt.Y("error:Q", scale=scale, axis=alt.Axis(title=title, tickCount=5))
    few = len(best) <= 2
    shaded = alt.when("true" if few else FOCUSED)
    band = base.mark_area().encode(
        x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", detail="method:N",
        color=theme.color(found, always=True),
        opacity=shaded.then(alt.value(0.16)).otherwise(alt.value(0)),
    )  # fmt: skip
    names = list(found)
    dash = alt.Scale(domain=names, range=[list(found[m].dash) or [1, 0] for m in names])
    line = base.mark_line(strokeWidth=2).encode(
        x=x, y=y, detail="method:N", color=theme.color(found), opacity=theme.dimmed(),
        strokeDash=alt.StrokeDash("method:N", scale=dash, legend=None),
    )  # fmt: skip
    spot = base.mark_point(filled=True, size=46, opacity=1).encode(
        x=x, y=y, shape=theme.shape(found), color=theme.color(found), opacity=theme.dimmed(),
        tooltip=tooltip,
    )  # fmt: skip
    names_beside = _names(values, best, keys, budgets, scale.domain[1])
    label = (
        alt.Chart(theme.rows(names_beside))
        .transform_filter(SHOWN)
        .mark_text(align="left", dx=12, baseline="middle", limit=LABEL)
        .encode(
            x=x, y=alt.Y("at:Q", scale=scale), text="method:N",
            color=theme.color(found, always=True), tooltip=alt.Tooltip("method:N"),
            opacity=alt.when(theme.VIVID).then(alt.value(1)).otherwise(alt.value(0)),
        )
    )  # fmt: skip
    told = f"Mean absolute error against the number of {of}, {split} split. " + _said(
        values, best, budgets, unit, of
    )
    chart = alt.layer(band, line, spot, label).add_params(*theme.params())
    return finished(chart, told, LINES)


def _end(row: dict[Any, Any], sign: int, unit: Unit) -> float | None:
    spread_of = row.get("mae_sd", math.nan)
    if spread_of is None or spread_of != spread_of:
        return None
    return finite(max(row["mae"] + sign * spread_of, 0.0) * unit.factor, 3)


def _said(
    values: Sequence[dict[str, Any]],
    best: Sequence[str],
    budgets: Sequence[int],
    unit: Unit,
    of: str,
) -> str:
    """The first and last errors of the best methods, for those who do not see the chart."""
    parts = []
    for method in best[:5]:
        mine = {
            row["items"]: unit.points(row["error"] / unit.factor)
            for row in values
            if row["method"] == method
        }
        ends = [f"{mine[b]} at {b:,} {of}" for b in (budgets[0], budgets[-1]) if b in mine]
        parts.append(f"{method}: {', '.join(ends)}")
    return "; ".join(parts) + "."


def _names(
    values: Sequence[dict[str, Any]], best: Sequence[str], keys: set[str], budgets: Sequence[int],
    high: float,
) -> list[dict[str, Any]]:  # fmt: skip
    """Where each name stands: beside its line's end; those always seen are moved apart."""
    last = {row["method"]: row["error"] for row in values if row["items"] == budgets[-1]}
    tails = {method: last[method] for method in best if last.get(method) is not None}
    seen = [method for method in tails if method in keys]
    size = 14.5 * high / (LINES - 50)
    places = spread([tails[m] for m in seen], [size] * len(seen), 0.0, high)
    at = {**tails, **dict(zip(seen, places, strict=True))}
    return [
        {"method": m, "items": budgets[-1], "at": round(at[m], 3), "key": m in keys} for m in tails
    ]


def _one_budget(
    values: Sequence[dict[str, Any]],
    best: Sequence[str],
    found: dict[str, Look],
    split: str,
    unit: Unit,
) -> Any:
    import altair as alt

    marks = [{**row, "value": row["error"], "budget": row["items"]} for row in values]
    title = unit.points_title("error")
    told = f"Mean absolute {title} and its standard deviation over repeats, {split} split. "
    told += "; ".join(f"{row['method']}: {row['error']:.2f}" for row in marks)
    return dot_rows(
        marks,
        best,
        found,
        told,
        alt.X(axis=alt.Axis(title=title, tickCount=theme.ticks())),
        None,
        ".2f",
    )


def dot_rows(
    values: Sequence[dict[str, Any]],
    order: Sequence[str],
    found: dict[str, Look],
    told: str,
    x: alt.X,
    line: float | None,
    form: str,
) -> Any:
    """A row for each method, a dot for each number of items with its interval.

    Parameters
    ----------
    values : sequence of dict
        `method`, `budget`, `value`, and `low` and `high` or None.
    order : sequence of str
        The methods from the top.
    line : float, optional
        A value that an upright line marks.
    form : str
        Number format of tooltips.
    """
    import altair as alt

    budgets = sorted({row["budget"] for row in values})
    shown = [method for method in order if any(row["method"] == method for row in values)]
    step = 13 * len(budgets) + 10
    data = [{**row, "key": True, "place": budgets.index(row["budget"])} for row in values]
    base = alt.Chart(theme.rows(data)).transform_filter(SHOWN)
    y = alt.Y(
        "method:N",
        sort=shown,
        axis=alt.Axis(title=None, labelColor=theme.LIGHT["ink"], domain=False),
        scale=alt.Scale(paddingInner=0.25),
    )
    offset = alt.YOffset("place:O", scale=alt.Scale(paddingOuter=0.3))
    bar = base.mark_rule(strokeWidth=4, strokeCap="round").encode(
        x=_x(x, "low"), x2="high:Q", y=y, yOffset=offset, color=theme.color(found, always=True),
        opacity=theme.dimmed(0.35, 0.06),
    )  # fmt: skip
    dot = base.mark_point(filled=True, size=50).encode(
        x=_x(x, "value"), y=y, yOffset=offset, shape=theme.shape(found),
        color=theme.color(found, always=True), opacity=theme.dimmed(),
        tooltip=[
            alt.Tooltip("method:N"), alt.Tooltip("budget:Q", title="items", format=",d"),
            alt.Tooltip("value:Q", format=form), alt.Tooltip("low:Q", format=form),
            alt.Tooltip("high:Q", format=form),
        ],
    )  # fmt: skip
    ruled = alt.Chart(theme.rows([] if line is None else [{"value": line}]))
    upright = ruled.mark_rule(color=theme.LIGHT["soft"]).encode(x=_x(x, "value"))
    chart = alt.layer(upright, bar, dot).add_params(*theme.params())
    return finished(chart, told, height=max(60, step * len(shown) + 44))


def _x(x: alt.X, column: str) -> alt.X:
    """The same axis for another column."""
    made = x.copy()
    made.shorthand = f"{column}:Q"
    return made


def ratio_to_random(cells: pd.DataFrame, split: str) -> Any | None:
    """Each method's error divided by random sampling's, with intervals; None without one."""
    import altair as alt

    if "ratio_to_random" not in cells:
        return None
    found, reference = looks_of(cells), reference_of(cells)
    values = _metric(cells[cells["method"] != reference], "ratio_to_random", split)
    every = _metric(cells[cells["method"] != reference], "ratio_to_random", None)
    if not values:
        return None
    # One very wide interval must not squeeze all the others: it is cut at the frame.
    most = max(row["value"] for row in every)
    high = max(1.2, min(max([row["high"] or 0 for row in every] + [most]), 1.6 * most) * 1.02)
    log = high > 4
    low = min(0.1, *(row["value"] for row in every)) * 0.9 if log else 0.0
    x = alt.X(
        scale=alt.Scale(type="log" if log else "linear", domain=[low, high], clamp=True,
                        nice=False),
        axis=alt.Axis(title="error ÷ random sampling's (less is better)", tickCount=theme.ticks()),
    )  # fmt: skip
    told = f"Error relative to random sampling, {split} split. " + _listed(values, ".2f")
    return dot_rows(values, order_of(cells, split), found, told, x, 1.0, ".2f")


def coverage(cells: pd.DataFrame, split: str, level: int) -> Any | None:
    """How often each method's intervals contain the truth; None where there are none."""
    import altair as alt

    name = f"coverage{level}"
    if name not in cells:
        return None
    values, every = _metric(cells, name, split), _metric(cells, name, None)
    if not values:
        return None
    low = max(0.0, math.floor(10 * min(level / 100 - 0.2, *(r["value"] for r in every))) / 10)
    x = alt.X(
        scale=alt.Scale(domain=[low, 1.0], clamp=True, nice=False),
        axis=alt.Axis(
            title="share of targets inside their interval", format="%", tickCount=theme.ticks()
        ),
    )
    told = f"Share of {level}% intervals that contain the truth, {split} split. "
    told += _listed(values, ".0%")
    order = order_of(cells, split)
    return dot_rows(values, order, looks_of(cells), told, x, level / 100, ".0%")


def _metric(cells: pd.DataFrame, name: str, split: str | None) -> list[dict[str, Any]]:
    here = cells if split is None else cells[cells["split"] == split]
    return [
        {
            "method": str(row["method"]), "budget": int(row["budget"]),
            "value": finite(row[name], 4), "low": finite(row.get(f"{name}_low"), 4),
            "high": finite(row.get(f"{name}_high"), 4),
        }
        for row in here.to_dict("records") if finite(row[name]) is not None
    ]  # fmt: skip


def _listed(values: Sequence[dict[str, Any]], form: str) -> str:
    focus = sorted({row["budget"] for row in values})
    at = focus[(len(focus) - 1) // 2]
    mine = [row for row in values if row["budget"] == at]
    said = "; ".join(f"{row['method']}: {format(row['value'], form)}" for row in mine)
    return f"At {at:,} items, {said}."


def one_run(
    comparison_estimates: pd.DataFrame,
    cells: pd.DataFrame,
    split: str,
    unit: Unit,
    most: int = MOST_TARGETS,
) -> pd.DataFrame:
    """Return a single run of each method: the first repeat with the middle number of items.

    Of very many targets, `most` are taken evenly by true score.
    """
    frame = comparison_estimates
    here = frame[(frame["split"] == split) & (frame["budget"] == focus_of(cells))]
    here = here[here["repeat"] == here.groupby("method")["repeat"].transform("min")]
    here = here.dropna(subset=["truth", "estimate"])
    up = unit.scale.lower_is_better
    here = here.assign(
        true_rank=here.groupby("method")["truth"].rank(ascending=up, method="first"),
        rank=here.groupby("method")["estimate"].rank(ascending=up, method="first"),
        of=here.groupby("method")["truth"].transform("size"),
    )
    step = max(1, math.ceil(int(here["of"].max()) / most)) if len(here) else 1
    return here[(here["true_rank"] - 1) % step == 0]


def true_and_estimated(
    run: pd.DataFrame, cells: pd.DataFrame, split: str, unit: Unit
) -> Any | None:
    """Estimated against true scores, for the method that the chart is set to.

    The param `only` names the method: one chart serves a grid of panels.
    """
    import altair as alt

    if run.empty:
        return None
    data: list[dict[str, Any]] = [
        {
            "method": str(row["method"]), "target": str(row["target"]), "key": True,
            **{
                key: finite(_get(row, key) * unit.factor, unit.digits + 1)
                for key in ("truth", "estimate", "low", "high")
            },
        }
        for row in run.to_dict("records")
    ]  # fmt: skip
    low, high = _square([row[k] for row in data for k in ("truth", "estimate")], unit)
    x = alt.X("truth:Q", scale=alt.Scale(domain=[low, high], nice=False),
              axis=alt.Axis(title=unit.score_title("true score"),
                            tickCount=theme.ticks()))  # fmt: skip
    y_scale = alt.Scale(domain=[low, high], nice=False, clamp=True)
    y = alt.Y(
        "estimate:Q", scale=y_scale, axis=alt.Axis(title=unit.score_title("estimate"), tickCount=4)
    )
    base, line, color = _panel(data, cells, (low, low), (high, high), x, y)
    missed = "datum.truth < datum.low || datum.truth > datum.high"
    whisker = base.mark_rule().encode(
        x=x, y=alt.Y("low:Q", scale=y_scale), y2="high:Q", color=color,
        opacity=alt.when(missed).then(alt.value(1)).otherwise(alt.value(0.3)),
    )  # fmt: skip
    dot = base.mark_circle(size=22, opacity=0.75).encode(
        x=x, y=y, color=color,
        tooltip=[alt.Tooltip(f"{k}:{t}") for k, t in
                 (("target", "N"), ("truth", "Q"), ("estimate", "Q"), ("low", "Q"), ("high", "Q"))],
    )  # fmt: skip
    told = f"Estimated against true scores, one dot per target, {split} split"
    return _square_panel(alt.layer(line, whisker, dot), run, told)


def true_and_estimated_ranks(run: pd.DataFrame, cells: pd.DataFrame, split: str) -> Any | None:
    """Estimated against true ranks, for the method that the chart is set to (`only`)."""
    import altair as alt

    if run.empty or run["of"].max() < 2:
        return None
    data = [
        {"method": str(row["method"]), "target": str(row["target"]), "key": True,
         "true rank": int(row["true_rank"]), "rank": int(row["rank"])}
        for row in run.to_dict("records")
    ]  # fmt: skip
    last = int(run["of"].max())
    scale = alt.Scale(domain=[last, 1], nice=False)
    step = max(1, round(last / 4))
    step = step if step < 5 else 5 * round(step / 5)
    ticks = [1, *(t for t in range(0, last + 1, step) if t > 1)]
    x = alt.X("true rank:Q", scale=scale, axis=alt.Axis(values=ticks, title="true rank"))
    y = alt.Y("rank:Q", scale=scale, axis=alt.Axis(values=ticks, title="estimated rank"))
    base, line, color = _panel(data, cells, (last, last), (1, 1), x, y)
    dot = base.mark_circle(size=22, opacity=0.75).encode(
        x=x, y=y, color=color,
        tooltip=["target:N", "true rank:Q", alt.Tooltip("rank:Q", title="estimated rank")],
    )  # fmt: skip
    told = f"Estimated against true ranks, one dot per target, {split} split"
    return _square_panel(alt.layer(line, dot), run, told)


def _panel(
    data: list[dict[str, Any]], cells: pd.DataFrame, start: tuple[float, float],
    stop: tuple[float, float], x: alt.X, y: alt.Y,
) -> tuple[Any, Any, Any]:  # fmt: skip
    import altair as alt

    base = alt.Chart(theme.rows(data)).transform_filter("datum.method === only")
    ends = [dict(zip(("a", "b"), end, strict=True)) for end in (start, stop)]
    diagonal = (
        alt.Chart(theme.rows(ends))
        .mark_line(color=theme.LIGHT["rest"], strokeWidth=1)
        .encode(x=_x(x, "a"), y=_y(y, "b"))
    )
    return base, diagonal, theme.color(looks_of(cells), always=True)


def _y(y: alt.Y, column: str) -> alt.Y:
    made = y.copy()
    made.shorthand = f"{column}:Q"
    return made


def _square_panel(chart: Any, run: pd.DataFrame, told: str) -> Any:
    import altair as alt

    names = [str(name) for name in dict.fromkeys(run["method"])]
    bind = alt.binding_select(options=names, name="method ")
    made = chart.add_params(alt.param(name="only", value=names[0], bind=bind))
    return finished(made, told, 220, 220)


def _square(values: list[float], unit: Unit) -> tuple[float, float]:
    """Return the ends of both axes: those of the values, with a margin."""
    bottom, top = unit.scale.low * unit.factor, unit.scale.high * unit.factor
    low, high = min(values), max(values)
    air, most = max(0.04 * (high - low), 0.01 * (top - bottom)), 0.05 * (top - bottom)
    return max(low - air, bottom - most), min(high + air, top + most)


def _get(row: dict[Any, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)
