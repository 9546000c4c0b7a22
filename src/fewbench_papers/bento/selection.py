"""A selection of tasks: which tasks, why, and how stable the choice is."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from fewbench.algorithms.ridge_and_neighbors import fit_ridge
from fewbench.errors import MethodError
from fewbench.methods.written import check_number
from fewbench.support import FloatArray, Frozen, IntArray, child_seed, parse_json, some
from fewbench_papers.bento.choosers import TaskChooser, describe_chooser, mismatch
from fewbench_papers.bento.matrix import SOURCE_SCORES, Similarity, TaskMatrix
from fewbench_papers.bento.transferability import Transferability

RANDOM_SETS = 1000
BOOTSTRAPS = 100, 20  # of up to MANY tasks, and of more
MANY = 200
SHUFFLES = 5  # of the sources within seeds, for the stability without a signal
PERMUTATIONS = 199, 19  # likewise, for the p-value
CLUSTERS, SETS, AGAIN, NOISE = range(4)  # what seeds are drawn for


class ChosenTask(Frozen):
    """One chosen task.

    `gain` is what it adds to the coverage, `stands_for` the number of tasks nearest to it among
    the chosen (itself included), `stability` the share of bootstraps over seeds that choose it.
    """

    task: str
    questions: int
    gain: float | None = None
    stands_for: int | None = None
    cluster: int | None = None
    stability: float | None = None


class Difficulty(Frozen):
    """What the measured model, or the source models, score on the chosen tasks and on all.

    `percentile` is the share of random task sets of the same size that are at least as near.
    """

    chosen: float
    all: float
    percentile: float


class Stability(Frozen):
    """The choice repeated on seeds drawn with replacement.

    `shared` is the mean share of the chosen tasks that are chosen again; `pairs` is the share that
    two repetitions have in common. `tasks` has the share that chooses each task if above 0.
    `chance` is what two random choices have in common; `noise` is `pairs` with sources shuffled
    within each seed, so that they do not differ.
    """

    bootstraps: int
    seeds: int
    shared: float
    pairs: float
    tasks: dict[str, float]
    chance: float | None = None
    noise: float | None = None


class Noise(Frozen):
    """How much sources differ beyond seed noise.

    `ratio` is the variance between sources (of the mean over seeds, within a target) not explained
    by seeds over the explained variance, or None if seeds do not differ. `p_value` is that of
    sources that do not differ, by shuffling them within each seed.
    """

    ratio: float | None
    p_value: float


class Formula(Frozen):
    """The full score from the chosen tasks' scores, by ridge regression on source models."""

    intercept: float
    coefficients: dict[str, float]

    def estimate(self, scores: FloatArray, tasks: tuple[str, ...]) -> FloatArray:
        """Estimate full scores, shape (models,), from scores on tasks, shape (models, tasks)."""
        weights = np.array([self.coefficients.get(task, 0.0) for task in tasks])
        return np.asarray(np.clip(self.intercept + scores @ weights, 0.0, 1.0))


class BudgetPlan(Frozen):
    """How a budget is shared if each task has a cost of its own; all costs are in questions.

    `questions` are run in all `k` chosen tasks together. `errors` are mean absolute errors on
    held-out source models by number of tasks; that of `k` tasks is the lowest.
    """

    budget: float
    task_cost: float
    k: int
    questions: int
    errors: dict[int, float]


class TaskSelection(Frozen):
    """Chosen tasks, in the order of choice.

    - `method`: As `read_chooser` reads it.
    - `steps`: The choice for k tasks, and for fewer if those are the first of the k.
    - `sizes`: Questions of each task of the benchmark.
    - `clusters`: Each task's spectral cluster.
    - `coverage`: Coverage of the choice.
    - `models`: The source models that tasks were compared by, with a digest of each one's scores.
    - `formula`: For source scores: the full score from scores on the chosen tasks.
    - `estimator` ("mean", "ridge"): Whether the estimate is the plain score on the chosen tasks, or
      the formula.
    - `plan`: If only some questions of the chosen tasks are run: how many, and why.

    Examples
    --------
    >>> from fewbench_papers.bento import Transferability, read_chooser, select_tasks
    >>> transfer = Transferability(
    ...     np.array([[[0.9, 0.2, 0.2], [0.8, 0.2, 0.2], [0.1, 0.6, 0.7]]]),
    ...     names := ("algebra", "geometry", "poetry"), names, np.array([9, 9, 9])
    ... )
    >>> selection = select_tasks(read_chooser("bento-sim"), transfer, 2)
    >>> [chosen.task for chosen in selection.chosen]
    ['geometry', 'poetry']
    """

    format: Literal[1] = 1
    method: str
    k: int
    seed: int
    matrix: dict[str, str]
    chosen: Annotated[tuple[ChosenTask, ...], Field(min_length=1)]
    steps: dict[int, tuple[str, ...]]
    sizes: dict[str, int]
    clusters: dict[str, int] | None = None
    coverage: float | None = None
    difficulty: Difficulty | None = None
    stability: Stability | None = None
    noise: Noise | None = None
    models: dict[str, str] | None = None
    formula: Formula | None = None
    estimator: Literal["mean", "ridge"] = "mean"
    plan: BudgetPlan | None = None
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> "TaskSelection":
        if len(set(self.tasks)) < len(self.tasks) or len(self.tasks) != self.k:
            raise ValueError(f"{self.k} different tasks are not what is chosen")
        named = {*self.tasks, *(task for tasks in self.steps.values() for task in tasks)}
        if unknown := sorted(named - set(self.sizes)):
            raise ValueError(f"chosen tasks that the benchmark does not have: {some(unknown)}")
        if min(self.sizes.values()) < 1:
            raise ValueError("a task has no question")
        return self

    @property
    def tasks(self) -> tuple[str, ...]:
        """The chosen tasks' names."""
        return tuple(chosen.task for chosen in self.chosen)

    @property
    def sizes_known(self) -> bool:
        """Whether the number of questions of each task is known."""
        return max(self.sizes.values()) > 1

    def with_sizes(self, sizes: Mapping[str, int]) -> "TaskSelection":
        """Return the same choice with known numbers of questions."""
        chosen = tuple(
            task.model_copy(update={"questions": int(sizes[task.task])}) for task in self.chosen
        )
        known_sizes = {task: int(sizes[task]) for task in self.sizes}
        return self.model_copy(update={"sizes": known_sizes, "chosen": chosen})

    def with_plan(self, plan: BudgetPlan) -> "TaskSelection":
        """Return the same choice with a shared budget; the estimate is by ridge."""
        # The tasks may hold fewer questions than the budget pays for.
        most = min(plan.questions, self.questions)
        plan = plan.model_copy(update={"questions": most})
        return self.model_copy(update={"plan": plan, "estimator": "ridge"})

    @property
    def questions(self) -> int:
        """Questions of the chosen tasks."""
        return sum(chosen.questions for chosen in self.chosen)

    def to_json(self) -> str:
        """Return the selection as indented JSON."""
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(
        cls, text: str | bytes, what: str = "not a selection of tasks"
    ) -> "TaskSelection":
        """Read a selection from JSON; MethodError names what does not fit."""
        return parse_json(cls, text, what, MethodError)


def select_tasks(
    chooser: TaskChooser,
    given: Transferability | TaskMatrix,
    k: int,
    seed: int = 0,
    *,
    bootstraps: int | None = None,
    weigh_tasks: bool = False,
) -> TaskSelection:
    """Choose k tasks, and measure how stable the choice is.

    - `given`: What tasks are compared by. For a measurement with several seeds, the choice is
      repeated on seeds drawn with replacement.
    - `k`: From 1 to the number of tasks.
    - `seed`: Random seed.
    - `bootstraps`: Repetitions, 0 for none; by default 100, and 20 for more than 200 tasks.
    - `weigh_tasks`: For a measurement: whether the full score is the mean over tasks instead of
      questions.

    Raises MethodError if `k` is out of range, or the matrix or a setting cannot be used.
    """
    transfer = given if isinstance(given, Transferability) else None
    matrix = TaskMatrix.of_transfer(transfer, weigh_tasks=weigh_tasks) if transfer else given
    assert isinstance(matrix, TaskMatrix)
    n = len(matrix.names)
    check_number("seed", seed, 0)
    check_number("bootstraps", bootstraps, 0)
    if not 1 <= k <= n:
        raise MethodError(f"cannot choose {k} of {n} tasks", hint=f"use 1 to {n}")
    ordered = chooser.order(matrix, k, seed)
    stability = noise = None
    times = BOOTSTRAPS[n > MANY] if bootstraps is None else bootstraps
    if chooser.compares and transfer is not None and transfer.n_seeds > 1:
        noise = seed_noise(transfer, child_seed(seed, NOISE))
        if times:
            stability = _stability(chooser, transfer, ordered.tasks, seed, times, weigh_tasks)
    past = matrix.kind == SOURCE_SCORES
    similarity = getattr(chooser, "similarity", Similarity())
    nearest = np.argmin(similarity.distances(matrix.rows)[:, ordered.tasks], axis=1)
    clusters: dict[str, int] = {}
    if n > 2:
        without_self = replace(similarity, printed=False)
        of_tasks = without_self.clusters(matrix.rows, child_seed(seed, CLUSTERS))
        clusters = dict(zip(matrix.names, map(int, of_tasks), strict=True))
    stands = np.bincount(nearest, minlength=k)
    return TaskSelection(
        method=describe_chooser(chooser),
        k=k,
        seed=seed,
        matrix=(_facts(transfer) if transfer else {}) | {"rows": matrix.kind},
        chosen=tuple(
            ChosenTask(
                task=matrix.names[task],
                questions=int(matrix.sizes[task]),
                gain=None if ordered.gains is None else float(ordered.gains[place]),
                stands_for=int(stands[place]),
                cluster=clusters.get(matrix.names[task]),
                stability=stability.tasks.get(matrix.names[task], 0.0) if stability else None,
            )
            for place, task in enumerate(ordered.tasks)
        ),
        steps={
            size: tuple(matrix.names[task] for task in ordered.tasks[:size])
            for size in (range(1, k + 1) if ordered.nested else [k])
        },
        sizes=dict(zip(matrix.names, map(int, matrix.sizes), strict=True)),
        clusters=clusters or None,
        coverage=ordered.coverage,
        difficulty=_difficulty(matrix, ordered.tasks, child_seed(seed, SETS)),
        stability=stability,
        noise=noise,
        models=_digests(matrix) if past and chooser.compares else None,
        formula=_formula(matrix, ordered.tasks) if past else None,
        estimator=getattr(chooser, "estimator", "mean"),
        notes=ordered.notes,
    )


def _facts(transfer: Transferability) -> dict[str, str]:
    return {
        **{str(key): str(value) for key, value in transfer.about.items()},
        "metric": transfer.metric,
        "seeds": str(transfer.n_seeds),
        "targets": str(len(transfer.targets)),
    }


def model_digest(scores: Mapping[str, float]) -> str:
    """Return a digest of a model's scores on tasks, for any order of the tasks.

    >>> model_digest({"a": 0.5, "b": 0.25}) == model_digest({"b": 0.25, "a": 0.5 + 1e-12})
    True
    """
    # To six digits: the order of sums changes the last ones.
    lines = "\n".join(f"{task}\t{scores[task]:.6f}" for task in sorted(scores))
    return hashlib.sha256(lines.encode()).hexdigest()[:12]


def _digests(matrix: TaskMatrix) -> dict[str, str]:
    return {
        model: model_digest(dict(zip(matrix.names, column.tolist(), strict=True)))
        for model, column in zip(matrix.models, matrix.rows.T, strict=True)
    }


def _formula(matrix: TaskMatrix, chosen: IntArray) -> Formula:
    full = matrix.weights @ matrix.rows
    fitted = fit_ridge(matrix.rows[chosen].T, full[:, None])
    names = [matrix.names[task] for task in chosen]
    weights = fitted.coefficients[:, 0]
    return Formula(
        intercept=float(fitted.y_mean[0] - fitted.x_mean @ weights),
        coefficients=dict(zip(names, map(float, weights), strict=True)),
    )


def seed_noise(transfer: Transferability, seed: int) -> Noise:
    """Measure how much sources differ beyond seed noise; needs two seeds or more.

    A cell that a seed did not measure counts as the mean of the other seeds. `seed` is for
    shuffling.
    """
    values = _filled(transfer)
    n_seeds, n = values.shape[:2]
    # What a seed's questions make easier is the same for all sources.
    values = values - values.mean(axis=1, keepdims=True)
    between = _between(values)
    noise = float(values.var(axis=0, ddof=1).mean()) / n_seeds * n / (n - 1)
    rng = np.random.default_rng(seed)
    times = PERMUTATIONS[n > MANY]
    shuffled = [_between(_shuffled(values, rng)) for _ in range(times)]
    as_large = sum(draw >= between * (1 - 1e-9) for draw in shuffled)
    return Noise(
        ratio=max(0.0, between - noise) / noise if noise > 0 else None,
        p_value=(1 + as_large) / (1 + times),
    )


def _filled(transfer: Transferability) -> FloatArray:
    return np.where(np.isfinite(transfer.values), transfer.values, transfer.mean)


def _between(values: FloatArray) -> float:
    """Return the variance between sources of the mean over seeds of centered values."""
    return float((values.mean(axis=0) ** 2).sum(axis=0).mean() / (values.shape[1] - 1))


def _shuffled(values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Shuffle the sources within each seed, as if they did not differ."""
    return np.stack([of_seed[rng.permutation(len(of_seed))] for of_seed in values])


def _difficulty(matrix: TaskMatrix, chosen: IntArray, seed: int) -> Difficulty | None:
    if matrix.ease is None:
        return None
    rng = np.random.default_rng(seed)
    sets = [rng.permutation(len(matrix.names))[: len(chosen)] for _ in range(RANDOM_SETS)]
    off = abs(mismatch(matrix, chosen))
    others = np.array([abs(mismatch(matrix, other)) for other in sets])
    return Difficulty(
        chosen=float(np.average(matrix.ease[chosen], weights=matrix.weights[chosen])),
        all=float(np.average(matrix.ease, weights=matrix.weights)),
        percentile=float((others <= off + 1e-12).mean()),
    )


def _stability(
    chooser: TaskChooser,
    transfer: Transferability,
    chosen: IntArray,
    seed: int,
    times: int,
    weigh_tasks: bool,
) -> Stability:
    rng = np.random.default_rng(child_seed(seed, AGAIN))
    k, n = len(chosen), len(transfer.tasks)

    def chosen_again(resampled: Transferability, times: int) -> FloatArray:
        picked = np.zeros((times, n))
        for row in picked:
            drawn = rng.integers(resampled.n_seeds, size=resampled.n_seeds)
            again = TaskMatrix.of_transfer(resampled, drawn, weigh_tasks=weigh_tasks)
            row[chooser.order(again, k, seed).tasks] = 1.0
        return picked

    picked = chosen_again(transfer, times)
    shares = picked.mean(axis=0)
    order = np.argsort(-shares, kind="stable")
    noise = []
    for _ in range(SHUFFLES):
        without = replace(transfer, values=_shuffled(_filled(transfer), rng))
        noise.append(_pairs(chosen_again(without, max(2, times // (2 * SHUFFLES)))))
    return Stability(
        bootstraps=times,
        seeds=transfer.n_seeds,
        shared=float(shares[chosen].sum() / k),
        pairs=_pairs(picked),
        tasks={transfer.tasks[task]: float(shares[task]) for task in order if shares[task] > 0},
        chance=k / n,
        noise=float(np.mean(noise)),
    )


def _pairs(picked: FloatArray) -> float:
    """Return the mean share of tasks that two choices have in common, choices × tasks."""
    common = picked @ picked.T / picked[0].sum()
    times = len(picked)
    return float(common[np.triu_indices(times, 1)].mean()) if times > 1 else 1.0
