"""Estimate: a target's full score with an interval, next to that of random sampling."""

from html import escape
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from fewbench._json import parse_json
from fewbench.errors import EvaluationError
from fewbench.methods.subset import Provenance

if TYPE_CHECKING:
    import pandas as pd


class Interval(BaseModel):
    """A range on the user's scale."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float
    high: float


class RankInterval(BaseModel):
    """The ranks at the ends of a score's interval; 1 is best."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    best: int
    worst: int


class RandomSampling(BaseModel):
    """Interval and mean absolute error of plain random sampling of as many items.

    The interval is Wilson's, with the finite-population correction.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    interval: Interval
    expected_error: float


class Estimate(BaseModel):
    """A target's estimated full score, on the user's scale.

    Attributes
    ----------
    score, interval, level
        The estimate and its interval at the stated level.
    tasks
        Estimated score of every task. The score is their mean, weighted as the average says.
    rank, ranked_among, rank_interval
        Rank among the sources and the target (1 is best on any scale), the number of these
        models, and the ranks at the ends of the interval. The sources' scores count as exact.
        None in old files.
    task_ranks
        Rank in every task; empty where `rank` is None.
    items_run, items_total
        Number of items run, and of all items.
    task_items
        Number of items run per task; 0 means that the task's score is predicted from the other
        tasks. Empty in old files.
    expected_error
        Expected absolute error, from the method's errors on held-out source models; None if
        unknown.
    interval_kind, interval_sources
        Kind of interval (exact, betting, cross-fitted, frontier, bounds; see
        `intervals.Judgment`), and the number of independent source models or families behind it.
        None in old files.
    beyond_sources
        Probability that the target is beyond the range of the sources.
    random
        The same for plain random sampling of as many items.
    warnings
        Reasons to doubt the estimate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    score: float
    interval: Interval
    level: float
    tasks: dict[str, float]
    rank: int | None = None
    ranked_among: int | None = None
    rank_interval: RankInterval | None = None
    task_ranks: dict[str, int] = {}
    items_run: int
    items_total: int
    task_items: dict[str, int] = {}
    random: RandomSampling
    expected_error: float | None
    interval_kind: str | None = None
    interval_sources: int | None = None
    beyond_sources: float = 0.0
    warnings: tuple[str, ...] = ()
    provenance: Provenance

    @property
    def interval_basis(self) -> str | None:
        """What the interval rests on, in words; None in old files."""
        if self.interval_kind is None:
            return None
        if self.interval_kind == "exact" and self.items_run < self.provenance.budget:
            return "exact if the answered items are a random sample of all"
        resting = f"{self.interval_sources} independent source models or families"
        return {
            "exact": "exact for a random sample; no assumption about the model",
            "betting": "valid for any random sample of scores; no assumption about the model",
            "cross-fitted": f"errors of the method on {resting}, held out",
            "frontier": f"errors of the method on the strongest {resting}, estimated from weaker "
            "ones",
            "bounds": "only what the answers leave possible: too few source models for more",
        }[self.interval_kind]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per task and one for the full score: score, items run and rank."""
        import pandas as pd

        rows = {"all": [self.score, self.items_run, self.rank]}
        for task, score in self.tasks.items():
            rows[task] = [score, self.task_items.get(task), self.task_ranks.get(task)]
        columns = ["score", "items_run", "rank"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("task")

    def __repr__(self) -> str:
        """Return score, interval and items run in a line."""
        ends = f"{self.interval.low:.4g} .. {self.interval.high:.4g}"
        return (
            f"Estimate of {self.target}: {self.score:.4g} ({self.level:.0%} interval {ends}, "
            f"{self.items_run} of {self.items_total} items)"
        )

    def __str__(self) -> str:
        """Return the same as `repr`."""
        return repr(self)

    def plot(self) -> Any:
        """Return an Altair chart of the estimate beside what random sampling would give.

        `Evaluation.plot` shows it among the source models.
        """
        from fewbench.charts.estimating import beside_random

        plain = self.random.interval
        return beside_random(
            self.target,
            self.score,
            (self.interval.low, self.interval.high),
            (plain.low, plain.high),
        )

    def _repr_html_(self) -> str:
        warned = "".join(f"<li>{escape(one)}</li>" for one in self.warnings)
        return f"<p>{escape(repr(self))}</p>{self.to_frame().to_html()}<ul>{warned}</ul>"

    def to_json(self) -> str:
        """Return the estimate as indented JSON."""
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Estimate":
        """Read an estimate from JSON; EvaluationError names what does not fit."""
        return parse_json(cls, text, "not an estimate", EvaluationError)


class Estimates(dict[str, Estimate]):
    """Estimates by target.

    Examples
    --------
    >>> Estimates().to_frame().shape
    (0, 0)
    """

    def to_frame(self) -> "pd.DataFrame":
        """Return a table of one row per target: score, interval, level, items, warnings."""
        import pandas as pd

        rows = {
            name: {
                "score": one.score,
                "low": one.interval.low,
                "high": one.interval.high,
                "level": one.level,
                "expected_error": one.expected_error,
                "rank": one.rank,
                "items_run": one.items_run,
                "items_total": one.items_total,
                "beyond_sources": one.beyond_sources,
                "warnings": "; ".join(one.warnings),
            }
            for name, one in self.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("target" if rows else None)

    def __repr__(self) -> str:
        """Return the table and the warnings as text."""
        table = self.to_frame()
        if len(table):
            table["warnings"] = [len(one.warnings) for one in self.values()]
        said = [f"{name}: warning: {text}" for name, one in self.items() for text in one.warnings]
        return "\n".join([str(table.to_string(float_format="%.4g")), *said])

    def plot(self) -> Any:
        """Return an Altair chart of the estimates with their intervals."""
        from fewbench.charts.estimating import several

        if not self:
            raise EvaluationError("no estimates to draw", hint="estimate a target with answers")
        ends = [
            {"target": one.target, "score": one.score, "low": one.interval.low,
             "high": one.interval.high} for one in self.values()
        ]  # fmt: skip
        return several(ends, next(iter(self.values())).level)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html())
