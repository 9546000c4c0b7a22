"""Runs → one table: metric and filter chosen, tasks joined, scores and probabilities filled."""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._memory import check_fits
from fewbench._names import counted, some
from fewbench._progress import OnStep
from fewbench._types import FloatArray
from fewbench.errors import Mistakes, ReaderError
from fewbench.readers.harness import LogRun, Reading
from fewbench.readers.join.costs import answer_costs, item_costs
from fewbench.readers.join.merge import SameModel
from fewbench.readers.join.notes import notes_on, scoring_differences
from fewbench.readers.join.task import (
    JoinedTask,
    check_options,
    is_mean,
    join_task,
    write_probabilities,
)
from fewbench.readers.options import COMPARED
from fewbench.scores import Scale, Scores, from_arrays
from fewbench.scores.costs import with_answer_costs
from fewbench.scores.groups import GROUP, harness_tasks
from fewbench.scores.repeats import Repeats
from fewbench.scores.replies import REPLIES
from fewbench.scores.table import HARNESS_VERSION, KEY_FIELD, KEYS, PROMPTS, SETTINGS

PROBABILITIES = "probabilities.npy"
ORDERED = ("lm-eval", "inspect")
"""Harnesses that list the metrics and filters of a task as the task does, its main one first."""


class Preference:
    """The user's metrics or filters in order of preference, and the undecided tasks.

    The first name that a task has is used; a task with one name uses it. `of_task` takes
    precedence. Without any, a task may use its own first name, with a note.

    Examples
    --------
    >>> metric = Preference("metric", "acc")
    >>> metric.name_for("mmlu", ["acc_norm", "acc"]), metric.name_for("gsm8k", ["exact_match"])
    ('acc', 'exact_match')
    """

    def __init__(
        self, option: str, named: str | None = None, of_task: Mapping[str, str] | None = None
    ) -> None:
        self.option = option
        self.named = [name.strip() for name in (named or "").split(",") if name.strip()]
        self._of_task = {} if self.named else of_task or {}
        self._met: dict[str, None] = {}
        self._open: list[tuple[str, list[str]]] = []
        self._first: dict[tuple[str, ...], list[str]] = defaultdict(list)

    def name_for(self, task: str, candidates: Iterable[str], *, first: bool = False) -> str | None:
        """Return the name to use, or None if undecided (see `require`).

        With `first`, the first candidate is used if the user named none.
        """
        there = list(dict.fromkeys(candidates))
        self._met |= dict.fromkeys(there)
        fitting = [name for name in self.names_for(task) if name in there]
        if fitting or len(there) == 1:
            return (fitting or there)[0]
        if first and there and not self.named:
            self._first[tuple(there)].append(task)
            return there[0]
        self._open.append((task, there))
        return None

    def names_for(self, task: str) -> list[str]:
        """Return the names for a task, best first."""
        return [self._of_task[task]] if task in self._of_task else self.named

    @property
    def notes(self) -> list[str]:
        """Which first names were used, and what else there is."""
        return [
            f"{self.option} {names[0]!r} of {counted(len(tasks), 'task')}: {some(tasks)}; there is "
            f"also {', '.join(map(repr, names[1:]))}, see --{self.option}"
            for names, tasks in self._first.items()
        ]

    @property
    def unknown(self) -> str:
        """The error if no task has any of the names, else ""."""
        if not self.named or self._met.keys() & set(self.named):
            return ""
        there = some(list(self._met), most=8)
        return f"no task has the {self.option} {some(self.named)}; there is {there}"

    @property
    def question(self) -> str:
        """The undecided tasks, "" if there are none."""
        if not self._open:
            return ""
        listed = "; ".join(
            f"task {task!r} has {', '.join(map(repr, names))}" for task, names in self._open[:3]
        )
        more = f" and {len(self._open) - 3} more tasks" if len(self._open) > 3 else ""
        return f"several choices of --{self.option}: {listed}{more}"

    @property
    def advice(self) -> str:
        """An option that decides every open task."""
        named = [name for name in self.named if name in self._met]
        first = dict.fromkeys([*named, *(names[0] for _, names in self._open)])
        return f"--{self.option} {','.join(first)}"


def require(*preferences: Preference) -> None:
    """Raise ReaderError if a task is undecided."""
    for preference in preferences:
        if preference.unknown:
            raise ReaderError(preference.unknown, hint="use one of these names")
    left = [preference for preference in preferences if preference.question]
    if left:
        raise ReaderError(
            "; ".join(preference.question for preference in left),
            hint=f"such as {' '.join(preference.advice for preference in left)}; each task uses "
            "the first name that it has",
        )


def told_apart(runs: Sequence[LogRun]) -> list[LogRun]:
    """Return the runs with separate models for separate folders: MODEL@FOLDER.

    For several settings in a folder, the newest keeps that name and the others are MODEL@SETTINGS.
    """
    folders = {model: _folder_labels(of_model) for model, of_model in _by_model(runs).items()}
    named = [replace(run, model=run.model + folders[run.model][run.group]) for run in runs]
    settings = {model: _other_settings(of_model) for model, of_model in _by_model(named).items()}
    return [
        replace(run, model=f"{run.model}@{run.variant.replace(', ', '+')}")
        if (run.task, run.variant) in settings[run.model]
        else run
        for run in named
    ]


def _by_model(runs: Sequence[LogRun]) -> dict[str, list[LogRun]]:
    by_model: dict[str, list[LogRun]] = defaultdict(list)
    for run in runs:
        by_model[run.model].append(run)
    return by_model


def _folder_labels(runs: list[LogRun]) -> dict[str, str]:
    """Return what to add to the name of a model for each folder."""
    of_task: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        of_task[run.task].add(run.group)
    apart = [folders for folders in of_task.values() if len(folders) > 1]
    parts = {run.group: run.group.strip(os.sep).split(os.sep) for run in runs}
    if not apart:
        return dict.fromkeys(parts, "")
    first = min(
        sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False)))
        for paths in ([parts[folder] for folder in folders] for folders in apart)
    )
    for last in range(first + 1, max(map(len, parts.values())) + 1):
        labels = {folder: "/".join(path[first:last]) or "." for folder, path in parts.items()}
        if all(len({labels[folder] for folder in folders}) == len(folders) for folders in apart):
            break
    return {folder: f"@{label}" for folder, label in labels.items()}


def _other_settings(runs: list[LogRun]) -> set[tuple[str, str]]:
    newest: dict[str, LogRun] = {}
    for run in sorted(runs, key=lambda run: run.stamp):
        newest[run.task] = run
    return {(run.task, run.variant) for run in runs if run.variant != newest[run.task].variant}


def join(
    runs: Sequence[LogRun],
    *,
    metric: str | None = None,
    filter: str | None = None,
    like: Scores | None = None,
    scale: Scale | None = None,
    same_model: SameModel = "stop",
    key: str | None = None,
    trials: str = "",
    accept_differences: bool = False,
    work: Path | None = None,
    progress: OnStep | None = None,
) -> Reading:
    """Join runs of any models and tasks into one table; see `fewbench.import_results`.

    Raises
    ------
    ReaderError
        If a metric or filter is undecided, a value is not one number, two folders disagree, or
        models were scored in different ways.
    ScoresError
        If values lie outside the scale.
    """
    scale = scale or Scale()
    if same_model == "apart":
        runs = told_apart(runs)
    models = {name: at for at, name in enumerate(dict.fromkeys(run.model for run in runs))}
    by_task: dict[str, list[LogRun]] = defaultdict(list)
    for run in runs:
        by_task[run.task].append(run)
    filters = Preference("filter", filter, _of_task(like, "filter"))
    metrics = Preference("metric", metric, _of_task(like, "metric"))
    tasks, mistakes = [], Mistakes()
    for done, name in enumerate(sorted(by_task)):
        if progress is not None:
            progress(done, len(by_task))
        with mistakes.noted():
            joined = _join_task(
                name, by_task[name], filters, metrics, scale, same_model, key, trials, like is None
            )
            tasks += [] if joined is None else [joined]
    with mistakes.noted():
        require(filters, metrics)
    mistakes.refuse()
    differences = scoring_differences(tasks, models)
    if differences and not accept_differences:
        raise ReaderError(
            f"models were not scored alike: {'; '.join(differences)}",
            hint="import logs of the same tasks; or leave these models out, or pass "
            "--accept-differences (in Python accept_differences=True), and estimates carry a "
            "warning",
        )
    checked = check_options(tasks)
    values, repeats = _values(tasks, models, scale)
    ran = ~np.isnan(values).all(axis=1)
    lost = [] if like is not None or not ran.any() else np.array(list(models))[~ran].tolist()
    if repeats is not None and checked.lacking is None:
        checked.lacking = "models answered items several times"
    probabilities = None
    if checked.lacking is None:
        path = None if work is None else work / PROBABILITIES
        probabilities = write_probabilities(tasks, models, checked, path)
    if lost:
        values, models = values[ran], {name: at for at, name in enumerate(np.array([*models])[ran])}
        repeats = (
            None
            if repeats is None
            else repeats.take(np.flatnonzero(ran), np.arange(values.shape[1]))
        )
    scores = from_arrays(
        values,
        models=list(models),
        items=[item for task in tasks for item in task.items.ids],
        tasks=[task.name for task in tasks for _ in task.items.ids],
        probabilities=probabilities,
        n_options=None if probabilities is None else np.concatenate(checked.n_options),
        scale=scale,
    )
    costs, cost_notes = item_costs(tasks)
    scores = _with_harness_columns(scores.changed(repeats=repeats), tasks)
    scores = scores.changed(items=scores.items.assign(**costs))
    if key is not None:
        scores = scores.changed(items=scores.items.assign(**{KEY_FIELD: key}))
    if like is not None and any(kinds := [kind for task in tasks for kind in _reply_kinds(task)]):
        column = np.array(kinds, dtype=object)
        scores = scores.changed(items=scores.items.assign(**{REPLIES: column}))
    if like is not None:
        scores = with_answer_costs(scores, answer_costs(tasks))
    scores = _named_as(like, scores)
    scores = _in_parts(scores, tasks) if like is None else _in_tasks_of(like, scores)
    notes = notes_on(tasks, values, models, checked, differences, are_sources=like is None)
    if lost:
        models_lost = counted(len(lost), "model has", "models have")
        notes = (
            f"{models_lost} no answer, only items not run, and are left out: {some(lost)}",
            *notes,
        )
    notes = (*metrics.notes, *filters.notes, *notes, *(cost_notes if like is None else []))
    return Reading(scores, notes, _files(runs, tasks))


def _of_task(like: Scores | None, column: str) -> dict[str, str]:
    if like is None or column not in like.items:
        return {}
    names = zip(harness_tasks(like.items), like.items[column], strict=True)
    return {str(task): str(name) for task, name in dict.fromkeys(names) if name}


def _join_task(
    name: str,
    runs: list[LogRun],
    filters: Preference,
    metrics: Preference,
    scale: Scale,
    same_model: SameModel,
    key: str | None,
    trials: str,
    are_sources: bool,
) -> JoinedTask | None:
    """Join one task. Return None if its metric or filter is undecided."""
    first = are_sources and all(run.harness in ORDERED for run in runs)
    named = list(dict.fromkeys(run.filter for run in runs if run.filter is not None))
    chosen = None
    if named:
        chosen = filters.name_for(name, named, first=first and _all_have(named, runs))
    decided = not named or chosen is not None
    if decided:
        runs = _under(chosen, runs)
    there = _candidates(name, runs, metrics)
    first = first and all(there[0] in run.metrics for run in runs)
    metric = metrics.name_for(name, there, first=first)
    if metric is None or not decided:
        return None
    runs = [_renamed(run, metric, metrics.named) for run in runs]
    return join_task(name, metric, chosen, runs, scale, same_model, key, trials)


def _all_have(filters: Sequence[str], runs: list[LogRun]) -> bool:
    """Whether all models have a run under the first of these filters."""
    models = {run.model for run in runs if run.filter is not None}
    return models == {run.model for run in runs if run.filter == filters[0]}


def _renamed(run: LogRun, metric: str, named: Sequence[str]) -> LogRun:
    """Return a run without the metric with the first of the named ones that it has in its place."""
    if metric in run.metrics or (metric in COMPARED and run.has_options):
        return run
    own = next((name for name in named if name in run.metrics), None)
    return run if own is None else run.with_metric(own, metric)


def _candidates(task: str, runs: list[LogRun], metrics: Preference) -> list[str]:
    every = list(dict.fromkeys(name for run in runs for name in run.metrics))
    wanted = metrics.names_for(task)
    if not set(wanted) & set(every) and all(run.has_options for run in runs):
        every += [name for name in wanted if name in COMPARED]
    if not every:
        raise ReaderError(f"{runs[0].path}: task {task!r} has no metric")
    scalar = [name for name in every if any(name in run.numeric for run in runs)]
    scalar = [name for name in scalar if all(is_mean(run, name) for run in runs)] or scalar
    if not scalar:
        runs[0].numbers(every[0])  # raises, and says what it is instead of a number
    return every if set(wanted) & set(every) else scalar


def _under(filtered: str | None, runs: list[LogRun]) -> list[LogRun]:
    filters: dict[tuple[str, str, str], list[LogRun]] = defaultdict(list)
    for run in runs:  # one run of the harness may have a file for each filter
        filters[run.group, run.stamp, run.model].append(run)
    for several in filters.values():
        if not any(run.filter in (None, filtered) for run in several):
            raise ReaderError(
                f"{several[0].path}: no rows of filter {filtered!r}, which other runs of task "
                f"{several[0].task!r} have",
                hint=f"it has {', '.join(str(run.filter) for run in several)}",
            )
    return [run for run in runs if run.filter in (None, filtered)]


def _values(
    tasks: list[JoinedTask], models: dict[str, int], scale: Scale
) -> tuple[FloatArray, Repeats | None]:
    """Return the scores of all items, shape (models, items), and how answers to an item vary."""
    sizes = np.cumsum([0, *(len(task.items.ids) for task in tasks)])
    shape = len(models), int(sizes[-1])
    check_fits(
        16.0 * shape[0] * shape[1],
        f"a table of {counted(shape[0], 'model')} × {counted(shape[1], 'item')}",
    )
    values, of_parts = np.full(shape, np.nan), {}
    for task, start, end in zip(tasks, sizes, sizes[1:], strict=False):
        values[:, start:end], spread = task.scores(models, scale)
        if spread is not None:
            of_parts[start, end] = spread
    if not of_parts:
        return values, None
    counts, variances = (~np.isnan(values)).astype(np.uint32), np.full(shape, np.nan)
    for (start, end), spread in of_parts.items():
        counts[:, start:end], variances[:, start:end] = spread
    return values, Repeats.from_counts(counts, variances)


def _with_harness_columns(scores: Scores, tasks: list[JoinedTask]) -> Scores:
    sizes = [len(task.items.ids) for task in tasks]
    of_tasks = {
        "harness": [task.runs[0].harness for task in tasks],
        HARNESS_VERSION: [
            ", ".join(sorted({run.harness_version for run in task.runs} - {""})) for task in tasks
        ],
        "metric": [task.metric for task in tasks],
        "filter": [task.filter if task.filter not in (None, "none") else "" for task in tasks],
        SETTINGS: [task.settings() for task in tasks],
    }
    columns: dict[str, Any] = {
        name: np.repeat(np.array(values, dtype=object), sizes)
        for name, values in of_tasks.items()
        if any(values)
    }
    positions = pd.array([at for task in tasks for at in task.items.positions], dtype="Int64")
    own_ids = [own_id for task in tasks for own_id in task.items.own_ids]
    if not positions.isna().all() or not any(own_ids):
        columns["doc_id"] = positions if positions.isna().any() else positions.to_numpy(np.int64)
    if any(own_ids):
        columns["sample_id"] = np.array(own_ids, dtype=object)
    suites = [next((run.suite for run in task.runs if run.suite), "") for task in tasks]
    if any(suites):
        columns[GROUP] = np.repeat(np.array(suites, dtype=object), sizes)
    for name, hashed in ((PROMPTS, JoinedTask.prompts), (KEYS, JoinedTask.keys)):
        hashes = [text for task in tasks for text in hashed(task)]
        if any(hashes):
            columns[name] = np.array(hashes, dtype=object)
    return scores.changed(items=scores.items.assign(**columns))


def _in_parts(scores: Scores, tasks: list[JoinedTask]) -> Scores:
    """Return the scores with groups inside a task as tasks, and the task as their group."""
    parts = [part for task in tasks for part in task.parts()]
    if not any(parts):
        return scores
    of_items = scores.items["task"].astype(str).tolist()
    pairs = dict.fromkeys(zip(of_items, parts, strict=True))
    names, taken = {}, set(of_items)
    for task, part in pairs:
        name = f"{task}_{part}" if part else task
        names[task, part] = f"{task}/{part}" if part and name in taken else name
        taken.add(name)
    named = [names[pair] for pair in zip(of_items, parts, strict=True)]
    groups = scores.items.get(GROUP, [""] * len(parts))
    groups = [
        task if part else own for task, part, own in zip(of_items, parts, groups, strict=True)
    ]
    return scores.changed(items=scores.items.assign(**{"task": named, GROUP: groups}))


def _in_tasks_of(like: Scores, scores: Scores) -> Scores:
    """Return the scores with items in the tasks that they have there, if these are groups."""
    known = scores.items.index.intersection(like.items.index)
    theirs = like.items.loc[known]
    theirs = theirs[harness_tasks(theirs) != theirs["task"]]
    items = scores.items.copy()
    for name in ("task", GROUP) if len(theirs) else ():
        items[name] = theirs[name].reindex(items.index).fillna(items.get(name, ""))
    return scores.changed(items=items) if len(theirs) else scores


def _reply_kinds(task: JoinedTask) -> list[str]:
    """Return for each item which models' replies are cut, filtered or another model's, as JSON."""
    replies: list[dict[str, str]] = [{} for _ in task.items.ids]
    for taken in task.merged.taken:
        if "reply" in taken.run.columns:
            kinds = taken.run.columns["reply"][taken.rows]
            for at in np.flatnonzero(kinds != ""):
                replies[taken.columns[at]][taken.run.model] = str(kinds[at])
    return [json.dumps(kinds) if kinds else "" for kinds in replies]


def _named_as(like: Scores | None, scores: Scores) -> Scores:
    """Give equal documents the ids of other scores: by their own ids, or else by position.

    A run with only the second of two equal documents does not show that there is a first. An item
    of which it is unknown which document it is gets an id that no other scores have.
    """
    if like is None:
        return scores
    names, theirs = _texts(scores), _texts(like)
    of_each = Counter(theirs)
    often = {name for name, n in of_each.items() if n > 1} & set(names)
    if not often:
        return scores
    column = _address(like, scores)
    unknown = [""] * scores.n_items
    ours = unknown if column is None else scores.items[column].tolist()
    item_at = {} if column is None else dict(zip(zip(theirs, like.items[column], strict=True),
                                                 like.item_ids, strict=True))  # fmt: skip
    times = Counter(names)
    ids = []
    for name, address, item in zip(names, ours, scores.item_ids, strict=True):
        if name not in often:
            ids.append(item)
        elif pd.isna(address) or address == "":
            is_all = times[name] == of_each[name]  # then they are in order
            ids.append(item if is_all else f"{item} (one of {of_each[name]})")
        else:
            ids.append(item_at.get((name, address), f"{item} (none of {of_each[name]})"))
    if len(set(ids)) < len(ids):
        return scores
    return scores.changed(items=scores.items.set_axis(ids))


def _texts(scores: Scores) -> list[str]:
    """Return the id of each item without the number of an equal document."""
    return [re.sub(r"#\d+$", "", item) for item in scores.item_ids]


def _address(like: Scores, scores: Scores) -> str | None:
    """Return the column that tells equal documents of both tables apart, None if there is none."""
    there = [name for name in ("sample_id", "doc_id")
             if all(name in table.items for table in (like, scores))]  # fmt: skip
    if "sample_id" in there and not _ids_agree(like, scores):
        there.remove("sample_id")  # they number each run separately
    return there[0] if there else None


def _ids_agree(like: Scores, scores: Scores) -> bool:
    """Whether samples that have one id in both tables have one text."""
    ours, theirs = (
        {
            (text.rpartition("/")[0], own_id): text
            for text, own_id in zip(_texts(table), table.items["sample_id"], strict=True)
            if own_id
        }
        for table in (scores, like)
    )
    return all(theirs.get(own_id, text) == text for own_id, text in ours.items())


def _files(runs: Sequence[LogRun], tasks: list[JoinedTask]) -> "pd.DataFrame":
    counts: dict[int, tuple[str, int, str]] = {}
    copies = {id(run): task.copies(run) for task in tasks for run in task.runs}
    for task in tasks:
        for taken, gone in zip(task.merged.taken, task.merged.replaced, strict=True):
            why = f"{gone} rows are replaced by a newer run" if gone else ""
            counts[id(taken.run)] = (task.metric, len(taken.rows), why)
        for at in task.merged.set_aside:
            why = "a part of a run, with other settings than the whole run of the model"
            counts[id(task.runs[at])] = (task.metric, 0, why)
    # Runs whose metric was renamed are copies, in the same order.
    joined = {task.name: (task.filter, iter(task.runs)) for task in tasks}
    rows = []
    for logged in runs:
        chosen, of_task = joined[logged.task]
        run = next(of_task) if logged.filter in (None, chosen) else logged
        metric, n_taken, why = counts.get(id(run), ("", 0, "another filter is used"))
        if not why and n_taken < run.n_rows:
            why = f"{run.n_rows - n_taken} rows come from another folder, which agrees"
        rows.append(
            {
                "file": str(run.path),
                "model": run.model,
                "task": run.task,
                "filter": run.filter or "",
                "metric": metric,
                "time": run.stamp,
                "rows": run.n_rows,
                "taken": n_taken,
                "note": "; ".join(filter(None, [why, *run.notes, copies.get(id(run), "")])),
            }
        )
    return pd.DataFrame(rows)
