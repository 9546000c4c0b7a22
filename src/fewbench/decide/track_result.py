"""What `track` returns: the points of a run's curve, and the changes between them."""

from html import escape
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from fewbench._warned import as_html, in_cell, with_warnings
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
        Its score and interval, for this checkpoint alone.
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
    is_known: bool
    items_run: int
    chance_best: float


class Change(BaseModel):
    """The difference of two checkpoints: the later minus the earlier.

    Attributes
    ----------
    before, after : str
    difference, interval
        The interval is of this change alone.
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
        Each checkpoint against the last one before it that ran all items, else against the one
        before; and the last one against the first and against the best before it.
    best : str
        The checkpoint that is most probably the best.
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
        columns = ["checkpoint", "step", "score", "low", "high"]
        columns += ["is_known", "items_run", "chance_best"]
        frame = pd.DataFrame(rows, columns=columns).set_index("checkpoint")
        return frame.assign(warnings=in_cell(self.warnings))

    def changes_frame(self) -> "pd.DataFrame":
        """Return one row per change: difference, interval, p values and verdict."""
        import pandas as pd

        rows = [
            one.model_dump(exclude={"interval"})
            | {"low": one.interval.low, "high": one.interval.high}
            for one in self.changes
        ]
        columns = ["before", "after", "difference", "low", "high", "p_value", "p_adjusted"]
        frame = pd.DataFrame(rows, columns=[*columns, "verdict"])
        return frame.assign(warnings=in_cell(self.warnings))

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

    @property
    def _line(self) -> str:
        best = self[self.best]
        said = f"{best.score:.4g}, P(best) = {best.chance_best:.2f}"
        return f"Track of {self.run}: best {self.best} ({said})"

    def __repr__(self) -> str:
        """Return the best checkpoint, the table and the warnings as text."""
        table = self.to_frame().drop(columns="warnings").to_string(float_format="%.4g")
        return with_warnings(f"{self._line}\n{table}", self.warnings)

    def __str__(self) -> str:
        """Return the same as `repr`."""
        return repr(self)

    def _repr_html_(self) -> str:
        tables = "".join(
            frame.drop(columns="warnings").to_html()
            for frame in (self.to_frame(), self.changes_frame())
        )
        return f"<p>{escape(self._line)}</p>{tables}{as_html(self.warnings)}"
