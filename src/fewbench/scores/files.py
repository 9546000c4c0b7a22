"""Scores on disk: a Parquet file, and option probabilities beside it.

`NAME.parquet` has one row per model and item (model, item, score in [0, 1], attributes); an empty
score was not run. A table of more than 8 million cells has one row per item (see `item_files`).
`NAME.probabilities.npy` has option probabilities, models first.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewbench._blocks import is_large
from fewbench._content import refuse_pointer
from fewbench._files import written_whole
from fewbench._json import loads
from fewbench._memory import check_table_memory
from fewbench.errors import FewbenchError, ScoresError, first_line
from fewbench.scores import item_files
from fewbench.scores.cells import Cells
from fewbench.scores.pack_files import is_pack, open_packed
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.scores.scale import Scale
from fewbench.scores.table import MODEL_ATTRIBUTES, Scores

FORMAT = 1
SAMPLED = 8  # models whose probabilities are checked when a file is loaded
# Raised when a description does not fit the content.
UNFIT = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


def save_scores(scores: Scores, path: str | os.PathLike[str]) -> Path:
    """Write scores to `path` (.parquet) and option probabilities beside it; return the path.

    Files appear whole or not at all.
    """
    import pyarrow.parquet as pq

    target = Path(path)
    if target.suffix != ".parquet":
        raise ScoresError(
            f"{target}: scores are saved as Parquet", hint=f"use {target.with_suffix('.parquet')}"
        )
    n_models, n_items = scores.cells.shape
    by_items = is_large(n_models * n_items)
    meta = {
        "format": FORMAT,
        "shape": [n_models, n_items],
        "model_columns": list(scores.models.columns),
        "item_columns": list(scores.items.columns),
        "scale": [scores.scale.low, scores.scale.high, scores.scale.lower_is_better],
        "average": scores.average,
        "probabilities": None,
    } | (item_files.layout(scores) if by_items else {})
    table = None if by_items else _long(scores)
    scores = _with_options_written(scores, target, meta)
    meta |= {"digest": scores.digest, "fingerprint": scores.fingerprint}
    raw = json.dumps(meta).encode()
    if table is None:
        item_files.write_by_items(scores, meta, raw, target)
        return target
    table = table.replace_schema_metadata({b"fewbench": raw})
    with written_whole(target) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return target


def _long(scores: Scores) -> Any:
    """Return a table with one row per model and item."""
    import pyarrow as pa

    n_models, n_items = scores.values.shape
    flat = scores.values.ravel()
    model_codes = np.repeat(np.arange(n_models), n_items)
    item_codes = np.tile(np.arange(n_items), n_models)
    columns: dict[str, Any] = {
        "model": _repeated(scores.models.index, model_codes),
        "item": _repeated(scores.items.index, item_codes),
        "score": pa.array(flat, mask=np.isnan(flat)),
    }
    for table, codes in ((scores.items, item_codes), (scores.models, model_codes)):
        for name in table.columns:
            if name in columns:
                raise ScoresError(f"an attribute may not be named {name!r}", hint="rename it")
            columns[name] = _repeated(table[name], codes)
    return pa.table(columns)


def _with_options_written(scores: Scores, target: Path, meta: dict[str, Any]) -> Scores:
    """Write option probabilities beside the file, and say so in its metadata."""
    options = scores.probabilities
    if options is not None:
        header = {
            "descr": np.lib.format.dtype_to_descr(options.dtype),
            "fortran_order": False,
            "shape": options.shape,
        }
        with written_whole(_beside(target)) as temporary, temporary.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for row in options.by_model():
                file.write(np.ascontiguousarray(row).tobytes())
        meta["probabilities"] = {
            "shape": options.shape,
            "dtype": options.dtype.str,
            "digest": (digest := options.digest()),
            "sample": options.digest(_sample(options)),
        }
        known = options.knowing(digest)  # read once, not twice
        scores = scores.changed(probabilities=known)
    return scores


def load_scores(path: str | os.PathLike[str]) -> Scores:
    """Read scores written by `save_scores`, or the scores of a pack.

    Option probabilities stay on disk until used.

    Of option probabilities, only the size and a few models are checked.

    Raises
    ------
    ScoresError
        If the file is not fewbench's, was changed, or lacks its option probabilities.
    """
    if is_pack(path):
        return open_packed(path)
    source = Path(path)
    with _opened(source) as (table, meta):
        scores = _rebuild(source, table, meta)
        if scores.digest != meta["digest"]:
            raise ScoresError(
                f"{source}: changed since fewbench wrote it", hint="read it with fewbench import"
            )
    return scores


def open_scores(path: str | os.PathLike[str]) -> Scores:
    """Read only the items of a scores file; models and cells are read when they are first used.

    Takes a few milliseconds where `load_scores` takes seconds. A changed file is found out when
    the cells are read. Raises the errors of `load_scores`.
    """
    if is_pack(path):
        return open_packed(path)
    source = Path(path)
    with _opened(source, only_items=True) as (table, meta):
        _check_format(source, meta)
        scores = _Unread.__new__(_Unread)
        vars(scores).update(
            source=source,
            n_in_file=meta["shape"][0],
            digest=meta["digest"],
            items=_items(table, meta),
            probabilities=_options(source, meta),
            scale=_scale(meta),
            average=meta["average"],
        )
        if set(meta["model_columns"]) <= set(MODEL_ATTRIBUTES):
            vars(scores)["fingerprint"] = meta["digest"]
        elif "fingerprint" in meta:
            vars(scores)["fingerprint"] = meta["fingerprint"]
        scores._check_items()
    return scores


class _Unread(Scores):
    """Scores in a file: `values` and `models` are there once they were used."""

    source: Path

    @property
    def n_models(self) -> int:
        """Number of models."""
        return vars(self).get("n_in_file") or len(self.models)

    def __getattr__(self, name: str) -> Any:
        if name not in ("values", "models"):
            raise AttributeError(name)
        if "models" in vars(self):  # read before, and held as bytes
            return super().__getattr__(name)  # type: ignore[misc]
        whole, opened = load_scores(self.source), self.digest
        if whole.digest != opened:
            raise ScoresError(f"{self.source}: changed while it was in use", hint="start again")
        vars(self).update({k: v for k, v in vars(whole).items() if k in ("values", "_cells")})
        vars(self)["models"] = whole.models
        return getattr(self, name)

    @property
    def _bytes(self) -> Cells | None:
        """The cells of a table that is held as bytes."""
        _ = self.models  # read by now
        return super()._bytes


@contextmanager
def _opened(source: Path, *, only_items: bool = False) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Give a file's table and metadata; errors inside name the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not source.is_file():
        raise ScoresError(f"{source}: no such file")
    refuse_pointer(source, ScoresError)
    if not only_items:
        check_table_memory(source)
    try:
        with pq.ParquetFile(source) as file:
            raw = (file.schema_arrow.metadata or {}).get(b"fewbench")
            table = None
            if raw is not None and (meta := loads(raw))["format"] == item_files.FORMAT:
                table = file.read(columns=["item", *meta["item_columns"]])
                if not only_items:
                    models = item_files.read_models(file.schema_arrow.metadata)
                    meta |= {"models": models, "cells": item_files.read_cells(file, meta)}
            elif raw is not None:
                table = _first_rows(file, meta)
                if not only_items:  # of the others' rows, not what they repeat of the items
                    columns = ["model", "score", *meta["model_columns"]]
                    meta |= {"cells": file.read(columns=columns)}
    except (KeyError, TypeError, json.JSONDecodeError):
        table = None  # said below
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ScoresError(
            f"{source}: not a whole Parquet file ({first_line(error)})",
            hint="read other files with fewbench import or fewbench.import_results",
        ) from error
    if raw is None:
        raise ScoresError(
            f"{source}: a Parquet file, but not scores saved by fewbench",
            hint="import it: fewbench import FILE --model COLUMN --item COLUMN --score COLUMN "
            "-o scores.parquet",
        )
    try:
        yield table, meta if table is not None else loads(raw)
    except FewbenchError as error:
        if str(source.parent / source.stem) in error.message:
            raise
        raise type(error)(f"{source}: {error.message}", hint=error.hint) from error
    except (*UNFIT, pa.ArrowException) as error:
        raise ScoresError(
            f"{source}: its metadata does not fit its content ({first_line(error)})",
            hint="a newer fewbench or another program wrote it; read it with fewbench import",
        ) from error


def _first_rows(file: Any, meta: dict[str, Any]) -> Any:
    """Read the rows of the first model, which hold all that is known of the items."""
    import pyarrow as pa

    n_items, batches = meta["shape"][1], []
    columns = ["item", *meta["item_columns"]]
    size = max(1, min(n_items, file.metadata.num_rows))
    for batch in file.iter_batches(batch_size=size, columns=columns):
        batches.append(batch)
        if sum(map(len, batches)) >= n_items:
            break
    return pa.Table.from_batches(batches)


def _rebuild(source: Path, table: Any, meta: dict[str, Any]) -> Scores:
    _check_format(source, meta)
    n_models, n_items = meta["shape"]
    items, options = _items(table, meta), _options(source, meta)
    if meta["format"] == item_files.FORMAT:
        told = meta["models"]
        models = pd.DataFrame(index=_column(told["model"]))
        for name in meta["model_columns"]:
            models[name] = _column(told[name])
        return Scores(meta["cells"], models, items, options, _scale(meta), meta["average"])
    told = meta["cells"]
    values = told["score"].to_numpy().astype(np.float64).reshape(n_models, n_items)
    values.flags.writeable = False  # so that Scores shares it
    first_models = np.arange(n_models) * n_items
    models = pd.DataFrame(index=_column(told["model"].take(first_models)))
    for name in meta["model_columns"]:
        models[name] = _column(told[name].take(first_models))
    return Scores(values, models, items, options, _scale(meta), meta["average"])


def _check_format(source: Path, meta: dict[str, Any]) -> None:
    if meta["format"] not in (FORMAT, item_files.FORMAT):
        raise ScoresError(
            f"{source}: scores of format {meta['format']}, this fewbench reads {FORMAT} and "
            f"{item_files.FORMAT}",
            hint="upgrade fewbench",
        )


def _items(table: Any, meta: dict[str, Any]) -> pd.DataFrame:
    head = table.slice(0, meta["shape"][1])
    items = pd.DataFrame(index=_column(head["item"]))
    for name in meta["item_columns"]:
        items[name] = _column(head[name])
    return items


def _scale(meta: dict[str, Any]) -> Scale:
    low, high, lower_is_better = meta["scale"]
    return Scale(low, high, lower_is_better)


def _options(source: Path, meta: dict[str, Any]) -> OptionProbabilities | None:
    if not meta["probabilities"]:
        return None
    beside = _beside(source)
    if not beside.is_file():
        raise ScoresError(
            f"{beside}: no such file, but the scores have option probabilities",
            hint="keep both files in one folder",
        )
    try:
        array = np.load(beside, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy's header parser lets through errors of all kinds
        raise ScoresError(
            f"{beside}: not a whole .npy file ({first_line(error)})", hint="copy it again"
        ) from error
    return _verified(array, meta["probabilities"], beside)


def _verified(array: Any, told: dict[str, Any], path: Path) -> OptionProbabilities:
    """Raise ScoresError unless a sample of the array is as written."""
    options = OptionProbabilities(array, known=told["digest"])
    if (
        list(options.shape) != told["shape"]
        or options.dtype.str != told["dtype"]
        or path.stat().st_size != array.offset + array.nbytes
        or options.digest(_sample(options)) != told["sample"]
    ):
        raise ScoresError(
            f"{path}: not the option probabilities saved with the scores",
            hint="copy both files again, or import the scores again",
        )
    return options


def _sample(options: OptionProbabilities) -> list[int]:
    return sorted({int(at) for at in np.linspace(0, options.shape[0] - 1, SAMPLED)})


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}.probabilities.npy")


def _repeated(values: Any, codes: Any) -> Any:
    """Encode a column as distinct values and codes."""
    import pyarrow as pa

    # Encoding before taking keeps an empty value out of the dictionary, where Parquet bars it.
    distinct = pa.array(pd.Series(values), from_pandas=True).dictionary_encode()
    return distinct.take(pa.array(codes, pa.int32()))


def _column(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.asarray(column.cast(kind).to_numpy(), dtype=object)
    return np.asarray(column.to_pylist())
