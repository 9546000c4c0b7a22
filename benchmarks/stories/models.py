"""Small models trained here, and their answers to every question of a large pool.

Questions are handwritten digits, damaged in five ways (five tasks). A benchmark is a random draw
from the pool, so the score of a model on questions like these is its mean over the pool. Runs
differ in seed, size, step, number of training images and the mix of damages that they learn from.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from fewbench.datasets.digits import TASKS, distort

POOL, HELD_OUT, BATCH = 8_000, 1_000, 200
MIXES = ((4, 2, 2, 1, 1), (1, 1, 1, 1, 1), (1, 6, 1, 1, 1), (1, 1, 4, 4, 1), (8, 1, 0, 0, 1))
"""Shares of the tasks' damages among the training images."""


@dataclass(frozen=True)
class Model:
    """A model, and what it answers to the pool's questions.

    Attributes
    ----------
    name : str
    run : str
        Its training run.
    step : int
    chances : ndarray of shape (questions,)
        Probability of the right answer at temperature 1.
    right : ndarray of shape (questions,)
        1 where the most probable answer is right, else 0.
    """

    name: str
    run: str
    step: int
    chances: np.ndarray
    right: np.ndarray


@cache
def _originals() -> tuple[np.ndarray, np.ndarray]:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(labels))  # the original is by writer
    return images[order] / 16, labels[order]


@cache
def pool() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return images (questions, 64), right answers and task numbers of the pool's questions."""
    images, labels = _originals()
    rng = np.random.default_rng(2)
    which, tasks = rng.integers(HELD_OUT, size=POOL), rng.integers(len(TASKS), size=POOL)
    asked = [distort(images[at], TASKS[task], rng) for at, task in zip(which, tasks, strict=True)]
    return np.array(asked), labels[which], tasks


def _answered(name: str, run: str, step: int, classifier: object) -> Model:
    images, labels, _ = pool()
    answers = classifier.predict_proba(images)
    chances = np.zeros((len(labels), 10))
    chances[:, classifier.classes_] = answers
    right = (chances.argmax(axis=1) == labels) * 1.0
    return Model(name, run, step, chances[np.arange(len(labels)), labels], right)


def _lessons(mix: tuple[int, ...], n_images: int, rng: np.random.Generator) -> tuple:
    """Return damaged training images, and their labels."""
    images, labels = _originals()
    which = HELD_OUT + rng.integers(n_images, size=2_000)
    tasks = rng.choice(len(TASKS), 2_000, p=np.array(mix) / sum(mix))
    seen = [distort(images[at], TASKS[task], rng) for at, task in zip(which, tasks, strict=True)]
    return np.array(seen), labels[which]


@cache
def training_run(number: int, steps: tuple[int, ...]) -> tuple[Model, ...]:
    """Train a network, and return its checkpoints: seed, size, data and mix follow the number."""
    rng = np.random.default_rng([3, number])
    size, n_images = int(rng.choice([8, 16, 32, 64])), int(rng.choice([100, 200, 400, 700]))
    images, labels = _lessons(MIXES[rng.integers(len(MIXES))], n_images, rng)
    network = MLPClassifier((size,), learning_rate_init=1e-2, random_state=number)
    made = []
    for step in range(1, max(steps) + 1):
        at = rng.integers(len(labels), size=BATCH)
        network.partial_fit(images[at], labels[at], classes=range(10))
        if step in steps:
            made.append(
                _answered(f"run-{number:02d}/step-{step}", f"run-{number:02d}", step, network)
            )
    return tuple(made)


@cache
def other_kind(number: int) -> Model:
    """Train a forest or a classifier by neighbors; later numbers learn from more images."""
    rng = np.random.default_rng([4, number])
    images, labels = _lessons(MIXES[rng.integers(len(MIXES))], 60 + 15 * (number % 40), rng)
    n = int(rng.integers(200, 2_000))
    if number % 2:
        made = KNeighborsClassifier(int(rng.choice([1, 3, 5, 9])), weights="distance")
    else:
        depth = int(rng.integers(4, 14))
        made = ExtraTreesClassifier(30, max_depth=depth, random_state=number)
    kind = "neighbors" if number % 2 else "forest"
    name = f"{kind}-{'abcdefghijklmnopqrstuvwxyz'[number // 2 % 26]}{'x' * (number // 52)}"
    return _answered(name, name, 0, made.fit(images[:n], labels[:n]))
