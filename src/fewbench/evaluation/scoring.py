"""Score existing answers in a different way: by a different average, weights, metric or filter.

Nothing is run again. A different metric or filter is read from the logs that the run keeps, and for
the source models from their own logs or a table with this metric.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench.errors import EvaluationError, FewbenchError
from fewbench.evaluation.entries import AnswerSet
from fewbench.evaluation.journal import INSPECT_LOGS, logs_of
from fewbench.scores import Average, Scores
from fewbench.scores.benchmark import COHORT, WEIGHT, ItemTable
from fewbench.scores.groups import EQUAL
from fewbench.scores.table import POSITION

IDS = ("id", "item", "task")


class Scoring(Frozen):
    """How to score existing answers.

    Attributes
    ----------
    average : {"micro", "macro"}, optional
        Full score: the mean over items, or over task scores.
    metric, filter : str, optional
        Names as the logs have them.
    weights : path or mapping, optional
        Weights of tasks or of items: a mapping by name, or a table with a column `task` or `id`,
        and a column `weight`. Weights of tasks say how much each task counts, whatever its size. A
        weight of 0 retires an item or a task.
    drop_items : path or sequence of str, optional
        Items that are retired, such as those with a wrong key: ids, a text file with one a line, or
        a table with a column `id`. Ids that the scores do not have are retired already.

    Examples
    --------
    >>> bool(Scoring()), bool(Scoring(average="macro"))
    (False, True)
    """

    average: Average | None = None
    metric: str | None = None
    filter: str | None = None
    weights: str | os.PathLike[str] | Mapping[str, float] | None = None
    drop_items: str | os.PathLike[str] | tuple[str, ...] | None = None

    def __bool__(self) -> bool:
        """Return whether anything is asked for."""
        return any(value is not None for _, value in self)

    @property
    def read_as(self) -> dict[str, str]:
        """The metric and filter that are asked for."""
        named = {"metric": self.metric, "filter": self.filter}
        return {name: value for name, value in named.items() if value is not None}

    def of_table(self, scores: Scores, place: object = "the scores") -> Scores:
        """Return the scores with this average and these weights.

        Raises
        ------
        EvaluationError
            If the table has a different metric or filter, or weights do not fit its items.
        PackError
            If the average differs from a pack's.
        """
        for name, wanted in self.read_as.items():
            there = _names_in(scores, name)
            if not there or not there <= _split(wanted):
                what = f"the {name} {some(sorted(there))}" if there else f"no column {name}"
                raise EvaluationError(
                    f"{place}: the source models have {what}, not {wanted!r}",
                    hint=f"import their logs with --{name} {wanted}, and name that table: --scores "
                    "FILE (in Python scores=)",
                )
        return self._weighed(scores.averaged(self.average or scores.average))

    def _left(self, scores: Scores) -> Scores:
        """Return the scores without retired items."""
        if self.drop_items is None:
            return scores
        ids = _read_ids(self.drop_items)
        retired = scores.items.index.isin(ids)
        if not retired.any() or retired.all():
            where = "drop_items" if isinstance(self.drop_items, tuple) else str(self.drop_items)
            which = "all" if retired.any() else "none"
            raise EvaluationError(
                f"{where}: {which} of the {scores.n_items:,} items listed there",
                hint=f"write one id per line; ids look like {some(scores.item_ids[:2])}",
            )
        return scores.take(items=np.flatnonzero(~retired))

    def _weighed(self, scores: Scores) -> Scores:
        scores = self._left(scores)
        if self.weights is None:
            return scores
        column, weights = _read_weights(self.weights, scores)
        names = scores.item_ids if column == "item" else scores.items["task"].to_numpy(object)
        if lacking := [name for name in dict.fromkeys(names) if name not in weights]:
            raise EvaluationError(
                f"{counted(len(lacking), column)} without a weight: {some(lacking)}",
                hint=f"give every {column} a number above 0",
            )
        values = np.array([weights[name] for name in names])
        if column == "task":
            if scores.average == "macro":
                raise EvaluationError(
                    "weights of tasks and a macro average, which weighs all tasks the same",
                    hint="leave out one of the two",
                )
            values = values / np.bincount(scores.task_of)[scores.task_of]
        if not values.all():
            scores, values = scores.take(items=np.flatnonzero(values)), values[values > 0]
        own = scores.items.drop(columns=EQUAL, errors="ignore")  # groups count as weights say
        return scores.changed(items=own.assign(**{WEIGHT: values / values.mean()}))

    def of_sources(self, scores: Scores, place: Path | None, folder: Path | None) -> Scores:
        """Return the scores of an evaluation's source models with this scoring.

        A different metric is read from `place`, if it is a folder of logs. Without source models,
        the items keep their ids. `folder` is the evaluation's folder.
        """
        if not scores.n_models:
            of_items = scores.items.drop(columns=[*self.read_as], errors="ignore")
            scores = scores.changed(items=of_items.assign(**self.read_as))
            return self._weighed(scores.averaged(self.average or scores.average))
        if self.read_as and place is not None and place.is_dir():
            from fewbench.readers import import_results

            again = import_results(
                place, metric=self.metric, filter=self.filter, like=scores, scale=scores.scale
            )
            scores = counted_alike(again.scores, scores, place)
        return self.of_table(scores, place or folder or "the scores")


def counted_alike(named: Scores, own: Scores, place: object) -> Scores:
    """Return a table's scores on an evaluation's items, averaged and weighed as these are."""
    known = named.items.index[named.items.index.isin(own.items.index)]
    if not len(known):
        raise EvaluationError(
            f"{place}: has none of the items of the evaluation", hint="name scores of these items"
        )
    table = named.averaged(own.average).take(items=named.positions(known))
    columns = {name: own.items.loc[known, name] for name in (WEIGHT, COHORT) if name in own.items}
    return table.changed(items=table.items.assign(**columns))


def _split(names: str) -> set[str]:
    return {name.strip() for name in names.split(",")}


def _names_in(scores: ItemTable, column: str) -> set[str]:
    """Return the metrics or filters that items have; no filter is called none by lm-eval."""
    return {str(name) or "none" for name in scores.items.get(column, ())}


def _read_weights(
    given: str | os.PathLike[str] | Mapping[str, float], scores: ItemTable
) -> tuple[str, dict[str, float]]:
    """Return whether weights are of items or of tasks, and the weights by name."""
    where, frame = "weights", pd.DataFrame()
    if isinstance(given, Mapping):
        names = [*map(str, given)]
        column = "task" if set(names) & set(scores.tasks) else "item"
        numbers: Sequence[Any] = [*given.values()]
    else:
        from fewbench.readers.frames import load_table

        where, frame = str(given), load_table(Path(given), [*IDS])
        there = [name for name in IDS if name in frame]
        if not there or WEIGHT not in frame:
            raise EvaluationError(
                f"{where}: no weights; its columns are {some(list(frame.columns))}",
                hint=f"write a column task or id, and a column {WEIGHT}",
            )
        names = frame[there[0]].astype(str).tolist()
        column, numbers = ("task" if there[0] == "task" else "item"), frame[WEIGHT].tolist()
    weights = dict(zip(names, pd.to_numeric(pd.Series(numbers), errors="coerce"), strict=True))
    bad = [name for name, weight in weights.items() if not 0 <= weight < np.inf]
    if bad or not any(weights.values()):
        raise EvaluationError(
            f"{where}: no number above 0 for {some(bad or weights)}",
            hint="give every one a weight above 0, or 0 to leave it out",
            kind="range",
        )
    return column, {name: float(weight) for name, weight in weights.items()}


def _read_ids(given: str | os.PathLike[str] | tuple[str, ...]) -> Sequence[str]:
    """Return ids from a text file with one a line, or a table."""
    if isinstance(given, tuple):
        return given
    path = Path(given)
    if path.suffix.lower() in ("", ".txt"):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise EvaluationError(
                f"{path}: cannot be read ({error})", hint="name a text file with one id per line"
            ) from error
        return [line.strip() for line in lines if line.strip()]
    from fewbench.readers.frames import load_table

    frame = load_table(path, [*IDS])
    if not (there := [name for name in IDS[:2] if name in frame]):
        raise EvaluationError(
            f"{path}: no column of ids; its columns are {some(list(frame.columns))}",
            hint="write a column id, or a text file with one id per line",
        )
    return frame[there[0]].astype(str).tolist()


def answers_in_logs(
    folder: Path | None, target: str, asked: Sequence[str], scores: Scores, scoring: Scoring
) -> tuple[AnswerSet, tuple[str, ...]]:
    """Return a target's answers in the logs that its run keeps, and a note on those they lack.

    Raises
    ------
    EvaluationError
        If the run keeps no logs of the target, or they lack the metric or filter.
    """
    places = () if folder is None else (logs_of(folder, target), folder / INSPECT_LOGS)
    place = next((place for place in places if place.is_dir()), None)
    wanted = " and ".join(f"the {name} {value!r}" for name, value in scoring.read_as.items())
    if place is None:
        raise EvaluationError(
            f"{target!r}: its answers were recorded without logs, so they have no other metric "
            f"or filter: not {wanted}",
            hint="record its logs in a new folder: fewbench start … --scores with that metric, and "
            "fewbench tell",
        )
    from fewbench.readers import import_results

    logs = [path for path in sorted(place.iterdir()) if path.is_file()]
    try:
        table = import_results(
            logs,
            metric=scoring.metric,
            filter=scoring.filter,
            like=scores,  # what the user does not name is as before
            scale=scores.scale,
            accept_differences=True,
        ).scores
    except FewbenchError as error:
        raise EvaluationError(
            f"{place}: no answers of {target!r} with {wanted}: {error.message}", hint=error.hint
        ) from error
    if target not in table.models.index and table.n_models > 1:
        raise EvaluationError(
            f"{place}: none of the models {some(table.model_ids)} is {target!r}",
            hint="name the target as its model is named in the logs",
        )
    row = table.model_ids.index(target) if target in table.models.index else 0
    values = zip(_ids_of(table, scores), table.cells[row].tolist(), strict=True)
    logged = {item: value for item, value in values if item and not np.isnan(value)}
    answers = {item: logged[item] for item in asked if item in logged}
    answer_set = AnswerSet(target=target, items=tuple(answers), scores=tuple(answers.values()))
    if lacking := [item for item in asked if item not in answers]:
        return answer_set, (
            f"{target}: {counted(len(lacking), 'answer')} of {len(asked):,} left out, as the "
            f"logs of the run do not have them: {some(lacking)}",
        )
    return answer_set, ()


def _ids_of(table: Scores, scores: Scores) -> list[str]:
    """Return the items' ids in the scores: by task and position where both have it, else equal."""
    known = scores.items.index
    by_place: dict[tuple[str, int], str] = {}
    if POSITION in scores.items and POSITION in table.items:
        columns = (known, scores.items["task"], scores.items[POSITION])
        by_place = {
            (str(task), int(at)): str(item)
            for item, task, at in zip(*columns, strict=True)
            if not pd.isna(at)
        }
        rows = zip(table.item_ids, table.items["task"], table.items[POSITION], strict=True)
        return [by_place.get((str(task), int(at)), "") for _, task, at in rows]
    return [str(item) if item in known else "" for item in table.item_ids]
