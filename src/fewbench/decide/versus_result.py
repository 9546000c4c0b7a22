"""What `versus` returns: the difference of two models, its tasks and the items that decide it."""

from html import escape
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from fewbench._warned import as_html, in_cell, with_warnings
from fewbench.decide.random_pairs import RandomPairs
from fewbench.evaluation.estimate import Interval
from fewbench.study.multiple import Adjust

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["better", "worse", "equivalent", "not worse", "undecided"]


class TaskDifference(BaseModel):
    """The difference on one task.

    Attributes
    ----------
    task : str
    difference, interval
        A minus B. The interval is of this task alone; None if too little is known of the task.
    p_value, p_adjusted : float
        Two-sided, by itself and adjusted for the number of tasks.
    verdict : str
        better or worse if the adjusted p value is at most 1 - level, else undecided.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    task: str
    difference: float
    interval: Interval | None
    p_value: float
    p_adjusted: float
    verdict: Literal["better", "worse", "undecided"]


class ItemDifference(BaseModel):
    """An item that A and B scored differently on, on the scale of the scores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: str
    task: str
    a: float
    b: float


class Versus(BaseModel):
    """The difference of two models' full scores, on the user's scale.

    Attributes
    ----------
    a, b : str
        The models; two targets of one name with their folders' names.
    score_a, score_b : float
        Their full scores, estimated or known.
    difference, interval, level
        A minus B, and its interval at the stated level.
    chance_a_better : float
        Probability that A is better.
    verdict : str
        better or worse (A than B) if the interval excludes 0. With a margin, also equivalent if
        the interval is within ±margin, and not worse if it is above -margin. Else undecided.
    margin : float or None
    not_worse, equivalent : bool or None
        Whether A is worse by less than the margin, and whether they differ by less; None without
        a margin.
    kind, sources
        What the interval rests on, of the less sure side (see `Estimate.interval_kind`), or known;
        and the number of independent source models or families behind it, if there are any.
    looks : tuple of int
        Numbers of answers at which the interval holds together, for one look at each or soon after;
        empty if it holds once.
    items_a, items_b, items_common, items_total : int
        Items answered by A, by B, by both, and all.
    random : RandomPairs or None
        What random sampling of as many items would give.
    items_needed : int or None
        About how many items of each would decide it, if the difference stays as it is.
    items_if_known : int or None
        About how many items of A would decide it if B ran all items once, so that its score is
        known. None if one of the scores is known, or if that does not decide sooner.
    next_items : tuple of str
        Items that both run next to decide it, the most telling first: as many as `items_needed`
        says, at most 200. Targets only: a source model has run all.
    tasks : tuple of TaskDifference
        Empty with one task.
    adjust : str
        holm (no false verdict on any task) or bh (share of false ones among the verdicts).
    deciding : tuple of ItemDifference
        Items that both answered, with different scores.
    warnings : tuple of str
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    a: str
    b: str
    score_a: float
    score_b: float
    difference: float
    interval: Interval
    level: float
    chance_a_better: float
    verdict: Verdict
    margin: float | None = None
    not_worse: bool | None = None
    equivalent: bool | None = None
    kind: str
    sources: int | None
    looks: tuple[int, ...] = ()
    items_a: int
    items_b: int
    items_common: int
    items_total: int
    random: RandomPairs | None
    items_needed: int | None = None
    items_if_known: int | None = None
    next_items: tuple[str, ...] = ()
    tasks: tuple[TaskDifference, ...] = ()
    adjust: Adjust = "holm"
    deciding: tuple[ItemDifference, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The verdict in a sentence."""
        margin = 0.0 if self.margin is None else self.margin
        return {
            "better": f"{self.a} is better than {self.b}",
            "worse": f"{self.a} is worse than {self.b}",
            "equivalent": f"{self.a} and {self.b} differ by less than {margin:g}",
            "not worse": f"{self.a} is worse than {self.b} by less than {margin:g}, or better",
            "undecided": f"undecided between {self.a} and {self.b}",
        }[self.verdict]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for the full score and one per task: difference, interval, p values."""
        import pandas as pd

        rows = {
            "all": {
                "difference": self.difference,
                "low": self.interval.low,
                "high": self.interval.high,
                "verdict": self.verdict,
            }
        }
        frame = pd.DataFrame.from_dict(rows, orient="index")
        if self.tasks:
            of_tasks = pd.DataFrame(
                {
                    "difference": [one.difference for one in self.tasks],
                    "low": [None if (x := one.interval) is None else x.low for one in self.tasks],
                    "high": [None if (x := one.interval) is None else x.high for one in self.tasks],
                    "verdict": [one.verdict for one in self.tasks],
                    "p_value": [one.p_value for one in self.tasks],
                    "p_adjusted": [one.p_adjusted for one in self.tasks],
                },
                index=[one.task for one in self.tasks],
            )
            frame = pd.concat([frame, of_tasks])
        return frame.assign(warnings=in_cell(self.warnings)).rename_axis("task")

    def items(self) -> "pd.DataFrame":
        """Return the items that both answered with different scores, largest difference first."""
        import pandas as pd

        rows = [one.model_dump() for one in self.deciding]
        return pd.DataFrame(rows, columns=list(ItemDifference.model_fields)).set_index("item")

    def to_json(self) -> str:
        """Return everything as indented JSON."""
        return self.model_dump_json(indent=2)

    @property
    def _line(self) -> str:
        ends = f"{self.interval.low:.4g} .. {self.interval.high:.4g}"
        return (
            f"Versus: {self.answer} (difference {self.difference:.4g}, {self.level:.0%} interval "
            f"{ends}, P({self.a} is better) = {self.chance_a_better:.2f})"
        )

    def __repr__(self) -> str:
        """Return the verdict, the difference and its interval in a line, and the warnings."""
        return with_warnings(self._line, self.warnings)

    def __str__(self) -> str:
        """Return the same as `repr`."""
        return repr(self)

    def plot(self) -> Any:
        """Return an Altair chart of the differences, overall and by task."""
        from fewbench.charts.deciding import differences

        return differences(self)

    def _repr_html_(self) -> str:
        table = self.to_frame().drop(columns="warnings").to_html()
        return f"<p>{escape(self._line)}</p>{table}{as_html(self.warnings)}"
