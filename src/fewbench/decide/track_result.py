"""What `track` returns: the points of a run's curve, and the changes between them."""

from typing import Any, Literal

from pydantic import ConfigDict

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, p_value, probability
from fewbench.decide.differences import frame_of
from fewbench.decide.rank_result import Foremost
from fewbench.decide.words import AS_MODELS, on_these
from fewbench.evaluation.interval import Interval
from fewbench.scores import Average, Scale, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.show.charts.estimating import tracked
from fewbench.show.page import Page, Section, Shown, Table

Verdict = Literal["better", "worse", "undecided"]


class PartScore(Frozen):
    """A checkpoint's score on a benchmark, on these items; the interval may be unknown."""

    benchmark: str
    score: float
    interval: Interval | None


class Point(Frozen):
    """One checkpoint on the curve, on the scale of the scores.

    Attributes
    ----------
    checkpoint, step
    run : str
        Its run, "" where all checkpoints are of one.
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
    benchmarks : tuple of PartScore
        Scores by benchmark, if there are several: groups of tasks, and tasks of no group.
    """

    checkpoint: str
    run: str = ""
    step: float
    score: float
    interval: Interval
    as_model: Interval | None = None
    is_known: bool
    items_run: int
    chance_best: float
    benchmarks: tuple[PartScore, ...] = ()


class RunStanding(Frozen):
    """One of several runs, at the last step that all have, or else at its last one.

    A run that stopped before a step that two others have is at its last one, and not compared.

    Attributes
    ----------
    run, checkpoint, step
    checkpoints : int
        Number of checkpoints of the run.
    score, interval
        The score of this checkpoint; the interval answers the same question as the changes.
    behind, behind_interval
        Its score minus that of the run with the highest score (no interval for that one).
    is_behind : bool
        Whether it is certainly behind, all pairs of runs together.
    chance_ahead : float or None
        Probability that it is the best of these. None: it is not compared.
    """

    run: str
    checkpoint: str
    step: float
    checkpoints: int
    score: float
    interval: Interval
    behind: float | None = None
    behind_interval: Interval | None = None
    is_behind: bool = False
    chance_ahead: float | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether it stopped early, and is not compared."""
        return self.chance_ahead is None


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


class BenchmarkChange(Change):
    """What a run gained on a benchmark, from its first checkpoint to its last.

    Adjusted for the number of benchmarks and runs.
    """

    run: str
    benchmark: str


class Track(Shown, Frozen):
    """The checkpoints of one or more runs, in order of their steps.

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
    runs : tuple of RunStanding
        Several runs side by side, the highest score first, then those that stopped early. Empty for
        one run.
    benchmark_changes : tuple of BenchmarkChange
        Empty for one benchmark.
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
    runs: tuple[RunStanding, ...] = ()
    benchmark_changes: tuple[BenchmarkChange, ...] = ()
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
        Column run where there are several; a column for each benchmark.
        """
        columns = ["checkpoint", "step", "score", "low", "high"]
        columns += ["is_known", "items_run", "chance_best"]
        frame = frame_of(self.points, columns, self.warnings).set_index("checkpoint")
        if not self.fixed_items:
            of_models = [point.as_model or point.interval for point in self.points]
            frame.insert(4, "model_low", [ends.low for ends in of_models])
            frame.insert(5, "model_high", [ends.high for ends in of_models])
        if self.runs:
            frame.insert(0, "run", [point.run for point in self.points])
        for at, part in enumerate(self.points[0].benchmarks):
            frame[part.benchmark] = [point.benchmarks[at].score for point in self.points]
        return frame

    def curve(self) -> list[dict[str, Any]]:
        """Return the points as plain values: name, step, score, low, high, is_known.

        Several runs also have curve, the name of the run.
        """
        return [
            {
                "name": point.checkpoint,
                **({"curve": point.run} if point.run else {}),
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
        drawn = "Each line" if self.runs else "The line"
        drawn += f" is the estimate, the band its {self.level:.0%} interval"
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
        about = "On exactly these items," if self.fixed_items else f"In general, {AS_MODELS}:"
        if self.runs:
            answer, lesser = self._ahead(about, unit), list[str]()
        else:
            answer, lesser = self._foremost(about, unit)
        lesser = [*self._courses(unit), *lesser, *average_notes(self.average)]
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
            answer,
            lesser,
            self.warnings,
            [
                *([self._side_by_side(unit)] if self.runs else []),
                course,
                *([self._benchmarks(unit)] if self.benchmark_changes else []),
                *([self._changes(unit)] if self.changes else []),
                Section("basis", "What it rests on", facts=facts),
            ],
        )

    def _foremost(self, about: str, unit: Unit) -> tuple[str, list[str]]:
        """Return which checkpoint is the best, and what that and the last one are worth."""
        best, last = self[self.best], self.points[-1]
        shown = unit.score(best.score), probability(best.chance_best)
        leading = [
            point.checkpoint
            for point in self.points
            if (unit.score(point.score), probability(point.chance_best)) == shown
        ]
        names, estimated = ", ".join(leading), "" if best.is_known else "an estimated "
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
        answer = f"{on_these(self.items_total)}, {seen}"
        return answer + f". {about} {found}" * bool(self.changes), lesser

    def _courses(self, unit: Unit) -> list[str]:
        """Return a sentence for each run: whether it rises, and whether its last change is real."""
        texts = []
        stopped = {each.run: each.step for each in self.runs if each.is_stopped}
        for run in dict.fromkeys(point.run for point in self.points):
            own = [point.checkpoint for point in self.points if point.run == run]
            text = f"{run}: " * bool(run) + counted(len(own), "checkpoint")
            text += f", stopped at step {stopped[run]:,.10g}" if run in stopped else ""
            changes = {(change.before, change.after): change for change in self.changes}
            if (whole := changes.get((own[0], own[-1]))) is not None:
                up, down = "rising", "falling"
                if self.scale.lower_is_better:
                    up, down = "improving", "getting worse"
                course = {"better": up, "worse": down, "undecided": "no certain change"}
                text += f": {course[whole.verdict]}, {unit.difference(whole.difference)} in all"
                if len(own) > 2:
                    latest = changes[own[-2], own[-1]]
                    certain = "not " * (latest.verdict == "undecided")
                    text += f"; last change {unit.difference(latest.difference)}, {certain}certain"
                lost = [
                    change
                    for change in self.changes
                    if change.after == own[-1] and change.before not in (own[0], own[-2])
                    if change.verdict == "worse"
                ]
                text += "".join(
                    f"; below {change.before} ({unit.difference(change.difference)})"
                    for change in lost
                )
            texts.append(f"{text}.")
        return texts

    def _ahead(self, about: str, unit: Unit) -> str:
        """Return which run is ahead of which, and how sure that is."""
        compared = [each for each in self.runs if not each.is_stopped]
        first, *others = compared
        assert first.chance_ahead is not None  # as for all that are compared
        same = len({each.step for each in compared}) == 1
        when = f"at step {first.step:,.10g}" if same else "at the last checkpoints"
        behind = [each.run for each in others if each.is_behind]
        open_ = [each.run for each in others if not each.is_behind]
        texts = []
        if behind:
            texts.append(f"certainly ahead of {', '.join(behind)}")
        if open_:
            texts.append(f"not certainly ahead of {', '.join(open_)}")
        return (
            f"{on_these(self.items_total)}, {first.run} is the highest of "
            f"{counted(len(compared), 'run')} {when}, with {unit.score(first.score)}. {about} "
            f"it is the best of them with probability {probability(first.chance_ahead)}, "
            f"{' and '.join(texts)}"
        )

    def _side_by_side(self, unit: Unit) -> Section:
        head = [("Run", False), ("Checkpoint", False), ("Score", True), ("Interval", True)]
        head += [("Behind", True), ("Interval", True), ("Certain", False), ("P(ahead)", True)]
        rows = [
            [
                *(each.run, each.checkpoint, unit.score(each.score), unit.scores(each.interval)),
                "–" if each.behind_interval is None else unit.difference(each.behind),
                unit.differences(each.behind_interval),
                "–" if each.behind_interval is None else "yes" if each.is_behind else "no",
                "–" if each.chance_ahead is None else probability(each.chance_ahead),
            ]
            for each in self.runs
        ]
        about = "on exactly these items" if self.fixed_items else f"in general, {AS_MODELS}"
        note = (
            f"Runs are compared at the last step that all have, {about}. Certain: behind at "
            f"{self.level:.0%}, all pairs of runs together."
        )
        if any(each.is_stopped for each in self.runs):
            note += " Runs that stopped before a step that two others have are not compared."
        return Section("runs", "Runs", [note], tables=[Table("Runs", head, rows, "a run")])

    def _benchmarks(self, unit: Unit) -> Section:
        head = [("Run", False)] * bool(self.runs)
        head += [("Benchmark", False), ("Last", True), ("Interval", True), ("Since first", True)]
        head += [("Interval", True), ("Verdict", False), ("adjusted p", True)]
        rows = []
        for change in self.benchmark_changes:
            parts = self[change.after].benchmarks
            part = next(part for part in parts if part.benchmark == change.benchmark)
            rows.append(
                [
                    *([change.run] if self.runs else []),
                    *(change.benchmark, unit.score(part.score)),
                    "–" if part.interval is None else unit.scores(part.interval),
                    *(unit.difference(change.difference), unit.differences(change.interval)),
                    *(change.verdict, p_value(change.p_adjusted)),
                ]
            )
        curves = [
            {"step": point.step, "score": part.score, "curve": f"{point.run} {name}".strip()}
            for point in self.points
            for part in point.benchmarks
            if (name := part.benchmark)
        ]
        note = "The last checkpoint by benchmark, and the change since the first one."
        return Section(
            "benchmarks",
            "Benchmarks",
            [note],
            charts=[("", lambda: tracked(curves, unit))],
            tables=[Table("Benchmarks", head, rows, "a benchmark")],
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
        real = len(self.real_changes)
        return Section(
            "changes",
            "Changes",
            [
                f"{real} of {len(self.changes)} tested changes {'is' if real == 1 else 'are'} real "
                f"(at {self.level:.0%}, all together). "
                "Each checkpoint is compared with the last earlier checkpoint that ran all items, "
                "or, without one, with the checkpoint before. The last checkpoint is also "
                "compared with the first and with the best earlier one. p values are adjusted by "
                "Holm's method for the number of changes."
            ],
            tables=tables,
        )
