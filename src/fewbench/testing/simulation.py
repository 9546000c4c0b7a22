"""Simulated score tables with known truth, from the two-parameter logistic model."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.scores import Scores, from_arrays


def simulate(
    n_models: int = 20,
    n_items: int = 60,
    n_tasks: int = 3,
    *,
    seed: int = 0,
    options: int | None = None,
    missing: float = 0.0,
    continuous: bool = False,
) -> Scores:
    """Simulate the scores of models of different ability on items of different difficulty.

    Model m is right on item k with probability 1 / (1 + exp(-a_k (ability_m - difficulty_k))).
    Models come in families of two with similar ability, better models tend to be newer, and tasks
    differ in size and difficulty. Items have a text of made-up words, some typical of the item's
    task and some of its difficulty.

    Parameters
    ----------
    n_models, n_items, n_tasks : int
    seed : int
        The same seed gives the same table.
    options : int, optional
        Add option probabilities: items have 2 to this many options.
    missing : float
        Share of missing cells; each model and each item keeps at least one.
    continuous : bool
        Scores between 0 and 1 instead of 0 or 1.

    Returns
    -------
    Scores
        With tasks, dates and families, and the items' column `text`.

    Examples
    --------
    >>> scores = simulate(6, 30, seed=1)
    >>> scores.values.shape, scores.tasks
    ((6, 30), ['task-0', 'task-1', 'task-2'])
    >>> scores.equals(simulate(6, 30, seed=1))
    True
    """
    rng = np.random.default_rng(seed)
    n_tasks = min(n_tasks, n_items)
    tasks = _tasks(n_items, n_tasks)
    family = np.arange(n_models) // 2
    ability = rng.normal(0.3, 1.0, family.max() + 1)[family] + rng.normal(0.0, 0.3, n_models)
    difficulty = rng.normal(0.0, 1.0, n_items) + rng.normal(0.0, 0.5, n_tasks)[tasks]
    slope = rng.lognormal(0.2, 0.3, n_items)
    chance = 1.0 / (1.0 + np.exp(-slope * (ability[:, None] - difficulty)))
    right = rng.random(chance.shape) < chance
    values = right.astype(np.float64)
    if continuous:
        values = rng.beta(0.3 + 4.0 * chance, 0.3 + 4.0 * (1.0 - chance))
    n_options = rng.integers(2, (options or 2) + 1, n_items)
    probabilities = _probabilities(right, n_options, rng) if options else None
    hidden = _hidden(values.shape, missing, rng)
    values[hidden] = np.nan
    if probabilities is not None:
        probabilities[hidden] = np.nan
    age = np.argsort(np.argsort(-ability + rng.normal(0.0, 0.5, n_models)))
    scores = from_arrays(
        values,
        models=[f"model-{m:02}" for m in range(n_models)],
        tasks=[f"task-{task}" for task in tasks],
        dates=[f"{2025 - years}-06-01" for years in age],
        families=[f"family-{number}" for number in family],
        probabilities=probabilities,
        n_options=n_options if options else None,
    )
    return replace(scores, items=scores.items.assign(text=_texts(tasks, difficulty, seed)))


def simulate_run(
    n_checkpoints: int = 12,
    n_items: int = 1000,
    *,
    n_models: int = 40,
    n_tasks: int = 3,
    start: float = 0.45,
    rise: float = 0.2,
    drops: Mapping[int, float] | None = None,
    persistence: float = 0.9,
    seed: int = 0,
) -> Scores:
    """Simulate source models and the checkpoints of one training run, which ran all items.

    The expected score rises fast at first and then slowly, with a small random walk. A checkpoint
    answers most items as the one before did. Models of one family, and the checkpoints, share what
    they are good at besides their ability.

    Parameters
    ----------
    n_checkpoints, n_items, n_models, n_tasks : int
    start, rise : float
        Expected score of the first checkpoint, and how much higher that of the last one is.
    drops : mapping of int to float, optional
        How much lower the expected scores of some checkpoints are, by their number from 0: a loss
        spike.
    persistence : float
        Correlation of the chance in a checkpoint's answers with that in the one before, 0 to 1.
    seed : int

    Returns
    -------
    Scores
        Checkpoints come last: names run/step-1000, run/step-2000, …, family "run". Their
        `full_scores` are the truth.

    Examples
    --------
    >>> table = simulate_run(4, 200, n_models=10, drops={2: 0.1}, seed=1)
    >>> table.model_ids[-1], table.models["family"].iloc[-1]
    ('run/step-4000', 'run')
    """
    from scipy.special import ndtr

    rng = np.random.default_rng(seed)
    n_tasks = min(n_tasks, n_items)
    tasks = _tasks(n_items, n_tasks)
    slope, difficulty = rng.lognormal(0.2, 0.3, n_items), rng.normal(0.0, 1.0, n_items)
    family = np.arange(n_models) // 2
    extra = rng.normal(0.0, 0.7, (family.max() + 2, n_items))  # what families are good at
    ability = rng.normal(0.3, 1.0, n_models)
    chance = 1 / (1 + np.exp(-slope * (ability[:, None] - difficulty) - extra[family]))
    values = (rng.random(chance.shape) < chance).astype(np.float64)
    growth = 1 - np.exp(-3 * np.linspace(0, 1, n_checkpoints))
    wanted = start + rise * growth / max(growth[-1], 1e-9)
    wanted = wanted + rng.normal(0.0, 0.003, n_checkpoints).cumsum()
    for number, loss in (drops or {}).items():
        wanted[number] -= loss
    luck = rng.normal(size=n_items)
    rows = []
    for score in np.clip(wanted, 0.02, 0.98):
        at = _ability(float(score), slope, difficulty, extra[-1])
        rows.append(ndtr(luck) < 1 / (1 + np.exp(-slope * (at - difficulty) - extra[-1])))
        luck = persistence * luck + np.sqrt(1 - persistence**2) * rng.normal(size=n_items)
    return from_arrays(
        np.vstack([values, np.array(rows, dtype=np.float64)]),
        models=[
            *(f"model-{m:02}" for m in range(n_models)),
            *(f"run/step-{1000 * (at + 1)}" for at in range(n_checkpoints)),
        ],
        tasks=[f"task-{task}" for task in tasks],
        families=[*(f"family-{number}" for number in family), *["run"] * n_checkpoints],
    )


def _ability(score: float, slope: FloatArray, difficulty: FloatArray, extra: FloatArray) -> float:
    """Return the ability with this expected score, by bisection."""
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        expected = float(np.mean(1 / (1 + np.exp(-slope * (middle - difficulty) - extra))))
        low, high = (middle, high) if expected < score else (low, middle)
    return (low + high) / 2


def _tasks(n_items: int, n_tasks: int) -> IntArray:
    """Each item's task; sizes grow as 1, 2, 3, …"""
    upper = np.cumsum(np.arange(1, n_tasks + 1)) / (n_tasks * (n_tasks + 1) / 2)
    grown = np.searchsorted(upper, (np.arange(n_items) + 0.5) / n_items)
    grown[:n_tasks] = np.arange(n_tasks)  # every task has an item
    return np.asarray(grown, dtype=np.intp)


def _probabilities(
    right: BoolArray, n_options: NDArray[np.int64], rng: np.random.Generator
) -> FloatArray:
    """Return probabilities that are highest on the key where right, else on another option."""
    n_models, n_items = right.shape
    width = int(n_options.max())
    raw = rng.gamma(0.7, 1.0, (n_models, n_items, width)) + 1e-6
    raw[:, np.arange(width) >= n_options[:, None]] = 0.0
    key = rng.integers(0, n_options)
    wrong = (key + rng.integers(1, n_options, right.shape)) % n_options
    chosen = np.where(right, key, wrong)[:, :, None]
    most = raw.argmax(axis=2)[:, :, None]
    largest = np.take_along_axis(raw, most, axis=2)
    np.put_along_axis(raw, most, np.take_along_axis(raw, chosen, axis=2), axis=2)
    np.put_along_axis(raw, chosen, largest, axis=2)
    return np.asarray(raw / raw.sum(axis=2, keepdims=True))


def _texts(tasks: IntArray, difficulty: FloatArray, seed: int) -> list[str]:
    """Return ten words per item: three of its task, three of its difficulty, four of all."""
    rng = np.random.default_rng([seed, 1])  # its own: the scores do not hang on the words
    level = np.searchsorted(np.linspace(-2.0, 2.0, 7), difficulty)
    words = np.hstack(
        [
            100 + 8 * tasks[:, None] + rng.integers(0, 8, (len(tasks), 3)),
            30 + 8 * level[:, None] + rng.integers(0, 8, (len(tasks), 3)),
            rng.integers(0, 30, (len(tasks), 4)),
        ]
    )
    return [" ".join(map(_word, rng.permutation(row).tolist())) for row in words]


def _word(number: int) -> str:
    """A number as a made-up word, another one for each.

    >>> _word(0), _word(61)
    ('ba', 'bebe')
    """
    word = ""
    while not word or number > 0:
        number, syllable = divmod(number, 60)
        word += "bdfgklmnprst"[syllable // 5] + "aeiou"[syllable % 5]
    return word


def _hidden(shape: tuple[int, int], missing: float, rng: np.random.Generator) -> BoolArray:
    hidden = rng.random(shape) < missing
    models, items = np.arange(shape[0]), np.arange(shape[1])
    hidden[models, models % shape[1]] = False
    hidden[items % shape[0], items] = False
    return hidden
