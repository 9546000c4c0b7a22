"""What `track` returns: the points of a run's curve, and the changes between them."""

from html import escape
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from fewbench.errors import EvaluationError
from fewbench.evaluation.estimate import Interval

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["better", "worse", "undecided"]


class Point(BaseModel):
    """One checkpoint on the curve, on the scale of the scores.

    Attributes
    ----------
    checkpoint, step
    score, interval
        The curve and its band, at this checkpoint alone (pointwise).
    alone : float
        The checkpoint's own estimate, without its neighbors in time.
    expected : float or None
        What the other checkpoints predict of it.
    is_known : bool
        Whether it ran all items: its score has no error.
    items_run : int
    chance_best : float
        Probability that it is the best of all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint: str
    step: float
    score: float
    interval: Interval
    alone: float
    expected: float | None
    is_known: bool
    items_run: int
    chance_best: float


class Change(BaseModel):
    """The difference of two checkpoints: the later minus the earlier.

    Attributes
    ----------
    before, after : str
    difference, interval
        Of the two checkpoints' own estimates. The interval is of this change alone.
    p_value, p_adjusted : float
        Two-sided, by itself and adjusted by Holm for the number of changes. For the best checkpoint
        against the last one it is times the number of those that could have been the best.
    verdict : str
        better or worse if the adjusted p value is at most 1 - level, else undecided.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: str
    after: str
    difference: float
    interval: Interval
    p_value: float
    p_adjusted: float
    verdict: Verdict


class Track(BaseModel):
    """A run's checkpoints in order of their steps.

    Attributes
    ----------
    run : str
    level : float
    points : tuple of Point
    changes : tuple of Change
        Each checkpoint against the one before, and the last one against the first and against the
        best before it.
    best : str
        The checkpoint that is most probably the best.
    is_smoothed : bool
        Whether neighbors in time were used.
    neighbor_error : float or None
        Root mean square difference of the checkpoints' own estimates from what their neighbors
        predict (leave-one-out backtest).
    own_error : float or None
        Root mean square standard error of the checkpoints' own estimates.
    items_needed : int or None
        Items that the next checkpoint needs for the wanted half width or change.
    items_total, sources : int
        Items of the benchmark, and source models, with the checkpoints among them.
    warnings : tuple of str
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    run: str
    level: float
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    best: str
    is_smoothed: bool
    neighbor_error: float | None
    own_error: float | None
    items_needed: int | None = None
    items_total: int
    sources: int
    warnings: tuple[str, ...] = ()

    def __getitem__(self, checkpoint: str) -> Point:
        """Return the point of a checkpoint; KeyError if there is none."""
        for one in self.points:
            if one.checkpoint == checkpoint:
                return one
        raise KeyError(checkpoint)

    @property
    def real_changes(self) -> tuple[Change, ...]:
        """The changes that are better or worse."""
        return tuple(one for one in self.changes if one.verdict != "undecided")

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per checkpoint, in order of the steps."""
        import pandas as pd

        rows = [
            one.model_dump(exclude={"interval"})
            | {"low": one.interval.low, "high": one.interval.high}
            for one in self.points
        ]
        columns = ["checkpoint", "step", "score", "low", "high", "alone", "expected"]
        columns += ["is_known", "items_run", "chance_best"]
        return pd.DataFrame(rows, columns=columns).set_index("checkpoint")

    def changes_frame(self) -> "pd.DataFrame":
        """Return one row per change: difference, interval, p values and verdict."""
        import pandas as pd

        rows = [
            one.model_dump(exclude={"interval"})
            | {"low": one.interval.low, "high": one.interval.high}
            for one in self.changes
        ]
        columns = ["before", "after", "difference", "low", "high", "p_value", "p_adjusted"]
        return pd.DataFrame(rows, columns=[*columns, "verdict"])

    def plot(self) -> Any:
        """Return an Altair chart of the scores with their intervals by step.

        Diamonds are checkpoints that ran all items. EvaluationError below two checkpoints.
        """
        from fewbench.charts.estimating import tracked

        if (chart := tracked(self.curve())) is None:
            raise EvaluationError("no curve of one checkpoint", hint="add a second checkpoint")
        return chart

    def curve(self) -> list[dict[str, Any]]:
        """Return the points as plain values: name, step, score, low, high, is_known."""
        return [
            {
                "name": one.checkpoint,
                "step": one.step,
                "score": one.score,
                "low": one.interval.low,
                "high": one.interval.high,
                "is_known": one.is_known,
            }
            for one in self.points
        ]

    def to_json(self) -> str:
        """Return everything as indented JSON."""
        return self.model_dump_json(indent=2)

    def __repr__(self) -> str:
        """Return the best checkpoint and the table as text."""
        best = self[self.best]
        return (
            f"Track of {self.run}: best {self.best} ({best.score:.4g}, "
            f"P(best) = {best.chance_best:.2f})\n{self.to_frame().to_string(float_format='%.4g')}"
        )

    def __str__(self) -> str:
        """Return the same as `repr`."""
        return repr(self)

    def _repr_html_(self) -> str:
        warned = "".join(f"<li>{escape(one)}</li>" for one in self.warnings)
        first = escape(repr(self).splitlines()[0])
        tables = f"{self.to_frame().to_html()}{self.changes_frame().to_html()}"
        return f"<p>{first}</p>{tables}<ul>{warned}</ul>"
