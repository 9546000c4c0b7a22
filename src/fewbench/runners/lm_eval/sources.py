"""What the scores record about lm-eval's tasks, compared with what would run now."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._json import loads
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench.errors import RunError
from fewbench.readers.harnesses.lm_eval.run_results import Results
from fewbench.readers.harnesses.lm_eval.samples import likelihoods_of
from fewbench.readers.options import COMPARED, unrated
from fewbench.readers.values import as_number, describe, text_hash
from fewbench.runners.checks import check_score
from fewbench.runners.exports import check_origin
from fewbench.runners.lm_eval.logs import as_logged, dump
from fewbench.runners.lm_eval.tasks import LmTask
from fewbench.scores import Benchmark, Scores, from_arrays
from fewbench.scores.conditions import SAMPLER, SCORING, join_settings
from fewbench.scores.table import KEYS, POSITION, PROMPTS, SETTINGS, TEXTS, key_field_of


class SourceDocuments:
    """The items of the source models as documents of lm-eval's tasks.

    Parameters
    ----------
    scores : Scores
        Documents are found by the items' ids. Those of other harnesses' logs are not numbers of
        documents, so that RunError is raised for them.
    wanted : mapping of str to str, optional
        Metric and filter, for what the scores do not record.

    Attributes
    ----------
    task_of : dict of str to str
        Item to lm-eval's name of its task. The user may have renamed the tasks of the scores.
    """

    def __init__(self, scores: Scores, wanted: Mapping[str, str | None] | None = None) -> None:
        if key_field_of(scores.items) == POSITION:
            check_origin(scores.items, "lm-eval")
        self.scores, self._wanted = scores, wanted or {}
        self.task_of = {
            str(item): _task(str(item), str(task)) for item, task in scores.items["task"].items()
        }
        positions = scores.items[POSITION] if POSITION in scores.items else pd.Series(dtype="Int64")
        self._was = {str(item): int(at) for item, at in positions.dropna().items()}

    def first_of_each_task(self, items: Iterable[str]) -> list[str]:
        """Return the first item of each task."""
        return list({self.task_of[item]: item for item in reversed(list(items))}.values())

    @cached_property
    def metrics(self) -> Scores:
        """One item of each task of lm-eval, with the metric and filter of the sources."""
        first = self.first_of_each_task(self.task_of)
        scale = self.scores.scale
        table = from_arrays(
            np.full((1, len(first)), scale.low),
            models=["target"],
            items=first,
            tasks=[self.task_of[item] for item in first],
            scale=scale,
        )
        rows = self.scores.items.loc[first]
        columns: dict[str, Any] = {name: text for name, text in self._wanted.items() if text}
        columns |= {name: rows[name] for name in ("metric", "filter") if name in rows}
        return table.changed(items=table.items.assign(**columns))

    def find(
        self, items: Sequence[str], tasks: Mapping[str, LmTask], *, is_keyed: bool
    ) -> tuple[dict[str, int], list[str]]:
        """Return the position of each document now, and notes on documents that moved.

        Raises RunError if one of the items is in no task. Tasks then draw the few-shot examples of
        moved documents as if these were where they were.
        """
        place = {name: at for task in tasks.values() for at, name in enumerate(task.ids)}
        if missing := [item for item in items if item not in place]:
            way = "use the data and the task version of the source models, or import their logs "
            way += "again without these documents"
            way += "" if is_keyed else "; if the scores were imported with --key, pass it"
            if "/" not in "".join(missing):
                way = "name items TASK/ID when you import the scores: lm-eval's task, and the hash "
                way += "of the document or, with --key FIELD, that field"
            raise RunError(
                f"{len(missing):,} of {counted(len(items), 'document')} that may be run "
                f"{'is' if len(missing) == 1 else 'are'} not in lm-eval's tasks: "
                f"{some(missing)}{self._instead_of(missing[0], tasks)}",
                hint=way,
                kind="unknown",
            )
        before: dict[str, dict[int, int]] = {name: {} for name in tasks}
        for item, was in self._was.items():
            if item in place:
                before[self.task_of[item]][place[item]] = was
        for name, of_name in tasks.items():
            of_name.replay_as(before[name])
        moved = [item for item in items if self._was.get(item, place[item]) != place[item]]
        if not moved:
            return place, []
        return place, [
            f"{counted(len(moved), 'document')} moved since the source models ran, such as "
            f"{moved[0]!r} from position {self._was[moved[0]]} to {place[moved[0]]}; each is found "
            "by its hash"
        ]

    def check_texts(self, place: Mapping[str, int], tasks: Mapping[str, LmTask]) -> None:
        """Raise RunError if the texts of documents differ from those of the source models."""
        if TEXTS not in self.scores.items:
            return
        differ = []
        for item, at in place.items():
            before = str(self.scores.items[TEXTS][item])
            field, _, _ = before.partition("=")
            document = tasks[self.task_of[item]].documents[at]
            if field in document and text_hash(field, str(document[field])) != before:
                differ.append(item)
        if differ:
            raise RunError(
                f"{len(differ):,} of {counted(len(place), 'document')} differ from the source "
                f"models': {some(differ)}",
                hint="use the data set of the source models",
            )

    def _instead_of(self, item: str, tasks: Mapping[str, LmTask]) -> str:
        """Say what is now at the position of a missing item."""
        if (at := self._was.get(item)) is None:
            return ""
        task = tasks[self.task_of[item]]
        now = task.ids[at] if at < len(task.ids) else "no document"
        return f" (position {at} of {task.name} now has {now})"

    def check_metrics(self, tasks: Mapping[str, LmTask]) -> None:
        """Raise RunError if a task lacks the metric or filter of the sources, or has several."""
        by_task = self.metrics.items.set_index("task")
        for name, task in tasks.items():
            for column, has in (("metric", task.metrics), ("filter", task.filters)):
                wanted = str(by_task[column][name]) if column in by_task else ""
                if column not in by_task and len(has) > 1:
                    raise RunError(
                        f"task {name!r} has several {column}s, {some(has, most=8)}, and the scores "
                        f"do not say which one the source models have",
                        hint=f"name it: --{column} {has[0]} (in Python {column}={has[0]!r})",
                    )
                can_compute = column == "metric" and wanted in COMPARED
                if wanted and wanted not in has and not can_compute:
                    raise RunError(
                        f"task {name!r} has no {column} {wanted!r}, which the source models have; "
                        f"it has {some(has, most=8)}",
                        hint="use the task of the source models, or import another "
                        f"{column} of theirs",
                    )

    def unscored(self, task: str, rows: Iterable[Mapping[str, Any]]) -> dict[int, str]:
        """Return the positions whose score is not a finite number, and its value.

        Raises RunError if a score is not on the scale of the scores.
        """
        metric_of = self.metrics.items.set_index("task").loc[task]
        metric, filtered = str(metric_of.get("metric") or ""), str(metric_of.get("filter") or "")
        listed = list(rows)
        reasons = _unrated(listed)
        for row in listed:
            names = [metric] if metric else row["metrics"]
            for name in names if row["filter"] == filtered or not filtered else ():
                value = loads(dump(row.get(name, 0.0)))  # as logged; some are computed on reading
                number, what = as_number(value), f"metric {name!r}"
                if number is None or not math.isfinite(number):
                    reasons[int(row["doc_id"])] = (
                        f"{what} is {describe(value)}, not a finite number"
                    )
                else:
                    check_score(number, self.scores, f"task {task!r}: {what}")
        return reasons

    def now(
        self,
        hashes: Mapping[str, tuple[str, str]],
        header: Mapping[str, Any],
        tasks: Mapping[str, LmTask],
    ) -> Benchmark:
        """Return items with their prompts and scoring in this run.

        Parameters
        ----------
        hashes : mapping of item to (str, str)
            lm-eval's hash of each prompt, "" if unknown, and the key.
        header : mapping
            Results file of what would run.
        tasks : mapping of str to Task
        """
        results = Results(Path("results"), dict(header))
        form = f"@{results.prompt_form}" if results.prompt_form else ""
        names = [self.task_of[item] for item in hashes]
        by_task = self.metrics.items.set_index("task")
        settings = {}
        for name in set(names):
            metric, filtered = (
                str(by_task[column][name] or "none") if column in by_task else None
                for column in ("metric", "filter")
            )
            settings[name] = without_sampler(settings_of(results, tasks[name], metric, filtered))
        columns = {
            "task": names,
            "harness": "lm-eval",
            PROMPTS: [prompt[:16] + form if prompt else "" for prompt, _ in hashes.values()],
            KEYS: [key for _, key in hashes.values()],
            SETTINGS: [settings[name] for name in names],
        }
        return Benchmark(pd.DataFrame(columns, index=pd.Index(hashes, dtype=object)))

    def scored_by(self) -> dict[str, str]:
        """Return metric and filter of each task of the scores, as lm-eval writes them."""
        first = self.scores.items.drop_duplicates("task").set_index("task")
        return {
            str(task): f"{row.get('metric') or 'score'},{row.get('filter') or 'none'}"
            for task, row in first.iterrows()
        }


def _unrated(rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the positions whose options the model did not rate, and why."""
    rated = [
        (int(row["doc_id"]), likelihoods_of(loads(dump(as_logged(row)["resps"])))) for row in rows
    ]
    options = [(at, values) for at, values in rated if values is not None]
    reasons = unrated([values for _, values in options])
    return {options[at][0]: why for at, why in reasons.items()}


def settings_of(results: Results, task: LmTask, metric: str | None, filtered: str | None) -> str:
    """Return a task's prompts and scoring, in the form of a column of the items."""
    settings = results.task_settings(task.name)
    settings |= results.scoring(task.name, filtered, in_context=task.has_options_in_context)
    if metric in (scorers := results.scorers(task.name)):
        settings[f"{SCORING}metric"] = scorers[metric]
    return join_settings([settings])


def without_sampler(settings: str) -> str:
    """Return task settings without the few-shot sampler.

    With it, other examples are expected of lm-eval's default sampler. Here they are those of a
    whole run, so others are a difference.

    Examples
    --------
    >>> without_sampler('{"few-shot examples": ["2"], "few-shot sampler": ["default"]}')
    '{"few-shot examples": ["2"]}'
    """
    parsed = json.loads(settings) if settings else {}
    return json.dumps({k: v for k, v in parsed.items() if k != SAMPLER}, ensure_ascii=False)


def _task(item: str, task: str) -> str:
    """Return lm-eval's name of an item's task: items are named TASK/CONTENT."""
    return item.rpartition("/")[0] if "/" in item and not item.startswith(f"{task}/") else task
