"""Several answers of a model to one item: how they become its score, and how far they vary.

Agents and models at a temperature above 0 answer an item differently when they run it again. The
score of the item is then the mean of its answers, or pass@K: the chance that one of K answers is
right, by the unbiased estimator of Chen et al. 2021 ("Evaluating large language models trained on
code", arXiv 2107.03374), 1 - C(n - c, K) / C(n, K) with c of n answers right.
"""

import re
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from fewbench._names import counted
from fewbench._types import FloatArray, IntArray
from fewbench.errors import ScoresError

MEAN, FIRST, PASS = "mean", "first", "pass@"
TRIALS = "scoring trials"
"""The setting of a task that says that scores are pass@K; see `conditions`."""
TRIALS_HINT = (
    "if a model answered items several times, say what becomes of these answers: --trials mean, "
    "pass@K or first (in Python trials='mean')"
)


@dataclass(frozen=True, eq=False)
class Repeats:
    """How often models answered each item, and how far these answers vary.

    Parameters
    ----------
    counts : ndarray of int, shape (models, items)
        Number of answers; 0 where not run.
    variances : ndarray of float64, shape (models, items)
        Variance of a single answer about the item's own mean, for scores in [0, 1]; over `counts`,
        it is that of the item's score. NaN for fewer than two answers, where nothing shows it.
    """

    counts: NDArray[np.uint32]
    variances: FloatArray

    @classmethod
    def from_counts(cls, counts: NDArray[np.integer], variances: FloatArray) -> "Repeats | None":
        """Return them, read-only, or None if no item has more than one answer."""
        if not (counts > 1).any():
            return None
        kept = np.array(counts, dtype=np.uint32), np.array(variances, dtype=np.float64)
        for array in kept:
            array.flags.writeable = False
        return cls(*kept)

    def take(self, rows: IntArray, columns: IntArray) -> "Repeats | None":
        """Return those of some models and items."""
        at = np.ix_(rows, columns)
        return Repeats.from_counts(self.counts[at], self.variances[at])


def answers_needed(trials: str) -> int | None:
    """Return K of pass@K, None for mean and first; ScoresError for anything else.

    >>> answers_needed("pass@4"), answers_needed("mean")
    (4, None)
    """
    if trials in (MEAN, FIRST):
        return None
    match = re.fullmatch(rf"{PASS}([1-9]\d{{0,5}})", trials)
    if match is None:
        raise ScoresError(
            f"trials cannot be {trials!r}", hint="use mean, first, or pass@K such as pass@4"
        )
    return int(match[1])


def repeats_notes(repeats: Repeats | None, trials: str | None) -> list[str]:
    """Return a sentence on what several answers became, if there are any.

    >>> repeats_notes(Repeats.from_counts(np.array([[3, 3], [1, 0]]), np.zeros((2, 2))), "pass@2")
    ['2 scores are pass@2 of several answers, of 3 on average']
    """
    if repeats is None:
        return []
    what = "the mean" if trials in (None, MEAN) else trials
    counts = repeats.counts[repeats.counts > 1]
    each = f"{counts.mean():.1f}".removesuffix(".0")
    scores = counted(len(counts), "score is", "scores are")
    return [f"{scores} {what} of several answers, of {each} on average"]


def reduce_answers(
    cells: IntArray, answers: FloatArray, n_cells: int, trials: str
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return what several answers to an item become: scores, numbers of answers, and variances.

    Parameters
    ----------
    cells : ndarray of int, shape (answers,)
        Position of the model and item that each answer is of.
    answers : ndarray, shape (answers,)
        In [0, 1], NaN where not run, which counts as no answer.
    n_cells : int
    trials : str
        `mean`, `first`, or `pass@K`.

    Returns
    -------
    (ndarray, ndarray of int, ndarray), each of shape (n_cells,)
        As `Repeats` has them; the score is NaN where there is no answer.

    Raises
    ------
    ScoresError
        For pass@K of fractional answers, or of fewer than K.

    Examples
    --------
    >>> cells, answers = np.array([0, 0, 0, 0, 1, 1]), np.array([1.0, 0, 0, 0, 1, 0])
    >>> [array.round(2).tolist() for array in reduce_answers(cells, answers, 2, "mean")]
    [[0.25, 0.5], [4, 2], [0.25, 0.5]]
    >>> reduce_answers(cells, answers, 2, "pass@2")[0].tolist()
    [0.5, 1.0]
    """
    needed = answers_needed(trials)
    there = ~np.isnan(answers)
    cells, answers = cells[there], answers[there]
    if trials == FIRST:
        cells, first = np.unique(cells, return_index=True)
        answers = answers[first]
    counts = np.bincount(cells, minlength=n_cells)
    sums = np.bincount(cells, answers, n_cells)
    if needed is not None:
        _check_passes(answers, counts, needed)
        return _passes(counts, sums.astype(np.intp), needed)
    # Exact where all answers are alike: no mean of three answers 0.1 differs from 0.1.
    scores = np.full(n_cells, np.nan)
    scores[cells] = answers
    alike = np.ones(n_cells, dtype=bool)
    alike[cells[answers != scores[cells]]] = False
    scores[~alike] = sums[~alike] / counts[~alike]
    squares = np.bincount(cells, (answers - scores[cells]) ** 2, n_cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = np.where(counts > 1, squares / (counts - 1), np.nan)
    return scores, counts, variances


def _check_passes(answers: FloatArray, counts: IntArray, needed: int) -> None:
    if not np.isin(answers, (0.0, 1.0)).all():
        raise ScoresError(
            f"{PASS}{needed} needs right or wrong answers, and some are fractions",
            hint=f"use {MEAN}; or name a column or metric of right and wrong answers",
        )
    few = int(((counts > 0) & (counts < needed)).sum())
    if few:
        least = int(counts[counts > 0].min())
        raise ScoresError(
            f"{PASS}{needed} needs {counted(needed, 'answer')} to each item, but "
            f"{counted(few, 'item has', 'items have')} fewer, the fewest {least}",
            hint=f"use {PASS}{least} or {MEAN}, or leave out models and items with few answers",
        )


def _passes(
    counts: IntArray, right: IntArray, needed: int
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return pass@K by cell; its variance by the jackknife, which needs more than K answers."""
    pairs, place = np.unique(np.stack([counts, right]), axis=1, return_inverse=True)
    scores, variances = np.full(pairs.shape[1], np.nan), np.full(pairs.shape[1], np.nan)
    for at, (n, c) in enumerate(pairs.T.tolist()):
        if n:
            scores[at] = pass_at(n, c, needed)
        if n > needed:
            left = [c - 1] * c + [c] * (n - c)  # right ones without each answer
            without = [pass_at(n - 1, right, needed) for right in left]
            variances[at] = n * (n - 1) * float(np.var(without))
    place = place.reshape(-1)
    return scores[place], counts, variances[place]


def pass_at(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate of pass@K from c right ones of n answers, n >= K.

    >>> pass_at(4, 1, 1), pass_at(4, 1, 2), pass_at(4, 3, 2)
    (0.25, 0.5, 1.0)
    """
    return 1.0 - comb(n - c, k) / comb(n, k)


def pool_answers(
    parts: list[tuple[FloatArray, FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the scores, counts and variances of all answers, from those of parts of them.

    The variance within all of them comes from that within and between parts (Chan, Golub & LeVeque
    1983, "Algorithms for computing the sample variance", The American Statistician 37(3)).

    Parameters
    ----------
    parts : list of (scores, counts, variances)
        Each of shape (items,). A score is NaN where a part has no answer, and a variance where it
        is unknown: then so is that of all.

    Examples
    --------
    >>> parts = [(np.array([score]), np.ones(1), np.full(1, np.nan)) for score in (1.0, 0.0, 0.0)]
    >>> [array.round(3).tolist() for array in pool_answers(parts)]
    [[0.333], [3.0], [0.333]]
    """
    scores, counts, variances = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    counts = np.where(np.isnan(scores), 0.0, counts)
    held, total = np.nan_to_num(scores), counts.sum(axis=0)
    inner = np.where(counts > 1, (counts - 1) * variances, 0.0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (counts * held).sum(axis=0) / total
        alike = (scores == np.nanmax(np.where(counts > 0, scores, -1), axis=0)) | (counts == 0)
        means = np.where(alike.all(axis=0) & (total > 0), held.max(axis=0), means)
        squares = inner + (counts * (held - means) ** 2).sum(axis=0)
        spread = np.where(total > 1, squares / (total - 1), np.nan)
    return means, total, spread
