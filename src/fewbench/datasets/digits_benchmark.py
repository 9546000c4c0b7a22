"""The demo's benchmark: held-out handwritten digits, clean and under four kinds of damage.

It is rebuilt from a fixed seed rather than stored, so a classifier trained on the spot can be run
on exactly the items that a selection asks for. Every item shows an image of its own; how badly it
is damaged varies from item to item, so items differ in difficulty as a real benchmark's do.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray

TASKS = ("clean", "noisy", "rotated", "shifted", "occluded")
ITEMS_PER_TASK = 200
N_CLASSES = 10

_SIDE = 8
_LEVELS = 16  # the scanned digits hold ink in 17 levels, 0..16
_SEED = 20240229


@dataclass(frozen=True)
class Benchmark:
    """What there is to answer, with the right answers.

    Attributes
    ----------
    item_ids : tuple of str, length N
        Such as ``"rotated-017"``.
    tasks : tuple of str, length N
        The condition that each item's image went through, one of `TASKS`.
    images : ndarray of shape (N, 64)
        Ink in [0, 1], row by row of the 8 × 8 image; read-only.
    gold : ndarray of shape (N,)
        The right digit; read-only.
    """

    item_ids: tuple[str, ...]
    tasks: tuple[str, ...]
    images: FloatArray
    gold: NDArray[np.int64]


def distort(image: FloatArray, task: str, rng: np.random.Generator) -> FloatArray:
    """One image under one condition, at a strength drawn from `rng`.

    Parameters
    ----------
    image : ndarray of shape (64,)
        Ink in [0, 1].
    task : str
        One of `TASKS`; ``"clean"`` returns the image as it is.
    rng : numpy.random.Generator
        Draws strength and direction.

    Returns
    -------
    ndarray of shape (64,)

    Examples
    --------
    >>> blank = np.zeros(64)
    >>> distort(blank, "noisy", np.random.default_rng(0)).shape
    (64,)
    """
    square = image.reshape(_SIDE, _SIDE)
    match task:
        case "clean":
            damaged = square
        case "noisy":
            damaged = square + rng.normal(0.0, rng.uniform(0.15, 0.45), square.shape)
        case "rotated":
            damaged = _rotated(square, float(rng.uniform(12.0, 50.0) * rng.choice((-1, 1))))
        case "shifted":
            damaged = _shifted(square, int(rng.choice((1, 1, 1, 2))), int(rng.integers(8)))
        case "occluded":
            damaged = _occluded(square, rng)
        case _:
            raise ValueError(f"no condition is called {task!r}; there are {', '.join(TASKS)}")
    # Back to the scanner's 17 levels: rounding hides last-digit differences between platforms.
    return np.round(np.clip(damaged, 0.0, 1.0).ravel() * _LEVELS) / _LEVELS


def training_images() -> tuple[FloatArray, NDArray[np.int64]]:
    """The clean images that no benchmark item was made from.

    Returns
    -------
    images : ndarray of shape (797, 64)
        Ink in [0, 1]; read-only.
    labels : ndarray of shape (797,)
        The digits; read-only.
    """
    images, labels = _shuffled_digits()
    held_out = ITEMS_PER_TASK * len(TASKS)
    return images[held_out:], labels[held_out:]


@cache
def benchmark() -> Benchmark:
    """The benchmark: 5 tasks of 200 items, the same at every call.

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
    pairs = zip(originals, tasks, strict=False)  # the originals beyond the items are for training
    images = np.stack([distort(original, task, rng) for original, task in pairs])
    images.setflags(write=False)
    return Benchmark(item_ids, tasks, images, labels[: len(tasks)])


@cache
def _shuffled_digits() -> tuple[FloatArray, NDArray[np.int64]]:
    """All 1797 scanned digits in an order of our own (the original is sorted by writer)."""
    from sklearn.datasets import load_digits  # slow to import, and only the demo needs it

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(_SEED).permutation(len(labels))
    images = images[order] / _LEVELS
    labels = labels[order].astype(np.int64)
    for array in (images, labels):  # shared by every caller, so nobody may write to it
        array.setflags(write=False)
    return images, labels


def _rotated(square: FloatArray, degrees: float) -> FloatArray:
    from scipy.ndimage import rotate

    turned: FloatArray = rotate(square, degrees, reshape=False, order=1)
    return turned


def _shifted(square: FloatArray, step: int, compass: int) -> FloatArray:
    """Moved by `step` pixels in one of the 8 directions; what leaves the frame is lost."""
    down, right = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)][compass]
    padded = np.pad(square, step)
    top, left = step - down * step, step - right * step
    return padded[top : top + _SIDE, left : left + _SIDE]


def _occluded(square: FloatArray, rng: np.random.Generator) -> FloatArray:
    """With a rectangle of 2 or 3 pixels a side painted in one shade."""
    height, width = rng.integers(2, 4, size=2)
    top, left = rng.integers(_SIDE - height + 1), rng.integers(_SIDE - width + 1)
    covered = square.copy()
    covered[top : top + height, left : left + width] = rng.choice((0.0, 0.5, 1.0))
    return covered
