"""Models of one name in several folders or with several settings, told apart by these."""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from fewbench.readers.run import Run

Origin = tuple[str, str]  # group (the folder) and variant (the settings)


def told_apart(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, with MODEL@FOLDER for models with several runs of a task in folders apart.

    Models of which no task was run twice keep their names.
    """
    of_task: dict[tuple[str, str], dict[Origin, None]] = defaultdict(dict)
    origins: dict[str, dict[Origin, None]] = defaultdict(dict)
    for run in runs:
        of_task[run.model, run.task][run.group, run.variant] = None
        origins[run.model][run.group, run.variant] = None
    twice = {model for (model, _), several in of_task.items() if len(several) > 1}
    labels = {model: _labels(list(origins[model])) for model in twice}
    return [
        replace(run, model=run.model + labels[run.model][run.group, run.variant])
        if run.model in twice
        else run
        for run in runs
    ]


def _labels(origins: list[Origin]) -> dict[Origin, str]:
    """Return what to add to the model's name: the shortest end of the folder that tells, settings.

    Examples
    --------
    >>> _labels([("/logs/june/org__a", ""), ("/logs/july/org__a", "")])
    {('/logs/june/org__a', ''): '@june', ('/logs/july/org__a', ''): '@july'}
    >>> _labels([("/logs", "shots 0"), ("/logs", "shots 5")])
    {('/logs', 'shots 0'): '@shots 0', ('/logs', 'shots 5'): '@shots 5'}
    """
    folders = _short_ends([folder for folder, _ in origins])
    variants = len({variant for _, variant in origins}) > 1
    found = {}
    for folder, variant in origins:
        told = [folders[folder], variant if variants else ""]
        found[folder, variant] = "@" + "@".join(part for part in told if part)
    return found


def _short_ends(folders: list[str]) -> dict[str, str]:
    parts = {folder: folder.strip(os.sep).split(os.sep) for folder in folders}
    if len(parts) == 1:
        return dict.fromkeys(folders, "")
    while all(parts.values()) and len({own[-1] for own in parts.values()}) == 1:
        parts = {folder: own[:-1] for folder, own in parts.items()}
    longest = max(map(len, parts.values()))
    for length in range(1, longest + 1):
        ends = {folder: os.sep.join(own[-length:]) or "." for folder, own in parts.items()}
        if len(set(ends.values())) == len(ends):
            return ends
    return {folder: folder for folder in folders}
