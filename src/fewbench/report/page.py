"""The page of a comparison."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup

from fewbench.report import bands, heat, panels, shares, tables, words
from fewbench.report.frame import render_page, write_page
from fewbench.report.identity import looks
from fewbench.report.lines import error_lines
from fewbench.report.metrics import is_side_column, metric
from fewbench.report.results import Comparison, Results, read

T = TypeVar("T")


def write_report(comparison: Comparison, path: str | os.PathLike[str]) -> Path:
    """Write the comparison as one self-contained HTML file and return its path.

    The same comparison always gives the same bytes.

    Parameters
    ----------
    comparison : Comparison
        Anything with the attributes ``cells``, ``estimates``, ``task_errors``, ``facts`` and
        ``warnings``.
    path : str or os.PathLike
        An existing file is replaced only once the new one is complete.
    """
    return write_page(render(comparison), path)


def render(comparison: Comparison) -> str:
    """The page as text."""
    return render_page("page.html.j2", **_parts(comparison))


def _parts(comparison: Comparison) -> dict[str, Any]:
    results = read(comparison)
    look = looks(results.methods, results.reference)
    order = results.ranked(results.focus, results.splits[0]) if results.splits else []
    order += [m for m in results.methods if m not in order]
    several = len(results.splits) > 1
    dataset = words.fact(comparison.facts, "dataset", "benchmark", "dataset name", "name")

    def each(make: Callable[[str], T | None]) -> list[tuple[str, T]]:
        made = [(split, make(split)) for split in results.splits]
        return [(split, one) for split, one in made if one is not None]

    return {
        "title": f"Estimating {dataset} from a few items" if dataset
        else "Estimating a benchmark from a few of its items",
        "answers": [words.answer(results, s, name_split=several) for s in results.splits]
        or [words.answer(results, "", name_split=False)],
        "warnings": list(comparison.warnings),
        "facts": dict(comparison.facts),
        "results": results,
        "looks": look,
        "focus": words.items(results.focus),
        "items": words.items,
        "columns_for": _columns,
        "columns": tables.columns(results),
        "budgets": [
            (b, [tables.group(results, b, s, look) for s in results.splits])
            for b in results.budgets
        ],
        "judged": any(c.has("level_with_best") for c in results.cells.values()),
        "lines": each(lambda s: _lines(results, s, look)),
        "bands": each(lambda s: bands.panels(results, s, look) or None)
        if bands.several(results) else [],
        "spread": bands.spread_known(results),
        "steady": _steady(results),
        "ratios": each(lambda s: shares.ratio_rows(results, s, order, look)),
        "scores": each(lambda s: _scores(results, s, order, look)),
        "ranks": each(lambda s: _ranks(results, s, order, look)),
        "tops": each(lambda s: heat.top_table(results, s, order, look)),
        "coverage": [
            (level, pictures)
            for level in results.levels
            if (pictures := each(_covered(results, level, order, look)))
        ],
        "tasks": each(lambda s: heat.task_table(results, s, order, look)),
        "meanings": [
            m for k in results.metrics if not is_side_column(k) and (m := metric(k)).meaning
        ],
        "every": tables.every_number(results),
        "most_tabs": max(len(results.budgets), len(results.splits), 1),
    }  # fmt: skip


def _columns(panels: int) -> int:
    """Number of panels per row, without a single one in the last row."""
    return 3 if panels in (3, 5, 6, 9) else 4


def _lines(results: Results, split: str, look: Any) -> Markup | None:
    if not bands.series(results, split):
        return None
    draw = error_lines if len(results.budgets) > 1 else bands.one_budget
    return draw(results, split, look)


def _steady(results: Results) -> bool:
    """Whether some methods have a spread over repeats and others none."""
    known = [c.has("mae_sd") for c in results.cells.values() if c.has("mae")]
    return any(known) and not all(known)


def _covered(
    results: Results, level: int, order: list[str], look: Any
) -> Callable[[str], Markup | None]:
    return lambda split: shares.coverage_rows(results, split, level, order, look)


def _scores(results: Results, split: str, order: list[str], look: Any) -> list[Any] | None:
    groups = [results.estimates.get((m, split), []) for m in order]
    span = panels.score_range(groups)
    made = [
        (look[m], f"error {words.points(results.at(m, results.focus or 0, split)['mae'], 1)} pp",
         panels.scores(values, look[m], span))
        for m, values in zip(order, groups, strict=True) if values
    ]  # fmt: skip
    return made or None


def _ranks(results: Results, split: str, order: list[str], look: Any) -> list[Any] | None:
    made = []
    for m in order:
        values = results.estimates.get((m, split), [])
        tau = results.at(m, results.focus or 0, split)["kendall_tau"]
        if len(values) > 1:
            said = f"τ {words.fixed(tau)}" if tau == tau else ""
            made.append((look[m], said, panels.ranks(values, look[m])))
    return made or None
