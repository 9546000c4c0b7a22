"""Embeddings that a user gives: an array, a file, or a model in a local folder.

All know a hash of their content, so that a result is never taken for one of other embeddings.
Nothing is ever fetched from a network.
"""

import hashlib
import io
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fewbench._names import some
from fewbench._types import FloatArray
from fewbench.errors import MethodError, MissingExtraError, first_line
from fewbench.scores import Scores

ARRAYS = "write it with numpy.savez(FILE, items=ids, embeddings=vectors)"


class Vectors:
    """One vector an item, with the items' ids or in the items' order.

    Parameters
    ----------
    values : ndarray, shape (n, d)
        Numbers, all finite.
    items : ndarray of str, shape (n,), optional
        Ids; without them the vectors are in the order of the items.
    where : str
        What messages call them.
    digest : str, optional
        Hash of the content; by default of the values.

    Raises
    ------
    MethodError
        If the values are no such array, or an id appears twice.
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
        self.digest = (
            digest
            or hashlib.sha256(repr(self.values.shape).encode() + self.values.tobytes()).hexdigest()[
                :12
            ]
        )

    def of(self, scores: Scores) -> FloatArray:
        """Return the vectors of the scores' items, in their order, shape (items, d)."""
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
                hint=f"its items look like {some(self.index[:2])}; those of other items may stay",
            )
        return self.values[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vectors) and (self.digest, self.where) == (
            other.digest,
            other.where,
        )

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
            hint="every item needs a whole vector",
        )
    copy = given.astype(np.float64, order="C")
    copy.flags.writeable = False
    return copy


def read_vectors(path: str | os.PathLike[str]) -> Vectors:
    """Read embeddings from a .npz with arrays `items` and `embeddings`, or a .npy in item order.

    Read once, and again when the file has changed.

    Raises
    ------
    MethodError
        If there is no such file, or it is not one of these.
    """
    source = Path(path)
    try:
        now = source.stat()
    except OSError as error:
        raise MethodError(
            f"{source}: no such file", hint="embeddings=FILE.npz or FILE.npy, from this folder"
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
        found = np.load(io.BytesIO(content), allow_pickle=False)
        arrays = {"": found} if isinstance(found, np.ndarray) else {n: found[n] for n in found}
    except Exception as error:  # numpy's parsers let through errors of all kinds
        reason = first_line(error)
        if "pickle" in reason or "Object arrays" in reason:
            reason = "it holds no plain numbers and texts"
        raise MethodError(
            f"{source}: cannot be read as .npz or .npy ({reason})", hint=f"{ARRAYS}; ids as text"
        ) from error
    if "" in arrays:
        return Vectors(arrays[""], where=str(source), digest=digest)
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
    """A model2vec model in a local folder; called with texts, it returns their embeddings.

    Parameters
    ----------
    folder : str
    digest : str
        Hash of the folder's files and of model2vec's version (see `local_model`).
    """

    folder: str
    digest: str

    def __call__(self, texts: list[str]) -> NDArray[Any]:
        """Embed texts whole, shape (n, d)."""
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

    Raises
    ------
    MethodError
        If there is no such folder: a name is never looked up anywhere else.
    MissingExtraError
        If model2vec is not installed.
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
