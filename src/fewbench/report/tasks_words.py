"""What a task selection and its judgement come to, in sentences."""

from __future__ import annotations

import math
from typing import Any

from fewbench._names import counted
from fewbench.report.words import fixed, percent, points

JUDGE = "fewbench tasks judge SELECTION RESULTS"


def size(found: dict[str, Any]) -> str:
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


def answer(found: dict[str, Any]) -> str:
    """The page's finding: the one given, or the error beside that of chance."""
    if found["answer"]:
        return str(found["answer"])
    k, judged = len(found["chosen"]), found["judgement"]
    if not k:
        return "No task was chosen."
    if judged is None:
        verb = "stands" if k == 1 else "stand"
        return f"How well {counted(k, 'task')} {verb} for all is not known yet."
    these = "this task" if k == 1 else f"these {k:,} tasks"
    said = f"Scores on {these} miss the full scores by {_error(judged['nrmse'])}"
    beside = []
    if part := judged["random_tasks"]:
        beside.append(f"{counted(k, 'random task')} by {_error(part['mean'])}")
    if part := judged["random_questions"]:
        beside.append(f"{counted(part['questions'], 'random question')} by {_error(part['mean'])}")
    return "; ".join([said, ", ".join(beside)] if beside else [said]) + "."


def judged(found: dict[str, Any]) -> list[str]:
    """How good the selection is, sentence by sentence."""
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
        said.append(f"{words} {held_out} parts; models of one family are in the same part.")
    if part.get("estimator") == "ridge":
        said.append("The estimate is ridge regression on these tasks’ scores, not their mean.")
    if ridge := part.get("ridge"):
        said.append(
            f"By ridge regression on past models’ task scores it is {_error(ridge['nrmse'])}."
        )
    if chance := part["random_tasks"]:
        sets = f"random sets of {counted(k, 'task')}"
        words = f"Of {sets}, {percent(chance['percentile'])} do as well or better"
        said.append(f"{words}; on average they miss by {_error(chance['mean'])}.")
    if chance := part["random_questions"]:
        words = f"{counted(chance['questions'], 'question')} drawn at random from all tasks, "
        words += f"which need no matrix, miss by {_error(chance['mean'])} "
        said.append(f"{words}(± {points(chance['spread'], 1)}).")
    if anchor := part["anchor_ratio"]:
        words = f"Corrected by how much easier these tasks are for {anchor['anchor']}, the"
        said.append(f"{words} error is {_error(anchor['nrmse'])}.")
    return said


def difficulty(found: dict[str, Any]) -> str:
    """Whether the chosen tasks are as hard as all for the model that was measured."""
    part = found["difficulty"]
    if part is None:
        return ""
    one, other = part["chosen"], part["all"]
    share = all(0 <= value <= 1 for value in (one, other))
    shown = (f"{points(v, 1)}%" if share else fixed(v, 3) for v in (one, other))
    facts = found["facts"]
    past = "past" in str(facts.get("rows"))
    model = "Past models" if past else facts.get("model") or "The model that was measured"
    same = abs(one - other) < (0.0005 if share else 0.0005 * max(abs(other), 1e-12))
    side = "as hard" if same else "easier" if one > other else "harder"
    verb = "score" if past else "scores"
    said = "{} {} {} on the chosen tasks and {} on all".format(model, verb, *shown)
    rank = percent(part["percentile"])
    words = f"{said}: they are {side}{'' if same else ' than the whole'}."
    return f"{words} {rank} of random sets come as near or nearer."


def stability(found: dict[str, Any]) -> str:
    """How much of the selection another measurement would choose again."""
    part = found["stability"]
    if part is None:
        return ""
    times = counted(part["bootstraps"], "resample")
    words = f"Over {times} of the matrix’s seeds, {percent(part['shared'])} of the tasks "
    words += f"chosen are among these; any two resamples share {percent(part['pairs'])}."
    if part.get("noise") is not None:
        words += f" Where sources do not differ they would share {percent(part['noise'])}, "
        words += f"and tasks drawn at random {percent(part['chance'])}."
    if noise := found.get("noise"):
        ratio = "no noise" if noise["ratio"] is None else fixed(noise["ratio"], 1)
        words += f" The matrix’s signal-to-noise ratio over its seeds is {ratio}."
    return words


def alike(found: dict[str, Any]) -> str:
    """How much more alike tasks of one cluster are than others, in each map."""
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
    return f"Two tasks of one cluster are on average alike by {' and '.join(said)}." if said else ""


def _error(value: float) -> str:
    return f"{points(value, 1)}%"


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
