"""What models scored on tasks, and the error of chosen tasks, next to what chance would give.

Errors are NRMSE over models. As coded by BenTo's authors it is sqrt(sum (Q - P)²) / sqrt(sum P²);
as printed (Eq. 7) the second square is missing.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from fewbench._names import some
from fewbench._seeds import child_seed
from fewbench._types import FloatArray, IntArray
from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study.inference import Figure, model_groups, two_way

Weigh = Literal["questions", "tasks"]
ROUNDING = 1e-9
DRAWS = 1000
LEVEL = 0.9
REPEATS = 100
"""Draws of random tasks or questions that differences to them are inferred from."""
SETS, QUESTIONS, MODELS = range(3)
_BLOCK = 100


@dataclass(frozen=True, eq=False)
class TaskResults:
    """Scores of models on tasks.

    Parameters
    ----------
    scores : ndarray, shape (models, tasks)
        From 0 to 1; losses may have any range.
    models, tasks : tuple of str
    sizes : ndarray of int, shape (tasks,)
        Questions of each task; all 1 where they are not known.
    weigh : {"questions", "tasks"}
        Whether the full score is the mean over questions (the paper's MMLU) or over tasks (its
        FLAN); that of chosen tasks is the same over theirs.
    questions : Scores, optional
        The same models' scores of single questions, where they are known.
    losses : bool
        Whether the scores are losses: lower is better, and any number is possible.

    Raises
    ------
    StudyError
        If shapes do not fit, a score is missing or not from 0 to 1, or all are 0.
    """

    scores: FloatArray
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    sizes: IntArray
    weigh: Weigh = "questions"
    questions: Scores | None = None
    losses: bool = False

    def __post_init__(self) -> None:
        shape = (len(self.models), len(self.tasks))
        if self.scores.shape != shape or self.sizes.shape != shape[1:] or 0 in shape:
            raise StudyError(f"results have the shape {self.scores.shape}, not {shape}")
        if not np.isfinite(self.scores).all():
            model, task = np.argwhere(~np.isfinite(self.scores))[0]
            raise StudyError(
                f"no score of {self.models[model]} on {self.tasks[task]} is given",
                hint="leave that model out, or run it there",
            )
        outside = (self.scores < -ROUNDING) | (self.scores > 1 + ROUNDING)
        if outside.any() and not self.losses:
            model, task = np.argwhere(outside)[0]
            raise StudyError(
                f"{self.models[model]} has {self.scores[model, task]:g} on {self.tasks[task]}: "
                "scores are from 0 to 1",
                hint="divide percentages by 100; say --lower-is-better for losses",
            )
        if not self.full.any():
            raise StudyError("every full score is 0: errors cannot be related to them")

    @classmethod
    def of_scores(cls, scores: Scores) -> "TaskResults":
        """Take the task scores of a table of single questions."""
        return cls(
            scores.task_scores(),
            tuple(scores.model_ids),
            tuple(scores.tasks),
            np.bincount(scores.task_of, minlength=len(scores.tasks)),
            "questions" if scores.average == "micro" else "tasks",
            scores,
        )

    @property
    def sizes_known(self) -> bool:
        """Whether the number of questions of each task is known."""
        return bool((self.sizes > 1).any())

    def with_sizes(self, sizes: Mapping[str, int]) -> "TaskResults":
        """Return the same results with other numbers of questions, by task."""
        return replace(self, sizes=np.array([sizes[task] for task in self.tasks], dtype=np.intp))

    @property
    def has_questions(self) -> bool:
        """Whether random questions can be drawn: known, or right and wrong by chance."""
        return self.questions is not None or not self.losses

    @cached_property
    def group_of(self) -> Mapping[str, Hashable]:
        """Each model's group: those of one family, or (nearly) the same, are resampled as one."""
        if self.questions is None:
            return {model: model for model in self.models}
        return model_groups(self.questions)

    @property
    def weights(self) -> FloatArray:
        """What each task counts in the full score, shape (tasks,), summing to 1."""
        w = self.sizes if self.weigh == "questions" else np.ones(len(self.tasks))
        return np.asarray(w / w.sum())

    @property
    def full(self) -> FloatArray:
        """The full scores, shape (models,)."""
        return np.asarray(self.scores @ self.weights)

    def reduced(self, chosen: IntArray) -> FloatArray:
        """Return scores on chosen tasks, shape (models,); a task named twice counts twice."""
        w = self.weights[chosen]
        return np.asarray(self.scores[:, chosen] @ (w / w.sum()))

    def positions(self, tasks: tuple[str, ...]) -> IntArray:
        """Return where tasks stand; StudyError if the results lack one."""
        if lacking := [task for task in tasks if task not in self.tasks]:
            raise StudyError(
                f"the results have no task {some(lacking)}", hint=f"theirs are {some(self.tasks)}"
            )
        return np.array([self.tasks.index(task) for task in tasks], dtype=np.intp)


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
        90 % interval of `nrmse`, models drawn with replacement (Appendix C), those of one family
        together.
    random_tasks : Spread
        NRMSE of random task sets of the same size, drawn without replacement.
    percentile : float
        Share of them that are as good or better.
    over_tasks : Figure
        `nrmse` less the mean of random task sets, with its 90 % interval by two-way resampling of
        draws and models.
    random_questions : Spread, optional
        NRMSE of as many random questions; None where the tasks' numbers of questions are not
        known, or nothing is known of losses on single questions.
    over_questions : Figure, optional
        `nrmse` less the mean of random questions, as `over_tasks`.
    n_questions : int, optional
        Questions of the chosen tasks.
    estimates : tuple of (model, full score, estimate from the chosen tasks)
    """

    nrmse: float
    nrmse_printed: float
    low: float
    high: float
    random_tasks: Spread
    percentile: float
    over_tasks: Figure
    random_questions: Spread | None
    over_questions: Figure | None
    n_questions: int | None
    estimates: tuple[tuple[str, float, float], ...]


def nrmse(estimates: FloatArray, full: FloatArray) -> FloatArray:
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


def nrmse_printed(estimates: FloatArray, full: FloatArray) -> FloatArray:
    """The same by Eq. 7 as printed: over the root of the sum of the full scores."""
    return np.asarray(np.sqrt(((estimates - full) ** 2).sum(-1) / full.sum(-1)))


def judge(
    results: TaskResults,
    chosen: IntArray,
    seed: int = 0,
    draws: int = DRAWS,
    *,
    estimates: FloatArray | None = None,
    by_chance: FloatArray | None = None,
) -> Judgement:
    """Judge chosen tasks on models whose results are known.

    Parameters
    ----------
    results : TaskResults
    chosen : ndarray of int, shape (k,)
        Positions among the results' tasks.
    draws : int
        Random task sets, sets of questions, and bootstraps over models.
    estimates : ndarray, shape (models,), optional
        What is estimated from the chosen tasks; by default the plain score on them.
    by_chance : ndarray, shape (draws, models), optional
        What is estimated in the same way from random sets of as many tasks; by default the plain
        scores on them.
    """
    full = results.full
    said = results.reduced(chosen) if estimates is None else estimates
    own = float(nrmse(said, full))
    if by_chance is None:
        by_chance = task_estimates(results, len(chosen), child_seed(seed, SETS, len(chosen)), draws)
    others = nrmse(by_chance, full)
    n = int(results.sizes[chosen].sum()) if results.sizes_known else None
    asked = None
    if n is not None and results.has_questions:
        asked = question_estimates(results, n, child_seed(seed, QUESTIONS, n), draws)
    weights = resampled_models(results, np.random.default_rng(child_seed(seed, MODELS)), draws)
    low, high = _quantiles(weighted_nrmse(said, full, weights))
    return Judgement(
        own,
        float(nrmse_printed(said, full)),
        low,
        high,
        spread(others),
        float((others <= own * (1 + 1e-12)).mean()),
        _difference(results, said, by_chance, seed),
        None if asked is None else spread(nrmse(asked, full)),
        None if asked is None else _difference(results, said, asked, seed),
        n,
        tuple(zip(results.models, full.tolist(), said.tolist(), strict=True)),
    )


def resampled_models(results: TaskResults, rng: np.random.Generator, draws: int) -> FloatArray:
    """Return how often each model is drawn, shape (draws, models); families are drawn whole."""
    named = {group: at for at, group in enumerate(dict.fromkeys(results.group_of.values()))}
    group_of = [named[results.group_of[model]] for model in results.models]
    n = len(named)
    return np.asarray(rng.multinomial(n, np.full(n, 1 / n), draws)[:, group_of], dtype=np.float64)


def weighted_nrmse(said: FloatArray, full: FloatArray, weights: FloatArray) -> FloatArray:
    """NRMSE with each row of weights, shape (draws,)."""
    squares = weights @ full**2
    return np.asarray(np.sqrt((weights @ (said - full) ** 2) / np.where(squares, squares, np.nan)))


def _difference(results: TaskResults, said: FloatArray, by_chance: FloatArray, seed: int) -> Figure:
    """Return the error less the mean error by chance, with its two-way interval."""
    full, drawn = results.full, by_chance[:REPEATS]
    resampled = two_way([results.models] * len(drawn), results.group_of, seed)
    size = resampled.parts([full**2] * len(drawn))
    size = np.where(size > 0, size, np.nan)
    ours = np.sqrt(resampled.parts([(said - full) ** 2] * len(drawn)) / size)
    theirs = np.sqrt(resampled.parts([(one - full) ** 2 for one in drawn]) / size)
    value = float(nrmse(said, full) - nrmse(by_chance, full).mean())
    figure = resampled.figure(resampled.difference(ours, theirs))
    shift = value - figure.value  # the value is by all draws, the interval by some of them
    return Figure(value, figure.se, figure.low + shift, figure.high + shift)


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
    """NRMSE of random task sets, shape (draws,) (see `task_estimates`)."""
    return nrmse(task_estimates(results, k, seed, draws, replace=replace), results.full)


def task_estimates(
    results: TaskResults, k: int, seed: int, draws: int = DRAWS, *, replace: bool = False
) -> FloatArray:
    """Scores on random task sets, shape (draws, models).

    `replace` draws with replacement, as the authors' program does.
    """
    rng = np.random.default_rng(seed)
    n = len(results.tasks)
    counts = np.zeros((draws, n))
    for row in counts:
        np.add.at(row, rng.integers(n, size=k) if replace else rng.permutation(n)[:k], 1.0)
    w = counts * results.weights
    return np.asarray((w / w.sum(axis=1, keepdims=True)) @ results.scores.T)


def random_questions(
    results: TaskResults, n_questions: int, seed: int, draws: int = DRAWS
) -> FloatArray:
    """NRMSE of random questions, shape (draws,) (see `question_estimates`)."""
    return nrmse(question_estimates(results, n_questions, seed, draws), results.full)


def question_estimates(
    results: TaskResults, n_questions: int, seed: int, draws: int = DRAWS
) -> FloatArray:
    """Scores on random questions, shape (draws, models).

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
    found = []
    for start in range(0, draws, _BLOCK):
        drawn = rng.multivariate_hypergeometric(sizes, n, min(_BLOCK, draws - start))[:, None]
        answered = rng.hypergeometric(right, sizes - right, drawn)
        found.append((answered @ share) / (drawn @ share))
    return np.concatenate(found)


def _known_questions(
    results: TaskResults, n_questions: int, rng: np.random.Generator, draws: int
) -> FloatArray:
    table = results.questions
    assert table is not None
    values, weights = table.filled, table.item_weights
    found = []
    for start in range(0, draws, _BLOCK):
        picked = np.zeros((values.shape[1], min(_BLOCK, draws - start)))
        for column in picked.T:
            column[rng.permutation(len(column))[:n_questions]] = 1.0
        picked *= weights[:, None]
        found.append((values @ (picked / picked.sum(axis=0))).T)
    return np.concatenate(found)


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
