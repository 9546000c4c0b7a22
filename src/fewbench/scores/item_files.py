"""Scores on disk that are large, have option probabilities or no models: one row per item.

A row has the item's id, its attributes and the scores of all models as one value of bytes: a code
per model (see `Cells`), or float64 for other tables; where items were answered several times, also
the numbers of answers and their variances. Option probabilities are further values of
bytes: a column has those of some models, the first model's first. Row groups of some hundred items
are compressed on their own, so that a block of items, or of models, is read alone.

The long layout of small tables would have 150 million rows for 5,000 models × 30,000 items, each
with its item's text.
"""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._blocks import blocks
from fewbench._files import written_whole
from fewbench._lazy import pandas as pd
from fewbench._memory import check_fits
from fewbench._names import counted
from fewbench._types import FloatArray
from fewbench.errors import ScoresError
from fewbench.scores.cells import GONE, Cells, coded_cells, frozen
from fewbench.scores.probabilities import (
    OptionProbabilities,
    StoredProbabilities,
    column_of,
    read_group,
)
from fewbench.scores.repeats import Repeats
from fewbench.scores.table import Scores

FORMAT = 2
SCORES, CHECKS = "scores", b"fewbench.checks"
COUNTS, VARIANCES = "answers", "answer_variance"


def write_by_items(
    scores: Scores, meta: dict[str, Any], metadata: dict[bytes, bytes], target: Path
) -> None:
    """Write scores to a file; `metadata` is what the file keeps, `meta` among it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    described = {"item": pd.Series(scores.items.index)}
    described |= {name: scores.items[name] for name in scores.items.columns}
    items = pa.table({name: pa.array(col, from_pandas=True) for name, col in described.items()})
    widths = {SCORES: _width(meta)} if scores.n_models else {}
    if meta["repeats"]:
        widths |= {COUNTS: 4 * scores.n_models, VARIANCES: 8 * scores.n_models}
    starts: list[int] = []
    if meta["probabilities"] is not None:
        _, kind, n_options, starts = meta["probabilities"]
        size = n_options * np.dtype(kind).itemsize
        ends = [*starts[1:], meta["shape"][0]]
        widths |= {column_of(at): size * (end - at) for at, end in zip(starts, ends, strict=True)}
    for name in {"item", *widths}.intersection(scores.items.columns):
        raise ScoresError(f"an attribute may not be named {name!r}", hint="rename it")
    schema = pa.schema(
        [*items.schema, *(pa.field(name, pa.binary(width)) for name, width in widths.items())],
        metadata,
    )
    checks = []
    with (
        written_whole(target) as temporary,
        pq.ParquetWriter(
            temporary, schema, compression="zstd", use_dictionary=False, write_statistics=False
        ) as file,
    ):
        for part, *values in _by_items(scores, meta):
            table, sums = items.slice(part.start, part.stop - part.start), []
            for (name, width), value in zip(widths.items(), values, strict=True):
                raw = pa.py_buffer(np.ascontiguousarray(value.swapaxes(0, 1)))
                column = pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(width), len(table), [None, raw]
                )
                table = table.append_column(name, column)
                sums.append(zlib.crc32(raw))
            file.write_table(table.cast(schema))
            checks.append(sums[len(sums) - len(starts) :])
        file.add_key_value_metadata({CHECKS: json.dumps(checks).encode()})


def _by_items(scores: Scores, meta: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield slices of items, their scores, and probabilities of some models, of the next, …."""
    n_models, n_items = meta["shape"]
    matrix: Any = scores.held
    values = matrix if meta["levels"] is None else matrix.codes
    if not n_models:
        yield from ((part,) for part in blocks(n_items, 1))
        return
    whole = [values]
    if scores.repeats is not None:
        whole += [scores.repeats.counts, scores.repeats.variances]
    if scores.probabilities is None:
        parts: Any = ((part, []) for part in blocks(n_items, n_models))
    else:
        starts = meta["probabilities"][3][1:]
        parts = ((at, np.split(part, starts)) for at, part in scores.probabilities.by_items())
    for part, options in parts:
        yield part, *(array[:, part] for array in whole), *options


def layout(scores: Scores) -> dict[str, Any]:
    """Return a file's options for how cells are written."""
    matrix: Any = scores.held
    of_bytes = isinstance(matrix, Cells) and matrix.above is None
    levels = matrix.distinct.tolist() if of_bytes else None
    return {"format": FORMAT, "levels": levels}


def read_cells(file: Any, meta: dict[str, Any]) -> FloatArray:
    """Read all cells of an open Parquet file: an array, or Cells."""
    n_models, n_items = meta["shape"]
    levels = meta["levels"]
    if not n_models:
        return np.empty((0, n_items))
    check_fits(
        1.2 * _width(meta) * n_items,
        f"a table of {counted(n_models, 'model')} × {counted(n_items, 'item')}",
    )
    kind = np.dtype(np.float64 if levels is None else np.uint8)
    values, at = np.empty((n_models, n_items), dtype=kind), 0
    for group in range(file.num_row_groups):
        rows = read_group(file, group, SCORES).view(kind)
        values[:, at : at + len(rows)] = rows.T
        at += len(rows)
    if at != n_items:
        raise ValueError(f"{at} items, not {n_items}")
    if levels is None:
        return frozen(values)
    if not all(((values[:, part] < len(levels)) | (values[:, part] == GONE)).all()
               for part in blocks(n_items, n_models)):  # fmt: skip
        raise ValueError("a code without a score")
    return coded_cells(values, levels)  # type: ignore[return-value]


def read_repeats(file: Any, meta: dict[str, Any]) -> Repeats | None:
    """Return how often items were answered, of an open Parquet file, and how far answers vary."""
    groups = range(file.num_row_groups)
    counts, variances = (
        np.concatenate([read_group(file, group, name).view(kind) for group in groups]).T
        for name, kind in ((COUNTS, np.uint32), (VARIANCES, np.float64))
    )
    if counts.shape != tuple(meta["shape"]):
        raise ValueError(f"numbers of answers of {counts.shape}")
    return Repeats.from_counts(counts, variances)


def read_options(file: Any, source: Path, meta: dict[str, Any]) -> OptionProbabilities | None:
    """Return the option probabilities of an open Parquet file, which are read when used."""
    if meta["probabilities"] is None:
        return None
    digest, dtype, n_options, starts = meta["probabilities"]
    stored = StoredProbabilities(
        source,
        (*meta["shape"], n_options),
        np.dtype(dtype),
        tuple(starts),
        json.loads(file.metadata.metadata[CHECKS]),
    )
    stored.check(file)
    return OptionProbabilities(stored, known=digest)


def _width(meta: dict[str, Any]) -> int:
    return int(meta["shape"][0]) * (8 if meta["levels"] is None else 1)
