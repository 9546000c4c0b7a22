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
    by_name = {"all": found} | {task.task: task for task in found.tasks}
    rows = [
        {"name": name, "value": part.difference, "low": part.interval and part.interval.low,
         "high": part.interval and part.interval.high, "color": COLORS[part.verdict]}
        for name, part in by_name.items()
    ]  # fmt: skip
    text = "; ".join(
        f"{name}: {unit.difference(part.difference)} ({unit.differences(part.interval)})"
        for name, part in by_name.items()
    )
    title = f"{found.a} minus {found.b}"
    text = f"{title}, with intervals. {text}."
    axis = unit.points_title("difference")  # the names of the models may be long
    return forms.intervals(forms.in_unit(rows, unit), axis, text, line=0.0)


def scores(found: Any) -> Any:
    """The scores of targets with their intervals, best first.

    Parameters
    ----------
    found : Ranking
    """
    unit, best = Unit(found.scale), {target.target for target in found.contenders}
    rows = [
        {"name": place.target, "value": place.score, **dict(place.interval),
         "color": "m0" if place.target in best else "ref"} for place in found.targets
    ]  # fmt: skip
    text = "; ".join(
        f"{place.target}: {unit.score(place.score)} ({unit.scores(place.interval)})"
        for place in found.targets[: forms.MOST]
    )
    title = unit.score_title("score")
    return forms.intervals(forms.in_unit(rows, unit), title, f"Scores with intervals. {text}.")


def ranks(found: Any) -> Any:
    """The ranks of targets with their ranges, best first.

    Parameters
    ----------
    found : Ranking
    """
    best = {target.target for target in found.contenders}
    rows = [
        {"name": place.target, "value": place.rank, "low": place.rank_low, "high": place.rank_high,
         "color": "m0" if place.target in best else "ref"} for place in found.targets
    ]  # fmt: skip
    shown = rows[: forms.MOST]
    text = "; ".join(f"{r['name']}: {r['value']} ({r['low']} to {r['high']})" for r in shown)
    return forms.intervals(rows, "rank", f"Ranks with their ranges. {text}.", form="d")


def checks(found: Any) -> Any:
    """The checks of a gate: each value less its bound, with its interval; 0 is just enough.

    Parameters
    ----------
    found : Gate
    """
    rows = [
        {"name": check.rule, "value": check.value - check.bound,
         "low": check.interval.low - check.bound, "high": check.interval.high - check.bound,
         "color": COLORS[check.verdict]}
        for check in found.checks
    ]  # fmt: skip
    unit = Unit(found.scale)
    text = "; ".join(f"{check.rule}: {check.verdict}" for check in found.checks)
    title = unit.points_title("value minus bound")
    return forms.intervals(forms.in_unit(rows, unit), title, f"Checks. {text}.", line=0.0)


def errors(rows: Sequence[dict[str, Any]], unit: Unit) -> Any:
    """Errors with their intervals: `name`, `value` and, or None, `low` and `high`."""
    text = "; ".join(f"{row['name']}: {unit.points(row['value'])}" for row in rows)
    title = unit.points_title("error")
    return forms.intervals(forms.in_unit(rows, unit), title, f"Errors. {text}.", form=".2f")
