"""The error of chosen tasks, next to what random tasks and random questions would give.

Errors are NRMSE over models. As coded by BenTo's authors it is sqrt(sum (Q - P)²) / sqrt(sum P²);
as printed (Eq. 7) the second square is missing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench._seeds import child_seed
from fewbench.study.tasks.results import FloatArray, IntArray, TaskResults

DRAWS = 1000
LEVEL = 0.9
SETS, QUESTIONS, MODELS = range(3)
_BLOCK = 100


@dataclass(frozen=True)
class Spread:
    """Errors of many draws: mean, standard deviation, 5th and 95th percentile."""

    mean: float
    spread: float
    low: float
    high: float


@dataclass(frozen=True)
class Judgement:
    """How far scores on the chosen tasks are from full scores.

    Attributes
    ----------
    nrmse, nrmse_printed : float
        As coded, and by the printed equation.
    low, high : float
        90 % interval of `nrmse`, models drawn with replacement (Appendix C).
    random_tasks : Spread
        NRMSE of random task sets of the same size, drawn without replacement.
    percentile : float
        Share of them that are as good or better.
    random_questions : Spread
        NRMSE of as many random questions.
    n_questions : int
        Questions of the chosen tasks.
    estimates : tuple of (model, full score, score on the chosen tasks)
    """

    nrmse: float
    nrmse_printed: float
    low: float
    high: float
    random_tasks: Spread
    percentile: float
    random_questions: Spread
    n_questions: int
    estimates: tuple[tuple[str, float, float], ...]


def nrmse(estimates: FloatArray, full: FloatArray) -> NDArray[np.float64]:
    """Root mean square error over the root mean square of the full scores, over the last axis.

    NaN where all full scores are 0, as in a draw of models that all fail.

    Examples
    --------
    >>> nrmse(np.array([0.5, 0.7]), np.array([0.6, 0.8])).round(3).item()
    0.141
    """
    squares = (full**2).sum(-1)
    return np.asarray(
        np.sqrt(((estimates - full) ** 2).sum(-1) / np.where(squares, squares, np.nan))
    )


def nrmse_printed(estimates: FloatArray, full: FloatArray) -> NDArray[np.float64]:
    """The same by Eq. 7 as printed: over the root of the sum of the full scores."""
    return np.asarray(np.sqrt(((estimates - full) ** 2).sum(-1) / full.sum(-1)))


def judge(results: TaskResults, chosen: IntArray, seed: int = 0, draws: int = DRAWS) -> Judgement:
    """Judge chosen tasks on models whose results are known.

    Parameters
    ----------
    results : TaskResults
    chosen : ndarray of int, shape (k,)
        Positions among the results' tasks.
    draws : int
        Random task sets, sets of questions, and bootstraps over models.
    """
    full, said = results.full, results.reduced(chosen)
    own = float(nrmse(said, full))
    others = tasks_by_chance(results, len(chosen), seed, draws)
    n = int(results.sizes[chosen].sum())
    models = np.random.default_rng(child_seed(seed, MODELS)).integers(
        len(full), size=(draws, len(full))
    )
    low, high = _quantiles(nrmse(said[models], full[models]))
    return Judgement(
        own,
        float(nrmse_printed(said, full)),
        low,
        high,
        spread(others),
        float((others <= own * (1 + 1e-12)).mean()),
        spread(questions_by_chance(results, n, seed, draws)),
        n,
        tuple(zip(results.models, full.tolist(), said.tolist(), strict=True)),
    )


def tasks_by_chance(results: TaskResults, k: int, seed: int, draws: int = DRAWS) -> FloatArray:
    """NRMSE of random task sets, the same wherever the same seed and number are judged."""
    return random_tasks(results, k, child_seed(seed, SETS, k), draws)


def questions_by_chance(
    results: TaskResults, n_questions: int, seed: int, draws: int = DRAWS
) -> FloatArray:
    """NRMSE of random questions, the same wherever the same seed and number are judged."""
    return random_questions(results, n_questions, child_seed(seed, QUESTIONS, n_questions), draws)


def random_tasks(
    results: TaskResults, k: int, seed: int, draws: int = DRAWS, *, replace: bool = False
) -> FloatArray:
    """NRMSE of random task sets, shape (draws,).

    `replace` draws with replacement, as the authors' program does.
    """
    rng = np.random.default_rng(seed)
    n = len(results.tasks)
    counts = np.zeros((draws, n))
    for row in counts:
        np.add.at(row, rng.integers(n, size=k) if replace else rng.permutation(n)[:k], 1.0)
    w = counts * results.weights
    return nrmse((w / w.sum(axis=1, keepdims=True)) @ results.scores.T, results.full)


def random_questions(
    results: TaskResults, n_questions: int, seed: int, draws: int = DRAWS
) -> FloatArray:
    """NRMSE of random questions, shape (draws,).

    Where single questions are known, all models answer the same ones. Else a model's right answers
    among the questions drawn of a task are hypergeometric, models apart; scores that are no counts
    of right answers are taken as such, which errs on the side of more spread.
    """
    rng = np.random.default_rng(seed)
    if results.questions is not None:
        return _known_questions(results, n_questions, rng, draws)
    sizes = results.sizes.astype(np.int64)
    share = results.weights / sizes  # what a question counts
    right = np.rint(results.scores * sizes).astype(np.int64)
    n = min(n_questions, int(sizes.sum()))
    errors = []
    for start in range(0, draws, _BLOCK):
        drawn = rng.multivariate_hypergeometric(sizes, n, min(_BLOCK, draws - start))[:, None]
        found = rng.hypergeometric(right, sizes - right, drawn)
        errors.append(nrmse((found @ share) / (drawn @ share), results.full))
    return np.concatenate(errors)


def _known_questions(
    results: TaskResults, n_questions: int, rng: np.random.Generator, draws: int
) -> FloatArray:
    table = results.questions
    assert table is not None
    values, weights = table.filled, table.item_weights
    errors = []
    for start in range(0, draws, _BLOCK):
        picked = np.zeros((values.shape[1], min(_BLOCK, draws - start)))
        for column in picked.T:
            column[rng.permutation(len(column))[:n_questions]] = 1.0
        picked *= weights[:, None]
        errors.append(nrmse((values @ (picked / picked.sum(axis=0))).T, results.full))
    return np.concatenate(errors)


def spread(errors: FloatArray) -> Spread:
    """Summarise errors of many draws."""
    return Spread(float(errors.mean()), float(errors.std()), *_quantiles(errors))


def anchor_ratio(results: TaskResults, chosen: IntArray, anchor_tasks: FloatArray) -> FloatArray:
    """Estimates corrected by one model whose task scores are known, shape (models,).

    P = s_X · full / X of the anchor: tasks that are easy for it are taken to be so for all.

    Parameters
    ----------
    anchor_tasks : ndarray, shape (tasks,)
        The anchor's score on every task.
    """
    w = results.weights
    of_chosen = float(anchor_tasks[chosen] @ w[chosen] / w[chosen].sum())
    if not of_chosen:
        return results.reduced(chosen)
    return results.reduced(chosen) * float(anchor_tasks @ w) / of_chosen


def _quantiles(values: FloatArray) -> tuple[float, float]:
    tail = (1 - LEVEL) / 2
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return float(low), float(high)
