"""plan: which method and how many items, by a backtest on the user's own table."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from pydantic import ValidationError

from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some, split_names
from fewbench._progress import OnStep
from fewbench._seeds import child_seed
from fewbench._types import FloatArray
from fewbench._version import __version__
from fewbench.errors import StudyError
from fewbench.evaluation.opening import COST, Stop, check_budget, count_items
from fewbench.executors import Executor, open_pool
from fewbench.methods import find_method
from fewbench.methods.catalogue import FEW
from fewbench.methods.kriging import learns_from_whole
from fewbench.methods.sources import (
    LEAST_KNOWN,
    NEARLY_COMPLETE,
    RELIABLE,
    is_known,
    missing_note,
    reliability,
    source_groups,
    whole_sources,
)
from fewbench.scores import Benchmark, Scores, read_costs
from fewbench.scores.roles import as_scores, source_models
from fewbench.scores.table import NO_TASK, credit_facts
from fewbench.study.backtest import Backtest
from fewbench.study.cache import Cache
from fewbench.study.forecast import ITEMS, TARGETS, Forecast, Plan, Target
from fewbench.study.inference import FEWEST_REPEATS
from fewbench.study.learning_curve import LearningCurve
from fewbench.study.planner import Planner
from fewbench.study.repeating import repeats_advice
from fewbench.study.sample_plan import plan_sample
from fewbench.study.splits import EXTRAPOLATE, Split, count_twins
from fewbench.uncertainty.held_out import folds
from fewbench.uncertainty.sampling import check_level

MOST_MODELS = 240
"""Models that a backtest uses; more are drawn from at random."""
MOST_TARGETS = 15
"""Targets of a repeat: more repeats are more informative than more targets."""
IN_ROUNDS = 4
"""The same for methods that choose items for each target, which takes far longer. Not where a
difference is wanted: the pairs of targets that are closest in score are judged."""
CHOOSING = 3
"""Repeats by which a method is chosen. Others say what to expect of it."""


def _read_goal(
    scores: Scores, error: float | None, half_width: float | None, budget: int | None,
    difference: float | None, cost: float | None, prices: FloatArray,
) -> tuple[str, float]:  # fmt: skip
    """Return the name and the value of the one goal that is given; a cost is a budget of items."""
    goals = {"error": error, "half_width": half_width, "budget": budget, "difference": difference}
    named = {name: value for name, value in (goals | {"cost": cost}).items() if value is not None}
    if len(named) != 1:
        raise StudyError(
            f"{len(named)} goals are given: {some(named, 5)}" if named else "nothing to plan for",
            hint="give one: --error, --half-width, --budget, --cost or --difference (in Python "
            "error, half_width, budget, cost or difference)",
        )
    span = scores.scale.span
    if cost is not None:
        n_items = int(cost / prices.mean() * (1 + 1e-9))
        if not n_items:
            raise StudyError("the cost does not allow a single item", hint="give a higher --cost")
        named = {"budget": min(n_items, scores.n_items)}
    ((goal, wanted),) = named.items()
    if goal == "budget":
        if isinstance(wanted, float) and not wanted.is_integer():
            raise StudyError(f"the budget is {wanted} items", hint="give a whole number")
        check_budget(int(wanted), scores.n_items)
        if int(wanted) == scores.n_items:
            raise StudyError(
                f"a budget of all {scores.n_items:,} items needs no plan",
                hint="give a smaller budget",
            )
    elif not 0 < wanted < span:
        raise StudyError(
            f"the {goal.replace('_', ' ')} is {wanted:g}, and the scores range over {span:g}",
            hint=f"give a number between 0 and {span:g}, on the scale of the scores",
        )
    return goal, float(wanted)


def plan(
    scores: Scores | Benchmark | int,
    *,
    error: float | None = None,
    half_width: float | None = None,
    budget: int | str | None = None,
    difference: float | None = None,
    cost: float | str | None = None,
    methods: str | Sequence[str] | None = None,
    costs: Mapping[str, float] | str | None = None,
    price: float | None = None,
    expect: Target | None = None,
    level: float = 0.9,
    power: float = 0.8,
    fixed_items: bool = False,
    repeats: int = 8,
    seed: int = 0,
    workers: int = 1,
    executor: Executor = None,
    cache: str | os.PathLike[str] | None = None,
    progress: OnStep | None = None,
    on_first: Callable[[Plan], None] | None = None,
) -> Plan:
    """Plan how many items to run and with which method.

    Backtests methods on the source models: each model is estimated from the others. Gives a first
    answer, then checks the chosen methods on other held-out models. Give one of `budget`, `cost`,
    `error`, `difference` and `half_width`.

    Without source models, or with too few that ran nearly all items, the plan is for a random
    sample and says what to expect at every score.

    Parameters
    ----------
    scores : Scores, Benchmark or int
        Scores of models that ran all or some of the items, the items alone, or their number.
    error : float
        Wanted mean absolute error of an estimate, on the scale of the scores.
    half_width : float
        Wanted mean half width of an estimate's interval, on the scale of the scores.
    budget : int or str
        Number of items, or a share of each task's items, such as 10%: at least 20 of each task, or
        all of a smaller one. The plan says what error to expect.
    difference : float
        Distinguish two models that differ by this, on the scale of the scores. Two models are
        distinguished if the interval of their difference excludes 0: on questions like these and if
        they run again. Without source models, the plan assumes how often two models differ.
    cost : float or str
        Most to spend on a run. You can add a unit, as in '75 $'. The plan is for as many items as
        this buys at their mean cost.
    methods : str or sequence of str, optional
        Method names, the preferred first (default: the one that a run takes by default; for targets
        beyond the source models also a safe one).
    costs : mapping of item id to number, or str, optional
        Cost of each item, or the column of the items with the cost (default: the column cost;
        without it, every item costs 1).
    price : float, optional
        Price of a unit of the costs, such as GPU hours or dollars per item or token. Costs are
        then printed at this price.
    expect : {"like", "family", "stronger", "weaker"}, optional
        Plan only for target models of this kind: like the source models, of a new family, or
        stronger or weaker than all source models (default: all; the answer is for like).
    level : float
        Level of the intervals.
    power : float
        With `difference`: mean share of such pairs that are distinguished.
    fixed_items : bool
        With `difference`: distinguish the scores on exactly these items, and not the models.
    repeats : int
        Number of splits that judge the chosen methods, 3 or more. Three other splits choose them.
        One kind of target is judged on the parts of the sources on which a run measures errors.
    seed : int
        Random seed.
    workers : int
        Number of processes.
    executor : Executor, optional
        Where to run in place of processes of this machine, as of `compare`.
    cache : path, optional
        Where finished results are kept, as of `compare`.
    progress : callable, optional
        Called with the numbers of finished cells and of those known to come.
    on_first : callable, optional
        Called with a first plan, from the few repeats by which methods are chosen: for the first
        kind of target alone, unless there are several methods to choose from.

    Raises
    ------
    StudyError, MethodError, ScoresError
        If what is wanted, the costs or the table does not allow a plan.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(60, 200, seed=1)
    >>> made = plan(table, budget=20, expect="like", methods="greedy-ridge", repeats=3)
    >>> made.answer
    'Run 20 items with greedy-ridge: expected error ...'

    Notes
    -----
    For `difference`, errors of differences are taken to be normal, with a variance that is known
    only as well as the backtest shows it.
    """
    if isinstance(scores, int):
        scores = benchmark_of_size(scores)
    scores, set_aside = source_models(as_scores(scores))
    check_level(level)
    span = scores.scale.span
    n = count_items(budget, scores) if isinstance(budget, str) else budget
    try:
        limit = None if cost is None else Stop.model_validate({"cost": cost})
    except ValidationError:
        hint = "give a number above 0, with a unit or without, as in '75 $'"
        raise StudyError(f"the cost {cost!r} is not an amount", hint=hint) from None
    if costs is None and (limit is not None or COST in scores.items):
        costs = COST
    prices = read_costs(scores, costs) * (1.0 if price is None else price)
    unit = costs if isinstance(costs, str) else ITEMS
    priced = (price, unit, "") if limit is None else (price, limit.unit or unit, str(cost))
    spent = None if limit is None else limit.cost
    goal, wanted = _read_goal(scores, error, half_width, n, difference, spent, prices)
    if repeats < FEWEST_REPEATS or workers < 1 or seed < 0:
        raise StudyError(
            f"repeats {repeats}, workers {workers}, seed {seed} is too low",
            hint=f"repeats must be {FEWEST_REPEATS} or more, workers 1 or more, the seed 0 or more",
            kind="range",
        )
    if not 0.5 <= power < 1:
        raise StudyError(f"the power is {power:g}", hint="give a number from 0.5 to 0.99")
    if price is not None and not 0 < price < math.inf:
        raise StudyError(
            f"price {price:g} is not a price", hint="give a number above 0", kind="range"
        )
    if not learns_from_whole(scores) or scores.whole.n_models < LEAST_KNOWN:
        return plan_sample(
            scores, goal, wanted, level, power, prices, priced, fixed_items=fixed_items
        )
    known = int(is_known(scores).sum())
    if known < LEAST_KNOWN:
        why = f"{known} of {counted(scores.n_models, 'model')} ran {1 - NEARLY_COMPLETE:.0%} of "
        why += "the items or more: too few to judge methods"
        return plan_sample(
            scores, goal, wanted, level, power, prices, priced, why, fixed_items=fixed_items
        )
    of_run = scores
    scores, of_whole = whole_sources(scores, LEAST_KNOWN, "plan")
    table, notes = models_to_backtest(scores, seed)
    notes += [*set_aside, *missing_note(scores)]
    margin = wanted / span if goal == "difference" else 0.0
    names = split_names(methods) if isinstance(methods, str) else methods
    is_slow = names is None or not all(find_method(name).asks_once for name in names)
    most = IN_ROUNDS if is_slow and goal != "difference" else MOST_TARGETS
    how = (seed, level, margin, most)
    choosing, _ = backtests_by_relation(table, expect, range(CHOOSING), *how)
    draws = range(CHOOSING, CHOOSING + repeats)
    judging, unsaid = backtests_by_relation(table, expect, draws, *how, by_folds=is_slow)
    facts = {
        "models": str(scores.n_models),
        "items": str(scores.n_items),
        "splits": "; ".join(backtest.settings.describe() for backtest in judging.values()),
        "repeats": f"{repeats}, and {CHOOSING} to choose by",
        "seed": str(seed),
        "average": scores.average,
        "fingerprint": scores.fingerprint,
        "version": __version__,
    } | credit_facts(scores)

    def made(
        runs: list[dict[Target, Backtest]], curves: "pd.DataFrame", forecasts: list[Forecast],
        learning: LearningCurve | None = None,
    ) -> Plan:  # fmt: skip
        return Plan(
            goal, wanted, level, power, scores.n_items, scores.n_models,
            *priced, scores.scale, facts,
            (
                *of_whole, *notes, *unsaid, *_notes(table, goal, power, runs, forecasts),
                repeats_advice(scores),
            ),
            tuple(_scaled(forecast, span) for forecast in forecasts), curves, learning,
            fixed_items=fixed_items,
        )  # fmt: skip

    store = Cache(cache)
    with open_pool(executor, workers) as pool:
        planner = Planner(
            of_run, table, goal, wanted if goal == "budget" else wanted / span, power, names,
            prices, scores.n_models, seed, pool, store, progress, fixed_items=fixed_items,
            is_slow=is_slow,
        )  # fmt: skip
        if not planner.chooses:  # the first answer is for the first relation
            choosing = dict([next(iter(choosing.items()))])
        needs = planner.choose(choosing)
        first_curves = _curves("choosing", choosing, span)
        if on_first is not None:
            on_first(made([choosing], first_curves, planner.first(choosing, needs)))
        forecasts, learning = planner.judge(judging, needs)
    curves = pd.concat([_curves("judging", judging, span), first_curves], ignore_index=True)
    return made([judging, choosing], curves, forecasts, learning)


def benchmark_of_size(n_items: int) -> Benchmark:
    """Return a benchmark of so many items of one task, of which nothing else is known."""
    if n_items < 2:
        raise StudyError(f"a benchmark of {n_items} items", hint="give the number of its items")
    ids = pd.Index([f"item-{at}" for at in range(1, n_items + 1)], dtype=object)
    return Benchmark(pd.DataFrame({"task": NO_TASK}, index=ids))


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
    *,
    by_folds: bool = False,
) -> tuple[dict[Target, Backtest], list[str]]:
    """Return a backtest for each relation that the table can show, and why not for others.

    With `by_folds`, the parts on which a method's errors are measured imitate one relation, and
    both need one run: new families, or without families targets like the sources.
    """
    if target is not None and target not in TARGETS:
        raise StudyError(
            f"unknown target {target!r}", hint=did_you_mean(str(target), TARGETS), kind="unknown"
        )
    backtests: dict[Target, Backtest] = {}
    notes = []
    groups = source_groups(table)
    on_folds = "like" if len(np.unique(groups)) == len(groups) else "family"
    for name, (settings, words) in TARGETS.items():
        if target not in (None, name):
            continue
        if settings.kind in EXTRAPOLATE:  # of which the share of targets says how far it goes
            settings = replace(settings, most=most)
        else:
            settings = replace(settings, targets=min(settings.targets, most / table.n_models))
        try:
            backtest = Backtest(table, settings, repeats, seed, level, margin)
            if by_folds and name == on_folds:
                backtest = _on_folds(backtest)
            backtests[name] = backtest
        except StudyError as error:
            if target is not None or name == "like":
                raise
            if name != "family" or "family" in table.models:
                notes.append(f"no plan for targets {words}: {error.message}")
    return backtests, notes


def _on_folds(backtest: Backtest) -> Backtest:
    """Return a backtest on the parts of the sources on which a method's errors are measured."""
    splits = [
        Split(fold.learned, np.sort(fold.judged), fold.seed)
        for fold in folds(backtest.scores, backtest.seed)
    ]
    if len(splits) < FEWEST_REPEATS:
        return backtest
    return replace(backtest, repeats=range(len(splits)), splits=splits)


def _notes(
    table: Scores,
    goal: str,
    power: float,
    runs: Sequence[Mapping[Target, Backtest]],
    forecasts: list[Forecast],
) -> list[str]:
    notes = []
    if all(forecast.is_random for forecast in forecasts):
        notes.append(
            "these source models support nothing better than random sampling: use random, or "
            "add results of other models"
        )
    if table.n_models < FEW:
        notes.append(
            f"{table.n_models} models are few: with fewer than {FEW}, choosing items by them did "
            "not pay on real tables, and these errors are rough"
        )
    alpha = reliability(table)
    if alpha < RELIABLE:
        notes.append(
            f"the models hardly differ in ability (reliability {max(alpha, 0):.2f} of 1), so they "
            "do not show which items tell models apart"
        )
    backtests = runs[0]
    fewest = min(
        np.mean([len(split.targets) for split in backtest.splits])
        for backtest in backtests.values()
    )
    if fewest < IN_ROUNDS and table.n_models >= FEW:
        notes.append(
            f"a repeat holds out only about {fewest:.0f} models as targets: with fewer than "
            f"{IN_ROUNDS}, the numbers are rough"
        )
    for name in backtests:
        of_name = [run[name].failures for run in runs if name in run]
        for method, reason in dict(x for failures in of_name for x in failures.items()).items():
            notes.append(f"targets {TARGETS[name][1]}: {method} failed somewhere: {reason}")
    if "like" in backtests:
        warning = count_twins(table, backtests["like"].splits).warning("random")
        notes += [warning] if warning else []
    if any(forecast.is_extrapolated for forecast in forecasts):
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
    share = forecasts[0].n_targets / (forecasts[0].n_targets + forecasts[0].n_sources)
    notes.append(
        f"the backtest holds out {share:.0%} of the models, so a real run learns from more sources"
    )
    return notes


def _scaled(forecast: Forecast, span: float) -> Forecast:
    """Return a forecast with errors on the scores' own scale."""
    errors = ("error", "error_low", "error_high", "half_width", "random_error")
    names = (*errors, "margin", "margin_of_all")
    values = asdict(forecast)
    scaled = {name: values[name] * span for name in names if values[name] is not None}
    return Forecast(**(values | scaled))


def _curves(name: str, run: Mapping[Target, Backtest], span: float) -> "pd.DataFrame":
    """Return all that a backtest measured of the error."""
    curves = pd.DataFrame(
        [
            {"target": target, "backtest": name} | row
            for target, backtest in run.items()
            for row in backtest.rows()
        ],
        columns=[
            "target", "method", "backtest", "items", "error", "error_low", "error_high",
            "random_error",
        ],
    )  # fmt: skip
    curves[curves.columns[4:]] *= span
    return curves
