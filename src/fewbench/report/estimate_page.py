"""The page of estimates: what a target scores, against whom, on what, and at what cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np

from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench.charts import estimating as figures
from fewbench.errors import PackError
from fewbench.evaluation import Estimate, Estimates, Evaluation
from fewbench.report.frame import Charts, render_page
from fewbench.report.words import seconds
from fewbench.runners.result import RunResult
from fewbench.scores import Scores

MOST_SOURCES, MOST_ITEMS = 1000, 2000
"""Most rows of the tables of source models and of items; more would make a page heavy."""
History = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Told:
    """What a page of estimates can tell beside the estimates; all of it may be missing.

    Attributes
    ----------
    scores : Scores, optional
        Of the source models.
    evaluation : Evaluation, optional
        For the items and their expected scores.
    run : RunResult, optional
        What was spent and saved.
    source : str
        Name of the scores.
    folder : str, optional
        Of the evaluation, for the commands.
    history : mapping of str to sequence of dict
        Earlier estimates by target: `step` (answered items), `score`, `low`, `high`.
    state : str
        How far a run is, in a sentence.
    """

    scores: Scores | None = None
    evaluation: Evaluation | None = None
    run: RunResult | None = None
    source: str = ""
    folder: str | None = None
    history: Mapping[str, History] | None = None
    state: str = ""


def render_estimates(
    estimates: Mapping[str, Estimate], told: Told | None = None, *, version: int | None = None
) -> str:
    """The page as text.

    Parameters
    ----------
    estimates : mapping of str to Estimate
        By target, at least one.
    told : Told, optional
    version : int, optional
        Of a live page: its number, from which the page asks for newer ones.
    """
    told, charts = told or Told(), Charts()
    digits = _digits(told.scores)
    ranked = sorted(estimates.values(), key=lambda one: (one.rank or 0, one.target))
    several = None
    if len(ranked) > 1:
        ends = [
            {"target": one.target, "score": one.score, "low": one.interval.low,
             "high": one.interval.high} for one in ranked
        ]  # fmt: skip
        several = charts.add(figures.several(ends, ranked[0].level))
    return render_page(
        "estimate.html.j2",
        charts,
        live=version is not None,
        version=version,
        title=told.source,
        state=told.state,
        parts=[_part(one, told, charts, digits, at) for at, one in enumerate(ranked)],
        several=several,
        warned_of=Estimates({one.target: one for one in ranked}).warnings,
        several_rows=[_summary(one, digits) for one in ranked],
        spent=_spent(told.run),
        command=f"fewbench estimate {quote(told.folder)}" if told.folder else "",
    )


def _digits(scores: Scores | None) -> int:
    if scores is None:
        return 3
    return max(0, 3 - round(float(np.log10(scores.scale.high - scores.scale.low))))


def _part(one: Estimate, told: Told, charts: Charts, digits: int, at: int) -> dict[str, Any]:
    """All that the template shows of one target."""
    scores, made = told.scores, one.provenance
    fixed = f"{{:.{digits}f}}".format
    low, high = one.interval.low, one.interval.high
    plain = made.settings == "random+mean"
    sources = {} if scores is None else _sources(scores)
    lower_is_better = scores is not None and scores.scale.lower_is_better
    tasks = [] if scores is None else _tasks(one, scores)
    gain = None
    if one.expected_error is not None and not plain and one.random.expected_error > 0:
        gain = one.expected_error / one.random.expected_error
    history = (told.history or {}).get(one.target, ())
    return {
        "id": f"target-{at}",
        "target": one.target,
        "score": fixed(one.score),
        "low": fixed(low),
        "high": fixed(high),
        "level": f"{one.level:.0%}",
        "items_run": f"{one.items_run:,}",
        "items_total": f"{one.items_total:,}",
        "share": f"{one.items_run / one.items_total:.1%}",
        "rank": _rank(one),
        "random_width": None if plain else fixed(one.random.half_width),
        "answered": one.answered,
        "warnings": one.warnings,
        "among": charts.add(
            figures.among_sources(
                sources, one.target, one.score, (low, high), one.level, lower_is_better
            )
        )
        if sources
        else None,
        "sources": _ranked(sources, one, lower_is_better, fixed),
        "n_sources": len(sources),
        "course": charts.add(figures.course(history)),
        "by_task": charts.add(figures.by_task(tasks, one.target)),
        "tasks": [
            [
                task, fixed(score), str(one.task_items.get(task, "–")),
                str(one.task_ranks.get(task, "–")),
                *(fixed(next(t["median"] for t in tasks if t["task"] == task)) for _ in tasks[:1]),
            ]
            for task, score in one.tasks.items()
        ] if len(one.tasks) > 1 else [],
        "unasked": sum(n == 0 for n in one.task_items.values()),
        "most_tasks": figures.MOST_TASKS,
        "items": _items(one, told, digits),
        "facts": _facts(one, told, fixed, gain),
        "saved": one.items_total - one.items_run,
    }  # fmt: skip


def _rank(one: Estimate) -> str | None:
    if one.rank is None or one.rank_interval is None:
        return None
    ends = f"{one.rank_interval.best} to {one.rank_interval.worst}"
    return f"rank {one.rank} of {one.ranked_among} ({ends} at the ends of the interval)"


def _sources(scores: Scores) -> dict[str, float]:
    full = scores.scale.from_unit(scores.full_scores())
    return dict(zip(map(str, scores.model_ids), map(float, full), strict=True))


def _ranked(
    sources: Mapping[str, float], one: Estimate, lower_is_better: bool, fixed: Any
) -> list[list[str]]:
    """The source models with the target among them, the best first."""
    if not sources:
        return []
    sign = 1 if lower_is_better else -1
    every = [(sign * score, name, score, False) for name, score in sources.items()]
    every.append((sign * one.score, one.target, one.score, True))
    every.sort(key=lambda row: (row[0] != row[0], row[0], not row[3]))
    rows = []
    for rank, (_, name, score, is_target) in enumerate(every, 1):
        if is_target:
            where = "this model"
        elif score != score:
            where = ""
        else:
            where = "inside the interval" if one.interval.low <= score <= one.interval.high else ""
        rows.append([str(rank), name, fixed(score) if score == score else "–", where])
    if len(rows) > MOST_SOURCES:  # those nearest to the target say most
        at = next(i for i, row in enumerate(rows) if row[3] == "this model")
        start = min(max(0, at - MOST_SOURCES // 2), len(rows) - MOST_SOURCES)
        rows = rows[start : start + MOST_SOURCES]
    return rows


def _tasks(one: Estimate, scores: Scores) -> list[dict[str, Any]]:
    """The middle of the source models in every task, beside the target's score."""
    of_sources = scores.scale.from_unit(scores.task_scores())
    rows = []
    for at, task in enumerate(scores.tasks):
        known = of_sources[:, at][~np.isnan(of_sources[:, at])]
        if task not in one.tasks or not len(known):
            continue
        low, median, high = np.percentile(known, [10, 50, 90])
        rows.append(
            {"task": str(task), "score": one.tasks[task], "items": one.task_items.get(task),
             "low": float(low), "median": float(median), "high": float(high)}
        )  # fmt: skip
    return rows


def _items(one: Estimate, told: Told, digits: int) -> dict[str, Any] | None:
    """The items that were asked: what was answered, and what was to be expected.

    Expected is the method's own expectation, or, of methods that have none, the mean score of the
    source models.
    """
    if told.evaluation is None or one.target not in told.evaluation.targets:
        return None
    scores = told.evaluation.scores
    table = told.evaluation.items(one.target)
    table = table[table["status"] != ""]
    by_method = bool(table["expected"].notna().any())
    if not by_method:
        table = table.assign(expected=_means(scores, list(table.index)))
    table = table.assign(off=(table["score"] - table["expected"]).abs())
    table = table.sort_values("off", ascending=False, kind="stable", na_position="last")
    rows = []
    for item, row in table.head(MOST_ITEMS).iterrows():
        score = "–" if row["score"] != row["score"] else f"{row['score']:.4g}"
        words = [str(item), str(row["task"]), row["status"], score]
        for name in ("expected", "off"):
            words.append("–" if row[name] != row[name] else f"{row[name]:.{digits}f}")
        rows.append(words)
    expected = "Expected" if by_method else "Source models"
    heads = [("Item", False), ("Task", False), ("Status", False), ("Score", True),
             (expected, True), ("Difference", True)]  # fmt: skip
    return {"heads": heads, "rows": rows, "of": len(table), "by_method": by_method}


def _means(scores: Scores, items: list[str]) -> FloatArray:
    """Mean scores of the source models on items; a pack may not hold all of them."""
    try:
        known = scores.cells[:, scores.positions(items)]
    except PackError:
        return np.full(len(items), np.nan)
    counts = (~np.isnan(known)).sum(axis=0)
    sums = np.nansum(known, axis=0)
    means = np.divide(sums, counts, out=np.full(len(items), np.nan), where=counts > 0)
    return scores.scale.from_unit(means)


def _facts(one: Estimate, told: Told, fixed: Any, gain: float | None) -> dict[str, str]:
    """What the estimate rests on."""
    made = one.provenance
    found = {
        "Method": made.method if made.method == made.settings else f"{made.method}: "
        f"{made.settings}",
        "Items": f"{one.items_run:,} of {one.items_total:,}, at most {made.budget:,}",
    }  # fmt: skip
    found["Interval"] = f"{one.level:.0%}: {one.interval_basis}"
    if one.expected_error is not None:
        said = f"{fixed(one.expected_error)} on average"
        if gain is not None:
            said += (
                f"; random sampling of as many items: {fixed(one.random.expected_error)} "
                f"(ratio {gain:.2f})"
            )
        found["Typical error"] = said
    if told.scores is not None:
        average = {"micro": "mean over items", "macro": "mean over task scores"}[made.average]
        found["Source models"] = counted(told.scores.n_models, "model")
        found["Full score"] = average
    if told.evaluation is not None and told.evaluation.reason:
        found["Why this method"] = told.evaluation.reason
    return found | {
        "Seed": str(made.seed), "Fingerprint of the scores": made.fingerprint,
        "fewbench": made.version,
    }  # fmt: skip


def _summary(one: Estimate, digits: int) -> list[str]:
    ends = f"{one.interval.low:.{digits}f} to {one.interval.high:.{digits}f}"
    rank = "–" if one.rank is None else str(one.rank)
    return [one.target, f"{one.score:.{digits}f}", ends, rank, f"{one.items_run:,}",
            str(len(one.warnings))]  # fmt: skip


def _spent(run: RunResult | None) -> dict[str, Any] | None:
    """What a run cost and saved, a row per target, and its time in a sentence."""
    if run is None:
        return None
    heads, rows = ["Target", "Items run", "Items saved"], []
    has_cost = any(one.cost for one in run.targets.values())
    has_tokens = any(one.tokens for one in run.targets.values())
    heads += ["Cost", "In full", "Cost saved"] if has_cost else []
    heads += ["Tokens", "In full", "Tokens saved"] if has_tokens else []
    for name, one in run.targets.items():
        row = [name, f"{one.items_run:,}", f"{one.items_total - one.items_run:,}"]
        if has_cost:
            row += [f"{v:,.4g}" for v in (one.cost, one.full_cost, one.full_cost - one.cost)]
        if has_tokens:
            row += [f"{v:,}" for v in (one.tokens, one.full_tokens, one.full_tokens - one.tokens)]
        rows.append(row)
    spent = run.spent
    time = (
        f"The run took {seconds(spent.seconds)}: the model {seconds(spent.model_seconds)}, "
        f"fewbench {seconds(spent.own_seconds)}."
    )
    failed = [
        [name, item, why] for name, one in run.targets.items() for item, why in one.failed.items()
    ]
    return {
        "heads": [(head, at > 0) for at, head in enumerate(heads)],
        "rows": rows,
        "time": time,
        "stopped": run.stopped,
        "failed": failed,
        "notes": run.notes,
    }
