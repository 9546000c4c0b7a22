"""Make the bundled table: 20 lineages of 14 small classifiers, run on the whole demo benchmark.

    python scripts/make_zoo.py            # writes src/fewbench/datasets/zoo.npz, a minute or two
    python scripts/make_zoo.py --check    # trains them all again and compares with that file

A lineage is one algorithm on one view of the image, with training images in an order of its own.
Its descendants come out one after another. As time goes by the lineages get more training images,
cleaner labels, more damaged copies to learn from and larger settings, each with some luck, so later
models tend to be better but need not be. Everything follows from the seed, whatever the number of
cores. A different release of scikit-learn, or the rounding of a different processor, may train
slightly different models: the file was made with the release in `MADE_WITH`.
"""

import argparse
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from fewbench.datasets.digits import (
    TASKS,
    benchmark,
    distort,
    training_images,
)

MADE_WITH = "1.9.1"  # scikit-learn
DESCENDANTS = 14
DIGITS = 10
TARGET = Path(__file__).parents[1] / "src" / "fewbench" / "datasets" / "zoo.npz"

_SEED = 7
_GRID = 128  # stored probabilities are multiples of 1/128: exact in float16, and they compress
_MOST_COPIES = 12
_FIRST_DAY = date(2021, 1, 4)
_DAYS_BETWEEN_MODELS = 4

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
View = Callable[[Floats], Floats]


# Views: what a lineage sees of the images (n, 64).


def pixels(images: Floats) -> Floats:
    return images


def inked(images: Floats) -> Floats:
    return (images > 0.4).astype(np.float64)


def downsampled(images: Floats) -> Floats:
    blocks: Floats = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4))
    return blocks.reshape(-1, 16)


def sums(images: Floats) -> Floats:
    """Ink per row and per column."""
    squares = images.reshape(-1, 8, 8)
    return np.hstack([squares.mean(axis=2), squares.mean(axis=1)])


def edges(images: Floats) -> Floats:
    """How strongly the ink changes downwards and to the right."""
    squares = images.reshape(-1, 8, 8)
    down, right = np.abs(np.diff(squares, axis=1)), np.abs(np.diff(squares, axis=2))
    return np.hstack([down.reshape(-1, 56), right.reshape(-1, 56)])


def products(images: Floats) -> Floats:
    """The downsampled image and the products of its pixels, two by two."""
    small = downsampled(images)
    first, second = np.triu_indices(small.shape[1])
    return np.hstack([small, small[:, first] * small[:, second]])


def centred(images: Floats) -> Floats:
    """Moved, by whole pixels, so that the ink's centre of mass is in the middle."""
    squares = images.reshape(-1, 8, 8)
    ink = np.maximum(squares.sum(axis=(1, 2)), 1e-9)
    steps = np.arange(8) - 3.5
    down = np.rint((squares.sum(axis=2) @ steps) / ink).astype(int)
    right = np.rint((squares.sum(axis=1) @ steps) / ink).astype(int)
    moved = [np.roll(s, (-d, -r), (0, 1)) for s, d, r in zip(squares, down, right, strict=True)]
    return np.stack(moved).reshape(-1, 64)


# Lineages: an algorithm and how its settings grow. Seeds follow from a lineage's place in the list.


@dataclass(frozen=True)
class Settings:
    """Where a descendant stands in time, 0 to 1, and its luck."""

    progress: float
    rng: np.random.Generator

    def between(self, early: float, late: float) -> float:
        """A positive setting that moves from `early` to `late`, give or take a third."""
        typical = early * (late / early) ** self.progress
        return float(typical * np.exp(self.rng.normal(0.0, 0.3)))

    def count(self, early: float, late: float) -> int:
        return max(1, round(self.between(early, late)))

    def seed(self) -> int:
        return int(self.rng.integers(2**31))


def _mlp(s: Settings, *layers: tuple[float, float]) -> Any:
    sizes = tuple(s.count(early, late) for early, late in layers)
    rate, passes = s.between(0.004, 0.004), s.count(40, 50)
    return MLPClassifier(
        sizes, learning_rate_init=rate, max_iter=passes, batch_size=32, random_state=s.seed()
    )


def _pca(s: Settings, early: float, late: float) -> Any:
    return PCA(min(s.count(early, late), 40), random_state=s.seed())


LINEAGES: dict[str, tuple[View, Callable[[Settings], Any]]] = {
    "logistic": (pixels, lambda s: LogisticRegression(C=s.between(0.05, 2), max_iter=200)),
    "logistic-products": (
        products,
        lambda s: LogisticRegression(C=s.between(0.1, 5), max_iter=200),
    ),
    "logistic-sums": (sums, lambda s: LogisticRegression(C=s.between(0.5, 20), max_iter=200)),
    "ridge-edges": (edges, lambda s: RidgeClassifier(alpha=s.between(30, 2))),
    "linear-svm": (pixels, lambda s: LinearSVC(C=s.between(0.01, 0.5), random_state=s.seed())),
    "kernel-svm": (pixels, lambda s: SVC(C=s.between(0.5, 6), gamma=s.between(0.02, 0.08))),
    "kernel-svm-edges": (edges, lambda s: SVC(C=s.between(2, 8), gamma=s.between(0.05, 0.1))),
    "neighbours": (
        pixels,
        lambda s: KNeighborsClassifier(s.count(12, 4), weights="distance", algorithm="brute"),
    ),
    "neighbours-small": (
        downsampled,
        lambda s: KNeighborsClassifier(s.count(15, 5), weights="distance", algorithm="brute"),
    ),
    "centroid": (pixels, lambda s: NearestCentroid(shrink_threshold=s.between(0.6, 0.1))),
    "bayes-gauss": (downsampled, lambda s: GaussianNB(var_smoothing=s.between(0.5, 0.05))),
    "bayes-bits": (inked, lambda s: BernoulliNB(alpha=s.between(2, 0.3))),
    "discriminant-centred": (
        centred,
        lambda s: LinearDiscriminantAnalysis(
            solver="lsqr", shrinkage=min(s.between(0.6, 0.1), 0.95)
        ),
    ),
    "quadratic-pca": (
        pixels,
        lambda s: make_pipeline(
            _pca(s, 5, 16), QuadraticDiscriminantAnalysis(reg_param=min(s.between(0.6, 0.1), 0.95))
        ),
    ),
    "tree": (
        pixels,
        lambda s: DecisionTreeClassifier(
            min_samples_leaf=s.count(6, 2), max_depth=s.count(6, 14), random_state=s.seed()
        ),
    ),
    "forest": (
        pixels,
        lambda s: RandomForestClassifier(
            s.count(10, 100), min_samples_leaf=s.count(3, 1), random_state=s.seed()
        ),
    ),
    "extra-trees-centred": (
        centred,
        lambda s: ExtraTreesClassifier(
            s.count(10, 80), min_samples_leaf=s.count(4, 1), random_state=s.seed()
        ),
    ),
    "boosting": (
        pixels,
        lambda s: HistGradientBoostingClassifier(
            learning_rate=s.between(0.1, 0.15),
            max_iter=s.count(8, 60),
            max_leaf_nodes=8,
            early_stopping=False,
            random_state=s.seed(),
        ),
    ),
    "network": (pixels, lambda s: _mlp(s, (16, 160))),
    "network-deep": (centred, lambda s: _mlp(s, (20, 120), (12, 50))),
}


# Models: when each comes out and what it learns from.


@dataclass(frozen=True)
class Recipe:
    """All it takes to train one model again."""

    name: str
    family: str
    number: int
    progress: float
    date: str


def recipes() -> list[Recipe]:
    """The zoo's models, lineage by lineage, each lineage in the order of its dates."""
    moments: list[tuple[float, str, int]] = []
    for index, family in enumerate(LINEAGES):
        rng = np.random.default_rng([_SEED, index])
        start = rng.uniform(0.0, 0.5) if index % 3 else 0.0  # a third is there from the beginning
        end = rng.uniform(max(start + 0.4, 0.7), 1.0)
        releases = np.sort(rng.uniform(start, end, DESCENDANTS))
        moments += [(float(t), family, k) for k, t in enumerate(releases, start=1)]
    day_of = {}
    for rank, (_, family, number) in enumerate(sorted(moments)):
        day = _FIRST_DAY + timedelta(days=_DAYS_BETWEEN_MODELS * rank)
        day_of[family, number] = day.isoformat()
    return [
        Recipe(f"{family}/{number:02d}", family, number, t, day_of[family, number])
        for t, family, number in moments
    ]


def lessons(recipe: Recipe) -> tuple[Floats, Labels, Settings]:
    """Training images (n, 64) and labels (n,) of one model, and what its settings grow from."""
    rng = np.random.default_rng([_SEED, list(LINEAGES).index(recipe.family), recipe.number])
    settings = Settings(recipe.progress, rng)
    pools, labels = _family_pools(recipe.family)
    n = int(np.clip(settings.between(60, 1200), 45, len(labels)))
    # Copies come one by one as time goes by: none at first, all of them at the end for the lucky.
    copies = int(
        np.clip(round(_MOST_COPIES * (recipe.progress + rng.normal(-0.2, 0.3))), 0, _MOST_COPIES)
    )
    # A tenth of what the lineage would learn from is left out: siblings never see quite the same.
    # The first 30 images, three of each digit, stay: every model must see every digit.
    kept = np.concatenate([np.arange(30), 30 + np.flatnonzero(rng.random(n - 30) < 0.9)])
    images = pools[: copies + 1, kept].reshape(-1, 64)
    wrong = rng.random(len(kept)) < rng.uniform(0.0, 0.3) * (1 - recipe.progress)
    wrong[:30] = False
    noisy = np.where(wrong, rng.integers(DIGITS, size=len(kept)), labels[kept])
    return images, np.tile(noisy, copies + 1), settings


@cache
def _family_pools(family: str) -> tuple[Floats, Labels]:
    """The training images in the lineage's order, clean and then damaged in its own mix of ways.

    Shapes (1 + most copies, 797, 64) and (797,).
    """
    rng = np.random.default_rng([_SEED, list(LINEAGES).index(family), 0])
    images, labels = training_images()
    order = rng.permutation(len(labels))
    first = [i for digit in range(DIGITS) for i in order[labels[order] == digit][:3]]
    order = np.concatenate([first, order[~np.isin(order, first)]])
    mix = rng.dirichlet(np.full(len(TASKS), 2.0))
    damage = rng.choice(TASKS, size=(_MOST_COPIES, len(order)), p=mix)
    damaged = [
        [distort(image, task, rng) for image, task in zip(images[order], row, strict=True)]
        for row in damage
    ]
    return np.stack([images[order], *np.array(damaged)]), labels[order]


def train(recipe: Recipe) -> NDArray[np.float16]:
    """Train one model and run it on the benchmark.

    Returns
    -------
    probabilities : ndarray of shape (1000, 10)
        As `on_grid` rounds them.
    """
    images, labels, settings = lessons(recipe)
    view, build = LINEAGES[recipe.family]
    model = build(settings)
    # One thread: a different order of summation would change last digits, and with them some ties.
    with threadpool_limits(1), warnings.catch_warnings():
        # Cut short on purpose: an unfinished model is a weaker model.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The corners of the images hold no ink, which the centroids' shrinking remarks upon.
        warnings.filterwarnings("ignore", "self.within_class_std_dev_ has at least 1 zero")
        model.fit(view(images), labels)
        seen = view(benchmark().images)
        if hasattr(model, "predict_proba"):
            probabilities: Floats = model.predict_proba(seen)
        else:
            probabilities = softmax(1.5 * model.decision_function(seen), axis=1)
    return on_grid(probabilities)


def on_grid(probabilities: Floats) -> NDArray[np.float16]:
    """Rounded to multiples of 1/128 such that rows sum to 1 and the favourite stays the only one.

    Parameters
    ----------
    probabilities : ndarray of shape (n, 10)

    Returns
    -------
    ndarray of shape (n, 10)
        The largest remainders are rounded up, the others down. Where the favourite (the first of
        equals) would then tie with another option, it takes one 128th from that option.
    """
    rows = np.arange(len(probabilities))
    favourite = probabilities.argmax(axis=1)
    exact = probabilities / probabilities.sum(axis=1, keepdims=True) * _GRID
    units = np.floor(exact)
    missing = _GRID - units.sum(axis=1, keepdims=True)
    place = np.argsort(np.argsort(units - exact, axis=1, kind="stable"), axis=1)
    units += place < missing
    others = units.copy()
    others[rows, favourite] = -1
    rival = others.argmax(axis=1)
    short = units[rows, favourite] <= others[rows, rival]
    units[rows[short], favourite[short]] += 1
    units[rows[short], rival[short]] -= 1
    rounded: NDArray[np.float16] = (units / _GRID).astype(np.float16)
    return rounded


def make_zoo(n_jobs: int = 2) -> dict[str, NDArray[Any]]:
    """The arrays of the bundled file."""
    bench, models = benchmark(), recipes()
    # Fresh processes, for a fork may inherit a locked thread pool. A lineage at a time each: its
    # damaged images are made once in a process.
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        probabilities = np.stack(list(pool.map(train, models, chunksize=DESCENDANTS)))
    return {
        "scores": (probabilities.argmax(axis=2) == bench.gold).astype(np.uint8),
        "models": np.array([recipe.name for recipe in models]),
        "families": np.array([recipe.family for recipe in models]),
        "dates": np.array([recipe.date for recipe in models]),
        "items": np.array(bench.item_ids),
        "tasks": np.array(bench.tasks),
        "gold": bench.gold.astype(np.int8),
        "n_options": np.full(len(bench.gold), DIGITS, np.int8),
        "probabilities": probabilities,
    }


def main() -> None:
    """Write the file, or compare it with models trained anew."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the file, write nothing")
    parser.add_argument("--jobs", type=int, default=2, help="models trained at a time (default 2)")
    arguments = parser.parse_args()
    arrays = make_zoo(arguments.jobs)
    if arguments.check:
        with np.load(TARGET, allow_pickle=False) as stored:
            shares = {key: float(np.mean(arrays[key] != stored[key])) for key in arrays}
        differing = [f"{share:.2%} of {key}" for key, share in shares.items() if share]
        raise SystemExit(f"other than stored: {', '.join(differing)}" if differing else 0)
    written = TARGET.with_suffix(".tmp.npz")
    np.savez_compressed(written, allow_pickle=False, **arrays)
    written.replace(TARGET)
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
