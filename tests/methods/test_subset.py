import pytest

from fewbench.errors import MethodError
from fewbench.methods import Provenance, Subset

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
