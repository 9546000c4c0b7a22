"""Turn the results of cells into the tables of a comparison."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import some
from fewbench._types import FloatArray
from fewbench.methods.sources import known_scores
from fewbench.scores import Scale, Scores
from fewbench.study.cell import Cell, CellResult, Failure, covered
from fewbench.study.comparison import KEYS, REFERENCES, Comparison
from fewbench.study.inference import (
    Figure,
    TwoWay,
    expected_random_mae,
    model_groups,
    tied_with_best,
    too_few_repeats,
    two_way,
)
from fewbench.study.metrics import METRICS, OF_TASKS, find_metric, weighted_metrics

SLOW = 499
"""Resamples for metrics that compare all pairs of targets."""
SLOWEST = 199
"""Resamples for the same metrics of every task."""
SCALED = ("", "_sd", "_se", "_low", "_high")
"""Suffixes of columns with the unit of their metric."""

MAXIMUM = "max_error"
"""End of the names of metrics that are a maximum over models."""

Done = list[tuple[Cell, CellResult]]


def summarise(
    scores: Scores,
    cells: Sequence[Cell],
    results: Sequence[CellResult | Failure],
    facts: dict[str, str],
    warnings: list[str],
    seed: int,
    metrics: Sequence[str],
) -> Comparison:
    """Return the tables of cells and their results, given in the same order.

    `metrics` are those to show, of which warnings tell where they are undefined.
    """
    both = list(zip(cells, results, strict=True))
    done = [(cell, result) for cell, result in both if isinstance(result, CellResult)]
    repeats = [
        _keys(cell)
        | {"repeat": cell.repeat, "n_sources": len(cell.split.sources)}
        | {"n_targets": len(result.targets)}
        | result.metrics
        for cell, result in done
    ]
    failures = [
        _keys(cell) | {"repeat": cell.repeat, "reason": result.reason}
        for cell, result in both
        if isinstance(result, Failure)
    ]
    groups = model_groups(scores)
    rows: list[dict[str, Any]] = []
    resampled: dict[str, TwoWay] = {}
    for name in dict.fromkeys(cell.split_name for cell in cells):
        of_split = [(cell, result) for cell, result in both if cell.split_name == name]
        study = _OfSplit(scores, [cell for cell, _ in of_split], groups, seed)
        resampled[name] = study.resampled
        mine = study.rows(of_split)
        warnings = warnings + study.warnings(mine, metrics)
        rows += mine
    table = pd.DataFrame(rows)
    table["tied_with_best"] = table["tied_with_best"].astype("boolean")
    each = pd.DataFrame(repeats) if repeats else pd.DataFrame(columns=[*KEYS, "repeat"])
    on_scale = partial(
        _on_scale, scores.scale, {name for _, result in done for name in result.metrics}
    )
    return Comparison(
        on_scale(table),
        on_scale(each),
        _estimates(scores, done),
        on_scale(_task_errors(scores, done)),
        pd.DataFrame(failures, columns=[*KEYS, "repeat", "reason"]),
        facts,
        warnings,
        scores.scale,
        seed,
        resampled,
    )


def _on_scale(scale: Scale, metrics: set[str], table: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table with its errors and widths on the scale of the scores."""
    errors = [name for name in {*metrics, *METRICS} if find_metric(name).unit == "score"]
    scaled = {f"{name}{part}" for name in errors for part in SCALED}.intersection(table)
    return table.assign(**{name: table[name] * scale.span for name in scaled})


def _keys(cell: Cell) -> dict[str, Any]:
    return {"method": cell.name, "budget": cell.budget, "split": cell.split_name}


class _OfSplit:
    """The cells of one split and their shared resamples."""

    def __init__(
        self, scores: Scores, cells: Sequence[Cell], groups: Mapping[str, int], seed: int
    ) -> None:
        self.scores, self.seed = scores, seed
        self.name = cells[0].split_name
        divided = {cell.repeat: cell.split for cell in cells}
        self.splits = [divided[repeat] for repeat in range(len(divided))]
        names = [[scores.model_ids[at] for at in split.targets] for split in self.splits]
        self.resampled = two_way(names, groups, seed)
        self._known: dict[bytes, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def rows(self, cells: Sequence[tuple[Cell, CellResult | Failure]]) -> list[dict[str, Any]]:
        """Return one row per budget and method, the lowest error of a budget first."""
        rows: list[dict[str, Any]] = []
        names = list(dict.fromkeys(cell.name for cell, _ in cells))
        for budget in dict.fromkeys(cell.budget for cell, _ in cells):
            ran: dict[str, list[CellResult | None]] = {
                name: [None] * len(self.splits) for name in names
            }
            for cell, result in cells:
                if cell.budget == budget and isinstance(result, CellResult):
                    ran[cell.name][cell.repeat] = result
            rows += sorted(
                self._at(budget, ran),
                key=lambda row: np.nan_to_num(row.get("mae", np.inf), nan=np.inf),
            )
        return rows

    def _at(
        self, budget: int, ran: Mapping[str, list[CellResult | None]]
    ) -> Iterable[dict[str, Any]]:
        resampled = self.resampled
        errors = {
            name: resampled.parts([_errors(result) for result in results])
            for name, results in ran.items()
        }
        expected = self._expected(budget)
        best = tied_with_best(resampled, errors, exact={REFERENCES[0]: expected})
        for name, results in ran.items():
            came = np.array([result is not None for result in results])
            row: dict[str, Any] = {"method": name, "budget": budget, "split": self.name}
            row["n_sources"] = round(np.mean([len(split.sources) for split in self.splits]))
            row["n_targets"] = round(np.mean([len(split.targets) for split in self.splits]))
            row["n_repeats"] = int(came.sum())
            here = np.where(came[:, None], expected, np.nan)
            row["expected_random_mae"] = float(resampled.mean(here)[0])
            row["tied_with_best"] = name in best.level if best.judged and came.any() else pd.NA
            for metric, parts in self._metrics(results).items():
                self._put(row, metric, parts)
            references = dict(zip(REFERENCES, (expected, errors[REFERENCES[1]]), strict=True))
            for reference, theirs in references.items():
                ratio = resampled.figure(resampled.ratio(errors[name], theirs), ratio=True, least=0)
                column = f"ratio_to_{reference.replace('-', '_')}"
                row |= {column: ratio.value, **_uncertainty(column, ratio)}
            for metric, counts in _of_tasks(results, len(self.scores.tasks)).items():
                row[f"{metric}_tasks"] = counts
            yield row

    def _put(self, row: dict[str, Any], metric: str, parts: FloatArray) -> None:
        """Add a metric's mean over the repeats and its uncertainty."""
        each = parts[:, 0][np.isfinite(parts[:, 0])]
        row[metric] = float(each.mean()) if len(each) else math.nan
        unit, (least, most) = (described := find_metric(metric)).unit, described.range
        if unit == "s":
            return
        resampled = self.resampled.first(parts.shape[1] - 1)
        figure = resampled.figure(
            resampled.mean(parts), ratio=unit in ("score", "ratio"), least=least, most=most
        )
        if unit != "items":
            spread = float(each.std(ddof=1)) if len(each) > 1 else math.nan
            # No spread if a method without randomness always had the same targets.
            row[f"{metric}_sd"] = math.nan if self.resampled.fixed and not spread else spread
        row |= _uncertainty(metric, figure)
        if len(each) < row["n_repeats"]:
            row[f"{metric}_repeats"] = len(each)

    def _metrics(self, results: Sequence[CellResult | None]) -> dict[str, FloatArray]:
        """Return every metric, shape (repeats, 1 + resamples), or only values without intervals."""
        resampling = self.resampled.has_intervals
        by_metric: dict[str, FloatArray] = {}
        for repeat, result in enumerate(results):
            if result is None:
                continue
            resampled = self._of(repeat, result) if resampling else {}
            for metric, value in result.metrics.items():
                drawn = resampled.get(metric)
                # A metric that is not known per target has the same value in all resamples.
                row = np.full(1 + (SLOW if resampling else 0), value) if drawn is None else drawn
                row[0] = value
                values = by_metric.setdefault(metric, np.full((len(results), len(row)), np.nan))
                values[repeat] = row
        return by_metric

    def _of(self, repeat: int, result: CellResult) -> dict[str, FloatArray]:
        """Return the metrics of a repeat for each resample of the models."""
        truth, estimate = np.array(result.truth), np.array(result.estimate)
        true_tasks, past, past_tasks = self._truth(repeat)
        weights = self.resampled.weights(repeat)
        few = weights[: 1 + SLOW]
        metrics = weighted_metrics(truth, estimate, past, few)
        if result.task_estimate:
            fewer, estimates = weights[: 1 + SLOWEST], result.task_estimates()
            each = [
                weighted_metrics(true_tasks[:, at], estimates[:, at], past_tasks[:, at], fewer)
                for at in range(estimates.shape[1])
            ]
            for name in each[0]:
                values = np.array([task[name] for task in each])
                is_finite = np.isfinite(values)
                with np.errstate(invalid="ignore"):
                    total = np.where(is_finite, values, 0.0).sum(axis=0) / is_finite.sum(axis=0)
                metrics[f"{OF_TASKS}{name}"] = total
        # Resamples of models never exceed the maximum: only repeats say how far it varies.
        metrics = {name: drawn for name, drawn in metrics.items() if not name.endswith(MAXIMUM)}
        low, high = np.array(result.low), np.array(result.high)
        for metric in result.metrics:
            if metric.startswith(("coverage", "half_width")):
                inside = covered(low, truth, high).astype(np.float64)
                judged = inside if metric.startswith("coverage") else (high - low) / 2
                with np.errstate(invalid="ignore"):
                    metrics[metric] = few @ judged / few.sum(axis=1)
        return metrics

    def _truth(self, repeat: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the targets' task scores, the sources' full scores and their task scores."""
        split = self.splits[repeat]
        key = split.sources.tobytes() + b"|" + split.targets.tobytes()
        if key not in self._known:
            sources = self.scores.take(models=split.sources)
            _, targets = known_scores(self.scores, split.targets)
            self._known[key] = targets, sources.full_scores(), sources.task_scores()
        return self._known[key]

    def _expected(self, budget: int) -> FloatArray:
        """Return the expected errors of plain random sampling."""
        every = np.unique(np.concatenate([split.targets for split in self.splits]))
        errors = np.full(self.scores.n_models, np.nan)
        errors[every] = expected_random_mae(self.scores, budget, every, self.seed)
        return self.resampled.parts([errors[split.targets] for split in self.splits])

    def warnings(self, rows: Sequence[dict[str, Any]], metrics: Sequence[str]) -> list[str]:
        """Warn of missing intervals, and of means over some repeats or tasks only."""
        warnings = []
        few = too_few_repeats(len(self.splits))
        if few:
            warnings.append(f"{self.name} split: {few}")
        elif not self.resampled.has_intervals:
            warnings.append(
                f"{self.name} split: no intervals: all targets are one model or family; "
                "use more models as targets"
            )
        for units, among in (("repeats", len(self.splits)), ("tasks", len(self.scores.tasks))):
            lacking = [
                (row[column], column.removesuffix(f"_{units}"), row)
                for row in rows
                for column in row
                if column.endswith(f"_{units}") and column.removesuffix(f"_{units}") in metrics
            ]
            if not lacking:
                continue
            least, metric, row = min(lacking, key=lambda entry: entry[0])
            names = list(dict.fromkeys(name for _, name, _ in lacking))
            warnings.append(
                f"{self.name} split: {some(names, 6, quotes=False)}: undefined for some {units}, "
                f"with equal true scores or equal estimates; means are over the other {units} "
                f"(fewest: {metric} of {row['method']} at {row['budget']} items, over "
                f"{least:.3g} of {among})"
            )
        return warnings


def _uncertainty(column: str, figure: Figure) -> dict[str, float]:
    return {f"{column}_{part}": getattr(figure, part) for part in ("se", "low", "high")}


def _errors(result: CellResult | None) -> FloatArray | None:
    return None if result is None else np.abs(np.array(result.estimate) - np.array(result.truth))


def _of_tasks(results: Sequence[CellResult | None], n_tasks: int) -> dict[str, float]:
    """Return the mean number of tasks in each metric that is undefined for some tasks."""
    done = [result.tasks_defined for result in results if result is not None]
    if n_tasks == 1:  # it is then undefined in the whole repeat
        return {}
    names = dict.fromkeys(name for counts in done for name in counts)
    return {name: float(np.mean([counts.get(name, n_tasks) for counts in done])) for name in names}


def _estimates(scores: Scores, done: Done) -> "pd.DataFrame":
    columns = [*KEYS, "repeat", "target", "truth", "estimate", "low", "high"]
    ends = ["high", "low"] if scores.scale.lower_is_better else ["low", "high"]
    parts = [
        pd.DataFrame(
            {**_keys(cell), "repeat": cell.repeat, "target": result.targets}
            | {
                name: scores.scale.from_unit(getattr(result, field))
                for name, field in zip(columns[5:], ["truth", "estimate", *ends], strict=True)
            }
        )
        for cell, result in done
    ]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    family = scores.models.get("family")
    table.insert(5, "family", None if family is None else family.loc[table["target"]].to_numpy())
    return table


def _task_errors(scores: Scores, done: Done) -> "pd.DataFrame":
    sizes = np.bincount(scores.task_of)
    long = [
        {**_keys(cell), "task": task, "mae": error, "n_items": int(size)}
        for cell, result in done
        for task, error, size in zip(scores.tasks, result.task_mae, sizes, strict=False)
    ]
    columns = [*KEYS, "task", "n_items", "mae"]
    table = pd.DataFrame(long, columns=columns)
    return table.groupby(columns[:-1], sort=False)["mae"].mean().reset_index()
