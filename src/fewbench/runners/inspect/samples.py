"""Which sample of an Inspect task is which item of the scores; a benchmark of all samples.

Items of imported Inspect logs are named by a hash of what the sample says. A sample that moved, or
got another id, is found by that hash; a sample that says something else is refused.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench.errors import RunError
from fewbench.readers.harness import UNKNOWN, LogRun, Rows
from fewbench.readers.harnesses.inspect_logs.header import (
    groupings_of,
    metrics_of,
    notes_on_groups,
    scorer_of,
    task_settings_of,
)
from fewbench.readers.harnesses.inspect_logs.samples import answer_key, content_of, group_of
from fewbench.readers.join.table import Preference, join
from fewbench.readers.values import content_id, text_hash
from fewbench.scores import Benchmark, Scores
from fewbench.scores.benchmark import OWN_ID
from fewbench.scores.conditions import asked_elsewhere
from fewbench.scores.groups import harness_tasks
from fewbench.scores.table import TEXTS

HASHED = re.compile(r"(?:^|/)([0-9a-f]{16})(?:#(\d+))?$")
CHANGED = 0.05
"""Share of the samples whose text may differ, for example after a correction of the data set."""


def tasks_in(scores: Scores, name: str) -> tuple[str, ...]:
    """Return the scores' task that is an Inspect task, or its parts; RunError if there is none.

    Names with and without a package are the same. Parts are groups of its samples, or are named
    TASK_PART, as mmlu_pro_law is of mmlu_pro. Scores of one task belong to any task: its samples
    are compared.
    """
    tasks, short = scores.tasks, name.rpartition("/")[2]
    own_names = harness_tasks(scores.items)
    named = own_names.unique().tolist()
    if name in tasks and name not in named:
        return (name,)
    same = [own for own in named if own == name] or [
        own for own in named if own.rpartition("/")[2] == short
    ]
    if len(same) == 1:
        return tuple(scores.items["task"][own_names == same[0]].astype(str).unique().tolist())
    if parts := [task for task in tasks if task.startswith(f"{short}_")]:
        return tuple(parts)
    if not scores.n_models and OWN_ID in scores.items:
        raise RunError(
            f"the run in this folder has no task {name!r}; its tasks are {some(tasks)}",
            hint="run the same tasks to resume, or use another folder for others",
        )
    if len(tasks) == 1:
        return (tasks[0],)
    raise RunError(
        f"the scores have no items of task {name!r}; their tasks are {some(tasks)}",
        hint="run the tasks of the source models, under the same names",
    )


def with_ids(samples: Sequence[Any]) -> list[Any]:
    """Return samples with ids, numbered from 1 where they have none, as Inspect does.

    Raises RunError if two samples have one id.
    """
    by_id: dict[str, Any] = {}
    for number, sample in enumerate(samples, start=1):
        named = sample if sample.id is not None else sample.model_copy(update={"id": number})
        if str(named.id) in by_id:
            raise RunError(f"two samples have the id {named.id!r}", hint="give each its own id")
        by_id[str(named.id)] = named
    return list(by_id.values())


def match_samples(
    scores: Scores, tasks: Sequence[str], samples: Sequence[Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the sample of each item of a task of Inspect, and notes on what cannot be compared.

    Parameters
    ----------
    scores : Scores
        Scores of the source models.
    tasks : sequence of str
        One of their tasks, or those that are parts of the task of Inspect; see `tasks_in`.
    samples : sequence of Sample
        The samples of the Inspect task, with ids.

    Raises
    ------
    RunError
        If an item has no sample, or its sample says something else than in the source runs.
    """
    task = tasks[0] if len(tasks) == 1 else f"{tasks[0]} and {len(tasks) - 1} more"
    rows = scores.items[scores.items["task"].astype(str).isin(tasks)]
    own_ids = rows[OWN_ID].astype(str).tolist() if OWN_ID in rows else [""] * len(rows)
    own_of = dict(zip(rows.index.astype(str).tolist(), own_ids, strict=True))
    harness = set(rows["harness"]) if "harness" in rows else set()
    foreign = harness - {"inspect", ""}
    by_id = {str(sample.id): sample for sample in samples}
    if harness and not foreign and all(HASHED.search(item) for item in own_of):
        return _by_content(task, own_of, by_id, has_sources=bool(scores.n_models))
    task_of = dict(zip(own_of, rows["task"].astype(str), strict=True))
    of_items, notes = _by_id(task, own_of, task_of, by_id, has_sources=bool(scores.n_models))
    notes = _check_texts(rows, of_items) if TEXTS in rows else notes
    return of_items, [*notes, *(asked_elsewhere(scores, "inspect") if scores.n_models else ())]


def benchmark_of(
    begun: Sequence[tuple[Any, Sequence[Any]]], metric: str | Mapping[str, str] | None = None
) -> tuple[Benchmark, list[str]]:
    """Return the samples of tasks that have begun, as an import of logs of all of them names them.

    With notes on metrics that were not named, and on groups that are not tasks.

    Parameters
    ----------
    begun : sequence of (header, data set)
        What a log of a task says at its start, and its samples. Several of one task, for several
        models, count once.
    metric : str or mapping of task to str, optional
        Comma-separated metrics in order of preference; by default the first of each task.

    Raises
    ------
    ReaderError
        If a metric is undecided.
    RunError
        If two samples of a task have one id, or the values of a scorer are not known.
    """
    named = ",".join(dict.fromkeys(metric.values())) if isinstance(metric, Mapping) else metric
    tasks = {header.eval.task: (header, dataset) for header, dataset in begun}
    runs = [_run_of(*task, (named or "").split(",")) for task in tasks.values()]
    benchmark, metrics = join(runs, metric=named).scores.benchmark, Preference("metric", named)
    used = dict(zip(harness_tasks(benchmark.items), benchmark.items["metric"], strict=True))
    for run in runs:  # the notes name what the join used
        metrics.name_for(run.task, [used[run.task], *run.metrics], first=True)
    notes = [
        f"task {task!r}: {note}"
        for task, (header, _) in tasks.items()
        for note in notes_on_groups(header)
    ]
    return benchmark, [*metrics.notes, *notes]


def _run_of(header: Any, dataset: Sequence[Any], named: Sequence[str]) -> LogRun:
    """Return the samples of a task as a run that scored nothing on all of them."""
    task = header.eval.task
    metrics = metrics_of(header)
    if open_ := [name for name in metrics if name.endswith("*")]:
        metrics = [name for name in metrics if name not in open_]
        metrics += [name.strip() for name in named if fnmatchcase(name.strip(), open_[0])]
    if not metrics:
        raise RunError(
            f"task {task!r} has no scorer, or one whose values are not known before it runs",
            hint="name the value with --metric, as SCORER.KEY (in Python metric=…)",
        )
    rows, group_keys = Rows(Path(task), "sample"), [*groupings_of(header)]
    is_ordered = not getattr(dataset, "shuffled", False)
    for at, sample in enumerate(with_ids(dataset)):
        answer, choices = answer_key(sample)
        rows.append(
            content_id(*content_of(sample)),
            dict.fromkeys(metrics, 0.0),
            at + 1,
            position=at if is_ordered else UNKNOWN,
            own_id=str(sample.id),
            answer=answer,
            choices=choices,
            part=group_of(sample, group_keys),
        )
    scorers = {name: scorer_of(header, name) for name in metrics}
    return rows.run(
        "target",
        task,
        total=len(rows),
        harness="inspect",
        version=str(header.eval.task_version),
        task_settings=task_settings_of(header),
        scorers={name: text for name, text in scorers.items() if text is not None},
        harness_version=str(header.eval.packages.get("inspect_ai", "")),
    )


def _by_content(
    task: str, own_of: Mapping[str, str], by_id: Mapping[str, Any], has_sources: bool
) -> tuple[dict[str, Any], list[str]]:
    same: dict[str, dict[str, Any]] = defaultdict(dict)
    for own_id, sample in by_id.items():
        same[content_id(*content_of(sample))][own_id] = sample
    of_items: dict[str, Any] = {}
    changed: list[str] = []
    gone: list[str] = []
    media: list[str] = []
    for item, own_id in own_of.items():
        match = HASHED.search(item)
        assert match is not None
        alike = same.get(match[1], {})
        before = int(match[2] or 1) - 1  # of equal samples
        if own_id in alike:
            of_items[item] = alike[own_id]
        elif before < len(alike):
            of_items[item] = list(alike.values())[before]
        elif own_id in by_id and _has_media(by_id[own_id]):
            of_items[item] = by_id[own_id]
            media.append(own_id)
        else:
            (changed if own_id in by_id else gone).append(own_id or item)
    ran = {str(sample.id) for sample in of_items.values()}
    new = (
        []
        if has_sources
        else [sample for sample in by_id if sample not in ran and sample not in changed]
    )
    changes = "; ".join(
        f"{counted(len(ids), 'sample')} {what}: {some(ids)}"
        for what, ids in (("changed", changed), ("missing", gone), ("added", new))
        if ids
    )
    if changes:
        if not has_sources:
            raise RunError(
                f"task {task!r} has changed since this run began: {changes} (of {len(own_of)})",
                hint="run the task with the data and arguments that it had, or run it in another "
                "folder",
            )
        raise RunError(
            f"task {task!r} is not the task that the source models ran: {changes} (of "
            f"{len(own_of)})",
            hint="run the same version of the task and its data, with the same task arguments; or "
            "remove these items from the scores",
        )
    if not media:
        return of_items, []
    samples = f"{counted(len(media), 'sample')} of task {task!r} with images or other media"
    return of_items, [f"{samples} are compared with the sources by id only"]


def _by_id(
    task: str,
    own_of: Mapping[str, str],
    task_of: Mapping[str, str],
    by_id: Mapping[str, Any],
    has_sources: bool,
) -> tuple[dict[str, Any], list[str]]:
    of_items, unknown = {}, []
    for item, own_id in own_of.items():
        for name in (own_id, item, item.removeprefix(f"{task_of[item]}/")):
            if name in by_id:
                of_items[item] = by_id[name]
                break
        else:
            unknown.append(item)
    if unknown:
        raise RunError(
            f"{counted(len(unknown), 'item')} of {len(own_of)} not found in task {task!r}: "
            f"{some(unknown)}; its samples are {some(list(by_id))}",
            hint="the ids of items must be those of the samples",
        )
    times = Counter(str(sample.id) for sample in of_items.values())
    if twice := [own_id for own_id, n in times.items() if n > 1]:  # they are numbered by part
        raise RunError(
            f"{counted(len(twice), 'sample')} of task {task!r} would be several items each: "
            f"{some(twice)}",
            hint="give the samples the ids of the items",
        )
    if not has_sources:
        return of_items, []
    note = f"samples of task {task!r} are compared with the sources by id only"
    return of_items, [f"{note}: the scores do not record what the samples say"]


def _check_texts(rows: "pd.DataFrame", of_items: Mapping[str, Any]) -> list[str]:
    """Return a note on samples with a different text; RunError if there are more than a few."""
    known = rows[TEXTS].astype(str).to_dict()
    differ = [
        item
        for item, sample in of_items.items()
        if isinstance(sample.input, str)
        and known[item] != text_hash(known[item].partition("=")[0], sample.input)
    ]
    if not differ:
        return []
    text = (
        f"{len(differ):,} of {counted(len(of_items), 'sample')} have a different text than "
        f"the source models saw: {some(differ)}"
    )
    if len(differ) > CHANGED * len(of_items):
        raise RunError(text, hint="run the task and the data that the source models ran")
    return [text]


def _has_media(sample: Any) -> bool:
    if isinstance(sample.input, str):
        return False
    return any(
        getattr(part, "text", None) is None
        for message in sample.input
        if not isinstance(message.content, str)
        for part in message.content
    )
