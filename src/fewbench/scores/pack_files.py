"""Pack files: one safetensors file, which holds arrays and text, and nothing that is executed.

The metadata describes every part as JSON. An array is named by its part's position, as in
`0/kept`. The array `sha256` is the hash of the description and of all other arrays.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from fewbench._content import refuse_pointer
from fewbench._files import written_whole
from fewbench._json import parse_json
from fewbench._lazy import pandas as pd
from fewbench._memory import check_fits
from fewbench._names import counted, did_you_mean
from fewbench._text import quoted
from fewbench._types import FloatArray
from fewbench.errors import FewbenchError, MissingFileError, PackError, first_line
from fewbench.scores.benchmark import Average
from fewbench.scores.cells import ChosenAnswers, frozen
from fewbench.scores.scale import Scale
from fewbench.scores.table import Origin, Scores

SUFFIX = ".few"
SCHEMA = 1
DESCRIPTION, CHECKSUM = "fewbench", "sha256"
MOST_FILE = 256 * 2**20
"""Largest pack file, in bytes."""

Cell = str | int | float | bool | None


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)


class PartRecord(_Record):
    """One benchmark of a pack.

    Attributes
    ----------
    name : str
    keeps : str
        "answers": the source models' answers on the chosen items; "table": on all items.
    provenance, subset
        See `fewbench.scores.table.Origin`.
    scale : tuple
        Lowest and highest score, and whether lower is better.
    items, models : mapping of str to list
        Columns; "item" and "model" hold the ids.
    backtest : list of dict
        The method's errors on held-out source models, by relation of targets and sources.
    """

    name: str = Field(min_length=1)
    keeps: Literal["answers", "table"]
    provenance: dict[str, Cell]
    subset: dict[str, Any] | None
    scale: list[float | bool] = Field(min_length=3, max_length=3)
    average: Average
    is_binary: bool
    items: dict[str, list[Cell]]
    models: dict[str, list[Cell]]
    notes: list[str]
    backtest: list[dict[str, Cell]]


class PackRecord(_Record):
    """Description of a pack; `parts` are its benchmarks."""

    schema_version: int
    name: str
    license: str | None
    cite: str | None
    is_anonymous: bool
    created: str
    version: str
    parts: list[PartRecord] = Field(min_length=1)


@dataclass(frozen=True, eq=False)
class Part:
    """One benchmark of a pack in memory: its description and its arrays by name."""

    record: PartRecord
    arrays: Mapping[str, NDArray[Any]]


def is_pack(path: str | os.PathLike[str]) -> bool:
    """Return whether a path names a pack, or one benchmark of a pack (`FILE.few:NAME`).

    >>> is_pack("mmlu.few"), is_pack("mmlu.few:anatomy"), is_pack("mmlu.parquet")
    (True, True, False)
    """
    return pack_file(path)[0].suffix == SUFFIX


def pack_file(path: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Return the file and the name of the benchmark in it if the path names one.

    >>> pack_file("mmlu.few:anatomy")[1]
    'anatomy'
    """
    text = os.fspath(path)
    head, separator, name = text.partition(f"{SUFFIX}:")
    return (Path(head + SUFFIX), name) if separator else (Path(text), None)


# -- write -----------------------------------------------------------------------------------


def encode_scores(scores: Scores, items: NDArray[Any] | None = None) -> dict[str, NDArray[Any]]:
    """Return arrays that hold the answers to these items (default: all).

    Right and wrong answers take a bit each; other scores are numbers of a list of levels.
    """
    at = np.arange(scores.n_items) if items is None else items
    values = scores.cells[:, at]
    run = ~np.isnan(values)
    levels = np.unique(values[run])
    arrays: dict[str, NDArray[Any]] = {}
    if not run.all():
        arrays["run"] = np.packbits(run)
        if items is not None:
            arrays["filled"] = scores.filled_cells[:, at][~run]
    if np.isin(levels, (0.0, 1.0)).all():
        arrays["right"] = np.packbits(np.where(run, values, 0) > 0)
    else:
        codes = np.searchsorted(levels, np.where(run, values, levels[0]))
        arrays["levels"] = levels
        arrays["codes"] = codes.astype(np.min_scalar_type(len(levels)))
    if items is not None:
        arrays["kept"] = at.astype(np.int32)
        arrays["full"], arrays["tasks"] = scores.full_scores(), scores.task_scores()
    return arrays


def write_pack(path: Path, record: PackRecord, arrays: list[Mapping[str, NDArray[Any]]]) -> None:
    """Write a pack; the file appears whole or not at all. `arrays` are those of each part."""
    tensors = {
        f"{at}/{name}": np.asarray(array, order="C")
        for at, of_part in enumerate(arrays)
        for name, array in of_part.items()
    }
    text = record.model_dump_json()
    tensors[CHECKSUM] = _checksum(text, tensors)
    with written_whole(path) as temporary:
        # A second text of metadata would change places from file to file.
        save_file(tensors, temporary, {DESCRIPTION: text})


def _checksum(text: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the SHA-256 of a description and of arrays but itself, shape (32,)."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays.keys() - {CHECKSUM}):
        digest.update(repr((name, arrays[name].dtype.str, arrays[name].shape)).encode())
        digest.update(arrays[name].tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


# -- read ------------------------------------------------------------------------------------


def read_pack(path: str | os.PathLike[str]) -> tuple[PackRecord, list[Part]]:
    """Read a pack file.

    Raises
    ------
    PackError
        If it is not a pack, of a newer schema, damaged, or larger than a pack may be.
    """
    source = Path(path)
    if not source.is_file():
        raise MissingFileError(f"{source}: no such file")
    refuse_pointer(source, PackError)
    if source.stat().st_size > MOST_FILE:
        raise PackError(
            f"{source}: larger than a pack, which has at most {MOST_FILE / 2**20:,.0f} MB",
            hint="fetch or make the pack again",
        )
    try:
        with safe_open(source, "numpy") as file:
            text = (file.metadata() or {})[DESCRIPTION]
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if not np.array_equal(arrays[CHECKSUM], _checksum(text, arrays)):
            raise ValueError("its content does not fit its checksum")
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"the array {name!r} has numbers that are not finite")
    except KeyError as error:
        raise _damaged(source, f"it has no {error}") from error
    except SafetensorError as error:
        raise _damaged(source, "the file is cut off or not a pack") from error
    except (OSError, TypeError, ValueError) as error:
        raise _damaged(source, first_line(error)) from error
    record = _described(source, text)
    parts = []
    for at, part in enumerate(record.parts):
        start = f"{at}/"
        of_part = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
        parts.append(Part(part, of_part))
    return record, parts


def open_packed(path: str | os.PathLike[str]) -> Scores:
    """Read the scores of a pack, or of one benchmark of it (`FILE.few:NAME`).

    Raises PackError as `read_pack` does, and if the pack has several benchmarks and none is named.
    """
    source, name = pack_file(path)
    _, parts = read_pack(source)
    return scores_of(source, choose_part(source, parts, name))


def choose_part(source: Path, parts: list[Part], name: str | None) -> Part:
    """Return the part of a name; the only one without a name."""
    names = [part.record.name for part in parts]
    if name is None and len(parts) == 1:
        return parts[0]
    if name is None:
        raise PackError(
            f"{source}: the pack has {len(parts)} benchmarks",
            hint=f"name one: {source}:{names[0]}; fewbench pack show {quoted(source)} lists them",
        )
    if name not in names:
        raise PackError(
            f"{source}: no benchmark {name!r}", hint=did_you_mean(name, names), kind="unknown"
        )
    return parts[names.index(name)]


def scores_of(source: Path, part: Part) -> Scores:
    """Return the scores of a part; PackError if its content does not fit together."""
    try:
        return _scores(part)
    except FewbenchError as error:
        raise PackError(f"{source}: {error.message}", hint=_AGAIN, kind="damaged") from error
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise _damaged(source, f"its content does not fit together: {first_line(error)}") from error


_AGAIN = "fetch or make the pack again"


def _damaged(source: Path, why: str) -> PackError:
    return PackError(f"{source}: not a whole pack: {why}", hint=_AGAIN, kind="damaged")


def _described(source: Path, text: str) -> PackRecord:
    schema = parse_json(_Versioned, text, str(source), PackError).schema_version
    if schema != SCHEMA:
        raise PackError(
            f"{source}: a pack of schema {schema}; this fewbench reads {SCHEMA}",
            hint="upgrade fewbench" if schema > SCHEMA else "make the pack again",
        )
    return parse_json(PackRecord, text, str(source), PackError)


class _Versioned(BaseModel):
    schema_version: int = Field(strict=True)


def _scores(part: Part) -> Scores:
    record, arrays = part.record, part.arrays
    models, items = _table(record.models, "model"), _table(record.items, "item")
    low, high, lower_is_better = record.scale
    scale = Scale(float(low), float(high), bool(lower_is_better))
    learned = {k.partition("/")[2]: v for k, v in arrays.items() if k.startswith("learned/")}
    errors = {k.partition("/")[2]: v for k, v in arrays.items() if k.startswith("errors/")}
    sizes = {"items": len(items), "models": len(models), "tasks": len(set(record.items["task"]))}
    for name, array in learned.items():
        _check_learned(name, array, sizes)
    fingerprint = str(record.provenance["fingerprint"])
    origin = Origin(fingerprint, record.provenance, record.subset, errors, record.backtest)
    n_models, n_items = len(models), len(items)
    check_fits(16.0 * n_models * n_items, f"a pack of {n_models:,} models and {n_items:,} items")
    if record.keeps == "table":
        values = _values(arrays, n_models, n_items)
        table = Scores(values, models, items, None, scale, record.average, origin)
        if table.is_binary != record.is_binary:
            raise ValueError("scores are not of the stated kind")
        table.learned.update(learned)
        return table
    kept = arrays["kept"].astype(np.intp)
    if kept.ndim != 1 or not len(kept) or len(np.unique(kept)) < len(kept):
        raise ValueError("chosen items are missing or repeated")
    if kept.min() < 0 or kept.max() >= n_items:
        raise ValueError("chosen items are not among the items")
    values = _values(arrays, n_models, len(kept))
    filled = values
    if np.isnan(values).any():
        filled = values.copy()
        filled[np.isnan(values)] = _unit(arrays["filled"], (int(np.isnan(values).sum()),))
    if record.is_binary and not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        raise ValueError("scores are not of the stated kind")
    place = np.full(n_items, -1)
    place[kept] = np.arange(len(kept))
    full, by_task = (
        _unit(arrays["full"], (n_models,)),
        _unit(arrays["tasks"], (n_models, sizes["tasks"])),
    )
    of_whole = fingerprint, fingerprint, np.zeros(n_models)
    cells = ChosenAnswers(
        partial(_refuse, len(kept)), *of_whole, place, values, filled, full, by_task,
        record.is_binary,
    )  # fmt: skip
    sources = Scores(cast(FloatArray, cells), models, items, None, scale, record.average, origin)
    sources.learned.update(learned)
    chosen = None if record.subset is None else record.subset.get("items")
    if not isinstance(chosen, list) or set(chosen) != set(sources.item_ids[kept]):
        raise ValueError("the chosen items are not those with answers")
    return sources


def _refuse(count: int) -> NoReturn:
    kept = counted(count, "chosen item")
    raise PackError(
        f"the pack contains the source models' answers to its {kept} only",
        hint="use the table that the pack was made from",
        kind="unsupported",
    )


def _table(columns: Mapping[str, list[Cell]], label: str) -> "pd.DataFrame":
    ids = columns[label]
    if any(len(column) != len(ids) for column in columns.values()):
        raise ValueError(f"columns of the {label}s have different lengths")
    table = pd.DataFrame(index=pd.Index(np.array(ids, dtype=object)))
    for name, column in columns.items():
        if name != label:
            plain = {type(cell) for cell in column}
            table[name] = column if plain in ({int}, {float}) else np.array(column, dtype=object)
    return table


def _values(arrays: Mapping[str, NDArray[Any]], n_models: int, n_items: int) -> FloatArray:
    """Return answers in [0, 1], shape (models, items), NaN where an item was not run."""
    shape = (n_models, n_items)
    if "right" in arrays:
        values = _bits(arrays["right"], shape).astype(np.float64)
    else:
        levels, codes = _unit(arrays["levels"], (len(arrays["levels"]),)), arrays["codes"]
        if codes.shape != shape or codes.dtype.kind != "u":
            raise ValueError("answers have another shape than models and items")
        values = levels[codes]
    if "run" in arrays:
        values[_bits(arrays["run"], shape) == 0] = np.nan
    return frozen(values)


def _bits(packed: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.uint8]:
    count = shape[0] * shape[1]
    if packed.dtype != np.uint8 or packed.shape != (-(-count // 8),):
        raise ValueError("answers have another shape than models and items")
    return np.unpackbits(packed, count=count).reshape(shape)


def _unit(array: NDArray[Any], shape: tuple[int, ...]) -> FloatArray:
    if array.shape != shape or array.dtype != np.float64:
        raise ValueError(f"an array has shape {array.shape}, not {shape}")
    if array.size and (array.min() < -1e-9 or array.max() > 1 + 1e-9):
        raise ValueError("scores lie outside 0..1")
    return array


_LEARNED: dict[str, tuple[str, ...]] = {
    "reliability": (),
    "distinct sources": (),
    "models per group": (),
    "shared variance": (),
    "sampling effect": (),
    "difficulty": ("items",),
    "whole tasks": ("tasks",),
    "variances": ("wanted",),
    "expectation error": ("wanted",),
    "discrimination": ("items", "abilities"),
    "intercept": ("items",),
    "cuts": ("items",),
}
"""What is learned from a whole table, by the first or last words of its name, and its shape."""


def _check_learned(name: str, array: NDArray[Any], sizes: Mapping[str, int]) -> None:
    """Raise ValueError if what was learned has an unknown name or shape."""
    kinds = [kind for kind in _LEARNED if name.startswith(kind) or name.endswith(f" {kind}")]
    if not kinds:
        raise ValueError(f"{name!r} is of no known kind")
    lengths = {**sizes, "wanted": 1 + sizes["tasks"]}
    lengths["abilities"] = array.shape[-1] if array.ndim else 0  # any number
    shape = tuple(lengths[axis] for axis in _LEARNED[kinds[0]])
    if array.shape != shape:
        raise ValueError(f"{name!r} has shape {array.shape}, not {shape}")
