"""Law 5: the best of many is not as good as it looks."""

import numpy as np
import pytest
from worlds import BOTH, WORLDS

import fewbench


@pytest.mark.parametrize("world", WORLDS[::4], ids=str)
def test_the_score_of_the_best_shrinks_and_probabilities_add_up(world):
    for fixed in BOTH:
        found = fewbench.rank(world.evaluation, models=world.known, fixed_items=fixed)
        assert sum(place.chance_best for place in found.targets) == pytest.approx(1)
        chosen, seen = (
            world.scores.scale.to_unit(x.score) for x in (found.chosen, found.targets[0])
        )
        assert chosen <= seen + 1e-9
        assert found.chosen.interval.low <= found.chosen.score <= found.chosen.interval.high


def test_the_leader_of_equal_models_is_no_better_than_the_others():
    rng, too_good, chances = np.random.default_rng(0), [], []
    for _ in range(40):
        rows = (rng.random((10, 120)) < rng.beta(2, 2, 120)).astype(float)
        found = fewbench.rank(fewbench.from_arrays(rows, models=[f"m{at}" for at in range(10)]))
        too_good.append((found.targets[0].score - 0.5, found.chosen.score - 0.5))
        chances.append(found.targets[0].chance_best)
    seen, expected = np.mean(too_good, axis=0)
    assert seen > 0.03
    assert expected < 0.4 * seen
    assert np.mean(chances) < 0.25  # each is the best in a tenth
