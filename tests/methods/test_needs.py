"""What methods say that they need, and that they mean it."""

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.methods import CATALOGUE, find_method
from fewbench.methods.needs import needs_of
from fewbench.methods.parts import STAGES
from fewbench.testing import simulate
from fewbench.uncertainty.replay import replay


@pytest.mark.parametrize("name", CATALOGUE)
def test_needs_are_said_in_words(name):
    for need in needs_of(CATALOGUE[name].method):
        assert need.least >= 1
        assert 10 < len(need.without) < 80
        assert need.without[0] != " "


@pytest.mark.parametrize("text", [*CATALOGUE, "random+answers+knn(k=3)", "random+answers+knn(k=5)"])
def test_a_method_refuses_without_what_is_required_and_not_else(text):
    table = simulate(8, 30, seed=1)
    target = table.take(models=[7])
    method = find_method(text)
    least = max((need.least for need in needs_of(method) if need.required), default=1)
    replay(method, table.take(models=np.arange(least)), target, 5, 0)
    if least > 1:
        with pytest.raises(MethodError):
            replay(method, table.take(models=np.arange(least - 1)), target, 5, 0)


def test_needs_of_parts_reach_the_method():
    what = {need.what for need in needs_of(find_method("pds+pca+knn(k=4)"))}
    assert what == {"sources", "independent sources", "probabilities"}
    assert needs_of(object()) == ()
    twice = find_method("medoids+answers+ridge")
    assert len(set(needs_of(twice))) == len(needs_of(twice))


def test_needs_are_no_settings():
    """A class attribute must not become a setting of the command line."""
    from dataclasses import fields

    for parts in (STAGES["selector"], STAGES["features"], STAGES["reduction"], STAGES["regressor"]):
        for part in parts.values():
            assert "needs" not in [setting.name for setting in fields(part)]
