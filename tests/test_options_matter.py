"""Each option of a function changes its result, beyond the place where the result repeats it."""

import inspect
import warnings
from dataclasses import replace
from functools import cache

import pytest

import fewbench
from fewbench.study.splits import SplitSettings
from fewbench.testing import simulate, simulate_run

SCORES = simulate(30, 60, 3, seed=1, options=3)
HOW = {
    "workers",
    "executor",
    "cache",
    "progress",
    "on_step",
    "on_first",
    "scores",
    "facts",
    "warn",
    "ask",
    "history",  # of saved evaluations: tests/decide/test_rank.py
    "keep",  # an earlier pack: tests/test_keeper.py
} | {"metrics"}
"""Options that change how a result is made, printed or asked for, and not what it is."""
REPEATED = {"level", "margin", "sequential"}
"""Options that results repeat."""
TIMES = {"seconds_fit", "seconds_predict"}
"""What differs in any case."""
GOALS = {"error", "half_width", "difference", "cost"}
"""Of a plan, in place of a budget."""
DIFFERENCE = {"difference": 0.3, "budget": None}
"""A plan for which the options of differences matter."""
A, B, C = SCORES.model_ids[26:29]
FEW = SCORES.take(models=range(16), items=range(30))
FEW = replace(FEW, items=FEW.items.assign(cost=1.5))


def answered(sources, targets):
    """An evaluation of models that ran 20 random items."""
    made = fewbench.Evaluation(sources, "random", 20, targets.model_ids)
    for row, (name, items) in enumerate(made.ask().items()):
        answers = targets.values[row, targets.positions(items)].tolist()
        made.tell(name, dict(zip(items, answers, strict=True)))
    return made


@pytest.fixture(scope="module")
def evaluation():
    return answered(SCORES.take(models=range(26)), SCORES.take(models=[26, 27, 28]))


@cache
def course():
    table = simulate_run(4, 60, n_models=20, seed=1)
    return answered(table.take(models=range(20)), table.take(models=range(20, 24)))


# Of each function: what it is called with, and what else it is called with to try each option.
CALLS = {
    "versus": (
        lambda of: {"a": (of, A), "b": (of, B), "next_items": 9},
        {"level": 0.5, "margin": 0.3, "adjust": "bh", "sequential": True, "next_items": 3}
        | {"fixed_items": True},
    ),
    "gate": (
        lambda of: {"target": (of, A), "not_below": (of, B), "margin": 0.0, "next_items": None},
        {"at_least": 0.5, "not_below": (lambda of: (of, C)), "margin": 0.2, "level": 0.5}
        | {"sequential": True, "fixed_items": True, "looks": 8},
    ),
    "rank": (
        lambda of: {"evaluations": of, "next_items": 9},
        {"models": ["model-00"], "top": 2, "level": 0.3, "sequential": True, "next_items": 3}
        | {"tasks": True, "all_models": True}
        | {"fixed_items": True},
    ),
    "track": (
        lambda of: {"checkpoints": course()},
        {"run": "other", "level": 0.5, "half_width": 0.05, "change": 0.05}
        | {"fixed_items": True}
        | {"steps": {f"run/step-{n}000": 7.0 * n for n in range(1, 5)}},
    ),
    "select_items": (
        lambda of: {"scores": SCORES, "method": "greedy-ridge", "budget": 5},
        {"method": "random", "budget": 6, "seed": 1},
    ),
    "pack": (
        lambda of: {"scores": SCORES, "method": "random", "budget": 5, "repeats": 3},
        {"name": "x", "license": "MIT", "cite": "y", "anonymous": True, "seed": 1, "budget": 6}
        | {"by": "n_options", "backtest": False, "repeats": 4, "method": "stratified+mean"},
    ),
    "compare": (
        lambda of: {"scores": FEW, "methods": ["random"], "budgets": [5], "repeats": 3},
        {"methods": ["random-linear"], "budgets": [6], "repeats": 4, "seed": 1, "level": 0.5}
        | {"sources": [8], "split": SplitSettings("performance")},
    ),
    "plan": (
        lambda of: {"scores": FEW, "budget": 10, "methods": ["random"], "repeats": 3},
        {"methods": ["random-ridge"], "repeats": 4, "seed": 1, "level": 0.5, "price": 2.0}
        | {"budget": 12, "costs": dict.fromkeys(FEW.item_ids, 3.0), "expect": "family"}
        | {"error": 0.2, "half_width": 0.2, "difference": 0.3, "power": 0.5, "cost": 9.0}
        | {"fixed_items": True},
    ),
}


def without(names, value):
    """Return plain values without those of some names."""
    if isinstance(value, dict):
        return {key: without(names, part) for key, part in value.items() if key not in names}
    return [without(names, part) for part in value] if isinstance(value, list) else value


def result(function, words):
    words = dict(words)
    several = words.pop("evaluations", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = getattr(fewbench, function)(*([several] if several else []), **words)
    return made.to_dict() if hasattr(made, "to_dict") else dict(made)


@pytest.fixture(scope="module")
def plain(evaluation):
    """What a function returns without an option, made once; of a plan, for either goal."""

    @cache
    def made(function, of_difference):
        words = CALLS[function][0](evaluation) | (DIFFERENCE if of_difference else {})
        return result(function, words)

    return made


@pytest.mark.parametrize(
    ("function", "option"),
    [(name, option) for name, (_, values) in CALLS.items() for option in values],
)
def test_an_option_changes_the_result(function, option, evaluation, plain):
    call, values = CALLS[function]
    words, value = call(evaluation), values[option]
    value = value(evaluation) if callable(value) else value
    of_difference = (function, option) in (("plan", "power"), ("plan", "fixed_items"))
    words |= DIFFERENCE if of_difference else {}
    other = {option: value} | ({"budget": None} if function == "plan" and option in GOALS else {})
    both = result(function, words | other), plain(function, of_difference)
    one, two = (without(TIMES | ({option} & REPEATED), of) for of in both)
    assert repr(one) != repr(two)


@pytest.mark.parametrize("function", CALLS)
def test_every_option_is_tried(function):
    call, values = CALLS[function]
    parameters = inspect.signature(getattr(fewbench, function)).parameters
    assert {*parameters} - {*values} - HOW == {*call(None)} - {*values} - HOW
