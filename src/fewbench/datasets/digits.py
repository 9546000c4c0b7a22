"""The demo's benchmark of damaged handwritten digits, and a target model trained on the spot.

The benchmark is rebuilt from a fixed seed, so a new classifier can answer exactly the chosen items.
Every item shows an image of its own, with a degree of damage of its own, so items differ in
difficulty.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from fewbench._types import FloatArray, IntArray

TASKS = ("clean", "noisy", "rotated", "shifted", "occluded")
ITEMS_PER_TASK = 200

_SIDE = 8
_LEVELS = 16  # the scanned digits hold ink in 17 levels, 0..16
_SEED = 20240229
_COPIES = 3  # damaged copies of every training image
_LANDMARKS = 300


@dataclass(frozen=True)
class DigitImages:
    """The items and their right answers.

    Attributes
    ----------
    item_ids : tuple of str, length N
        Such as ``"rotated-017"``.
    tasks : tuple of str, length N
        Each item's task, one of `TASKS`: how its image was damaged.
    images : ndarray of shape (N, 64)
        Ink in [0, 1], row by row of the 8 × 8 image; read-only.
    gold : ndarray of shape (N,)
        The right digit; read-only.
    """

    item_ids: tuple[str, ...]
    tasks: tuple[str, ...]
    images: FloatArray
    gold: IntArray


@cache
def benchmark() -> DigitImages:
    """Return the benchmark: 5 tasks of 200 items, the same at every call.

    Examples
    --------
    >>> bench = benchmark()
    >>> bench.images.shape, bench.item_ids[417], bench.tasks[417]
    ((1000, 64), 'rotated-017', 'rotated')
    """
    originals, labels = _shuffled_digits()
    rng = np.random.default_rng(_SEED + 1)
    tasks = tuple(task for task in TASKS for _ in range(ITEMS_PER_TASK))
    item_ids = tuple(f"{task}-{i % ITEMS_PER_TASK:03d}" for i, task in enumerate(tasks))
    pairs = zip(originals, tasks, strict=False)  # the other originals are for training
    images = np.stack([distort(original, task, rng) for original, task in pairs])
    images.setflags(write=False)
    return DigitImages(item_ids, tasks, images, labels[: len(tasks)])


def training_images() -> tuple[FloatArray, IntArray]:
    """Return the 797 clean images (797, 64) that are not items, and their digits; read-only."""
    images, labels = _shuffled_digits()
    held_out = ITEMS_PER_TASK * len(TASKS)
    return images[held_out:], labels[held_out:]


@cache
def _shuffled_digits() -> tuple[FloatArray, IntArray]:
    from sklearn.datasets import load_digits  # slow to import

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(_SEED).permutation(len(labels))  # the original is by writer
    images = images[order] / _LEVELS
    labels = labels[order].astype(np.int64)
    for array in (images, labels):
        array.setflags(write=False)
    return images, labels


def distort(image: FloatArray, task: str, rng: np.random.Generator) -> FloatArray:
    """Damage an image (64,) as in a task, at a strength drawn from `rng`; "clean" leaves it as is.

    Examples
    --------
    >>> distort(np.zeros(64), "noisy", np.random.default_rng(0)).shape
    (64,)
    """
    square = image.reshape(_SIDE, _SIDE)
    match task:
        case "clean":
            damaged = square
        case "noisy":
            damaged = square + rng.normal(0.0, rng.uniform(0.15, 0.45), square.shape)
        case "rotated":
            from scipy.ndimage import rotate

            degrees = float(rng.uniform(12.0, 50.0) * rng.choice((-1, 1)))
            damaged = rotate(square, degrees, reshape=False, order=1)
        case "shifted":
            damaged = _shifted(square, int(rng.choice((1, 1, 1, 2))), int(rng.integers(8)))
        case "occluded":
            damaged = _occluded(square, rng)
        case _:
            raise ValueError(f"unknown task {task!r}; use one of {', '.join(TASKS)}")
    # Back to 17 levels: rounding hides last-digit differences between platforms.
    return np.round(np.clip(damaged, 0.0, 1.0).ravel() * _LEVELS) / _LEVELS


def _shifted(square: FloatArray, step: int, compass: int) -> FloatArray:
    down, right = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)][compass]
    padded = np.pad(square, step)
    top, left = step - down * step, step - right * step
    return padded[top : top + _SIDE, left : left + _SIDE]


def _occluded(square: FloatArray, rng: np.random.Generator) -> FloatArray:
    height, width = rng.integers(2, 4, size=2)
    top, left = rng.integers(_SIDE - height + 1), rng.integers(_SIDE - width + 1)
    covered = square.copy()
    covered[top : top + height, left : left + width] = rng.choice((0.0, 0.5, 1.0))
    return covered


class Classifier(Protocol):
    """A classifier of images."""

    def predict_proba(self, images: FloatArray, /) -> FloatArray:
        """Return probabilities (n, 10) of the digits for images (n, 64)."""


@dataclass(frozen=True)
class Newcomer:
    """A target model for the demo that answers the benchmark's items as asked.

    Attributes
    ----------
    classifier : Classifier
    """

    classifier: Classifier

    def answer(self, item_ids: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Run the classifier on items.

        Parameters
        ----------
        item_ids : sequence of str, length n
            Such as ``["clean-000", "rotated-017"]``.

        Returns
        -------
        scores : ndarray of shape (n,)
            1 where the most probable digit is right, else 0.
        probabilities : ndarray of shape (n, 10)
            Probabilities of the digits 0 to 9; every row sums to 1.

        Raises
        ------
        ValueError
            If the benchmark has no such item.
        """
        bench = benchmark()
        place = {item: k for k, item in enumerate(bench.item_ids)}
        unknown = [item for item in item_ids if item not in place]
        if unknown:
            raise ValueError(
                f"the digits benchmark has no item {unknown[0]!r}; its items run from "
                f"{bench.item_ids[0]!r} to {bench.item_ids[-1]!r}"
            )
        if len(item_ids) == 0:
            return np.empty(0), np.empty((0, 10))
        chosen = [place[item] for item in item_ids]
        probabilities = self.classifier.predict_proba(bench.images[chosen])
        scores = (probabilities.argmax(axis=1) == bench.gold[chosen]).astype(np.float64)
        return scores, probabilities

    def full_score(self) -> float:
        """Return the score on all items of the benchmark, in [0, 1]."""
        scores, _ = self.answer(benchmark().item_ids)
        return float(scores.mean())


def train_newcomer(seed: int = 0) -> Newcomer:
    """Train a logistic regression on random kernel features, a family that the table lacks.

    Takes about a second. `seed` sets the damage of its training images and its features.

    Examples
    --------
    >>> newcomer = train_newcomer(seed=0)
    >>> scores, probabilities = newcomer.answer(["clean-000", "rotated-017"])
    >>> scores.shape, probabilities.shape
    ((2,), (2, 10))
    """
    from sklearn.kernel_approximation import Nystroem  # slow to import
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(seed)
    images, labels = training_images()
    damaged = [
        distort(image, task, rng)
        for _ in range(_COPIES)
        for image, task in zip(images, rng.choice(TASKS, len(images)), strict=True)
    ]
    classifier = make_pipeline(
        Nystroem(gamma=0.05, n_components=_LANDMARKS, random_state=seed),
        LogisticRegression(C=5.0, max_iter=1000),
    )
    # One thread: faster on so little data, and the same result for a seed on every machine.
    with threadpool_limits(1):
        classifier.fit(np.vstack([images, *damaged]), np.tile(labels, 1 + _COPIES))
    return Newcomer(classifier)
