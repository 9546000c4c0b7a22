"""Option probabilities of all tasks, written model by model."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._files import reserve
from fewbench.readers.join.merge import Taken
from fewbench.readers.join.task import Task
from fewbench.readers.options import CHARACTERS, COMPARED, NO_ANSWER, compared, recomputed, softmax
from fewbench.readers.run import Run

IntArray = NDArray[np.intp]


@dataclass
class Checked:
    """What is known of the options of all tasks before probabilities are written.

    Parameters
    ----------
    lacking : str or None
        Why there can be none.
    n_options : list of ndarray of int, shape (items,)
        One array a task.
    misfits : list of Counter
        For each task, model → on how many items the log-likelihoods do not explain its score.
    """

    lacking: str | None = None
    n_options: list[IntArray] = field(default_factory=list)
    misfits: list[Counter[str]] = field(default_factory=list)


def check_options(tasks: Sequence[Task]) -> Checked:
    """See whether all tasks' runs say of each option how likely the model finds it."""
    found = Checked()
    for task in tasks:
        found.lacking = _check_task(task, found)
        if found.lacking:
            break
    return found


def write_probabilities(
    tasks: Sequence[Task], models: dict[str, int], checked: Checked, path: Path | None
) -> NDArray[np.float32]:
    """Return probabilities, shape (models, items, options), NaN where not run.

    With a path they are written there, as .npy, and memory holds one run of them at a time.
    """
    sizes = [len(task.items.ids) for task in tasks]
    shape = (len(models), sum(sizes), max(int(n.max()) for n in checked.n_options))
    out: NDArray[np.float32]
    if path is None:
        out = np.empty(shape, np.float32)
    else:
        out = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        reserve(path)
    by_model: dict[int, list[tuple[int, Task, Any]]] = {}
    for task, start in zip(tasks, np.cumsum([0, *sizes[:-1]]), strict=True):
        for taken in task.merged.taken:
            by_model.setdefault(models[taken.run.model], []).append((int(start), task, taken))
    for model in range(len(models)):
        row = np.full(shape[1:], np.nan, np.float32)
        for start, task, taken in by_model.get(model, []):
            chances = _chances(taken.run, task.metric)[taken.rows]
            columns = start + taken.columns
            row[columns, : chances.shape[1]] = chances
            # Options that this run never saw are padding, except in rows that are NaN throughout.
            row[columns, chances.shape[1] :] = 0 * chances[:, :1]
        out[model] = row
    return out


def _check_task(task: Task, found: Checked) -> str | None:
    n_items = len(task.items.ids)
    n_options = np.zeros(n_items, np.intp)
    has_finite = np.zeros(n_items, bool)
    width = max(
        (run.columns["options"].shape[1] for run in task.runs if run.has_options), default=0
    )
    lengths = np.full((n_items, width), np.nan)
    right = np.full(n_items, NO_ANSWER)
    misfits: Counter[str] = Counter()
    for taken in task.merged.taken:
        run = taken.run
        if not run.has_options:
            return (
                f"task {task.name!r} is not multiple choice or does not log log-likelihoods; to "
                "keep those of the others, read them without it (--skip-tasks)"
            )
        counts = run.columns["counts"][taken.rows]
        if ((n_options[taken.columns] > 0) & (n_options[taken.columns] != counts)).any():
            return f"models had different options in task {task.name!r}"
        n_options[taken.columns] = counts
        columns = {name: run.columns[name] for name in ("options", "counts", "right")}
        if _reordered(columns, taken, lengths, right):
            return f"models had their options in another order in task {task.name!r}"
        chances = softmax(compared(columns["options"], task.metric), columns["counts"])
        has_finite[taken.columns] |= np.isfinite(chances[taken.rows, 0])
        if task.metric in COMPARED:
            expected, score = recomputed(columns, task.metric), task.numbers(run)
            differ = np.isfinite(expected) & np.isin(score, (0.0, 1.0)) & (expected != score)
            if count := int(differ[taken.rows].sum()):
                misfits[run.model] += count
    found.n_options.append(n_options)
    found.misfits.append(misfits)
    if not has_finite.all():
        return f"some items of task {task.name!r} have no finite log-likelihoods"
    return None


def _reordered(
    columns: dict[str, Any], taken: Taken, lengths: NDArray[np.float64], right: IntArray
) -> bool:
    """Whether a run's options differ from those seen before, by length of text or right answer.

    `lengths`, shape (items, options), and `right`, shape (items,), take up what is new.
    """
    texts = columns["options"][taken.rows, :, CHARACTERS]
    seen = lengths[taken.columns, : texts.shape[1]]
    differ = (np.isfinite(seen) & np.isfinite(texts) & (seen != texts)).any()
    lengths[taken.columns, : texts.shape[1]] = np.where(np.isfinite(seen), seen, texts)
    answers, before = columns["right"][taken.rows], right[taken.columns]
    differ |= ((answers >= 0) & (before >= 0) & (answers != before)).any()
    right[taken.columns] = np.where(before >= 0, before, answers)
    return bool(differ)


def _chances(run: Run, metric: str) -> NDArray[np.float32]:
    return softmax(compared(run.columns["options"], metric), run.columns["counts"])
