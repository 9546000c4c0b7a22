"""The sources' item response model, which several methods share.

Selection, prediction and each budget of a study request the same fit, which takes seconds on large
tables. The last few fits are kept.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fewbench.errors import MethodError
from fewbench.methods.kept_fits import kept
from fewbench.methods.needs import Need
from fewbench.scores import Scores
from fewbench.support import FloatArray, IntArray
from fewbench_papers.algorithms.irt import (
    IrtAbilities,
    ItemResponse,
    best_cuts,
    binary,
    choose_dimensions,
    fit_irt,
)

T = TypeVar("T")

NEEDS = (
    Need("sources", 2, "an item response model needs two", required=True),
    Need("independent sources", 40, "few sources to learn items' parameters from"),
)
CUT = "scores between 0 and 1 count as right or wrong where abilities are estimated"
KEPT = 8  # models and errors; a model of 14,042 items and 5 abilities has 1 MB
FIT = 1
"""Raise this number when the fit changes, so that kept models are not used."""
_ARRAYS = ("discrimination", "intercept")
_PARTS = (*_ARRAYS, "cuts")
"""What a pack keeps of a model: nothing of the sources, whom only a choice of items needs."""
_SEED = 0  # which cells are held out to choose the number of abilities


@dataclass(frozen=True, eq=False)
class SourceModel:
    """An item response model of the sources.

    A score above its item's cut (`cuts`, shape (items,)) counts as right. `notes` tell users about
    cuts of fractional scores.
    """

    model: ItemResponse
    cuts: FloatArray
    notes: tuple[str, ...] = ()

    def abilities(self, items: IntArray, answers: FloatArray, spread: float = 1.0) -> IrtAbilities:
        """Estimate abilities from scores, shape (targets, n), with prior N(0, `spread`²)."""
        return self.model.abilities(items, binary(answers, self.cuts[items]), spread)


def source_model(scores: Scores, dimensions: int | None = None) -> SourceModel:
    """Fit an item response model to the sources, or return the kept fit.

    Missing cells are left out. Fractional scores are cut into right and wrong, task by task (see
    `fewbench_papers.algorithms.irt.best_cuts`). By default, `dimensions` is the number of abilities
    that best predicts held-out cells. Raises MethodError if there are fewer than 2 sources.
    """
    if scores.n_models < 2:
        raise MethodError(
            f"an item response model needs at least 2 source models, there are {scores.n_models}"
        )

    def fit() -> SourceModel:
        key = (_digest(scores), dimensions)
        return _remembered(key, lambda: _fitted(scores, slice(None), dimensions))

    def fitted() -> SourceModel:
        name = f"item-response-{dimensions}"
        return kept(scores, name, (dimensions, FIT), SourceModel, fit)

    def learned(part: str) -> FloatArray:
        return scores.remember(f"item response {dimensions} {part}", lambda: _parts(fitted())[part])

    if scores.origin is not None:
        parts = {part: learned(part) for part in _PARTS}
        return _joined(parts, () if scores.is_binary else (CUT,))
    for part in _PARTS:
        learned(part)
    return fitted()


def expectation_error(scores: Scores, spread: float) -> FloatArray:
    """Return mean absolute errors of the expected scores of unseen items, shape (1 + tasks,).

    The first is for the full score, the others for the tasks. For a held-out fifth of the sources,
    abilities with prior N(0, `spread`²) are estimated from a random half of the items and predict
    the mean score of the other half. A task without items in that half has the full score's error.
    """
    reached = source_model(scores).model.dimensions

    def error() -> FloatArray:
        key = (_digest(scores), scores.average, reached, spread)
        return _remembered(key, lambda: _error(scores, reached, spread))

    return scores.remember(f"expectation error {reached} {spread}", error)


def _fitted(scores: Scores, at: IntArray | slice, dimensions: int | None) -> SourceModel:
    values = scores.cells[:, at] if isinstance(at, slice) else scores.columns(at)
    _, task_of = np.unique(scores.task_of[at], return_inverse=True)
    cuts = best_cuts(values, task_of)[task_of]
    right = binary(values, cuts)
    if dimensions is None:
        dimensions = choose_dimensions(right, np.random.default_rng(_SEED))
    notes = () if scores.is_binary else (CUT,)
    return SourceModel(fit_irt(right, dimensions), cuts, notes)


def _error(scores: Scores, dimensions: int, spread: float) -> FloatArray:
    rng = np.random.default_rng(_SEED)
    order = rng.permutation(scores.n_models)
    withheld, kept = np.split(order, [-(-scores.n_models // 5)])
    half = rng.permutation(scores.n_items)
    seen, unseen = np.split(half, [-(-scores.n_items // 2)])
    cuts = best_cuts(scores.values[kept], scores.task_of)[scores.task_of]
    model = fit_irt(binary(scores.values[kept], cuts), dimensions)
    shown = binary(scores.values[np.ix_(withheld, seen)], cuts[seen])
    weights = np.column_stack([scores.item_weights, scores.task_weights])[unseen]
    mass = weights.sum(axis=0)
    expected = model.expected(model.abilities(seen, shown, spread).means, unseen)
    off = np.abs((expected - scores.filled[np.ix_(withheld, unseen)]) @ weights).mean(axis=0)
    off = off / np.where(mass > 0, mass, 1.0)
    return np.asarray(np.where(mass > 0, off, off[0]))


def _digest(scores: Scores) -> str:
    """Return a hash of the scores and tasks that models are fitted to."""
    digest = hashlib.sha256(repr(scores.values.shape).encode())
    digest.update(np.nan_to_num(scores.values, nan=-1.0).tobytes() + scores.task_of.tobytes())
    return digest.hexdigest()


def _parts(source: SourceModel) -> dict[str, FloatArray]:
    """Return the arrays that a model consists of."""
    return {"cuts": source.cuts} | {name: getattr(source.model, name) for name in _ARRAYS}


def _joined(parts: Mapping[str, FloatArray], notes: tuple[str, ...]) -> SourceModel:
    discrimination, intercept = (parts[name] for name in _ARRAYS)
    n = discrimination.shape[1]
    sources = IrtAbilities(np.empty((0, n)), np.empty((0, n, n)))
    return SourceModel(ItemResponse(discrimination, intercept, sources), parts["cuts"], notes)


_kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()


def _remembered(key: tuple[Any, ...], make: Callable[[], T]) -> T:
    """Return the kept result for this key, or make it; the last few are kept."""
    value: T = _kept[key] if key in _kept else make()
    _kept[key] = value
    _kept.move_to_end(key)
    if len(_kept) > KEPT:
        _kept.popitem(last=False)
    return value


def subset_model(scores: Scores, at: IntArray) -> SourceModel:
    """Fit a model of one ability to the sources' answers on a few items, without keeping the fit.

    The model counts items by their place in `at`, shape (n,), and cuts scores as `source_model`
    does.
    """
    return _fitted(scores, at, 1)
