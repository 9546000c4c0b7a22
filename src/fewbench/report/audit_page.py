"""The page of an audit: findings, their data, and charts of the items."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from fewbench._names import counted, fixed
from fewbench.charts import auditing as figures
from fewbench.charts.auditing import MARKED
from fewbench.report.frame import Charts, HasValues, render_page, write_page
from fewbench.report.words import tick

MOST_ROWS = 60
MOST_COLUMNS = 24  # with turned headings as many fit the page
TURNED = 6


@dataclass(frozen=True)
class TaskRow:
    """One task: its size, as a share of the largest, and its mean score."""

    name: str
    items: str
    share: float
    mean: str


def write_audit(
    audit: HasValues,
    path: str | os.PathLike[str],
    source: str = "",
    changed: dict[str, Any] | None = None,
) -> Path:
    """Write an audit as one self-contained HTML file and return its path.

    Parameters
    ----------
    audit : object
        What `fewbench.audit.audit` returned.
    path : str or os.PathLike
        An existing file is replaced only once the new one is complete.
    source : str
        The name of the scores, for the title.
    changed : dict, optional
        If scores were written: sentences `said`, and the file `written`.
    """
    return write_page(render_audit(audit.to_dict(), source, changed), path)


def render_audit(
    found: dict[str, Any], source: str = "", changed: dict[str, Any] | None = None
) -> str:
    """The page as text."""
    charts = Charts()
    low, high = found["table"]["range"]
    numbers, table = found["numbers"], found["table"]
    findings = [_finding(finding) for finding in found["findings"]]
    counts = {
        severity: sum(f["severity"] == severity for f in findings)
        for severity in ("problem", "caution", "fact")
    }
    return render_page(
        "audit.html.j2",
        charts,
        title=f"Audit of {source}" if source else "Audit of a table of scores",
        answer=_answer(table, counts),
        shape=_shape(table),
        changed=changed,
        findings=findings,
        histogram=charts.add(figures.model_scores(numbers["scores"], table["lower_is_better"])),
        tasks=_tasks(found),
        cloud=charts.add(figures.items(numbers, (low, high))),
        wrong=_marked(numbers["item_wrong_way"]),
        suspect=_marked(numbers["item_suspect"]),
        missing=_missing(numbers),
        methods=[(m["method"], m["verdict"], "; ".join(m["because"])) for m in found["methods"]],
        use=[(one["when"], ", ".join(one["methods"]), one["reason"]) for one in found["use"]],
        distinct=tick(round(table["distinct"])),
        facts={"Fingerprint": table["fingerprint"], "Full score": _average(table["average"])},
    )


def _marked(items: list[int]) -> str:
    if len(items) <= MARKED:
        return f"{len(items):,}" if items else ""
    return f"{MARKED} worst of {len(items):,}"


def _answer(table: dict[str, Any], counts: dict[str, int]) -> str:
    def said(n: int, one: str) -> str:
        return f"{n or 'no'} {one}{'' if n == 1 else 's'}"

    problems, cautions = said(counts["problem"], "problem"), said(counts["caution"], "caution")
    return f"{problems.capitalize()} and {cautions} in {counted(table['models'], 'model')}."


def _shape(table: dict[str, Any]) -> str:
    missing = f"{fixed(100 * table['missing'], 1)}%" if table["missing"] >= 0.0005 else "hardly any"
    parts = [
        f"{counted(table['models'], 'model')} on {counted(table['items'], 'item')} in "
        f"{counted(table['tasks'], 'task')}",
        "right or wrong" if table["binary"] else "continuous scores",
        f"{missing} of the cells missing" if table["missing"] else "no cell missing",
        f"{'with' if table['probabilities'] else 'without'} option probabilities",
    ]
    return ", ".join(parts) + "."


def _average(average: str) -> str:
    return "mean over items" if average == "micro" else "mean of the tasks' means"


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding with its table and names as text."""
    table = finding["table"]
    rows = [] if table is None else [[_cell(value) for value in row] for row in table["rows"]]
    numeric = [] if table is None else [_numeric(table["rows"], k) for k in range(len(rows[0]))]
    groups = finding["groups"]
    named = [", ".join(group) for group in groups] or list(finding["ids"])
    listed = table is not None and len(rows) >= len(named)
    shown = len(rows) if listed or not named else len(named)
    what = "groups" if groups else finding["of"] or "rows"
    return {
        **finding,
        "header": [] if table is None else table["header"],
        "rows": rows,
        "numeric": numeric,
        "names": [] if listed else named,
        "title": f"all {shown:,} {what}" if shown > 1 else "which",
        "what": _sentence(finding["what"]),
        "advice": _sentence(finding["advice"]),
    }


def _sentence(words: str) -> Markup:
    """A sentence with unbreakable command options."""
    if not words:
        return Markup("")
    pieces = re.split(r"(--[a-z][a-z-]*)", f"{words[0].upper()}{words[1:]}.")
    option = Markup('<span class="option">{}</span>')
    marked = (option.format(p) if p.startswith("--") else escape(p) for p in pieces)
    return Markup("").join(marked)


def _numeric(rows: list[list[Any]], column: int) -> bool:
    return not any(isinstance(row[column], str) for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,}".replace("-", "−") if isinstance(value, int | float) else str(value)


def _tasks(found: dict[str, Any]) -> list[TaskRow]:
    """Tasks by size, the largest first; empty for a single one."""
    numbers, (low, high) = found["numbers"], found["table"]["range"]
    names, sizes, means = numbers["tasks"], numbers["task_sizes"], numbers["task_means"]
    if len(names) < 2:
        return []
    places = 3 if high - low <= 1 else 1
    order = sorted(range(len(names)), key=lambda t: (-sizes[t], names[t]))
    return [
        TaskRow(
            names[t],
            f"{sizes[t]:,}",
            sizes[t] / max(sizes),
            fixed(means[t], places),
        )
        for t in order
    ]


def _missing(numbers: dict[str, Any]) -> dict[str, Any] | None:
    """Models × tasks with missing cells, most missing first."""
    shares = numbers["missing"]
    if shares is None:
        return None
    sizes = numbers["task_sizes"]
    lacks = [sum(s * n for s, n in zip(row, sizes, strict=True)) for row in shares]
    models = sorted((m for m, n in enumerate(lacks) if n > 0), key=lambda m: -lacks[m])
    total = [sum(row[t] for row in shares) for t in range(len(sizes))]
    tasks = sorted((t for t, s in enumerate(total) if s > 0), key=lambda t: -total[t])
    rows = [
        (
            numbers["models"][m],
            f"{round(lacks[m]):,}",
            [(_missing_share(shares[m][t]), math.sqrt(shares[m][t])) for t in tasks[:MOST_COLUMNS]],
        )
        for m in models[:MOST_ROWS]
    ]
    return {
        "tasks": [numbers["tasks"][t] for t in tasks[:MOST_COLUMNS]],
        "turned": len(tasks) > TURNED,
        "rows": rows,
        "more_models": max(len(models) - MOST_ROWS, 0),
        "more_tasks": max(len(tasks) - MOST_COLUMNS, 0),
    }


def _missing_share(share: float) -> str:
    if not share:
        return ""
    return fixed(100 * share, 1 if share < 0.1 else 0)
