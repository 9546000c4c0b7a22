"""Track: the scores of a run's checkpoints, which changes are real, and which is the best."""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from fewbench._names import some
from fewbench._warned import issue
from fewbench.algorithms import ties
from fewbench.decide.checkpoints import TrainingRun, read_run
from fewbench.decide.differences import POWER, judged
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.multiple import adjusted_p_values
from fewbench.decide.operands import Given, Operand, operand, warnings_of
from fewbench.decide.random_pairs import items_of_width
from fewbench.decide.simultaneous import EQUAL
from fewbench.decide.standings import Standings
from fewbench.decide.track_folder import open_folder
from fewbench.decide.track_result import (
    BenchmarkChange,
    Change,
    PartScore,
    Point,
    RunStanding,
    Track,
)
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.interval import Interval
from fewbench.scores import Scores
from fewbench.uncertainty.contrast import Contrast
from fewbench.uncertainty.intervals import Uncertainty
from fewbench.uncertainty.sampling import check_level

CONTENDERS = 25
"""Checkpoints of the highest scores that may be the best; the others have probability 0."""
SCANT = 10
"""Fewer answers than this are not informative."""

Tracked = Scores | Evaluation | Sequence[Evaluation] | str | os.PathLike[str]
"""A table with the run's models, evaluations of checkpoints, or a folder of them."""


def track(
    checkpoints: Tracked,
    *,
    run: str | None = None,
    steps: Mapping[str, float] | None = None,
    scores: Scores | None = None,
    level: float = 0.9,
    fixed_items: bool = False,
    half_width: float | None = None,
    change: float | None = None,
) -> Track:
    """Follow the checkpoints of training runs.

    The result is the score of each checkpoint with its interval, which changes are real, and which
    checkpoint is probably the best. Scores and their intervals are of these items. A change is real
    if it holds for the checkpoints, on questions like these and if they run again.

    Checkpoints whose names differ in more than their steps, such as a/step-1000 and b/step-1000, or
    that are in folders of their own, are of several runs. These are compared at the last step that
    all of them have. A run that stopped before a step that two others have is not compared.

    With `fixed_items`, a change is real if it holds on exactly these items.

    Checkpoints that ran all items join the source models; the others are estimated. If you run one
    checkpoint in full every few steps, the others are tested against it, which finds more of the
    real changes.

    Steps are read from names such as step-1000, iter_0003000, ckpt-5B or epoch2, from a column step
    of the models, or from `steps`.

    Parameters
    ----------
    checkpoints : Scores, Evaluation, sequence of Evaluation, or path
        Scores whose models include the checkpoints, or a folder of evaluations whose targets are
        the checkpoints.
    run : str, optional
        Checkpoints in the scores: their family, or the start of their names.
    steps : mapping of name to number, optional
        Steps of checkpoints whose names contain no step.
    scores : Scores, optional
        Scores file of the source models if it was moved.
    level : float
        Level of each interval, and of all verdicts together.
    fixed_items : bool
        Compare the scores on exactly these items, of these runs, and not the checkpoints.
    half_width : float, optional
        Print how many items the next checkpoint needs for an interval of this half width, on the
        scale of the scores.
    change : float, optional
        Print how many items the next checkpoint needs to find a change of this size in 80% of
        cases, on the scale of the scores.

    Raises
    ------
    EvaluationError
        Without a checkpoint, with one if items for a `change` are asked for, or if the steps are
        unknown.

    Examples
    --------
    >>> from fewbench.testing import simulate_run
    >>> table = simulate_run(6, 200, n_models=30, seed=1)
    >>> found = track(table, run="run")
    >>> [point.checkpoint for point in found.points][:2], found.points[0].is_known
    (['run/step-1000', 'run/step-2000'], True)
    """
    check_level(level)
    kept_in: Path | None = None
    followed: Scores | Sequence[Evaluation]
    if isinstance(checkpoints, str | os.PathLike):
        kept_in = Path(checkpoints)
        followed = open_folder(kept_in, scores)
    elif isinstance(checkpoints, Evaluation):
        followed, kept_in = [checkpoints], checkpoints.folder
    else:
        followed = checkpoints
    training_run = read_run(followed, run, steps, kept_in)
    if run is None and kept_in is not None:
        training_run = replace(training_run, name=kept_in.resolve().name)
    span = training_run.scores.scale.span
    for name, wanted in (("half width", half_width), ("change", change)):
        if wanted is not None and not 0 < wanted < span:
            raise EvaluationError(
                f"the wanted {name} is {wanted:g}, and the scores range over {span:g}",
                hint=f"give a number between 0 and {span:g}, on the scale of the scores",
            )
    if half_width is not None and change is not None:
        raise EvaluationError("a half width and a change are given", hint="give one of the two")
    tracked = _Tracker(training_run, level, fixed_items=fixed_items).track(half_width, change)
    issue(tracked.warnings)
    return tracked


class _Tracker:
    """Estimates the checkpoints of a run and compares them; scores in [0, 1], 1 being best."""

    def __init__(self, run: TrainingRun, level: float, *, fixed_items: bool) -> None:
        self.run, self.level, self.scores = run, level, run.scores
        self.fixed_items = fixed_items
        self.names = [checkpoint.name for checkpoint in run.checkpoints]
        targets: list[Given] = [
            (run.evaluations[each.name], each.target or each.name)
            if each.name in run.evaluations
            else each.name
            for each in run.checkpoints
        ]
        self.operands = [
            replace(operand(target, run.scores), name=name)
            for target, name in zip(targets, self.names, strict=True)
        ]
        self.joint = JointEstimate(self.operands, level, fixed_items)
        self.estimates = np.array([float(side.estimates[0]) for side in self.operands])

    def track(self, half_width: float | None, change: float | None) -> Track:
        """Return the result."""
        scale, needed = self.scores.scale, self._needed(half_width, change)
        contenders = ties.argsort(-self.estimates)[:CONTENDERS].tolist()
        standings = Standings.of(self.joint.among(contenders), self.level)
        of_names = dict(zip(standings.names, standings.chances.tolist(), strict=True))
        chances = np.array([of_names.get(name, 0.0) for name in self.names])
        # Where all are as likely, the highest score.
        best = int(ties.argmax(np.where(chances >= chances.max() - EQUAL, self.estimates, -1.0)))
        points = []
        for at, checkpoint in enumerate(self.run.checkpoints):
            side = self._own(at)
            on_these, of_model = (
                Interval.between(scale.from_unit(joint.full_interval(0, self.level)))
                for joint in (JointEstimate([side], fixed_items=True), JointEstimate([side]))
            )
            points.append(
                Point(
                    benchmarks=self._benchmarks(side),
                    checkpoint=checkpoint.name,
                    run=self.run.runs[at],
                    step=float(self.run.steps[at]),
                    score=float(scale.from_unit(float(side.estimates[0]))),
                    interval=on_these,
                    as_model=None if self.fixed_items else of_model,
                    is_known=side.is_known,
                    items_run=len(checkpoint.items),
                    chance_best=float(chances[at]),
                )
            )
        return Track(
            run=self.run.name,
            scale=scale,
            average=self.scores.average,
            level=self.level,
            fixed_items=self.fixed_items,
            points=tuple(points),
            changes=self._changes(),
            runs=self._side_by_side(),
            benchmark_changes=self._benchmark_changes(),
            best=self.names[best],
            chosen=standings.chosen(scale, standings.names.index(self.names[best])),
            items_needed=needed,
            is_findable=needed is not None or change is None or not self._partial,
            items_total=self.scores.n_items,
            sources=self.scores.n_models,
            warnings=self._warnings(),
        )

    def _own(self, at: int) -> Operand:
        """Return a checkpoint as `estimate` has it: without the whole ones as source models."""
        own = self.run.checkpoints[at].evaluation
        if own is None or self.operands[at].is_known:
            return self.operands[at]
        return operand((own, self.run.checkpoints[at].target), own.scores)

    def _benchmarks(self, side: Operand) -> tuple[PartScore, ...]:
        """Return a checkpoint's score on each benchmark, on these items."""
        parts = JointEstimate([side], fixed_items=True).by_benchmark
        if parts is None:
            return ()
        scale, found = self.scores.scale, []
        for column, name in enumerate(parts.scores.tasks, start=1):
            ends = parts.interval(0, self.level, column)
            score = float(scale.from_unit(float(parts.estimates(column)[0])))
            interval = None if ends is None else Interval.between(scale.from_unit(ends))
            found.append(PartScore(benchmark=name, score=score, interval=interval))
        return tuple(found)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The places of each run's checkpoints, in order of their steps."""
        places: dict[str, list[int]] = {}
        for at, run in enumerate(self.run.runs):
            places.setdefault(run, []).append(at)
        return places

    def _pairs(self, places: Sequence[int]) -> dict[tuple[int, int], int]:
        """Return the changes of a run to judge, earlier first, and of how many each was chosen.

        From the last whole checkpoint, which finds more, and from the step before. The last one
        also from the first, and from the best before.
        """
        first, last, whole = places[0], places[-1], places[0]
        if first == last:
            return {}
        from_whole, steps = [], [*pairwise(places)]
        for before, at in steps:
            if self.operands[before].is_known:
                whole = before
            if self.operands[whole].is_known:
                from_whole.append((whole, at))
        best = places[int(ties.argmax(self.estimates[[*places[:-1]]]))]
        pairs = dict.fromkeys([*from_whole, *steps, (first, last)], 1)
        return pairs if (best, last) in pairs else {**pairs, (best, last): len(places) - 1}

    def _changes(self) -> tuple[Change, ...]:
        times = {
            pair: n for places in self._places.values() for pair, n in self._pairs(places).items()
        }
        if not (pairs := [*times]):
            return ()
        contrasts = [self.joint.full_difference(after, before) for before, after in pairs]
        p_values, adjusted = _tested(contrasts, [*times.values()])
        return tuple(
            Change(
                before=self.names[before],
                after=self.names[after],
                **judged(self.scores.scale, self.level, pair.difference, pair, *p_values_of),
            )
            for (before, after), pair, *p_values_of in zip(
                pairs, contrasts, p_values, adjusted, strict=True
            )
        )

    def _benchmark_changes(self) -> tuple[BenchmarkChange, ...]:
        """Return what each run gained on each benchmark, from its first checkpoint to its last."""
        if (joint := self.joint.by_benchmark) is None:
            return ()
        known = [
            (places, name, difference)
            for places in self._places.values()
            if len(places) > 1
            for column, name in enumerate(joint.scores.tasks, start=1)
            if (difference := joint.difference(places[-1], places[0], column)) is not None
        ]
        p_values, adjusted = _tested([difference for _, _, difference in known])
        return tuple(
            BenchmarkChange(
                run=self.run.runs[places[0]],
                benchmark=name,
                before=self.names[places[0]],
                after=self.names[places[-1]],
                **judged(self.scores.scale, self.level, pair.difference, pair, p_value, of_all),
            )
            for (places, name, pair), p_value, of_all in zip(known, p_values, adjusted, strict=True)
        )

    def _side_by_side(self) -> tuple[RunStanding, ...]:
        """Return how the runs stand at the last step that all have, else at their last steps.

        A run that ended before a step that two others have is not compared: it would hold the
        comparison of the others at its end. It comes last.
        """
        if len(self._places) < 2:
            return ()
        steps = [{float(self.run.steps[at]): at for at in own} for own in self._places.values()]
        times = Counter(step for of_run in steps for step in of_run)
        edge = max((step for step, n_runs in times.items() if n_runs > 1), default=0.0)
        going = [of_run for of_run in steps if max(of_run) >= edge]
        common = set.intersection(*(set(of_run) for of_run in going))
        compared = [of_run[max(common or of_run)] for of_run in going]
        joint, scale = self.joint.among(compared), self.scores.scale
        standings = Standings.of(joint, self.level)
        above, first = standings.surely_above, self.names.index(standings.names[0])
        found = []
        for place, of_run in zip(standings.places(scale), standings.names, strict=True):
            at = self.names.index(of_run)
            apart = self.joint.full_difference(at, first)
            ends = scale.difference_from_unit(apart.interval(self.level))
            assert place.interval is not None  # a full score is never unknown
            found.append(
                RunStanding(
                    run=self.run.runs[at],
                    checkpoint=of_run,
                    step=float(self.run.steps[at]),
                    checkpoints=len(self._places[self.run.runs[at]]),
                    score=place.score,
                    interval=place.interval,
                    behind=float(scale.difference_from_unit(apart.difference)),
                    behind_interval=None if at == first else Interval.between(ends),
                    is_behind=bool(above[0, standings.names.index(of_run)]),
                    chance_ahead=place.chance_best,
                )
            )
        for ended in steps:
            if (last := max(ended)) < edge:
                at = ended[last]
                ends = scale.from_unit(self.joint.full_interval(at, self.level))
                found.append(
                    RunStanding(
                        run=self.run.runs[at],
                        checkpoint=self.names[at],
                        step=last,
                        checkpoints=len(ended),
                        score=float(scale.from_unit(float(self.estimates[at]))),
                        interval=Interval.between(ends),
                    )
                )
        return tuple(found)

    @property
    def _partial(self) -> list[int]:
        """The checkpoints that did not run all items."""
        return [at for at, side in enumerate(self.operands) if not side.is_known]

    def _needed(self, half_width: float | None, change: float | None) -> int | None:
        """Return how many items the next checkpoint needs, by the last one that ran a part.

        None if even all items would not find such a change.
        """
        from scipy.special import ndtri

        wanted = half_width or change
        if wanted is None or not self._partial:
            return None
        last, wanted = self._partial[-1], wanted / self.scores.scale.span
        n, n_items = len(self.run.checkpoints[last].items), self.scores.n_items
        score = self.operands[last].score
        assert isinstance(score, Uncertainty)
        half = score.half(self.level)
        if change is not None and len(self.names) < 2:
            raise EvaluationError(
                "1 checkpoint with answers, and a change has two", hint="give a half width"
            )
        if change is not None:
            times = float(ndtri(0.5 + self.level / 2) + ndtri(POWER))
            difference = self.joint.full_difference(last, last - 1 if last else 1)
            half, of_questions = (times * error for error in difference.standard_errors)
            if of_questions and of_questions >= wanted:
                return None
            wanted = math.sqrt(wanted**2 - of_questions**2)
        return items_of_width(half, wanted, n, n_items)

    def _warnings(self) -> tuple[str, ...]:
        texts = [*warnings_of(self.operands), *self.run.notes]
        if self.run.silent:
            texts.append(f"{some(self.run.silent)}: no answers yet")
        scant = [
            checkpoint.name for checkpoint in self.run.checkpoints if len(checkpoint.items) < SCANT
        ]
        if scant:
            texts.append(
                f"{some(scant)}: fewer than {SCANT} answers. The estimate is not reliable yet; "
                "run more items"
            )
        return tuple(texts)


def _tested(
    contrasts: Sequence[Contrast], times: Sequence[int] | None = None
) -> tuple[list[float], list[float]]:
    """Return the differences' p values, and those adjusted for their number.

    Each was chosen from so many (`times`). A difference without error needs no test.
    """
    p_values = np.array([difference.p_value for difference in contrasts])
    if times is not None:
        p_values = np.minimum(1.0, p_values * times)
    tested = np.array([not difference.is_certain for difference in contrasts], dtype=bool)
    adjusted = p_values.copy()
    adjusted[tested] = adjusted_p_values(p_values[tested])
    return p_values.tolist(), adjusted.tolist()
