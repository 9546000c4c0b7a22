"""plan: which method and how many items, by a backtest on the user's own table."""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fewbench._names import counted, did_you_mean
from fewbench._seeds import child_seed
from fewbench._types import FloatArray
from fewbench._version import __version__
from fewbench.errors import FewbenchError, StudyError
from fewbench.evaluation.auto import RANDOM, candidates
from fewbench.evaluation.errors import MOST_JUDGED, HeldOut, measure
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
from fewbench.study.goal import read_goal
from fewbench.study.inference import FEWEST_REPEATS, FEWEST_TARGETS, Figure
from fewbench.study.learning_curve import LearningCurve, learning_curve
from fewbench.study.splits import count_twins

MOST_MODELS = 240
"""Models that a backtest uses; more are drawn from at random."""
MOST_TARGETS = 15
"""Targets of a repeat: more repeats say more than more targets."""
CHOOSING = 3
"""Repeats by which a method is chosen. Others say what to expect of it."""
FEW_JUDGED = 24
"""Held-out models on which the intervals of the first answer rest."""
AHEAD = 5
"""A method is chosen at a fifth of the items that are needed, or more."""

Seen = Callable[[Plan], None]
Held = dict[int, dict[str, HeldOut | None]]


@dataclass(frozen=True)
class Found:
    """A method for one regime, and how many items it needs.

    Attributes
    ----------
    chosen : Chosen
    able : list of str
        The methods that can run.
    tried : list of str
        Those to judge further: all where none is clearly better than random sampling.
    ladder : list of int
        The budgets that were run.
    items : int
    near : int
        What the first of those to judge needs.
    """

    chosen: Chosen
    able: list[str]
    tried: list[str]
    ladder: list[int]
    items: int
    near: int


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
    repeats: int = 8,
    seed: int = 0,
    jobs: int = 1,
    executor: Executor = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    on_first: Seen | None = None,
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
        estimated difference, as `versus` has it, excludes 0. Errors of differences are taken to be
        normal, with a variance that is known only as well as the backtest shows it.
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
        For `difference`: mean share of such pairs that are to be told apart.
    repeats : int
        Divisions of the models by which the chosen methods are judged; at least 3. The methods are
        chosen by 3 others before.
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
    on_first : callable, optional
        Called with a first plan, from the few repeats by which methods are chosen.

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
    margin = wanted / span if goal == "difference" else 0.0
    choosing, judging = (
        backtests_by_relation(table, target, of, seed, level, margin, MOST_TARGETS)
        for of in (range(CHOOSING), range(CHOOSING, CHOOSING + repeats))
    )
    facts = {
        "models": str(scores.n_models),
        "items": str(scores.n_items),
        "splits": "; ".join(one.settings.describe() for one in judging[0].values()),
        "repeats": f"{repeats}, and {CHOOSING} to choose by",
        "seed": str(seed),
        "fingerprint": scores.fingerprint,
        "version": __version__,
    }

    def made(
        backtests: Mapping[Target, Backtest], forecasts: list[Forecast],
        curves: list[dict[str, Any]], learning: LearningCurve | None = None,
    ) -> Plan:  # fmt: skip
        said = [*notes, *judging[1], *_notes(table, goal, power, backtests, forecasts)]
        return Plan(
            goal, wanted, level, power, tuple(_scaled(one, span) for one in forecasts),
            _scaled_curves(curves, span), learning, tuple(said), scores.n_items, scores.n_models,
            span, facts,
        )  # fmt: skip

    store = Cache(cache)
    with open_pool(executor, jobs) as pool:
        planner = _Planner(
            table, goal, wanted if goal == "budget" else wanted / span, level, power, methods,
            prices, scores.n_models, seed, pool, store, progress,
        )  # fmt: skip
        first = planner.choose(choosing[0])
        if on_first is not None:
            forecasts = planner.first(choosing[0], first)
            on_first(made(choosing[0], forecasts, planner.rows(choosing[0])))
        forecasts, learning = planner.judge(judging[0], first)
    for name, one in choosing[0].items():
        judging[0][name].failures |= one.failures
    rows = planner.rows(judging[0])
    known = {(row["target"], row["method"], row["items"]) for row in rows}
    rows += [
        row for row in planner.rows(choosing[0])
        if (row["target"], row["method"], row["items"]) not in known
    ]  # fmt: skip
    return made(judging[0], forecasts, rows, learning)


class _Planner:
    """Runs the backtests of a plan."""

    def __init__(
        self, table: Scores, goal: str, wanted: float, level: float, power: float,
        methods: str | Sequence[str] | None, prices: FloatArray, n_sources: int, seed: int,
        pool: Pool, cache: Cache, progress: Progress | None,
    ) -> None:  # fmt: skip
        self.table, self.goal, self.wanted, self.level = table, goal, wanted, level
        self.power, self.seed = power, seed
        self.methods = [methods] if isinstance(methods, str) else methods
        self.prices, self.n_sources = prices, n_sources
        self.pool, self.cache, self._progress = pool, cache, progress
        self._done = 0
        self.measure: Measure = "difference" if goal == "difference" else "error"
        self.by_width = goal in ("half_width", "difference")

    # What is run

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

    def _held(self, names: Iterable[str], budgets: Iterable[int], most: int = MOST_JUDGED) -> Held:
        """Return the errors on which intervals rest, by budget and method.

        They are measured once, on all models, as those of a run with all of them.
        """
        every = sorted(set(budgets))
        return {n: {name: self._errors(name, n, every, most) for name in names} for n in every}

    def _errors(self, name: str, n: int, every: Sequence[int], most: int) -> HeldOut | None:
        method, looks = find_method(name), [n]
        if method.extends:
            n, looks = every[-1], list(every)
        try:
            return measure(method, self.table, n, self.seed, looks, most=most, pool=self.pool)
        except FewbenchError:  # its cells say why
            return None

    def _cells(
        self, one: Backtest, names: Sequence[str], budgets: Sequence[int], held: Held,
        repeats: int | None = None,
    ) -> list[Cell]:  # fmt: skip
        return [
            cell
            for n in budgets
            for cell in one.cells(names, [n], intervals=True, held=held.get(n), repeats=repeats)
        ]

    # The first answer

    def _names(self, target: Target) -> list[str]:
        if self.methods is None:
            return list(candidates(self.table, stronger=target == "stronger"))
        for name in self.methods:
            find_method(name)  # an unknown one is named now
        return list(dict.fromkeys((*(name.strip() for name in self.methods), RANDOM)))

    def choose(self, backtests: Mapping[Target, Backtest]) -> dict[Target, Found]:
        """Choose a method for each regime, from few items to more until enough is seen."""
        names = {target: self._names(target) for target in backtests}
        ladder = self._ladder(list(backtests.values()))
        held: Held = {}
        open_ = dict(backtests)
        ran: dict[Target, list[int]] = {target: [] for target in backtests}
        for n in ladder:
            wanted = []
            if self.by_width:
                every = dict.fromkeys(name for target in open_ for name in names[target])
                held = self._held(every, [n], FEW_JUDGED)
            for target, one in open_.items():
                ran[target].append(n)
                cells = (
                    self._cells(one, names[target], [n], held)
                    if self.by_width
                    else (one.cells(names[target], [n]))
                )
                wanted.append((one, cells))
            self.run(wanted)
            for target, one in list(open_.items()):
                needed = self._first_needed(one, names[target], ran[target])
                if len(ran[target]) > 1 and needed <= AHEAD * n:
                    del open_[target]
        return {t: self._found(one, names[t], ran[t]) for t, one in backtests.items()}

    def _ladder(self, backtests: Sequence[Backtest]) -> list[int]:
        if self.goal == "budget":
            return sorted({max(1, int(self.wanted) // 2), int(self.wanted)})
        needs = max(self._random_needs(one) for one in backtests)
        return backtests[0].ladder(needs)

    def _random_needs(self, one: Backtest) -> int:
        if self.goal == "half_width":
            return one.random_needs("half_width", self.wanted)
        return self.needed(one, RANDOM, [1])

    def _first_needed(self, one: Backtest, names: Sequence[str], ladder: Sequence[int]) -> int:
        ran = [name for name in names if one.curve(name, "error", ladder) is not None]
        return self.needed(one, ran[0], ladder) if ran else self.table.n_items

    def needed(self, one: Backtest, name: str, ladder: Sequence[int]) -> int:
        """Return the number of items that a method needs for the goal."""
        if self.goal == "budget":
            return int(self.wanted)
        if self.goal == "difference":
            return one.told(name, self.wanted, self.power, ladder)
        if name == RANDOM and self.goal == "error":
            return one.random_needs("error", self.wanted)
        curve = one.curve(name, "half_width" if self.goal == "half_width" else "error", ladder)
        return self.table.n_items if curve is None else curve.needed(self.wanted)

    def _found(self, one: Backtest, names: Sequence[str], ladder: list[int]) -> Found:
        at = self._first_needed(one, names, ladder)
        able = [n for n in names if n != RANDOM and one.curve(n, "error", ladder) is not None]
        return self._settled(one, one.choose(names, at, self.measure, ladder), able, ladder)

    def _settled(self, one: Backtest, chosen: Chosen, able: list[str], ladder: list[int]) -> Found:
        """Return what is found of a method, or of random sampling where that needs no more."""
        if self.goal == "half_width" and chosen.method != RANDOM:
            ours, plain = (self.needed(one, name, ladder) for name in (chosen.method, RANDOM))
            if ours >= plain:
                reason = f"{chosen.method} errs less, but its intervals are not narrower"
                chosen = Chosen(RANDOM, reason, False)
        items = self.needed(one, chosen.method, ladder)
        tried = able if chosen.method == RANDOM else [chosen.method]
        near = self.needed(one, tried[0], ladder) if tried else items
        return Found(chosen, able, tried, ladder, items, near)

    def first(
        self, backtests: Mapping[Target, Backtest], found: Mapping[Target, Found]
    ) -> list[Forecast]:
        """Return a forecast for each regime, by the repeats that chose."""
        if not self.by_width:
            items = {own.items for own in found.values() if own.items < self.table.n_items}
            held = self._held({own.chosen.method for own in found.values()}, items, FEW_JUDGED)
            self.run(
                [
                    (one, self._cells(one, [found[t].chosen.method], [n], held, repeats=1))
                    for t, one in backtests.items()
                    if (n := found[t].items) < self.table.n_items
                ]
            )
        return [self._forecast(t, one, found[t]) for t, one in backtests.items()]

    # The answer

    def _around(self, one: Backtest, found: Found) -> list[int]:
        return one.around(found.near, int(self.wanted) if self.goal == "budget" else 1)

    def judge(
        self, judging: Mapping[Target, Backtest], found: Mapping[Target, Found]
    ) -> tuple[list[Forecast], LearningCurve | None]:
        """Return a forecast for each regime, by repeats that did not choose, and more sources."""
        ladders = {t: self._around(one, found[t]) for t, one in judging.items()}
        tried = {t: own.tried for t, own in found.items()}
        chosen = dict[Target, Chosen]()
        for _ in range(2):  # a method that turns out no better than random is not the last word
            self._run_around(judging, tried, ladders, always=False)
            for t, names in tried.items():
                chosen[t] = judging[t].choose(names, found[t].near, self.measure, ladders[t])
            tried = {
                t: found[t].able
                for t, names in tried.items()
                if chosen[t].method == RANDOM and len(found[t].able) > len(names)
            }
        self._run_around(judging, {t: [one.method] for t, one in chosen.items()}, ladders)
        made = {
            # What chose it says why before others.
            t: self._settled(
                one,
                found[t].chosen if chosen[t].method == found[t].chosen.method else chosen[t],
                found[t].able,
                ladders[t],
            )
            for t, one in judging.items()
        }
        forecasts = [self._forecast(t, one, made[t]) for t, one in judging.items()]
        learning, first = None, forecasts[0]
        if first.method != RANDOM and first.items < self.table.n_items:
            learning = learning_curve(judging[first.target], first.method, first.items, self.run)
        return forecasts, learning

    def _run_around(
        self, judging: Mapping[Target, Backtest], names: Mapping[Target, list[str]],
        ladders: Mapping[Target, list[int]], *, always: bool = True,
    ) -> None:  # fmt: skip
        """Run methods of each regime; several of one without intervals, unless `always`."""
        wide = {t for t, own in names.items() if always or self.by_width or len(own) == 1}
        every = dict.fromkeys(name for t in wide for name in names[t])
        held = self._held(every, [n for t in wide for n in ladders[t]])
        cells = []
        for t, own in names.items():
            one = judging[t]
            if t in wide:
                cells.append(
                    (one, self._cells(one, [*dict.fromkeys((*own, RANDOM))], ladders[t], held))
                )
            else:
                cells.append((one, one.cells(own, ladders[t])))
        self.run(cells)

    def rows(self, backtests: Mapping[Target, Backtest]) -> list[dict[str, Any]]:
        """Return all that was measured of the error."""
        return [{"target": t} | row for t, one in backtests.items() for row in one.rows()]

    def _forecast(self, target: Target, one: Backtest, found: Found) -> Forecast:
        chosen, ladder, items = found.chosen, found.ladder, found.items
        method = chosen.method
        ends: list[int | None] = [None, None]
        exact = one.expected(items)
        error, ratio = Figure(exact, 0.0, exact, exact), Figure(1.0, 0.0, 1.0, 1.0)
        curve = one.curve(method, "error", ladder)
        if method != RANDOM and curve is not None:
            error = curve.at(items)
            ratio = one.ratio(method, items, self.measure, ladder)
            if self.goal == "error":
                ends = [curve.needed(self.wanted, "low"), curve.needed(self.wanted, "high")]
        margin = None
        if self.goal == "difference":
            margin = one.margin_of(method, items, self.power, ladder)
        random_items = items
        if self.goal in ("half_width", "difference"):
            random_items = self.needed(one, RANDOM, ladder)
        elif method != RANDOM:
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


def models_to_backtest(scores: Scores, seed: int) -> tuple[Scores, list[str]]:
    """Return the models to backtest on, and a note if they are not all."""
    if scores.n_models <= MOST_MODELS:
        return scores, []
    rng = np.random.default_rng(child_seed(seed, 12))
    kept = np.sort(rng.permutation(scores.n_models)[:MOST_MODELS])
    note = f"the backtest uses {MOST_MODELS} of the {scores.n_models:,} models, drawn at random"
    return scores.take(models=kept), [note]


def backtests_by_relation(
    table: Scores,
    target: Target | None,
    repeats: range,
    seed: int,
    level: float,
    margin: float = 0.0,
    most: int = 2 * MOST_TARGETS,
) -> tuple[dict[Target, Backtest], list[str]]:
    """Return a backtest for each relation that the table can show, and why not for others."""
    if target is not None and target not in TARGETS:
        raise StudyError(f"unknown target {target!r}", hint=did_you_mean(str(target), TARGETS))
    found: dict[Target, Backtest] = {}
    notes = []
    for name, (settings, words) in TARGETS.items():
        if target not in (None, name):
            continue
        if settings.kind == "performance":  # of which the share of targets says how far it goes
            settings = replace(settings, most=most)
        else:
            settings = replace(settings, targets=min(settings.targets, most / table.n_models))
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
