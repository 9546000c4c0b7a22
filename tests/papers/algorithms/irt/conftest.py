"""Answers whose truth is known."""

from dataclasses import dataclass

import numpy as np
import pytest

from fewbench_papers.algorithms.irt import IrtAbilities, ItemResponse


@dataclass(frozen=True)
class Truth:
    ability: np.ndarray
    a: np.ndarray
    b: np.ndarray
    chance: np.ndarray
    values: np.ndarray

    @property
    def model(self):
        """The model of the truth itself."""
        n, d = self.ability.shape
        sources = IrtAbilities(self.ability, np.zeros((n, d, d)))
        return ItemResponse(self.a, self.b, sources)


def _simulated(seed, models, items, dimensions=1, missing=0.0):
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(models, dimensions))
    a = rng.lognormal(0.0, 0.4, size=(items, dimensions))
    if dimensions > 1:  # some of each sign, so that abilities are apart
        a *= rng.choice([-0.4, 1.0], size=a.shape)
    b = rng.normal(size=items)
    chance = 1 / (1 + np.exp(-(ability @ a.T + b)))
    values = (rng.random(chance.shape) < chance).astype(float)
    values[rng.random(values.shape) < missing] = np.nan
    return Truth(ability, a, b, chance, values)


@pytest.fixture
def simulated():
    """A function: seed, models, items, dimensions, share of missing cells → truth."""
    return _simulated
