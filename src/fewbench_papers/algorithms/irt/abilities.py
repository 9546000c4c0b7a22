"""Estimate one ability of many models from different items, and choose the items to run next.

Follows computerized adaptive testing (van der Linden & Pashley 2010, "Item selection and ability
estimation in adaptive testing"). Each row is computed alone to the last bit, so a model's items do
not depend on the other models.
"""

import numpy as np

from fewbench.algorithms import ties
from fewbench.support import BoolArray, FloatArray, IntArray
from fewbench_papers.algorithms.irt.model import ItemResponse

MOST_STEPS = 200
CLOSE = 1e-10


def most_likely_abilities(model: ItemResponse, items: IntArray, right: FloatArray) -> FloatArray:
    """Return the most likely abilities (MAP) under a standard normal prior, shape (models,).

    Newton's method on the slope of the log posterior, with bisection where a step leaves the
    interval that holds the maximum.

    - `model`: A model with one ability.
    - `items`, shape (models, n): Positions of the items of each model.
    - `right`, shape (models, n): 1 for right answers, else 0.

    >>> from fewbench_papers.algorithms.irt import IrtAbilities
    >>> nobody = IrtAbilities(np.zeros((0, 1)), np.zeros((0, 1, 1)))
    >>> model = ItemResponse(np.ones((2, 1)), np.zeros(2), nobody)
    >>> most_likely_abilities(model, np.array([[0, 1]]), np.array([[1.0, 1.0]])).round(3).tolist()
    [0.675]
    """
    a, b = model.discrimination[items, 0], model.intercept[items]
    theta = np.zeros(len(items))
    high = np.abs(a).sum(axis=1)  # where the prior outweighs any answers
    low = -high
    moving = np.arange(len(items))
    for _ in range(MOST_STEPS):
        slope, curve = _slope(theta[moving], a[moving], b[moving], right[moving])
        slope -= theta[moving]
        curve += 1.0
        rising = slope > 0
        low[moving[rising]] = theta[moving[rising]]
        high[moving[~rising]] = theta[moving[~rising]]
        new = theta[moving] + slope / curve
        within = (new >= low[moving]) & (new <= high[moving])
        new = np.where(within, new, 0.5 * (low[moving] + high[moving]))
        on = np.abs(new - theta[moving]) > CLOSE
        theta[moving] = new
        moving = moving[on]
        if not len(moving):
            break
    return theta


def _slope(
    theta: FloatArray, a: FloatArray, b: FloatArray, right: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the slope of the log likelihood and its Fisher information, both (models,)."""
    from scipy.special import expit

    chance = expit(theta[:, None] * a + b)
    slope = (a * (right - chance)).sum(axis=1)
    fisher = a**2 * chance * (1.0 - chance)
    return slope, fisher.sum(axis=1)


def standard_errors(model: ItemResponse, items: IntArray, abilities: FloatArray) -> FloatArray:
    """Return the standard errors of abilities, prior included, shape (models,)."""
    a, b = model.discrimination[items, 0], model.intercept[items]
    _, fisher = _slope(abilities, a, b, np.zeros(items.shape))
    return np.asarray(1.0 / np.sqrt(fisher + 1.0))


def most_informative(
    model: ItemResponse, abilities: FloatArray, run: BoolArray, n: int
) -> IntArray:
    """Return each model's n most informative items not run yet, best first, shape (models, n).

    `model` has one ability; `abilities` has shape (models,), `run` (models, items). The first of
    equal items wins. Each model must have at least n items left.
    """
    information = model.information(abilities[:, None])
    information[run] = -1.0
    if n == 1:
        return np.asarray(ties.argmax(information, axis=1)[:, None])
    return ties.argsort(-information)[:, :n]


def ability_grid(abilities: FloatArray, count: int) -> FloatArray:
    """Return `count` increasing abilities, the middles of bins with equal numbers of models.

    >>> ability_grid(np.array([0.0, 1.0, 10.0]), 2).tolist()
    [0.5, 5.5]
    """
    return np.asarray(np.quantile(abilities, (np.arange(count) + 0.5) / count))


def informative_on_a_grid(information: FloatArray) -> IntArray:
    """Return, for each ability in turn, the most informative item that is not taken yet.

    `information` has shape (abilities, items), with no more abilities than items. The first of
    items with equal information is taken.

    >>> informative_on_a_grid(np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])).tolist()
    [0, 2]
    """
    left = information.copy()
    chosen = np.empty(len(information), dtype=np.intp)
    for row, at_ability in enumerate(left):
        chosen[row] = ties.argmax(at_ability)
        left[:, chosen[row]] = -np.inf
    return chosen
