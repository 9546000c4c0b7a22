"""Charts of a comparison: error by items, ratio to random sampling, coverage, scores, ranks.

Each takes the tables of a `Comparison` and the name of a split, and gives one chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench.scores import Unit
from fewbench.show.charts import theme
from fewbench.show.charts.labels import spread
from fewbench.show.charts.theme import FOCUSED, Look, finished, finite

if TYPE_CHECKING:
    import altair as alt
REFERENCE = "random"
"""The method that every comparison has, and that the others are compared with."""
MOST_TARGETS = 150
"""Most targets in a chart of scores or ranks; more would make a page heavy."""
LINES, LABEL = 300.0, 132.0  # height of the chart of lines, width of its names


def looks_of(cells: pd.DataFrame) -> dict[str, Look]:
    """Return the looks of the methods of a comparison."""
    return theme.looks(map(str, cells["method"]), REFERENCE)


def focus_of(cells: pd.DataFrame) -> int:
    """Return the number of items that single-budget charts show: the middle one."""
    budgets = sorted(cells["budget"].unique())
    return int(budgets[(len(budgets) - 1) // 2])


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
    of_split = (cells["split"] == split) | cells["split"].str.endswith(f"-source {split}")
    here = cells[of_split & (cells["budget"] == focus_of(cells))]
    if here["n_sources"].nunique() < 2:
        return None
    rows = here.assign(split=split, budget=here["n_sources"])
    return error_by_items(rows, split, unit, "number of source models")


def error_by_items(
    cells: pd.DataFrame, split: str, unit: Unit, counted: str = "number of items"
) -> Any:
    """Mean absolute error of each method by number of items; with one number, a row a method.

    The band is one standard error to either side.

    Parameters
    ----------
    cells : DataFrame
        `Comparison.cells`.
    split : str
    unit : Unit
        How errors are printed.
    counted : str
        What the column `budget` counts: the title of the horizontal axis.
    """
    import altair as alt

    best, title = order_of(cells, split), unit.points_title("error")
    se = cells.get("mae_se", math.nan)
    band_of = {"mae_low": (cells["mae"] - se).clip(lower=0), "mae_high": cells["mae"] + se}
    rows = _rows(cells.assign(**band_of), "mae", split, unit.factor, 3)
    text = f"Mean absolute {title}, {split} split. {_told(rows, best[:5], '.2f', counted)}"
    budgets = sorted({row["budget"] for row in rows})
    if len(budgets) < 2:
        return dot_rows(cells, rows, best, text, {"axis": _axis(title)}, None, ".2f")
    high = 1.04 * max(row["high"] or row["value"] for row in rows)
    keys, looks = theme.keys(best, REFERENCE), looks_of(cells)
    ends = {row["method"]: row["value"] for row in rows if row["budget"] == budgets[-1]}
    is_log = budgets[-1] > 4 * budgets[0]
    x = alt.X(
        "budget:Q",
        scale=_scale(is_log, [budgets[0], budgets[-1]], padding=10),
        axis=alt.Axis(values=budgets, title=f"{counted} (log scale)" if is_log else counted,
                      labelOverlap="greedy", format=",d"),
    )  # fmt: skip
    y_of = partial(
        alt.Y, scale=_scale(False, [0, high], clamp=True), axis=alt.Axis(title=title, tickCount=5)
    )
    dashes = alt.Scale(domain=list(looks), range=[list(a.dash) or [1, 0] for a in looks.values()])
    shaded = alt.when("true" if len(best) <= 2 else FOCUSED).then(alt.value(0.16))
    seen = alt.when(theme.VIVID).then(alt.value(1)).otherwise(alt.value(0))
    own = theme.color(looks, always=True)
    base = theme.methods([{**row, "key": row["method"] in keys} for row in rows])
    base = base.encode(x=x, y=y_of("value:Q"), detail="method:N", color=theme.color(looks))
    band = base.mark_area().encode(
        y=y_of("low:Q"), y2="high:Q", color=own,
        opacity=shaded.otherwise(alt.value(0)),
    )  # fmt: skip
    line = base.mark_line(strokeWidth=2).encode(
        opacity=theme.dimmed(), strokeDash=alt.StrokeDash("method:N", scale=dashes, legend=None)
    )
    spot = base.mark_point(filled=True, size=46).encode(
        shape=theme.shape(looks), opacity=theme.dimmed(), tooltip=_tips(counted, title, ".2f")
    )
    names = theme.methods(_names(ends, best, keys, high, budgets[-1]))
    label = names.mark_text(align="left", dx=12, baseline="middle", limit=LABEL).encode(
        x=x, y=y_of("value:Q"), text="method:N", opacity=seen, color=own, tooltip="method:N"
    )
    return finished(alt.layer(band, line, spot, label).add_params(*theme.params()), text, LINES)


def _rows(
    cells: pd.DataFrame, name: str, split: str, factor: float = 1, digits: int = 4
) -> list[dict[str, Any]]:
    """Return a row for each method and number of items with a value, and its interval or None."""
    here = cells[(cells["split"] == split) & cells[name].notna()]
    columns = {"value": name, "low": f"{name}_low", "high": f"{name}_high"}
    return [
        {"method": str(row["method"]), "budget": int(row["budget"]), "key": True}
        | {key: finite(row.get(columns[key], math.nan) * factor, digits) for key in columns}
        for row in here.to_dict("records")
    ]


def _told(
    rows: Sequence[dict[str, Any]], best: Sequence[str], form: str, counted: str = "number of items"
) -> str:
    """The first and last values of the best methods, for those who do not see the chart."""
    ends = {f(row["budget"] for row in rows) for f in (min, max)} if rows else set()
    parts = [
        f"{name}: " + ", ".join(
            f"{format(row['value'], form)} at {row['budget']:,}"
            for row in rows if row["method"] == name and row["budget"] in ends
        )
        for name in best if any(row["method"] == name for row in rows)
    ]  # fmt: skip
    return f"By {counted}: {'; '.join(parts)}."


def _tips(counted: str, title: str, form: str) -> list[alt.Tooltip]:
    import altair as alt

    ends = [alt.Tooltip(f"{end}:Q", format=form) for end in ("low", "high")]
    value = alt.Tooltip("value:Q", title=title, format=form)
    return [alt.Tooltip("method:N"), alt.Tooltip("budget:Q", title=counted), value, *ends]


def _scale(log: bool, domain: list[float], **more: Any) -> alt.Scale:
    import altair as alt

    return alt.Scale(type="log" if log else "linear", domain=domain, nice=False, **more)


def _axis(title: str, **more: Any) -> alt.Axis:
    import altair as alt

    return alt.Axis(title=title, tickCount=theme.ticks(), labelOverlap="greedy", **more)


def _names(
    tails: dict[str, float], best: Sequence[str], keys: set[str], high: float, budget: int
) -> list[dict[str, Any]]:
    """Where each name stands: beside its line's end; those always seen are moved apart."""
    seen = [method for method in best if method in tails and method in keys]
    size = 14.5 * high / (LINES - 50)
    places = spread([tails[name] for name in seen], [size] * len(seen), 0.0, high)
    at = tails | dict(zip(seen, places, strict=True))
    return [
        {"method": name, "budget": budget, "value": round(value, 3), "key": name in keys}
        for name, value in at.items()
    ]


def dot_rows(
    cells: pd.DataFrame, values: Sequence[dict[str, Any]], order: Sequence[str], told: str,
    x: dict[str, Any], line: float | None, form: str,
) -> Any:  # fmt: skip
    """A row for each method, a dot for each number of items with its interval.

    Parameters
    ----------
    cells : DataFrame
        `Comparison.cells`, which the methods' looks follow.
    values : sequence of dict
        `method`, `budget`, `value`, and `low` and `high` or None.
    order : sequence of str
        The methods from the top.
    x : dict
        Scale and axis.
    line : float, optional
        A value that an upright line marks.
    form : str
        Number format of tooltips.
    """
    import altair as alt

    named = {row["method"] for row in values}
    shown, looks = [method for method in order if method in named], looks_of(cells)
    axis = alt.Axis(title=None, labelColor=theme.LIGHT["ink"], domain=False)
    base = theme.methods(values).encode(
        y=alt.Y("method:N", sort=shown, axis=axis, scale=alt.Scale(paddingInner=0.25)),
        yOffset=alt.YOffset("budget:O", scale=alt.Scale(paddingOuter=0.3)),
        color=theme.color(looks, always=True),
    )
    bar = base.mark_rule(strokeWidth=4, strokeCap="round").encode(
        x=alt.X("low:Q", **x), x2="high:Q", opacity=theme.dimmed(0.35, 0.06)
    )
    dot = base.mark_point(filled=True, size=50).encode(
        x=alt.X("value:Q", **x), shape=theme.shape(looks), opacity=theme.dimmed(),
        tooltip=_tips("items", "value", form),
    )  # fmt: skip
    ruled = alt.Chart(theme.rows([] if line is None else [{"value": line}]))
    upright = ruled.mark_rule(color=theme.LIGHT["soft"]).encode(x=alt.X("value:Q", **x))
    step = 13 * len({row["budget"] for row in values}) + 10
    chart = alt.layer(upright, bar, dot).add_params(*theme.params())
    return finished(chart, told, height=max(60, step * len(shown) + 44))


def ratio_to_random(cells: pd.DataFrame, split: str) -> Any | None:
    """Each method's error divided by random sampling's, with intervals, or None without one."""
    if "ratio_to_random" not in cells:
        return None
    others = cells[cells["method"] != REFERENCE]
    values, order = _rows(others, "ratio_to_random", split), order_of(cells, split)
    if not values:
        return None
    # One very wide interval must not squeeze all the others: it is cut at the frame.
    most = others["ratio_to_random"].max()
    ends = others.get("ratio_to_random_high", others["ratio_to_random"])
    high = float(max(1.2, min(max(ends.max(), most), 1.6 * most) * 1.02))
    low = float(min(0.1, others["ratio_to_random"].min()) * 0.9) if high > 4 else 0.0
    x = {"scale": _scale(high > 4, [low, high], clamp=True),
         "axis": _axis("error ÷ random sampling's (less is better)")}  # fmt: skip
    text = f"Error relative to random sampling, {split} split. {_told(values, order, '.2f')}"
    return dot_rows(cells, values, order, text, x, 1.0, ".2f")


def coverage(cells: pd.DataFrame, split: str, level: int) -> Any | None:
    """How often each method's intervals contain the truth, or None without intervals."""
    name, order = f"coverage{level}", order_of(cells, split)
    if name not in cells or not (values := _rows(cells, name, split)):
        return None
    low = max(0.0, math.floor(10 * min(level / 100 - 0.2, cells[name].min())) / 10)
    x = {"scale": _scale(False, [low, 1.0], clamp=True),
         "axis": _axis("share of targets inside their interval", format="%")}  # fmt: skip
    text = f"Share of {level}% intervals that contain the truth, {split} split. "
    text += _told(values, order, ".0%")
    return dot_rows(cells, values, order, text, x, level / 100, ".0%")


def one_run(
    comparison_estimates: pd.DataFrame,
    cells: pd.DataFrame,
    split: str,
    unit: Unit,
    most: int = MOST_TARGETS,
) -> pd.DataFrame:
    """Return a single run of each method: the first repeat with the middle number of items.

    If there are very many targets, `most` are drawn evenly by true score.
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
    """Estimated against true scores, for the method that the chart is set to."""
    import altair as alt

    if run.empty:
        return None
    numbers = run[["truth", "estimate", "low", "high"]].astype(float) * unit.factor
    marks = numbers[["truth", "estimate"]].to_numpy()
    air = max(0.04 * float(np.ptp(marks)), 0.002 * unit.factor)
    scale = _scale(False, [float(marks.min()) - air, float(marks.max()) + air], clamp=True)
    axis = partial(alt.Axis, tickCount=4, labelOverlap="greedy")
    x: dict[str, Any] = {"scale": scale, "axis": axis(title=unit.score_title("true score"))}
    y: dict[str, Any] = {"scale": scale, "axis": axis(title=unit.score_title("estimate"))}
    missed = alt.when("datum.truth < datum.low || datum.truth > datum.high")
    base = _of_one_method(run[["method", "target"]].join(numbers.round(unit.digits + 1)), cells)
    whisker = base.mark_rule().encode(
        x=alt.X("truth:Q", **x), y=alt.Y("low:Q", **y), y2="high:Q",
        opacity=missed.then(alt.value(1)).otherwise(alt.value(0.3)),
    )  # fmt: skip
    dot = base.mark_circle(size=22, opacity=0.75).encode(
        x=alt.X("truth:Q", **x), y=alt.Y("estimate:Q", **y),
        tooltip=["target:N", *(f"{column}:Q" for column in numbers)],
    )  # fmt: skip
    text = f"Estimated against true scores, one dot per target, {split} split"
    return _square(alt.layer(whisker, dot), run, text, x, y)


def true_and_estimated_ranks(run: pd.DataFrame, cells: pd.DataFrame, split: str) -> Any | None:
    """Estimated against true ranks, for the method that the chart is set to."""
    import altair as alt

    if run.empty or run["of"].max() < 2:
        return None
    ranks = run[["true_rank", "rank"]].astype(int)
    last = int(run["of"].max())
    step = max(1, last // 4)
    ticks, scale = [1, *range(max(2, step), last + 1, step)], _scale(False, [last, 1])
    x: dict[str, Any] = {"scale": scale, "axis": alt.Axis(title="true rank", values=ticks)}
    y = x | {"axis": alt.Axis(title="estimated rank", values=ticks)}
    base = _of_one_method(run[["method", "target"]].join(ranks), cells)
    dot = base.mark_circle(size=22, opacity=0.75).encode(
        x=alt.X("true_rank:Q", **x), y=alt.Y("rank:Q", **y),
        tooltip=["target:N", alt.Tooltip("true_rank:Q", title="true rank"), "rank:Q"],
    )  # fmt: skip
    text = f"Estimated against true ranks, one dot per target, {split} split"
    return _square(dot, run, text, x, y)


def _of_one_method(run: pd.DataFrame, cells: pd.DataFrame) -> alt.Chart:
    """Return the targets of the method that the param `only` names, in its color."""
    import altair as alt

    values = run.astype(object).where(run.notna(), None)  # JSON has no NaN
    rows = ({str(name): value for name, value in row.items()} for row in values.to_dict("records"))
    base = alt.Chart(theme.rows(rows)).transform_filter("datum.method === only")
    return base.encode(color=theme.color(looks_of(cells), always=True))


def _square(marks: Any, run: pd.DataFrame, text: str, x: dict[str, Any], y: dict[str, Any]) -> Any:
    """Return a square chart with its diagonal; one chart serves a grid of panels."""
    import altair as alt

    ends = alt.Chart(theme.rows({"at": end} for end in x["scale"].to_dict()["domain"]))
    diagonal = ends.mark_line(color=theme.LIGHT["rest"], strokeWidth=1).encode(
        x=alt.X("at:Q", **x), y=alt.Y("at:Q", **y)
    )
    names = [str(name) for name in dict.fromkeys(run["method"])]
    bind = alt.binding_select(options=names, name="method ")
    only = alt.param(name="only", value=names[0], bind=bind)
    return finished(alt.layer(diagonal, marks).add_params(only), text, 220, 220)
