"""Tasks of lm-eval as a benchmark: documents, metrics and weights, without any source model.

Ids, settings and answer keys are those that an import of the tasks' logs gives, so runs join with
logs. No model is loaded: prompts are not known.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import did_you_mean, some
from fewbench._text import quoted
from fewbench.errors import RunError, first_line
from fewbench.readers.harnesses.lm_eval.run_results import Results
from fewbench.readers.join.table import Preference, require
from fewbench.runners.lm_eval.logs import header_of
from fewbench.runners.lm_eval.setup import Setup
from fewbench.runners.lm_eval.sources import settings_of
from fewbench.runners.lm_eval.tasks import LmTask, make_manager
from fewbench.scores import Benchmark
from fewbench.scores.benchmark import WEIGHT
from fewbench.scores.groups import EQUAL, GROUP
from fewbench.scores.table import HARNESS_VERSION, KEY_FIELD, KEYS, POSITION, SETTINGS

OWN_TASKS = "lm-eval ls tasks lists all names; pass --include_path DIR for tasks of your own"


@dataclass(frozen=True)
class Group:
    """A group of lm-eval.

    Attributes
    ----------
    parts : tuple of str
        Its tasks and groups.
    by_size : mapping of str to bool
        Metric that lm-eval aggregates → whether tasks are weighted by their documents.
    filters : mapping of str to str
        Metric → the first filter that lm-eval aggregates, where the group names one.
    """

    parts: tuple[str, ...]
    by_size: Mapping[str, bool]
    filters: Mapping[str, str]


@dataclass(frozen=True)
class ChosenTasks:
    """Tasks that a run without source models is about.

    Attributes
    ----------
    tasks : dict of str to Task
        Sorted by name, as an import sorts them.
    benchmark : Benchmark
        One item for each document.
    notes : list of str
        For the user: which metric was chosen where there are several.
    """

    tasks: dict[str, LmTask]
    benchmark: Benchmark
    notes: list[str]


def choose_tasks(
    setup: Setup, key: str | None = None, metric: str | None = None, filter: str | None = None
) -> ChosenTasks:
    """Load the tasks that the arguments name, and all that is known about them without a model.

    Parameters
    ----------
    setup : Setup
        Its `tasks` are names of tasks, groups and tags, and patterns, as for `lm-eval run`.
    key : str, optional
        Field that identifies a document (default: lm-eval's hash of it).
    metric, filter : str, optional
        Names in order of preference, comma-separated: a task uses the first that it has. By
        default the first that its group aggregates, else the first of the task.

    Raises
    ------
    RunError
        If lm-eval has no such task, its data cannot be read, it has no documents, or its metric is
        not the mean of its documents' scores.
    ReaderError
        If no task has the metric or filter, or a task has several others.
    """
    if not setup.tasks:
        raise RunError(
            "no tasks and no scores of source models",
            hint="name the tasks after --, as in -- --tasks mmlu,gsm8k; or give scores",
        )
    loaded, groups = _load(setup)
    tasks = {name: LmTask(name, loaded[name], setup, key) for name in sorted(loaded)}
    header = header_of(tasks, None, setup, "")
    header["group_subtasks"] = {name: list(group.parts) for name, group in groups.items()}
    results = Results(Path("results"), header)
    paths = {name: results.suite(name) for name in tasks}
    scored, notes = _metrics(tasks, paths, groups, metric, filter)
    equal = frozenset(_equal(paths, groups, scored))
    sizes = [len(task.ids) for task in tasks.values()]
    weights = _weights(dict(zip(tasks, sizes, strict=True)), paths, equal)
    columns: dict[str, list[Any]] = {"task": list(tasks), "harness": ["lm-eval"] * len(tasks)}
    columns[HARNESS_VERSION] = [version("lm_eval")] * len(tasks)
    columns["metric"] = [scored[name][0] for name in tasks]
    columns["filter"] = [scored[name][1] for name in tasks]
    columns[SETTINGS] = [settings_of(results, tasks[name], *scored[name]) for name in tasks]
    columns["filter"] = ["" if name == "none" else name for name in columns["filter"]]
    columns[GROUP] = list(paths.values())
    columns[EQUAL] = [
        "/".join(name for name in path.split("/") if name in equal) for path in paths.values()
    ]
    columns[WEIGHT] = [weights[name] for name in tasks]
    items = pd.DataFrame(
        {
            name: np.repeat(np.array(values, dtype=float if name == WEIGHT else object), sizes)
            for name, values in columns.items()
            if any(values) and not (name == WEIGHT and set(values) == {1.0})
        },
        index=pd.Index([item for task in tasks.values() for item in task.ids], dtype=object),
    )
    if key is not None:
        items[KEY_FIELD] = key
    items[POSITION] = np.concatenate([np.arange(size) for size in sizes])
    items[KEYS] = [
        text for task in tasks.values() for text in task.answer_keys(range(len(task.ids)))
    ]
    notes += _weighting(dict(zip(tasks, sizes, strict=True)), paths, equal)
    return ChosenTasks(tasks, Benchmark(items), notes)


def _load(setup: Setup) -> tuple[dict[str, Any], dict[str, Group]]:
    """Return lm-eval's tasks and groups by name."""
    names = setup.tasks
    manager = make_manager(names, setup)
    matched = {name: manager.match_tasks([name]) for name in names}
    if unknown := [name for name in names if not matched[name]]:
        raise RunError(
            f"lm-eval has no task {some(unknown)}",
            hint=did_you_mean(unknown[0], manager.all_tasks, OWN_TASKS),
        )
    listed = list(dict.fromkeys(name for several in matched.values() for name in several))
    try:
        loaded = manager.load(listed)
        parts = loaded["group_map"]
        return loaded["tasks"], {
            name: _group(parts[name], group.aggregate_metric_list)
            for name, group in loaded["groups"].items()
        }
    except Exception as error:  # of any data set
        empty = isinstance(error, StopIteration)  # lm-eval looks at the first document
        raise RunError(
            f"lm-eval cannot load {some(listed)}: "
            + ("a task has no documents" if empty else first_line(error)),
            hint=f"try lm-eval run --model dummy --tasks {quoted(','.join(names))} --limit 1",
        ) from error


def _group(parts: Sequence[str], aggregated: Sequence[Any] | None) -> Group:
    by_size, filters = {}, {}
    for entry in aggregated or ():
        settings = entry if isinstance(entry, dict) else vars(entry)
        by_size[str(settings["metric"])] = bool(settings.get("weight_by_size", True))
        listed = settings.get("filter_list") or []
        if listed := [listed] if isinstance(listed, str) else listed:
            filters[str(settings["metric"])] = str(listed[0])
    return Group(tuple(parts), by_size, filters)


def _metrics(
    tasks: Mapping[str, LmTask],
    paths: Mapping[str, str],
    groups: Mapping[str, Group],
    metric: str | None,
    filter: str | None,
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return metric and filter of each task, and notes where the user could choose others."""
    metrics, filters = Preference("metric", metric), Preference("filter", filter)
    scored: dict[str, tuple[str, str]] = {}
    for name, task in tasks.items():
        aggregations = task.task.aggregation()
        means = [metric for metric in aggregations if _is_mean(aggregations[metric])]
        above = [groups[part] for part in paths[name].split("/") if part]
        liked = [metric for group in above for metric in group.by_size if metric in means]
        is_open = bool(means) and not metrics.named
        there = [*liked, *means] if is_open else task.metrics
        chosen = metrics.name_for(name, there, first=is_open)
        filters_of = task.filters or ["none"]
        aggregated = [group.filters.get(chosen or "", "") for group in above]
        listed = [name for name in aggregated if name in filters_of]
        filtered = filters.name_for(name, [*listed, *filters_of], first=True)
        if chosen is None or filtered is None:
            continue
        _check_metric(task, chosen, means)
        scored[name] = chosen, filtered
    require(metrics, filters)
    return scored, [*metrics.notes, *filters.notes]


def _check_metric(task: LmTask, metric: str, means: Sequence[str]) -> None:
    higher = task.task.higher_is_better()
    usable = [metric for metric in means if higher.get(metric) is not False]
    hint = "leave the task out"
    if usable:
        hint = f"name another with --metric, such as {usable[0]}"
    elif means:
        hint += "; or import logs of source models with fewbench import --lower-is-better, and run "
        hint += "with these scores"
    if metric not in means:
        raise RunError(
            f"metric {metric!r} of task {task.name!r} is not the mean of its documents' scores",
            hint=hint,
        )
    if metric not in usable:
        raise RunError(f"of metric {metric!r} of task {task.name!r}, lower is better", hint=hint)


def _is_mean(aggregate: Callable[[list[float]], Any]) -> bool:
    """Whether a task's score is the mean of its documents' scores."""
    try:
        return bool(np.isclose(float(aggregate([0.0, 0.0, 1.0, 0.0])), 0.25))
    except Exception:  # such as of pairs
        return False


def _equal(
    paths: Mapping[str, str],
    groups: Mapping[str, Group],
    scored: Mapping[str, tuple[str, str]],
) -> Iterator[str]:
    """Yield groups whose score is the mean of their tasks' scores."""
    for name, group in groups.items():
        used = {scored[task][0] for task, path in paths.items() if name in path.split("/")}
        if any(not group.by_size.get(metric, True) for metric in used):
            yield name


def _weighting(
    sizes: Mapping[str, int], paths: Mapping[str, str], equal: frozenset[str]
) -> list[str]:
    """Say how the full score counts groups beside other tasks, if a group has its own weights.

    lm-eval has no score over several groups and tasks.
    """
    documents: dict[str, int] = {}
    for task, size in sizes.items():
        outermost = paths[task].partition("/")[0] or task
        documents[outermost] = documents.get(outermost, 0) + size
    even = [name for name in documents if name in equal]
    if len(documents) < 2 or not even:
        return []
    beside = ", ".join(f"{name!r} ({n:,})" for name, n in documents.items())
    return [
        f"the full score counts {beside} by their documents; within {some(even)} each task counts "
        "the same, as in lm-eval. For the score of a group alone, run it without other tasks"
    ]


def _weights(
    sizes: Mapping[str, int], paths: Mapping[str, str], equal: frozenset[str]
) -> dict[str, float]:
    """Return the weight of each task's documents.

    The outermost group decides. Groups and tasks beside each other count by their documents.

    Examples
    --------
    >>> _weights({"a": 30, "b": 10, "c": 5}, {"a": "g", "b": "g", "c": ""}, frozenset({"g"}))
    {'a': 0.6666666666666666, 'b': 2.0, 'c': 1.0}
    """
    outermost = {task: path.partition("/")[0] for task, path in paths.items()}
    weights = {}
    for task, size in sizes.items():
        beside = [name for name in sizes if outermost[name] == outermost[task]]
        total = sum(sizes[name] for name in beside)
        is_equal = outermost[task] in equal
        weights[task] = total / len(beside) / size if is_equal else 1.0
    return weights
