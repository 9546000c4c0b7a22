"""Scores from the logs of lm-evaluation-harness: folders of samples_*.jsonl."""

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench.errors import ReaderError
from fewbench.readers._lm_eval.block import Block
from fewbench.readers._lm_eval.choice import Preference, require
from fewbench.readers._lm_eval.logs import Log, find_logs
from fewbench.readers._lm_eval.notes import notes_on
from fewbench.readers._lm_eval.rows import read_rows
from fewbench.readers._lm_eval.task import TaskAnswers, join_runs
from fewbench.readers.reading import Reading
from fewbench.scores import Scale, from_arrays


def read_lm_eval(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    metric: str | None = None,
    filter: str | None = None,
    scale: Scale | None = None,
) -> Reading:
    """Read what lm-eval wrote with `--log_samples --output_path`.

    An item is a document of a task, known by its hash, so that runs of a subset, in any order,
    join with whole runs. Where a folder has several runs of a model, each cell is from the
    newest. Models' names are those of the results files. Where all tasks are multiple choice
    the scores have option probabilities, by the quantity that the metric compares (see
    `fewbench.readers._lm_eval.options`).

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders; folders are searched through.
    metric, filter : str, optional
        Needed where a task has several: names in order of preference, separated by commas.
        For each task the first that it has is taken.
    scale : Scale, optional
        The scale of the metric, [0, 1] by default.

    Returns
    -------
    Reading
        The scores, with item columns `task` and `doc_id` (the position for `--samples`, empty
        where no run says it reliably), and notes on the runs.

    Raises
    ------
    ReaderError
        If a file is torn or of a version before 0.4.3, a metric or filter must be named, a
        value is not one number, or two folders disagree.
    ScoresError
        If values lie outside the scale.
    """
    scale = scale or Scale()
    logs = find_logs([paths] if isinstance(paths, str | os.PathLike) else paths)
    if not logs:
        raise ReaderError("no logs of lm-eval were named", hint="name files or folders")
    models = {name: at for at, name in enumerate(dict.fromkeys(log.model for log in logs))}
    by_task: dict[str, list[Log]] = defaultdict(list)
    for log in logs:
        by_task[log.task].append(log)
    filters, metrics = Preference("filter", filter), Preference("metric", metric)
    parts = []
    for task in sorted(by_task):
        part = _read_task(task, by_task[task], filters, metrics, models, scale)
        if part is not None:
            parts.append(part)
    require(filters, metrics)
    return _assemble(parts, logs, list(models), scale)


def _read_task(
    task: str,
    logs: list[Log],
    filters: Preference,
    metrics: Preference,
    models: dict[str, int],
    scale: Scale,
) -> TaskAnswers | None:
    """Read one task; None if its metric or filter must be asked for."""
    sheets = [read_rows(log) for log in logs]
    named = list(dict.fromkeys(name for sheet in sheets for name in sheet if name is not None))
    decided = not named or named == ["none"]
    chosen = named[0] if named == ["none"] else None if decided else filters.of(task, named)
    decided = decided or chosen is not None
    if decided:
        blocks = [_under(chosen, sheet, log) for sheet, log in zip(sheets, logs, strict=True)]
    else:
        blocks = [block for sheet in sheets for block in sheet.values()]
    metric = metrics.of(task, _candidates(task, blocks, metrics))
    if metric is None or not decided:
        return None
    return join_runs(task, metric, chosen, blocks, models, scale)


def _candidates(task: str, blocks: list[Block], metrics: Preference) -> list[str]:
    """Return the metrics that can be scores; those that cannot, if the user named one."""
    every = list(dict.fromkeys(name for block in blocks for name in block.values))
    if not every:
        raise ReaderError(f"{blocks[0].log.path}: task {task!r} has no metric")
    scalar = [name for name in every if any(name in block.numeric for block in blocks)]
    if not scalar:
        blocks[0].numbers(every[0])  # raises, and says what it is instead of a number
    return every if set(metrics.named) & set(every) else scalar


def _under(filtered: str | None, sheet: dict[str | None, Block], log: Log) -> Block:
    """Return the rows under a filter; before 0.4.7 a file had one and did not name it."""
    block = sheet.get(None) or sheet.get(filtered)
    if block is None:
        raise ReaderError(
            f"{log.path}: no rows of filter {filtered!r}, which other runs of task {log.task!r} "
            "have",
            hint=f"it has {', '.join(str(name) for name in sheet)}",
        )
    return block


def _assemble(
    parts: list[TaskAnswers], logs: list[Log], models: list[str], scale: Scale
) -> Reading:
    probabilities, lacking = _probabilities(parts)
    scores = from_arrays(
        np.concatenate([part.values for part in parts], axis=1),
        models=models,
        items=[item for part in parts for item in part.items.ids],
        tasks=[part.task for part in parts for _ in part.items.ids],
        probabilities=probabilities,
        n_options=None if probabilities is None else _n_options(parts),
        scale=scale,
    )
    positions = pd.array([at for part in parts for at in part.items.doc_ids], dtype="Int64")
    whole = positions if positions.isna().any() else positions.to_numpy(np.int64)
    scores = replace(scores, items=scores.items.assign(doc_id=whole))
    return Reading(scores, notes_on(parts, logs, models, lacking))


def _n_options(parts: list[TaskAnswers]) -> NDArray[np.intp]:
    return np.concatenate([part.n_options for part in parts])


def _probabilities(parts: list[TaskAnswers]) -> tuple[NDArray[np.float32] | None, str | None]:
    """Return all tasks' option probabilities, or None and why."""
    width = int(_n_options(parts).max())
    blocks = []
    for part in parts:
        if isinstance(part.probabilities, str):
            return None, part.probabilities
        missing = width - part.probabilities.shape[2]
        # Padding is 0 where there are probabilities and NaN where there are none.
        tail = np.repeat(0 * part.probabilities[:, :, :1], missing, axis=2)
        blocks.append(np.concatenate([part.probabilities, tail], axis=2))
    return np.concatenate(blocks, axis=1), None
