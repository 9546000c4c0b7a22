"""Law 1: a number is about one named set of items, and nothing stands for what nobody answered."""

import pytest
from worlds import BOTH, LATER, WORLDS, ends, unit_ends

import fewbench

OPEN = [
    world.with_(items="extended", answers="all")
    for world in WORLDS
    if world.has(sources="none") and world.features["design"] != "by hand"
]


@pytest.mark.parametrize("world", OPEN, ids=str)
def test_an_extension_that_nobody_ran_may_be_all_wrong_or_all_right(world):
    weights = world.scores.item_weights
    share = float(weights[LATER:].sum())
    for name, estimate in world.evaluation.estimate(warn=False).items():
        if len(world.answered(name, [])):  # a baseline in full
            continue
        low, *_, high = unit_ends(estimate)
        known = world.evaluation.record.answers(name)
        mean = float(known.scores[0].mean())
        assert low <= (1 - share) * mean
        assert high >= (1 - share) * mean + share
        bound = world.scores.scale.from_unit((1 - share) * mean + share / 2)
        assert fewbench.gate((world.evaluation, name), at_least=float(bound)).verdict == "undecided"


@pytest.mark.parametrize("world", OPEN, ids=str)
def test_a_side_without_answers_in_a_part_of_the_items_leaves_the_difference_open(world):
    share = float(world.scores.item_weights[LATER:].sum()) * world.scores.scale.span
    for (a, b), fixed in ((pair, fixed) for pair in world.pairs for fixed in BOTH):
        pair = fewbench.versus(world.side(a), world.side(b), fixed_items=fixed)
        low, high = ends(pair.interval)
        assert high - low >= share * (1 - 1e-9)
        assert pair.items_total == world.scores.n_items
