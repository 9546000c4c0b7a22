"""Models of one name in several folders, told apart by the folders' names."""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from fewbench.readers.run import Run


def told_apart(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, with MODEL@FOLDER for models that are in several folders."""
    groups: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        groups[run.model][run.group] = None
    labels = {model: _labels(list(folders)) for model, folders in groups.items()}
    return [replace(run, model=run.model + labels[run.model][run.group]) for run in runs]


def _labels(folders: list[str]) -> dict[str, str]:
    """Return what to add to the model's name for each folder.

    Examples
    --------
    >>> _labels(["/logs/june/org__a", "/logs/july/org__a"])
    {'/logs/june/org__a': '@june', '/logs/july/org__a': '@july'}
    """
    if len(folders) == 1:
        return {folders[0]: ""}
    parts = {folder: folder.split(os.sep) for folder in folders}
    shared = 0
    while len({tuple(own[: shared + 1]) for own in parts.values()}) == 1:
        shared += 1
    rest = {folder: own[shared:] for folder, own in parts.items()}
    last = {own[-1] if own else "" for own in rest.values()}
    if len(last) == 1 and min(len(own) for own in rest.values()) > 1:
        rest = {folder: own[:-1] for folder, own in rest.items()}
    return {folder: "@" + "/".join(own or ["."]) for folder, own in rest.items()}
