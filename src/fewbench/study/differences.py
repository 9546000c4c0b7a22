"""Which differences of two models are detected, by pairs of held-out models."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray
from fewbench.evaluation.auto import RANDOM
from fewbench.study.backtest import Backtest
from fewbench.uncertainty.questions import EXTRA, Questions

DRAWS = 50
"""Quantiles of the chi-square distribution over which power is averaged."""
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of models that ran one budget.

    Attributes
    ----------
    slope : float
        How far errors grow with the difference: methods draw estimates together.
    sd : float
        Standard deviation of the errors beside that.
    scale : ndarray
        Quantiles of what 1 / sd may be instead, over itself.
    halves : ndarray, shape (pairs,)
        Half widths of their intervals, as `versus` has them.
    """

    slope: float
    sd: float
    scale: FloatArray
    halves: FloatArray


class Margins:
    """Which differences a method tells apart, by the number of items.

    A difference is detected if its interval excludes 0. The error of a difference is normal, with
    the pairs' mean and a variance that is known only so well: it is s^2 df over a chi-square
    variable, with df = 2 s^4 / var(s^2) and the variance over repeats and models. Between budgets
    that ran, errors and half widths shrink as those of random sampling. For models in general, and
    not for these items alone, the error of questions and runs is added
    (`fewbench.uncertainty.questions`). All items then detect only larger differences, with the
    power Phi(difference / s - t).

    Parameters
    ----------
    backtest : Backtest
        With a `margin`, so that its cells have the half widths of differences.
    name : str
        The method; of random sampling the variance is known.
    budgets : sequence of int
        Those that ran.
    fixed_items : bool
        Whether exactly these items are meant, and not the models.
    """

    def __init__(
        self, backtest: Backtest, name: str, budgets: Sequence[int], *, fixed_items: bool
    ) -> None:
        self._backtest, self._least = backtest, min(budgets)
        n_items = backtest.scores.n_items
        extra = EXTRA * (1.0 if backtest.scores.is_binary else backtest.pair_variance)
        variance = (n_items * backtest.pair_variance + extra) / (n_items + 1)
        self._questions = None if fixed_items else Questions(variance / n_items, n_items - 1.0)
        by_budget = {n: _pairs(backtest, name, n) for n in budgets if name != RANDOM}
        self._pairs = {n: pairs for n, pairs in by_budget.items() if pairs is not None}

    def power(self, n: int, wanted: float) -> float:
        """Return the share of pairs that differ by `wanted` which n items tell apart."""
        from scipy.special import ndtr

        questions, level = self._questions, self._backtest.level
        half, variance = 0.0, 0.0
        if questions is not None:
            half, variance = questions.half(level), questions.variance
        if n >= self._backtest.scores.n_items:
            return 1.0 if questions is None else float(ndtr((wanted - half) / math.sqrt(variance)))
        if not self._pairs:
            spread = math.sqrt(self._backtest.unit("difference")(n) + variance)
            return float(ndtr(wanted / max(spread, TINY) - self._backtest.critical))
        powers = []
        for ran, pairs in self._pairs.items():
            smaller = self._backtest.law(n) / self._backtest.law(ran)
            halves = np.hypot(pairs.halves * math.sqrt(smaller), half)
            sd = math.hypot(pairs.sd * math.sqrt(smaller), math.sqrt(variance))
            apart = (1 + pairs.slope * smaller) * wanted * pairs.scale[:, None] - halves
            powers.append(float(ndtr(apart / max(sd, TINY)).mean()))
        return float(np.interp(math.log(n), np.log(list(self._pairs)), powers))

    def needed(self, wanted: float, power: float) -> int:
        """Return the least number of items that tell such a difference apart so often, or all."""
        numbers = range(self._least, self._backtest.scores.n_items + 1)
        at = bisect_left(numbers, True, key=lambda n: self.power(n, wanted) >= power - 1e-9)
        return numbers[min(at, len(numbers) - 1)]

    def margin(self, n: int, power: float) -> float:
        """Return the smallest difference that n items tell apart so often."""
        from scipy.optimize import brentq

        if self.power(n, 0.0) >= power:
            return 0.0
        return float(brentq(lambda wanted: self.power(n, wanted) - power, 0.0, 99.0))


def _pairs(backtest: Backtest, name: str, budget: int) -> _Pairs | None:
    from scipy.stats import chi2

    came, rows = backtest.results.get((name, budget), {}), []
    for repeat, pairs in zip(backtest.repeats, backtest.pairs, strict=True):
        result = came.get(repeat)
        if result is not None and result.pair_half and pairs.any():
            truth, errors = (
                np.array(result.truth),
                np.array(result.estimate) - np.array(result.truth),
            )
            i, j = np.nonzero(pairs & (truth[:, None] >= truth))
            rows.append([truth[i] - truth[j], errors[i] - errors[j], result.pair_halves()[i, j]])
    if not rows:
        return None
    gaps, errors, halves = np.concatenate(rows, axis=1)
    slope = float(np.clip(errors.sum() / max(gaps.sum(), TINY), -1.0, 0.0))
    square = float(np.mean((errors - slope * gaps) ** 2))
    scale, parts = np.ones(1), backtest.parts(name, budget, "difference")
    if parts is not None:
        means = backtest.resampled.mean(parts)
        variance = backtest.resampled.variance(means)[0]
        if variance > 0:
            freedom = 2 * float(means[0]) ** 2 / variance
            scale = np.sqrt(chi2.ppf((np.arange(DRAWS) + 0.5) / DRAWS, freedom) / freedom)
    return _Pairs(slope, math.sqrt(square), scale, halves)
