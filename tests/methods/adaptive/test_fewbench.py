"""The settings of fewbench's own method."""

from dataclasses import replace

import pandas as pd
import pytest

from fewbench.errors import ScoresError
from fewbench.methods import find_method
from fewbench.testing import simulate


@pytest.mark.parametrize("wrong", ["dear", 0.0, float("nan")])
def test_an_item_without_a_cost_is_named(wrong):
    table = simulate(30, 40, seed=0)
    name = table.item_ids[39]
    costs = pd.Series([1.0] * 39 + [wrong], index=table.items.index, dtype=object)
    priced = replace(table, items=table.items.assign(price=costs))
    with pytest.raises(ScoresError, match=f"1 item without a cost above 0 in .*{name}"):
        find_method("fewbench(cost=price)").start(priced, 5, 0, ["new"])
    with pytest.raises(ScoresError, match="'prize'"):
        find_method("optimal-design(cost=prize)+kriging").start(priced, 5, 0, ["new"])
