"""Scores on disk: a plain long Parquet file, and option probabilities beside it.

`NAME.parquet` has one row for each model and item (model, item, score in [0, 1], and every
attribute), so any tool can read it; an empty score was not run. Option probabilities lie in
`NAME.probabilities.npy`, models first, so that one model is one contiguous chunk.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fewbench._content import refuse_pointer
from fewbench._files import written_whole
from fewbench._memory import check_table_memory
from fewbench.errors import FewbenchError, ScoresError, first_line
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.scores.scale import Scale
from fewbench.scores.table import Scores

FORMAT = 1
SAMPLED = 8  # models whose probabilities are read to see whether the file is the one written
# What a description raises that does not fit the content.
UNFIT = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


def save_scores(scores: Scores, path: str | os.PathLike[str]) -> Path:
    """Write scores to `path` (ending in .parquet) and their option probabilities beside it.

    Returns the path. The files appear whole or not at all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = Path(path)
    if target.suffix != ".parquet":
        raise ScoresError(
            f"{target}: scores are saved as Parquet", hint=f"use {target.with_suffix('.parquet')}"
        )
    n_models, n_items = scores.values.shape
    flat = scores.values.ravel()
    columns: dict[str, Any] = {
        "model": _repeated(scores.models.index, np.repeat(np.arange(n_models), n_items)),
        "item": _repeated(scores.items.index, np.tile(np.arange(n_items), n_models)),
        "score": pa.array(flat, mask=np.isnan(flat)),
    }
    for table, codes in (
        (scores.items, np.tile(np.arange(n_items), n_models)),
        (scores.models, np.repeat(np.arange(n_models), n_items)),
    ):
        for name in table.columns:
            if name in columns:
                raise ScoresError(f"an attribute may not be named {name!r}", hint="rename it")
            columns[name] = _repeated(table[name], codes)
    meta = {
        "format": FORMAT,
        "shape": [n_models, n_items],
        "model_columns": list(scores.models.columns),
        "item_columns": list(scores.items.columns),
        "scale": [scores.scale.low, scores.scale.high, scores.scale.lower_is_better],
        "average": scores.average,
        "probabilities": None,
    }
    options = scores.probabilities
    if options is not None:
        with written_whole(_beside(target)) as temporary:
            _write_probabilities(options, temporary)
        meta["probabilities"] = {
            "shape": options.shape,
            "dtype": options.dtype.str,
            "digest": (digest := options.digest()),
            "sample": options.digest(_sample(options)),
        }
        scores = replace(scores, probabilities=options.knowing(digest))  # read once, not twice
    meta["digest"] = scores.digest
    table = pa.table(columns).replace_schema_metadata({b"fewbench": json.dumps(meta).encode()})
    with written_whole(target) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return target


def load_scores(path: str | os.PathLike[str]) -> Scores:
    """Read scores that `save_scores` wrote; option probabilities stay on disk until used.

    Their size and those of a few models are compared with what was written; that they are the
    same throughout is not, as it would take reading them all.

    Raises
    ------
    ScoresError
        If the file is not one of fewbench's, was changed since, or lacks its probabilities.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = Path(path)
    if not source.is_file():
        raise ScoresError(f"{source}: no such file")
    refuse_pointer(source, ScoresError)
    check_table_memory(source)
    try:
        table = pq.read_table(source)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ScoresError(
            f"{source}: not a whole Parquet file ({first_line(error)})",
            hint="other files are read by fewbench.readers.read, or fewbench import",
        ) from error
    raw = (table.schema.metadata or {}).get(b"fewbench")
    if raw is None:
        raise ScoresError(
            f"{source}: a Parquet file, but not one of fewbench's scores",
            hint="name its columns: fewbench import FILE --model COLUMN --item COLUMN "
            "--score COLUMN -o scores.parquet",
        )
    try:
        scores = _rebuild(source, table, json.loads(raw))
        whole = scores.digest == json.loads(raw)["digest"]
    except FewbenchError as error:
        if str(source.parent / source.stem) in error.message:
            raise
        raise type(error)(f"{source}: {error.message}", hint=error.hint) from error
    except (*UNFIT, pa.ArrowException) as error:
        raise ScoresError(
            f"{source}: its description does not fit its content ({first_line(error)})",
            hint="it was written by a newer fewbench or changed by another program; import it",
        ) from error
    if not whole:
        raise ScoresError(
            f"{source}: changed since fewbench wrote it", hint="read it with fewbench import"
        )
    return scores


def _rebuild(source: Path, table: Any, meta: dict[str, Any]) -> Scores:
    if meta["format"] != FORMAT:
        raise ScoresError(
            f"{source}: scores of format {meta['format']}, this fewbench reads {FORMAT}",
            hint="upgrade fewbench",
        )
    n_models, n_items = meta["shape"]
    values = table["score"].to_numpy().astype(np.float64).reshape(n_models, n_items)
    values.flags.writeable = False  # so that Scores shares it
    first_models = np.arange(n_models) * n_items
    models = pd.DataFrame(index=_column(table["model"].take(first_models)))
    for name in meta["model_columns"]:
        models[name] = _column(table[name].take(first_models))
    head = table.slice(0, n_items)
    items = pd.DataFrame(index=_column(head["item"]))
    for name in meta["item_columns"]:
        items[name] = _column(head[name])
    options = None
    if meta["probabilities"]:
        beside = _beside(source)
        if not beside.is_file():
            raise ScoresError(
                f"{beside}: missing; the scores have option probabilities there",
                hint="move both files together",
            )
        try:
            array = np.load(beside, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # numpy's header parser lets through errors of all kinds
            raise ScoresError(
                f"{beside}: not a whole .npy file ({first_line(error)})", hint="copy it again"
            ) from error
        options = _verified(array, meta["probabilities"], beside)
    low, high, lower = meta["scale"]
    return Scores(values, models, items, options, Scale(low, high, lower), meta["average"])


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
            f"{path}: not the option probabilities that were saved with the scores",
            hint="copy both files again, or import the scores again",
        )
    return options


def _sample(options: OptionProbabilities) -> list[int]:
    return sorted({int(at) for at in np.linspace(0, options.shape[0] - 1, SAMPLED)})


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}.probabilities.npy")


def _write_probabilities(probabilities: OptionProbabilities, path: Path) -> None:
    shape = probabilities.shape
    with path.open("wb") as file:
        header = {
            "descr": np.lib.format.dtype_to_descr(probabilities.dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(file, header)
        for row in probabilities.by_model():
            file.write(np.ascontiguousarray(row).tobytes())


def _repeated(values: Any, codes: Any) -> Any:
    """Encode a column as distinct values and codes."""
    import pyarrow as pa

    # Encoding before taking keeps an empty value out of the dictionary, where Parquet bars it.
    distinct = pa.array(pd.Series(values), from_pandas=True).dictionary_encode()
    return distinct.take(pa.array(codes, pa.int32()))


def _column(column: Any) -> Any:
    values = column.to_pylist()
    if values and isinstance(values[0], str):
        return np.array(values, dtype=object)
    return np.asarray(values)
