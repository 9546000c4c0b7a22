"""Settings: of every part and method, what cannot be is said and named; too few sources, too."""

import re
from dataclasses import fields
from typing import get_args

import numpy as np
import pytest

from fewbench.errors import MethodError, MissingExtraError
from fewbench.methods import StaticMethod, find_method
from fewbench.methods.catalogue import ADAPTIVE
from fewbench.methods.parts import STAGES
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.prediction.regression import Linear, Regression
from fewbench.methods.selection.random import Random
from fewbench.methods.written import check_number
from fewbench.testing import simulate
from fewbench.uncertainty.replay import replay
from fewbench_papers.bento.within_tasks import TaskSettings, WithinTasks

NAN, INF = float("nan"), float("inf")
ODD = {float: (NAN, INF, -INF, -1.0, 0.0, 1e-300, 1e300, -1e300), int: (NAN, -1, 0, 10**300)}
CHEAP = {  # with the other settings so, that a value that will do is tried in no time
    "collaborative": {"transport": False},
}
PARTS = {**ADAPTIVE, **{name: part for parts in STAGES.values() for name, part in parts.items()}}
STAGE_OF = {name: stage for stage, parts in STAGES.items() for name in parts}


def kind_of(setting):
    """int or float, of a setting that is a number (or may be left out); else None."""
    return next((k for k in (int, float) if k in (setting.type, *get_args(setting.type))), None)


NUMBERS = {
    (name, setting.name): ODD[kind_of(setting)]
    for name, part in PARTS.items()
    for setting in fields(part)
    if kind_of(setting)
}


def method_of(name, settings):
    made = PARTS[name](**settings)
    stage = STAGE_OF.get(name)
    if stage is None:
        return made
    if stage == "tasks":
        return StaticMethod(WithinTasks(made, TaskSettings(matrix="scores")), Mean())
    if stage == "selector":
        return StaticMethod(made, Mean())
    if stage == "predictor":
        return StaticMethod(Random(), made)
    regressor = made if stage == "regressor" else Linear()
    more = {stage: made} if stage != "regressor" else {}
    return StaticMethod(Random(), Regression(regressor, **more))


@pytest.fixture(scope="module")
def tables():
    table = simulate(14, 24, seed=1, options=3)
    return table.take(models=range(12)), table.take(models=range(12, 14))


@pytest.mark.parametrize(("name", "setting"), NUMBERS)
def test_a_number_works_or_is_named(tables, name, setting):
    for value in NUMBERS[name, setting]:
        method = method_of(name, {**CHEAP.get(name, {}), setting: value})
        refused = None
        try:
            said = replay(method, *tables, 8, 0).scores
        except MissingExtraError as error:
            pytest.skip(str(error))
        except MethodError as error:
            refused = error
        if refused is None:
            assert abs(value) < INF, value  # not NaN either
            assert np.isfinite(said).all(), value
        else:
            assert re.search(rf"\b{setting}\b", str(refused)), value
            assert refused.hint, value


@pytest.mark.parametrize(
    "text",
    [
        "random+p-irt(spread={})",
        "random+gp-irt(spread={})",
        "fluid(until={})",
        "random+ridge(alpha={})",
        "fewbench(growth={})",
    ],
)
@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "NaN", "1e999"])
def test_as_text_a_number_is_finite(text, number):
    written = text.format(number)
    with pytest.raises(MethodError, match=r"\w is not a finite number") as caught:
        find_method(written)
    assert f"={number})" in str(caught.value)


def test_bounds_are_included_and_what_is_left_out_is_no_number():
    for value in (None, 1, 2.5, 3):
        check_number("x", value, 1, 3)
    check_number("x", 1e308, 1)
    for value in (0.999, 3.001, NAN, INF, -INF):
        with pytest.raises(MethodError, match=r"x is .* \(hint: use 1 to 3\)"):
            check_number("x", value, 1, 3)
    for value in (0.999, NAN, INF):
        with pytest.raises(MethodError, match=r"hint: use 1 or more, but finite"):
            check_number("x", value, 1)


REFUSED = [
    *(("collaborative", "similar_sources", 0), ("collaborative", "alpha", 1.5)),
    *(("collaborative", "rounds", 0), ("collaborative", "low_importance", 0.0)),
    *(("collaborative", "quantile", -0.1), ("collaborative", "minimum", -1)),
    *(("collaborative", "most_items", -1), ("collaborative", "prediction", "other")),
    *(("fluid", "step", 0), ("fluid", "until", 0.0), ("fluid", "until", 2.0)),
    *(("fluid", "estimate", "mean"), ("tailored", "probe", 0), ("tailored", "company", "kin")),
    *(("aipw", "alpha", -1), ("aipw", "folds", 0), ("greedy", "alpha", 0), ("greedy", "alpha", -1)),
    *(("imputation", "rank", -1), ("imputation", "steps", 0), ("completion", "rank", -1)),
    *(("best-of-random", "subsets", 0), ("ridge-search", "subsets", 0)),
    *(("informative", "subsets", 0), ("ability", "uses", "theta")),
]


@pytest.mark.parametrize(("name", "setting", "value"), REFUSED)
def test_what_is_out_of_range_or_no_word_is_refused(tables, name, setting, value):
    method = method_of(name, {**CHEAP.get(name, {}), setting: value})
    with pytest.raises(MethodError, match=setting) as caught:
        replay(method, *tables, 8, 0)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["fluid", "random+ridge"])
def test_one_source_is_too_few(tables, text):
    with pytest.raises(MethodError, match=r"2 (source models|are needed)"):
        replay(find_method(text), tables[0].take(models=[0]), tables[1], 8, 0)


@pytest.mark.parametrize(
    "text",
    ["random+ability", "best-of-random+mean", "ridge-search+mean", "informative+mean"],
)
def test_two_sources_are_too_few_to_hold_one_out(tables, text):
    with pytest.raises(MethodError, match=r"2 source.*3"):
        replay(find_method(text), tables[0].take(models=[0, 1]), tables[1], 8, 0)
