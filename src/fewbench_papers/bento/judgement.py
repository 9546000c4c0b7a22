"""Models' scores on tasks, and the error of chosen tasks against random tasks and questions.

Errors are NRMSE over models, sqrt(sum (Q - P)²) / sqrt(sum P²), as in the code of BenTo's authors;
the printed equation (Eq. 7) lacks the second square.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study.inference import model_groups, two_way
from fewbench.study.metrics import nrmse
from fewbench.support import FloatArray, IntArray, child_seed, some

Weigh = Literal["questions", "tasks"]
ROUNDING = 1e-9
DRAWS = 1000
LEVEL = 0.9
REPEATS = 100
"""Draws of random tasks or questions for intervals of differences."""
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
        Questions of each task; all 1 if unknown.
    weigh : {"questions", "tasks"}
        Whether the full score is the mean over questions (the paper's MMLU) or over tasks (its
        FLAN). The score on chosen tasks is computed the same way.
    questions : Scores, optional
        The same models' scores on single questions.
    losses : bool
        Whether the scores are losses: lower is better, without limits.

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
            raise StudyError(f"results have shape {self.scores.shape} instead of {shape}")
        if not np.isfinite(self.scores).all():
            model, task = np.argwhere(~np.isfinite(self.scores))[0]
            raise StudyError(
                f"{self.models[model]} has no score on {self.tasks[task]}",
                hint="drop that model, or run it on that task",
            )
        outside = (self.scores < -ROUNDING) | (self.scores > 1 + ROUNDING)
        if outside.any() and not self.losses:
            model, task = np.argwhere(outside)[0]
            raise StudyError(
                f"{self.models[model]} has {self.scores[model, task]:g} on {self.tasks[task]}: "
                "not from 0 to 1",
                hint="divide percentages by 100; pass --lower-is-better for losses",
            )
        if not self.full.any():
            raise StudyError("every full score is 0, so relative errors are not defined")

    @classmethod
    def of_scores(cls, scores: Scores) -> "TaskResults":
        """Return the task scores of a table of single questions."""
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

    @property
    def has_questions(self) -> bool:
        """Whether random questions can be drawn, from known ones or at random from scores."""
        return self.questions is not None or not self.losses

    @cached_property
    def group_of(self) -> Mapping[str, Hashable]:
        """Group of each model: a family, or models with (nearly) the same answers."""
        if self.questions is None:
            return {model: model for model in self.models}
        return model_groups(self.questions)

    @property
    def weights(self) -> FloatArray:
        """Weight of each task in the full score, shape (tasks,); the sum is 1."""
        w = self.sizes if self.weigh == "questions" else np.ones(len(self.tasks))
        return np.asarray(w / w.sum())

    @property
    def full(self) -> FloatArray:
        """The full scores, shape (models,)."""
        return np.asarray(self.scores @ self.weights)

    def reduced(self, chosen: IntArray) -> FloatArray:
        """Return scores on chosen tasks, shape (models,); a repeated task counts repeatedly."""
        w = self.weights[chosen]
        return np.asarray(self.scores[:, chosen] @ (w / w.sum()))

    def positions(self, tasks: tuple[str, ...]) -> IntArray:
        """Return positions of tasks; StudyError if the results lack one."""
        if lacking := [task for task in tasks if task not in self.tasks]:
            raise StudyError(
                f"the results have no task {some(lacking)}",
                hint=f"their tasks are {some(self.tasks)}",
            )
        return np.array([self.tasks.index(task) for task in tasks], dtype=np.intp)


@dataclass(frozen=True)
class ErrorsByChance:
    """Errors of many draws of random tasks or questions, beside that of the chosen tasks.

    Attributes
    ----------
    mean, spread, low, high : float
        Mean, standard deviation, 5th and 95th percentile.
    percentile : float
        Share of the draws that are as good as the chosen tasks or better.
    difference : dict of str to float
        Error of the chosen tasks minus `mean`, with a 90% interval by two-way resampling of draws
        and models: `mean`, `low`, `high`.
    questions : int or None
        Questions of the chosen tasks, or None if unknown.
    """

    mean: float
    spread: float
    low: float
    high: float
    percentile: float
    difference: dict[str, float]
    questions: int | None


@dataclass(frozen=True)
class ModelScores:
    """A model's full score, and its estimate from the chosen tasks."""

    model: str
    full: float
    chosen: float


@dataclass(frozen=True)
class SelectionErrors:
    """How far scores on the chosen tasks are from full scores.

    Attributes
    ----------
    nrmse : float
    low, high : float
        90% interval of `nrmse`; models are resampled (Appendix C), families as one.
    random_tasks : ErrorsByChance
        For the same number of random tasks, drawn without replacement.
    random_questions : ErrorsByChance, optional
        For the same number of random questions, or None if numbers of questions, or losses on
        single questions, are unknown.
    models : tuple of ModelScores
    """

    nrmse: float
    low: float
    high: float
    random_tasks: ErrorsByChance
    random_questions: ErrorsByChance | None
    models: tuple[ModelScores, ...]


def judge(
    results: TaskResults,
    chosen: IntArray,
    seed: int = 0,
    draws: int = DRAWS,
    *,
    estimates: FloatArray | None = None,
    by_chance: FloatArray | None = None,
) -> SelectionErrors:
    """Judge chosen tasks on models with known results.

    Parameters
    ----------
    results : TaskResults
    chosen : ndarray of int, shape (k,)
        Positions among the results' tasks.
    seed : int
        Random seed.
    draws : int
        Random task sets, sets of questions, and resamples of models.
    estimates : ndarray, shape (models,), optional
        Estimates from the chosen tasks (default: the plain score on them).
    by_chance : ndarray, shape (draws, models), optional
        The same kind of estimates from as many random tasks (default: the plain scores).
    """
    full = results.full
    of_models = results.reduced(chosen) if estimates is None else estimates
    error = float(nrmse(of_models, full))
    if by_chance is None:
        by_chance = task_estimates(results, len(chosen), child_seed(seed, SETS, len(chosen)), draws)
    n = int(results.sizes[chosen].sum()) if results.sizes_known else None

    def compared(drawn: FloatArray) -> ErrorsByChance:
        errors = nrmse(drawn, full)
        return ErrorsByChance(
            *(float(errors.mean()), float(errors.std()), *_quantiles(errors)),
            percentile=float((errors <= error * (1 + 1e-12)).mean()),
            difference=_excess_error(results, of_models, drawn, seed),
            questions=n,
        )

    asked = None
    if n is not None and results.has_questions:
        asked = question_estimates(results, n, child_seed(seed, QUESTIONS, n), draws)
    weights = resampled_models(results, np.random.default_rng(child_seed(seed, MODELS)), draws)
    low, high = _quantiles(nrmse(of_models, full, weights))
    return SelectionErrors(
        error,
        low,
        high,
        compared(by_chance),
        None if asked is None else compared(asked),
        tuple(map(ModelScores, results.models, full.tolist(), of_models.tolist())),
    )


def resampled_models(results: TaskResults, rng: np.random.Generator, draws: int) -> FloatArray:
    """Return how often each model is drawn, shape (draws, models); groups are drawn as one."""
    named = {group: at for at, group in enumerate(dict.fromkeys(results.group_of.values()))}
    group_of = [named[results.group_of[model]] for model in results.models]
    n = len(named)
    return np.asarray(rng.multinomial(n, np.full(n, 1 / n), draws)[:, group_of], dtype=np.float64)


def _excess_error(
    results: TaskResults, estimates: FloatArray, by_chance: FloatArray, seed: int
) -> dict[str, float]:
    """Return the error minus the mean error by chance, with its two-way interval."""
    full, drawn = results.full, by_chance[:REPEATS]
    resampled = two_way([results.models] * len(drawn), results.group_of, seed)
    size = resampled.parts([full**2] * len(drawn))
    size = np.where(size > 0, size, np.nan)
    ours = np.sqrt(resampled.parts([(estimates - full) ** 2] * len(drawn)) / size)
    theirs = np.sqrt(resampled.parts([(draw - full) ** 2 for draw in drawn]) / size)
    value = float(nrmse(estimates, full) - nrmse(by_chance, full).mean())
    figure = resampled.figure(resampled.difference(ours, theirs))
    shift = value - figure.value  # the value uses all draws, the interval some of them
    return {"mean": value, "low": figure.low + shift, "high": figure.high + shift}


def task_estimates(results: TaskResults, k: int, seed: int, draws: int = DRAWS) -> FloatArray:
    """Return scores on random task sets, shape (draws, models)."""
    rng = np.random.default_rng(seed)
    return _random_means(results.scores, results.weights, k, rng, draws)


def question_estimates(
    results: TaskResults, n_questions: int, seed: int, draws: int = DRAWS
) -> FloatArray:
    """Return scores on random questions, shape (draws, models).

    If single questions are known, all models answer the same ones. Otherwise each model's right
    answers among the questions of a task are hypergeometric, independent of other models. Scores
    that are not counts of right answers are rounded to counts, which is conservative.
    """
    rng, table = np.random.default_rng(seed), results.questions
    if table is not None:
        return _random_means(table.filled, table.item_weights, n_questions, rng, draws)
    sizes = results.sizes.astype(np.int64)
    share = results.weights / sizes  # what a question counts
    right = np.rint(results.scores * sizes).astype(np.int64)
    n = min(n_questions, int(sizes.sum()))
    estimates = []
    for start in range(0, draws, _BLOCK):
        drawn = rng.multivariate_hypergeometric(sizes, n, min(_BLOCK, draws - start))[:, None]
        answered = rng.hypergeometric(right, sizes - right, drawn)
        estimates.append((answered @ share) / (drawn @ share))
    return np.concatenate(estimates)


def _random_means(
    scores: FloatArray, weights: FloatArray, k: int, rng: np.random.Generator, draws: int
) -> FloatArray:
    """Return the models' weighted means over k random columns, shape (draws, models)."""
    means = []
    for start in range(0, draws, _BLOCK):
        drawn = np.zeros((min(_BLOCK, draws - start), len(weights)))
        for row in drawn:
            columns = rng.permutation(len(row))[:k]
            row[columns] = weights[columns]
        means.append((drawn / drawn.sum(axis=1, keepdims=True)) @ scores.T)
    return np.concatenate(means)


def anchor_ratio(results: TaskResults, chosen: IntArray, anchor_tasks: FloatArray) -> FloatArray:
    """Return estimates corrected by a model with known task scores, shape (models,).

    P = s_X · full / X of the anchor, with the anchor's scores `anchor_tasks`, shape (tasks,): tasks
    that are easy for the anchor are assumed to be easy for all.
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
