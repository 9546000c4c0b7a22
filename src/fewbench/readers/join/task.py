"""All models' answers to one task: which items, and which rows of which runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import ReaderError
from fewbench.readers.join.items import Items, name_items
from fewbench.readers.join.merge import Merged, SameModel, merge
from fewbench.readers.options import COMPARED, recomputed
from fewbench.readers.run import Run
from fewbench.scores import Scale


@dataclass(frozen=True)
class Task:
    """One task's part of the table.

    Parameters
    ----------
    runs : list of Run
        Those under the filter that is taken.
    derived : int
        Of how many runs the metric is computed from log-likelihoods, as it is not logged.
    """

    name: str
    metric: str
    filter: str | None
    runs: list[Run]
    items: Items
    merged: Merged
    derived: int

    def numbers(self, run: Run) -> NDArray[np.float64]:
        """Return the metric of every row of a run."""
        return metric_of(run, self.metric)

    def fill(self, values: NDArray[np.float64], models: dict[str, int]) -> None:
        """Write the scores into this task's part of the table, shape (models, items)."""
        for taken in self.merged.taken:
            numbers = self.numbers(taken.run)
            values[models[taken.run.model], taken.columns] = numbers[taken.rows]

    def other_prompts(self, models: dict[str, int]) -> Counter[str]:
        """Count each model's items whose prompt is not the most frequent; ties go to the first."""
        prompts = np.full((len(models), len(self.items.ids)), -1, np.int32)
        numbers: dict[int, int] = {0: -1}
        for taken in self.merged.taken:
            seen = [
                numbers.setdefault(prompt, len(numbers) - 1)
                for prompt in taken.run.columns["prompt"].tolist()
            ]
            prompts[models[taken.run.model], taken.columns] = np.array(seen)[taken.rows]
        other: Counter[str] = Counter()
        names = list(models)
        known = np.where(prompts < 0, prompts.max(axis=0), prompts)
        for column in np.flatnonzero(known.min(axis=0) != known.max(axis=0)):
            seen_here = prompts[:, column]
            usual = Counter(seen_here[seen_here >= 0].tolist()).most_common(1)[0][0]
            differs = (seen_here >= 0) & (seen_here != usual)
            other.update(names[at] for at in np.flatnonzero(differs))
        return other


def join_task(
    name: str,
    metric: str,
    filtered: str | None,
    runs: Sequence[Run],
    scale: Scale,
    same_model: SameModel,
) -> Task:
    """Join the runs of a task.

    Raises
    ------
    ReaderError
        If a value is not one number, lower is better and the scale does not say so, or two
        groups of runs disagree.
    """
    for run in runs:
        _check_direction(run, metric, scale)
        metric_of(run, metric)  # raises if it can be neither read nor computed
    items = name_items(name, runs)
    merged = merge(runs, items, lambda run: metric_of(run, metric), same_model)
    derived = sum(not run.has(metric) for run in runs)
    return Task(name, metric, filtered, list(runs), items, merged, derived)


def metric_of(run: Run, metric: str) -> NDArray[np.float64]:
    """Return a metric of every row: as logged, else as the log-likelihoods give it."""
    if run.has(metric) or metric not in COMPARED or not run.has_options:
        return run.numbers(metric)
    found = recomputed(run.columns, metric)
    lacking = np.flatnonzero(np.isnan(found))
    if len(lacking):
        place = int(run.columns["place"][lacking[0]])
        raise ReaderError(
            f"{run.path}, {run.place_word} {place}: metric {metric!r} is not logged, and does not "
            "follow from the log-likelihoods: the right option or one of them is not known",
            hint=f"the task has {', '.join(run.metrics)}",
        )
    return found


def _check_direction(run: Run, metric: str, scale: Scale) -> None:
    higher = run.higher_is_better.get(metric)
    if higher is None or higher != scale.lower_is_better:
        return
    raise ReaderError(
        f"{run.path}: for metric {metric!r} of task {run.task!r} "
        f"{'higher' if higher else 'lower'} is better, and the scale says otherwise",
        hint="leave out --lower-is-better, or read such tasks apart"
        if higher
        else "add --lower-is-better, with --range LOW,HIGH where it is not 0,1",
    )
