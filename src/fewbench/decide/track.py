"""Track: the scores of a run's checkpoints, which changes are real, and which is the best."""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from fewbench._names import some
from fewbench._types import FloatArray
from fewbench.decide.checkpoints import Run, WithinRun, read_run
from fewbench.decide.curve import Curve, smooth
from fewbench.decide.held_out import HeldOut
from fewbench.decide.paired import items_needed
from fewbench.decide.rank import chances_of_ranks
from fewbench.decide.sides import Side
from fewbench.decide.track_folder import open_folder
from fewbench.errors import EvaluationError
from fewbench.evaluation import Estimate, Evaluation
from fewbench.evaluation.estimate import Interval
from fewbench.evaluation.sampling import check_level
from fewbench.scores import Scores
from fewbench.study.inference import holm

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["better", "worse", "undecided"]
CONTENDERS = 25
"""Checkpoints of the highest scores that may be the best; the others have probability 0."""
POWER = 0.8
"""Share of changes of the wanted size that are found, for the number of items."""
SCANT = 10
"""Fewer answers than this say little."""


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
        Two-sided, by itself and adjusted by Holm for the number of changes.
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


Given = Scores | Evaluation | Sequence[Evaluation] | str | os.PathLike[str]
"""A table with the run's models, evaluations of checkpoints, or a folder of them."""


def track(
    given: Given,
    *,
    run: str | None = None,
    steps: Mapping[str, float] | None = None,
    scores: Scores | None = None,
    level: float = 0.9,
    neighbors: bool = True,
    half_width: float | None = None,
    change: float | None = None,
) -> Track:
    """Follow the checkpoints of one run.

    Checkpoints that ran all items join the source models, the others are estimated from their
    answers. Measures the errors of the method on the source models, which can take as long as 100
    runs of the method; a folder keeps them.

    Parameters
    ----------
    given : Scores, Evaluation, sequence of Evaluation, or path
        A table whose models include the run's checkpoints, evaluated wholly or in part;
        evaluations whose targets are the checkpoints; or the folder of `fewbench track` or of one
        evaluation.
    run : str, optional
        Checkpoints in the table: their family, or how their names start.
    steps : mapping of name to number, optional
        Steps of checkpoints whose names do not tell them.
    scores : Scores, optional
        The source models, if their file was moved.
    level : float
        Level of the band and of the verdicts.
    neighbors : bool
        Whether the curve uses neighbors in time; else each checkpoint's own estimate.
    half_width, change : float, optional
        Say how many items the next checkpoint needs for a band of this half width, or to find a
        change of this size in 80 % of cases, on the scale of the scores.

    Raises
    ------
    EvaluationError
        With fewer than two checkpoints, or if their steps are unknown.

    Examples
    --------
    >>> from fewbench.testing import simulate_run
    >>> table = simulate_run(6, 200, n_models=30, seed=1)
    >>> found = track(table, run="run")
    >>> [point.checkpoint for point in found.points][:2], found.points[0].is_known
    (['run/step-1000', 'run/step-2000'], True)
    """
    check_level(level)
    kept_in = None
    if isinstance(given, str | os.PathLike):
        kept_in = Path(given)
        opened = open_folder(kept_in, scores)
        given, steps = opened.evaluations, opened.steps | dict(steps or {})
        run = run or opened.run
    elif isinstance(given, Evaluation):
        given, kept_in = [given], given.folder
    found = read_run(given, run, steps, kept_in)
    span = found.scores.scale.high - found.scores.scale.low
    for name, wanted in (("half width", half_width), ("change", change)):
        if wanted is not None and not 0 < wanted < span:
            raise EvaluationError(
                f"the wanted {name} is {wanted:g}, and the scores range over {span:g}",
                hint=f"give a number between 0 and {span:g}, on the scale of the scores",
            )
    if half_width is not None and change is not None:
        raise EvaluationError("a half width and a change given", hint="give one of the two")
    return _Tracker(found, level, neighbors).track(half_width, change)


class _Tracker:
    """Estimates the checkpoints of a run and compares them."""

    def __init__(self, run: Run, level: float, neighbors: bool) -> None:
        self.run, self.level, self.scores = run, level, run.scores
        self.names = [one.name for one in run.checkpoints]
        self.sides: list[Side] = [run.side(name) for name in self.names]
        self._held: dict[tuple[object, ...], HeldOut] = {}
        self.estimates = self._estimated()
        self.alone = np.array([float(one.estimates[0]) for one in self.sides])
        self.ends = np.array([self._ends(at) for at in range(len(self.names))])
        from scipy.special import ndtri

        self.errors = (self.ends[:, 1] - self.ends[:, 0]) / 2 / float(ndtri(0.5 + level / 2))
        drawn = smooth(run.steps, self.alone, self.errors)
        plain = Curve(self.alone, np.ones(len(self.names)), drawn.left_out)
        self.is_smoothed = neighbors and not np.isnan(drawn.left_out).all()
        self.left_out = drawn.left_out
        self.curve = drawn if self.is_smoothed else plain

    def _estimated(self) -> dict[str, Estimate]:
        together: dict[int, list[str]] = {}
        evaluations = self.run.evaluations
        for name, evaluation in evaluations.items():
            together.setdefault(id(evaluation), []).append(name)
        found: dict[str, Estimate] = {}
        for names in together.values():
            found |= evaluations[names[0]].estimate(self.level, names)
        return found

    def _ends(self, at: int) -> tuple[float, float]:
        """Return the interval of one checkpoint's own estimate, in [0, 1]."""
        name = self.names[at]
        if name not in self.estimates:
            return float(self.alone[at]), float(self.alone[at])
        interval = self.estimates[name].interval
        low, high = np.sort(self.scores.scale.to_unit(np.array([interval.low, interval.high])))
        return float(low), float(high)

    def track(self, half_width: float | None, change: float | None) -> Track:
        """Return the result."""
        scale = self.scores.scale
        span = scale.high - scale.low
        chances = self._chances()
        points = []
        for at, checkpoint in enumerate(self.run.checkpoints):
            middle, shrunk = float(self.curve.scores[at]), float(self.curve.shrinkage[at])
            low, high = middle + shrunk * (self.ends[at] - self.alone[at])
            low, high = scale.interval_from_unit(max(0.0, float(low)), min(1.0, float(high)))
            expected = float(self.left_out[at])
            points.append(
                Point(
                    checkpoint=checkpoint.name,
                    step=float(self.run.steps[at]),
                    score=float(scale.from_unit(middle)),
                    interval=Interval(low=low, high=high),
                    alone=float(scale.from_unit(float(self.alone[at]))),
                    expected=None if math.isnan(expected) else float(scale.from_unit(expected)),
                    is_known=self.sides[at].is_known,
                    items_run=len(checkpoint.items),
                    chance_best=float(chances[at]),
                )
            )
        open_ = self.errors > 0
        neighbor_error = None
        if open_.any() and not np.isnan(self.left_out).all():
            apart = (self.alone - self.left_out)[open_]
            neighbor_error = span * math.sqrt(float(np.mean(apart**2)))
        own = span * math.sqrt(float(np.mean(self.errors[open_] ** 2))) if open_.any() else None
        return Track(
            run=self.run.name,
            level=self.level,
            points=tuple(points),
            changes=self._changes(),
            best=self.names[int(np.argmax(np.round(chances, 9)))],
            is_smoothed=self.is_smoothed,
            neighbor_error=neighbor_error,
            own_error=own,
            items_needed=self._needed(half_width, change, span),
            items_total=self.scores.n_items,
            sources=self.scores.n_models,
            warnings=self._warnings(),
        )

    def _contrast(self, i: int, j: int) -> WithinRun:
        return WithinRun(
            self.sides[i], self.sides[j], self.scores, sequential=False, held=self._held
        )

    def _chances(self) -> FloatArray:
        """Return the probability of each checkpoint to be the best."""
        order = np.argsort(-self.curve.scores, kind="stable")[:CONTENDERS]
        errors = np.zeros((len(order), len(order)))
        for i, j in itertools.combinations(range(len(order)), 2):
            contrast = self._contrast(int(order[i]), int(order[j]))
            errors[i, j] = errors[j, i] = contrast.standard_error(self.level)
        chances = np.zeros(len(self.names))
        chances[order] = chances_of_ranks(self.curve.scores[order], errors)[:, 0]
        return chances

    def _pairs(self) -> list[tuple[int, int]]:
        """Return the changes to judge, earlier first."""
        n = len(self.names)
        pairs = [(at, at + 1) for at in range(n - 1)]
        best = int(np.argmax(self.alone[:-1]))
        return list(dict.fromkeys([*pairs, (0, n - 1), (best, n - 1)]))

    def _changes(self) -> tuple[Change, ...]:
        from scipy.stats import t

        scale = self.scores.scale
        span = scale.high - scale.low
        sign = -span if scale.lower_is_better else span
        made = []
        for before, after in self._pairs():
            contrast = self._contrast(after, before)
            apart, error = contrast.difference, contrast.standard_error(self.level)
            if not contrast.open:
                p_value = 0.0 if abs(apart) > 1e-12 else 1.0
            elif not math.isfinite(error):
                p_value = 1.0
            else:
                ratio = abs(apart) / error if error > 0 else math.inf
                p_value = float(2 * t.sf(ratio, contrast.residuals.groups)) if apart else 1.0
            made.append((before, after, contrast, p_value))
        tested = [at for at, one in enumerate(made) if one[2].open]
        rejected = holm({str(at): made[at][3] for at in tested}, 1 - self.level)
        adjusted = _holm_adjusted(np.array([made[at][3] for at in tested]))
        by_place = dict(zip(tested, adjusted.tolist(), strict=True))
        changes = []
        for at, (before, after, contrast, p_value) in enumerate(made):
            judged = contrast.interval(self.level)
            low, high = sorted((sign * judged.low, sign * judged.high))
            is_real = str(at) in rejected if contrast.open else p_value == 0.0
            verdict: Verdict = "undecided"
            if is_real and contrast.difference:
                verdict = "better" if contrast.difference > 0 else "worse"
            changes.append(
                Change(
                    before=self.names[before],
                    after=self.names[after],
                    difference=sign * contrast.difference,
                    interval=Interval(low=low, high=high),
                    p_value=p_value,
                    p_adjusted=by_place.get(at, p_value),
                    verdict=verdict,
                )
            )
        return tuple(changes)

    def _needed(
        self, half_width: float | None, change: float | None, span: float
    ) -> int | None:
        """Return how many items the next checkpoint needs, by the last one that ran a part."""
        wanted = half_width or change
        open_ = [at for at in range(len(self.names)) if self.errors[at] > 0]
        if wanted is None or not open_:
            return None
        last = open_[-1]
        n = len(self.run.checkpoints[last].items)
        if half_width is not None:
            half = float(self.ends[last, 1] - self.ends[last, 0]) / 2
        else:
            from scipy.special import ndtri

            other = last - 1 if last else 1
            times = float(ndtri(0.5 + self.level / 2) + ndtri(POWER))
            half = times * self._contrast(last, other).standard_error(self.level)
        # With fewer items than now the half width is no guide, but the law is the same.
        return _items_for(half, wanted / span, n, self.scores.n_items)

    def _warnings(self) -> tuple[str, ...]:
        by_text: dict[str, list[str]] = {}
        for name, estimate in self.estimates.items():
            for said in estimate.warnings:
                by_text.setdefault(said, []).append(name)
        found = []
        for said, names in by_text.items():
            everyone = len(names) == len(self.estimates)
            found.append(said if everyone else f"{some(names)}: {said}")
        scant = [one.name for one in self.run.checkpoints if len(one.items) < SCANT]
        if scant:
            found.append(
                f"{some(scant)}: fewer than {SCANT} answers. The estimate says little; run more "
                "items"
            )
        moved = np.abs(self.curve.scores - self.alone) > 0.5 * np.maximum(self.errors, 1e-9)
        if moved.any():
            names = [self.names[at] for at in np.flatnonzero(moved)]
            found.append(
                f"{some(names)}: the curve is over half a standard error from the checkpoint's own "
                "estimate. If a sudden change is real, more items show it"
            )
        return tuple(dict.fromkeys(found))


def _items_for(half: float, wanted: float, n: int, n_items: int) -> int:
    """Return how many items bring a half width to a wanted one, more or fewer than now."""
    if half > wanted or not math.isfinite(half):
        return items_needed(half, wanted, n, n_items)
    each = 1 / n_items + (1 / n - 1 / n_items) * (wanted / max(half, 1e-12)) ** 2
    return max(1, min(n, math.ceil(1 / each - 1e-9)))


def _holm_adjusted(p_values: FloatArray) -> FloatArray:
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    raised = np.maximum.accumulate(np.minimum(1.0, left * p_values[order]))
    return np.asarray(raised[np.argsort(order, kind="stable")])
