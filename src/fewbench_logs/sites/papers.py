"""Tables that papers publish: metabench's and TailoredBench's."""

import gzip
import io
import pickletools
import re
import tarfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import PublicError
from fewbench.public.fetching import MOVED, Fetcher, laid_out
from fewbench.public.hosts import list_files
from fewbench.public.routes import ROW
from fewbench.public.source import (
    Ask,
    Files,
    Find,
    Index,
    Read,
    from_rows,
    left_out,
    with_attributes,
)
from fewbench.readers import Reading
from fewbench.scores import from_arrays
from fewbench.support import check_unpacked, some
from fewbench.support import pandas as pd

ROLES = ("source", "target")

# -- metabench -------------------------------------------------------------------------------

METABENCH = "zenodo:12819251"
METABENCH_COLUMNS = ["source", "item", "correct"]


def find_metabench(ask: Ask, fetcher: Fetcher) -> Index:
    """List the record's archive of all tables, or the tables of a benchmark."""
    listing = list_files(fetcher, METABENCH, None)
    archives = [file for file in listing.files if file.path.endswith(".tar.gz")]
    files = archives or [file for file in listing.files if _is_table_of(ask, file.path)]
    if not files:
        there = some([file.path for file in listing.files])
        raise PublicError(f"{METABENCH}: no tables of {ask.benchmark}; it has {there}", hint=MOVED)
    return Index(files, listing.commit)


def _is_table_of(ask: Ask, path: str) -> bool:
    """Whether a file is the table of a benchmark; MMLU has one for each subject."""
    name = PurePosixPath(path).name.lower()
    many = "_*" if ask.benchmark == "mmlu" else ""
    return not name.startswith("._") and (
        name == f"{ask.benchmark}.csv"
        or (fnmatchcase(name, f"{ask.benchmark}{many}.csv") and not name.endswith("_prompts.csv"))
    )


def read_metabench(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read tables of source, item (row of lighteval's details, from 1) and correct."""
    frames, damaged = [], []
    tables = dict(_metabench_tables(ask, found, folder))
    for name, content in tables.items():
        try:
            with laid_out(name):
                rows = pd.read_csv(content, usecols=METABENCH_COLUMNS, dtype={"source": str})
                rows = rows[METABENCH_COLUMNS].set_axis(["model", "item", "score"], axis=1)
                rows["row"] = rows["item"].astype(int) - 1
                task = PurePosixPath(name).stem
                rows = rows.assign(task=task, item=f"{task}/" + rows["item"].astype(str))
                frames.append(rows)
        except PublicError as error:
            damaged.append(error)
    if not tables:
        raise PublicError(f"{folder}: no tables of {ask.benchmark}", hint=MOVED)
    notes = left_out(damaged, len(tables), "table")
    frame = pd.concat(frames, ignore_index=True)
    return from_rows(frame, models=ask.models, item_columns=[ROW], what="metabench", notes=notes)


class _Unpacked(gzip.GzipFile):
    """A file packed by gzip that is not read beyond what it may unpack to, names included."""

    def check(self, n_bytes: int) -> None:
        path = Path(self.name)
        check_unpacked(n_bytes, path, path.stat().st_size)

    def read(self, size: int | None = -1) -> bytes:
        self.check(size or 0)
        return super().read(size)


def _metabench_tables(
    ask: Ask, found: Index, folder: Path
) -> Iterator[tuple[str, IO[bytes] | Path]]:
    """Yield the name and content of each table of a benchmark."""
    for file in found.files:
        path = folder / file.path
        if not path.name.endswith(".tar.gz"):
            yield path.name, path
            continue
        with (
            laid_out(path),
            _Unpacked(path) as raw,
            tarfile.open(fileobj=raw, mode="r:") as archive,
        ):
            for member in archive:
                if member.isfile() and _is_table_of(ask, member.name):
                    raw.check(member.size)
                    content = archive.extractfile(member)
                    yield member.name, io.BytesIO(content.read() if content else b"")


# -- TailoredBench ---------------------------------------------------------------------------


MOST_ITEMS = 6000
"""Items that the authors' program takes of a benchmark."""
FLOATS = re.compile("f[48]")
SMALLEST_ARRAY = 8
"""Bytes of the smallest inner array: of two float32."""


def find_tailoredbench(ask: Ask, fetcher: Fetcher) -> Index:
    """List the arrays of a benchmark, and the right options where models' probabilities are."""
    ending = "_acc_0" if ask.benchmark == "gsm8k" else ""
    names = [f"{role}_model_alldata{ending}.npy" for role in ROLES]
    names += [] if ending else ["gt_label*.npy"]
    under = f"BenchmarkDatasets/{ask.benchmark}"
    patterns = tuple(f"{under}/{name}" for name in names)
    return Files("github:marvelcell/TailoredBench", patterns, under)(ask, fetcher)


def read_tailoredbench(ask: Ask, found: Index, folder: Path) -> Reading:
    """Read the arrays of source models and targets, models × items, in the repository's order.

    For ARC and HellaSwag, they are options' probabilities, and a score is whether the most probable
    option is the right one, as the authors' `get_dataset_specific_scores` has it.
    """
    paths = {role: _ending(found, folder, f"/{role}_") for role in ROLES}
    parts = [_array(path) for path in paths.values()]
    models = [
        f"{role}-{at + 1:03d}"
        for role, part in zip(ROLES, parts, strict=True)
        for at in range(len(part))
    ]
    with laid_out(folder):
        whole = np.concatenate(parts)
        n_items = min(whole.shape[1], MOST_ITEMS)
        items = [f"{ask.benchmark}-{at + 1:04d}" for at in range(n_items)]
        tasks = [str(ask.benchmark)] * n_items
        if whole.dtype == object or whole.ndim == 3:
            # If there are two files of labels, the authors' program reads the one with the longer
            # name.
            right = _array(_ending(found, folder, "/gt_label")).astype(np.intp)[:n_items]
            options, n_options = _padded(whole[:, :n_items])
            values = (options.argmax(axis=2) == right).astype(np.float64)
            scores = from_arrays(
                values,
                models=models,
                items=items,
                tasks=tasks,
                probabilities=options,
                n_options=n_options,
            )
        else:
            values = whole[:, :n_items].astype(np.float64)
            scores = from_arrays(values, models=models, items=items, tasks=tasks)
    scores = scores.changed(items=scores.items.assign(**{ROW: np.arange(n_items)}))
    roles = {model: {"role": model.partition("-")[0]} for model in models}
    notes = ["names of models are in the paper's Tables 14 to 16, not with the arrays"]
    if n_items < whole.shape[1]:
        notes.append(f"the first {n_items:,} of {whole.shape[1]:,} items, as the program takes")
    return Reading(with_attributes(scores, roles), tuple(notes))


def _ending(listing: Index, folder: Path, part: str) -> Path:
    """Return the file whose path contains a part; of several, the one with the longest name."""
    return folder / max((file.path for file in listing.files if part in file.path), key=len)


def _array(path: Path) -> NDArray[Any]:
    """Return an array of numbers, or of arrays of numbers, whose bytes are read without unpickling.

    NumPy pickles each inner array with its type (float32 or float64) and its bytes.
    """
    with laid_out(path), path.open("rb") as file:
        version, _ = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0
        shape, _, dtype = (header if version == 1 else np.lib.format.read_array_header_2_0)(file)
        if not dtype.hasobject:
            file.seek(0)
            return cast(NDArray[Any], np.load(file, allow_pickle=False))
        arguments = [argument for _, argument, _ in pickletools.genops(file)]
        kinds = {part for part in arguments if isinstance(part, str) and FLOATS.fullmatch(part)}
        data = [raw for raw in arguments if isinstance(raw, bytes) and len(raw) >= SMALLEST_ARRAY]
        (kind,) = kinds
        cells = np.empty(len(data), dtype=object)
        cells[:] = [np.frombuffer(raw, kind) for raw in data]
        return cells.reshape(shape)


def _padded(cells: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return options' probabilities, 0 where an item has no such option, and options per item."""
    if cells.ndim == 3:
        return cells.astype(np.float32), np.full(cells.shape[1], cells.shape[2], dtype=np.intp)
    n_options = np.array([len(cell) for cell in cells[0]], dtype=np.intp)
    options = np.zeros((*cells.shape, n_options.max()), dtype=np.float32)
    for model, row in enumerate(cells):
        for item, cell in enumerate(row):
            options[model, item, : n_options[item]] = cell
    return options, n_options


WAYS: dict[str, tuple[Find, Read]] = {
    "metabench": (find_metabench, read_metabench),
    "tailoredbench": (find_tailoredbench, read_tailoredbench),
}
"""How the files of each source are found and read."""
