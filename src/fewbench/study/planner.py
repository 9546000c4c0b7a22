"""How a plan is found: a method is chosen by a few held-out models, then judged by others."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewbench._progress import OnStep
from fewbench._seeds import child_seed
from fewbench._types import FloatArray
from fewbench.errors import FewbenchError
from fewbench.evaluation.auto import (
    RANDOM,
    Choice,
    candidates,
    choice_without_backtest,
    choose_method,
)
from fewbench.executors import Pool
from fewbench.methods import find_method
from fewbench.scores import Scores
from fewbench.scores.costs import break_even
from fewbench.study.backtest import NEAR, Backtest, Chosen, Measure
from fewbench.study.cache import Cache
from fewbench.study.cell import Cell
from fewbench.study.compare import run_cells
from fewbench.study.differences import Margins
from fewbench.study.forecast import Forecast, Target
from fewbench.study.inference import Figure
from fewbench.study.learning_curve import LearningCurve, learning_curve
from fewbench.uncertainty.held_out import MOST_JUDGED, HeldOut, measure
from fewbench.uncertainty.replay import replay

FEW_JUDGED = 12
"""Held-out models on which the intervals of the first answer rest."""
AHEAD = 1.5
"""A method is chosen at two thirds of the items that are needed, or more."""
AROUND = 1.25
"""Ratio of the budgets around one that was found."""
MOST_PASSES = 3
"""How often the numbers of items that are needed are looked for in the splits that judge."""


@dataclass(frozen=True)
class Needed:
    """A method for one regime, and how many items it needs.

    Attributes
    ----------
    chosen : Chosen
    able : list of str
        The methods that can run.
    ladder : list of int
        The budgets that were run.
    items, near : int
        What it needs, and the first of those to judge.
    """

    chosen: Chosen
    able: list[str]
    ladder: list[int]
    items: int
    near: int

    @property
    def tried(self) -> list[str]:
        """The methods to judge further: all where none is clearly better than random sampling."""
        return self.able if self.chosen.method == RANDOM else [self.chosen.method]


Regimes = Mapping[Target, Backtest]


class Planner:
    """Runs the backtests of a plan.

    Parameters
    ----------
    scores, table : Scores
        The scores of a run, and those of the models to backtest on.
    goal, wanted : str, float
        As of `Plan`, errors in [0, 1].
    power : float
    methods : sequence of str, optional
    prices : ndarray, shape (items,)
    n_sources : int
        Source models of a run.
    seed : int
    pool, cache, progress
        How cells are run.
    fixed_items : bool
        As of `Plan`.
    is_slow : bool
        Whether methods choose items for each target, which takes far longer.
    """

    def __init__(
        self, scores: Scores, table: Scores, goal: str, wanted: float, power: float,
        methods: Sequence[str] | None, prices: FloatArray, n_sources: int, seed: int,
        pool: Pool, cache: Cache, progress: OnStep | None, *, fixed_items: bool = False,
        is_slow: bool = True,
    ) -> None:  # fmt: skip
        self.fixed_items, self.is_slow = fixed_items, is_slow
        self.scores, self.table = scores, table
        self.goal, self.wanted, self.power = goal, wanted, power
        self.methods = methods
        self.prices, self.n_sources, self.seed = prices, n_sources, seed
        self.pool, self.cache, self._progress = pool, cache, progress
        self._done = 0
        self._errors: dict[str, HeldOut] = {}  # by method, of those that choose in rounds
        self.measure: Measure = "difference" if goal == "difference" else "error"
        self.by_width = goal in ("half_width", "difference")

    # What is run

    def run(self, wanted: Sequence[tuple[Backtest, list[Cell]]]) -> None:
        """Run the cells of several backtests together."""
        cells = [cell for _, part in wanted for cell in part]
        progress: OnStep | None = None
        if self._progress is not None:
            shown, before = self._progress, self._done

            def progress(done: int, total: int) -> None:
                shown(before + done, before + total)

        results = run_cells(self.table, cells, self.pool, self.cache, progress)
        self._done += len({cell.key(self.table.fingerprint) for cell in cells})
        at = 0
        for backtest, part in wanted:
            backtest.take(part, results[at : at + len(part)])
            at += len(part)

    def _widths(
        self, wanted: Sequence[tuple[Backtest, Sequence[str], Sequence[int]]],
        most: int = MOST_JUDGED, repeats: int | None = None,
    ) -> None:  # fmt: skip
        """Run methods at budgets, with intervals.

        Their errors on at most `most` held-out models are measured once on all models, as for a run
        with all of them.
        """
        own: dict[str, set[int]] = {}
        for _, methods, budgets in wanted:
            for name in methods:
                own.setdefault(name, set()).update(budgets)
        first = sorted(wanted[0][2]) if wanted else []
        errors = {
            (name, n): self._held(name, n, sorted(budgets), first, most)
            for name, budgets in own.items()
            for n in budgets
        }
        self.run(
            [
                (
                    backtest,
                    backtest.cells(methods, budgets, intervals=True, held=errors, repeats=repeats),
                )
                for backtest, methods, budgets in wanted
            ]
        )

    def _held(
        self, name: str, n: int, every: Sequence[int], first: Sequence[int], most: int
    ) -> HeldOut | None:
        """Return errors of a method at a budget.

        In their units, those of a method that asks in rounds hardly depend on it: one measurement,
        at the `first` budgets, holds for all.
        """
        method, looks = find_method(name), [n]
        if method.plain_sampling and self.table.counts_equally:
            return None  # its intervals need none
        if name in self._errors and most == MOST_JUDGED:
            return self._errors[name]
        if method.extends:
            looks = list(every if method.asks_once else first)
        how = (method, self.table, looks[-1], self.seed, looks)
        try:
            held = measure(*how, divisions=1, most=most, pool=self.pool, shares_fits=True)
        except FewbenchError:  # its cells say why
            return None
        if not method.asks_once and method.extends and most == MOST_JUDGED:
            self._errors[name] = held
        return held

    # The first answer

    def _names(self, target: Target) -> list[str]:
        """Return the methods to consider, the preferred first, random sampling last.

        By default, the one that a run takes, and for targets beyond the sources a safe one too.
        """
        if self.methods is not None:
            for name in self.methods:
                find_method(name)  # an unknown one is named now
            return list(dict.fromkeys((*(name.strip() for name in self.methods), RANDOM)))
        names = [self._default.method]
        if target in ("stronger", "weaker") and names != [RANDOM]:
            names += candidates(self.table, beyond=True)
        return list(dict.fromkeys((*names, RANDOM)))

    @property
    def chooses(self) -> bool:
        """Whether there are several methods to choose from."""
        return self.methods is not None and len(set(self.methods) - {RANDOM}) > 1

    def choose(self, regimes: Regimes) -> dict[Target, Needed]:
        """Choose a method for each regime, from few items to more until enough is seen."""
        names = {target: self._first_names(target) for target in regimes}
        ran: dict[Target, list[int]] = {target: [] for target in regimes}
        able: dict[Target, list[str]] = {}
        going = list(regimes)
        for n in self._ladder(list(regimes.values())):
            if self.by_width:
                self._widths([(regimes[t], names[t], [n]) for t in going], FEW_JUDGED)
            else:
                self.run([(regimes[t], regimes[t].cells(names[t], [n])) for t in going])
            for t in going:
                ran[t].append(n)
                came = [method for method in names[t] if regimes[t].curve(method, "error", ran[t])]
                able[t] = [method for method in came if method != RANDOM]
            going = [
                t for t in going
                if len(ran[t]) < 2 or self._needs(regimes[t], able[t], ran[t]) > AHEAD * n
            ]  # fmt: skip
        needs = {}
        for t, backtest in regimes.items():
            near = self._needs(backtest, able[t], ran[t])
            chosen = self._choose(t, backtest, able[t], near, ran[t])
            needs[t] = self._found(t, backtest, chosen, able[t], ran[t])
        return needs

    def _first_names(self, target: Target) -> list[str]:
        """Return the methods of the first answer: what a run takes unless a backtest speaks."""
        if self.methods is not None or choice_without_backtest(self.scores) is not None:
            return self._names(target)
        return list(dict.fromkeys((candidates(self.table)[0], RANDOM)))

    @cached_property
    def _default(self) -> Choice:
        """What a run takes that names no method."""
        return choose_method(self.scores, 1)

    def _choose(
        self, target: Target, backtest: Backtest, names: Sequence[str], n: int,
        ladder: Sequence[int],
    ) -> Chosen:  # fmt: skip
        """Return the method for about n items.

        If several methods are named, one that is clearly better than random sampling. If none is
        named, what a run takes; for targets beyond the sources, only if it is no worse.
        """
        if self.methods is None and not names:
            return Chosen(RANDOM, self._default.reason, False)
        chosen = backtest.choose(names, n, self.measure, ladder)
        if self.methods is not None or chosen.method == names[0]:
            return chosen
        default = names[0]
        if target in ("stronger", "weaker"):
            if chosen.method != RANDOM or backtest.curve(default, self.measure, ladder) is None:
                return chosen
            if backtest.ratio(default, n, self.measure, ladder).value >= 1:
                return chosen
        return Chosen(default, f"{chosen.reason} here; by default, runs use {default}", False)

    def _ladder(self, backtests: Sequence[Backtest]) -> list[int]:
        if self.goal == "budget":
            n = int(self.wanted)
            return sorted({max(1, n // 2), n}) if self.chooses else [n]
        if self.goal == "half_width":
            needs = [backtest.random_needs("half_width", self.wanted) for backtest in backtests]
        else:
            needs = [self.needed(backtest, RANDOM, [1]) for backtest in backtests]
        return backtests[0].ladder(max(needs))

    def needed(self, backtest: Backtest, name: str, ladder: Sequence[int]) -> int:
        """Return the number of items that a method needs for the goal."""
        if self.goal == "budget":
            return int(self.wanted)
        if self.goal == "difference":
            return self._margins(backtest, name, ladder).needed(self.wanted, self.power)
        if name == RANDOM and self.goal == "error":
            return backtest.random_needs("error", self.wanted)
        curve = backtest.curve(name, "half_width" if self.goal == "half_width" else "error", ladder)
        return self.table.n_items if curve is None else curve.needed(self.wanted)

    def _margins(self, backtest: Backtest, name: str, ladder: Sequence[int]) -> Margins:
        return Margins(backtest, name, ladder, fixed_items=self.fixed_items)

    def _needs(self, backtest: Backtest, names: Sequence[str], ladder: Sequence[int]) -> int:
        """Return what the preferred method needs."""
        return self.needed(backtest, names[0] if names else RANDOM, ladder)

    def _found(
        self, target: Target, backtest: Backtest, chosen: Chosen, able: list[str],
        ladder: list[int],
    ) -> Needed:  # fmt: skip
        """Return what is found of a method; for a half width, of the one with the fewest items.

        Without methods to choose from, that is what a run takes.
        """
        is_open = self.methods is not None or target in ("stronger", "weaker")
        if self.goal == "half_width" and is_open:
            needs = {name: self.needed(backtest, name, ladder) for name in (*able, RANDOM)}
            best = min(needs, key=lambda name: (needs[name], name != chosen.method))
            if needs[best] < needs.get(chosen.method, self.table.n_items):
                reason = f"its intervals need the fewest items for this half width: {needs[best]:,}"
                chosen = Chosen(best, reason, best != RANDOM)
        items = self.needed(backtest, chosen.method, ladder)
        near = items if chosen.method != RANDOM else self._needs(backtest, able, ladder)
        return Needed(chosen, able, ladder, items, near)

    def first(self, regimes: Regimes, found: Mapping[Target, Needed]) -> list[Forecast]:
        """Return a forecast for each regime, by the repeats that chose."""
        if not self.by_width:
            wanted = [
                (backtest, [found[t].chosen.method], [found[t].items])
                for t, backtest in regimes.items()
                if found[t].items < self.table.n_items
            ]
            self._widths(wanted, FEW_JUDGED, repeats=1)
        return [self._forecast(t, backtest, found[t]) for t, backtest in regimes.items()]

    # The answer

    def judge(
        self, regimes: Regimes, found: Mapping[Target, Needed]
    ) -> tuple[list[Forecast], LearningCurve | None]:
        """Return a forecast for each regime, by repeats that did not choose, and more sources."""
        first = next(iter(found.values()))
        able = {
            t: found[t].able if self.chooses else [n for n in self._names(t) if n != RANDOM]
            for t in regimes
        }
        tried = {t: found[t].tried if self.chooses else able[t] for t in regimes}
        near = {t: found.get(t, first).near for t in regimes}
        ladders: dict[Target, list[int]] = {t: [] for t in regimes}
        chosen: dict[Target, Chosen] = {}
        needs: dict[Target, Needed] = {}
        going = set(regimes)
        for _ in range(MOST_PASSES):
            self._extend(regimes, ladders, {t: near[t] for t in regimes if t in going})
            self._run_all(regimes, {t: tried[t] for t in regimes if t in going}, ladders)
            for t in regimes:
                if t not in going:
                    continue
                backtest, ladder = regimes[t], ladders[t]
                best = self._choose(t, backtest, tried[t], near[t], ladder)
                if best.method == RANDOM and len(able[t]) > len(tried[t]):
                    tried[t] = able[t]  # a method that is no better than random: the others
                    continue
                before = found[t].chosen if t in found else best  # it says why it was chosen
                is_same = before.method == best.method and before.is_clear
                chosen[t] = before if is_same else best
            self._widths([(regimes[t], [chosen[t].method], ladders[t]) for t in chosen])
            for t in chosen:
                needs[t] = self._found(t, regimes[t], chosen[t], able[t], ladders[t])
                near[t] = needs[t].near
            done = {t for t in chosen if not self._is_off(regimes[t], near[t], ladders[t])}
            going = set(regimes) - done
            if not going:
                break
        learning, (target, need) = None, next(iter(needs.items()))
        method = need.chosen.method
        if method != RANDOM and need.items < self.table.n_items:
            at = min(ladders[target], key=lambda n: abs(n - need.items))
            learning = learning_curve(regimes[target], method, at, self.run)
        return [self._forecast(t, regimes[t], needs[t]) for t in regimes], learning

    def _run_all(
        self, regimes: Regimes, tried: Mapping[Target, list[str]],
        ladders: Mapping[Target, list[int]],
    ) -> None:  # fmt: skip
        """Run the methods that are tried; several by their errors alone, which takes less time."""
        sure = [t for t in tried if self.by_width or len(tried[t]) == 1]
        self._widths([(regimes[t], [*tried[t], RANDOM], ladders[t]) for t in sure])
        others = [t for t in tried if t not in sure]
        self.run([(regimes[t], regimes[t].cells(tried[t], ladders[t])) for t in others])

    def _extend(
        self, regimes: Regimes, ladders: dict[Target, list[int]], near: Mapping[Target, int]
    ) -> None:
        """Add the budgets that are needed; nearly equal ones are the same.

        Methods that take little time also run at the budgets around them.
        """
        added: list[int] = []
        for t, n in near.items():
            if self.goal == "budget":
                ladders[t] = [n]
                continue
            most = regimes[t].most
            n = min(n, most)
            if self.is_slow:
                n = next((one for one in added if n / NEAR <= one <= n * NEAR), n)
                added.append(n)
                around = {n}
            else:
                around = {max(1, round(n / AROUND)), n, min(round(n * AROUND), most)}
            ladders[t] = sorted({*ladders[t], *around})

    def _is_off(self, backtest: Backtest, n: int, ladder: Sequence[int]) -> bool:
        """Whether a number of items is far from all that were run, and can be run."""
        n, least = min(n, backtest.most), math.ceil(ladder[0] / NEAR)
        return self.goal != "budget" and (n <= least < ladder[0] or n > ladder[-1] * NEAR)

    def _forecast(self, target: Target, backtest: Backtest, need: Needed) -> Forecast:
        chosen, ladder, items = need.chosen, need.ladder, need.items
        method = chosen.method
        if self.goal != "error" and (method, items) in backtest.results:
            ladder = [items]  # nothing to interpolate
        ends: list[int | None] = [None, None]
        exact = backtest.expected(items)
        error, ratio = Figure(exact, 0.0, exact, exact), Figure(1.0, 0.0, 1.0, 1.0)
        curve = backtest.curve(method, "error", ladder)
        if method != RANDOM and curve is not None:
            error = curve.at(items)
            ratio = backtest.ratio(method, items, self.measure, ladder)
            if self.goal == "error":
                ends = [curve.needed(self.wanted, "low"), curve.needed(self.wanted, "high")]
        margin = margin_of_all = None
        if self.goal == "difference":
            margins = self._margins(backtest, method, need.ladder)
            margin, margin_of_all = (
                margins.margin(n, self.power) for n in (items, self.table.n_items)
            )
        random_items = items
        if self.goal in ("half_width", "difference"):
            random_items = self.needed(backtest, RANDOM, need.ladder)
        elif method != RANDOM:
            random_items = backtest.random_needs("error", error.value)
        width, coverage = backtest.width(method, items)
        cost, plain_cost, full = self._costs(backtest, method, items, random_items)
        sources = self.n_sources * full
        return Forecast(
            target=target, method=method, items=items, reason=chosen.reason,
            is_better=chosen.is_clear, error=error.value, error_low=error.low,
            error_high=error.high, items_low=ends[0], items_high=ends[1],
            half_width=width, coverage=coverage, random_items=random_items, random_error=exact,
            ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high, margin=margin,
            margin_of_all=margin_of_all,
            n_targets=round(float(np.mean([len(split.targets) for split in backtest.splits]))),
            n_sources=round(float(np.mean([len(split.sources) for split in backtest.splits]))),
            is_extrapolated=NEAR * max(ladder) < items < self.table.n_items and method != RANDOM,
            cost=cost, random_cost=plain_cost, full_cost=full,
            breakeven=None if method == RANDOM else break_even(sources, full, cost),
            breakeven_random=None if method == RANDOM else break_even(sources, plain_cost, cost),
        )  # fmt: skip

    def _costs(
        self, backtest: Backtest, method: str, items: int, random_items: int
    ) -> tuple[float, float, float]:
        """Return the costs of the chosen items, of random sampling's, and of all."""
        full, mean = float(self.prices.sum()), float(self.prices.mean())
        if method == RANDOM or items >= self.table.n_items or np.ptp(self.prices) == 0:
            return items * mean, random_items * mean, full
        runs, costs = backtest.method(method), list[float]()
        for number, split in enumerate(backtest.splits):  # each draws its own sample
            sources, targets = (self.table.take(models=at) for at in (split.sources, split.targets))
            seed = child_seed(backtest.seed, 3, number)
            for asked in replay(runs, sources, targets, items, seed).items:
                # Held-out models may lack some of the chosen items; a run asks for all of them.
                n = items if runs.whole_budget else len(asked)
                costs.append(n * float(self.prices[asked].mean()))
        return float(np.mean(costs)), random_items * mean, full
