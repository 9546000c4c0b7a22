"""Charts of a selection of tasks: its error, that of chance, resampling, maps of the tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fewbench.show.charts import forms, theme
from fewbench.show.charts.labels import spread
from fewbench.show.charts.theme import LIGHT, finished, finite

MOST_MODELS, MOST_TASKS = 40, 16
LINES = 300.0
MOST_CELLS = 90  # along a side: with more tasks a cell is the mean of several


def error_curves(found: Mapping[str, Any], k: int | None) -> Any | None:
    """The error of each order of tasks by how many are chosen, random tasks behind; k is marked.

    Parameters
    ----------
    found : mapping
        `k`, `methods`, `random_mean`, `random_low`, `random_high`, `random_questions`, `chosen`.
    """
    import altair as alt

    ks, chosen = found["k"], found["chosen"]
    look = theme.looks(list(found["methods"]))
    given = {
        "random tasks": ("ref", found["random_mean"]),
        "random questions": ("soft", found["random_questions"] or [None] * len(ks)),
        **{name: (look[name].color, row) for name, row in found["methods"].items()},
    }
    values = [
        {"name": name, "k": step, "error": finite(100 * v, 2), "color": LIGHT[color],
         "own": name == chosen}
        for name, (color, row) in given.items()
        for step, v in zip(ks, row, strict=True) if v is not None and v == v
    ]  # fmt: skip
    if not values:
        return None
    # The band is cut at the frame: the lines are what is to be compared.
    high = 1.05 * max(row["error"] or 0 for row in values) or 1.0
    scale = alt.Scale(domain=[0, high], nice=False, clamp=True)
    x = alt.X("k:Q", scale=alt.Scale(zero=False, nice=False, padding=8),
              axis=alt.Axis(title="number of tasks chosen", format="d", tickMinStep=1))  # fmt: skip
    y = alt.Y("error:Q", scale=scale, axis=alt.Axis(title="NRMSE (%)", tickCount=5))
    color = alt.Color("color:N", scale=None)
    ends = [
        {"k": step, "low": finite(100 * low, 2), "high": finite(100 * top, 2)}
        for step, low, top in zip(ks, found["random_low"], found["random_high"], strict=True)
        if low is not None and top is not None
    ]  # fmt: skip
    band = alt.Chart(theme.rows(ends)).mark_area(color=LIGHT["ref"], opacity=0.18).encode(
        x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q"
    )  # fmt: skip
    base = alt.Chart(theme.rows(values))
    line = base.mark_line(strokeWidth=2).encode(
        x=x, y=y, color=color, detail="name:N",
        opacity=alt.when("datum.own").then(alt.value(1)).otherwise(alt.value(0.6)),
    )  # fmt: skip
    dot = base.mark_circle(size=26, opacity=1).encode(
        x=x, y=y, color=color, tooltip=["name:N", "k:Q", "error:Q"]
    )
    last = {row["name"]: row for row in values}
    size = 14.5 * high / (LINES - 50)
    at = spread([row["error"] for row in last.values()], [size] * len(last), 0.0, high)
    beside = [{**row, "at": place} for row, place in zip(last.values(), at, strict=True)]
    label = alt.Chart(theme.rows(beside)).mark_text(align="left", dx=10, limit=130).encode(
        x=x, y=alt.Y("at:Q", scale=scale), text="name:N", color=color
    )  # fmt: skip
    chart = alt.layer(_upright(x, ks, k), band, line, dot, label)
    # At the k that was chosen beforehand: the best k of a curve is luck.
    read = [row for row in values if row["k"] == k] or list(last.values())
    told = f"Error against the number of tasks chosen, {ks[0]} to {ks[-1]}. " + "; ".join(
        f"{row['name']}: {row['error']:.1f}% at k = {row['k']}" for row in read
    )
    return finished(chart, f"{told}.", LINES)


def _upright(x: Any, ks: Sequence[int], k: int | None) -> Any:
    import altair as alt

    marked = [{"k": k}] if k is not None and ks[0] <= k <= ks[-1] else []
    return alt.Chart(theme.rows(marked)).mark_rule(color=LIGHT["soft"]).encode(x=x)


def difference_curve(found: Mapping[str, Any], k: int | None) -> Any | None:
    """The error of sim less that of le by k, with its interval and the line of no difference."""
    import altair as alt

    values = [
        {"k": step, "gap": finite(100 * gap, 2),
         "low": None if low is None else finite(100 * low, 2),
         "high": None if high is None else finite(100 * high, 2)}
        for step, gap, low, high in zip(
            found["k"], found["sim_minus_le"], found["low"], found["high"], strict=True)
        if gap is not None and gap == gap
    ]  # fmt: skip
    if not values:
        return None
    x = alt.X("k:Q", scale=alt.Scale(zero=False, nice=False, padding=8),
              axis=alt.Axis(title="number of tasks chosen", format="d", tickMinStep=1))  # fmt: skip
    axis = alt.Axis(title="NRMSE of sim minus NRMSE of le (pp); above 0, le is better", tickCount=5)
    base = alt.Chart(theme.rows(values))
    band = base.transform_filter("isValid(datum.low)").mark_area(
        color=LIGHT["m0"], opacity=0.16
    ).encode(x=x, y=alt.Y("low:Q", axis=axis), y2="high:Q")  # fmt: skip
    y = alt.Y("gap:Q", axis=axis)
    line = base.mark_line(color=LIGHT["m0"], strokeWidth=2).encode(x=x, y=y)
    dot = base.mark_circle(color=LIGHT["m0"], size=30, opacity=1).encode(
        x=x, y=y, tooltip=["k:Q", "gap:Q", "low:Q", "high:Q"]
    )
    zero = alt.Chart(theme.rows([{"gap": 0}])).mark_rule(color=LIGHT["soft"]).encode(y=y)
    chart = alt.layer(_upright(x, found["k"], k), zero, band, line, dot)
    told = "Error of sim minus error of le, in percentage points. " + "; ".join(
        f"k = {row['k']}: {row['gap']:.1f}" for row in values[:10]
    )
    return finished(chart, f"{told}.", LINES)


def errors(judgement: Mapping[str, Any]) -> Any:
    """The error of these tasks beside that of random tasks and of random questions, in percent."""
    rows = [_error("these tasks", "m0", judgement["nrmse"], judgement["low"], judgement["high"])]
    if ratio := judgement["anchor_ratio"]:
        rows.append(_error(f"corrected by {ratio['anchor']}", "m0", ratio["nrmse"]))
    for name, key in (("random tasks", "random_tasks"), ("random questions", "random_questions")):
        if part := judgement[key]:
            ends = (part["mean"] + side * part["spread"] for side in (-1, 1))
            rows.append(_error(name, "ref", part["mean"], *ends))
    told = "; ".join(f"{row['name']}: {row['value']:.1f}%" for row in rows)
    return forms.intervals(rows, "NRMSE (%)", f"Error of these tasks and of chance. {told}.",
                           form=".1f")  # fmt: skip


def _error(
    name: str, color: str, value: float, low: float | None = None, high: float | None = None
) -> dict[str, Any]:
    return {
        "name": name, "color": color, "value": 100 * value,
        "low": None if low is None else 100 * max(low, 0.0),
        "high": None if high is None else 100 * high,
    }  # fmt: skip


def models(judgement: Mapping[str, Any]) -> Any | None:
    """Each model's full score and its score on the chosen tasks, the best model first."""
    given = sorted(judgement["models"], key=lambda m: (-m["full"], m["model"]))
    # Of very many models as many are drawn as can be read, evenly from the best to the worst.
    if len(given) > MOST_MODELS:
        last = len(given) - 1
        given = [given[round(k * last / (MOST_MODELS - 1))] for k in range(MOST_MODELS)]
    rows = [{"name": m["model"], "one": 100 * m["full"], "other": 100 * m["chosen"]} for m in given]
    told = "; ".join(f"{r['name']}: {r['one']:.3g} and {r['other']:.3g}" for r in rows)
    said = f"Full score, and score on the chosen tasks. {told}."
    return forms.pairs(rows, ("all tasks", "chosen tasks"), "score (%)", said)


def stability(tasks: Sequence[Mapping[str, Any]], chosen: Sequence[str]) -> Any | None:
    """How often resampled seeds choose each task; those of the selection are colored."""
    mine = set(chosen)
    seen = sorted(tasks, key=lambda t: (-t["share"], t["task"] not in mine, t["task"]))
    rows = [
        {"name": t["task"], "value": t["share"], "color": "m0" if t["task"] in mine else "ref"}
        for t in seen if t["share"] > 0
    ][:MOST_TASKS]  # fmt: skip
    told = "; ".join(f"{row['name']}: {row['value']:.0%}" for row in rows)
    # The axis is the same whatever the shares, so that a short bar means seldom.
    return forms.bars(rows, "share of resamples", f"How often tasks are chosen again. {told}.",
                      high=1.08)  # fmt: skip


def similarity(found: Mapping[str, Any], key: str, chosen: Sequence[str]) -> Any | None:
    """How alike tasks are, in the order of their clusters; the chosen ones have bold names.

    `found` has `tasks` and the matrices `sim` and `le` or None.
    """
    if found.get(key) is None:
        return None
    tasks, matrix = found["tasks"], np.array(found[key], dtype=float)
    np.fill_diagonal(matrix, np.nan)  # which would hide the rest
    blocks = [tasks[at : at + per_cell(tasks)] for at in range(0, len(tasks), per_cell(tasks))]
    names = [one[0] if len(one) == 1 else f"{one[0]} … {one[-1]}" for one in blocks]
    starts = np.cumsum([0, *map(len, blocks[:-1])])
    sums, counts = (
        np.add.reduceat(np.add.reduceat(part, starts), starts, axis=1)
        for part in (np.nan_to_num(matrix), ~np.isnan(matrix) * 1)
    )
    cells = [
        (names[i], names[j], sums[i, j] / counts[i, j])
        for i, j in zip(*np.nonzero(counts), strict=True)
    ]
    bold = [name for name, one in zip(names, blocks, strict=True) if {*one} & {*chosen}]
    return _heat(cells, names, bold, f"{len(tasks)} tasks in the order of their clusters")


def per_cell(tasks: Sequence[str]) -> int:
    """Return how many tasks a row of `similarity` combines."""
    return -(-len(tasks) // MOST_CELLS)


def transfers(found: Mapping[str, Any], chosen: Sequence[str]) -> Any | None:
    """The strongest transfers, from the exemplars of a row's task to the questions of a column's.

    `found` has `tasks` and `arcs`: source, target and value.
    """
    tasks, arcs = found["tasks"], strongest(found)
    cells = [(tasks[i], tasks[j], value) for i, j, value in arcs]
    names = [tasks[at] for at in sorted({at for arc in arcs for at in arc[:2]})]
    told = f"The {len(arcs)} strongest transfers between {len(tasks)} tasks"
    return _heat(cells, names, chosen, told)


def strongest(found: Mapping[str, Any]) -> list[tuple[int, int, float]]:
    """Return the strongest transfers first, as many as fill a map."""
    known = [(int(i), int(j), float(v)) for i, j, v in found["arcs"] if v is not None]
    kept: list[tuple[int, int, float]] = []
    seen = set[int]()
    for i, j, value in sorted(known, key=lambda arc: (-arc[2], arc[0], arc[1])):
        if len(seen | {i, j}) <= MOST_CELLS:
            seen |= {i, j}
            kept.append((i, j, value))
    return kept


def _heat(
    cells: Sequence[tuple[str, str, float]], names: Sequence[str], bold: Sequence[str], told: str
) -> Any | None:
    """A shaded cell for each value; the extreme hundredths are shaded like their neighbors."""
    import altair as alt

    if not cells:
        return None
    low, high = np.percentile([value for *_, value in cells], [1, 99])
    ends = [low, high] if high > low else [low - 1, low + 1]
    values = [{"row": a, "column": b, "value": finite(v, 3)} for a, b, v in cells]
    mark = alt.expr(f"indexof({json.dumps(list(bold))}, datum.value) >= 0 ? 700 : 400")
    axis: dict[str, Any] = {
        "title": None, "labelFontSize": 10, "labelPadding": 3, "ticks": False,
        "labelColor": LIGHT["ink"], "labelFontWeight": mark, "domain": False, "labelOverlap": False,
    }  # fmt: skip
    chart = alt.Chart(theme.rows(values)).mark_rect(color=LIGHT["m1"]).encode(
        x=alt.X("column:N", sort=list(names), axis=None),
        y=alt.Y("row:N", sort=list(names), axis=alt.Axis(**axis)),
        opacity=alt.Opacity("value:Q", legend=None, scale=alt.Scale(
            domain=ends, range=[0.1, 1], clamp=True)),
        tooltip=["row:N", "column:N", "value:Q"],
    )  # fmt: skip
    said = f"{told}; shades from {low:.2f} to {high:.2f}."
    return finished(chart, said, 13 * len(names) + 20)
