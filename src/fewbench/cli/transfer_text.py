"""Costs and results of fewbench transfer measure as text."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbench._names import counted
from fewbench._text import table
from fewbench.tasks.measurement.cost import break_even

if TYPE_CHECKING:
    from fewbench.tasks.measurement.cost import Cost
    from fewbench.tasks.measurement.design import Design

KEEP = 3  # tasks of the proposed selection


def describe_cost(
    design: "Design",
    model: str,
    costs: "Mapping[str, Cost]",
    answered: int = 0,
) -> str:
    """Return the cost of a design and of the paper's."""
    cap = "all questions"
    if design.questions is not None:
        cap = f"up to {counted(design.questions, 'question')}"
    head = [
        f"{model}: {counted(len(design.tasks), 'source')} × "
        f"{counted(len(design.targets), 'target')}, {design.metric}",
        f"{counted(design.seeds, 'seed')}, {counted(design.exemplars, 'exemplar')}, {cap} per "
        "target and seed",
        "",
    ]
    both = [costs["design"], costs["paper"]]
    titles = ["", "to ask", "the paper's design"]
    if both[0] == both[1]:
        both, titles = both[:1], ["", "to ask, as in the paper's design"]
    rows = {
        "prompts": [f"{cost.prompts:,}" for cost in both],
        f"full passes over {counted(both[0].benchmark, 'question')}": [
            _rounded(cost.passes) for cost in both
        ],
        "tokens, about": [_rounded(cost.tokens) for cost in both],
        "of them repeated, about": [_rounded(cost.shared_tokens) for cost in both],
    }
    if both[0].requests != both[0].prompts:
        rows["options, one by one"] = [f"{cost.requests:,}" for cost in both]
    if both[0].money is not None:
        rows["price, about"] = [f"{cost.money:,.2f}" for cost in both]
    tail = [
        "",
        "tokens: estimated as bytes / 4; repeated: same beginning as the previous prompt, which",
        "servers with prefix caching do not process again",
    ]
    if design.metric != "exact-match":
        tail.append("(vLLM does, if a request asks for the log-probabilities of the prompt)")
    if keep := _kept_tasks(len(design.tasks)):
        tail.append(
            f"running {keep} of {len(design.tasks)} tasks saves more than this after "
            f"{counted(math.ceil(break_even(design, keep)), 'evaluated model')}"
        )
    if answered:
        tail.append(f"answered already: {answered:,} of {len(design):,}")
    shown = [[name, *cells] for name, cells in rows.items()]
    return "\n".join([*head, table(titles, shown), *tail])


def _kept_tasks(tasks: int) -> int:
    """Return how many tasks to propose; 0 if there is nothing to choose.

    Examples
    --------
    >>> [_kept_tasks(tasks) for tasks in (2, 3, 4, 57)]
    [0, 2, 3, 3]
    """
    return min(KEEP, tasks - 1) if tasks > 2 else 0


def left_to_ask(answered: int, all_: int, cost: "Cost") -> str:
    """Return what is left of a measurement, in one line.

    Examples
    --------
    >>> from fewbench.tasks.measurement.cost import Cost
    >>> left_to_ask(60, 80, Cost(80, 80, 8000, 80, 0, 1.0, 80))
    'answered already: 60 of 80; about 2,020 tokens are left'
    """
    left = cost.tokens * (1 - answered / all_)
    return f"answered already: {answered:,} of {all_:,}; about {_rounded(left)} tokens are left"


def describe_tasks(tasks: Sequence[Mapping[str, Any]], notes: Sequence[str], prompt: str) -> str:
    """Return the tasks of a design, notes, and an example prompt."""
    columns = {"questions": "questions", "pool": "pool"}
    columns |= {"aside": "set aside", "left_out": "left out"}
    rows = [[task["name"], *(f"{task[column]:,}" for column in columns)] for task in tasks]
    if not all(task["target"] for task in tasks):
        for task, row in zip(tasks, rows, strict=True):
            row.append("target" if task["target"] else "")
        columns["target"] = ""
    lines = [table(["task", *columns.values()], rows)]
    if notes:
        lines += ["", *(f"note: {note}" for note in notes)]
    lines += ["", "example prompt:", "-" * 40, prompt, "-" * 40]
    return "\n".join(lines)


def _rounded(number: float) -> str:
    """Return a number with three significant digits, large ones in millions or billions.

    Examples
    --------
    >>> _rounded(571.3), _rounded(2.25), _rounded(8_004_000), _rounded(31_234)
    ('571', '2.25', '8.00 million', '31,200')
    """
    for size, word in ((1e9, " billion"), (1e6, " million")):
        if number >= size:
            return f"{_rounded(number / size)}{word}"
    if number >= 100:
        digits = max(0, len(str(int(number))) - 3)
        return f"{round(number, -digits):,.0f}"
    return f"{number:.2f}" if number < 10 else f"{number:.1f}"


def describe(facts: Mapping[str, Any], folder: Path) -> str:
    """Return a summary of a measurement."""
    run = facts["run"]
    tokens = facts["tokens"]
    lines = [
        f"{'model':<18}{facts['model']}",
        f"{'tasks':<18}{counted(facts['tasks'], 'source')} × "
        f"{counted(facts['columns'], 'target')}, {counted(facts['seeds'], 'seed')}",
        f"{'answers':<18}{facts['answers']:,} of {facts['asked']:,}",
        f"{'tokens':<18}{tokens['prompt']:,} of prompts, {tokens['completion']:,} written"
        + (
            " (estimated: the model has no tokenizer)"
            if run is not None and run["estimated"]
            else ""
        )
        + ("" if facts["spent"] is None else f", price {facts['spent']:,.2f}"),
    ]
    if run is not None:
        lines.append(f"{'this run':<18}{counted(run['asked'], 'answer')}, {run['seconds']:,.0f} s")
    if "matrix" in facts:
        name = "mean log-prob." if facts["metric"] == "loss" else f"mean {facts['metric']}"
        lines += [
            f"{name:<18}{facts['mean']:.3f}",
            f"{'strongest source':<18}{facts['strongest_source']} "
            f"({facts['strongest_mean']:.3f} over its targets)",
        ]
    lines += [f"note: {note}" for note in facts["notes"]]
    if "matrix" in facts:
        part = "" if facts["complete"] else " from the answers so far"
        lines.append(f"wrote {facts['matrix']}{part}")
    else:
        lines.append(
            f"stopped: {run['stopped']}; run the command again with a higher limit to continue"
        )
    if facts["complete"] and (keep := _kept_tasks(facts["tasks"])):
        lines += ["", f"Next: fewbench tasks select {folder} -k {keep}"]
    return "\n".join(lines)
