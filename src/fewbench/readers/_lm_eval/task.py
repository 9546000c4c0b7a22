"""All models' answers to one task."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import ReaderError
from fewbench.readers._lm_eval.block import Block
from fewbench.readers._lm_eval.items import Items, name_items
from fewbench.readers._lm_eval.merge import Cells, merge
from fewbench.readers._lm_eval.options import compared, softmax
from fewbench.scores import Scale


@dataclass(frozen=True)
class TaskAnswers:
    """One task's part of the table.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        On the user's scale; NaN where not run.
    probabilities : ndarray of float32, shape (models, items, options), or str
        NaN where not run, 0 for options that an item lacks; or why there are none.
    n_options : ndarray of int, shape (items,)
        All 0 without probabilities.
    replaced : Counter
        Block → how many of its rows gave way to a newer run.
    misfits : Counter
        Model → on how many items its most probable option does not explain its score.
    other_prompt : Counter
        Model → on how many items it saw another prompt than most models.
    """

    task: str
    metric: str
    filter: str | None
    blocks: list[Block]
    items: Items
    values: NDArray[np.float64]
    probabilities: NDArray[np.float32] | str
    n_options: NDArray[np.intp]
    replaced: Counter[int]
    misfits: Counter[str]
    other_prompt: Counter[str]


def join_runs(
    task: str,
    metric: str,
    filtered: str | None,
    blocks: list[Block],
    models: dict[str, int],
    scale: Scale,
) -> TaskAnswers:
    """Join the runs of a task, each block being one run of one of the models.

    Raises
    ------
    ReaderError
        If a value is not one number, lower is better and the scale does not say so, or two
        folders disagree.
    """
    numbers = []
    for block in blocks:
        _check_direction(block, metric, scale)
        numbers.append(block.numbers(metric))
    items = name_items(task, blocks)
    cells = merge(blocks, numbers, items, models)
    values = np.full(cells.block.shape, np.nan)
    for at, block in enumerate(blocks):
        columns, rows = cells.of(at, models[block.log.model])
        values[models[block.log.model], columns] = numbers[at][rows]
    misfits: Counter[str] = Counter()
    probabilities, n_options = _options(task, metric, blocks, cells, models, values, misfits)
    other = _other_prompts(blocks, cells, models)
    return TaskAnswers(
        task,
        metric,
        filtered,
        blocks,
        items,
        values,
        probabilities,
        n_options,
        cells.replaced,
        misfits,
        other,
    )


def _check_direction(block: Block, metric: str, scale: Scale) -> None:
    results = block.log.results
    higher = results.higher_is_better(block.log.task, metric) if results else None
    if results is None or higher is None or higher != scale.lower_is_better:
        return
    raise ReaderError(
        f"{results.path}: for metric {metric!r} of task {block.log.task!r} "
        f"{'higher' if higher else 'lower'} is better, and the scale says otherwise",
        hint="leave out --lower-is-better, or read such tasks apart"
        if higher
        else "add --lower-is-better, with --range LOW,HIGH where it is not 0,1",
    )


def _options(
    task: str,
    metric: str,
    blocks: list[Block],
    cells: Cells,
    models: dict[str, int],
    values: NDArray[np.float64],
    misfits: Counter[str],
) -> tuple[NDArray[np.float32] | str, NDArray[np.intp]]:
    """Return the option probabilities, or why there are none, and the numbers of options."""
    n_options = np.zeros(values.shape[1], np.intp)
    found = []
    for at, block in enumerate(blocks):
        columns, rows = cells.of(at, models[block.log.model])
        if block.options is None:
            return f"task {task!r} is not multiple choice", 0 * n_options
        counts = np.array([len(table) for table, _ in block.options])
        if ((n_options[columns] > 0) & (n_options[columns] != counts[rows])).any():
            return f"models had different options in task {task!r}", 0 * n_options
        n_options[columns] = counts[rows]
        tables = np.full((len(block), counts.max(), 4), np.nan)
        for row, (table, _) in enumerate(block.options):
            tables[row, : len(table)] = table
        worth = compared(tables, metric)
        found.append((columns, rows, softmax(worth, counts)))
        right = np.array([answer for _, answer in block.options])[rows]
        best = np.where(np.isnan(worth), -np.inf, worth)[rows].argmax(axis=1)
        score = values[models[block.log.model], columns]
        checked = (right >= 0) & np.isin(score, (0.0, 1.0)) & metric.startswith("acc")
        misfits[block.log.model] += int((checked & ((best == right) != score)).sum())
    out = np.full((*values.shape, n_options.max()), np.nan, np.float32)
    for block, (columns, rows, chances) in zip(blocks, found, strict=True):
        out[models[block.log.model], columns, : chances.shape[1]] = chances[rows]
        # Options that this block never saw are padding, except in rows that are NaN throughout.
        out[models[block.log.model], columns, chances.shape[1] :] = 0 * chances[rows, :1]
    if np.isnan(out[:, :, 0]).all(axis=0).any():
        return f"some items of task {task!r} have no finite log-likelihoods", 0 * n_options
    return out, n_options


def _other_prompts(blocks: list[Block], cells: Cells, models: dict[str, int]) -> Counter[str]:
    """Count each model's items whose prompt is not the most frequent; ties go to the first."""
    numbers: dict[str, int] = {}
    prompts = np.full(cells.block.shape, -1)
    for at, block in enumerate(blocks):
        columns, rows = cells.of(at, models[block.log.model])
        mine = [
            numbers.setdefault(prompt, len(numbers)) if prompt else -1 for prompt in block.prompts
        ]
        prompts[models[block.log.model], columns] = np.array(mine)[rows]
    other: Counter[str] = Counter()
    names = list(models)
    known = np.where(prompts < 0, prompts.max(axis=0), prompts)
    for column in np.flatnonzero(known.min(axis=0) != known.max(axis=0)):
        seen = prompts[:, column]
        usual = Counter(seen[seen >= 0].tolist()).most_common(1)[0][0]
        other.update(names[at] for at in np.flatnonzero((seen >= 0) & (seen != usual)))
    return other
