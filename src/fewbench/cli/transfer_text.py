"""What fewbench transfer measure tells of costs and results."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbench.cli.text import table

if TYPE_CHECKING:
    from fewbench.methods.tasks import Transferability
    from fewbench.transfer.cost import Cost
    from fewbench.transfer.design import Design


def describe_cost(
    design: "Design",
    model: str,
    costs: "Mapping[str, Cost]",
    scoring: str = "auto",
    answered: int = 0,
) -> str:
    """Return what a design and the paper's cost, for a terminal."""
    cap = "all questions" if design.questions is None else f"up to {design.questions} questions"
    head = [
        f"{model}: {len(design.tasks)} sources × {len(design.targets)} targets, {design.metric}",
        f"{design.seeds} seeds, {design.exemplars} exemplars, {cap} of a target and seed",
        "",
    ]
    both = costs["design"], costs["paper"]
    rows = {
        "prompts": [f"{cost.prompts:,}" for cost in both],
        f"full passes over {both[0].benchmark:,} questions": [_rounded(c.passes) for c in both],
        "tokens, about": [_rounded(cost.tokens) for cost in both],
        "of them repeated, about": [_rounded(cost.shared_tokens) for cost in both],
    }
    if both[0].requests != both[0].prompts:
        rows["options, one by one"] = [f"{cost.requests:,}" for cost in both]
    if both[0].money is not None:
        rows["price, about"] = [f"{cost.money:,.2f}" for cost in both]
    tail = [
        "",
        "tokens: an estimate, characters / 4; repeated: the beginning of the prompt before, which",
        "a server that keeps prefixes does not read again",
    ]
    if scoring == "auto" and design.metric == "accuracy":
        tail.append("a server that cannot list likely tokens is asked a prompt for each option")
    if answered:
        tail.append(f"answered already: {answered:,} of {len(design):,}")
    shown = [[name, *cells] for name, cells in rows.items()]
    return "\n".join([*head, table(["", "to ask", "the paper's design"], shown), *tail])


def _rounded(number: float) -> str:
    """Return a number for reading: three figures, and million or billion for large ones.

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
    """Return what a measurement holds, for a terminal."""
    run = facts["run"]
    tokens = facts["tokens"]
    lines = [
        f"{'model':<18}{facts['model']}",
        f"{'tasks':<18}{facts['tasks']} sources × {facts['columns']} targets, "
        f"{facts['seeds']} seeds",
        f"{'answers':<18}{facts['answers']:,} of {facts['asked']:,}",
        f"{'tokens':<18}{tokens['prompt']:,} of prompts, {tokens['completion']:,} written"
        + ("" if facts["spent"] is None else f", price {facts['spent']:,.2f}"),
    ]
    if run is not None:
        lines.append(
            f"{'this run':<18}{run['asked']:,} answers, {run['retries']:,} tries again, "
            f"{run['seconds']:,.0f} s"
        )
    if facts["complete"]:
        name = "mean log-prob." if facts["metric"] == "loss" else f"mean {facts['metric']}"
        lines += [
            f"{name:<18}{facts['mean']:.3f}",
            f"{'strongest source':<18}{facts['strongest_source']} "
            f"({facts['strongest_mean']:.3f} over its targets)",
        ]
    lines += [f"note: {note}" for note in facts["notes"]]
    if facts["complete"]:
        lines += [f"wrote {facts['matrix']}", "", f"Next: fewbench tasks select {folder} -k 3"]
    else:
        lines.append(
            f"stopped: {run['stopped']}; the same command with a higher limit goes on from here"
        )
    return "\n".join(lines)


def summary(matrix: "Transferability") -> dict[str, Any]:
    """Return the mean score, and the source behind which it is highest."""
    scored = np.isfinite(matrix.values)
    sums = np.where(scored, matrix.values, 0.0).sum(axis=(0, 2))
    means = sums / np.maximum(scored.sum(axis=(0, 2)), 1)
    means[~scored.any(axis=(0, 2))] = -np.inf
    best = int(means.argmax())
    return {
        "mean": float(matrix.values[scored].mean()),
        "strongest_source": matrix.tasks[best],
        "strongest_mean": float(means[best]),
    }
