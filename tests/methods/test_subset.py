import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.methods import Provenance, Subset
from fewbench.scores import from_arrays

MADE = Provenance(
    method="random",
    settings="random+mean",
    budget=2,
    seed=0,
    fingerprint="f" * 16,
    average="micro",
    version="0.1.0",
)


@pytest.mark.parametrize("weights", [None, (0.25, 0.75), (0.0, 1e-300)])
def test_round_trip(weights):
    subset = Subset(items=("q 1", "größe"), weights=weights, provenance=MADE)
    assert "2 items chosen by random:" in repr(subset)
    first = subset.model_copy(update={"items": ("q 1",)})
    assert "1 item chosen by random, the first batch of 2:" in repr(first)
    assert Subset.from_json(subset.to_json()) == subset
    assert Subset.from_json(subset.to_json().encode()) == subset


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a subset"),
        ("[1]", "not a subset"),
        ('{"items": []}', "items"),
        ('{"items": ["a", "a"]}', "twice"),
        ('{"items": ["a"], "weights": [1, 2]}', "2 weights for 1 item"),
        ('{"items": ["a"], "weights": [-1]}', "negative"),
        ('{"items": ["a"], "weights": [0]}', "all 0"),
        ('{"items": ["a"], "weights": [NaN]}', "weights"),
        ('{"items": [1]}', "items.0"),
        ('{"items": ["a"], "extra": 1}', "extra"),
        ('{"items": ["a"], "provenance": {"method": "random"}}', "provenance"),
    ],
)
def test_what_does_not_fit_is_said(text, says):
    with pytest.raises(MethodError, match="not a subset") as caught:
        Subset.from_json(text)
    assert says in str(caught.value)


@pytest.fixture
def weighed():
    table = from_arrays(np.eye(2, 4), models=["m", "n"], items=list("abcd"))
    return table.changed(items=table.items.assign(weight=[1.0, 2.0, 3.0, 4.0]))


def test_items_of_a_sample_weigh_what_they_count_over_their_chance(weighed):
    """In the scores of now, whatever they weighed when they were drawn."""
    drawn = Subset(items=("d", "a", "b"), weights=(0.1, 0.1, 0.8), chances=(0.8, 0.4, 0.2))
    left = drawn.at([2, 0], weighed)
    assert (left.items, left.chances) == (("b", "d"), (0.2, 0.8))
    assert left.weights == pytest.approx((10 / 15, 5 / 15))  # 2 / .2 and 4 / .8


def test_weights_of_a_method_stay_in_proportion(weighed):
    chosen = Subset(items=("d", "a", "b"), weights=(0.5, 0.2, 0.3))
    left = chosen.at([2, 1], weighed, is_same_question=True)
    assert left.weights == pytest.approx((0.6, 0.4))
    with pytest.raises(MethodError):
        chosen.at([2, 1], weighed)
    assert chosen.model_copy(update={"weights": None}).at([1], weighed).weights is None
    for places in ([], [1]):  # none left, and none that counts
        with pytest.raises(MethodError):
            Subset(items=("d", "a"), weights=(1.0, 0.0)).at(places, weighed, is_same_question=True)
