"""The bundled scores: a zoo of small classifiers on a benchmark of handwritten digits."""

from fewbench.datasets.digits import Newcomer, train_newcomer, training_images
from fewbench.datasets.zoo import load_zoo, write_example, zoo_file

__all__ = [
    "Newcomer",
    "load_zoo",
    "train_newcomer",
    "training_images",
    "write_example",
    "zoo_file",
]


def __dir__() -> list[str]:
    return __all__
