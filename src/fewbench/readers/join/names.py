"""Models of one name in several folders or with several settings, told apart by these."""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from fewbench.readers.run import Run


def told_apart(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, with MODEL@FOLDER for models that ran a task in several folders.

    Where a task was also run with several settings in a folder, the newest keeps that name and the
    others are MODEL@SETTINGS: so every model has all of its tasks.
    """
    folders = {model: _folder_labels(own) for model, own in _by_model(runs).items()}
    named = [replace(run, model=run.model + folders[run.model][run.group]) for run in runs]
    settings = {model: _other_settings(own) for model, own in _by_model(named).items()}
    return [
        replace(run, model=f"{run.model}@{run.variant.replace(', ', '+')}")
        if (run.task, run.variant) in settings[run.model]
        else run
        for run in named
    ]


def _by_model(runs: Sequence[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.model].append(run)
    return found


def _folder_labels(runs: list[Run]) -> dict[str, str]:
    """Return what to add to a model's name for each folder: where those of one task part."""
    of_task: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        of_task[run.task].add(run.group)
    apart = [folders for folders in of_task.values() if len(folders) > 1]
    parts = {run.group: run.group.strip(os.sep).split(os.sep) for run in runs}
    if not apart:
        return dict.fromkeys(parts, "")
    first = min(_shared([parts[one] for one in folders]) for folders in apart)
    for last in range(first + 1, max(map(len, parts.values())) + 1):
        labels = {folder: "/".join(own[first:last]) or "." for folder, own in parts.items()}
        if all(len({labels[one] for one in folders}) == len(folders) for folders in apart):
            break
    return {folder: f"@{label}" for folder, label in labels.items()}


def _shared(paths: list[list[str]]) -> int:
    """Return how many parts all paths begin with."""
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))


def _other_settings(runs: list[Run]) -> set[tuple[str, str]]:
    """Return task and settings of runs that another run of the task, with others, came after."""
    newest: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.stamp):
        newest[run.task] = run
    return {(run.task, run.variant) for run in runs if run.variant != newest[run.task].variant}
