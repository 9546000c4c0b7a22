"""The bundled scores: a zoo of small classifiers on a benchmark of handwritten digits."""

from importlib.resources import files
from pathlib import Path

from fewbench.datasets.digits import (
    Benchmark,
    Newcomer,
    benchmark,
    train_newcomer,
    training_images,
)
from fewbench.readers.npz import read_npz
from fewbench.scores import Scores

__all__ = [
    "Benchmark",
    "Newcomer",
    "benchmark",
    "load_zoo",
    "train_newcomer",
    "training_images",
    "zoo_file",
]


def load_zoo() -> Scores:
    """Load the bundled scores: 280 classifiers of 20 families × 1000 items of 5 tasks.

    Examples
    --------
    >>> zoo = load_zoo()
    >>> zoo.n_models, zoo.n_items, zoo.tasks
    (280, 1000, ['clean', 'noisy', 'rotated', 'shifted', 'occluded'])
    """
    return read_npz(zoo_file()).scores


def zoo_file() -> Path:
    """Return the file of the bundled scores."""
    return Path(str(files("fewbench.datasets") / "zoo.npz"))
