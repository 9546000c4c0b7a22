"""What `track` returns: the points of a run's curve, and the changes between them."""

from typing import Any, Literal

from pydantic import ConfigDict

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import p_value, probability
from fewbench.decide.differences import frame_of
from fewbench.decide.rank_result import Foremost
from fewbench.decide.words import AS_MODELS, on_these
from fewbench.evaluation.interval import Interval
from fewbench.scores import Average, Scale, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.show.charts.estimating import tracked
from fewbench.show.page import Page, Section, Shown, Table

Verdict = Literal["better", "worse", "undecided"]


class Point(Frozen):
    """One checkpoint on the curve, on the scale of the scores.

    Attributes
    ----------
    checkpoint, step
    score, interval
        Its score on these items and the interval, for this checkpoint alone.
    as_model : Interval or None
        The interval for the checkpoint in general, on questions like these and if it runs again.
        With `fixed_items` it is None.
    is_known : bool
        Whether it ran all items, so that the score on these items is not estimated.
    items_run : int
    chance_best : float
        Probability that it is the best of all.
    """

    checkpoint: str
    step: float
    score: float
    interval: Interval
    as_model: Interval | None = None
    is_known: bool
    items_run: int
    chance_best: float


def _in_general(point: Point, unit: Unit) -> str:
    return "–" if point.as_model is None else unit.scores(point.as_model)


class Change(Frozen):
    """The difference of two checkpoints: the later minus the earlier.

    Attributes
    ----------
    before, after : str
    difference, interval
        The interval is of this change alone.
    p_value, p_adjusted : float or None
        Two-sided, by itself and adjusted by Holm for the number of changes, or None if both ran all
        of exactly these items. For the best checkpoint against the last one it is times the number
        of those that could have been the best.
    verdict : str
        better or worse if the adjusted p value is at most 1 - level, else undecided.
    """

    before: str
    after: str
    difference: float
    interval: Interval
    p_value: float | None
    p_adjusted: float | None
    verdict: Verdict


class Track(Shown, Frozen):
    """A run's checkpoints in order of their steps.

    Attributes
    ----------
    run : str
    scale : Scale
        The scale of the scores.
    average : str
        What a full score is: the mean over items (micro) or over task scores (macro).
    level : float
    fixed_items : bool
        Whether changes and probabilities are about exactly these items, of these runs. If not, they
        are about the checkpoints, on questions like these and if they run again.
    points : tuple of Point
    changes : tuple of Change
        Each checkpoint against the last one before it that ran all items, else against the one
        before; and the last one against the first and against the best before it.
    best : str
        The checkpoint that is most probably the best.
    chosen : Foremost
        What is expected of this one, as the best of all.
    items_needed : int or None
        Items that the next checkpoint needs for the wanted half width or change.
    is_findable : bool
        Whether all items would find the wanted change in 80% of cases.
    items_total, sources : int
        Items of the benchmark, and source models, with the checkpoints among them.
    warnings : tuple of str
    """

    model_config = ConfigDict(ser_json_inf_nan="constants")

    run: str
    scale: Scale
    average: Average
    level: float
    fixed_items: bool = False
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    best: str
    chosen: Foremost
    items_needed: int | None = None
    is_findable: bool = True
    items_total: int
    sources: int
    warnings: tuple[str, ...] = ()

    def __getitem__(self, checkpoint: str) -> Point:
        """Return the point of a checkpoint; KeyError if there is none."""
        for point in self.points:
            if point.checkpoint == checkpoint:
                return point
        raise KeyError(checkpoint)

    @property
    def real_changes(self) -> tuple[Change, ...]:
        """The changes that are better or worse."""
        return tuple(change for change in self.changes if change.verdict != "undecided")

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per checkpoint, in order of the steps.

        low and high are of these items; model_low and model_high of the checkpoint in general.
        """
        columns = ["checkpoint", "step", "score", "low", "high"]
        columns += ["is_known", "items_run", "chance_best"]
        frame = frame_of(self.points, columns, self.warnings).set_index("checkpoint")
        if not self.fixed_items:
            of_models = [point.as_model or point.interval for point in self.points]
            frame.insert(4, "model_low", [ends.low for ends in of_models])
            frame.insert(5, "model_high", [ends.high for ends in of_models])
        return frame

    def curve(self) -> list[dict[str, Any]]:
        """Return the points as plain values: name, step, score, low, high, is_known."""
        return [
            {
                "name": point.checkpoint,
                "step": point.step,
                "score": point.score,
                "low": point.interval.low,
                "high": point.interval.high,
                "is_known": point.is_known,
            }
            for point in self.points
        ]

    def page(self) -> Page:
        """Return the best checkpoint, the scores by step, and what changed."""
        best, last = self[self.best], self.points[-1]
        unit = Unit(self.scale)
        head = [("Checkpoint", False), ("Step", True), ("Score", True), ("Interval", True)]
        head += [] if self.fixed_items else [("In general", True)]
        head += [("Items run", True), ("P(best)", True)]
        rows = [
            [
                *(point.checkpoint, f"{point.step:,.10g}", unit.score(point.score)),
                "all items ran" if point.is_known else unit.scores(point.interval),
                *([] if self.fixed_items else [_in_general(point, unit)]),
                *(f"{point.items_run:,}", probability(point.chance_best)),
            ]
            for point in self.points
        ]
        drawn = f"The line is the estimate, the band its {self.level:.0%} interval"
        if any(point.is_known for point in self.points):
            drawn += "; diamonds are checkpoints that ran all items"
        facts = {
            "Source models": f"{self.sources:,}, counting checkpoints that ran all items",
            "Items of the benchmark": f"{self.items_total:,}",
        }
        if self.items_needed is not None:
            facts["Items that the next checkpoint needs"] = f"about {self.items_needed:,}"
        if not self.is_findable:
            facts["Items that the next checkpoint needs"] = (
                f"even all {self.items_total:,} items would not find such a change in 80% of "
                "cases; more such questions would"
            )
        shown = unit.score(best.score), probability(best.chance_best)
        leading = [
            point.checkpoint
            for point in self.points
            if (unit.score(point.score), probability(point.chance_best)) == shown
        ]
        names, estimated = ", ".join(leading), "" if best.is_known else "an estimated "
        about = "On exactly these items," if self.fixed_items else f"In general, {AS_MODELS}:"
        if len(leading) == 1:
            seen = f"{names} scores {estimated}{shown[0]}"
            found = f"it is the best with probability {shown[1]}"
        else:
            seen = f"{names} score {estimated}{shown[0]} each"
            found = f"they are the best with probability {shown[1]} each"
        n = len(self.points)
        luck = self.chosen.sentence(best.score, n, unit, fixed_items=self.fixed_items)
        lesser = [luck] if luck else []
        if last.checkpoint not in leading:
            ends = f"{self.level:.0%} interval {unit.scores(last.interval)}"
            score = unit.score(last.score)
            score_or_ends = "all items ran" if last.is_known else ends
            lesser.append(f"The last one, {last.checkpoint}, scores {score} ({score_or_ends}).")
        real = len(self.real_changes)
        lesser.append(
            f"{real} of {len(self.changes)} tested changes {'is' if real == 1 else 'are'} real "
            f"(at {self.level:.0%}, all together)."
            if self.changes
            else "One checkpoint has no change to test."
        )
        lesser += average_notes(self.average)
        course = Section(
            "course",
            "Score by step",
            [
                "The level applies to each checkpoint separately."
                + f" Interval: of its score on these items. In general: {AS_MODELS}."
                * (not self.fixed_items)
            ],
            charts=[(drawn, lambda: tracked(self.curve(), unit))],
            tables=[Table("Checkpoints", head, rows, "a checkpoint")],
        )
        return Page(
            "track",
            self.run or "A training run",
            f"{on_these(self.items_total)}, {seen}" + f". {about} {found}" * bool(self.changes),
            lesser,
            self.warnings,
            [
                course,
                *([self._changes(unit)] if self.changes else []),
                Section("basis", "What it rests on", facts=facts),
            ],
        )

    def _changes(self, unit: Unit) -> Section:
        head = [("From", False), ("To", False), ("Difference", True), ("Interval", True)]
        head += [("Verdict", False), ("adjusted p", True)]

        def table(title: str, changes: tuple[Change, ...], folded: str = "") -> Table:
            rows = [
                [
                    *(change.before, change.after, unit.difference(change.difference)),
                    *(unit.differences(change.interval), change.verdict),
                    p_value(change.p_adjusted),
                ]
                for change in changes
            ]
            return Table(title, head, rows, "a checkpoint or verdict", folded)

        tables = [table("Real changes", self.real_changes)] if self.real_changes else []
        if len(self.real_changes) < len(self.changes):
            tables.append(table("All changes", self.changes, f"All {len(self.changes)} changes"))
        return Section(
            "changes",
            "Changes",
            [
                "Each checkpoint is compared with the last earlier checkpoint that ran all items, "
                "or, without one, with the checkpoint before. The last checkpoint is also "
                "compared with the first and with the best earlier one. p values are adjusted by "
                "Holm's method for the number of changes."
            ],
            tables=tables,
        )
