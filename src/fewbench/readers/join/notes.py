"""Notes on the runs that were read, most important first."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from fewbench._names import counted, some
from fewbench._types import FloatArray, IntArray
from fewbench.readers.harness import MIXED_UP, LogRun
from fewbench.readers.join.task import Checked, JoinedTask
from fewbench.scores.conditions import SCORING, TEMPLATE, Settings, shown, values_of_settings

MEETING = 0.1  # least share of common items for models to count as comparable
MOST = 5  # notes of one kind
KNOWN = ("task version", TEMPLATE)  # notes on versions and on prompts say it


def notes_on(
    tasks: list[JoinedTask],
    values: FloatArray,
    models: dict[str, int],
    options: Checked,
    accepted: Iterable[str] = (),
    are_sources: bool = True,
) -> tuple[str, ...]:
    """Return the notes on a reading; `accepted` are its `scoring_differences`.

    Models that are not `are_sources` need no option probabilities.
    """
    runs = [run for task in tasks for run in task.runs]
    notes = [
        *accepted,
        *_taken(tasks),
        *_cut(
            f"model {run.model!r}, task {task.name!r}: {gone} of {run.n_rows} items of "
            f"{run.path.name} come from a newer run instead"
            for task in tasks
            for run, gone in zip(task.runs, task.merged.replaced, strict=True)
            if gone
        ),
        *_cut(
            f"model {task.runs[at].model!r}, task {task.name!r}: {task.runs[at].path.name} is not "
            f"used, a run of {task.runs[at].n_rows} items with other settings than those of the "
            "whole run"
            for task in tasks
            for at in task.merged.set_aside
        ),
        *_cut(_parts(tasks)),
        *_cut(_not_run(tasks, values, list(models))),
        *_of_files(tasks),
        *_settings(runs),
        *_cut(_task_settings(tasks, scoring=False)),
        *_versions(tasks),
        *_cut(_strangers(tasks, values, list(models))),
        *_cut(_by_order(tasks)),
        *_prompts(tasks, models),
        *_cut(_positions(tasks)),
    ]
    if options.lacking is None:
        notes += _cut(_misfits(tasks, options))
    elif are_sources:
        notes.append(f"no option probabilities are kept: {options.lacking}")
    return tuple(notes)


def _cut(notes: Iterable[str]) -> Iterator[str]:
    listed = list(notes)
    yield from listed[:MOST]
    if len(listed) > MOST:
        yield f"{len(listed) - MOST} more notes of this kind; the report on files has all of them"


def _taken(tasks: list[JoinedTask]) -> Iterator[str]:
    named: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for task in tasks:
        named[task.metric, task.filter].append(task.name)
    for (metric, filtered), names in named.items():
        under = f", filter {filtered!r}," if filtered not in (None, "none") else ""
        yield f"metric {metric!r}{under} of {counted(len(names), 'task')}: {some(names)}"
    for task in tasks:
        if task.derived:
            yield (
                f"task {task.name!r}: {task.metric!r} is computed from log-likelihoods in "
                f"{counted(task.derived, 'run')} without it"
            )


def _parts(tasks: list[JoinedTask]) -> Iterator[str]:
    for task in tasks:
        for run in task.runs:
            if run.ran is not None and run.ran != run.n_items:
                yield (
                    f"{run.path} has {counted(run.n_items, 'document')}, but its results file says "
                    f"{run.ran}: an incomplete copy, or a run with --samples"
                )
            elif run.total is not None and run.n_items < run.total:
                yield (
                    f"model {run.model!r} ran {run.n_items} of {run.total} items of task "
                    f"{task.name!r} ({run.path.name})"
                )


def _not_run(tasks: list[JoinedTask], values: FloatArray, models: list[str]) -> Iterator[str]:
    starts = np.cumsum([0, *(len(task.items.ids) for task in tasks)])
    ran = [np.asarray((~np.isnan(values[:, a:b])).any(axis=1)) for a, b in pairwise(starts)]
    for at, model in enumerate(models):
        lacking = [task.name for task, there in zip(tasks, ran, strict=True) if not there[at]]
        if lacking:
            yield f"model {model!r} did not run {counted(len(lacking), 'task')}: {some(lacking)}"


def _of_files(tasks: list[JoinedTask]) -> Iterator[str]:
    by_note: dict[str, dict[str, None]] = defaultdict(dict)
    for task in tasks:
        for run in task.runs:
            for note in filter(None, (*run.notes, task.copies(run))):
                by_note[note][str(run.path)] = None
    yield from _cut(f"{some(paths)}: {note}" for note, paths in by_note.items())


def _settings(runs: list[LogRun]) -> Iterator[str]:
    settings: dict[str, set[tuple[tuple[str, str], ...]]] = defaultdict(set)
    for run in runs:
        settings[run.model].add(run.settings)
    differing = {}
    for model, several in settings.items():
        times = Counter(pair for of_run in several if of_run for pair in of_run)
        stated = sum(bool(of_run) for of_run in several)
        if names := sorted({key for (key, _), n in times.items() if n < stated}):
            differing[model] = names
    yield from _cut(
        f"runs of model {model!r} have different model arguments ({', '.join(names)}) and count as "
        "one model"
        for model, names in differing.items()
    )


def scoring_differences(tasks: list[JoinedTask], models: dict[str, int]) -> list[str]:
    """Say which models were scored by other keys, filters, metrics and the like than the others.

    Only models of one harness are compared: each harness says it in its own words.
    """
    differences = list(_task_settings(tasks, scoring=True))
    for task in tasks:
        for what, other in task.other_keys(models).items():
            if other:
                differences.append(f"{_on_items(other)} of task {task.name!r} have {what}")
    more = len(differences) - MOST
    return differences if more <= 0 else [*differences[:MOST], f"and {more} more"]


def _task_settings(tasks: list[JoinedTask], *, scoring: bool) -> Iterator[str]:
    groups: dict[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]], list[str]] = defaultdict(list)
    for task in tasks:
        stated: dict[str, list[tuple[str, Settings]]] = defaultdict(list)
        for run in (taken.run for taken in task.merged.taken if len(taken.rows)):
            if run.task_settings:
                settings = {name: [value] for name, value in task.settings_of(run).items()}
                stated[run.harness if scoring else ""].append((run.model, settings))
        for of_harness in stated.values():
            for name, models in values_of_settings(of_harness).items():
                if name.startswith(SCORING) == scoring and len(models) > 1 and name not in KNOWN:
                    groups[shown(name), tuple((v, tuple(m)) for v, m in models.items())].append(
                        task.name
                    )
    for (name, listed), names in groups.items():
        listing = "; ".join(f"{value}: {some(models)}" for value, models in listed)
        yield f"{name} of task {some(names)} differs between models ({listing})"


def _versions(tasks: list[JoinedTask]) -> Iterator[str]:
    for task in tasks:
        versions: dict[str, dict[str, None]] = defaultdict(dict)
        for run in task.runs:
            if run.version:
                versions[run.version][run.model] = None
        if len(versions) > 1:
            listed = "; ".join(f"{name}: {some(models)}" for name, models in versions.items())
            yield f"task {task.name!r} was run in {len(versions)} versions ({listed})"
        yield from _other_items(task)


def _other_items(task: JoinedTask) -> Iterator[str]:
    """Report models whose whole runs have other items than most."""
    models: dict[bytes, dict[str, None]] = defaultdict(dict)
    items: dict[bytes, IntArray] = {}
    digests = {
        name: np.unique(task.items.columns[name])
        for name in {run.layout for run in task.runs if run.is_whole}
    }
    for run in task.runs:
        if run.is_whole:
            digest = hashlib.sha256(digests[run.layout].tobytes()).digest()
            items[digest] = digests[run.layout]
            models[digest][run.model] = None
    usual = max(models, key=lambda digest: len(models[digest]), default=b"")
    for digest, names in models.items():
        if digest != usual:
            more = len(np.setdiff1d(items[digest], items[usual]))
            less = len(np.setdiff1d(items[usual], items[digest]))
            yield (
                f"task {task.name!r}: whole runs of {some(names)} have {counted(more, 'item')} "
                f"that most models do not have, and lack {less}: a different version of the task"
            )


def _strangers(tasks: list[JoinedTask], values: FloatArray, models: list[str]) -> Iterator[str]:
    """Report groups of models with (nearly) no items of a task in common."""
    starts = np.cumsum([0, *(len(task.items.ids) for task in tasks)])
    for task, (start, end) in zip(tasks, pairwise(starts), strict=True):
        ran = ~np.isnan(values[:, start:end])
        if ran.all():
            continue
        patterns, which = np.unique(ran, axis=0, return_inverse=True)
        some_ran = np.asarray(patterns.any(axis=1))
        sizes = patterns.sum(axis=1)
        shared = patterns.astype(np.float32) @ patterns.T.astype(np.float32)
        linked = shared >= MEETING * np.minimum.outer(sizes, sizes)
        linked &= some_ran[:, None] & some_ran
        from scipy.sparse.csgraph import connected_components

        _, group = connected_components(linked, directed=False)
        named: dict[int, list[str]] = defaultdict(list)
        for model, pattern in zip(models, which.ravel().tolist(), strict=True):
            if some_ran[pattern]:
                named[int(group[pattern])].append(model)
        if len(named) > 1:
            listed = "; ".join(some(names, 2) for names in sorted(named.values(), key=len))
            yield (
                f"task {task.name!r}: {len(named)} groups of models have (nearly) no items in "
                f"common ({listed}): the versions differ, or items are identified by a prompt; "
                "pass --key FIELD with a field that identifies items in all logs"
            )


def _by_order(tasks: list[JoinedTask]) -> Iterator[str]:
    for task in tasks:
        if task.items.by_order:
            yield (
                f"task {task.name!r}: {counted(task.items.by_order, 'item')} have the text of "
                "other items, and the logs do not tell which is which, so they are joined by their "
                "order; pass --key FIELD with a field that is different for every item"
            )


def _prompts(tasks: list[JoinedTask], models: dict[str, int]) -> Iterator[str]:
    other: Counter[str] = sum((task.other_prompts(models) for task in tasks), Counter())
    if other:
        yield (
            "not all models had the same prompts (few-shot examples, chat template or system "
            "instruction differ); different from most: " + _on_items(other)
        )


def _on_items(other: Counter[str]) -> str:
    listed = ", ".join(f"{model!r} on {counted(n, 'item')}" for model, n in other.most_common(5))
    return listed + (f" and {len(other) - 5} more models" if len(other) > 5 else "")


def _positions(tasks: list[JoinedTask]) -> Iterator[str]:
    for task in tasks:
        if task.items.moved:
            yield (
                f"task {task.name!r}: {counted(task.items.moved, 'item')} have different positions "
                "in different runs, so their doc_id is empty"
            )
        unknown = sum(at is None for at in task.items.positions) - task.items.moved
        if unknown and any((run.columns["position"] == MIXED_UP).any() for run in task.runs):
            yield (
                f"task {task.name!r}: the positions of {counted(unknown, 'item')} are unknown, "
                "as runs with --samples out of order log wrong ones; add a whole run"
            )


def _misfits(tasks: list[JoinedTask], options: Checked) -> Iterator[str]:
    for task, misfits in zip(tasks, options.misfits, strict=True):
        total = sum(misfits.values())
        if total:
            yield (
                f"task {task.name!r}: log-likelihoods do not explain {counted(total, 'score')} of "
                f"{task.metric!r} (models {some(misfits)}); their option probabilities are doubtful"
            )
