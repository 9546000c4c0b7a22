"""What estimates show: scores, source models, tasks, items, and what they rest on."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

import numpy as np

from fewbench._names import counted, fixed, signed, some
from fewbench._types import FloatArray
from fewbench.errors import PackError
from fewbench.evaluation.costs import Cost
from fewbench.evaluation.estimate import Estimate, Estimates, among_sources, full_scores_of, several
from fewbench.evaluation.evaluation import Evaluation
from fewbench.methods.sources import sources_in_words
from fewbench.scores import Scores, Unit
from fewbench.scores.benchmark import AVERAGES, average_notes
from fewbench.show.charts import estimating as figures
from fewbench.show.page import Page, Section, Table, page_of
from fewbench.uncertainty.questions import AS_MODELS

MOST_SOURCES, MOST_ITEMS = 1000, 2000
"""Most rows of the tables of source models and of items; more would make a page heavy."""
INDENT = "\N{NO-BREAK SPACE}" * 2
"""Before the name of a task, for each group that it is in."""
History = Mapping[str, Sequence[Mapping[str, Any]]]


@page_of.register
def estimate_page(one: Estimate, *args: Any, **shown: Any) -> Page:
    """Return the page of one target; arguments as of `estimates_page`."""
    return estimates_page(Estimates({one.target: one}), *args, **shown)


@page_of.register
def estimates_page(
    estimates: Estimates,
    evaluation: Evaluation | None = None,
    *,
    source: str = "",
    folder: str = "",
    history: History | None = None,
) -> Page:
    """Return the page of estimates; several targets have tabs.

    Parameters
    ----------
    estimates : Estimates
    evaluation : Evaluation, optional
        Adds the source models and the items.
    source : str
        Name of the scores.
    folder : str
        Folder of the evaluation (default: where it is saved).
    history : mapping of str to sequence of dict, optional
        Earlier estimates by target: `step` (answered items), `score`, `low`, `high`.
    """
    title = f"An estimate from a few items{f' of {source}' if source else ''}"
    if not estimates:
        return Page("estimate", title, "No estimate: no target has answers")
    sign = 1 if next(iter(estimates.values())).scale.lower_is_better else -1
    ranked = sorted(
        estimates.values(), key=lambda estimate: (sign * estimate.score, estimate.target)
    )
    first, several = ranked[0], len(ranked) > 1
    unit = Unit(first.scale)
    score = f"{unit.score(first.score)} ({first.level:.0%} interval {unit.scores(first.interval)})"
    if _is_whole(first):
        score = f"{unit.score(first.score)} (all items ran)"
    answer, lesser = f"{first.target} scores {score}", [_run(first)]
    if several:
        answer, lesser = f"{first.target} is first of {len(ranked)} targets with {score}", []
    as_models = [
        f"{f'{each.target} ' if several else ''}{unit.score(each.score)} "
        f"({each.level:.0%} interval {unit.scores(each.as_model)})"
        for each in ranked
        if each.as_model is not None and each.is_wider_as_model
    ]
    if as_models:
        lesser.append(f"In general, {AS_MODELS}: {some(as_models, quotes=False)}.")
    lesser += average_notes(first.provenance.average)
    by_cost: dict[Cost, list[str]] = {}
    for estimate in ranked:
        if estimate.cost is not None:
            by_cost.setdefault(estimate.cost, []).append(estimate.target)
    lesser += [cost.sentences(_whose(names) if several else "") for cost, names in by_cost.items()]
    for estimate in ranked:
        if (noise := estimate.repeats) is not None:
            whose = f" of {estimate.target}" if several else ""
            half = unit.points(noise.half_width)
            lesser.append(noise.sentence(f"the mean of the answers{whose}", half, estimate.level))
    lesser += [
        f"Before, {estimate.target} scored {unit.score(estimate.before)}: it moved by "
        f"{unit.difference(estimate.score - estimate.before)}."
        for estimate in ranked
        if estimate.before is not None
    ]
    parts = [
        part
        for estimate in ranked
        for part in _parts(
            estimate,
            estimate.target if several else "",
            unit,
            evaluation,
            (history or {}).get(estimate.target),
        )
    ]
    provenance = first.provenance
    facts = {"Method": provenance.settings, "Seed": str(provenance.seed)}
    facts |= {"Fingerprint of the scores": provenance.fingerprint, "fewbench": provenance.version}
    facts |= {"Source results": provenance.credit} if provenance.credit else {}
    folder = folder or str((evaluation and evaluation.folder) or "")
    again = f"fewbench estimate {quote(folder)}"
    if evaluation is not None and len(evaluation.targets) > len(ranked):
        again += "".join(f" -t {quote(estimate.target)}" for estimate in ranked)
    return Page(
        "estimate",
        title,
        answer,
        lesser,
        estimates.warnings if several else first.warnings,
        [
            *([_all(ranked, unit)] if several else []),
            *parts,
            Section(
                "repeat",
                "How to repeat it",
                facts=facts,
                commands=[again] if folder else [],
                detail=True,
            ),
        ],
    )


def _whose(names: Sequence[str]) -> str:
    """Return whose a cost is; of several targets that cost the same, each one's."""
    each = "each of " if len(names) > 1 else ""
    return f" of {each}{some(names, quotes=False)}"


def _is_whole(estimate: Estimate) -> bool:
    return estimate.items_run == estimate.items_total


def _run(estimate: Estimate) -> str:
    """Return in a sentence what was run, and the rank."""
    share = f"{estimate.items_run / estimate.items_total:.1%}"
    text = f"Estimated from {estimate.items_run:,} of {counted(estimate.items_total, 'item')} "
    text += f"({share}), {estimate.answered}"
    if estimate.ranked_among is not None and estimate.rank_interval is not None:
        ends = f"{estimate.rank_interval.best} to {estimate.rank_interval.worst}"
        text += f"; rank {estimate.rank} of {estimate.ranked_among}, this model and "
        text += f"{counted(estimate.ranked_among - 1, 'source model')} ({ends} at the ends of the "
        text += "interval)"
    return f"{text}."


def _is_more_than_random(estimate: Estimate) -> bool:
    """Whether anything but the answers tells of the score.

    Without source models, the methods fewbench and random are a random sample and its mean.
    """
    return estimate.rank is not None or estimate.provenance.method not in ("fewbench", "random")


def _all(ranked: Sequence[Estimate], unit: Unit) -> Section:
    """Return a row for each target."""
    head = [("Target", False), ("Score", True), (f"{ranked[0].level:.0%} interval", True)]
    head += [("Half width", True), ("Random sampling", True), ("Expected error", True)]
    head += [("Rank", True), ("Items run", True), ("Answers", False)]
    rows = [
        [
            *(estimate.target, unit.score(estimate.score), unit.scores(estimate.interval)),
            f"± {unit.points((estimate.interval.high - estimate.interval.low) / 2)}",
            f"± {unit.points(estimate.random.half_width)}",
            *(unit.points(estimate.expected_error), str(estimate.rank or "–")),
            *(f"{estimate.items_run:,}", estimate.answered),
        ]
        for estimate in ranked
    ]
    notes = ["fewbench versus says which of two targets is better."]
    if any(estimate.is_wider_as_model for estimate in ranked):
        head.insert(3, ("In general", True))
        for row, estimate in zip(rows, ranked, strict=True):
            row.insert(3, "–" if estimate.as_model is None else unit.scores(estimate.as_model))
        notes.insert(0, f"In general: the interval {AS_MODELS}; the other is of these items.")
    is_ranked = any(estimate.rank is not None for estimate in ranked)
    unneeded = [] if is_ranked else ["Rank"]
    if any(map(_is_more_than_random, ranked)):
        text = "Random sampling: the half width of as many random items"
        rank = ", without source models. Rank: among the source models." if is_ranked else "."
        notes.insert(0, text + rank)
    else:
        unneeded.append("Random sampling")
    kept = [at for at, (name, _) in enumerate(head) if name not in unneeded]
    head, rows = [head[at] for at in kept], [[row[at] for at in kept] for row in rows]
    drawn = [("", lambda: several(ranked))]
    return Section("targets", "All targets", notes, "", drawn, [Table("All targets", head, rows)])


def _parts(
    estimate: Estimate,
    tab: str,
    unit: Unit,
    evaluation: Evaluation | None,
    history: Sequence[Mapping[str, Any]] | None,
) -> Iterator[Section]:
    """Yield what there is to show of one target; as text only if it has no tab."""
    scores = None if evaluation is None else evaluation.scores.whole
    if scores is not None and scores.n_models:
        rows = _near(estimate, scores, unit)
        head = [("Rank", True), ("Model", False), ("Full score", True), ("", False)]
        fold = f"Models near the target ({len(rows):,} of {scores.n_models + 1:,} models)"
        near = Table("Source models", head, rows, "a model", fold)
        note = (
            "Bars count the source models by full score; the small ticks are single models. The "
            f"line is the estimate, the shade its {estimate.level:.0%} interval."
        )
        drawn = [("", lambda: among_sources(estimate, scores))]
        title = "Against the source models"
        yield Section("sources", title, [note], "", drawn, [near], detail=True, tab=tab)
    if history and len(history) > 1:
        drawn = [
            (
                "The estimate and its interval by number of answers",
                lambda: figures.course(history, unit),
            )
        ]
        title = "Estimate by answered items"
        yield Section("course", title, charts=drawn, detail=True, tab=tab)
    yield _basis(estimate, tab, unit, evaluation)
    if len(estimate.tasks) > 1:
        yield _tasks(estimate, tab, unit, scores)
    if evaluation is not None and estimate.target in evaluation.targets:
        yield _items(estimate.target, tab, unit, evaluation)


def _near(estimate: Estimate, scores: Scores, unit: Unit) -> list[list[str]]:
    """Return the source models with the target among them, the best first."""
    sign = 1 if scores.scale.lower_is_better else -1
    every = [(sign * score, name, score) for name, score in full_scores_of(scores).items()]
    every.append((sign * estimate.score, "", estimate.score))
    every.sort(key=lambda row: (row[0] != row[0], row[0], row[1] != ""))
    rows, at = [], 0
    for rank, (_, name, score) in enumerate(every, 1):
        where = (
            "inside the interval"
            if estimate.interval.low <= score <= estimate.interval.high
            else ""
        )
        if not name:
            at, where = rank, "this model"
        rows.append([str(rank), name or estimate.target, unit.score(score), where])
    start = max(0, min(at - MOST_SOURCES // 2, len(rows) - MOST_SOURCES))
    return rows[start : start + MOST_SOURCES]


def _basis(estimate: Estimate, tab: str, unit: Unit, evaluation: Evaluation | None) -> Section:
    """Return the width and the error beside those of random items, and what they rest on."""
    provenance, ends = estimate.provenance, estimate.interval
    head = [("Method", False), ("Half width", True), ("Expected error", True)]
    width = f"± {unit.points((ends.high - ends.low) / 2)}"
    rows = [[provenance.method, width, unit.points(estimate.expected_error)]]
    if _is_more_than_random(estimate) and estimate.interval_kind not in ("exact", "betting"):
        width = f"± {unit.points(estimate.random.half_width)}"
        rows.append(["random sampling", width, unit.points(estimate.random.expected_error)])
    facts = {"Interval": f"{estimate.level:.0%}: {estimate.interval_basis}"}
    if _is_whole(estimate):
        facts["Interval"] = "none needed on exactly these items: all of them ran"
    if evaluation is not None:
        if evaluation.scores.n_models:
            facts["Source models"] = sources_in_words(evaluation.scores)
        facts["Full score"] = AVERAGES[provenance.average]
        if evaluation.reason:
            facts["Why this method"] = evaluation.reason
    return Section(
        "basis",
        "What it rests on",
        tables=[Table("Compared with random sampling", head, rows)],
        lines=_more_items(estimate, unit),
        facts=facts,
        detail=bool(tab),
        tab=tab,
    )


def _more_items(estimate: Estimate, unit: Unit) -> list[str]:
    """Return what more items would give, of an interval that follows from their number."""
    n, n_items = estimate.items_run, estimate.items_total
    if estimate.interval_kind not in ("exact", "betting", "sampled") or n >= n_items:
        return []
    half, left = (estimate.interval.high - estimate.interval.low) / 2, 1 / n - 1 / n_items
    widths = [
        f"± {unit.points(half * ((1 / more - 1 / n_items) / left) ** 0.5)} with {more:,}"
        for more in (2 * n, 4 * n)
        if more < n_items
    ]
    return [f"More items would give about {' and '.join(widths)}."] if widths else []


def _tasks(estimate: Estimate, tab: str, unit: Unit, scores: Scores | None) -> Section:
    drawn, of_groups = [], {}
    if scores is not None:
        of_sources = scores.scale.from_unit(scores.task_scores())
        drawn, of_groups = (
            _middles(estimate, scores, of_sources),
            _group_medians(scores, of_sources),
        )
    medians = {row["task"]: row["median"] for row in drawn} | of_groups
    head = [("Task", False), ("Score", True), (f"{estimate.level:.0%} interval", True)]
    head += [("Items run", True)]
    head += [("Rank", True)] if estimate.task_ranks else []
    head += [("Source median", True)] if drawn else []
    rows = []
    n: int | None
    for depth, name in _in_groups(estimate):
        if (group := estimate.groups.get(name)) is not None:
            score, interval, n, rank = group.score, group.interval, group.items_run, group.rank
        else:
            score, interval = estimate.tasks[name], estimate.task_intervals.get(name)
            n, rank = estimate.task_items.get(name), estimate.task_ranks.get(name)
        row = [f"{INDENT * depth}{name}", unit.score(score)]
        row += ["–" if interval is None else unit.scores(interval), _or_dash(n)]
        row += [_or_dash(rank)] if estimate.task_ranks else []
        row += [unit.score(medians.get(name))] if drawn else []
        rows.append(row)
    notes = []
    without = [name for name, n in estimate.task_items.items() if not n]
    ends = [estimate.task_intervals.get(name) for name in without]
    span = abs(estimate.scale.high - estimate.scale.low)
    if any(each is None or each.high - each.low < span for each in ends):
        notes.append("Tasks with 0 items run: scores predicted from the other tasks.")
    intervals = [*estimate.task_intervals.values()]
    if None in intervals + [group.interval for group in estimate.groups.values()]:
        notes.append("–: too few items or source models for an interval.")
    caption = "Dot: the target. Bar: the middle 80% of the source models. Tick: their median."
    if len(drawn) > figures.MOST_TASKS:
        caption += f" Drawn are the {figures.MOST_TASKS} tasks farthest from the median."
    charts = [(caption, lambda: figures.by_task(drawn, estimate.target, unit))] if drawn else []
    table = Table("Tasks", head, rows, "a task")
    return Section("tasks", "Tasks", notes, "", charts, [table], detail=bool(tab), tab=tab)


def _or_dash(value: int | None) -> str:
    return "–" if value is None else str(value)


def _in_groups(estimate: Estimate) -> Iterator[tuple[int, str]]:
    """Yield how deep each group and each task is, and its name; a group before what it holds."""
    groups = estimate.groups
    inner = {part for group in groups.values() for part in group.parts}

    def parts(name: str, depth: int) -> Iterator[tuple[int, str]]:
        yield depth, name
        for part in groups[name].parts if name in groups else ():
            yield from parts(part, depth + 1)

    for name in [*groups, *estimate.tasks]:
        if name not in inner:
            yield from parts(name, 0)


def _middles(estimate: Estimate, scores: Scores, of_sources: FloatArray) -> list[dict[str, Any]]:
    """Return the middle of the source models in every task, beside the target's score."""
    rows = []
    for at, task in enumerate(scores.tasks):
        at_task = of_sources[:, at][~np.isnan(of_sources[:, at])]
        if task not in estimate.tasks or not len(at_task):
            continue
        low, median, high = map(float, np.percentile(at_task, [10, 50, 90]))
        row = {
            "task": str(task),
            "score": estimate.tasks[task],
            "items": estimate.task_items.get(task),
        }
        rows.append(row | {"low": low, "median": median, "high": high})
    return rows


def _group_medians(scores: Scores, of_sources: FloatArray) -> dict[str, float]:
    medians = {}
    for group in scores.groups:
        held = group.weights > 0
        of_models = of_sources[:, held] @ group.weights[held]
        if not np.isnan(of_models).all():
            medians[group.name] = float(np.nanmedian(of_models))
    return medians


def _items(target: str, tab: str, unit: Unit, evaluation: Evaluation) -> Section:
    """Return the items so far: the answers, and the expected scores.

    Expected is the method's own expectation, or, of methods that have none, the mean score of the
    source models.
    """
    table = evaluation.items(target)
    table = table[table["status"] != ""]
    if evaluation.is_limited(target):  # no more items will run
        table = table.replace({"status": {"open": "beyond the cost limit"}})
    by_method = bool(table["expected"].notna().any())
    if not by_method:
        table = table.assign(expected=_means(evaluation.scores, list(table.index)))
    table = table.assign(off=table["score"] - table["expected"])
    table = table.sort_values("off", key=abs, ascending=False, kind="stable", na_position="last")
    is_compared, rows = bool(table["expected"].notna().any()), []
    for item, row in table.head(MOST_ITEMS).iterrows():
        score = "–" if row["score"] != row["score"] else f"{row['score']:.4g}"
        digits = unit.digits + 1
        off = [fixed(row["expected"], digits), signed(row["off"], digits)]
        rows.append(
            [str(item), score, *(off if is_compared else []), str(row["task"]), row["status"]]
        )
    head = [("Item", False), ("Score", True)]
    notes = ["The items and their answers."]
    if is_compared:
        head += [("Expected" if by_method else "Source mean", True), ("Difference", True)]
        beside = "what the method expects" if by_method else "the mean score of the source models"
        notes = [
            f"The items and their answers, beside {beside}. The items that differ most come first."
        ]
    head += [("Task", False), ("Status", False)]
    if len(table) > len(rows):
        notes.append(f"The first {len(rows)} of {len(table)} items; Evaluation.items has all.")
    shown = Table("Items", head, rows, "an item, task or status")
    return Section("items", "Items", notes, tables=[shown], detail=True, tab=tab)


def _means(scores: Scores, items: list[str]) -> FloatArray:
    """Return mean scores of the source models on items; a pack may not hold all of them."""
    try:
        of_items = scores.columns(scores.positions(items))
    except PackError:
        return np.full(len(items), np.nan)
    counts = (~np.isnan(of_items)).sum(axis=0)
    sums = np.nansum(of_items, axis=0)
    means = np.divide(sums, counts, out=np.full(len(items), np.nan), where=counts > 0)
    return scores.scale.from_unit(means)
