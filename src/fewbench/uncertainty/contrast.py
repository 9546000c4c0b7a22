"""The difference of two scores: a target and a number, a known model, or another target.

Every verdict is made here. The difference from a known score has the interval of the estimate,
moved. The half widths of two estimates are combined like those of two correlated errors:

    half^2 = a^2 + b^2 - 2 r a b

with a and b the half widths of the two scores at the same level. For two targets with samples, r
is the correlation of their errors, by the items in common beyond those that samples drawn apart
have in common by chance (`sample_correlation`); for a method whose errors are measured on held-out
sources, it is measured on pairs of them. Else r is 0. Targets that answered all common items alike
may differ on the others: for r = 1, two more items count on which they differ (`Contrast.half`).

Errors on held-out sources do not show how often these two targets differ on their common items.
Their interval is therefore at most as wide as the paired answers allow (`PairedAnswers`). Near
copies differ less than any pair of sources: their interval is at least as wide as that of the
paired answers, for the full score and for every task.

A verdict on the models, and not on these items alone, has a further error, which does not shrink
with the items run (`fewbench.uncertainty.questions`): squares of half widths are added,

    half^2 = half_items^2 + half_questions^2

Whoever looks again and again after more answers, and stops at a verdict, needs wider intervals:
those of Wang & Tsiatis 1987 (Biometrics 43(1)), with more of the level left to the last look.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.methods.base import Answers
from fewbench.uncertainty.held_out import HeldOut, equal_weights, looks_of
from fewbench.uncertainty.intervals import TINY, Uncertainty, around, student
from fewbench.uncertainty.questions import EXTRA, Questions, usual_of, variance_of

PATIENCE = 0.25
"""Exponent of the looks' bounds, of the share of all answers."""
DRAWS = 100_000
PRIOR = 10.0
"""So many groups of sources count for errors that do not move together."""
PRIOR_ITEMS = 1.0
"""So many items count for answers that do not."""
FEW_COMMON = 0.5
"""Share of the items of a target below which it shares few with another one."""
COPIES = 0.07, 0.1
"""Near copies differ on up to this share of the common items; from the second one targets are
none."""
STEPS = 30
ONE_SIGMA = 0.6826894921370859
DIGITS = 12
"""Decimals to which differences are rounded: the order of sums then does not matter."""


@dataclass(frozen=True, eq=False)
class PairedAnswers:
    """The difference of two targets on their common items.

    Attributes
    ----------
    difference, error, freedom : float
        Mean difference of the answers, its standard error and degrees of freedom.
    most : float
        The standard error if the items are not a random sample.
    copies : float
        How far the targets count as near copies: 1 where they differ on up to 7% of the items, 0
        from 10% on.
    is_binary : bool
        Whether they differ by right and wrong answers, or not at all.
    """

    difference: float
    error: float
    most: float
    freedom: float
    copies: float
    is_binary: bool

    def halves(self, difference: float, level: float) -> tuple[float, float]:
        """Return the half widths of an interval around another estimate of the difference.

        As of random items, and the most that chosen items leave open.
        """
        # The method estimates a difference of its own: the interval must reach the one of the
        # paired answers.
        apart = abs(difference - self.difference)
        of_random, of_chosen = (
            math.hypot(student(error, self.freedom)(level), apart)
            for error in (self.error, self.most)
        )
        return of_random, of_chosen


def common_answers(one: Answers, other: Answers) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the items that two targets answered, in order, and each one's answers to them."""
    items, at, there = np.intersect1d(one.items, other.items, return_indices=True)
    return items, one.scores[0][at], other.scores[0][there]


def paired_answers(
    one: Answers, other: Answers, weights: FloatArray, copies: float | None = None
) -> PairedAnswers | None:
    """Return the difference of two targets on their common items.

    None if they share less than half of a target's items, or none.

    The standard error counts two more items on which they differ (`questions.variance_of`), and
    shrinks as fewer items are left to differ on:

        s^2 = (sum (d - mean d)^2 + 2 s0^2) / (n + 1) (1/n - 1/N)

    Chosen items may hide where two targets differ. As an upper limit, four more items count, and
    the error is that of the mean over the items left, as if all of the score hung on these:

        (sum (d - mean d)^2 + 4 s0^2) / (n + 1) (1/n + 1/(N - n))

    Parameters
    ----------
    one, other : Answers
        One row each.
    weights : ndarray, shape (items,)
        Weights of the items in the full score or a task score (0 for items of other tasks).
    copies : float, optional
        How far they count as near copies, if that does not follow from these items.

    Examples
    --------
    >>> items, right = np.arange(50), np.ones((1, 50))
    >>> pair = paired_answers(Answers(items, right), Answers(items, right), np.ones(100))
    >>> [round(half, 3) for half in pair.halves(0.0, 0.9)]
    [0.033, 0.094]
    """
    items, ours, theirs = common_answers(one, other)
    counts = weights[items] > 0
    items, apart = items[counts], (ours - theirs)[counts]
    n, size = len(items), int(np.count_nonzero(weights))
    fewest = min(np.count_nonzero(weights[answers.items]) for answers in (one, other))
    if n < max(1, FEW_COMMON * fewest):
        return None
    if copies is None:
        low, high = COPIES
        copies = min(max((high - float(np.abs(apart).mean())) / (high - low), 0.0), 1.0)
    is_binary = bool(np.isin(np.abs(apart), (0.0, 1.0)).all())
    apart = apart * weights[items] * size / weights.sum()
    error = math.sqrt(variance_of(apart) * (1 / n - 1 / size))
    left = max(size - n, 1)
    most = math.sqrt(variance_of(apart, extra=2 * EXTRA) * (1 / n + 1 / left))
    return PairedAnswers(float(apart.mean()), error, most, max(n - 1.0, 1.0), copies, is_binary)


def beside_known(score: Uncertainty, answers: Answers, known: FloatArray) -> Uncertainty:
    """Return the score of a random sample, beside a model whose answers to all items are known.

    The pairs on the common items and the other items of the known model say both how the two
    differ. By regression (Cochran 1977, "Sampling Techniques", section 7.3), with the known model's
    answers x, and X their mean over all N items:

        mean y - b (mean x - X)
        (sum (y - b x - mean)^2 + 2 s0^2 ((1 + b) / 2)^2) / (n + 1) (1/n - 1/N)

    b = 1 counts the pairs alone, b = 0 the mean answers. As if two more items had b = 1, so that
    equal answers show no difference. The variance is never larger than that of the pairs alone.

    Parameters
    ----------
    score : Uncertainty
    answers : Answers
        A simple random sample, in one row.
    known : ndarray, shape (items,)

    Examples
    --------
    >>> plain = Uncertainty(0.5, "exact", lambda _: 0.0, lambda _: (0.0, 1.0), 0.0, 1.0)
    >>> known, items = np.tile([1.0, 1.0, 1.0, 0.0], 50), np.arange(100)
    >>> paired = beside_known(plain, Answers(items[1:], known[None, 1:100]), known)
    >>> round(paired.estimate, 3), round(paired.half(0.9), 3)
    (0.75, 0.017)
    """
    y, x, n, n_items = answers.scores[0], known[answers.items], len(answers.items), len(known)
    squares, prior = n * float(np.var(x)), EXTRA * float(np.var(known))
    crossed = float((x - x.mean()) @ (y - y.mean()))
    b = min(max((crossed + prior) / max(squares + prior, TINY), 0.0), 1.0)
    estimate = float(y.mean()) - b * float(x.mean() - known.mean())
    # An item on which the two differ adds 1 and -b to the residuals, about their mean.
    extra = EXTRA * usual_of(y - x) * ((1 + b) / 2) ** 2
    variance = (n * float(np.var(y - b * x)) + extra) / (n + 1) * (1 / n - 1 / n_items)
    half = student(math.sqrt(variance), max(n - 1.0, 1.0))
    estimate = min(max(estimate, score.least), score.most)
    return replace(score, estimate=estimate, kind="sampled", half=half, ends=around(estimate, half))


@dataclass(frozen=True, eq=False)
class Contrast:
    """First score minus second, in [-1, 1].

    Parameters
    ----------
    one, other : Uncertainty or float
        An estimate, or a known score in [0, 1].
    correlation : float
        Correlation of the two errors.
    wider : float
        Factor of the half width, for one of several looks.
    paired : PairedAnswers, optional
        For two targets that answered the same items, or one whose items a method chose beside a
        known model.
    questions : Questions, optional
        The error beside that of the items that were not run: of the choice of questions and of
        another run, and of cells that were filled in. None for a difference on exactly these items.
    """

    one: Uncertainty | float
    other: Uncertainty | float
    correlation: float = 0.0
    wider: float = 1.0
    paired: PairedAnswers | None = None
    questions: Questions | None = None

    @cached_property
    def difference(self) -> float:
        """The difference of the estimates."""
        first, other = self.scores
        return round(first - other, DIGITS)

    @property
    def scores(self) -> tuple[float, float]:
        """The two scores."""
        first, other = (
            side.estimate if isinstance(side, Uncertainty) else side for side in self._sides
        )
        return float(first), float(other)

    @property
    def _sides(self) -> tuple[Uncertainty | float, Uncertainty | float]:
        return self.one, self.other

    @property
    def is_known(self) -> bool:
        """Whether both scores are known."""
        return all(not isinstance(side, Uncertainty) for side in self._sides)

    @property
    def is_certain(self) -> bool:
        """Whether the difference has no error: both scores are known exactly."""
        return self.is_known and self.questions is None

    @property
    def kind(self) -> str:
        """What the interval rests on: that of the less sure side, "answers", or "known"."""
        kinds = [side.kind for side in self._sides if isinstance(side, Uncertainty)]
        order = ("random", "held-out", "sampled", "betting", "exact")
        if not kinds:
            return "known" if self.questions is None else "answers"
        return min(kinds, key=order.index)

    @property
    def sources(self) -> int | None:
        """Least number of held-out source models behind a side; a family counts as one."""
        numbers = [side.sources for side in self._sides if isinstance(side, Uncertainty)]
        return min((n for n in numbers if n is not None), default=None)

    def half(self, level: float) -> float:
        """Return the half width at a level."""
        of_questions = 0.0 if self.questions is None else self.questions.half(level)
        return self.wider * math.hypot(self.half_of_items(level), of_questions)

    def half_of_items(self, level: float) -> float:
        """Return the half width that the items not run leave, at one look."""
        a, b = (side.half(level) if isinstance(side, Uncertainty) else 0.0 for side in self._sides)
        # The variance of a difference, with half widths in place of standard errors: at one level
        # they are nearly in proportion.
        squared = max(a**2 + b**2 - 2 * self.correlation * a * b, 0.0)
        for side, half in zip(self._sides, (a, b), strict=True):
            if isinstance(side, Uncertainty) and side.sample is not None:
                # Two more items on which the targets differ, one for each side, as Agresti & Min
                # (2005) add to paired answers: at r = 1 the difference would else be known.
                squared += max(self.correlation, 0.0) * side.sample.item_share * half**2
        half = math.sqrt(squared)
        if self.paired is not None:
            of_random, of_chosen = self.paired.halves(self.difference, level)
            if self.kind == "held-out":
                half = min(half, of_chosen)
            elif self._are_even and not self.paired.is_binary:
                # Items that differ by the whole scale, above, are too much for other scores.
                half = min(half, of_random)
            half = max(half, self.paired.copies * of_random)
        return half + sum(side.open for side in self._sides if isinstance(side, Uncertainty))

    @cached_property
    def _are_even(self) -> bool:
        """Whether both targets ran a sample in which each item had the same chance."""
        samples = [side.sample for side in self._sides if isinstance(side, Uncertainty)]
        return all(sample is not None and not np.ptp(sample.chances) for sample in samples)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the difference.

        On exactly these items, it is within what the answers leave possible.
        """
        low, high = self._ends(level)
        return round(float(low), DIGITS), round(float(high), DIGITS)

    def _ends(self, level: float) -> tuple[float, float]:
        if self.questions is None:
            return self.ends_of_items(level)
        sides = [side for side in self._sides if isinstance(side, Uncertainty)]
        open_ = sum(side.open for side in sides) if len(sides) > 1 else 0.0
        if len(sides) > 1 and not open_:
            below = above = self.half(level)  # what the answers leave possible is of these items
        elif self.questions.answers is not None:
            below, above = (self.wider * reach for reach in self.questions.reaches(level))
        else:
            low, high = self.ends_of_items(level)
            of_items = self.difference - low, high - self.difference
            of_questions = (self.wider * reach for reach in self.questions.reaches(level))
            # What is open is not a random error, so it is added as a whole.
            certain = [min(open_, reach) for reach in of_items]
            left = (reach - sure for reach, sure in zip(of_items, certain, strict=True))
            below, above = map(sum, zip(certain, map(math.hypot, left, of_questions), strict=True))
        least, most = -1.0, 1.0
        if self.questions.score is not None:  # of one score in [0, 1], less a number
            least = self.difference - self.questions.score
            most = least + 1.0
        return max(least, self.difference - below), min(most, self.difference + above)

    def ends_of_items(self, level: float) -> tuple[float, float]:
        """Return the interval of the difference on exactly these items."""
        first, other = self._sides
        by_ends = self.paired is None  # of the one side that is not known, which may be exact
        if by_ends and isinstance(first, Uncertainty) and not isinstance(other, Uncertainty):
            low, high = _widened(first, self.wider, level)
            return low - other, high - other
        if by_ends and isinstance(other, Uncertainty) and not isinstance(first, Uncertainty):
            low, high = _widened(other, self.wider, level)
            return first - high, first - low
        if self.is_known:
            return self.difference, self.difference
        half = self.wider * self.half_of_items(level)
        (least, most), (other_least, other_most) = (
            (side.least, side.most) if isinstance(side, Uncertainty) else (side, side)
            for side in (first, other)
        )
        return (
            max(least - other_most, self.difference - half),
            min(most - other_least, self.difference + half),
        )

    @cached_property
    def p_value(self) -> float:
        """Smallest 1 - level at which the interval excludes 0; two-sided."""
        if self.is_certain:
            return 0.0 if self.difference else 1.0
        if not self.difference:
            return 1.0
        low, high = 0.0, 1.0  # levels: the interval excludes 0 at `low`, but not at `high`
        for _ in range(STEPS):
            level = (low + high) / 2
            if self._excludes(level):
                low = level
            else:
                high = level
        return 1.0 - low

    def _excludes(self, level: float) -> bool:
        if not 0 < level < 1:
            return level <= 0
        ends = self.interval(level)
        return bool(ends[0] > 0 or ends[1] < 0)

    @property
    def chance_above(self) -> float:
        """Probability that the first score is the higher one."""
        p = self.p_value / 2
        return 1 - p if self.difference > 0 else p

    @property
    def standard_error(self) -> float:
        """Half the width of the interval that a normal distribution has at 68%."""
        return self.half(ONE_SIGMA)

    @property
    def standard_errors(self) -> tuple[float, float]:
        """The parts of the standard error: of the items not run, and of questions and runs."""
        of_questions = 0.0 if self.questions is None else self.questions.half(ONE_SIGMA)
        return self.wider * self.half_of_items(ONE_SIGMA), self.wider * of_questions


def _widened(uncertainty: Uncertainty, wider: float, level: float) -> tuple[float, float]:
    low, high = uncertainty.interval(level)
    if wider == 1.0:
        return low, high
    return (
        max(uncertainty.least, uncertainty.estimate - wider * (uncertainty.estimate - low)),
        min(uncertainty.most, uncertainty.estimate + wider * (high - uncertainty.estimate)),
    )


def error_correlation(
    one: Uncertainty,
    other: Uncertainty,
    answered: int,
    errors: Callable[[int], HeldOut] | None,
) -> float:
    """Return how far the errors of two estimates move together.

    `errors` gives the errors of the method of both by a number of answers. It is None if methods,
    sources or items differ. `answered` is the smaller number of answers.
    """
    if errors is None or not one.kind == other.kind == "held-out":
        return sample_correlation(one, other)
    return held_out_correlation(errors(answered), answered, one.estimate - other.estimate)


def sample_correlation(one: Uncertainty, other: Uncertainty) -> float:
    """Return how far the errors of two targets with samples move together.

    Two simple random samples of n items have errors of the correlation rho (o - n/N) / (1 - n/N),
    with o the share of common items and rho that of the answers (Tam 1984, The American
    Statistician 38(4)): by chance alone they share n/N, and then r is 0. With unequal chances p and
    q, an item's chance to be in both lies between p q, for samples drawn apart, and min(p, q), for
    samples of one order; the number of common items says where:

        r = sum_common a b (1 - p q / both) / sqrt(sum a^2 (1 - p) sum b^2 (1 - q))

    with a and b what the item's answers add to the errors.
    """
    if one.sample is None or other.sample is None:
        return 0.0
    p, q = one.sample.chances, other.sample.chances
    common = np.isfinite(one.sample.influence) & np.isfinite(other.sample.influence)
    a, b = np.nan_to_num(one.sample.influence), np.nan_to_num(other.sample.influence)
    scale = math.sqrt(float(a**2 @ (1 - p)) * float(b**2 @ (1 - q)))
    if scale <= 0:
        return 0.0
    n, apart, together = int(common.sum()), float(p @ q), float(np.minimum(p, q).sum())
    share = min(max((n - apart) / max(together - apart, TINY), 0.0), 1.0)
    both = share * np.minimum(p, q) + (1 - share) * p * q
    covariance = float((a * b * (1 - p * q / np.maximum(both, TINY)))[common].sum())
    # With one common item, a correlation is always 1 or -1: it counts as if one more item were
    # uncorrelated.
    return float(np.clip(covariance / scale, -1.0, 1.0)) * n / (n + PRIOR_ITEMS)


def held_out_correlation(held: HeldOut, answered: int, difference: float) -> float:
    """Return how far the errors of two targets of a method move together.

    From pairs of held-out sources of one part and of different groups: of models that ran the same
    items together, where the method has sessions of several. Models that are close in score err
    alike, so pairs count whose estimates differ by less than the median difference if the targets'
    do, or by more.

    Parameters
    ----------
    held : HeldOut
    answered : int
        Number of answers of the targets.
    difference : float
        Difference of their estimates.
    """
    at = held.at(answered)
    errors, units = held.errors[:, at, 0], held.units[:, at, 0]
    has_unit = units > 0
    relative = np.divide(errors, units, out=np.zeros_like(errors), where=has_unit)
    i, j = np.nonzero(np.triu(_comparable(held) & np.logical_and.outer(has_unit, has_unit)))
    if not len(i):
        return 0.0
    apart = np.abs(held.estimates[i] - held.estimates[j])
    middle = float(np.median(apart))
    near = apart <= middle if abs(difference) <= middle else apart > middle
    i, j = i[near], j[near]
    weights = equal_weights(held.groups[has_unit])
    typical = float(weights @ relative[has_unit] ** 2)
    if typical <= 0 or not len(i):
        return 0.0
    both = (errors[i] - errors[j]) ** 2 / (units[i] ** 2 + units[j] ** 2)
    groups = len(np.unique(held.groups[np.concatenate([i, j])]))
    # Squared errors of differences over those of single scores: 1 where they are independent. With
    # few groups of sources it is imprecise, so it shrinks toward 1.
    share = (groups * float(both.mean()) / typical + PRIOR) / (groups + PRIOR)
    return float(np.clip(1 - share, 0.0, 0.95))


def _comparable(measured: HeldOut) -> BoolArray:
    same = np.equal.outer(measured.parts, measured.parts) & ~np.equal.outer(
        measured.groups, measured.groups
    )
    together = np.bincount(measured.sessions, minlength=1)
    if len(together) > 1 and together.max() <= len(measured.models) // 2 and together.min() > 0:
        same &= np.equal.outer(measured.sessions, measured.sessions)
    return np.asarray(same)


@lru_cache(maxsize=64)
def look_bounds(looks: tuple[int, ...], level: float) -> tuple[float, ...]:
    """Return how much wider the interval is at each look than for a single one.

    The bounds of Wang & Tsiatis on the standard normal scale, over that of one look.

    >>> [round(one, 2) for one in look_bounds((10, 20, 40, 80, 160), 0.9)]
    [2.17, 1.82, 1.53, 1.29, 1.08]
    """
    from scipy.special import ndtri

    share = np.array(looks, dtype=np.float64) / looks[-1]
    steps = np.sqrt(np.diff(share, prepend=0.0))
    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.standard_normal((DRAWS, len(share))) * steps, axis=1)
    # Wang & Tsiatis: the bound on the scale of z grows as share^(exponent - 1/2) towards the first
    # look. In these units it is level, and its height the quantile of the largest.
    sizes = np.abs(paths) / np.sqrt(share) * share ** (0.5 - PATIENCE)
    critical = float(np.quantile(sizes.max(axis=1), level))
    bounds = critical * share ** (PATIENCE - 0.5) / float(ndtri(0.5 + level / 2))
    return tuple(float(bound) for bound in bounds)


def look_factor(answered: int, budget: int, level: float) -> float:
    """Return how much wider an interval is after a number of answers, for checks up to a budget.

    At the last look that was reached. Beyond the budget looks were not planned: it is wider by a
    quarter power of the answers' ratio. Looks after every doubling then miss together in 12% at
    90%, however many there are; by the root of the ratio it would be 10%, but no interval would
    ever be narrower than the one at the budget.
    """
    looks = looks_of(budget)
    reached = max(0, sum(look <= answered for look in looks) - 1)
    wider = look_bounds(looks, level)[reached]
    return float(wider * max(1.0, answered / budget) ** PATIENCE)
