"""The sources' Gaussian process, which fewbench's own selector, predictor and method share."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.assisted import SampleErrors
from fewbench.algorithms.kriging import (
    FEW,
    KrigingModel,
    SampledRun,
    SampleModel,
    fit_kriging,
    fit_sample,
    pool_size,
)
from fewbench.algorithms.sampling import permanent_order
from fewbench.errors import MethodError
from fewbench.methods.base import Prediction
from fewbench.methods.kept_fits import kept
from fewbench.methods.needs import Need
from fewbench.methods.sources import (
    carrying_sources,
    independent_in_words,
    models_per_group,
)
from fewbench.methods.written import check_number
from fewbench.scores import Scores, read_costs
from fewbench.scores.table import UNRUN

PER_ITEM = 1000
"""Numbers that fitting the curves and their predictions takes for every item."""
FIT = 7
"""Raise this number when the fit changes, so that kept fits are not used."""
MOST_UNRUN = 0.01
"""Share of the full score that items may have which no source model ran."""
LEAST = Need("sources", 2, "nothing distinguishes one item from another", required=True)
NEEDS = (
    Need(
        "independent sources",
        FEW,
        "too few sources to choose items: they are a random sample",
    ),
)


@dataclass(frozen=True)
class Unrun:
    """The share of the full score that items have which no source model ran."""

    share: float


def source_model(
    scores: Scores,
    seed: int,
    asked: int,
    include: IntArray | None = None,
    sources: int | None = None,
) -> SampleModel:
    """Fit what there is: the models of sources that ran most items, or curves of all cells.

    Where fewer than 20 independent models ran most items and others ran some, or there are fewer
    than 2 models, items are a sample, assisted by all cells. Parameters as for `source_kriging`.
    """
    if learns_from_whole(scores):
        return source_kriging(scores.whole, seed, asked, include, sources)
    return sample_model(scores, seed)


def learns_from_whole(scores: Scores) -> bool:
    """Whether the models that ran most items are enough to learn from, without the others.

    False if the items that no model ran exceed `MOST_UNRUN` of the weight: no data would support
    their predictions.
    """
    whole = scores.whole
    if whole.n_models < 2:
        return False
    unrun = Unrun(0.0)
    if scores.chosen is not None or scores.has_missing:
        unrun = kept(scores, "unrun", (), Unrun, lambda: Unrun(scores.unrun_share))
    if unrun.share > MOST_UNRUN:
        return False
    return whole is scores or carrying_sources(whole) >= FEW


def samples_unrun(scores: Scores) -> bool:
    """Whether items that no source ran are a random sample, beside those that are chosen.

    Not where too few sources are to learn from, or in a pack. Their share of the full score does
    not matter: it changes with the average and the weights, and the answers stay the same.
    """
    if UNRUN in scores.items or scores.origin is not None or scores.unrun_share <= MOST_UNRUN:
        return False
    return learns_from_whole(scores.ran) and carrying_sources(scores.ran.whole) >= FEW


def sample_model(scores: Scores, seed: int = 0) -> SampleModel:
    """Fit curves to all cells, for a sample."""

    def fit() -> SampleModel:
        weights = np.vstack([scores.item_weights, scores.task_weights.T])
        models, items = np.nonzero(scores.is_run)
        answers = scores.cells[:][models, items]
        order = permanent_order(scores.task_of, seed, scores.cohort_of)
        return fit_sample(models, items, answers, scores.n_models, scores.task_of, weights, order)

    return kept(scores, "sample", (seed, FIT), SampleModel, fit)


def source_kriging(
    scores: Scores,
    seed: int,
    asked: int,
    include: IntArray | None = None,
    sources: int | None = None,
) -> KrigingModel:
    """Fit the sources for the full score and every task.

    `asked` is the number of items in the run, `include` are items that may join it, and `sources`
    is the number of independent sources by which items are chosen (default: that of `scores`).
    """
    if scores.n_models < 2:
        raise MethodError(
            f"fewbench learns from at least 2 source models, there are {scores.n_models}"
        )
    check_fits(
        8.0 * (PER_ITEM + 3 * len(scores.tasks)) * scores.n_items + 32.0 * scores.n_models**2,
        f"learning from {counted(scores.n_models, 'source model')} on "
        f"{counted(scores.n_items, 'item')}",
    )
    check_number("sources", sources, 0)

    def fit() -> KrigingModel:
        weights = np.vstack([scores.item_weights, scores.task_weights.T])
        order = permanent_order(scores.task_of, seed, scores.cohort_of)
        distinct = carrying_sources(scores) if sources is None else sources
        groups = models_per_group(scores)
        return fit_kriging(scores.filled_cells, weights, order, distinct, groups, asked, include)

    pool = pool_size(asked, scores.n_items)
    chosen = None
    if include is not None and pool < scores.n_items:  # else all items may join
        chosen = sorted(include.tolist())
    return kept(scores, f"kriging-{pool}", (seed, chosen, sources, FIT), KrigingModel, fit)


def prediction_of(
    sources: Scores, model: SampleModel, runs: Iterable[SampledRun], tasks: bool
) -> Prediction:
    """Return the estimates of runs of a model of these sources, one row each.

    Each run is left when it has been read: with thousands of sources it holds megabytes.
    """
    estimates = [run.estimate() for run in runs]
    scores = np.array([estimate.scores for estimate in estimates])
    errors = np.array([estimate.errors for estimate in estimates])
    nothing = np.full(scores.shape[1], np.nan)
    freedom = np.array(
        [nothing if estimate.freedom is None else estimate.freedom for estimate in estimates]
    )
    notes: tuple[str, ...] = ()
    if model.is_sampled and isinstance(model, KrigingModel):
        few = independent_in_words(sources.whole, model.distinct)
        few += f", and {FEW} are needed to choose items"
        if not model.distinct:
            few = "the source models hardly differ in ability, so they do not show what to expect"
        notes = (f"{few}: the items are a random sample, spread over the tasks",)
    return Prediction(
        scores[:, 0],
        scores[:, 1:] if tasks else None,
        notes=notes,
        spread=errors[:, 0],
        task_spread=errors[:, 1:] if tasks else None,
        freedom=freedom if np.isfinite(freedom).any() else None,
        samples=tuple(_of_items(model, estimate.sample) for estimate in estimates),
        is_plain=all(estimate.is_plain for estimate in estimates),
    )


def _of_items(model: SampleModel, sample: SampleErrors | None) -> SampleErrors | None:
    """Return the same by all items instead of candidates."""
    if sample is None or len(model.candidates) == model.n_items:
        return sample
    influence, chances = np.full(model.n_items, np.nan), np.zeros(model.n_items)
    influence[model.candidates], chances[model.candidates] = sample.influence, sample.chances
    return replace(sample, influence=influence, chances=chances)


def item_costs(scores: Scores, column: str | None) -> FloatArray | None:
    """Return what items' gains are divided by, shape (items,): costs above 0, or nothing.

    Raises
    ------
    ScoresError
        If the column is not there or holds no cost above 0 for an item.
    """
    return None if column is None else read_costs(scores, column, positive=True)
