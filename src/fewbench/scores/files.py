"""Scores on disk: one Parquet file.

It has one row per model and item (model, item, score in [0, 1], attributes); an empty score was
not run. Where items were answered several times, `answers` and `answer_variance` say how often and
how differently (see `repeats`). A table of more than 8 million cells, with option probabilities or
without models has one row per item (see `item_files`). The table of models is also in the file's
metadata.
"""

import base64
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from fewbench._blocks import blocks, is_large
from fewbench._content import refuse_pointer
from fewbench._files import written_whole
from fewbench._json import loads
from fewbench._lazy import pandas as pd
from fewbench._memory import check_parquet, check_table_memory
from fewbench._types import FloatArray
from fewbench.errors import FewbenchError, MissingFileError, ScoresError, first_line
from fewbench.scores.cells import Unread, frozen
from fewbench.scores.item_files import (
    COUNTS,
    VARIANCES,
    layout,
    read_cells,
    read_options,
    read_repeats,
    write_by_items,
)
from fewbench.scores.item_files import FORMAT as BY_ITEMS
from fewbench.scores.pack_files import is_pack, open_packed
from fewbench.scores.repeats import Repeats
from fewbench.scores.roles import wrong_type
from fewbench.scores.scale import Scale
from fewbench.scores.table import Scores

FORMAT = 1
MODELS = b"fewbench.models"
WRITTEN_BY = "name a scores file; fewbench import and fewbench add write them"
# Raised when a description does not fit the content.
UNFIT = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError),
    struct.error,
)


def save_scores(scores: Scores, path: str | os.PathLike[str]) -> Path:
    """Write scores to `path` (.parquet), option probabilities included; return the path.

    The file appears whole or not at all.
    """
    import pyarrow.parquet as pq

    if not isinstance(scores, Scores):
        raise wrong_type(scores, "Scores")
    target = Path(path)
    if target.suffix != ".parquet":
        raise ScoresError(
            f"{target}: scores are saved as Parquet",
            hint=f"use {target.with_suffix('.parquet')}",
            kind="format",
        )
    stored, options = None, scores.probabilities
    if options is not None:
        options = options.knowing(options.digest())  # read once, not twice
        scores = scores.changed(probabilities=options)
        n_models, n_items, n_options = options.shape
        starts = [part.start for part in blocks(n_models, n_items * n_options)]
        stored = [options.digest(), options.dtype.str, n_options, starts]
    n_cells = scores.n_models * scores.n_items
    by_items = options is not None or not n_cells or is_large(n_cells)
    meta = {
        "format": FORMAT,
        "shape": [scores.n_models, scores.n_items],
        "item_columns": list(scores.items.columns),
        "scale": [scores.scale.low, scores.scale.high, scores.scale.lower_is_better],
        "average": scores.average,
        "probabilities": stored,
        "digest": scores.digest,
        "fingerprint": scores.fingerprint,
        "missing_shares": scores.missing_shares.tolist(),
        "repeats": scores.repeats is not None,
    } | (layout(scores) if by_items else {})
    metadata = {b"fewbench": json.dumps(meta).encode(), MODELS: _packed(scores.models)}
    if by_items:
        write_by_items(scores, meta, metadata, target)
        return target
    table = _long(scores).replace_schema_metadata(metadata)
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
    if scores.repeats is not None:
        spread = scores.repeats.variances.ravel()
        columns[COUNTS] = pa.array(scores.repeats.counts.ravel())
        columns[VARIANCES] = pa.array(spread, mask=np.isnan(spread))
    for table, codes in ((scores.items, item_codes), (scores.models, model_codes)):
        for name in table.columns:
            if name in columns:
                raise ScoresError(f"an attribute may not be named {name!r}", hint="rename it")
            columns[name] = _repeated(table[name], codes)
    return pa.table(columns)


def open_saved(path: str | os.PathLike[str]) -> Scores:
    """Open a pack, or a file that `save_scores` wrote; cells are read when they are first used.

    Option probabilities stay on disk until used, and are checked then.

    Raises
    ------
    ScoresError
        If the file is not fewbench's; where cells are used, if it was changed.
    PackError
        If the pack is damaged; where cells are used, if it contains only the chosen items.
    """
    if is_pack(path):
        return open_packed(path)
    source = Path(path)
    with _open_parquet(source) as (parts, meta, _):
        read_cells = partial(_read_cells, source, meta["digest"])
        shares = np.array(meta["missing_shares"], dtype=np.float64)
        unread = Unread(read_cells, str(meta["digest"]), str(meta["fingerprint"]), shares)
        return Scores(cast(FloatArray, unread), **parts)


def is_saved(path: Path) -> bool:
    """Whether a path names a pack or saved scores; an error for a damaged or missing file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix != ".parquet":
        return is_pack(path)
    if not path.is_file():
        raise MissingFileError(f"{path}: no such file", hint=WRITTEN_BY)
    refuse_pointer(path, ScoresError)
    try:
        return b"fewbench" in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError) as error:
        reason = first_line(error)
        raise ScoresError(
            f"{path}: not a whole Parquet file ({reason})",
            hint="write or copy it again",
            kind="damaged",
        ) from error


def _read_cells(source: Path, digest: str) -> FloatArray:
    """Return the cells of a file; ScoresError unless its table has this hash."""
    with _open_parquet(source, with_cells=True) as (parts, meta, cells):
        scores = Scores(cells, **parts)
        if scores.digest != meta["digest"]:
            raise ScoresError(
                "changed since fewbench wrote it", hint="read it with fewbench import"
            )
    if scores.digest != digest:
        raise ScoresError(
            f"{source}: changed while it was in use", hint="start again", kind="changed"
        )
    return scores.held


@contextmanager
def _open_parquet(
    source: Path, *, with_cells: bool = False
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Any]]:
    """Give a file's parts but cells, its metadata, and its cells; errors inside name the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not source.is_file():
        raise MissingFileError(f"{source}: no such file", hint=WRITTEN_BY)
    refuse_pointer(source, ScoresError)
    if with_cells:
        check_table_memory(source)
    try:
        with pq.ParquetFile(source) as file:
            metadata = file.schema_arrow.metadata or {}
            if b"fewbench" not in metadata:
                raise ScoresError(
                    "a Parquet file, but not scores saved by fewbench",
                    hint="import it: fewbench import FILE --model COLUMN --item COLUMN "
                    "--score COLUMN -o scores.parquet",
                )
            meta = loads(metadata[b"fewbench"])
            _check_format(meta)
            by_items = meta["format"] == BY_ITEMS
            names = ["item", *meta["item_columns"]]
            check_parquet(source, names, rows=meta["shape"][1])
            check_parquet(source, None if by_items else ["score", COUNTS, VARIANCES], by_code=True)
            items = _first_rows(file, meta["shape"][1], names)
            low, high, lower_is_better = meta["scale"]
            parts = {
                "items": _frame(items),
                "models": _frame(_read_models(metadata)),
                "probabilities": read_options(file, source, meta) if by_items else None,
                "scale": Scale(low, high, lower_is_better),
                "average": meta["average"],
                "repeats": _repeats(file, meta) if meta.get("repeats") else None,
            }
            cells = None
            if with_cells:
                cells = read_cells(file, meta) if by_items else _cells(file, meta)
        yield parts, meta, cells
    except FewbenchError as error:
        if error.message.startswith(f"{source}: "):
            raise
        raise error.within(str(source)) from error
    except (pa.ArrowException, OSError) as error:
        raise ScoresError(
            f"{source}: not a whole Parquet file ({first_line(error)})",
            hint="read other files with fewbench import or fewbench.import_results",
            kind="damaged",
        ) from error
    except UNFIT as error:
        raise ScoresError(
            f"{source}: its metadata does not fit its content ({first_line(error)})",
            hint="a newer fewbench or a different program wrote it; read it with fewbench import",
        ) from error


def _first_rows(file: Any, n_items: int, columns: list[str]) -> Any:
    """Read the first rows, which hold all that is known about the items."""
    import pyarrow as pa

    batches: list[Any] = []
    size = max(1, min(n_items, file.metadata.num_rows))
    for batch in file.iter_batches(batch_size=size, columns=columns):
        batches.append(batch)
        if sum(map(len, batches)) >= n_items:
            break
    return pa.Table.from_batches(batches).slice(0, n_items).select(columns)


def _cells(file: Any, meta: dict[str, Any]) -> FloatArray:
    """Read the scores of a file with one row per model and item."""
    column = file.read(columns=["score"])["score"]
    values: FloatArray = column.to_numpy().astype(np.float64).reshape(meta["shape"])
    return frozen(values)  # so that Scores shares it


def _repeats(file: Any, meta: dict[str, Any]) -> Repeats | None:
    """Read how often each item was answered, and how far the answers vary."""
    if meta["format"] == BY_ITEMS:
        return read_repeats(file, meta)
    table = file.read(columns=[COUNTS, VARIANCES])
    counts, spread = (table[name].to_numpy().reshape(meta["shape"]) for name in (COUNTS, VARIANCES))
    return Repeats.from_counts(counts, spread)


def _check_format(meta: dict[str, Any]) -> None:
    if meta["format"] not in (FORMAT, BY_ITEMS):
        raise ScoresError(
            f"scores of format {meta['format']}, this fewbench reads {FORMAT} and {BY_ITEMS}",
            hint="upgrade fewbench",
        )


def _frame(table: Any) -> "pd.DataFrame":
    """Return a table whose first column has the ids."""
    labels, *names = table.column_names
    frame = pd.DataFrame(index=_column(table[labels]))
    for name in names:
        frame[name] = _column(table[name])
    return frame


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


def _read_models(metadata: dict[bytes, bytes]) -> Any:
    """Read the table of models; its first column has the ids."""
    import pyarrow as pa

    content = base64.b64decode(metadata[MODELS], validate=True)
    if any(map(_is_packed, pa.ipc.MessageReader.open_stream(content))):
        raise ValueError("a packed table of models")  # Arrow would unpack it to any size
    table = pa.ipc.open_stream(content).read_all()
    table.validate(full=True)  # else a damaged text ends the process
    return table


def _is_packed(message: Any) -> bool:
    """Whether a message of Arrow's stream is compressed, which only its Flatbuffer tells."""
    content = memoryview(message.metadata)

    def place_of(table: int, field: int) -> int:  # 0 if the field is not set
        fields = table - struct.unpack_from("<i", content, table)[0]
        size = struct.unpack_from("<H", content, fields)[0]
        at = 4 + 2 * field
        offset = struct.unpack_from("<H", content, fields + at)[0] if at < size else 0
        return table + offset if offset else 0

    def table_at(place: int) -> int:
        return place + int(struct.unpack_from("<I", content, place)[0])

    header = table_at(place_of(table_at(0), 2))
    if message.type == "dictionary":
        header = table_at(place_of(header, 1))
    return message.type != "schema" and place_of(header, 3) > 0


def _packed(models: "pd.DataFrame") -> bytes:
    """Return the table of models as text."""
    import pyarrow as pa

    columns = {"model": pd.Series(models.index), **{name: models[name] for name in models}}
    table = pa.table({name: pa.array(col, from_pandas=True) for name, col in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return base64.b64encode(sink.getvalue().to_pybytes())
