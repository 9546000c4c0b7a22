"""What the source models are worth: which are independent, and how reliably they differ."""

from weakref import WeakKeyDictionary

import numpy as np

from fewbench._blocks import Matrix, by_columns, by_rows
from fewbench._names import counted, some
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.algorithms.soundness.likeness import (
    connected,
    likeness,
    mean_shared_variance,
    near_copies,
    with_families,
)
from fewbench.errors import ScoresError
from fewbench.scores import Scores
from fewbench.scores.families import families_of, models_in_words
from fewbench.scores.table import MOST_MISSING

COMPARED = 2000
"""Most items on which sources are compared."""
RELIABLE = 0.5
"""Reliability below which sources do not show how a better model answers."""
NEARLY_COMPLETE = 0.05
"""A model that lacks up to this share of the full score is judged by what it ran. With 5% of the
cells missing, drawn at random or the harder ones, the full scores of four real tables moved by .16
to .48 percentage points (root mean square); methods err by 2 to 5."""
ALIKE, MOST_ALIKE, FEWEST_ALIKE = 0.012, 200, 20
"""Mean share of variance in common, beyond items' difficulty, from which source models are taken
for relatives; most models that are compared, and fewest. One of 1,680 samples of 20 to 40 models of
seven leaderboards reaches it; 25 checkpoints of a training run reach .023
(benchmarks/results/training_runs.md)."""
CHANCE, FEWEST_OTHERS, FEWEST_ANSWERS = 0.01, 5, 20
"""How often answers that have nothing to do with the items' easiness are taken for opposed to it;
and the models and the answers that show it. On seven leaderboards .1% of the models are, beside 5
or 15 others and with 20 to 200 answers."""
LEAST_KNOWN = 4
"""Models with known full scores that can be divided into sources and targets."""
SHARED = "shared variance"
"""Name of what `are_alike` learns of a table."""
_GROUPS: WeakKeyDictionary[Scores, IntArray] = WeakKeyDictionary()
_COPIES: WeakKeyDictionary[Scores, tuple[IntArray, IntArray]] = WeakKeyDictionary()
_PARTS: WeakKeyDictionary[Scores, tuple[Scores, IntArray]] = WeakKeyDictionary()
"""For each fold, its table, whose near copies are known, and the places of its models."""


def whole_sources(scores: Scores, least: int, what: str) -> tuple[Scores, list[str]]:
    """Return the models that ran most of the items, and a note if others are left out.

    Raises ScoresError if they are fewer than `what` needs, which is `least`.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> cells = [[1, 0, 1, 1], [1, 1, 0, 1], [np.nan, np.nan, np.nan, 0]]
    >>> table = from_arrays(cells, models=["a", "b", "c"])
    >>> whole, notes = whole_sources(table, 2, "compare")
    >>> whole.n_models, notes[0]
    (2, '1 of 3 models ran less than half of the items and is left out: c (1 of 4 items)')
    """
    whole = scores.whole
    rest = scores.n_models - whole.n_models
    if whole.n_models < least and (rest or not whole.n_models):
        most = 1 - float(min(scores.missing_shares, default=1.0))
        raise ScoresError(
            f"{what} needs {counted(least, 'model')} that ran half of the {scores.n_items:,} items "
            f"or more, and there {'is' if whole.n_models == 1 else 'are'} {whole.n_models}; no "
            f"model ran more than {most * scores.n_items:,.0f}",
            hint="run models on all items, or import only tasks or items that models ran; fewbench "
            "start and plan need no source models",
        )
    if not rest:
        return whole, []
    verb = "is" if rest == 1 else "are"
    text = f"{rest} of {counted(scores.n_models, 'model')} ran less than half of the items and "
    names = [
        f"{name} ({(1 - missing) * scores.n_items:,.0f} of {counted(scores.n_items, 'item')})"
        for name, missing in zip(scores.model_ids, scores.missing_shares, strict=True)
        if name not in whole.models.index
    ]
    return whole, [f"{text}{verb} left out: {some(names, quotes=False)}"]


def is_known(scores: Scores) -> BoolArray:
    """Return whether each model ran (nearly) all items, so that its full score is known.

    It lacks at most 5% of the full score, and at most half of a task.
    """
    if not scores.has_missing:
        return np.ones(scores.n_models, dtype=bool)
    lacking = by_rows(scores.cells, lambda part: scores.task_means(np.isnan(part)))
    of_tasks = scores.task_shares
    nearly = lacking @ of_tasks <= NEARLY_COMPLETE + 1e-12
    return np.asarray(nearly & (lacking.max(axis=1) <= MOST_MISSING))


def known_scores(scores: Scores, models: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the full scores and task scores by which estimates of models are judged.

    What a model lacks counts as the item's mean plus its lead on the items that it ran (see
    `Scores.filled`). So the error is, up to rounding of that guess to [0, 1], that of the estimate
    on the items that it ran: both are moved by how hard the others are.

    Shapes (models,) and (models, tasks).
    """
    filled = scores.filled_cells[models]
    return filled @ scores.item_weights, scores.task_means(filled)


def missing_note(scores: Scores) -> list[str]:
    """Return how many cells are missing and how models that lack some are judged, if any do."""
    if not scores.has_missing:
        return []
    missing = scores.n_models * scores.n_items - int(scores.is_run.sum())
    share = missing / (scores.n_models * scores.n_items)
    without = np.flatnonzero(~is_known(scores))
    note = (
        f"{counted(missing, 'cell is', 'cells are')} missing ({share:.1%}). A target is judged by "
        "the items that it ran; chosen items that it lacks are skipped"
    )
    if len(without):
        note += (
            f". Models that lack more than {NEARLY_COMPLETE:.0%} of the full score, or half of a "
            f"task, are never targets: {len(without)} of {scores.n_models:,}, "
            f"{some(scores.models.index[without])}"
        )
    return [note]


def source_groups(scores: Scores) -> IntArray:
    """Group models by family and by (nearly) identical answers, shape (models,).

    Families are stated, or read from the models' names (see `fewbench.scores.families`).
    """
    if scores not in _GROUPS:
        families = np.array(families_of(scores), dtype=object)
        copies = connected(scores.n_models, *_copies(scores))
        _GROUPS[scores] = with_families(copies, families)
    return _GROUPS[scores]


def learned_from(scores: Scores, models: IntArray) -> Scores:
    """Return the scores of some models, as `Scores.take`; near copies are searched for once."""
    part = scores.take(models=models)
    if not scores.has_missing:  # else what models lack is filled in from the others
        _PARTS[part] = scores, models
    return part


def _copies(scores: Scores) -> tuple[IntArray, IntArray]:
    """Return the pairs of models that are near copies."""
    if scores not in _COPIES:
        if scores in _PARTS:
            table, models = _PARTS[scores]
            place = np.full(table.n_models, -1)
            place[models] = np.arange(len(models))
            first, other = (place[at] for at in _copies(table))
            is_here = (first >= 0) & (other >= 0)
            _COPIES[scores] = first[is_here], other[is_here]
        else:
            _COPIES[scores] = near_copies(_compared(scores))
    return _COPIES[scores]


def independent_sources(scores: Scores) -> int:
    """Return the number of independent source models: a family, or near copies, count as one.

    >>> from fewbench.testing import simulate
    >>> independent_sources(simulate(30, 200))  # families of two
    15
    """
    return round(scores.n_models / models_per_group(scores)) if scores.n_models else 0


def carrying_sources(scores: Scores) -> int:
    """Return the number of independent source models; 0 if they hardly differ in ability.

    It decides how items are chosen: below 20, they are a random sample.
    """

    def count() -> int:
        return independent_sources(scores) if reliability(scores) >= RELIABLE else 0

    return int(scores.remember("distinct sources", count))  # as packs name it


def are_alike(scores: Scores) -> bool:
    """Return whether models that no family joins answer more alike than unrelated models do.

    As checkpoints of one training run do: errors on some of them are a poor guide to other models.
    Models of families are not compared: their likeness is known.
    """

    def share() -> float:
        groups = source_groups(scores)
        once = np.sort(np.unique(groups, return_index=True)[1])
        once = once[np.linspace(0, len(once) - 1, min(len(once), MOST_ALIKE)).astype(np.intp)]
        if len(once) < FEWEST_ALIKE or any(families_of(scores)):
            return 0.0
        return mean_shared_variance(likeness(_compared(scores)[once]))

    if scores.origin is not None and SHARED not in scores.learned:
        return False  # a pack of an older version
    return float(scores.remember(SHARED, share)) > ALIKE


def are_opposed(answers: FloatArray, easiness: FloatArray) -> BoolArray:
    """Return whether models are right where others are wrong, as if their scores were errors.

    By the correlation with the items' easiness, at a chance of 1% for these models together.

    Parameters
    ----------
    answers : ndarray, shape (models, items)
    easiness : ndarray, shape (items,) or (models, items)
        Mean answer of other models.

    Examples
    --------
    >>> easiness = np.linspace(0, 1, 40)
    >>> are_opposed(np.stack([easiness > 0.5, easiness < 0.5]) * 1.0, easiness).tolist()
    [False, True]
    """
    from scipy.special import ndtri

    n_models, n = answers.shape
    if n < FEWEST_ANSWERS:
        return np.zeros(n_models, dtype=bool)
    ours, theirs = (x - x.mean(axis=-1, keepdims=True) for x in (answers, easiness))
    spread = np.sqrt((ours**2).sum(axis=-1) * (theirs**2).sum(axis=-1))
    # For unrelated answers, sqrt(n - 1) times the correlation is about standard normal.
    return np.asarray(
        np.sqrt(n - 1) * (ours * theirs).sum(axis=-1) < ndtri(CHANCE / n_models) * spread
    )


def opposed_models(scores: Scores) -> list[str]:
    """Return the models of a table that are right where the others are wrong."""
    if scores.n_models <= FEWEST_OTHERS:
        return []
    filled, others = scores.filled_cells, scores.n_models - 1
    sums = by_columns(filled, lambda part: part.sum(axis=0))
    opposed = by_rows(filled, lambda part: are_opposed(part, (sums - part) / others))
    return [scores.model_ids[row] for row in np.flatnonzero(opposed)]


def independent_in_words(scores: Scores, count: int) -> str:
    """Return a number of independent source models in words, and what they are counted from.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> independent_in_words(simulate(30, 200), 15)
    '30 models of 15 families count as 15 independent source models'
    """
    words = counted(count, "independent source model")
    if count == independent_sources(scores) < scores.n_models:
        words = f"{models_in_words(scores, count)} count as {words}"
    return words


def sources_in_words(scores: Scores) -> str:
    """Return how many source models a table has, and how many of them other numbers count.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> sources_in_words(simulate(30, 200))
    '30 models, 15 of them independent'
    """
    whole, words = scores.whole, counted(scores.n_models, "model")
    if whole is not scores:
        words += f", of which {whole.n_models:,} ran half of the items or more"
    if (count := independent_sources(whole)) < whole.n_models:
        words += f", {count:,} of them independent"
    return words


def _compared(scores: Scores) -> FloatArray:
    items = np.linspace(0, scores.n_items - 1, min(scores.n_items, COMPARED)).astype(np.intp)
    return scores.filled_cells[:, items]


def models_per_group(scores: Scores) -> float:
    """Return how many sources there are for each independent family or model.

    >>> from fewbench.testing import simulate
    >>> models_per_group(simulate(30, 200))  # families of two
    2.0
    """

    def ratio() -> float:
        groups = source_groups(scores)
        return len(groups) / len(np.unique(groups))

    return float(scores.remember("models per group", ratio))


def reliability(sources: Scores) -> float:
    """Return Cronbach's alpha of the sources' scores: 1 if they differ in one ability.

    At 0 or below, sources differ only by chance, for example because all guess.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> round(reliability(simulate(30, 200)), 1)
    1.0
    """
    return float(sources.remember("reliability", lambda: _alpha(sources.filled_cells)))


def _alpha(values: Matrix) -> float:
    if not len(values):
        return 0.0
    whole = float(by_rows(values, lambda part: part.sum(axis=1)).var())
    n = values.shape[1]
    if n < 2 or whole <= 0:
        return 0.0
    of_items = by_columns(values, lambda part: part.var(axis=0)).sum()
    return float(n / (n - 1) * (1 - of_items / whole))
