"""What an audit shows."""

import shlex
from pathlib import Path
from typing import Any

from fewbench._names import counted, fixed, some
from fewbench.checks.audit import Audit
from fewbench.checks.duplicates import DROP
from fewbench.checks.finding import Cell, Finding
from fewbench.checks.items import CORRELATION
from fewbench.methods.sources import LEAST_KNOWN, NEARLY_COMPLETE
from fewbench.scores import Scale, Unit
from fewbench.show.charts import auditing
from fewbench.show.page import Page, Section, Table, page_of

MOST_MODELS, MOST_TASKS = 60, 24
LOOKED_AT = 15
"""Items whose keys are shown: in simulated tables with ten wrong ones, all ten are among them."""


@page_of.register
def audit_page(found: Audit, source: str = "") -> Page:
    """Return the findings, which methods to use, and what is behind them.

    `source` is the file of the scores, for the commands to run next.
    """
    shape, numbers = found.table, found.numbers
    severities = [finding.severity for finding in found.findings]
    counts = [(s, severities.count(s)) for s in ("problem", "caution")]
    problems, cautions = (counted(n, s) if n else f"no {s}s" for s, n in counts)
    lesser = [_shape(shape)]
    n = severities.count("fact")
    if left_out := found.of_kind("left-out"):
        lesser.append(
            f"{left_out.what}. Except for duplicates, all below is about the other "
            f"{counted(shape['models'] - shape['left_out'], 'model')}."
        )
    if found.changed:
        lesser.append(f"This is the audit of {found.changed['written']}, after the changes.")
    path = shlex.quote(source) if source else "SCORES"
    head = [("Severity", False), ("Finding", False), ("Advice", False)]
    rows = [
        (finding.severity, _named(finding), finding.advice.replace("audit SCORES", f"audit {path}"))
        for finding in found.findings
    ]
    facts = [row for row in rows if row[0] == "fact"]
    urgent = [row for row in rows if row[0] != "fact"]
    wrong, suspect = (_marked(numbers[f"item_{kind}"]) for kind in ("wrong_way", "suspect"))
    low, high = shape["range"]
    unit = Unit(Scale(low, high, shape["lower_is_better"]))
    alike: dict[tuple[str, str], list[str]] = {}
    for fit in found.methods:
        alike.setdefault((fit.verdict, "; ".join(fit.because)), []).append(fit.method)
    sections = [
        Section(
            "changed", "What was changed", lines=found.changed["said"] if found.changed else ()
        ),
        Section(
            "found",
            "What was found",
            tables=[Table("Problems and cautions", head, urgent)] if urgent else [],
        ),
        Section(
            "facts",
            "Facts",
            tables=[Table("Facts", head, facts)] if facts else [],
            detail=True,
        ),
        *_methods(found),
        _keys(found),
        Section(
            "behind",
            "Which models and items",
            tables=[table for finding in found.findings for table in _behind(finding)],
            detail=True,
        ),
        Section(
            "items",
            "Items",
            legend=[
                "The dots are items: the mean score across, and up how their scores correlate with "
                "the models' ranks on all other items. Below the line better models do worse.",
                *(
                    [f"Squares are the {wrong} that go the wrong way, more than by chance."]
                    * bool(wrong)
                ),
                *(
                    [f"Diamonds are the {suspect} that agree least with the others."]
                    * bool(suspect)
                ),
            ],
            charts=[("Items", lambda: auditing.items(numbers, unit))],
            detail=True,
        ),
        Section(
            "models",
            "Models",
            charts=[
                ("Models by full score", lambda: auditing.model_scores(numbers["scores"], unit))
            ],
            detail=True,
        ),
        _tasks(numbers, unit),
        _missing(numbers),
        Section(
            "needs",
            "Methods",
            ["What each method of the catalogue needs, and whether these scores have it."],
            tables=[
                Table(
                    "Methods",
                    [("Methods", False), ("On these scores", False), ("Because", False)],
                    [(", ".join(names), *facts) for facts, names in alike.items()],
                    "a method or verdict",
                )
            ],
            detail=True,
        ),
        Section(
            "read",
            "What was read",
            facts={
                "Fingerprint": shape["fingerprint"],
                "Full score": "mean over items"
                if shape["average"] == "micro"
                else "mean of the tasks' means",
                **({"Source results": "; ".join(shape["credits"])} if shape["credits"] else {}),
            },
            detail=True,
        ),
    ]
    return Page(
        "audit",
        f"Audit of {Path(source).name}" if source else "Audit of a table of scores",
        f"{problems} and {cautions} in {counted(shape['models'], 'model')}".capitalize(),
        lesser,
        sections=[s for s in sections if s.tables or s.charts or s.lines or s.facts],
        next=[_next(found, path)],
        hint=f"{counted(n, 'fact')} about these scores: fewbench audit {path} --details."
        f"{_suspects(found)}"
        if n
        else "",
    )


def _suspects(found: Audit) -> str:
    """Return how many keys the details list."""
    n = sum(len(finding.ids) for finding in _on_keys(found))
    return f" It lists {counted(n, 'item')} whose keys to look at." if n else ""


def _on_keys(found: Audit) -> list[Finding]:
    """Return the findings on items that go against the others, the surest first."""
    findings = (found.of_kind(kind) for kind in ("wrong-way", "suspect-keys"))
    return [finding for finding in findings if finding is not None]


def _keys(found: Audit) -> Section:
    """Return the items whose keys are looked at first, with how they go with the others."""
    details = [finding.table for finding in _on_keys(found) if finding.table]
    tables = []
    if details:
        rows = [row for table in details for row in table.rows][:LOOKED_AT]
        head = [(name.capitalize(), name in ("mean", CORRELATION)) for name in details[0].header]
        shown = [[_cell(cell) for cell in row] for row in rows]
        tables = [Table("Keys to look at first", head, shown, "an item")]
    notes = [
        "The lower the correlation, the more better models fail the item. A wrong key is one of "
        "several reasons: two right options and traps are others."
    ]
    return Section("keys", "Keys to look at first", notes, tables=tables, detail=True)


def _shape(shape: dict[str, Any]) -> str:
    missing = f"{fixed(100 * shape['missing'], 1)}%" if shape["missing"] >= 0.0005 else "hardly any"
    return (
        f"{counted(shape['models'], 'model')} on {counted(shape['items'], 'item')} in "
        f"{counted(shape['tasks'], 'task')}, "
        f"{'right or wrong' if shape['binary'] else 'continuous scores'}, "
        f"{f'{missing} of the cells' if shape['missing'] else 'no cell'} missing, "
        f"{'with' if shape['probabilities'] else 'without'} option probabilities."
    )


def _named(finding: Finding) -> str:
    """Return a finding with its first names."""
    if finding.groups:
        named = [f"({some(group, 2, quotes=False)})" for group in finding.groups[:2]]
        more = len(finding.groups) - len(named)
        return f"{finding.what}: {', '.join(named)}" + (f" and {more} more" if more else "")
    return f"{finding.what}: {some(finding.ids, quotes=False)}" if finding.ids else finding.what


def _behind(finding: Finding) -> list[Table]:
    """Return the numbers of a finding, and all names that are not among them, folded away."""
    named = [", ".join(group) for group in finding.groups] or list(finding.ids)
    what, tables = "groups" if finding.groups else finding.of, []
    kind = finding.kind.replace("-", " ").capitalize()
    rows = finding.table.rows if finding.table else ()
    if finding.table:
        is_number = [
            not any(isinstance(cell, str) for cell in column) for column in zip(*rows, strict=True)
        ]
        head = list(zip(finding.table.header, is_number, strict=True))
        shown = [[_cell(cell) for cell in row] for row in rows]
        tables.append(Table(kind, head, shown, folded=f"{kind}: {len(rows):,} {what or 'rows'}"))
    if named and len(rows) < len(named):
        folded = f"{kind}: {len(named):,} {what}"
        tables.append(Table(kind, [(what, False)], [[name] for name in named], folded=folded))
    return tables


def _cell(value: Cell) -> str:
    if value is None:
        return "–"
    return f"{value:,}".replace("-", "−") if isinstance(value, int | float) else value


def _marked(items: list[int]) -> str:
    most = auditing.MARKED
    return f"{most} worst of {len(items):,}" if len(items) > most else f"{len(items) or ''}"


def _methods(audit: Audit) -> list[Section]:
    """Return which methods to use, and which cannot run."""
    rows = [(advice.when, ", ".join(advice.methods), advice.reason) for advice in audit.use]
    reasons: dict[str, list[str]] = {}
    for fit in audit.methods:
        if fit.verdict == "cannot":
            reasons.setdefault("; ".join(fit.because), []).append(fit.method)
    unfit = [(", ".join(names), reason) for reason, names in reasons.items()]
    can = sum(fit.verdict != "cannot" for fit in audit.methods)
    lack = sum(fit.verdict == "works, but" for fit in audit.methods)
    head = [("For", False), ("Methods", False), ("Because", False)]
    advice = "Use only methods that beat random sampling in fewbench compare."
    if (known := audit.table["known"]) < LEAST_KNOWN:
        advice = f"fewbench compare cannot judge methods here: {known} of "
        advice += f"{counted(audit.table['models'], 'model')} ran {1 - NEARLY_COMPLETE:.0%} of the "
        advice += "items or more. Without --method, fewbench start takes a random sample."
    return [
        Section(
            "use",
            "Use these methods",
            [advice],
            f"Use these methods, of {counted(can, 'method')} that can run"
            f"{f' ({lack} with a limitation)' if lack else ''}:",
            tables=[Table("Methods", head, rows)],
        ),
        Section(
            "unfit",
            "Methods that cannot run here",
            said="These methods cannot run here:" if unfit else "",
            tables=[Table("Methods", head[1:], unfit)] if unfit else [],
            detail=True,
        ),
    ]


def _next(audit: Audit, path: str) -> str:
    """Return the command that drops copies, checks the methods to use, or plans without them."""
    average = " --average macro" if audit.table["average"] == "macro" else ""
    if any(finding.severity == "problem" and DROP in finding.advice for finding in audit.findings):
        return f"fewbench audit {path} --drop duplicates -o clean.parquet{average}"
    n_items = audit.table["items"]
    if audit.table["known"] < LEAST_KNOWN:
        return f"fewbench plan {path} --budget {min(100, -(-n_items // 2))}{average}"
    first = dict.fromkeys(advice.methods[0] for advice in audit.use if advice.methods)
    budgets = [str(n) for n in (20, 50) if n < n_items] or [str(-(-n_items // 2))]
    return f"fewbench compare {path} -m {','.join(first)} -n {','.join(budgets)}{average}"


def _tasks(numbers: dict[str, Any], unit: Unit) -> Section:
    """Return the tasks by size, the largest first; nothing of a single one."""
    names, sizes = numbers["tasks"], numbers["task_sizes"]
    order = sorted(range(len(names)), key=lambda t: (-sizes[t], names[t]))
    head = [("Task", False), ("Items", True), ("Mean score", True)]
    rows = [(names[t], f"{sizes[t]:,}", unit.score(numbers["task_means"][t])) for t in order]
    tables = [Table("Tasks", head, rows, "a task")] if len(names) > 1 else []
    return Section("tasks", "Tasks", tables=tables, detail=True)


def _missing(numbers: dict[str, Any]) -> Section:
    """Return models × tasks with missing cells, most missing first."""
    shares, sizes = numbers["missing"] or [], numbers["task_sizes"]
    lacks = [sum(s * n for s, n in zip(row, sizes, strict=True)) for row in shares]
    total = [sum(row[t] for row in shares) for t in range(len(sizes))]
    models = sorted((m for m, n in enumerate(lacks) if n > 0), key=lambda m: -lacks[m])
    tasks = sorted((t for t, s in enumerate(total) if s > 0), key=lambda t: -total[t])
    notes = ["Share of each task that a model was not run on."]
    if len(models) > MOST_MODELS or len(tasks) > MOST_TASKS:
        notes.append(
            f"Not shown: {max(len(models) - MOST_MODELS, 0)} more models and "
            f"{max(len(tasks) - MOST_TASKS, 0)} more tasks, which lack less."
        )
    head = [
        ("Model", False),
        ("Missing cells", True),
        *((numbers["tasks"][t], True) for t in tasks),
    ]
    rows = [
        [
            *(numbers["models"][m], f"{round(lacks[m]):,}"),
            *(_percent(shares[m][t]) for t in tasks[:MOST_TASKS]),
        ]
        for m in models[:MOST_MODELS]
    ]
    tables = [Table("Missing cells", head[: MOST_TASKS + 2], rows, "a model")] if rows else []
    return Section("missing", "Missing cells", notes, tables=tables, detail=True)


def _percent(share: float) -> str:
    return f"{fixed(100 * share, 1 if 0 < share < 0.1 else 0)}%"
