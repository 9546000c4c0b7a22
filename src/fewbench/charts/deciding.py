"""Charts of decisions: differences of two models, ranges of ranks, checks of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewbench.charts import forms

COLORS = {
    "better": "m0", "worse": "m1", "pass": "m0", "fail": "m1", "equivalent": "m2",
    "not worse": "m2", "undecided": "ref",
}  # fmt: skip


def differences(found: Any) -> Any:
    """The difference of two models' full scores, and of their task scores, with intervals.

    Parameters
    ----------
    found : Versus
    """
    rows = [_difference("all", found), *(_difference(one.task, one) for one in found.tasks)]
    told = "; ".join(
        f"{r['name']}: {r['value']:.4g} ({r['low']:.4g} to {r['high']:.4g})" for r in rows
    )
    title = f"{found.a} minus {found.b}"
    return forms.intervals(rows, title, f"{title}, with intervals. {told}.", line=0.0)


def _difference(name: str, one: Any) -> dict[str, Any]:
    return {
        "name": name, "value": one.difference, "low": one.interval.low, "high": one.interval.high,
        "color": COLORS[one.verdict],
    }  # fmt: skip


def ranks(found: Any) -> Any:
    """The ranks of targets with their ranges, best first.

    Parameters
    ----------
    found : Ranking
    """
    best = {one.target for one in found.targets if one.rank_low <= found.top}
    rows = [
        {"name": one.target, "value": one.rank, "low": one.rank_low, "high": one.rank_high,
         "color": "m0" if one.target in best else "ref"} for one in found.targets
    ]  # fmt: skip
    told = "; ".join(f"{r['name']}: {r['value']} ({r['low']} to {r['high']})" for r in rows)
    return forms.intervals(rows, "rank", f"Ranks with their ranges. {told}.", form="d")


def checks(found: Any) -> Any:
    """The checks of a gate: each value less its bound, with its interval; 0 is just enough.

    Parameters
    ----------
    found : Gate
    """
    rows = [
        {"name": one.rule, "value": one.value - one.bound, "low": one.interval.low - one.bound,
         "high": one.interval.high - one.bound, "color": COLORS[one.verdict]}
        for one in found.checks
    ]  # fmt: skip
    told = "; ".join(f"{one.rule}: {one.value:.4g}, {one.verdict}" for one in found.checks)
    return forms.intervals(rows, "value minus bound", f"Checks. {told}.", line=0.0)


def errors(rows: Sequence[dict[str, Any]], span: float = 1.0) -> Any:
    """Errors with their intervals in percentage points of a scale: `name`, `value` and so on."""
    ends = ("value", "low", "high")
    scaled = [
        {**row, **{k: None if row[k] is None else 100 * row[k] / span for k in ends}}
        for row in rows
    ]
    told = "; ".join(f"{row['name']}: {row['value']:.1f} pp" for row in scaled)
    return forms.intervals(scaled, "error, pp", f"Errors. {told}.", form=".2f")
