"""Track: the scores of a run's checkpoints, which changes are real, and which is the best."""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from fewbench._blocks import by_columns
from fewbench._names import some
from fewbench._types import FloatArray
from fewbench.decide.checkpoints import Run, read_run
from fewbench.decide.curve import Curve, smooth
from fewbench.decide.paired import items_of_width
from fewbench.decide.track_folder import open_folder
from fewbench.decide.track_result import Change, Point, Track, Verdict
from fewbench.errors import EvaluationError
from fewbench.evaluation import Estimate, Evaluation
from fewbench.evaluation.estimate import Interval
from fewbench.evaluation.sampling import check_level
from fewbench.scores import Scores
from fewbench.study.multiple import adjusted_p_values

CONTENDERS = 25
"""Checkpoints of the highest scores that may be the best; the others have probability 0."""
POWER = 0.8
"""Share of changes of the wanted size that are found, for the number of items."""
SCANT = 10
"""Fewer answers than this, or common items of two checkpoints, say little."""
PRIOR, LEAST = 2.0, 0.3
"""So many items count for how source models differ beside how two checkpoints do; least share of
their disagreement that is noise."""
DRAWS = 20_000
"""Draws of all scores, for the probability of being the best."""


Given = Scores | Evaluation | Sequence[Evaluation] | str | os.PathLike[str]
"""A table with the run's models, evaluations of checkpoints, or a folder of them."""


def track(
    given: Given,
    *,
    run: str | None = None,
    steps: Mapping[str, float] | None = None,
    scores: Scores | None = None,
    level: float = 0.9,
    neighbors: bool = False,
    half_width: float | None = None,
    change: float | None = None,
) -> Track:
    """Follow the checkpoints of one run.

    Checkpoints that ran all items join the source models, the others are estimated from their
    answers. Measures the errors of the method on the source models, which can take as long as 20
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
        Whether neighbors in time move the curve; else it is each checkpoint's own estimate.
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
    kept_in: Path | None = None
    of: Scores | Sequence[Evaluation]
    if isinstance(given, str | os.PathLike):
        kept_in = Path(given)
        opened = open_folder(kept_in, scores)
        of, run = opened.evaluations, run or opened.run
        steps = {**opened.steps, **(steps or {})}
    elif isinstance(given, Evaluation):
        of, kept_in = [given], given.folder
    else:
        of = given
    found = read_run(of, run, steps, kept_in)
    if run is None and kept_in is not None:
        found = replace(found, name=kept_in.resolve().name)
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
    """Estimates the checkpoints of a run and compares them; scores in [0, 1], 1 being best."""

    def __init__(self, run: Run, level: float, neighbors: bool) -> None:
        from scipy.special import ndtri

        self.run, self.level, self.scores = run, level, run.scores
        self.names = [one.name for one in run.checkpoints]
        self.estimates = self._estimated()
        self.alone, self.ends = self._own()
        self.errors = (self.ends[:, 1] - self.ends[:, 0]) / 2 / float(ndtri(0.5 + level / 2))
        drawn = smooth(run.steps, self.alone, self.errors)
        plain = Curve(self.alone, np.ones(len(self.names)), drawn.left_out)
        self.is_smoothed = neighbors and not np.isnan(drawn.left_out).all()
        self.curve = drawn if self.is_smoothed else plain

    def _estimated(self) -> dict[str, Estimate]:
        """Return the estimates of the checkpoints that did not run all items."""
        together: dict[int, list[str]] = {}
        evaluations = self.run.evaluations
        for name, evaluation in evaluations.items():
            together.setdefault(id(evaluation), []).append(name)
        found: dict[str, Estimate] = {}
        for names in together.values():
            found |= evaluations[names[0]].estimate(self.level, names)
        return found

    def _own(self) -> tuple[FloatArray, FloatArray]:
        """Return the checkpoints' own estimates, and the ends of their intervals."""
        full = dict(zip(self.scores.model_ids, self.scores.full_scores().tolist(), strict=True))
        alone, ends = [], []
        for name in self.names:
            one = self.estimates.get(name)
            if one is None:
                numbers = np.full(3, full[name])
            else:
                given = np.array([one.score, one.interval.low, one.interval.high])
                numbers = self.scores.scale.to_unit(given)
            alone.append(numbers[0])
            ends.append(np.sort(numbers[1:]))
        return np.array(alone), np.array(ends)

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
            expected = float(self.curve.left_out[at])
            points.append(
                Point(
                    checkpoint=checkpoint.name,
                    step=float(self.run.steps[at]),
                    score=float(scale.from_unit(middle)),
                    interval=Interval(low=low, high=high),
                    alone=float(scale.from_unit(float(self.alone[at]))),
                    expected=None if math.isnan(expected) else float(scale.from_unit(expected)),
                    is_known=checkpoint.name not in self.estimates,
                    items_run=len(checkpoint.items),
                    chance_best=float(chances[at]),
                )
            )
        partial = np.array([name in self.estimates for name in self.names])
        neighbor_error = own_error = None
        if partial.any():
            own_error = span * math.sqrt(float(np.mean(self.errors[partial] ** 2)))
            if not np.isnan(self.curve.left_out).all():
                apart = (self.alone - self.curve.left_out)[partial]
                neighbor_error = span * math.sqrt(float(np.mean(apart**2)))
        return Track(
            run=self.run.name,
            level=self.level,
            points=tuple(points),
            changes=self._changes(),
            best=self.names[int(np.argmax(np.round(chances, 9)))],
            is_smoothed=self.is_smoothed,
            neighbor_error=neighbor_error,
            own_error=own_error,
            items_needed=self._needed(half_width, change, span),
            items_total=self.scores.n_items,
            sources=self.scores.n_models,
            warnings=self._warnings(),
        )

    # -- differences -------------------------------------------------------------------------

    def _difference_error(self, i: int, j: int) -> tuple[float, int]:
        """Return the standard error of the difference of two checkpoints, and its freedom.

        That of the paired difference on their common items: it measures how alike the two answer,
        and assumes nothing of the source models.
        """
        one, other = self.run.checkpoints[i], self.run.checkpoints[j]
        n_items = self.scores.n_items
        items, first, second = np.intersect1d(
            one.items, other.items, assume_unique=True, return_indices=True
        )
        n = len(items)
        if one.name not in self.estimates and other.name not in self.estimates:
            return 0.0, n_items
        if n < SCANT:
            return math.hypot(self.errors[i], self.errors[j]), SCANT
        apart = one.answers[first] - other.answers[second]
        # Items may be chosen because models disagree there: relative to the source models.
        typical = float(self._disagreement.mean())
        expected = float(self._disagreement[items].sum())
        prior = PRIOR * max(typical, 1e-9)
        mean_square = typical * (float(apart @ apart) + prior) / (expected + prior)
        # What their estimated difference explains is no noise, but it may not explain all.
        noise = max(mean_square - (self.alone[i] - self.alone[j]) ** 2, LEAST * mean_square)
        uneven = n_items * float(self.scores.item_weights @ self.scores.item_weights)
        return math.sqrt(noise * uneven * max(0.0, 1 / n - 1 / n_items)), n - 1

    @cached_property
    def _disagreement(self) -> FloatArray:
        """Mean square difference of two source models on each item."""
        return np.asarray(by_columns(self.scores.filled_cells, lambda part: 2 * part.var(axis=0)))

    def _chances(self) -> FloatArray:
        """Return the probability of each checkpoint to be the best."""
        order = np.argsort(-self.curve.scores, kind="stable")[:CONTENDERS]
        errors = np.zeros((len(order), len(order)))
        for i, j in itertools.combinations(range(len(order)), 2):
            error, _ = self._difference_error(int(order[i]), int(order[j]))
            errors[i, j] = errors[j, i] = error
        chances = np.zeros(len(self.names))
        chances[order] = _chances_best(self.curve.scores[order], errors)
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
        pairs = self._pairs()
        apart = np.array([self.alone[after] - self.alone[before] for before, after in pairs])
        error, freedom = np.array([self._difference_error(*pair) for pair in pairs]).T
        ratio = np.divide(np.abs(apart), error, out=np.full(len(pairs), np.inf), where=error > 0)
        p_values = np.where(np.abs(apart) < 1e-12, 1.0, 2 * t.sf(ratio, freedom))
        n = len(self.names)
        if len(pairs) > n - 1 + (n > 2):  # the best before was chosen among all before
            p_values[-1] = min(1.0, float(p_values[-1]) * (n - 1))
        half = t.ppf(0.5 + self.level / 2, freedom) * error
        tested = np.flatnonzero(error > 0)  # two known scores need no test
        adjusted = p_values.copy()
        adjusted[tested] = adjusted_p_values(p_values[tested])
        changes = []
        for at, (before, after) in enumerate(pairs):
            ends = (max(-1.0, apart[at] - half[at]), min(1.0, apart[at] + half[at]))
            low, high = sorted(sign * float(end) for end in ends)
            verdict: Verdict = "undecided"
            if adjusted[at] <= 1 - self.level + 1e-12:
                verdict = "better" if apart[at] > 0 else "worse"
            changes.append(
                Change(
                    before=self.names[before],
                    after=self.names[after],
                    difference=sign * float(apart[at]),
                    interval=Interval(low=low, high=high),
                    p_value=float(p_values[at]),
                    p_adjusted=float(adjusted[at]),
                    verdict=verdict,
                )
            )
        return tuple(changes)

    def _needed(self, half_width: float | None, change: float | None, span: float) -> int | None:
        """Return how many items the next checkpoint needs, by the last one that ran a part."""
        from scipy.special import ndtri

        wanted = half_width or change
        partial = [at for at, name in enumerate(self.names) if name in self.estimates]
        if wanted is None or not partial:
            return None
        last = partial[-1]
        n, n_items = len(self.run.checkpoints[last].items), self.scores.n_items
        half = float(self.ends[last, 1] - self.ends[last, 0]) / 2
        if change is not None:
            times = float(ndtri(0.5 + self.level / 2) + ndtri(POWER))
            half = times * self._difference_error(last, last - 1 if last else 1)[0]
        return items_of_width(half, wanted / span, n, n_items)

    def _warnings(self) -> tuple[str, ...]:
        by_text: dict[str, list[str]] = {}
        for name, estimate in self.estimates.items():
            for said in estimate.warnings:
                by_text.setdefault(said, []).append(name)
        found = []
        for said, names in by_text.items():
            everyone = len(names) == len(self.estimates)
            found.append(said if everyone else f"{some(names)}: {said}")
        if self.run.silent:
            found.append(f"{some(self.run.silent)}: no answers yet")
        scant = [one.name for one in self.run.checkpoints if len(one.items) < SCANT]
        if scant:
            found.append(
                f"{some(scant)}: fewer than {SCANT} answers. The estimate says little; run more "
                "items"
            )
        return tuple(dict.fromkeys(found))


def _chances_best(scores: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the probability of each score to be the highest, shape (checkpoints,).

    Draws all scores from a normal distribution whose differences have these standard errors as
    closely as a covariance allows: squared distances, centered, without negative eigenvalues.
    """
    n = len(scores)
    center = np.eye(n) - 1 / n
    sizes, axes = np.linalg.eigh(-0.5 * center @ errors**2 @ center)
    root = axes * np.sqrt(np.maximum(sizes, 0.0))
    drawn = scores + np.random.default_rng(0).standard_normal((DRAWS, n)) @ root.T
    best = drawn >= drawn.max(axis=1, keepdims=True) - 1e-12  # equal known scores share
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))
