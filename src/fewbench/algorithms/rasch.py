"""Difficulties of items from any cells of a table: the Rasch model with a prior by task.

P(model s is right on item j) = 1 / (1 + exp(-(ability_s + easiness_j))) (Rasch 1960,
"Probabilistic Models for Some Intelligence and Attainment Tests"). An item's easiness has a normal
prior around its task's, whose variance is learned from the table (empirical Bayes). So an item that
one model or none has answered gets its task's easiness, and its curve is flat because little is
known of it.
"""

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.abilities import NODES, Abilities
from fewbench.algorithms.item_curves import ItemCurves, logistic

ROUNDS, STEPS = 15, 3
MOST_STEP = 2.0
VARIANCE, COUNTS_AS = 2.0, 20.0
"""Variance of the items' easiness within a task before any is known, and how many items it counts
as: that of ten benchmarks of right and wrong answers is 1 to 4."""
BETWEEN = 0.5
"""Variance of the tasks' easiness, where there are too few to tell."""
LEAST_TASKS = 4
LEAST = 0.05
REACH = 8.0
"""How far the grid of abilities reaches below and above the models' mean."""


def fit_rasch(
    models: IntArray, items: IntArray, answers: FloatArray, n_models: int, task_of: IntArray
) -> Abilities:
    """Fit abilities and easiness by penalized maximum likelihood, and return the curves.

    Parameters
    ----------
    models, items : ndarray of int, shape (cells,)
        Who answered what.
    answers : ndarray, shape (cells,)
        In [0, 1]; fractions count as shares of right answers.
    n_models : int
        0 gives the same curve to every item.
    task_of : ndarray of int, shape (items,)
        Each item's task.

    Examples
    --------
    >>> curves = fit_rasch(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1.0, 0.0, 1.0]), 2,
    ...     np.zeros(3, dtype=int)).curves
    >>> curves.intercept.round(1).tolist()
    [0.8, -0.8, 0.0]
    """
    n_items, n_tasks = len(task_of), int(task_of.max()) + 1
    sizes = np.bincount(task_of, minlength=n_tasks)
    easiness, of_task = np.zeros(n_items), np.zeros(n_tasks)
    within, between, among = VARIANCE, BETWEEN, 1.0
    share = (np.bincount(models, answers, n_models) + 0.5) / (
        np.bincount(models, minlength=n_models) + 1
    )
    ability = np.log(share / (1 - share))
    centre = float(ability.mean()) if n_models else 0.0
    variance = np.full(n_items, within)
    for _ in range(ROUNDS if n_models else 0):
        for _ in range(STEPS):
            chance = logistic(ability[models] + easiness[items])
            slope = (
                np.bincount(items, answers - chance, n_items)
                - (easiness - of_task[task_of]) / within
            )
            bend = np.bincount(items, chance * (1 - chance), n_items) + 1 / within
            easiness += np.clip(slope / bend, -MOST_STEP, MOST_STEP)
        chance = logistic(ability[models] + easiness[items])
        variance = 1 / (np.bincount(items, chance * (1 - chance), n_items) + 1 / within)
        if n_tasks > 1:
            precision = sizes / within + 1 / between
            of_task = np.bincount(task_of, easiness, n_tasks) / within / precision
            if n_tasks >= LEAST_TASKS:
                between = max(float((of_task**2 + 1 / precision).mean()), LEAST)
        squares = (easiness - of_task[task_of]) ** 2 + variance
        within = (float(squares.sum()) + COUNTS_AS * VARIANCE) / (n_items + COUNTS_AS)
        for _ in range(STEPS):
            chance = logistic(ability[models] + easiness[items])
            pull = (ability - centre) / among
            slope = np.bincount(models, answers - chance, n_models) - pull
            bend = np.bincount(models, chance * (1 - chance), n_models) + 1 / among
            ability += np.clip(slope / bend, -MOST_STEP, MOST_STEP)
        centre = float(ability.mean())
        among = max(float(((ability - centre) ** 2 + 1 / bend).mean()), LEAST)
    nothing = np.zeros(n_items)
    curves = ItemCurves(easiness, np.ones(n_items), np.stack([variance, nothing, nothing]))
    grid = np.linspace(centre - REACH, centre + REACH, NODES)
    return Abilities(ability, curves, grid, curves.expected(grid))
