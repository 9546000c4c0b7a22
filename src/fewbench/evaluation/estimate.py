"""Estimate: a target's full score with an interval, next to that of random sampling."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from fewbench._json import Frozen, parse_json
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench._warned import in_cell
from fewbench.errors import EvaluationError
from fewbench.evaluation.costs import Cost
from fewbench.evaluation.interval import GroupScore, Interval, RandomSampling, RankInterval
from fewbench.methods.subset import Provenance
from fewbench.scores import Scale, Scores, Unit
from fewbench.show.charts import estimating as figures
from fewbench.show.page import Chart, Shown
from fewbench.uncertainty.reruns import RunNoise

WIDER = 1.25
"""So much wider than the interval on these items is that of the model, to be shown beside it: where
there are few items, or most of them ran."""


class Estimate(Shown, Frozen):
    """A target's estimated full score, on the user's scale.

    Attributes
    ----------
    scale : Scale
        The scale of the scores.
    score, interval, level
        The estimate of the score on exactly these items, and its interval at the stated level.
    as_model
        Interval of the score on questions like these and if the model runs again. None in old
        files.
    tasks, task_intervals
        Estimated score of every task, and its interval, or None where too little is known about the
        task. The score is the tasks' mean, weighted as the average says.
    groups
        Estimated scores of groups of tasks, each before the groups in it.
    rank, ranked_among, rank_interval
        Rank among the sources and the target (1 is best on any scale), the number of these
        models, and the ranks at the ends of the interval. The sources' scores count as exact.
        None in old files.
    task_ranks
        Rank in every task; empty where `rank` is None.
    items_run, items_total
        Number of items run, and of all items.
    answers_mean, answers_right
        Mean of the answers, on the user's scale, and the number of right ones (None if they are not
        right or wrong). They do not show the full score if items were chosen by difficulty.
    task_items
        Number of items run per task; 0 means that the task's score is predicted from the other
        tasks. Empty in old files.
    expected_error
        Expected absolute error, or None if unknown.
    interval_kind, interval_sources
        Kind of interval (exact, betting, sampled, held-out, random; see `intervals.Uncertainty`),
        and the number of held-out source models behind it, where a family counts as one.
    random
        Random sampling of as many items without source models.
    before
        After `refresh_pack`: the score by the sources that the run was started with, None if they
        give none.
    cost
        What running the target cost, or None if unknown.
    repeats
        How far the mean of the answers varies from run to run, or None unless items were answered
        several times.
    warnings
        Reasons to doubt the estimate.
    """

    target: str
    scale: Scale
    score: float
    interval: Interval
    level: float
    as_model: Interval | None = None
    tasks: dict[str, float]
    task_intervals: dict[str, Interval | None] = Field(default_factory=dict)
    groups: dict[str, GroupScore] = Field(default_factory=dict)
    rank: int | None = None
    ranked_among: int | None = None
    rank_interval: RankInterval | None = None
    task_ranks: dict[str, int] = Field(default_factory=dict)
    items_run: int
    items_total: int
    answers_mean: float
    answers_right: int | None
    task_items: dict[str, int] = Field(default_factory=dict)
    random: RandomSampling
    expected_error: float | None
    interval_kind: str
    interval_sources: int | None = None
    before: float | None = None
    cost: Cost | None = None
    repeats: RunNoise | None = None
    warnings: tuple[str, ...] = ()
    provenance: Provenance

    @property
    def answered(self) -> str:
        """The answers in words: how many are right, or their mean."""
        if self.answers_right is None:
            mean = Unit(self.scale).score(self.answers_mean)
            return f"{counted(self.items_run, 'answer')} with a mean of {mean}"
        return f"{self.answers_right} of {self.items_run} right"

    @property
    def is_wider_as_model(self) -> bool:
        """Whether the items leave so much open that the interval on these items misleads."""
        if self.as_model is None:
            return False
        on_these, as_model = (ends.high - ends.low for ends in (self.interval, self.as_model))
        return as_model > WIDER * on_these

    @property
    def interval_basis(self) -> str:
        """What the interval rests on, in words."""
        from fewbench.uncertainty.intervals import basis

        return basis(self.interval_kind, self.interval_sources)

    def tasks_in(self, group: str) -> list[str]:
        """Return the names of all tasks in a group."""
        return [
            task
            for part in self.groups[group].parts
            for task in (self.tasks_in(part) if part in self.groups else [part])
        ]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for the full score, one per group of tasks and one per task.

        Columns: score, low and high (NaN if unknown), level, items_run, rank, warnings.
        """
        ends = [self.interval.low, self.interval.high]
        rows = {"all": [self.score, *ends, self.level, self.items_run, self.rank]}
        for name, group in self.groups.items():
            ends = _ends(group.interval)
            rows[name] = [group.score, *ends, self.level, group.items_run, group.rank]
        for task, score in self.tasks.items():
            ends = _ends(self.task_intervals.get(task))
            n, rank = self.task_items.get(task), self.task_ranks.get(task)
            rows[task] = [score, *ends, self.level, n, rank]
        columns = ["score", "low", "high", "level", "items_run", "rank"]
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        return frame.assign(warnings=in_cell(self.warnings)).rename_axis("task")

    def _charts(self) -> list[tuple[str, str, Chart]]:
        return Estimates({self.target: self})._charts()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Estimate":
        """Read an estimate from JSON; EvaluationError names what does not fit."""
        return parse_json(cls, text, "not an estimate", EvaluationError)


def _ends(interval: Interval | None) -> list[float]:
    return [float("nan")] * 2 if interval is None else [interval.low, interval.high]


class Estimates(Shown, dict[str, Estimate]):
    """Estimates by target.

    Examples
    --------
    >>> Estimates().to_frame().shape
    (0, 0)
    """

    def __missing__(self, name: str) -> Estimate:
        there = f"there are those of {some(self)}" if self else "no target has answers"
        raise KeyError(f"no estimate of {name!r}: {there}")

    @property
    def score(self) -> float:
        """The estimated full score of the only target; EvaluationError unless there is one."""
        if len(self) != 1:
            several = "no target has answers" if not self else f"{len(self)} targets: {some(self)}"
            raise EvaluationError(
                f"not one score: {several}", hint="name the target, as in estimates['new'].score"
            )
        (only,) = self.values()
        return only.score

    @property
    def warnings(self) -> list[str]:
        """Each warning once, with the targets that it is about."""
        about: dict[str, list[str]] = {}
        for estimate in self.values():
            for warning in estimate.warnings:
                about.setdefault(warning, []).append(estimate.target)
        every = len(self) if len(self) > 1 else 0
        return [
            f"{'all targets' if len(names) == every else some(names)}: {warning}"
            for warning, names in about.items()
        ]

    def to_frame(self) -> "pd.DataFrame":
        """Return a table of one row per target: score, interval, level, items, warnings.

        low and high are of these items; model_low and model_high of the model in general.
        """
        rows = {
            name: {
                "score": estimate.score,
                "low": estimate.interval.low,
                "high": estimate.interval.high,
                "level": estimate.level,
                "model_low": None if estimate.as_model is None else estimate.as_model.low,
                "model_high": None if estimate.as_model is None else estimate.as_model.high,
                "expected_error": estimate.expected_error,
                "rank": estimate.rank,
                "items_run": estimate.items_run,
                "items_total": estimate.items_total,
                "interval_kind": estimate.interval_kind,
                "warnings": in_cell(estimate.warnings),
            }
            | ({} if estimate.before is None else {"before": estimate.before})
            | ({} if estimate.repeats is None else {"run_noise": estimate.repeats.half_width})
            for name, estimate in self.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("target" if rows else None)

    def _charts(self) -> list[tuple[str, str, Chart]]:
        """Return the charts of the page, and that of all targets, which a page of one leaves out.

        `Evaluation.plot` shows an estimate among the source models.
        """
        if not self:
            return []
        return [("targets", "", lambda: several(list(self.values()))), *super()._charts()]


def among_sources(one: Estimate, scores: Scores) -> Any:
    """Return the chart of an estimate among the full scores of the source models."""
    ends = (one.interval.low, one.interval.high)
    drawn = full_scores_of(scores), one.target, one.score
    return figures.among_sources(*drawn, ends, one.level, Unit(one.scale))


def several(estimates: Sequence[Estimate]) -> Any:
    """Return the chart of estimates with their intervals."""
    values = [
        {"target": estimate.target, "score": estimate.score, **estimate.interval.model_dump()}
        for estimate in estimates
    ]
    return figures.several(values, estimates[0].level, Unit(estimates[0].scale))


def full_scores_of(scores: Scores) -> dict[str, float]:
    """Return the source models' full scores on the user's scale, by name."""
    full = scores.scale.from_unit(scores.full_scores())
    return dict(zip(map(str, scores.model_ids), map(float, full), strict=True))
