"""Charts of estimates: a target among the source models, by task, several targets, and in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fewbench.scores import Unit
from fewbench.show.charts import forms, theme
from fewbench.show.charts.theme import LIGHT, finished, finite

TARGET, BINS, MOST_TASKS, MOST_TICKS = "m1", 24, 40, 1500
COURSE = ("score", "low", "high")


def among_sources(
    sources: Mapping[str, float],
    target: str,
    score: float,
    interval: tuple[float, float],
    level: float,
    unit: Unit,
) -> Any:
    """The full scores of the source models, with a target's estimate and interval among them.

    Parameters
    ----------
    sources : mapping of str to float
        Full scores of the source models, on the scale of the scores.
    target : str
    score, interval
        The target's estimate, on the same scale.
    level : float
        Level of the interval.
    unit : Unit
        How scores are printed.
    """
    import altair as alt

    sources = {name: value * unit.factor for name, value in sources.items() if value == value}
    score, interval = score * unit.factor, (interval[0] * unit.factor, interval[1] * unit.factor)
    values = np.array(list(sources.values()))
    ends = [*interval, score, *sources.values()]
    low, high = min(ends), max(ends)
    air = 0.03 * (high - low) or 0.5
    scale = alt.Scale(domain=[low - air, high + air], nice=False)
    axis = alt.Axis(title=full_score(unit), tickCount=theme.ticks())
    x = alt.X("score:Q", scale=scale, axis=axis)
    counts, edges = np.histogram(values, BINS, (low, high) if high > low else None)
    bars: list[dict[str, Any]] = [
        {"score": finite(a), "to": finite(b), "models": int(n), "none": 0}
        for n, a, b in zip(counts, edges[:-1], edges[1:], strict=True) if n
    ]  # fmt: skip
    most = max((bar["models"] for bar in bars), default=1)
    y = alt.Y("models:Q", scale=alt.Scale(domain=[0, 1.3 * most], nice=False),
              axis=alt.Axis(title="number of source models", tickMinStep=1,
                            tickCount=4))  # fmt: skip
    bar = alt.Chart(theme.rows(bars)).mark_rect(color=LIGHT["rest"], opacity=0.7).encode(
        x=x, x2="to:Q", y=y, y2="none:Q", tooltip=[alt.Tooltip("models:Q", title="source models"),
        alt.Tooltip("score:Q", title="from"), alt.Tooltip("to:Q", title="to")],
    )  # fmt: skip
    step = max(1, len(sources) // MOST_TICKS)
    named = sorted(sources.items(), key=lambda pair: pair[1])[::step]
    rug = alt.Chart(theme.rows({"model": m, "score": finite(s)} for m, s in named))
    ticks = rug.mark_tick(color=LIGHT["soft"], thickness=1, height=9, opacity=0.65, yOffset=-4)
    tick = ticks.encode(x=x, y=alt.value("height"), tooltip=["model:N", "score:Q"])
    row = {
        "score": finite(score), "low": finite(interval[0]), "high": finite(interval[1]),
        "target": target, "level": f"{level:.0%} interval",
    }  # fmt: skip
    base = alt.Chart(theme.rows([row]))
    band = base.mark_rect(color=LIGHT[TARGET], opacity=0.16).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"
    )
    rule = base.mark_rule(color=LIGHT[TARGET], strokeWidth=2).encode(
        x=x, tooltip=["target:N", "score:Q", "low:Q", "high:Q", "level:N"]
    )
    right = (score - low) / ((high - low) or 1) > 0.6
    text = base.mark_text(
        color=LIGHT[TARGET], align="right" if right else "left", dx=-7 if right else 7, dy=6,
        fontSize=13, fontWeight=600, limit=190, baseline="top",
    ).encode(x=x, y=alt.value(0), text="target:N")  # fmt: skip
    layers = [bar, band, tick, rule, text]
    description = (
        f"{target}: {score:.4g}, {level:.0%} interval {interval[0]:.4g} to {interval[1]:.4g}, "
        f"among {len(values)} source models"
    )
    if len(values):
        description += (
            f" from {values.min():.4g} to {values.max():.4g}, median {np.median(values):.4g}"
        )
    return finished(alt.layer(*layers), f"{description}.", 250)


def full_score(unit: Unit) -> str:
    """Return the title of an axis of full scores."""
    name = "full score, lower is better" if unit.scale.lower_is_better else "full score"
    return unit.score_title(name)


def by_task(tasks: Sequence[Mapping[str, Any]], target: str, unit: Unit) -> Any | None:
    """A row for each task: a target's estimated score, and the middle of the source models.

    Parameters
    ----------
    tasks : sequence of dict
        `task`, `score`, `items`, and the source models' `low`, `median` and `high` (10th, 50th and
        90th percentile).  If there are very many, the `MOST_TASKS` farthest from the median are
        drawn.

    Returns
    -------
    Chart or None
        None below two tasks.
    """
    import altair as alt

    if len(tasks) < 2:
        return None
    tasks = forms.in_unit(tasks, unit, ("score", "low", "median", "high"))
    far = sorted(tasks, key=lambda task: -abs(task["score"] - task["median"]))[:MOST_TASKS]
    values = [
        {**task, **{key: finite(task[key]) for key in ("score", "low", "median", "high")}}
        for task in sorted(far, key=lambda task: task["median"] - task["score"])
    ]
    base = alt.Chart(theme.rows(values))
    y = alt.Y("task:N", sort=[task["task"] for task in values],
              axis=alt.Axis(title=None, labelColor=LIGHT["ink"]))  # fmt: skip
    scale = alt.Scale(zero=False, nice=True)
    axis = alt.Axis(title=unit.score_title("task score"), tickCount=theme.ticks())
    bar = base.mark_bar(color=LIGHT["rest"], opacity=0.55, height=8).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", y=y
    )
    middle = base.mark_tick(color=LIGHT["soft"], thickness=2, height=8).encode(
        x=alt.X("median:Q", scale=scale, axis=axis), y=y
    )
    dot = base.mark_point(color=LIGHT[TARGET], filled=True, size=70, opacity=1).encode(
        x=alt.X("score:Q", scale=scale, axis=axis), y=y,
        tooltip=["task:N", alt.Tooltip("score:Q", title=target),
                 alt.Tooltip("median:Q", title="median of source models"),
                 alt.Tooltip("low:Q", title="10th percentile"),
                 alt.Tooltip("high:Q", title="90th percentile"),
                 alt.Tooltip("items:Q", title="items run")],
    )  # fmt: skip
    text = f"Scores of {target} by task; bars hold the middle 80% of the source models, ticks "
    text += "their medians. " + "; ".join(f"{task['task']}: {task['score']:.4g}" for task in values)
    return finished(alt.layer(bar, middle, dot), f"{text}.", 20 * len(values) + 44)


def several(estimates: Sequence[Mapping[str, Any]], level: float, unit: Unit) -> Any:
    """Estimates of several targets with their intervals: `target`, `score`, `low`, `high`."""
    rows = [
        {**estimate, "name": estimate["target"], "value": estimate["score"]}
        for estimate in estimates
    ]
    values = forms.in_unit(rows, unit)
    text = f"Estimates with their {level:.0%} intervals. " + "; ".join(
        f"{row['name']}: {row['value']:.4g} ({row['low']:.4g} to {row['high']:.4g})"
        for row in values
    )
    return forms.intervals(values, full_score(unit), f"{text}.")


def course(points: Sequence[Mapping[str, Any]], unit: Unit) -> Any | None:
    """The estimate and its interval as answers came in: `step`, `score`, `low`, `high`."""
    return forms.course(
        forms.in_unit(points, unit, COURSE), "number of items answered", full_score(unit)
    )


def in_time(points: Sequence[Mapping[str, Any]], unit: Unit) -> Any | None:
    """The scores of models and their intervals, the oldest first; points as for `course`."""
    shown = forms.in_unit(points, unit, COURSE)
    return forms.course(shown, "run, the oldest first", full_score(unit))


def best_so_far(points: Sequence[Mapping[str, Any]], unit: Unit) -> Any | None:
    """The best score up to each date, with its interval; points as for `course`."""
    return forms.course(forms.in_unit(points, unit, COURSE), "date", full_score(unit))


def tracked(points: Sequence[Mapping[str, Any]], unit: Unit) -> Any | None:
    """A score and its interval along the steps of a training run, or None below two steps.

    Parameters
    ----------
    points : sequence of dict
        `step`, `score`, `low`, `high`; `name` and `is_known` mark a checkpoint that ran all items.

    Examples
    --------
    >>> from fewbench.scores import Scale
    >>> point = {"step": 1000, "score": 0.4, "low": 0.3, "high": 0.5}
    >>> tracked([point], Unit(Scale())) is None
    True
    """
    shown = forms.in_unit(points, unit, COURSE)
    ran_whole = [point for point in shown if point.get("is_known")]
    return forms.course(shown, "training step", full_score(unit), ran_whole)
