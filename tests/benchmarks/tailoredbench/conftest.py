"""Tables on which it is known who is like whom."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.scores import from_arrays
from fewbench.study import Split
from fewbench.testing import simulate
from fewbench_papers.tailoredbench.tailored import Tailored
from tailoredbench.trials import open_trial


def planted(n_families=3, size=24, n_items=150, seed=0, skill=None, own=3.0):
    """Families that find different items easy; members differ by chance only.

    `skill` is the families' ability on all items, `own` how much their likings differ.
    """
    rng = np.random.default_rng(seed)
    liking = own * rng.normal(size=(n_families, n_items))
    skill = np.zeros(n_families) if skill is None else np.asarray(skill)
    family = np.arange(n_families * size) % n_families
    chance = 1 / (1 + np.exp(-(liking + skill[:, None])))[family]
    right = (rng.random(chance.shape) < chance).astype(float)
    return from_arrays(
        right,
        models=[f"m{m}" for m in range(len(family))],
        families=[f"f{f}" for f in family],
    )


def halves(scores):
    """Families are of three: sources and targets in turns of three."""
    rows = np.arange(scores.n_models)
    odd = rows // 3 % 2 == 1
    return Split(rows[~odd], rows[odd])


@pytest.fixture
def families():
    scores = planted()
    return open_trial(scores, halves(scores), Tailored(), 20, 0)


@pytest.fixture
def plain():
    scores = simulate(50, 150, seed=3)
    return open_trial(scores, Split(np.arange(30), np.arange(30, 50)), Tailored(), 20, 0)


def without(scores, column):
    return replace(scores, models=scores.models.drop(columns=column))
