"""BenTo's pictures: errors by number of tasks, Figures 1 to 3, as one HTML page.

    python benchmarks/papers/bento_pictures.py FOLDER PAGE.html

FOLDER holds the tables, as for reproduce.py.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from fewbench._seeds import child_seed
from fewbench._types import IntArray
from fewbench.bento import Similarity, TaskMatrix, TaskResults, select_tasks
from fewbench.bento.judgement import (
    DRAWS,
    LEVEL,
    question_estimates,
    resampled_models,
    task_estimates,
)
from fewbench.methods.tasks.choosers import BentoSim
from fewbench.show.charts import theme
from fewbench.show.charts.labels import spread as spread_labels
from fewbench.show.charts.theme import LIGHT, finished, finite
from fewbench.show.html import render, write_page
from fewbench.show.page import Page, Section
from fewbench.study.metrics import nrmse
from papers.bento_data import released
from papers.methods.bento import MedoidTasks, sets_of
from papers.record import Context

CHOSEN = 3  # tasks marked in the pictures
SIZES = range(1, 16)
MODELS, SETS, QUESTIONS = range(3)  # for child seeds
LINES = 300.0
MOST_CELLS = 90  # along a side: with more tasks a cell is the mean of several
STRONGEST = 0.07
"""Share of the transfers to show (Figure 1)."""
Sets = Mapping[int, IntArray]
"""Chosen tasks by their number."""


@dataclass(frozen=True)
class Curves:
    """NRMSE for every number of tasks `k`.

    Attributes
    ----------
    k : list of int
    methods : dict of str to list of float
        NRMSE of each method; None where it was not run.
    random_mean, random_low, random_high : list of float
        Of random task sets: mean, 5th and 95th percentile.
    random_questions : list of float
        Mean of as many random questions as the tasks of the judged method hold.
    chosen : str
        The judged method.
    """

    k: list[int]
    methods: dict[str, list[float | None]]
    random_mean: list[float]
    random_low: list[float]
    random_high: list[float]
    random_questions: list[float | None]
    chosen: str


@dataclass(frozen=True)
class Differences:
    """NRMSE on S minus NRMSE on S', with 90% intervals by resampled models.

    Above 0, the embedding ("le") is better.
    """

    k: list[int]
    sim_minus_le: list[float]
    low: list[float]
    high: list[float]


def curves(results: TaskResults, methods: Mapping[str, Sets], chosen: str, seed: int = 0) -> Curves:
    """Judge methods at every number of tasks.

    `methods` maps a method to its chosen tasks (positions in the results) by number; `chosen` is
    the method of the selection.
    """
    full = results.full
    sizes = sorted({k for sets in methods.values() for k in sets})
    tasks = {k: task_estimates(results, k, child_seed(seed, SETS, k)) for k in sizes}
    drawn = [nrmse(tasks[k], full) for k in sizes]
    ends = [np.nanquantile(errors, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) for errors in drawn]
    own = methods[chosen]
    questions = [
        float(nrmse(question_estimates(results, results.sizes[own[k]].sum(), seed), full).mean())
        if k in own
        else None
        for k in sizes
    ]
    return Curves(
        sizes,
        {
            name: [
                float(nrmse(results.reduced(sets[k]), full)) if k in sets else None for k in sizes
            ]
            for name, sets in methods.items()
        },
        [float(errors.mean()) for errors in drawn],
        [float(low) for low, _ in ends],
        [float(high) for _, high in ends],
        questions,
        chosen,
    )


def differences(results: TaskResults, sim: Sets, le: Sets, seed: int = 0) -> Differences:
    """Compare S and S' at every number of tasks on the same models."""
    full = results.full
    weights = resampled_models(results, np.random.default_rng(child_seed(seed, MODELS)), DRAWS)
    sizes: Sequence[int] = sorted(set(sim) & set(le))
    own, low, high = [], [], []
    for k in sizes:
        one, other = results.reduced(sim[k]), results.reduced(le[k])
        own.append(float(nrmse(one, full) - nrmse(other, full)))
        again = nrmse(one, full, weights) - nrmse(other, full, weights)
        ends = np.nanquantile(again, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        low.append(float(ends[0]))
        high.append(float(ends[1]))
    return Differences(list(sizes), own, low, high)


def cluster_order(names: tuple[str, ...], clusters: dict[str, int]) -> IntArray:
    """Return positions of the tasks by cluster, in table order within a cluster."""
    return np.argsort([clusters[name] for name in names], kind="stable")


def similarity_maps(
    matrix: TaskMatrix, settings: Similarity, clusters: dict[str, int]
) -> dict[str, Any]:
    """Return plain values of S and S' with the tasks ordered by cluster (Figure 2)."""
    order = cluster_order(matrix.names, clusters)
    at = np.ix_(order, order)
    return {
        "tasks": [matrix.names[task] for task in order],
        "clusters": [clusters[matrix.names[task]] for task in order],
        "sim": settings.sim(matrix.rows)[at].tolist(),
        "le": settings.le(matrix.rows)[at].tolist(),
    }


def strongest_transfers(
    matrix: TaskMatrix, clusters: dict[str, int], share: float = STRONGEST
) -> dict[str, Any]:
    """Return the strongest transfers between different tasks, minus each target's mean.

    The rows of the matrix must be transferability to all tasks, in their order.
    """
    order = cluster_order(matrix.names, clusters)
    centred = (matrix.rows - matrix.rows.mean(axis=0))[np.ix_(order, order)]
    n = len(order)
    source, target = np.nonzero(~np.eye(n, dtype=bool))
    values = centred[source, target]
    best = np.argsort(-values, kind="stable")[: max(1, round(share * len(values)))]
    return {
        "share": share,
        "tasks": [matrix.names[task] for task in order],
        "clusters": [clusters[matrix.names[task]] for task in order],
        "arcs": [[int(source[i]), int(target[i]), float(values[i])] for i in best],
    }


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
    at = spread_labels([row["error"] for row in last.values()], [size] * len(last), 0.0, high)
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


def page(context: Context) -> Page:
    """Return the page of the released models and their matrix."""
    results, transfer, _ = released(context)
    matrix = TaskMatrix.of_transfer(transfer)
    methods = {
        name: sets_of(method, matrix, SIZES, 0)
        for name, method in (
            ("bento-sim", "bento-sim"),
            ("bento-le", "bento-le"),
            ("bento-le as printed", "bento-le(printed=true)"),
            ("k-medoids", MedoidTasks()),
        )
    }
    selection = select_tasks(BentoSim(), transfer, CHOSEN, bootstraps=0)
    errors = asdict(curves(results, methods, "bento-sim"))
    gap = asdict(differences(results, methods["bento-sim"], methods["bento-le"]))
    maps = similarity_maps(matrix, Similarity(), selection.clusters)
    arcs = strongest_transfers(matrix, selection.clusters)
    names = selection.tasks
    sections = [
        Section("curves", "Error by number of tasks", charts=[
            ("NRMSE", lambda: error_curves(errors, CHOSEN)),
            ("BenTo-sim less BenTo-le (Figure 3)", lambda: difference_curve(gap, CHOSEN)),
        ]),
        Section("maps", "How alike tasks are (Figure 2)", charts=[
            ("S", lambda: similarity(maps, "sim", names)),
            ("S'", lambda: similarity(maps, "le", names)),
        ]),
        Section("transfers", "Which tasks help which (Figure 1)", charts=[
            ("Strongest transfers", lambda: transfers(arcs, names)),
        ]),
    ]  # fmt: skip
    return Page("tasks", "BenTo's pictures", "Seven released models, 57 tasks of MMLU", [], [],
                sections, ())  # fmt: skip


if __name__ == "__main__":
    write_page(render(page(Context(Path(sys.argv[1])))), Path(sys.argv[2]))
