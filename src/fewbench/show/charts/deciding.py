"""Charts of decisions: differences of two models, ranges of ranks, checks of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewbench.scores import Unit
from fewbench.show.charts import forms

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
    unit = Unit(found.scale)
    given = {"all": found} | {one.task: one for one in found.tasks}
    rows = [
        {"name": name, "value": one.difference, "low": one.interval.low,
         "high": one.interval.high, "color": COLORS[one.verdict]}
        for name, one in given.items()
    ]  # fmt: skip
    told = "; ".join(
        f"{name}: {unit.difference(one.difference)} ({unit.differences(one.interval)})"
        for name, one in given.items()
    )
    title = f"{found.a} minus {found.b}"
    told = f"{title}, with intervals. {told}."
    axis = unit.points_title("difference")  # the names of the models may be long
    return forms.intervals(forms.in_unit(rows, unit), axis, told, line=0.0)


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
    unit = Unit(found.scale)
    told = "; ".join(f"{one.rule}: {one.verdict}" for one in found.checks)
    title = unit.points_title("value minus bound")
    return forms.intervals(forms.in_unit(rows, unit), title, f"Checks. {told}.", line=0.0)


def errors(rows: Sequence[dict[str, Any]], unit: Unit) -> Any:
    """Errors with their intervals: `name`, `value` and, or None, `low` and `high`."""
    told = "; ".join(f"{row['name']}: {unit.points(row['value'])}" for row in rows)
    title = unit.points_title("error")
    return forms.intervals(forms.in_unit(rows, unit), title, f"Errors. {told}.", form=".2f")
