"""How far the full score of a model may be off that lacks whole tasks.

A missing task is predicted from the others (`Scores.filled`). How well that works is measured: the
same tasks are hidden from each model that has them, one after another, and predicted alike. With
few such models, the score is open between the least and the most that any of them has there.
"""

from weakref import WeakKeyDictionary

import numpy as np

from fewbench._blocks import blocks
from fewbench._types import FloatArray
from fewbench.methods.sources import source_groups
from fewbench.scores import Scores
from fewbench.scores.table import MOST_MISSING
from fewbench.uncertainty.intervals import TINY

FEWEST = 10
"""Groups of models that have the tasks, from which their errors are used."""
WITHIN = 1.645
"""Standard errors within which what is open lies."""

_VARIANCES: WeakKeyDictionary[Scores, FloatArray] = WeakKeyDictionary()


def block_variances(scores: Scores) -> FloatArray:
    """Return the variance of each model's full score that missing tasks leave, shape (models,).

    0 for a model that has answers to every task.
    """
    if scores not in _VARIANCES:
        _VARIANCES[scores] = _variances(scores)
    return _VARIANCES[scores]


def _variances(scores: Scores) -> FloatArray:
    found = np.zeros(scores.n_models)
    if not scores.has_missing:
        return found
    counts, above = _by_task(scores)
    lacks, sizes = counts == 0, np.bincount(scores.task_of, minlength=len(scores.tasks))
    has_enough = counts >= (1 - MOST_MISSING) * sizes
    for pattern in np.unique(lacks[lacks.any(axis=1)], axis=0):
        rows = np.flatnonzero((lacks == pattern).all(axis=1))
        block = np.flatnonzero(pattern[scores.task_of])
        weights = scores.item_weights[block]
        outside = counts[:, ~pattern].sum(axis=1)
        having = np.flatnonzero(has_enough[:, pattern].all(axis=1) & (outside > 0))
        ability = above[having][:, ~pattern].sum(axis=1) / outside[having]
        errors, there = _hidden(scores.cells[:, block][having], ability, weights)
        groups, of_group = np.unique(source_groups(scores)[having], return_inverse=True)
        if (n := len(groups)) >= FEWEST:
            squares = np.bincount(of_group, errors**2) / np.bincount(of_group)
            # Student's t with n - 1 degrees of freedom has this variance.
            found[rows] = squares.mean() * (1 + 1 / n) * (n - 1) / (n - 3)
            continue
        least, most = (there.min(), there.max()) if n > 1 else (0.0, float(weights.sum()))
        guessed = scores.filled_cells[:, block][rows] @ weights
        reach = np.maximum(guessed - least, most - guessed)
        found[rows] = (reach / WITHIN) ** 2
    return found


def _by_task(scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return how many items of each task a model ran, and by how much it is above their means.

    Both have the shape (models, tasks); the second is a sum over items.
    """
    counts, above = np.zeros((2, scores.n_models, len(scores.tasks)))
    for items in blocks(scores.n_items, scores.n_models):
        cells, is_of_task = scores.cells[:, items], np.eye(len(scores.tasks))[scores.task_of[items]]
        run = ~np.isnan(cells)
        values = np.nan_to_num(cells)
        means = values.sum(axis=0) / np.maximum(run.sum(axis=0), 1)
        counts += run @ is_of_task
        above += np.where(run, values - means, 0.0) @ is_of_task
    return counts, above


def _hidden(
    cells: FloatArray, ability: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the errors of predictions for models that have a block, and their scores there.

    Both are parts of the full score, shape (models,); `cells` are those of the block.
    """
    run, answers = ~np.isnan(cells), np.nan_to_num(cells)
    others = np.maximum(run.sum(axis=0) - run, 1)  # an item's mean without the model's own answer
    means = (answers.sum(axis=0) - answers) / others
    guess = np.clip(means + ability[:, None], 0.0, 1.0)
    scale = weights.sum() / np.maximum(run @ weights, TINY)
    return np.where(run, answers - guess, 0.0) @ weights * scale, answers @ weights * scale
