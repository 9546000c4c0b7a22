"""The page of a task selection: what was chosen, how good it is, and what it was chosen from."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Protocol

from markupsafe import Markup

from fewbench._names import counted
from fewbench.report import tasks_arcs, tasks_curves, tasks_rows, tasks_words
from fewbench.report.frame import render_page, write_page
from fewbench.report.tasks_map import maps, shape, swatch
from fewbench.report.words import fixed, percent


class Chosen(Protocol):
    """Anything that gives a task selection as plain values, as `fewbench tasks --json` does."""

    def to_dict(self) -> dict[str, Any]:
        """Return `facts`, `warnings`, `chosen`, `answer` and the parts, None where not known."""


def write_tasks(found: Chosen, path: str | os.PathLike[str], source: str = "") -> Path:
    """Write a task selection as one HTML file that needs nothing else.

    Parameters
    ----------
    found : Chosen
        A selection of tasks, with its judgement where results of models were given.
    path : str or os.PathLike
        An existing file is replaced only once the new one is complete.
    source : str
        The name of the matrix, for the title.

    Returns
    -------
    Path
        The file that was written.
    """
    return write_page(render(found.to_dict(), source), path)


def render(found: dict[str, Any], source: str = "") -> str:
    """The page as text."""
    names = [c["task"] for c in found["chosen"]]
    k = len(names)
    judgement, stability = found["judgement"], found["stability"]
    curves, difference, transfers = found["curves"], found["difference"], found["transfers"]
    across: list[tuple[str, Markup | None]] = []
    if curves:
        across.append(("Error by number of tasks", tasks_curves.curves(curves, k)))
    if difference:
        across.append(("BenTo-sim against BenTo-le", tasks_curves.difference(difference, k)))
    chosen_by = found["facts"].get("method")
    return render_page(
        "tasks.html.j2",
        title=f"Tasks chosen from {source}" if source else "A selection of tasks",
        answer=tasks_words.answer(found),
        size=tasks_words.size(found) if k else "",
        warnings=found["warnings"],
        rows=[_row(c) for c in found["chosen"]],
        total=_number(_total(found["chosen"])),
        shown=_columns(found["chosen"]),
        difficulty=tasks_words.difficulty(found),
        judge=tasks_words.JUDGE,
        judged=tasks_words.judged(found),
        judged_figures=[
            ("Error beside that of chance", tasks_rows.errors(judgement)),
            ("Full score, and score on these tasks", tasks_rows.models(judgement)),
        ]
        if judgement
        else [],
        printed=fixed(100 * judgement["nrmse_printed"], 1) if judgement else "",
        models_left=max(len(judgement["models"]) - tasks_rows.MOST_MODELS, 0) if judgement else 0,
        stable=tasks_words.stability(found),
        often=tasks_rows.often(stability["tasks"], names) if stability else None,
        at_k=tasks_curves.at_k(curves, k) if curves else "",
        better=tasks_curves.better_where(difference) if difference else "",
        across=[(title, picture) for title, picture in across if picture is not None],
        maps=maps(found["maps"], names) if found["maps"] else [],
        mapped=_mapped(found["maps"]),
        alike=tasks_words.alike(found) if found["maps"] else "",
        arcs=tasks_arcs.arcs(transfers, names) if transfers else None,
        transferred=tasks_arcs.said(transfers) if transfers else "",
        drawn=len(tasks_arcs.strongest(transfers)) if transfers else 0,
        strongest=tasks_arcs.table(transfers) if transfers else None,
        transfers=transfers,
        clusters=[_cluster(c) for c in found["clusters"] or []],
        unmapped=f"{chosen_by} looks at no similarity" if chosen_by else "no similarity was given",
        facts={_fact(key): _value(value) for key, value in found["facts"].items()},
    )


def _columns(chosen: list[dict[str, Any]]) -> dict[str, bool]:
    """Which columns hold anything: a list of one's own has no gains, one seed no stability."""
    keys = ("gain", "stands_for", "cluster", "stability")
    return {key: any(c[key] is not None for c in chosen) for key in keys}


def _row(chosen: dict[str, Any]) -> dict[str, Any]:
    gain, cluster, stability = chosen["gain"], chosen["cluster"], chosen["stability"]
    stands_for = chosen["stands_for"]
    return {
        "task": _breakable(chosen["task"]),
        "questions": _number(chosen["questions"]),
        "gain": "–" if gain is None else fixed(gain, 3),
        "stands_for": "–" if stands_for is None else f"{stands_for:,}",
        "cluster": "–" if cluster is None else str(cluster),
        "swatch": "" if cluster is None else swatch(cluster),
        "stability": "–" if stability is None else percent(stability),
    }


def _total(chosen: list[dict[str, Any]]) -> int | None:
    asked = [c["questions"] for c in chosen]
    return None if None in asked else sum(asked)


def _number(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _breakable(name: str) -> Markup:
    """A name that a narrow screen breaks after its joints, and elsewhere only if it must."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/])", name))


def _cluster(cluster: dict[str, Any]) -> dict[str, Any]:
    """A cluster with its chosen tasks marked, in the order of the map."""
    chosen = set(cluster["chosen"])
    return {
        "name": str(cluster["cluster"]),
        "swatch": swatch(cluster["cluster"]),
        "size": counted(len(cluster["tasks"]), "task"),
        "tasks": [(task, task in chosen) for task in cluster["tasks"]],
        "none": not chosen,
    }


def _mapped(found: dict[str, Any] | None) -> str:
    """What a cell of the maps stands for, where that is more than one pair of tasks."""
    if not found:
        return ""
    size = shape(len(found["tasks"]))
    each = size.each
    said = [] if size.named else ["Only chosen tasks are named, as many as there is room for."]
    said += [f"Each cell is the mean of {each} × {each} pairs of tasks."] if each > 1 else []
    return " ".join(said)


def _fact(key: str) -> str:
    """A fact's name from a capital on; names that are symbols stay as they are."""
    return key if len(key) == 1 else f"{key[:1].upper()}{key[1:]}"


def _value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return str(value)
