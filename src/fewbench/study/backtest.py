"""Methods over a ladder of budgets in one regime: which to use, and how many items it needs.

Between the budgets that were run, a method's error is read from its ratio to the error of plain
random sampling, which is known for every number of items: ratios change slowly, errors do not.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from fewbench._types import BoolArray, FloatArray
from fewbench.evaluation.auto import RANDOM, pick
from fewbench.methods import Method, find_method
from fewbench.methods.sources import RELIABLE, reliability
from fewbench.scores import Scores
from fewbench.study.cell import Cell, CellResult, Failure
from fewbench.study.inference import (
    LEVEL,
    Figure,
    TwoWay,
    expected_random_mae,
    model_groups,
    two_way,
)
from fewbench.study.splits import Split, SplitSettings, make_split
from fewbench.uncertainty.held_out import HeldOut

Measure = Literal["error", "half_width", "difference"]
"""What a curve is of: the mean absolute error, the half width of the interval, or the squared error
of the difference of two targets."""
STEPS = 3
"""Budgets on a ladder."""
NEAR = 1.4
"""Up to this ratio beyond the budgets that were run, the share of random sampling's is the same."""
SAVING = 4
"""The least budget of a ladder is plain random sampling's need divided by this."""
FEWEST, MOST = 5, 1000
"""Budgets of a ladder are between these."""
NOTHING = "no method is significantly better than random sampling"
FEWEST_GROUPS = 5
"""Independent targets, over all repeats, with which methods can be compared."""
FEWEST_PAIRS = 15
"""Pairs of targets in a repeat by which differences are judged, the closest in score."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity against the number of items.

    Attributes
    ----------
    budgets : tuple of int
        Those that were run.
    shares : tuple of ndarray, shape (repeats, 1 + resamples)
        The quantity at each budget, by repeats, over `unit` at that budget.
    unit : callable
        Maps a number of items to what random sampling gives.
    n_items : int
    resampled : TwoWay
    """

    budgets: tuple[int, ...]
    shares: tuple[FloatArray, ...]
    unit: Callable[[int], float]
    n_items: int
    resampled: TwoWay

    def share(self, n: int) -> FloatArray:
        """Return the interpolated share; below and above the ladder that of its ends."""
        logs = np.log(self.budgets)
        at = float(np.interp(math.log(n), logs, np.arange(len(logs))))
        low = min(int(at), len(logs) - 1)
        high = min(low + 1, len(logs) - 1)
        return (1 - (at - low)) * self.shares[low] + (at - low) * self.shares[high]

    def at(self, n: int) -> Figure:
        """Return the quantity at a number of items, with its interval."""
        means = self.resampled.mean(self.share(n))
        figure = self.resampled.figure(means, ratio=True, least=0.0)
        unit = self.unit(n)
        return Figure(figure.value * unit, figure.se * unit, figure.low * unit, figure.high * unit)

    @cached_property
    def _means(self) -> FloatArray:
        return np.array([float(np.nanmean(share[:, 0])) for share in self.shares])

    def value(self, n: int) -> float:
        """Return the quantity at a number of items."""
        share = float(np.interp(math.log(n), np.log(self.budgets), self._means))
        return share * self.unit(n)

    def needed(self, wanted: float, end: Literal["value", "low", "high"] = "value") -> int:
        """Return the least number of items at which it is as wanted, not far below the ladder."""

        def enough(n: int) -> bool:
            if n >= self.n_items:
                return True
            reached = self.value(n) if end == "value" else getattr(self.at(n), end)
            return bool(reached <= wanted * (1 + 1e-9))

        least = max(1, math.ceil(self.budgets[0] / NEAR))
        numbers = range(min(least, self.n_items), self.n_items + 1)
        return numbers[bisect_left(numbers, True, key=enough)]


@dataclass(frozen=True)
class Chosen:
    """A method, and whether it is clearly better than plain random sampling."""

    method: str
    reason: str
    is_clear: bool


@dataclass(eq=False)
class Backtest:
    """Methods backtested in one regime.

    Parameters
    ----------
    scores : Scores
    settings : SplitSettings
        The regime: how sources and targets are divided.
    repeats : range
        Numbers of the divisions.
    seed : int
    level : float
        Level of the intervals.
    margin : float
        Difference of two models that is to be told, in [0, 1].
    splits : list of Split
        The divisions (default: drawn by the settings).
    """

    scores: Scores
    settings: SplitSettings
    repeats: range
    seed: int
    level: float = LEVEL
    margin: float = 0.0
    splits: list[Split] = field(default_factory=list)
    results: dict[tuple[str, int], dict[int, CellResult]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.splits = self.splits or [
            make_split(self.scores, self.settings, self.seed, repeat) for repeat in self.repeats
        ]
        names = [[self.scores.model_ids[at] for at in split.targets] for split in self.splits]
        self.resampled = two_way(names, model_groups(self.scores), self.seed)
        self._parts: dict[tuple[str, int, Measure], FloatArray | None] = {}

    # What is run

    def method(self, name: str) -> Method:
        """Return a method as it runs with all models as sources, or with the number that is set."""
        method = find_method(name)
        return method if self.settings.sources is not None else method.for_sources(self.scores)

    def cells(
        self,
        names: Sequence[str],
        budgets: Sequence[int],
        *,
        intervals: bool = False,
        held: Mapping[tuple[str, int], HeldOut | None] | None = None,
        repeats: int | None = None,
    ) -> list[Cell]:
        """Return what is to be run of these methods, without what is there.

        Parameters
        ----------
        names, budgets : sequence
        intervals : bool
            Also intervals, and with a `margin` those of differences.
        held : mapping, optional
            Errors of a method at a budget, on which intervals rest; by default they are measured
            on the sources of each repeat.
        repeats : int, optional
            Only the first repeats.
        """
        level = self.level if intervals else None
        ladder = tuple(sorted(set(budgets)))
        return [
            Cell(
                name, method := self.method(name), budget, self.settings.kind, split, repeat,
                self.seed, level, True, (held or {}).get((name, budget)),
                intervals and self.margin > 0, shares_fits=True,
                ladder=ladder if method.extends and len(ladder) > 1 else (),
            )
            for budget in budgets
            for name in names
            for repeat, split in list(zip(self.repeats, self.splits, strict=True))[:repeats]
            if not self._has(name, budget, repeat, intervals)
        ]  # fmt: skip

    def _has(self, name: str, budget: int, repeat: int, intervals: bool) -> bool:
        result = self.results.get((name, budget), {}).get(repeat)
        return result is not None and not (intervals and math.isnan(result.low[0]))

    def take(self, cells: Sequence[Cell], results: Sequence[CellResult | Failure]) -> None:
        """Keep the results of cells, in the same order."""
        self._parts.clear()
        for cell, result in zip(cells, results, strict=True):
            if isinstance(result, Failure):
                self.failures.setdefault(cell.name, result.reason)
            else:
                self.results.setdefault((cell.name, cell.budget), {})[cell.repeat] = result

    # Plain random sampling

    @cached_property
    def expected(self) -> Callable[[int], float]:
        """Plain random sampling's expected error at a number of items, mean over the targets."""
        count = np.bincount(np.concatenate([split.targets for split in self.splits]))
        every = np.flatnonzero(count)
        share = np.zeros(len(count))
        for split in self.splits:
            share[split.targets] += 1 / len(split.targets) / len(self.splits)

        @cache
        def known(n: int) -> float:
            return float(share[every] @ expected_random_mae(self.scores, n, every, self.seed))

        return known

    def law(self, n: int) -> float:
        """Return how the variance of a mean of n items depends on n."""
        n_items = self.scores.n_items
        return (n_items - n) / (n * max(n_items - 1, 1))

    def unit(self, measure: Measure) -> Callable[[int], float]:
        """Return what plain random sampling gives of a quantity, by the number of items."""
        if measure == "error":
            return self.expected
        if measure == "difference":
            return lambda n: self.pair_variance * self.law(n)
        targets = np.concatenate([split.targets for split in self.splits])
        spread = self.critical * float(self.scores.filled_cells[targets].std(axis=1).mean())
        return lambda n: spread * math.sqrt(self.law(n))

    @property
    def critical(self) -> float:
        """Standard errors of an interval's half width, where they are known."""
        from scipy.special import ndtri

        return float(ndtri(0.5 + self.level / 2))

    def random_needs(self, measure: Measure, wanted: float) -> int:
        """Return how many items plain random sampling needs; for half widths, about how many."""
        unit = self.unit(measure)
        numbers = range(1, self.scores.n_items + 1)
        return numbers[bisect_left(numbers, True, key=lambda n: unit(n) <= wanted * (1 + 1e-9))]

    def ladder(self, needed: int) -> list[int]:
        """Return the budgets to run where plain random sampling needs this number of items."""
        top = max(min(needed, MOST, self.scores.n_items // 2), min(FEWEST, self.scores.n_items))
        low = max(min(FEWEST, top), round(top / SAVING))
        return sorted({round(n) for n in np.geomspace(low, top, STEPS)})

    @property
    def most(self) -> int:
        """The largest budget to run: half of the items at most."""
        return max(1, min(MOST, self.scores.n_items // 2))

    # Pairs of targets

    @cached_property
    def pairs(self) -> list[BoolArray]:
        """Which pairs of each repeat's targets are judged: those that differ by little."""
        full, pairs = self.scores.full_scores(), []
        for split in self.splits:
            truth = full[split.targets]
            gaps = np.abs(truth[:, None] - truth)
            upper = np.sort(gaps[np.triu_indices(len(truth), 1)])
            few = min(FEWEST_PAIRS, len(upper))
            count = max(few, int((upper <= 2 * self.margin).sum()))
            most = upper[count - 1] if len(upper) else -1.0
            near = gaps <= most + 1e-12
            np.fill_diagonal(near, False)
            pairs.append(near)
        return pairs

    @cached_property
    def pair_variance(self) -> float:
        """Variance of a pair's difference from item to item, mean over the pairs."""
        weights = self.scores.item_weights * self.scores.n_items
        a = weights**2 / self.scores.n_items
        means = []
        for split, pairs in zip(self.splits, self.pairs, strict=True):
            rows = self.scores.filled_cells[split.targets]
            gram, sums = (rows * a) @ rows.T, rows @ a
            variances = np.diag(gram)
            truth = rows @ self.scores.item_weights
            gaps, apart = truth[:, None] - truth, sums[:, None] - sums
            of_pairs = (
                variances[:, None] + variances - 2 * gram - 2 * gaps * apart + gaps**2 * a.sum()
            )
            if pairs.any():
                means.append(float(of_pairs[pairs].mean()))
        return float(np.mean(means))

    # What came out

    def parts(self, name: str, budget: int, measure: Measure) -> FloatArray | None:
        """Return a quantity by repeats and resamples, or None without results."""
        key = (name, budget, measure)
        if key not in self._parts:
            self._parts[key] = self._made(*key)
        return self._parts[key]

    def _made(self, name: str, budget: int, measure: Measure) -> FloatArray | None:
        came = self.results.get((name, budget), {})
        values: list[FloatArray | None] = []
        for repeat in self.repeats:
            result = came.get(repeat)
            if result is None:
                values.append(None)
                continue
            errors = np.array(result.estimate) - np.array(result.truth)
            if measure == "error":
                values.append(np.abs(errors))
            elif measure == "half_width":
                half = (np.array(result.high) - np.array(result.low)) / 2
                values.append(None if np.isnan(half).any() else half)
            else:
                values.append((errors[:, None] - errors) ** 2)
        if all(value is None for value in values):
            return None
        return self._over_pairs(values) if measure == "difference" else self.resampled.parts(values)

    def _over_pairs(self, values: Sequence[FloatArray | None]) -> FloatArray:
        """Return the means of values of pairs, shape (repeats, 1 + resamples)."""
        means = np.full((len(values), len(self.resampled.repeats)), np.nan)
        for repeat, (value, pairs) in enumerate(zip(values, self.pairs, strict=True)):
            if value is None or not pairs.any():
                continue
            weights = self.resampled.weights(repeat)
            with np.errstate(invalid="ignore"):
                total = ((weights @ pairs) * weights).sum(axis=1)
                means[repeat] = ((weights @ (pairs * value)) * weights).sum(axis=1) / total
        return means

    def curve(self, name: str, measure: Measure, budgets: Sequence[int]) -> Curve | None:
        """Return a method's curve over the budgets with results, or None without any."""
        unit = self.unit(measure)
        by_budget = {
            n: parts / unit(n)
            for n in budgets
            if (parts := self.parts(name, n, measure)) is not None and unit(n) > 0
        }
        if not by_budget:
            return None
        return Curve(
            tuple(by_budget), tuple(by_budget.values()), unit, self.scores.n_items, self.resampled
        )

    def width(self, name: str, n: int) -> tuple[float, float]:
        """Return the mean half width and the coverage of a method's intervals at about n items."""
        ran = sorted(budget for of_method, budget in self.results if of_method == name)
        curve = self.curve(name, "half_width", ran)
        if curve is None:
            return math.nan, math.nan
        nearest = min(curve.budgets, key=lambda budget: abs(math.log(budget / n)))
        stated = f"coverage{100 * self.level:g}"
        widths = [result.metrics.get(stated) for result in self.results[name, nearest].values()]
        return curve.value(n), float(np.mean([width for width in widths if width is not None]))

    def rows(self) -> list[dict[str, Any]]:
        """Return each method's error at each budget that was run, with its interval."""
        rows = []
        for name, n in sorted(self.results):
            parts = self.parts(name, n, "error")
            if parts is not None:
                error = self.resampled.figure(self.resampled.mean(parts), ratio=True, least=0.0)
                row = {"method": name, "items": n, "error": error.value}
                row |= {"error_low": error.low, "error_high": error.high}
                rows.append(row | {"random_error": self.expected(n)})
        return rows

    def ratio(self, name: str, n: int, measure: Measure, budgets: Sequence[int]) -> Figure:
        """Return the ratio of a quantity to plain random sampling's at the nearest budgets."""
        curve = self.curve(name, measure, budgets)
        assert curve is not None
        parts = _mean([curve.shares[at] for at in _near(curve.budgets, n)])
        return self.resampled.figure(self._against_random(parts, measure), ratio=True, least=0.0)

    def _against_random(self, shares: FloatArray, measure: Measure) -> FloatArray:
        """Return the statistic of a ratio; plain sampling's error is of the same targets."""
        if measure != "error":
            return self.resampled.mean(shares)
        at = self.scores.n_items // 10 or 1
        every = np.unique(np.concatenate([split.targets for split in self.splits]))
        exact = np.full(self.scores.n_models, np.nan)
        exact[every] = expected_random_mae(self.scores, at, every, self.seed)
        theirs = self.resampled.parts([exact[split.targets] for split in self.splits])
        return self.resampled.ratio(shares, theirs / self.expected(at))

    def choose(
        self, names: Sequence[str], n: int, measure: Measure, budgets: Sequence[int]
    ) -> Chosen:
        """Choose a method for about n items, by the rule of `auto` (see `pick`).

        One method is clearly better than another if its error is lower beyond the two-way interval
        of the difference, by Bonferroni's rule over the methods.
        """
        curves = {name: self.curve(name, measure, budgets) for name in names if name != RANDOM}
        shares = {
            name: _mean([curve.shares[at] for at in _near(curve.budgets, n)])
            for name, curve in curves.items()
            if curve is not None
        }
        if not shares and not self.unit(measure)(1):
            return Chosen(RANDOM, "each held-out target has one score on all its items", False)
        if not shares:
            return Chosen(RANDOM, "no other method can run on this table", False)
        alpha = reliability(self.scores)
        if alpha < RELIABLE:
            return Chosen(RANDOM, f"the models hardly differ in ability ({alpha:.2f} of 1)", False)
        if not self.resampled.has_intervals or self.resampled.models.shape[1] < FEWEST_GROUPS:
            return Chosen(RANDOM, "the targets are too few to compare methods on", False)
        means = {name: float(self.resampled.mean(part)[0]) for name, part in shares.items()}

        def beats(name: str, other: str, comparisons: int) -> bool:
            if other == RANDOM:
                figures, null = self._against_random(shares[name], measure), 1.0
            else:
                figures, null = self.resampled.difference(shares[name], shares[other]), 0.0
            p = self.resampled.p_value(figures, null, ratio=other == RANDOM)
            return bool(figures[0] < null and p <= (1 - LEVEL) / comparisons + 1e-12)

        chosen, preferred = pick(list(shares), means, beats), next(iter(shares))
        if chosen == RANDOM:
            return Chosen(RANDOM, NOTHING, False)
        reason = f"{chosen} has a significantly lower error than random sampling"
        if chosen != preferred and beats(chosen, preferred, len(shares) - 1):
            reason += f" and than {preferred}"
        elif chosen != preferred:
            reason += f"; {preferred} has not"
        return Chosen(chosen, reason, True)


def _near(budgets: Sequence[int], n: int) -> list[int]:
    """Return the positions of the budget nearest to n and of its neighbors."""
    nearest = int(np.abs(np.log(budgets) - math.log(n)).argmin())
    return [at for at in (nearest - 1, nearest, nearest + 1) if 0 <= at < len(budgets)]


def _mean(parts: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(np.mean(np.stack(list(parts)), axis=0))
