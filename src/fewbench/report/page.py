"""The page of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pandas as pd

from fewbench.charts import comparison as figures
from fewbench.charts import theme
from fewbench.report import heat, tables, words
from fewbench.report.frame import Charts, Placed, render_page
from fewbench.report.metrics import is_side_column, metric
from fewbench.report.results import Comparison, Results, read

T = TypeVar("T")


def render_comparison(comparison: Comparison) -> str:
    """The page of a comparison as text; the same comparison always gives the same."""
    results, charts = read(comparison), Charts()
    cells = comparison.cells
    look = theme.looks(results.methods, results.reference)
    order = results.ranked(results.focus, results.splits[0]) if results.splits else []
    order += [m for m in results.methods if m not in order]
    several = len(results.splits) > 1
    dataset = words.fact(comparison.facts, "dataset", "benchmark", "dataset name", "name", "scores")

    def each(make: Callable[[str], T | None]) -> list[tuple[str, T]]:
        made = [(split, make(split)) for split in results.splits]
        return [(split, one) for split, one in made if one is not None]

    def drawn(make: Callable[[str], Any | None]) -> list[tuple[str, Placed]]:
        made = each(lambda split: charts.add(make(split)))
        return [(f"{split} split" if several else "", one) for split, one in made]

    has_errors = {c.split for c in results.cells.values() if c.has("mae")}
    return render_page(
        "page.html.j2",
        charts,
        title=f"Estimating {dataset} from a few items" if dataset
        else "Estimating a benchmark from a few of its items",
        answers=[words.answer(results, s, name_split=several) for s in results.splits]
        or [words.answer(results, "", name_split=False)],
        warnings=list(comparison.warnings),
        facts=dict(comparison.facts),
        command=words.fact(comparison.facts, "command"),
        results=results,
        looks=look,
        ordered=[look[m] for m in order],
        focus=words.items(results.focus),
        items=words.items,
        columns=tables.columns(results),
        budgets=[
            (b, [tables.group(results, b, s, look) for s in results.splits])
            for b in results.budgets
        ],
        judged=any(c.has("level_with_best") for c in results.cells.values()),
        lines=drawn(lambda s: figures.error_by_items(cells, s) if s in has_errors else None),
        spread=any(c.has("mae_sd") for c in results.cells.values()),
        steady=_steady(results),
        ratios=drawn(lambda s: figures.ratio_to_random(cells, s)),
        scores=each(lambda s: _panels(comparison, charts, s, figures.true_and_estimated)),
        ranks=each(lambda s: _panels(comparison, charts, s, figures.true_and_estimated_ranks)),
        tops=each(lambda s: heat.top_table(results, s, order, look)),
        coverage=[
            (level, pictures)
            for level in results.levels
            if (pictures := drawn(lambda s, at=level: figures.coverage(cells, s, at)))  # type: ignore[misc]
        ],
        tasks=each(lambda s: heat.task_table(results, s, order, look)),
        models=each(lambda s: tables.every_model(results, s, order)),
        meanings=[
            m for k in results.metrics if not is_side_column(k) and (m := metric(k)).meaning
        ],
        every=tables.every_number(results),
        most_tabs=max(len(results.budgets), len(results.splits), 1),
    )  # fmt: skip


def _steady(results: Results) -> bool:
    """Whether some methods have a spread over repeats and others none."""
    known = [c.has("mae_sd") for c in results.cells.values() if c.has("mae")]
    return any(known) and not all(known)


def _panels(
    comparison: Comparison, charts: Charts, split: str, draw: Callable[..., Any]
) -> tuple[Placed, list[str]] | None:
    """A chart that shows one method at a time, and the methods with results, best first."""
    if comparison.estimates.empty:
        return None
    run: pd.DataFrame = figures.one_run(comparison.estimates, comparison.cells, split)
    placed = charts.add(draw(run, comparison.cells, split))
    there = set(run["method"].astype(str))
    if placed is None:
        return None
    return placed, [m for m in figures.order_of(comparison.cells, split) if m in there]
