"""How many abilities: as many as best predict cells that were held out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.irt.fit import fit_irt

FloatArray = NDArray[np.float64]
DIMENSIONS = (1, 2, 5, 10, 15)
MOST_ITEMS = 1000
HELD_OUT = 0.1
STEPS = 30  # more change the likelihood of held-out cells in the fourth digit


def choose_dimensions(
    values: FloatArray,
    rng: np.random.Generator,
    candidates: Sequence[int] = DIMENSIONS,
) -> int:
    """Return the number of abilities whose model gives held-out cells most probability.

    A tenth of the cells is held out; of many items 1,000 are drawn. Candidates are tried in
    order until one is no better, to the third digit of the mean log likelihood, than the last.
    All are fitted in the same way, the one that serves for any number of abilities.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        In [0, 1], NaN where a model was not run.
    rng : Generator
    candidates : sequence of int
        Ascending. Those that are not below the number of models, or of items, are left out.
    """
    items = np.sort(rng.permutation(values.shape[1])[:MOST_ITEMS])
    part = values[:, items]
    held = (rng.random(part.shape) < HELD_OUT) & ~np.isnan(part)
    possible = [d for d in candidates if d < min(part.shape)] or [1]
    if len(possible) == 1 or not held.any():
        return possible[0]
    truth, shown = part[held], np.where(held, np.nan, part)
    chosen, best = possible[0], -np.inf
    for dimensions in possible:
        model = fit_irt(shown, dimensions, estimation="variational", steps=STEPS)
        chance = np.clip(model.expected(model.sources.means)[held], 1e-6, 1.0 - 1e-6)
        told = truth * np.log(chance) + (1.0 - truth) * np.log(1.0 - chance)
        if (likelihood := round(float(told.mean()), 3)) <= best:
            break
        chosen, best = dimensions, likelihood
    return chosen
