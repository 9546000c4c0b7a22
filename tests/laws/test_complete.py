"""Law 7: all items are exact for these items, and never certain of the model."""

import pytest
from worlds import WORLDS, ends, same, width

import fewbench

COMPLETE = [
    world
    for world in WORLDS[::2]
    if world.has(answers="every item") or world.has(baseline="in full") or world.known
]


@pytest.mark.parametrize("world", COMPLETE, ids=str)
def test_all_items_are_exact_and_not_certain(world):
    estimates, scale = world.evaluation.estimate(warn=False), world.scores.scale
    truth = {
        name: float(scale.from_unit(row @ world.scores.item_weights))
        for name, row in world.truth.items()
    }
    for name, estimate in estimates.items():
        if estimate.items_run == estimate.items_total:
            assert (estimate.score, *ends(estimate.interval)) == same([truth[name]] * 3)
            assert width(estimate.as_model) > 0.01 * scale.span
    for fixed in (True, False):
        found = fewbench.rank(world.evaluation, models=world.known, fixed_items=fixed)
        for place in found.targets:
            if place.items_run == world.scores.n_items:
                assert place.score == same(truth[place.target])
                assert (width(place.interval) < 1e-9) == fixed
    if world.has(answers="every item"):
        pair = fewbench.versus(world.side("t0"), world.side("t1"), fixed_items=True)
        assert ends(pair.interval) == same([truth["t0"] - truth["t1"]] * 2)
        assert width(fewbench.versus(world.side("t0"), world.side("t1")).interval) > 0
