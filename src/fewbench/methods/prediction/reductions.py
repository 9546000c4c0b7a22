"""Fewer dimensions for a regression: none, PCA or UMAP, fitted on sources only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, cast

import numpy as np

from fewbench._types import FloatArray
from fewbench.errors import MissingExtraError
from fewbench.methods.needs import Extra
from fewbench.methods.written import check_number

Transform = Callable[[FloatArray], FloatArray]


class Reduction(Protocol):
    """Learns a map to fewer dimensions."""

    def fit(self, x: FloatArray, seed: int) -> Transform:
        """Return the map learned from x, shape (sources, features)."""


@dataclass(frozen=True)
class NoReduction:
    """All features as they are."""

    def fit(self, x: FloatArray, seed: int) -> Transform:
        """Return the identity."""
        return lambda rows: rows


@dataclass(frozen=True)
class PCA:
    """Principal components (DISCO's default: 256).

    Parameters
    ----------
    components : int
        At most; capped at sources - 1 and at the rank of the features.
    """

    components: int = 256

    def fit(self, x: FloatArray, seed: int) -> Transform:
        """Return the projection on the leading components of x."""
        check_number("components", self.components, 1)
        mean = x.mean(axis=0)
        _, s, axes = np.linalg.svd(x - mean, full_matrices=False)
        real = s > s.max(initial=0.0) * max(x.shape) * np.finfo(float).eps
        kept = axes[real][: min(self.components, max(len(x) - 1, 1))]
        # The sign of a component is arbitrary: its largest entry is made positive.
        lead = kept[np.arange(len(kept)), np.abs(kept).argmax(axis=1)] if len(kept) else kept[:, 0]
        kept = kept * np.sign(lead)[:, None]
        return lambda rows: np.asarray((rows - mean) @ kept.T)


@dataclass(frozen=True)
class UMAP:
    """Uniform manifold approximation (Table 2 d of DISCO); needs the extra `umap`.

    Parameters
    ----------
    components : int
        At most; capped at sources - 2.
    """

    components: int = 64
    extras: ClassVar[tuple[Extra, ...]] = (Extra("umap", "umap-learn", "umap"),)

    def fit(self, x: FloatArray, seed: int) -> Transform:
        """Return the map learned by umap-learn."""
        check_number("components", self.components, 1)
        try:
            import umap
        except ImportError as error:
            raise MissingExtraError(
                "the reduction 'umap' needs umap-learn", hint="pip install 'fewbench[umap]'"
            ) from error
        model = umap.UMAP(
            n_components=max(1, min(self.components, len(x) - 2)),
            n_neighbors=min(15, len(x) - 1),
            random_state=seed,
            n_jobs=1,
        ).fit(x)
        return lambda rows: cast(FloatArray, np.asarray(model.transform(rows), dtype=np.float64))
