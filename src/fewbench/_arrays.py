"""Dataclasses of arrays as arrays by name, and .npz files of them."""

import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from fewbench._files import written_whole
from fewbench._memory import check_arrays_memory
from fewbench.errors import FewbenchError

T = TypeVar("T")
DAMAGED = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, MemoryError),
    *(BadZipFile, zlib.error),
)
Arrays = Mapping[str, NDArray[Any]]


def to_arrays(one: Any, head: str = "") -> dict[str, NDArray[Any]]:
    """Return the fields of a dataclass by name: arrays, numbers, tuples of numbers or of texts.

    Fields that are such dataclasses, or tuples of them, become `field/name` and `field/0/name`.

    >>> from dataclasses import make_dataclass
    >>> to_arrays(make_dataclass("Pair", [("a", int), ("b", float)])(1, 0.5))
    {'a': array(1), 'b': array(0.5)}
    """
    arrays: dict[str, NDArray[Any]] = {}
    for field in fields(one):
        name, value = head + field.name, getattr(one, field.name)
        if is_dataclass(value):
            arrays |= to_arrays(value, f"{name}/")
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            arrays[name] = np.array(len(value))
            for at, part in enumerate(value):
                arrays |= to_arrays(part, f"{name}/{at}/")
        else:
            arrays[name] = np.asarray(value)
    return arrays


def from_arrays(kind: type[T], arrays: Arrays, head: str = "") -> T:
    """Return the dataclass of `to_arrays`, equal to the last digit; KeyError if a field lacks."""
    hints = get_type_hints(kind)
    return kind(**{name: _value(hints[name], arrays, head + name) for name in hints})


def _value(kind: Any, arrays: Arrays, name: str) -> Any:
    part = get_args(kind)[0] if get_origin(kind) is tuple else kind
    of_dataclass: bool = is_dataclass(part)
    if part is kind:
        if of_dataclass:
            return from_arrays(kind, arrays, f"{name}/")
        return arrays[name].item() if kind in (int, float) else arrays[name]
    if not of_dataclass:
        return tuple(arrays[name].tolist())
    return tuple(from_arrays(part, arrays, f"{name}/{at}/") for at in range(int(arrays[name])))


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write an .npz file if the folder can be written to."""
    with suppress(OSError), written_whole(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path, make: Callable[[dict[str, NDArray[Any]]], T]) -> T | None:
    """Return what an .npz file contains, or None if it is missing, damaged or unknown."""
    try:
        check_arrays_memory(path)
        with np.load(path, allow_pickle=False) as file:
            return make(dict(file))
    except (*DAMAGED, FewbenchError):
        return None
