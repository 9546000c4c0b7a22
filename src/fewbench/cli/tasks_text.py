"""A selection of tasks in words for a terminal."""

import textwrap
from collections.abc import Callable
from typing import Any

from fewbench.cli.text import number, table

WIDEST = 100
LONGEST = 20  # a method whose name heads a column; only the judged one has settings there


def describe(found: dict[str, Any]) -> str:
    """Return what is known of a selection (the plain values of a `TaskAnalysis`)."""
    facts = found["facts"]
    share = facts["chosen questions"] / facts["questions"]
    blocks = [
        f"{facts['method']}: {facts['k']} of {facts['tasks']} tasks, "
        f"{facts['chosen questions']} of {facts['questions']} questions ({share:.1%})",
        _chosen(found["chosen"]),
    ]
    if found["judgement"]:
        blocks.append(_judgement(found["judgement"], facts))
    for part in (_difficulty(found["difficulty"], facts), _stability(found["stability"])):
        blocks += [textwrap.fill(part, WIDEST)] if part else []
    if found["curves"] and len(found["curves"]["k"]) > 1:
        blocks.append(_curves(found["curves"]))
    blocks += [textwrap.fill(f"warning: {warning}", WIDEST) for warning in found["warnings"]]
    return "\n\n".join(blocks)


def _chosen(chosen: list[dict[str, Any]]) -> str:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "questions": lambda row: str(row["questions"]),
        "gain": lambda row: _known(row["gain"]),
        "stands for": lambda row: _known(row["stands_for"], 0),
        "cluster": lambda row: _known(row["cluster"], 0),
        "kept": lambda row: "" if row["stability"] is None else f"{row['stability']:.0%}",
    }
    shown = {name: [read(row) for row in chosen] for name, read in columns.items()}
    shown = {name: cells for name, cells in shown.items() if any(cells)}
    rows = [
        [row["task"], *(cells[at] for cells in shown.values())] for at, row in enumerate(chosen)
    ]
    return table(["task", *shown], rows)


def _judgement(judgement: dict[str, Any], facts: dict[str, Any]) -> str:
    tasks, questions = judgement["random_tasks"], judgement["random_questions"]
    rows = [
        ["these tasks", number(judgement["nrmse"]), _between(judgement)],
        [f"random sets of {facts['k']} tasks", number(tasks["mean"]), _between(tasks)],
        [
            f"{questions['questions']} random questions",
            number(questions["mean"]),
            _between(questions),
        ],
    ]
    ratio = judgement["anchor_ratio"]
    if ratio:
        rows.insert(1, [f"times the ratio of {ratio['anchor']}", number(ratio["nrmse"]), ""])
    lines = [
        table([f"on {len(judgement['models'])} models", "NRMSE", "90%"], rows),
        f"{tasks['percentile']:.0%} of the random task sets are as good or better; by Eq. 7 as "
        f"printed the error is {judgement['nrmse_printed']:.3f}",
    ]
    return "\n".join(lines)


def _difficulty(difficulty: dict[str, Any] | None, facts: dict[str, Any]) -> str | None:
    if difficulty is None:
        return None
    chosen, whole = difficulty["chosen"], difficulty["all"]
    past = "past" in facts["rows"]
    who = "past models score" if past else "the measured model scores"
    return (
        f"as easy as all? {who} {chosen:.3f} on these tasks and {whole:.3f} on all; "
        f"{difficulty['percentile']:.0%} of random task sets come as near"
    )


def _stability(stability: dict[str, Any] | None) -> str | None:
    if stability is None:
        return None
    return (
        f"chosen again from seeds drawn with replacement ({stability['bootstraps']} times, "
        f"{stability['seeds']} seeds): {stability['shared']:.0%} of these tasks on average; two "
        f"such choices share {stability['pairs']:.0%}"
    )


def _curves(curves: dict[str, Any]) -> str:
    names = list(curves["methods"])
    rows = [
        [
            str(k),
            *(_known(curves["methods"][name][at]) for name in names),
            number(curves["random_mean"][at]),
            _known(curves["random_questions"][at]),
        ]
        for at, k in enumerate(curves["k"])
    ]
    shown = ["this method" if len(name) > LONGEST else name for name in names]
    header = ["tasks", *shown, "random tasks", "random questions"]
    return "NRMSE by number of tasks:\n" + table(header, rows)


def _between(spread: dict[str, Any]) -> str:
    return f"{number(spread['low'])} .. {number(spread['high'])}"


def _known(value: float | None, digits: int = 3) -> str:
    return "" if value is None else number(value, digits)
