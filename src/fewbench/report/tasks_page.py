"""The page of a task selection: the chosen tasks, their error, and the matrix."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fewbench._names import counted, fixed
from fewbench.charts import task_sets as figures
from fewbench.charts.task_sets import MOST_MODELS, per_cell, strongest
from fewbench.charts.theme import COLORS
from fewbench.report.frame import Charts, HasValues, render_page, write_page
from fewbench.report.tasks_words import at_k, better_where, transfers_said, transfers_table
from fewbench.report.words import percent, points

MAPS = {"sim": "S: how alike tasks are", "le": "S′: the same by eigenmaps"}
JUDGE = "fewbench tasks judge SELECTION RESULTS"


def write_tasks(found: HasValues, path: str | os.PathLike[str], source: str = "") -> Path:
    """Write a task selection as one self-contained HTML file and return its path.

    Parameters
    ----------
    found : object
        A selection of tasks, with its errors if results of models were given.
    path : str or os.PathLike
        An existing file is replaced only once the new one is complete.
    source : str
        The name of the matrix, for the title.
    """
    return write_page(render(found.to_dict(), source), path)


def render(found: dict[str, Any], source: str = "") -> str:
    """The page as text."""
    names = [c["task"] for c in found["chosen"]]
    k = len(names)
    judgement, stability = found["judgement"], found["stability"]
    curves, difference, transfers = found["curves"], found["difference"], found["transfers"]
    charts = Charts()
    across: list[tuple[str, Any]] = []
    if curves:
        across.append(("Error by number of tasks", figures.error_curves(curves, k)))
    if difference:
        across.append(("BenTo-sim against BenTo-le", figures.difference_curve(difference, k)))
    chosen_by = found["facts"].get("method")
    return render_page(
        "tasks.html.j2",
        charts,
        title=f"Tasks chosen from {source}" if source else "A selection of tasks",
        answer=_answer(found),
        size=_size(found) if k else "",
        warnings=found["warnings"],
        rows=[_row(c) for c in found["chosen"]],
        total=_number(_total(found["chosen"])),
        shown=_columns(found["chosen"]),
        difficulty=_difficulty(found),
        judge=JUDGE,
        judged=_judged(found),
        judged_figures=charts.placed(
            ("Error, and that of random selections", figures.errors(judgement)),
            ("Full score, and score on these tasks", figures.models(judgement)),
        )
        if judgement
        else [],
        printed=fixed(100 * judgement["nrmse_printed"], 1) if judgement else "",
        models_left=max(len(judgement["models"]) - MOST_MODELS, 0) if judgement else 0,
        stable=_stability(found),
        often=charts.add(figures.stability(stability["tasks"], names)) if stability else None,
        at_k=at_k(curves, k) if curves else "",
        better=better_where(difference) if difference else "",
        across=charts.placed(*across),
        maps=charts.placed(
            *(
                (caption, figures.similarity(found["maps"], key, names))
                for key, caption in MAPS.items()
            ),
        )
        if found["maps"]
        else [],
        mapped=_mapped(found["maps"]),
        alike=_alike(found) if found["maps"] else "",
        arcs=charts.add(figures.transfers(transfers, names)) if transfers else None,
        transferred=transfers_said(transfers) if transfers else "",
        drawn=len(strongest(transfers)) if transfers else 0,
        strongest=transfers_table(transfers) if transfers else None,
        transfers=transfers,
        clusters=[_cluster(c) for c in found["clusters"] or []],
        unmapped=f"{chosen_by} uses no similarity" if chosen_by else "no similarity was given",
        facts={_fact(key): _value(value) for key, value in found["facts"].items()},
    )


def _columns(chosen: list[dict[str, Any]]) -> dict[str, bool]:
    """Whether each optional column has values."""
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
        "look": _look(cluster),
        "stability": "–" if stability is None else percent(stability),
    }


def _look(cluster: int | None) -> dict[str, str]:
    """The color of a cluster, the same in every table."""
    return {"color": "ref" if cluster is None else f"m{cluster % COLORS}", "shape": "square"}


def _total(chosen: list[dict[str, Any]]) -> int | None:
    asked = [c["questions"] for c in chosen]
    return None if None in asked else sum(asked)


def _number(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _breakable(name: str) -> Markup:
    """A name with optional line breaks after _ and /."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/])", name))


def _cluster(cluster: dict[str, Any]) -> dict[str, Any]:
    """A cluster with its chosen tasks marked, in the order of the map."""
    chosen = set(cluster["chosen"])
    return {
        "name": str(cluster["cluster"]),
        "look": _look(cluster["cluster"]),
        "size": counted(len(cluster["tasks"]), "task"),
        "tasks": [(task, task in chosen) for task in cluster["tasks"]],
        "none": not chosen,
    }


def _mapped(found: dict[str, Any] | None) -> str:
    """The caption of the maps, if not every task has its own cell."""
    if not found:
        return ""
    each = per_cell(found["tasks"])
    return f"Each cell is the mean of {each} × {each} pairs of tasks." if each > 1 else ""


def _fact(key: str) -> str:
    """A capitalized name; symbols stay as they are."""
    return key if len(key) == 1 else f"{key[:1].upper()}{key[1:]}"


def _value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return str(value)


def _size(found: dict[str, Any]) -> str:
    """How much of the benchmark was chosen."""
    facts, chosen = found["facts"], found["chosen"]
    k = len(chosen)
    tasks, questions = facts.get("tasks"), facts.get("questions")
    said = f"{k:,} of {counted(tasks, 'task')}" if tasks else counted(k, "task")
    if all(c["questions"] is not None for c in chosen):
        asked = sum(c["questions"] for c in chosen)
        said += f", {asked:,}"
        if questions:
            said += f" of {counted(questions, 'question')} ({points(asked / questions, 1)}%)"
        else:
            said += " questions"
    by = facts.get("method")
    return f"{said}, chosen by {by}." if by else f"{said}."


def _answer(found: dict[str, Any]) -> str:
    """The main finding: the given one, or the error and that of random selections."""
    if found["answer"]:
        return str(found["answer"])
    k, judged = len(found["chosen"]), found["judgement"]
    if not k:
        return "No task was chosen."
    if judged is None:
        return f"No results to judge {counted(k, 'chosen task')}. Run {JUDGE}."
    these = "this task" if k == 1 else f"these {k:,} tasks"
    said = f"Error of estimates from {these}: {_error(judged['nrmse'])}"
    beside = []
    if part := judged["random_tasks"]:
        beside.append(f"{counted(k, 'random task')}: {_error(part['mean'])}")
    if part := judged["random_questions"]:
        beside.append(f"{counted(part['questions'], 'random question')}: {_error(part['mean'])}")
    return "; ".join([said, ", ".join(beside)] if beside else [said]) + "."


def _judged(found: dict[str, Any]) -> list[str]:
    """Sentences on the error of the selection."""
    part, k = found["judgement"], len(found["chosen"])
    if part is None:
        return []
    n = len(part["models"])
    said = [f"The error (NRMSE) over {counted(n, 'model')} is {_error(part['nrmse'])}"]
    if _known(part["low"]) and _known(part["high"]):
        ends = f"{points(part['low'], 1)} to {points(part['high'], 1)}%"
        said[0] += f", {ends} when the models are resampled"
    said[0] += "."
    if held_out := part.get("held_out"):
        words = "Each model is estimated from tasks chosen without it, in"
        said.append(f"{words} {held_out} folds; models of one family are in the same fold.")
    if part.get("estimator") == "ridge":
        said.append("The estimate is ridge regression on these tasks’ scores, not their mean.")
    if ridge := part.get("ridge"):
        said.append(
            f"With ridge regression on source scores, the error is {_error(ridge['nrmse'])}."
        )
    if chance := part["random_tasks"]:
        sets = f"random sets of {counted(k, 'task')}"
        words = f"Of {sets}, {percent(chance['percentile'])} are at least as good"
        said.append(f"{words}; their mean error is {_error(chance['mean'])}.")
    if chance := part["random_questions"]:
        words = f"The mean error of {counted(chance['questions'], 'random question')} from all "
        words += f"tasks, which need no matrix, is {_error(chance['mean'])} "
        said.append(f"{words}(± {points(chance['spread'], 1)}).")
    if anchor := part["anchor_ratio"]:
        words = f"Corrected by the known full score of {anchor['anchor']}, the"
        said.append(f"{words} error is {_error(anchor['nrmse'])}.")
    return said


def _difficulty(found: dict[str, Any]) -> str:
    """Difficulty of the chosen tasks and of all."""
    part = found["difficulty"]
    if part is None:
        return ""
    one, other = part["chosen"], part["all"]
    share = all(0 <= value <= 1 for value in (one, other))
    shown = (f"{points(v, 1)}%" if share else fixed(v, 3) for v in (one, other))
    facts = found["facts"]
    past = "past" in str(facts.get("rows"))
    model = "Source models" if past else facts.get("model") or "The measured model"
    same = abs(one - other) < (0.0005 if share else 0.0005 * max(abs(other), 1e-12))
    side = "as hard" if same else "easier" if one > other else "harder"
    verb = "score" if past else "scores"
    said = "{} {} {} on the chosen tasks and {} on all".format(model, verb, *shown)
    rank = percent(part["percentile"])
    words = f"{said}: the chosen tasks are {side}{'' if same else ' than all'}."
    return f"{words} {rank} of random sets are at least as close."


def _stability(found: dict[str, Any]) -> str:
    """Share of the selection that bootstrap selections contain."""
    part = found["stability"]
    if part is None:
        return ""
    times = counted(part["bootstraps"], "resample")
    words = f"Over {times} of the matrix’s seeds, selections contain {percent(part['shared'])} of "
    words += f"these tasks on average; two resamples share {percent(part['pairs'])}."
    if part.get("noise") is not None:
        words += f" If source tasks did not differ, they would share {percent(part['noise'])}; "
        words += f"random tasks share {percent(part['chance'])}."
    if noise := found.get("noise"):
        ratio = "no noise" if noise["ratio"] is None else fixed(noise["ratio"], 1)
        words += f" The matrix’s signal-to-noise ratio over its seeds is {ratio}."
    return words


def _alike(found: dict[str, Any]) -> str:
    """Mean similarity within and between clusters, in each map."""
    maps = found["maps"]
    clusters, said = maps["clusters"], []
    for key, name in (("sim", "S"), ("le", "S′")):
        if maps.get(key) is None:
            continue
        sums: dict[bool, list[float]] = {True: [], False: []}
        for i, row in enumerate(maps[key]):
            for j, value in enumerate(row):
                if i != j and _known(value):
                    sums[clusters[i] == clusters[j]].append(value)
        if sums[True] and sums[False]:
            inside, outside = (fixed(sum(v) / len(v)) for v in (sums[True], sums[False]))
            said.append(f"{inside} in {name} (others {outside})")
    return f"Mean similarity of two tasks in one cluster: {' and '.join(said)}." if said else ""


def _error(value: float) -> str:
    return f"{points(value, 1)}%"


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
