"""The page of an audit: findings, their data, and charts of the items."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fewbench._names import counted
from fewbench.report.cloud import cloud
from fewbench.report.frame import HasValues, render_page, write_page
from fewbench.report.identity import Look
from fewbench.report.scales import Scale, nice_range, nice_step, nice_ticks
from fewbench.report.svg import drawing, join, rule, tag, text
from fewbench.report.words import fixed, tick

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 360.0, 250.0, 36.0, 20.0, 38.0, 10.0
COLUMNS = 20
MARKED = 400
WRONG = Look("goes the wrong way", "c1", "square")
SUSPECT = Look("leans the wrong way", "c4", "diamond", hollow=True)
MOST_ROWS = 60
MOST_COLUMNS = 24  # with turned headings as many fit the page
TURNED = 6


def score_bars(
    scores: Sequence[float], models: Sequence[str], table: dict[str, Any]
) -> Markup | None:
    """How many models score how much, or None for a single model."""
    if len(scores) < 2:
        return None
    low, high = nice_range(min(scores), max(scores), COLUMNS)
    step = nice_step(high - low, COLUMNS)
    count = max(round((high - low) / step), 1)
    bins: list[list[str]] = [[] for _ in range(count)]
    for score, model in zip(scores, models, strict=True):
        at = int((score - low) / step + 1e-9)
        bins[min(max(at, 0), count - 1)].append(model)
    x = Scale(low, low + count * step, LEFT, WIDTH - RIGHT)
    most = max(map(len, bins))
    y = Scale(0, max(most, 1), HEIGHT - BOTTOM, TOP)
    body = []
    for value in nice_ticks(0, most, min(most, 5)):
        body.append(rule(LEFT, y(value), WIDTH - RIGHT, y(value), "grid" if value else "axis"))
        body.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    for value in nice_ticks(low, low + count * step, 6):
        body.append(text(x(value), HEIGHT - BOTTOM + 16, tick(value), "tick", "middle"))
    for at, names in enumerate(bins):
        if not names:
            continue
        start, stop = x(low + at * step), x(low + (at + 1) * step)
        told = f"{tick(round(low + at * step, 10))} to {tick(round(low + (at + 1) * step, 10))}: "
        told += f"{len(names)} {'model' if len(names) == 1 else 'models'}"
        told += f", {', '.join(names[:5])}" + ("…" if len(names) > 5 else "")
        top = y(len(names))
        bar = tag(
            "rect", tag("title", told), x=start + 0.5, y=top, width=max(stop - start - 1, 1),
            height=HEIGHT - BOTTOM - top, cls="column",
        )  # fmt: skip
        body.append(bar)
    body.append(text(0, 10, "models", "unit"))
    better = " (lower is better)" if table["lower_is_better"] else ""
    middle = (LEFT + WIDTH - RIGHT) / 2
    body.append(text(middle, HEIGHT - 4, f"full score{better}", "unit", "middle"))
    return drawing(WIDTH, HEIGHT, "How many models score how much", *body, cls="c0")


def item_cloud(numbers: dict[str, Any], table: dict[str, Any]) -> Markup | None:
    """Items by mean score and by how they go with the rest, or None if none can be judged."""
    means, r = numbers["item_mean"], numbers["item_r"]
    known = [i for i, value in enumerate(r) if value is not None]
    if not known:
        return None
    low, high = table["range"]
    x = Scale(low, high, LEFT, WIDTH - RIGHT)
    bottom, top = nice_range(min(min(r[i] for i in known), 0), max(max(r[i] for i in known), 0), 5)
    y = Scale(bottom, top, HEIGHT - BOTTOM, TOP)
    body = []
    for value in nice_ticks(bottom, top, 5):
        line = "grid" if value else "target"
        body.append(rule(LEFT, y(value), WIDTH - RIGHT, y(value), line))
        body.append(text(LEFT - 6, y(value) + 4, tick(value), "tick", "end"))
    for value in nice_ticks(low, high, 5):
        body.append(rule(x(value), TOP, x(value), HEIGHT - BOTTOM, "grid"))
        body.append(text(x(value), HEIGHT - BOTTOM + 16, tick(value), "tick", "middle"))
    # The worst come first; those beyond the most that are marked are dots like the others.
    marked = {*numbers["item_wrong_way"][:MARKED], *numbers["item_suspect"][:MARKED]}
    body += cloud((x(means[i]), y(r[i])) for i in known if i not in marked)
    for look, which in ((SUSPECT, "item_suspect"), (WRONG, "item_wrong_way")):
        for i in numbers[which][:MARKED]:
            told = f"{numbers['items'][i]}: mean {fixed(means[i])}, r {fixed(r[i])}, {look.name}"
            mark = look.mark(x(means[i]), y(r[i]), 3.0)
            body.append(tag("g", tag("title", told), mark, cls=look.cls))
    body.append(text(0, 10, "r with the rest", "unit"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    body.append(text(middle, HEIGHT - 4, "mean score of the item", "unit", "middle"))
    told = "Items by mean score and by correlation with the rest"
    return drawing(WIDTH, HEIGHT, told, *body, cls="c0")


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
    return write_page(render(audit.to_dict(), source, changed), path)


def render(found: dict[str, Any], source: str = "", changed: dict[str, Any] | None = None) -> str:
    """The page as text."""
    numbers, table = found["numbers"], found["table"]
    findings = [_finding(finding) for finding in found["findings"]]
    counts = {
        severity: sum(f["severity"] == severity for f in findings)
        for severity in ("problem", "caution", "fact")
    }
    return render_page(
        "audit.html.j2",
        title=f"Audit of {source}" if source else "Audit of a table of scores",
        answer=_answer(table, counts),
        shape=_shape(table),
        changed=changed,
        findings=findings,
        histogram=score_bars(numbers["scores"], numbers["models"], table),
        tasks=_tasks(found),
        cloud=item_cloud(numbers, table),
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
    return join(tag("span", p, cls="option") if p.startswith("--") else p for p in pieces)


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
