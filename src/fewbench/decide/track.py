"""Track: the scores of a run's checkpoints, which changes are real, and which is the best."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from fewbench.decide.track_result import Change, Point, Track
from fewbench.errors import EvaluationError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.interval import Interval
from fewbench.scores import Scores
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
    """Follow the checkpoints of a training run.

    The result is the score of each checkpoint with its interval, which changes are real, and which
    checkpoint is probably the best. Scores and their intervals are of these items. A change is real
    if it holds for the checkpoints, on questions like these and if they run again.

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
            (run.evaluations[name], name) if name in run.evaluations else name
            for name in self.names
        ]
        self.operands = [operand(target, run.scores) for target in targets]
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
                    checkpoint=checkpoint.name,
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
        return operand((own, self.names[at]), own.scores)

    def _pairs(self) -> list[tuple[int, int]]:
        """Return the changes to judge, earlier first; the last may be from the best before.

        From the last whole checkpoint, which finds more, and from the step before.
        """
        last, whole = len(self.names) - 1, 0
        if not last:
            return []
        from_whole, steps = [], [(at - 1, at) for at in range(1, last + 1)]
        for at in range(1, last + 1):
            if self.operands[at - 1].is_known:
                whole = at - 1
            if self.operands[whole].is_known:
                from_whole.append((whole, at))
        best = int(ties.argmax(self.estimates[:-1]))
        return list(dict.fromkeys([*from_whole, *steps, (0, last), (best, last)]))

    def _changes(self) -> tuple[Change, ...]:
        if not (pairs := self._pairs()):
            return ()
        contrasts = [self.joint.full_difference(after, before) for before, after in pairs]
        p_values = np.array([difference.p_value for difference in contrasts])
        n = len(self.names)
        if pairs[-1] != (0, n - 1) and pairs[-1][0] != n - 2:  # the best before: one of all before
            p_values[-1] = min(1.0, float(p_values[-1]) * (n - 1))
        tested = np.array(
            [not difference.is_certain for difference in contrasts]
        )  # a difference without error needs no test
        adjusted = p_values.copy()
        adjusted[tested] = adjusted_p_values(p_values[tested])
        return tuple(
            Change(
                before=self.names[before],
                after=self.names[after],
                **judged(self.scores.scale, self.level, pair.difference, pair, *p_values_of),
            )
            for (before, after), pair, *p_values_of in zip(
                pairs, contrasts, p_values.tolist(), adjusted.tolist(), strict=True
            )
        )

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
