"""Large scores on disk: a Parquet file with one row per item.

A row has the item's id, its attributes and the scores of all models as one value of bytes: a code
per model (see `Cells`), or float64 for tables with more than 255 distinct scores. Row groups of
some hundred items are compressed on their own, so that reading takes a group at a time and a
group of items can be read alone. The models' table lies in the file's metadata.

The long layout of small tables would have 150 million rows for 5,000 models × 30,000 items, each
with its item's text. Zarr stores such an array as well, but not the tables beside it, and is one
more dependency.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewbench._blocks import blocks
from fewbench._files import written_whole
from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench.errors import ScoresError
from fewbench.scores.cells import GONE, Cells
from fewbench.scores.table import Scores

FORMAT = 2
SCORES, MODELS = "scores", b"fewbench.models"


def write_by_items(scores: Scores, meta: dict[str, Any], raw: bytes, target: Path) -> None:
    """Write scores to a file; `raw` is `meta` as the file keeps it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if SCORES in scores.items.columns or "item" in scores.items.columns:
        raise ScoresError("an attribute may not be named 'item' or 'scores'", hint="rename it")
    described = {"item": pd.Series(scores.items.index)}
    described |= {name: scores.items[name] for name in scores.items.columns}
    items = pa.table({name: pa.array(col, from_pandas=True) for name, col in described.items()})
    schema = items.schema.append(pa.field(SCORES, pa.binary(_width(meta))))
    schema = schema.with_metadata({b"fewbench": raw, MODELS: _packed(scores.models)})
    with (
        written_whole(target) as temporary,
        pq.ParquetWriter(
            temporary, schema, compression="zstd", use_dictionary=False, write_statistics=False
        ) as file,
    ):
        for part, values in _by_items(scores, meta):
            cells = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(_width(meta)), len(values), [None, pa.py_buffer(values)]
            )
            some = items.slice(part.start, part.stop - part.start)
            file.write_table(some.append_column(SCORES, cells).cast(schema))


def _by_items(scores: Scores, meta: dict[str, Any]) -> Iterator[tuple[slice, Any]]:
    """Yield the scores of some items at a time, shape (items, models)."""
    n_models, n_items = meta["shape"]
    held: Any = scores.held
    values = held if meta["levels"] is None else held.codes
    for part in blocks(n_items, n_models):
        yield part, np.ascontiguousarray(values[:, part].T)


def layout(scores: Scores) -> dict[str, Any]:
    """Return what a file says of how cells are written."""
    held: Any = scores.held
    of_bytes = isinstance(held, Cells) and held.above is None
    levels = held.distinct.tolist() if of_bytes else None
    return {"format": FORMAT, "levels": levels}


def read_cells(file: Any, meta: dict[str, Any]) -> FloatArray:
    """Read all cells of an open Parquet file: an array, or Cells."""
    n_models, n_items = meta["shape"]
    levels = meta["levels"]
    check_fits(
        1.2 * _width(meta) * n_items,
        f"a table of {counted(n_models, 'model')} × {counted(n_items, 'item')}",
    )
    kind = np.dtype(np.float64 if levels is None else np.uint8)
    values, at = np.empty((n_models, n_items), dtype=kind), 0
    for group in range(file.num_row_groups):
        column = file.read_row_group(group, columns=[SCORES]).column(SCORES).combine_chunks()
        if column.null_count:
            raise ValueError("an item without scores")
        rows = np.frombuffer(column.buffers()[1], dtype=kind)[column.offset * n_models :]
        rows = rows[: len(column) * n_models].reshape(len(column), n_models)
        values[:, at : at + len(rows)] = rows.T
        at += len(rows)
    if at != n_items:
        raise ValueError(f"{at} items, not {n_items}")
    values.flags.writeable = False
    if levels is None:
        return values
    table = np.full(GONE + 1, np.nan)
    table[: len(levels)] = levels
    table.flags.writeable = False
    if not all(((values[:, part] < len(levels)) | (values[:, part] == GONE)).all()
               for part in blocks(n_items, n_models)):  # fmt: skip
        raise ValueError("a code without a score")
    return Cells(values, table)  # type: ignore[return-value]


def read_models(metadata: dict[bytes, bytes]) -> Any:
    """Read the table of models; its first column has the ids."""
    import pyarrow as pa

    table = pa.ipc.open_stream(base64.b64decode(metadata[MODELS], validate=True)).read_all()
    table.validate(full=True)  # else a damaged text ends the process
    return table


def _width(meta: dict[str, Any]) -> int:
    return int(meta["shape"][0]) * (8 if meta["levels"] is None else 1)


def _packed(models: pd.DataFrame) -> bytes:
    """Return the table of models as text."""
    import pyarrow as pa

    columns = {"model": pd.Series(models.index), **{name: models[name] for name in models}}
    table = pa.table({name: pa.array(col, from_pandas=True) for name, col in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return base64.b64encode(sink.getvalue().to_pybytes())
