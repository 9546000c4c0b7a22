"""Clustering of the items' texts: k-means within each task, the item nearest each centre.

The baseline "clustering (semantic)" of Two-Stage Collaborative Filtering (3.3, Eq. 5). The paper
embeds questions by Sentence-BERT; here embeddings are given, or made from the texts by TF-IDF and
singular value decomposition, or by a small model that lies in a local folder.
"""

import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict

from fewbench._names import some
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.embeddings import tfidf_embeddings
from fewbench.errors import MethodError
from fewbench.methods.needs import Extra, Need, item_texts
from fewbench.methods.selection.clusters import cluster_subset
from fewbench.methods.selection.vectors import Vectors, checked, local_model, read_vectors
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_number
from fewbench.scores import Scores

Embedder = Callable[[list[str]], NDArray[Any]]


@dataclass(frozen=True)
class TfIdf:
    """Texts to vectors by `tfidf_embeddings`."""

    dimensions: int

    def __call__(self, texts: list[str]) -> FloatArray:
        """Embed texts, shape (n, d)."""
        return tfidf_embeddings(texts, self.dimensions)


@dataclass(frozen=True)
class Semantic:
    """Items nearest the k-means centres of each task's embedded texts.

    Embeddings are those given; else those of the model that is given; else they are made of the
    items' column `text` by TF-IDF and truncated SVD. Sources play no part in the choice.

    Parameters
    ----------
    embeddings : path, ndarray or callable, optional
        A .npz with arrays `items` (ids) and `embeddings` (n × d); a .npy, or an array, in the
        order of the items; or a function of a list of texts that returns n × d numbers. Of a
        function the last few results are kept, if it can be hashed.
    model : path, optional
        Local folder of a model2vec model; needs the extra `text`. Not with `embeddings`.
    dimensions : int
        Kept by the SVD.
    restarts : int
        Random starts of k-means; the best is kept.
    hash : str, optional
        What `describe` says of the content of a file, array or model: another is an error.
    """

    embeddings: str | os.PathLike[str] | NDArray[Any] | Vectors | Embedder | None = None
    model: str | os.PathLike[str] | None = None
    dimensions: int = 100
    restarts: int = 1
    hash: str | None = None
    __pydantic_config__: ClassVar = ConfigDict(arbitrary_types_allowed=True)

    def __post_init__(self) -> None:
        if isinstance(self.embeddings, np.ndarray):  # kept apart from the caller, and comparable
            object.__setattr__(self, "embeddings", Vectors(self.embeddings))

    @property
    def needs(self) -> tuple[Need, ...]:
        """The items' text, unless their embeddings are given."""
        if isinstance(self.embeddings, (str, os.PathLike, Vectors)):
            return ()
        without = "nothing to cluster; import a column text, or give embeddings"
        return (Need("text", 1, without, required=True),)

    @property
    def extras(self) -> tuple[Extra, ...]:
        """What reads a given model."""
        return () if self.model is None else (Extra("text", "model2vec", "model2vec"),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster each task's items; weights are the clusters' shares of the full score."""
        check_number("restarts", self.restarts, 1, 1000)
        vectors = self._vectors(scores)

        def points(items: IntArray) -> FloatArray:
            # About their mean, so that distances keep their digits wherever the vectors lie.
            return np.asarray(vectors[items] - vectors[items].mean(axis=0))

        return cluster_subset(scores, points, budget, seed, self.restarts)

    def describe(self) -> str:
        """Return the settings as the command line writes them, and a hash of given content."""
        source, given = self._source(), self.embeddings
        settings = {}
        if isinstance(given, (str, os.PathLike)):
            settings["embeddings"] = os.fspath(given)
        elif isinstance(given, Vectors):
            settings["embeddings"] = "array"
        elif given is not None:
            settings["embeddings"] = getattr(given, "__qualname__", type(given).__name__)
        elif self.model is not None:
            settings["model"] = os.fspath(self.model)
        elif self.dimensions != Semantic.dimensions:
            settings["dimensions"] = str(self.dimensions)
        if self.restarts != Semantic.restarts:
            settings["restarts"] = str(self.restarts)
        if digest := getattr(source, "digest", None):
            settings["hash"] = digest
        written = ",".join(f"{key}={value}" for key, value in settings.items())
        return f"semantic({written})" if written else "semantic"

    def _source(self) -> Vectors | Embedder:
        """Return what gives the embeddings, and check that it is what it was said to be."""
        if self.embeddings is not None and self.model is not None:
            raise MethodError("semantic has both embeddings and a model", hint="give one of them")
        check_number("dimensions", self.dimensions, 1)
        source: Vectors | Embedder
        if isinstance(self.embeddings, (str, os.PathLike)):
            source = read_vectors(self.embeddings)
        elif self.model is not None:
            source = local_model(self.model)
        elif self.embeddings is None:
            source = TfIdf(self.dimensions)
        else:
            source = self.embeddings  # type: ignore[assignment]  # arrays became Vectors
        digest = getattr(source, "digest", None)
        if self.hash is not None and self.hash != digest:
            what = self.model or (
                self.embeddings if isinstance(self.embeddings, (str, Path)) else "the embeddings"
            )
            raise MethodError(
                f"{what}: the content has hash {digest or 'none'}, not {self.hash}",
                hint="put the same content back, or leave hash out to take it as it is; of a "
                "model, the hash is also of model2vec's version",
            )
        return source

    def _vectors(self, scores: Scores) -> FloatArray:
        """Return the items' embeddings, shape (items, d)."""
        source = self._source()
        if isinstance(source, Vectors):
            return source.of(scores)
        texts = item_texts(scores)
        blank = [item for item, text in zip(scores.item_ids, texts, strict=True) if not text]
        if blank:
            raise MethodError(
                f"{len(blank)} of {scores.n_items} items have no text: {some(blank)}",
                hint="import the scores with --items FILE, a table with columns item and text; or "
                "give embeddings=FILE.npz with arrays items and embeddings",
            )
        embed = _kept if isinstance(source, Hashable) else _embed
        found = embed(source, tuple(texts))
        if len(found) != len(texts):
            raise MethodError(f"the embeddings: {len(found)} rows for {len(texts)} texts")
        return found


def _embed(embed: Embedder, texts: tuple[str, ...]) -> FloatArray:
    return checked(embed(list(texts)), "the embeddings")


# Every repeat, budget and fold of a comparison embeds the same texts.
_kept = lru_cache(maxsize=4)(_embed)
