"""Fits of the sources that an evaluation keeps, in memory and in its folder.

Fitting takes seconds on large tables, and each command that continues an evaluation would fit
again. A file `NAME-FINGERPRINT.npz` holds a fit as arrays, and a hash of what it was made of.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fewbench._arrays import from_arrays, read_arrays, to_arrays, write_arrays
from fewbench._version import __version__
from fewbench.scores import Scores

T = TypeVar("T")
MADE_OF = "made of"


class KeptFits:
    """The fits of one evaluation."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._made: dict[str, tuple[str, Any]] = {}  # by name: of what, and the fit

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have `kept` return and keep these fits until the block ends."""
        token = _in_use.set(self)
        try:
            yield
        finally:
            _in_use.reset(token)

    def keep_in(self, folder: Path) -> None:
        """Write the fits to a folder, and read them from there; deleted files are made again."""
        self._folder = folder
        for name in self._made:
            self._write(name)

    def get(self, name: str, made_of: str, kind: type[T], fit: Callable[[], T]) -> T:
        """Return a fit, made now if there is none of the same."""
        if name not in self._made or self._made[name][0] != made_of:
            earlier = None if self._folder is None else self._read(name, made_of, kind)
            self._made[name] = made_of, fit() if earlier is None else earlier
            if earlier is None:
                self._write(name)
        result: T = self._made[name][1]
        return result

    def _read(self, name: str, made_of: str, kind: type[T]) -> T | None:
        assert self._folder is not None

        def made(arrays: dict[str, Any]) -> T | None:
            return from_arrays(kind, arrays) if str(arrays[MADE_OF]) == made_of else None

        return read_arrays(self._folder / f"{name}.npz", made)

    def _write(self, name: str) -> None:
        if self._folder is not None:
            made_of, fit = self._made[name]
            arrays = {MADE_OF: np.array(made_of), **to_arrays(fit)}
            write_arrays(self._folder / f"{name}.npz", arrays)


_in_use: ContextVar[KeptFits | None] = ContextVar("_in_use", default=None)


def kept(
    scores: Scores, name: str, settings: tuple[Any, ...], kind: type[T], fit: Callable[[], T]
) -> T:
    """Return a fit of these sources, or fit them and keep the fit if an evaluation is at work.

    Parameters
    ----------
    scores : Scores
        The sources. A different table or average has fits of its own.
    name : str
        Kind of the fit; a later one of the same kind and sources replaces it.
    settings : tuple
        All else that the fit depends on.
    kind : type
        A dataclass (see `fewbench._arrays.to_arrays`).
    fit : callable
        Makes the fit.
    """
    fits = _in_use.get()
    if fits is None:
        return fit()
    made_of = repr((scores.fingerprint, *settings, __version__, np.__version__))
    name = f"{name}-{scores.fingerprint}"
    return fits.get(name, hashlib.sha256(made_of.encode()).hexdigest(), kind, fit)
