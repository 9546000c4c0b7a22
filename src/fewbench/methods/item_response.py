"""The sources' item response model, which several methods share.

Selecting by it, predicting by it and every budget of a study ask for the same fit, which takes
seconds on large tables: the last few are kept.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fewbench.algorithms.irt import (
    Abilities,
    Form,
    ItemResponse,
    best_cuts,
    binary,
    choose_dimensions,
    fit_irt,
)
from fewbench.errors import MethodError
from fewbench.methods.needs import Need
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

NEEDS = (
    Need("sources", 2, "an item response model needs two", required=True),
    Need("distinct sources", 40, "few sources to learn items' parameters from"),
)
KEPT = 4  # of a study's two workers each; a model of 14,042 items and 5 abilities takes 1 MB
_SEED = 0  # which cells are held out to choose the number of abilities


@dataclass(frozen=True, eq=False)
class SourceModel:
    """An item response model of the sources, and what makes scores right or wrong for it.

    Attributes
    ----------
    model : ItemResponse
    cuts : ndarray, shape (items,)
        Scores above are right.
    """

    model: ItemResponse
    cuts: FloatArray

    def abilities(self, items: IntArray, answers: FloatArray, spread: float = 1.0) -> Abilities:
        """Estimate abilities of targets from their scores, shape (targets, n), on these items.

        Abilities are taken for normal with mean 0 and standard deviation `spread`.
        """
        return self.model.abilities(items, binary(answers, self.cuts[items]), spread)


def source_model(scores: Scores, dimensions: int | None = None, form: Form = "2pl") -> SourceModel:
    """Fit an item response model to the sources, or return the one that was.

    Missing cells are left out of the fit. Scores between 0 and 1 are cut into right and wrong,
    task by task (see `fewbench.algorithms.irt.best_cuts`).

    Parameters
    ----------
    dimensions : int, optional
        Number of abilities; by default as many as best predict held-out cells.

    Raises
    ------
    MethodError
        If there are fewer than 2 sources, or no ability is asked for.
    """
    if scores.n_models < 2:
        raise MethodError(
            f"an item response model needs at least 2 source models, there are {scores.n_models}"
        )
    if dimensions is not None and dimensions < 1:
        raise MethodError(f"{dimensions} abilities", hint="use 1 or more, or leave it out")
    return _fitted(_Table(scores), dimensions, form)


def expectation_error(scores: Scores, dimensions: int | None = None) -> FloatArray:
    """Return how far expected scores of unseen items are off, the full score's and each task's.

    A fifth of the sources is held out; their abilities are estimated from a random half of the
    items, and the mean score of the other half is expected from that.

    Returns
    -------
    ndarray, shape (1 + tasks,)
        Mean absolute errors in [0, 1].
    """
    return _error(_Table(scores), source_model(scores, dimensions).model.dimensions)


@dataclass(frozen=True, eq=False)
class _Table:
    """Scores that are equal if their content is."""

    scores: Scores

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Table) and self.scores.equals(other.scores)

    def __hash__(self) -> int:
        return hash(self.scores.fingerprint)


@lru_cache(maxsize=KEPT)
def _fitted(table: _Table, dimensions: int | None, form: Form) -> SourceModel:
    scores = table.scores
    cuts = best_cuts(scores.values, scores.task_of)[scores.task_of]
    right = binary(scores.values, cuts)
    if dimensions is None:
        dimensions = choose_dimensions(right, np.random.default_rng(_SEED))
    return SourceModel(fit_irt(right, dimensions, form), cuts)


@lru_cache(maxsize=KEPT)
def _error(table: _Table, dimensions: int) -> FloatArray:
    scores = table.scores
    rng = np.random.default_rng(_SEED)
    order = rng.permutation(scores.n_models)
    held, kept = np.split(order, [-(-scores.n_models // 5)])
    half = rng.permutation(scores.n_items)
    seen, unseen = np.split(half, [-(-scores.n_items // 2)])
    cuts = best_cuts(scores.values[kept], scores.task_of)[scores.task_of]
    model = fit_irt(binary(scores.values[kept], cuts), dimensions)
    shown = binary(scores.values[np.ix_(held, seen)], cuts[seen])
    weights = np.column_stack([scores.item_weights, scores.task_weights])[unseen]
    expected = model.expected(model.abilities(seen, shown).means, unseen)
    off = np.abs((expected - scores.filled[np.ix_(held, unseen)]) @ weights).mean(axis=0)
    return np.asarray(off / np.maximum(weights.sum(axis=0), 1e-12))
