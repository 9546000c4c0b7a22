"""How far the full score of a model may be off that lacks whole tasks.

A missing task is predicted from the others (`Scores.filled`). How well that works is measured: the
same tasks are hidden from each model that has them, one after another, and predicted alike. With
few such models, the score is open between the least and the most that any of them has there.
"""

from weakref import WeakKeyDictionary

import numpy as np

from fewbench._blocks import blocks
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.methods.sources import source_groups
from fewbench.scores import Scores
from fewbench.scores.table import MOST_MISSING

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


def _shares_run(scores: Scores) -> FloatArray:
    """Return the share of each task's items that each model ran, shape (models, tasks)."""
    n_tasks, shares = len(scores.tasks), np.ones((scores.n_models, len(scores.tasks)))
    if not scores.has_missing:
        return shares
    is_of_task = np.eye(n_tasks)[scores.task_of]
    of_models = [scores.is_run[part] @ is_of_task for part in blocks(len(scores), scores.n_items)]
    return np.asarray(np.concatenate(of_models) / is_of_task.sum(axis=0))


def _variances(scores: Scores) -> FloatArray:
    shares, found = _shares_run(scores), np.zeros(scores.n_models)
    lacks = shares == 0
    for pattern in np.unique(lacks[lacks.any(axis=1)], axis=0):
        rows = np.flatnonzero((lacks == pattern).all(axis=1))
        in_block = pattern[scores.task_of]
        weights = scores.item_weights[in_block]
        enough = (shares[:, pattern] >= 1 - MOST_MISSING).all(axis=1)
        having = np.flatnonzero(enough & (shares[:, ~pattern] > 0).any(axis=1))
        errors, there = _hidden(scores, having, in_block, weights)
        groups, of_group = np.unique(source_groups(scores)[having], return_inverse=True)
        if (n := len(groups)) >= FEWEST:
            squares = np.bincount(of_group, errors**2) / np.bincount(of_group)
            # Student's t with n - 1 degrees of freedom has this variance.
            found[rows] = squares.mean() * (1 + 1 / n) * (n - 1) / (n - 3)
            continue
        least, most = (there.min(), there.max()) if n > 1 else (0.0, float(weights.sum()))
        guessed = scores.filled_cells[rows][:, in_block] @ weights
        reach = np.maximum(guessed - least, most - guessed)
        found[rows] = (reach / WITHIN) ** 2
    return found


def _hidden(
    scores: Scores, having: IntArray, in_block: BoolArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the errors of predictions for models that have a block, and their scores there.

    Both are parts of the full score, shape (having,).
    """
    cells, means = scores.cells[having], scores.filled_cells[having].mean(axis=0)
    above = np.nanmean(cells[:, ~in_block] - means[~in_block], axis=1)
    answers = cells[:, in_block]
    run = ~np.isnan(answers)
    others = np.maximum(run.sum(axis=0) - run, 1)  # an item's mean without the model's own answer
    means = (np.nansum(answers, axis=0) - np.nan_to_num(answers)) / others
    guess = np.clip(means + above[:, None], 0.0, 1.0)
    scale = weights.sum() / np.maximum(run @ weights, 1e-12)
    errors = np.where(run, np.nan_to_num(answers) - guess, 0.0) @ weights * scale
    return errors, np.nan_to_num(answers) @ weights * scale
