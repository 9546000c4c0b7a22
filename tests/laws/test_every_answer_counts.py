"""Law 4: every answer counts, and so does what was asked and not answered."""

import numpy as np
import pytest
from worlds import QUICK, WORLDS, unit_ends

from fewbench import Evaluation

SAMPLES = [
    world
    for world in QUICK
    if world.has(sources="none") and world.features["answers"] in ("all", "skipped", "part")
]


def estimate_of(world, told):
    """Return score and ends in [0, 1] of a target that answers so what the world's `t0` is asked.

    Items that are not told fail.
    """
    design = "random" if world.has(design="by hand") else world.features["design"]
    evaluation = Evaluation(world.scores, design, world.budget, seed=world.seed)
    asked = evaluation.ask()["target"]
    items = [item for item in asked if told(asked.index(item)) is not None]
    scale = world.scores.scale
    values = scale.from_unit([told(asked.index(item)) for item in items]).tolist()
    evaluation.tell("target", dict(zip(items, values, strict=True)))
    return unit_ends(evaluation.estimate(warn=False)["target"])


@pytest.mark.parametrize("world", SAMPLES, ids=str)
def test_each_answer_of_a_sample_moves_the_estimate(world):
    plain = [0.0, 1.0] * world.budget
    middle = estimate_of(world, plain.__getitem__)[2]
    for changed in (0, 6, world.budget - 2):
        better = list(plain)
        better[changed] = 1.0
        assert estimate_of(world, better.__getitem__)[2] > middle + 1e-3


@pytest.mark.parametrize("world", SAMPLES, ids=str)
def test_what_failed_counts_as_anything_from_wrong_to_right(world):
    rng = np.random.default_rng(world.seed)
    right = (rng.random(world.budget) < 0.5).astype(float).tolist()

    def failing(value):
        return estimate_of(world, lambda at: value if at % 4 == 1 else right[at])

    (least, *_, most), wrong, best = (failing(value) for value in (None, 0.0, 1.0))
    assert least <= wrong[2] + 1e-9
    assert most >= best[2] - 1e-9


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_an_estimate_lies_within_its_intervals(world):
    for estimate in world.evaluation.estimate(warn=False).values():
        for interval in (estimate.interval, estimate.as_model):
            assert interval.low - 1e-9 <= estimate.score <= interval.high + 1e-9
        for task, interval in estimate.task_intervals.items():
            if interval is not None:
                score = estimate.tasks[task]
                assert interval.low - 1e-9 <= score <= interval.high + 1e-9
