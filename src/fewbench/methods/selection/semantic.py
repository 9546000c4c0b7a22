"""Clustering of the items' texts: k-means within each task, the item nearest each center.

The baseline "clustering (semantic)" of Two-Stage Collaborative Filtering (3.3, Eq. 5). The paper
embeds questions by Sentence-BERT. Here embeddings are given as an array or file, or made from the
texts by TF-IDF and singular value decomposition (latent semantic analysis: Deerwester et al. 1990,
"Indexing by latent semantic analysis"), or by a small model in a local folder. Each source has a
hash of its content, so that results of other embeddings are not mixed up. Nothing is downloaded.
"""

import hashlib
import io
import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ConfigDict

from fewbench._names import some
from fewbench._threads import one_thread
from fewbench._types import FloatArray, IntArray
from fewbench.errors import MethodError, MissingExtraError, first_line
from fewbench.methods.needs import Extra, Need, item_texts, require
from fewbench.methods.selection.clusters import cluster_subset
from fewbench.methods.subset import Subset
from fewbench.methods.written import check_hash, check_number
from fewbench.scores import Scores

TOKEN = r"\w+|[^\w\s]"
"""Words of any length and single signs, so that '3 + 4' has three tokens."""


def tfidf_embeddings(texts: Sequence[str], dimensions: int = 100) -> FloatArray:
    """Embed texts, none blank, by the words that they share; rarer words count more; shape (n, d).

    Keeps `dimensions` singular vectors. With no more texts or words than that, the weighted words
    themselves are returned: longer vectors with the same distances. Rows have length 1, so
    distances follow cosine similarity, or 0 if the kept vectors have none of a text's words. The
    same texts always give the same array.

    >>> rows = tfidf_embeddings(["a red apple", "an apple, red", "the moons of Mars"])
    >>> similar = rows @ rows.T
    >>> bool(similar[0, 1] > similar[0, 2] == 0)
    True
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(token_pattern=TOKEN, sublinear_tf=True).fit_transform(texts)
    if min(words.shape) <= dimensions:
        return np.asarray(words.toarray(), dtype=np.float64)
    with one_thread():
        # `transform` gives the same row for the same text to the last bit, unlike `fit_transform`.
        rows = TruncatedSVD(dimensions, random_state=0).fit(words).transform(words)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


ARRAYS = "write it with numpy.savez(FILE, items=ids, embeddings=vectors)"


class Vectors:
    """One vector per item, with the items' ids or in the order of the items.

    - `values`, shape (n, d): Finite numbers.
    - `items`, shape (n,): Ids; without them the vectors are in the order of the items.
    - `where`: Name in messages.
    - `digest`: Hash of the content; by default of the values.

    Raises MethodError if the values are not such an array, or an id appears twice.
    """

    def __init__(
        self,
        values: NDArray[Any],
        items: NDArray[Any] | None = None,
        where: str = "the embeddings",
        digest: str | None = None,
    ) -> None:
        self.values = checked(values, where)
        self.index = None if items is None else _index(items, len(self.values), where)
        self.where = where
        if not digest:
            content = repr(self.values.shape).encode() + self.values.tobytes()
            digest = hashlib.sha256(content).hexdigest()[:12]
        self.digest = digest

    def of(self, scores: Scores) -> FloatArray:
        """Return the vectors of the scores' items, in order, shape (items, d)."""
        if self.index is None:
            if len(self.values) != scores.n_items:
                raise MethodError(
                    f"{self.where}: {len(self.values)} rows for {scores.n_items} items",
                    hint="give one row for each item, in the order of the scores; or name the "
                    "items: " + ARRAYS,
                )
            return self.values
        at = self.index.get_indexer(pd.Index(scores.item_ids))
        lacking = scores.item_ids[at < 0]
        if len(lacking):
            raise MethodError(
                f"{self.where}: no embedding for {len(lacking)} of {scores.n_items} items: "
                f"{some(lacking)}",
                hint=f"its items look like {some(self.index[:2])}; other items are ignored",
            )
        return self.values[at]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vectors):
            return False
        return (self.digest, self.where) == (other.digest, other.where)

    def __hash__(self) -> int:
        return hash(self.digest)


def checked(values: Any, where: str) -> FloatArray:
    """Return a read-only copy of embeddings; MethodError unless they are n × d finite numbers."""
    given = np.asarray(values)
    if given.dtype.kind not in "fiu":
        raise MethodError(f"{where}: values of type {given.dtype}, not numbers")
    if given.ndim != 2 or 0 in given.shape:
        raise MethodError(
            f"{where}: an array of shape {given.shape}", hint="use items × dimensions"
        )
    bad = np.flatnonzero(~np.isfinite(given).all(axis=1))
    if len(bad):
        raise MethodError(
            f"{where}: {len(bad)} rows hold NaN or infinity, first row {bad[0] + 1}",
            hint="each item needs a finite vector",
        )
    copy = given.astype(np.float64, order="C")
    copy.flags.writeable = False
    return copy


def read_vectors(path: str | os.PathLike[str]) -> Vectors:
    """Read embeddings from a .npz with arrays `items` and `embeddings`.

    A file is read again only if it has changed. MethodError if there is no such file.
    """
    source = Path(path)
    try:
        now = source.stat()
    except OSError as error:
        raise MethodError(
            f"{source}: no such file", hint="embeddings=FILE.npz, from this folder"
        ) from error
    return _read(source, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=2)
def _read(source: Path, changed: int, size: int) -> Vectors:
    try:
        content = source.read_bytes()
    except OSError as error:
        raise MethodError(f"{source}: cannot be read ({error.strerror})") from error
    digest = hashlib.sha256(content).hexdigest()[:12]
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            arrays = dict(found)
    except Exception as error:  # numpy's parsers let through errors of all kinds
        reason = first_line(error)
        if "pickle" in reason or "Object arrays" in reason:
            reason = "it holds no plain numbers and texts"
        raise MethodError(
            f"{source}: cannot be read as .npz ({reason})", hint=f"{ARRAYS}; ids as text"
        ) from error
    lacking = sorted({"items", "embeddings"} - set(arrays))
    if lacking:
        raise MethodError(
            f"{source}: no array {some(lacking)}; it has {some(arrays) or 'none'}", hint=ARRAYS
        )
    return Vectors(arrays["embeddings"], arrays["items"], str(source), digest)


def _index(items: NDArray[Any], rows: int, where: str) -> "pd.Index[Any]":
    if items.ndim != 1 or items.dtype.kind not in "Uiu":
        raise MethodError(
            f"{where}: items of type {items.dtype} and shape {items.shape}",
            hint="they are the items' ids: a list of texts",
        )
    if len(items) != rows:
        raise MethodError(f"{where}: {len(items)} items and {rows} embeddings")
    index = pd.Index([str(item) for item in items], dtype=object)
    if not index.is_unique:
        raise MethodError(f"{where}: items appear twice: {some(index[index.duplicated()])}")
    return index


@dataclass(frozen=True)
class LocalModel:
    """A model2vec model in a local folder; call it with texts to embed them.

    `digest` is a hash of the folder's files and of model2vec's version.
    """

    folder: str
    digest: str

    def __call__(self, texts: list[str]) -> NDArray[Any]:
        """Embed whole texts, shape (n, d)."""
        from model2vec import StaticModel

        try:
            model = StaticModel.from_pretrained(self.folder)
        except Exception as error:  # a library's, of whatever kind
            raise MethodError(
                f"{self.folder}: cannot be loaded as a model2vec model ({first_line(error)})",
                hint="model=FOLDER is one that StaticModel.save_pretrained wrote",
            ) from error
        return np.asarray(model.encode(texts, max_length=None, use_multiprocessing=False))


def local_model(folder: str | os.PathLike[str]) -> LocalModel:
    """Return the model of a local folder.

    Raises MethodError if there is no such folder: names are never looked up elsewhere.

    Raises MissingExtraError if model2vec is not installed.
    """
    source = Path(folder)
    if not source.is_dir():
        raise MethodError(
            f"{source}: no such folder",
            hint="model=FOLDER, with a model2vec model in it; fewbench downloads none",
        )
    try:
        installed = version("model2vec")
    except PackageNotFoundError as error:
        raise MissingExtraError(
            "embedding texts by a model needs model2vec", hint="pip install 'fewbench[text]'"
        ) from error
    files = tuple(
        (str(path), path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(source.rglob("*"))
        if path.is_file()
    )
    return LocalModel(str(source.absolute()), _digest_of(str(source), files, installed))


@lru_cache(maxsize=8)
def _digest_of(folder: str, files: tuple[tuple[str, int, int], ...], installed: str) -> str:
    digest = hashlib.sha256(f"model2vec {installed}\n".encode())
    for path, _, size in files:
        digest.update(f"{Path(path).relative_to(folder).as_posix()}\0{size}\0".encode())
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()[:12]


Embedder = Callable[[list[str]], NDArray[Any]]


@dataclass(frozen=True)
class TfIdf:
    """Embeds texts by `tfidf_embeddings`."""

    dimensions: int

    def __call__(self, texts: list[str]) -> FloatArray:
        """Embed texts, shape (n, d)."""
        return tfidf_embeddings(texts, self.dimensions)


@dataclass(frozen=True)
class Semantic:
    """Items nearest the k-means centers of each task's embedded texts.

    Embeddings come from `embeddings`, else from `model`, else from the items' column `text` by
    TF-IDF and truncated SVD. The sources do not affect the choice.

    - `embeddings`: A .npz with arrays `items` (ids) and `embeddings` (n × d); an array in the order
      of the items; or a function from a list of texts to n × d numbers. The last few
      results of a hashable function are kept.
    - `model`: Local folder of a model2vec model; needs the extra `text`. Not with `embeddings`.
    - `dimensions`: Dimensions kept by the SVD.
    - `restarts`: Random starts of k-means; the best is kept.
    - `hash`: Hash of a file, array or model from `describe`; other content is an error.
    """

    embeddings: str | os.PathLike[str] | NDArray[Any] | Vectors | Embedder | None = None
    model: str | os.PathLike[str] | None = None
    dimensions: int = 100
    restarts: int = 1
    hash: str | None = None
    __pydantic_config__: ClassVar = ConfigDict(arbitrary_types_allowed=True)

    def __post_init__(self) -> None:
        if isinstance(self.embeddings, np.ndarray):  # a copy that can be compared
            object.__setattr__(self, "embeddings", Vectors(self.embeddings))

    @property
    def needs(self) -> tuple[Need, ...]:
        """The items' text, unless embeddings are given."""
        if isinstance(self.embeddings, (str, os.PathLike, Vectors)):
            return ()
        without = "nothing to cluster; import a column text, or give embeddings"
        return (Need("text", 1, without, required=True),)

    @property
    def extras(self) -> tuple[Extra, ...]:
        """The package that reads a given model."""
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
        """Return the checked source of the embeddings."""
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
        given = self.embeddings if isinstance(self.embeddings, (str, Path)) else "the embeddings"
        check_hash(self.model or given, digest, self.hash)
        return source

    def _vectors(self, scores: Scores) -> FloatArray:
        """Return the items' embeddings, shape (items, d)."""
        source = self._source()
        if isinstance(source, Vectors):
            return source.of(scores)
        texts = item_texts(scores)
        require(self, scores)
        embed = _kept if isinstance(source, Hashable) else _embed
        found = embed(source, tuple(texts))
        if len(found) != len(texts):
            raise MethodError(f"the embeddings: {len(found)} rows for {len(texts)} texts")
        return found


def _embed(embed: Embedder, texts: tuple[str, ...]) -> FloatArray:
    return checked(embed(list(texts)), "the embeddings")


# Every repeat, budget and fold of a comparison embeds the same texts.
_kept = lru_cache(maxsize=4)(_embed)
