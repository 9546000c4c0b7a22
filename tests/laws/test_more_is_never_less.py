"""Law 2: more answers, a baseline's full run or a lower level never make an interval wider."""

import numpy as np
import pytest
from worlds import BOTH, QUICK, WORLDS, World, ends, same, width

import fewbench
from fewbench import Evaluation
from fewbench.scores import from_arrays

PLAIN = {
    "sources": "none",
    "design": "random",
    "answers": "all",
    "items": "plain",
    "scores": "right or wrong",
    "baseline": "in full",
    "targets": "near copies",
}


def of_pair(world: World, **how: object) -> float:
    """Return the width of the difference of the first target and another one, or the baseline."""
    a, b = world.pairs[-1]
    sides = world.side(a), world.side(b)
    found = fewbench.versus(*sides, scores=world.evaluation.scores, warn=False, **how)
    return width(found.interval) / world.scores.scale.span


def test_more_answers_narrow_intervals():
    ratios = []
    for world in QUICK:
        if world.has(answers="all"):
            estimates = (
                one.evaluation.estimate(warn=False) for one in (world, world.with_(answers="part"))
            )
            whole, part = (found["t0"].interval for found in estimates)
            ratios.append(width(whole) / width(part))
    assert np.mean(ratios) < 0.8


@pytest.mark.parametrize("known", ["in full", "source"])
def test_a_full_run_of_the_baseline_narrows_differences(known):
    ratios = []
    for world in QUICK:
        other = world.with_(baseline=known)
        if (
            world.features["answers"] != "every item"
            and world.features["items"] not in ("unrun", "extended")
            and not world.has(baseline="none")
            and (known == "in full" or not world.has(sources="none"))
        ):
            ratios.append(of_pair(other) / of_pair(world.with_(baseline="sampled")))
    assert len(ratios) > 5
    assert np.mean(ratios) < 0.95


@pytest.mark.parametrize("world", WORLDS[1::3], ids=str)
def test_intervals_lie_in_those_of_a_higher_level_of_more_looks_and_of_the_model(world):
    for fixed in BOTH:
        assert of_pair(world, fixed_items=fixed) <= of_pair(world, fixed_items=fixed, level=0.95)
        assert of_pair(world, fixed_items=fixed) <= of_pair(
            world, fixed_items=fixed, sequential=True
        ) * (1 + 1e-9)
    assert of_pair(world, fixed_items=True) <= of_pair(world) * (1 + 1e-9)
    for estimate in world.evaluation.estimate(warn=False).values():
        (low, high), (least, most) = ends(estimate.interval), ends(estimate.as_model)
        assert least <= low + 1e-9
        assert most >= high - 1e-9


def test_a_baseline_in_full_counts_alike_as_a_target_and_as_a_source_model():
    """Beside a random sample, its other answers count by regression."""
    world = World(PLAIN)
    table = from_arrays(
        [world.truth["base"]], models=["base"], tasks=list(world.scores.items["task"])
    )
    alone = Evaluation(table, "random", 20, ["t0"], seed=world.seed)
    alone.tell("t0", world.told("t0", alone.ask()["t0"]))
    for fixed in BOTH:
        of_target = fewbench.versus(world.side("t0"), world.side("base"), fixed_items=fixed)
        of_source = fewbench.versus((alone, "t0"), "base", fixed_items=fixed, warn=False)
        assert of_target.difference == same(of_source.difference)
        assert ends(of_target.interval) == same(ends(of_source.interval))
