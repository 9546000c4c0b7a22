"""A new model for the demo: trained on the spot, and run on the items that somebody asks for.

Its kind, a logistic regression on random kernel features, is not among the zoo's lineages, and
nothing about its answers is stored, so what a method says about it is a real estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fewbench._types import FloatArray
from fewbench.datasets.digits_benchmark import TASKS, benchmark, distort, training_images

_COPIES = 3  # of every training image, each damaged in one of the benchmark's ways
_LANDMARKS = 300


class Classifier(Protocol):
    """Anything that gives probabilities (n, 10) for images (n, 64)."""

    def predict_proba(self, images: FloatArray, /) -> FloatArray:
        """Probabilities of the digits 0 to 9, row by row."""


@dataclass(frozen=True)
class Newcomer:
    """A classifier taking the demo's benchmark, item by item as asked.

    Attributes
    ----------
    classifier : Classifier
        Gives probabilities (n, 10) for images (n, 64).
    """

    classifier: Classifier

    def answer(self, item_ids: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Run the classifier on these items and on no others.

        Parameters
        ----------
        item_ids : sequence of str, length n
            Such as ``["clean-000", "rotated-017"]``.

        Returns
        -------
        scores : ndarray of shape (n,)
            1 where the most probable digit is the right one, else 0.
        probabilities : ndarray of shape (n, 10)
            Of the digits 0 to 9; every row sums to 1.

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
        """The truth: the share of all the benchmark's items that the classifier gets right."""
        scores, _ = self.answer(benchmark().item_ids)
        return float(scores.mean())


def train_newcomer(seed: int = 0) -> Newcomer:
    """Train a classifier that no zoo lineage holds; takes about a second.

    Parameters
    ----------
    seed : int
        Draws the damage of its training images and its random features.

    Examples
    --------
    >>> newcomer = train_newcomer(seed=0)
    >>> scores, probabilities = newcomer.answer(["clean-000", "rotated-017"])
    >>> scores.shape, probabilities.shape
    ((2,), (2, 10))
    """
    from sklearn.kernel_approximation import Nystroem  # slow to import, and only the demo needs it
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
    # On so little data threads cost more than they bring; alone, a seed also means one result.
    with threadpool_limits(1):
        classifier.fit(np.vstack([images, *damaged]), np.tile(labels, 1 + _COPIES))
    return Newcomer(classifier)
