"""Charts of a selection of tasks: its error, that of chance, resampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewbench.show.charts import forms

MOST_MODELS, MOST_TASKS = 40, 16


def errors(judgement: Mapping[str, Any]) -> Any:
    """The error of these tasks beside that of random tasks and of random questions, in percent."""
    rows = [_error("these tasks", "m0", judgement["nrmse"], judgement["low"], judgement["high"])]
    if ratio := judgement["anchor_ratio"]:
        rows.append(_error(f"corrected by {ratio['anchor']}", "m0", ratio["nrmse"]))
    for name, key in (("random tasks", "random_tasks"), ("random questions", "random_questions")):
        if part := judgement[key]:
            ends = (part["mean"] + side * part["spread"] for side in (-1, 1))
            rows.append(_error(name, "ref", part["mean"], *ends))
    text = "; ".join(f"{row['name']}: {row['value']:.1f}%" for row in rows)
    return forms.intervals(rows, "NRMSE (%)", f"Error of these tasks and of chance. {text}.",
                           form=".1f")  # fmt: skip


def _error(
    name: str, color: str, value: float, low: float | None = None, high: float | None = None
) -> dict[str, Any]:
    return {
        "name": name, "color": color, "value": 100 * value,
        "low": None if low is None else 100 * max(low, 0.0),
        "high": None if high is None else 100 * high,
    }  # fmt: skip


def models(judgement: Mapping[str, Any]) -> Any | None:
    """Each model's full score and its score on the chosen tasks, the best model first."""
    ordered = sorted(judgement["models"], key=lambda m: (-m["full"], m["model"]))
    # If there are very many models, a readable number is drawn, evenly from the best to the worst.
    if len(ordered) > MOST_MODELS:
        last = len(ordered) - 1
        ordered = [ordered[round(k * last / (MOST_MODELS - 1))] for k in range(MOST_MODELS)]
    rows = [
        {"name": m["model"], "one": 100 * m["full"], "other": 100 * m["chosen"]} for m in ordered
    ]
    text = "; ".join(f"{r['name']}: {r['one']:.3g} and {r['other']:.3g}" for r in rows)
    description = f"Full score, and score on the chosen tasks. {text}."
    return forms.pairs(rows, ("all tasks", "chosen tasks"), "score (%)", description)


def stability(tasks: Sequence[Mapping[str, Any]], chosen: Sequence[str]) -> Any | None:
    """How often resampled seeds choose each task; those of the selection are colored."""
    mine = set(chosen)
    seen = sorted(tasks, key=lambda t: (-t["share"], t["task"] not in mine, t["task"]))
    rows = [
        {"name": t["task"], "value": t["share"], "color": "m0" if t["task"] in mine else "ref"}
        for t in seen if t["share"] > 0
    ][:MOST_TASKS]  # fmt: skip
    text = "; ".join(f"{row['name']}: {row['value']:.0%}" for row in rows)
    # The axis is the same whatever the shares, so that a short bar means seldom.
    return forms.bars(rows, "share of resamples", f"How often tasks are chosen again. {text}.",
                      high=1.08)  # fmt: skip
