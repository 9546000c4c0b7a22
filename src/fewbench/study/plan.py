"""plan: which method and how many items, by a backtest on the user's own table."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from fewbench._names import counted, did_you_mean
from fewbench._seeds import child_seed
from fewbench._types import FloatArray
from fewbench._version import __version__
from fewbench.errors import StudyError
from fewbench.evaluation.auto import RANDOM, candidates
from fewbench.evaluation.replay import replay
from fewbench.evaluation.sampling import check_level
from fewbench.executors import Executor, Pool, open_pool
from fewbench.methods import FEW, find_method
from fewbench.methods.sources import RELIABLE, reliability
from fewbench.scores import Scores, read_costs
from fewbench.scores.table import check_is_scores
from fewbench.study.backtest import Backtest, Chosen, Measure
from fewbench.study.cache import Cache
from fewbench.study.cell import Cell
from fewbench.study.compare import Progress, run_cells
from fewbench.study.forecast import TARGETS, Forecast, Plan, Target
from fewbench.study.goal import needed_standard_errors, read_goal
from fewbench.study.inference import FEWEST_REPEATS, FEWEST_TARGETS, Figure
from fewbench.study.learning_curve import learning_curve
from fewbench.study.splits import count_twins

MOST_MODELS = 240
"""Models that a backtest uses; more are drawn from at random."""
MOST_TARGETS = 30
"""Targets of a repeat, where they are drawn: more repeats say more than more targets."""
WIDTH_REPEATS = 2
"""Repeats by which the width of intervals is measured: it varies little between targets. A method
that takes long is run once."""


def plan(
    scores: Scores,
    *,
    error: float | None = None,
    half_width: float | None = None,
    budget: int | None = None,
    difference: float | None = None,
    methods: str | Sequence[str] | None = None,
    costs: Mapping[str, float] | str | None = None,
    target: Target | None = None,
    level: float = 0.9,
    power: float = 0.8,
    repeats: int = 5,
    seed: int = 0,
    jobs: int = 1,
    executor: Executor = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan how many items to run and with which method, by a backtest on the source models.

    Give one of `error`, `half_width`, `budget` and `difference`, on the scale of the scores.

    Parameters
    ----------
    scores : Scores
        Models with known full scores. Parts of them are estimated from the others.
    error : float
        Wanted mean absolute error of an estimate.
    half_width : float
        Wanted mean half width of an estimate's interval.
    budget : int
        Number of items; the plan says what to expect of them.
    difference : float
        Difference of two models that is to be told: with probability `power` the interval of their
        estimated difference excludes 0. Errors of differences are taken to be normal.
    methods : str or sequence of str, optional
        Names of methods, the preferred first. By default fewbench's own and those that
        `fewbench methods` recommends for the table.
    costs : mapping of item id to number, or str, optional
        Cost of each item, or the items' column that holds it. By default every item costs 1.
    target : {"like", "family", "stronger"}, optional
        Plan only for targets like the sources, of a new family, or stronger than all sources. By
        default all that the table can show; the answer is for targets like the sources.
    level : float
        Level of the intervals.
    power : float
        For `difference`: share of such pairs that are to be told apart.
    repeats : int
        Divisions of the models; at least 3.
    seed : int
        Random seed.
    jobs : int
        Processes.
    executor : Executor, optional
        Where to run in place of processes of this machine, as of `compare`.
    cache : path, optional
        Where finished results are kept, as of `compare`.
    progress : callable, optional
        Called with the numbers of finished cells and of those known to come.

    Raises
    ------
    StudyError, MethodError, ScoresError
        If what is wanted, the costs or the table does not allow a plan.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> made = plan(simulate(60, 200), budget=20, target="like", methods="greedy-ridge", repeats=3)
    >>> made.answer
    'Run 20 items with greedy-ridge: expected error ...'
    """
    check_is_scores(scores)
    check_level(level)
    span = scores.scale.high - scores.scale.low
    goal, wanted = read_goal(scores, error, half_width, budget, difference, span)
    if repeats < FEWEST_REPEATS or jobs < 1 or seed < 0:
        raise StudyError(
            f"{repeats} repeats, {jobs} jobs, seed {seed}",
            hint=f"repeats must be {FEWEST_REPEATS} or more, jobs 1 or more, the seed 0 or more",
        )
    if not 0.5 <= power < 1:
        raise StudyError(f"a power of {power:g}", hint="give a number from 0.5 to 0.99")
    if scores.n_models < 4:
        raise StudyError(
            f"{counted(scores.n_models, 'model')} cannot be divided into sources and targets",
            hint="plan needs 4 models or more, and 20 or more to say anything",
        )
    prices = read_costs(scores, costs)
    table, notes = models_to_backtest(scores, seed)
    backtests, said = backtests_by_relation(table, target, repeats, seed, level, wanted / span)
    store = Cache(cache)
    with open_pool(executor, jobs) as pool:
        planner = _Planner(
            table, goal, wanted if goal == "budget" else wanted / span, level, power, methods,
            prices, scores.n_models, pool, store, progress,
        )  # fmt: skip
        forecasts, curves = planner.forecasts(backtests)
        first = next(iter(backtests))
        learning = None
        if forecasts[0].method != RANDOM and forecasts[0].items < scores.n_items:
            learning = learning_curve(
                backtests[first], forecasts[0].method, forecasts[0].items, planner.run
            )
    notes += said + _notes(table, goal, power, backtests, forecasts)
    return Plan(
        goal,
        wanted,
        level,
        power,
        tuple(_scaled(one, span) for one in forecasts),
        _scaled_curves(curves, span),
        learning,
        tuple(notes),
        scores.n_items,
        scores.n_models,
        span,
        {
            "models": str(scores.n_models),
            "items": str(scores.n_items),
            "splits": "; ".join(one.settings.describe() for one in backtests.values()),
            "repeats": str(repeats),
            "seed": str(seed),
            "fingerprint": scores.fingerprint,
            "version": __version__,
        },
    )


class _Planner:
    """Runs the backtests of a plan."""

    def __init__(
        self, table: Scores, goal: str, wanted: float, level: float, power: float,
        methods: str | Sequence[str] | None, prices: FloatArray, n_sources: int, pool: Pool,
        cache: Cache, progress: Progress | None,
    ) -> None:  # fmt: skip
        self.table, self.goal, self.wanted, self.level = table, goal, wanted, level
        self._errors = needed_standard_errors(level, power)
        self.methods = [methods] if isinstance(methods, str) else methods
        self.prices, self.n_sources = prices, n_sources
        self.pool, self.cache, self._progress = pool, cache, progress
        self._done = 0

    def run(self, wanted: Sequence[tuple[Backtest, list[Cell]]]) -> None:
        """Run the cells of several backtests together."""
        cells = [cell for _, part in wanted for cell in part]
        progress: Progress | None = None
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

    @property
    def measure(self) -> Measure:
        """What methods are compared by."""
        return "difference" if self.goal == "difference" else "error"

    def _names(self, target: Target) -> list[str]:
        if self.methods is None:
            return list(candidates(self.table, stronger=target == "stronger"))
        for name in self.methods:
            find_method(name)  # an unknown one is named now
        return list(dict.fromkeys(name.strip() for name in self.methods))

    def forecasts(
        self, backtests: Mapping[Target, Backtest]
    ) -> tuple[list[Forecast], list[dict[str, Any]]]:
        """Return a forecast for each regime, and all that was measured."""
        names = {target: self._names(target) for target in backtests}
        ladders = {target: self._ladder(one) for target, one in backtests.items()}
        self.run(
            [
                (one, one.cells([*dict.fromkeys((*names[t], RANDOM))], ladders[t]))
                for t, one in backtests.items()
            ]
        )
        chosen = {t: self._choose(one, names[t], ladders[t]) for t, one in backtests.items()}
        by_width = self.goal == "half_width"
        self.run(
            [
                (
                    one,
                    one.cells(
                        [*dict.fromkeys((chosen[t].method, RANDOM))],
                        ladders[t] if by_width else [self._items(one, chosen[t], ladders[t])],
                        intervals=True,
                        repeats=_width_repeats(chosen[t].method),
                    ),
                )
                for t, one in backtests.items()
            ]
        )
        if by_width:
            chosen = {t: self._narrower(one, chosen[t], ladders[t]) for t, one in backtests.items()}
        made = [self._forecast(t, one, chosen[t], ladders[t]) for t, one in backtests.items()]
        return made, [
            {"target": t} | row
            for t, one in backtests.items()
            for row in one.rows(names[t], ladders[t])
        ]

    @property
    def _limit(self) -> float:
        """What the curve of the goal has to reach."""
        if self.goal != "difference":
            return self.wanted
        return (self.wanted / self._errors) ** 2  # a variance

    def _ladder(self, one: Backtest) -> list[int]:
        if self.goal == "budget":
            n, n_items = int(self.wanted), self.table.n_items
            return sorted({max(1, n // 2), n, min(2 * n, n_items - 1, max(n, n_items // 2))})
        measure: Measure = "half_width" if self.goal == "half_width" else self.measure
        return one.ladder(one.random_needs(measure, self._limit))

    def _choose(self, one: Backtest, names: list[str], ladder: list[int]) -> Chosen:
        at = int(self.wanted) if self.goal == "budget" else ladder[len(ladder) // 2]
        if self.goal in ("error", "difference"):
            first = next((c for n in names if (c := one.curve(n, self.measure, ladder))), None)
            at = at if first is None else first.needed(self._limit)
        return one.choose(names, at, self.measure, ladder)

    def _narrower(self, one: Backtest, chosen: Chosen, ladder: list[int]) -> Chosen:
        """Return random sampling in place of a method that needs more items for the width."""
        curves = [one.curve(name, "half_width", ladder) for name in (chosen.method, RANDOM)]
        ours, plain = (c.needed(self._limit) if c else self.table.n_items for c in curves)
        if ours < plain or chosen.method == RANDOM:
            return chosen
        reason = f"{chosen.method} errs less, but its intervals are not narrower"
        return Chosen(RANDOM, reason, False)

    def _items(self, one: Backtest, chosen: Chosen, ladder: list[int]) -> int:
        if self.goal == "budget":
            return int(self.wanted)
        if self.goal == "half_width":
            curve = one.curve(chosen.method, "half_width", ladder)
        else:
            if chosen.method == RANDOM:
                return one.random_needs(self.measure, self._limit)
            curve = one.curve(chosen.method, self.measure, ladder)
        return self.table.n_items if curve is None else curve.needed(self._limit)

    def _forecast(
        self, target: Target, one: Backtest, chosen: Chosen, ladder: list[int]
    ) -> Forecast:
        method, items = chosen.method, self._items(one, chosen, ladder)
        ends: list[int | None] = [None, None]
        exact = one.expected(items)
        error, ratio = Figure(exact, 0.0, exact, exact), Figure(1.0, 0.0, 1.0, 1.0)
        curve = one.curve(method, "error", ladder)
        if method != RANDOM and curve is not None:
            error = curve.at(items)
            ratio = one.ratio(method, items, self.measure, ladder)
        margin = None
        if self.goal == "difference":
            variance = one.unit("difference")(items)
            differences = one.curve(method, "difference", ladder)
            if method != RANDOM and differences is not None:
                variance = differences.value(items)
            margin = self._errors * math.sqrt(variance)
        if self.goal in ("error", "difference") and method != RANDOM:
            own = one.curve(method, self.measure, ladder)
            if own is not None:
                ends = [own.needed(self._limit, "low"), own.needed(self._limit, "high")]
        if self.goal == "half_width":
            plain = one.curve(RANDOM, "half_width", ladder)
            random_items = self.table.n_items if plain is None else plain.needed(self._limit)
        elif self.goal == "difference":
            random_items = one.random_needs("difference", self._limit)
        else:  # of scores that are drawn, the error wavers from one number of items to the next
            random_items = items
            if method != RANDOM:
                random_items = one.random_needs("error", error.value)
        width, coverage = one.width(method, items)
        cost, plain_cost, full = self._costs(one, method, items, random_items)
        return Forecast(
            target=target, method=method, items=items, reason=chosen.reason,
            is_better=chosen.is_clear, error=error.value, error_low=error.low,
            error_high=error.high, items_low=ends[0], items_high=ends[1],
            half_width=width, coverage=coverage, random_items=random_items, random_error=exact,
            ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high, margin=margin,
            n_targets=round(float(np.mean([len(split.targets) for split in one.splits]))),
            n_sources=round(float(np.mean([len(split.sources) for split in one.splits]))),
            is_extrapolated=max(ladder) < items < self.table.n_items and method != RANDOM,
            cost=cost, random_cost=plain_cost, full_cost=full,
            breakeven=self._breakeven(full, cost) if method != RANDOM else None,
            breakeven_random=self._breakeven(plain_cost, cost) if method != RANDOM else None,
        )  # fmt: skip

    def _costs(
        self, one: Backtest, method: str, items: int, random_items: int
    ) -> tuple[float, float, float]:
        """Return the costs of the chosen items, of random sampling's, and of all."""
        full, mean = float(self.prices.sum()), float(self.prices.mean())
        if method == RANDOM or items >= self.table.n_items or np.ptp(self.prices) == 0:
            return items * mean, random_items * mean, full
        split = one.splits[0]
        sources, targets = (self.table.take(models=at) for at in (split.sources, split.targets))
        said = replay(one.method(method), sources, targets, items, child_seed(one.seed, 3, 0))
        cost = float(np.mean([self.prices[asked].sum() for asked in said.items]))
        return cost, random_items * mean, full

    def _breakeven(self, instead: float, cost: float) -> int | None:
        saved = instead - cost
        if saved <= 0:
            return None
        return math.ceil(self.n_sources * float(self.prices.sum()) / saved - 1e-9)


def _width_repeats(name: str) -> int:
    method = find_method(name)
    return WIDTH_REPEATS if method.asks_once and not method.costly else 1


def models_to_backtest(scores: Scores, seed: int) -> tuple[Scores, list[str]]:
    """Return the models to backtest on, and a note if they are not all."""
    if scores.n_models <= MOST_MODELS:
        return scores, []
    rng = np.random.default_rng(child_seed(seed, 12))
    kept = np.sort(rng.permutation(scores.n_models)[:MOST_MODELS])
    note = f"the backtest uses {MOST_MODELS} of the {scores.n_models:,} models, drawn at random"
    return scores.take(models=kept), [note]


def backtests_by_relation(
    table: Scores, target: Target | None, repeats: int, seed: int, level: float, margin: float
) -> tuple[dict[Target, Backtest], list[str]]:
    """Return a backtest for each relation that the table can show, and why not for others."""
    if target is not None and target not in TARGETS:
        raise StudyError(f"unknown target {target!r}", hint=did_you_mean(str(target), TARGETS))
    found: dict[Target, Backtest] = {}
    notes = []
    for name, (settings, words) in TARGETS.items():
        if target not in (None, name):
            continue
        if settings.kind != "performance":  # of which the share of targets says how far it goes
            share = max(MOST_TARGETS, 0.05 * table.n_models) / table.n_models
            settings = replace(settings, targets=min(settings.targets, share))
        try:
            found[name] = Backtest(table, settings, repeats, seed, level, margin)
        except StudyError as error:
            if target is not None or name == "like":
                raise
            if name != "family" or "family" in table.models:
                notes.append(f"nothing is said of targets {words}: {error.message}")
    return found, notes


def _notes(
    table: Scores,
    goal: str,
    power: float,
    backtests: Mapping[Target, Backtest],
    forecasts: list[Forecast],
) -> list[str]:
    notes = []
    if all(not one.is_better for one in forecasts):
        notes.append(
            "these source models support nothing better than plain random sampling: use random, or "
            "add results of other models"
        )
    if table.n_models < FEW:
        notes.append(
            f"{table.n_models} models are few: with fewer than {FEW}, learning from them did not "
            "pay on real tables, and these errors are rough"
        )
    alpha = reliability(table)
    if alpha < RELIABLE:
        notes.append(
            f"the models hardly differ in ability (reliability {max(alpha, 0):.2f} of 1), so they "
            "do not show which items tell models apart"
        )
    for name, one in backtests.items():
        few = np.mean([len(split.targets) for split in one.splits])
        if few < FEWEST_TARGETS and table.n_models >= FEW:
            notes.append(
                f"targets {TARGETS[name][1]}: {few:.0f} targets a repeat are few (fewer than "
                f"{FEWEST_TARGETS}), and its numbers are rough"
            )
        for method, reason in one.failures.items():
            notes.append(f"targets {TARGETS[name][1]}: {method} failed somewhere: {reason}")
    if "like" in backtests:
        warning = count_twins(table, backtests["like"].splits).warning("random")
        notes += [warning] if warning else []
    if any(one.is_extrapolated for one in forecasts):
        notes.append(
            "some numbers of items are above all that were backtested; they assume that the ratio "
            "to random sampling's error stays the same"
        )
    if goal == "difference":
        notes.append(
            "to tell two models apart, the interval of their difference must exclude 0, which it "
            f"does in {power:.0%} of cases; errors of differences between backtested targets that "
            "are close in score are taken to be normal, and both models to be estimated alike"
        )
    held = forecasts[0].n_targets / (forecasts[0].n_targets + forecasts[0].n_sources)
    notes.append(
        f"the backtest holds out {held:.0%} of the models, so a real run learns from more sources"
    )
    return notes


def _scaled(one: Forecast, span: float) -> Forecast:
    """Return a forecast with errors on the scores' own scale."""
    names = ("error", "error_low", "error_high", "half_width", "random_error", "margin")
    values = asdict(one)
    own = {name: values[name] * span for name in names if values[name] is not None}
    return Forecast(**(values | own))


def _scaled_curves(rows: list[dict[str, Any]], span: float) -> pd.DataFrame:
    columns = ["target", "method", "items", "error", "error_low", "error_high", "random_error"]
    made = pd.DataFrame(rows, columns=columns)
    made[columns[3:]] *= span
    return made
