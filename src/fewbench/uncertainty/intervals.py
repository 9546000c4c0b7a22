"""How far one score may be from its estimate, and the shapes of intervals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.assisted import FEWEST, PRIOR, SampleErrors
from fewbench.methods.base import Answers, Prediction
from fewbench.scores import Scores
from fewbench.uncertainty.bounds import bound_score, fit_tasks, task_bounds
from fewbench.uncertainty.resemblance import Resemblance

Kind = Literal["exact", "betting", "sampled", "held-out", "random"]


EXTREME = 0.05
"""Scores so near to 0 or 1 that the variance of a few answers is unreliable."""
NORMAL = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal."""
TINY = 1e-9
FEWEST_TO_STOP = 10
"""Fewest answers before a half width may end the run."""
LOOKS = 0.7
"""Share of the misses that an interval may have where it ends the run, so that with all looks there
are as many as the level allows. For right and wrong answers the coverage over all scores, looks and
half widths is then .90 to .97 of .90 (exact; tests/evaluation/test_stop.py)."""


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """How far a score may be from its estimate, in [0, 1].

    Attributes
    ----------
    estimate : float
    kind : str
        exact: hypergeometric; betting: valid for any random sample of scores; sampled: Wilson's
        interval of a sample with known probabilities; held-out: errors on held-out models; random:
        that of the same number of random items, for lack of anything better.
    half : callable
        Half width at a level, growing with it. It makes differences of two scores.
    open : float
        How far the score may be off besides, whatever the level, for items of which nothing is
        known (`open_items`). Its ends contain it.
    ends : callable
        Ends of the interval at a level, before it is cut to what the answers leave possible.
    least, most : float
        What the answers leave possible.
    error : float or None
        Expected absolute error.
    sources : int or None
        Number of held-out source models behind it; a family counts as one.
    sample : SampleErrors, optional
        Where the error of a sample's estimate comes from. By it the errors of two targets that ran
        the same items move together.
    resemblance : Resemblance, optional
        How far the target is like the sources, where the interval rests on that.
    ends_run : bool
        Whether the interval is so narrow that the run ends.
    warnings : tuple of str
    """

    estimate: float
    kind: Kind
    half: Callable[[float], float]
    ends: Callable[[float], tuple[float, float]]
    least: float
    most: float
    error: float | None = None
    sources: int | None = None
    sample: SampleErrors | None = None
    resemblance: Resemblance | None = None
    ends_run: bool = False
    warnings: tuple[str, ...] = ()
    open: float = 0.0

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval, which contains the estimate and what the answers leave possible."""
        low, high = self.ends(level)
        return (
            max(self.least, min(low, self.estimate)),
            min(self.most, max(high, self.estimate)),
        )


def basis(kind: str, sources: int | None) -> str:
    """Return what an interval of this kind rests on, in words.

    >>> basis("held-out", 42)
    'errors of the method on 42 held-out source models'
    """
    return {
        "known": "none needed: all items ran, and only these answers are compared",
        "answers": "how far items vary, for other questions and another run: all items ran",
        "exact": "exact for a random sample; no assumption about the model",
        "betting": "valid for any random sample of scores; no assumption about the model",
        "sampled": "a random sample with known probabilities",
        "held-out": f"errors of the method on {sources} held-out source models",
        "random": "as wide as for random sampling: too few source models for more",
    }[kind]


@dataclass(frozen=True, eq=False)
class Scored:
    """A target's estimate as a method made it, in [0, 1]: the full score, then every task.

    Attributes
    ----------
    answers : Answers
        One row.
    estimates : ndarray, shape (1 + tasks,), or (1,) if the method predicted no task scores
        Within what the answers leave possible.
    spread : float or None
    task_spread : ndarray, shape (tasks,), or None
    freedom : ndarray, shape (1 + tasks,), or None
        See `fewbench.methods.Prediction`.
    sample : SampleErrors or None
    is_plain : bool
    ran : Scored or None
        The same of the items that some source ran, where the others are a random sample.
    """

    answers: Answers
    estimates: FloatArray
    spread: float | None = None
    task_spread: FloatArray | None = None
    freedom: FloatArray | None = None
    sample: SampleErrors | None = None
    is_plain: bool = False
    ran: "Scored | None" = None

    @classmethod
    def from_row(cls, prediction: Prediction, row: int, answers: Answers, scores: Scores) -> Self:
        """Return a target's estimates, each one that the answers leave possible.

        With sources, task scores are shifted until their weighted mean is the full score.
        """
        items, replies = answers.items, answers.scores[0]
        full, tasks = bound_score(float(prediction.scores[row]), scores, items, replies), []
        if prediction.tasks is not None:
            tasks = [*fit_tasks(prediction.tasks[row], full, scores, items, replies)]
        spread, by_task, ran = prediction.spread, prediction.task_spread, prediction.ran
        return cls(
            answers,
            np.array([full, *tasks]),
            None if spread is None else float(spread[row]),
            None if by_task is None else by_task[row],
            None if prediction.freedom is None else prediction.freedom[row],
            prediction.samples[row] if prediction.samples else None,
            prediction.is_plain,
            None
            if ran is None
            else cls.from_row(ran.prediction, row, answers.among(ran.items), ran.scores),
        )

    def in_parts(self, shares: FloatArray, scores: Scores, full: Uncertainty) -> Self:
        """Return the same with weighted means of task scores in place of tasks: of groups.

        `shares`, shape (parts, tasks), are their weights. Without sources a part's score is the
        mean of its answers, as a task's is, where its items count the same or a task has no
        answers. Errors of a sample are those of the full score, whose uncertainty is `full`, that
        come from the part's items.
        """
        items, replies = self.answers.items, self.answers.scores[0]
        # What an item counts in a part, in place of what it counts in the full score.
        ratios = (shares / scores.task_shares)[:, scores.task_of[items]]
        estimates = shares @ self.estimates[1:]
        if not scores.n_models:
            chances = 1.0 if self.sample is None else self.sample.chances[items]
            loads = ratios * scores.item_weights[items] / chances
            with np.errstate(invalid="ignore"):  # NaN without answers
                of_answers = loads @ replies / loads.sum(axis=1)
            lacks = ((shares > 0) & np.isnan(self.estimates[1:])).any(axis=1)
            of_tasks = shares @ np.nan_to_num(self.estimates[1:])
            estimates = np.where(lacks | are_even(shares, scores), of_answers, of_tasks)
        ends = (shares @ bounds for bounds in task_bounds(scores, items, replies))
        estimates = np.append(self.estimates[0], np.clip(estimates, *ends))
        sample, own = self.sample or full.sample, self.sample_error()
        if sample is None or full.error is None:
            return replace(self, estimates=estimates)
        error, of_error = own or (full.error / NORMAL, np.nan)
        errors, freedom = _errors_in_parts(sample, items, ratios, error)
        freedom = np.append(of_error, freedom)
        return replace(self, estimates=estimates, task_spread=errors, freedom=freedom)

    @property
    def is_sampled(self) -> bool:
        """Whether the full score rests on a sample with known probabilities."""
        return self.sample_error() is not None

    def sample_error(self, at: int = 0) -> tuple[float, float] | None:
        """Return the sample's standard error and degrees of freedom of a score, if it has any."""
        if self.freedom is None or not np.isfinite(self.freedom[at]):
            return None
        spread = self.task_spread[at - 1] if at and self.task_spread is not None else self.spread
        return None if spread is None else (float(spread), float(self.freedom[at]))


def are_even(shares: FloatArray, scores: Scores) -> BoolArray:
    """Return whether all items of each part count in it as they do in the full score, (parts,).

    `shares`, shape (parts, tasks), are the weights of the tasks in the parts.
    """
    per_item = shares / scores.task_shares
    return np.array([np.ptp(row[row > 0]) < TINY for row in per_item], dtype=bool)


def _errors_in_parts(
    sample: SampleErrors, items: IntArray, ratios: FloatArray, error: float
) -> tuple[FloatArray, FloatArray]:
    """Return standard errors and degrees of freedom of parts of a sample's full score.

    `ratios`, shape (parts, n), say how much more each answer counts in a part than in the full
    score, whose standard error is `error`. A part with few answers has the residuals of all items
    for some more; with fewer than 5 its error is unknown: NaN.
    """
    is_drawn = np.isfinite(sample.influence[items])
    squares, ratios = sample.influence[items][is_drawn] ** 2, ratios[:, is_drawn]
    if not squares.any():  # all answers are as expected: the error is that of others
        squares = np.ones(len(squares))
    counts = np.count_nonzero(ratios, axis=1)
    own = ratios**2 @ squares
    typical = (ratios**2).sum(axis=1) * squares.mean()
    shares = (counts * own + PRIOR * typical) / (counts + PRIOR) / squares.sum()
    errors = np.where(counts >= FEWEST, error * np.sqrt(shares), np.nan)
    return errors, np.where(counts >= FEWEST, np.maximum(counts - 1.0, 1.0), np.nan)


def sampled_uncertainty(
    estimate: float,
    spread: float,
    freedom: float,
    bounds: tuple[float, float],
    sample: SampleErrors | None = None,
) -> Uncertainty:
    """Return the uncertainty of an estimate from a sample with known probabilities."""
    return Uncertainty(
        estimate,
        "sampled",
        student(spread, freedom),
        lambda level: wilson(estimate, spread, freedom, level),
        *bounds,
        NORMAL * spread,
        sample=sample,
    )


def unknown(estimate: float) -> Uncertainty:
    """Return the uncertainty of a score of which nothing is known."""
    return Uncertainty(estimate, "random", lambda _: 0.5, lambda _: (0.0, 1.0), 0.0, 1.0, 0.25)


def weighted_sum(
    parts: Sequence[tuple[float, Uncertainty]],
    estimate: float,
    bounds: tuple[float, float],
    *,
    open_: float = 0.0,
    doubt: Callable[[float], tuple[float, float]] = lambda _: (0.0, 0.0),
) -> Uncertainty:
    """Return the uncertainty of a score, a weighted sum over strata with independent errors.

    The ends are those of the parts, joined as variances (MOVER: Zou & Donner 2008, Statistics in
    Medicine 27(10)).

    Parameters
    ----------
    parts : sequence of (float, Uncertainty)
        Weights and scores of the strata; what the first one rests on is named.
    estimate : float
    bounds : (float, float)
        What the answers leave possible.
    open_ : float
        Weight of the strata of which nothing is known: anything from 0 to 1 (Horowitz & Manski
        2000, Journal of the American Statistical Association 95(449)).
    doubt : callable
        Further reach below and above at a level, if the weights are estimated.
    """
    weight, first = parts[0]
    below = above = 0.0
    if open_:
        below = estimate - sum(share * part.estimate for share, part in parts)
        above = open_ - below

    def ends(level: float) -> tuple[float, float]:
        # Not cut to what the answers leave possible: all parts may be at that end.
        reaches = [doubt(level)]
        for share, part in parts:
            low, high = part.ends(level)
            reaches.append((share * (part.estimate - low), share * (high - part.estimate)))
        lower, upper = (math.hypot(*of_parts) for of_parts in zip(*reaches, strict=True))
        return estimate - below - lower, estimate + above + upper

    def half(level: float) -> float:
        others = (share * float(np.ptp(part.ends(level))) / 2 for share, part in parts[1:])
        return math.hypot(weight * first.half(level), *others, sum(doubt(level)))

    errors = [None if part.error is None else share * part.error for share, part in parts]
    known = [error for error in errors if error is not None]
    return replace(
        first,
        estimate=estimate,
        # An exact interval is of the answers alone.
        kind="sampled" if open_ and first.kind != "held-out" else first.kind,
        half=half,
        ends=ends,
        least=bounds[0],
        most=bounds[1],
        error=math.hypot(*known) + open_ / 4 if len(known) == len(parts) else None,
        sample=first.sample if len(parts) == 1 else None,
        open=max(below, above),
    )


def stricter(level: float) -> float:
    """Return the level of intervals that end a run, for this level of the whole run.

    >>> round(stricter(0.9), 2)
    0.93
    """
    return 1 - LOOKS * (1 - level)


def at_looks(uncertainty: Uncertainty) -> Uncertainty:
    """Return the uncertainty where a narrow interval ends the run: intervals of a higher level.

    A run that a narrow interval ends is one whose answers look extreme, sometimes by chance alone.
    """
    return replace(
        uncertainty,
        half=lambda level: uncertainty.half(stricter(level)),
        ends=lambda level: uncertainty.ends(stricter(level)),
        ends_run=True,
    )


def student(spread: float, freedom: float) -> Callable[[float], float]:
    """Return the half width at a level, by Student's t."""
    from scipy.special import stdtrit

    return lambda level: spread * float(stdtrit(freedom, 0.5 + level / 2))


def around(
    estimate: float, half: Callable[[float], float]
) -> Callable[[float], tuple[float, float]]:
    """Return the ends at a level: the estimate plus and minus the half width."""
    return lambda level: (estimate - half(level), estimate + half(level))


def wilson(estimate: float, spread: float, freedom: float, level: float) -> tuple[float, float]:
    """Return Wilson's interval of a score with this standard error.

    With the number of independent answers that would be as precise, and Student's t. Errors near 0
    and 1 are skewed, so an interval of plus and minus the same would miss too often.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(0.95, 0.03, 29, 0.9)]
    [0.872, 0.982]
    """
    from scipy.special import stdtrit

    if spread < TINY:
        return estimate, estimate
    t = float(stdtrit(freedom, 0.5 + level / 2))
    p = estimate
    # Answers of a simple random sample that would have this standard error: the design effect
    # turned round.
    n = p * (1 - p) / spread**2
    if not EXTREME < p < 1 - EXTREME:  # at least as precise as random answers
        n = max(n, freedom + 1)
    # The scores that a test with their own variance, not that of the estimate, does not reject
    # (Wilson 1927).
    middle = (p + t**2 / (2 * n)) / (1 + t**2 / n)
    half = t / (1 + t**2 / n) * math.sqrt(p * (1 - p) / n + t**2 / (4 * n**2))
    return max(0.0, middle - half), min(1.0, middle + half)
