"""One door for all files of scores: the kind is recognised, or named by the user."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from fewbench._names import some
from fewbench.errors import ReaderError, first_line
from fewbench.readers.files import list_files
from fewbench.readers.gather import Damaged, Progress, find_units, gather
from fewbench.readers.harness import Harness, Unit, Wants
from fewbench.readers.harnesses import HARNESSES
from fewbench.readers.join.merge import SameModel
from fewbench.readers.join.table import join
from fewbench.readers.reading import Reading
from fewbench.readers.tables import Columns
from fewbench.scores import Scale, load_scores

FORMS = ("scores", "npz", "table", *HARNESSES)
DAMAGED = ("stop", "skip", "rows")
SAME_MODEL = ("stop", "newest", "apart")
NOT_TAKEN = "not a result file that fewbench knows"


@dataclass(frozen=True)
class LogOptions:
    """What to take of harnesses' logs: one vocabulary for all of them.

    Parameters
    ----------
    metric, filter : str, optional
        Needed where a task has several: names in order of preference, separated by commas. For
        each task the first that it has is taken.
    key : str, optional
        The field of an item that identifies it, such as `id`, instead of a hash of its content.
    damaged : {"stop", "skip", "rows"}
        Files that cannot be read: stop, leave them out, or also take whole rows of torn files.
    same_model : {"stop", "newest", "apart"}
        Where two folders have different answers of one model: stop, take the newest, or read
        them as two models.
    """

    metric: str | None = None
    filter: str | None = None
    key: str | None = None
    damaged: Damaged = "stop"
    same_model: SameModel = "stop"

    def __post_init__(self) -> None:
        for option, value, known in (
            ("damaged", self.damaged, DAMAGED),
            ("same-model", self.same_model, SAME_MODEL),
        ):
            if value not in known:
                raise ReaderError(
                    f"--{option} cannot be {value!r}", hint=f"one of {', '.join(known)}"
                )

    @property
    def given(self) -> list[str]:
        """The options that are not at their default, as the command line names them."""
        default = LogOptions()
        names = [one.name for one in fields(self)]
        given = [name for name in names if getattr(self, name) != getattr(default, name)]
        return [f"--{name.replace('_', '-')}" for name in given]


def read(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    form: str | None = None,
    columns: Columns | None = None,
    transposed: bool = False,
    metric: str | None = None,
    filter: str | None = None,
    key: str | None = None,
    damaged: Damaged = "stop",
    same_model: SameModel = "stop",
    scale: Scale | None = None,
    work: Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Reading:
    """Read scores from a file or folder of any kind that fewbench knows.

    Parameters
    ----------
    path : path or sequence of paths
        Scores that fewbench saved (.parquet), an .npz file, a table (.csv, .tsv, .parquet,
        .jsonl, .ndjson), or files and folders of harnesses' logs, which may be several; folders
        are searched through.
    form : str, optional
        The kind, one of `FORMS`; recognised by content by default.
    columns, transposed
        How a table is laid out; see `fewbench.readers.tables.read_table`.
    metric, filter, key, damaged, same_model
        What to take of logs; see `LogOptions`.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default; saved scores carry their own.
    work : Path, optional
        A folder for what was read of logs: a reading that was stopped goes on there, and memory
        holds little more than the table. It may be deleted once the scores are saved.
    workers : int
        Processes that read logs, where there is much to read.
    progress : callable, optional
        Called with (files done, all files).

    Raises
    ------
    ReaderError, ScoresError
        If the path is of no known kind, the content does not fit, or an option does not apply.
    """
    sources = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(one) for one in path]
    if form is not None and form not in FORMS:
        raise ReaderError(f"unknown form {form!r}", hint=f"one of {', '.join(FORMS)}")
    if not sources:
        raise ReaderError("no file was named", hint="name files or folders")
    for source in sources:
        if not source.exists():
            raise ReaderError(f"{source}: no such file or folder")
    options = LogOptions(metric, filter, key, damaged, same_model)
    units, others = _logs(sources, form)
    if units:
        _refuse(sources[0], units[0][0].name, _table_options(columns, transposed))
        return _read_logs(units, others, options, scale, work, workers, progress)
    if len(sources) > 1:
        raise ReaderError(
            f"{len(sources)} files or folders, and {some(sources)} is not a log of a harness",
            hint="only logs can be read several at a time",
        )
    source = sources[0]
    form = form or _file_form(source)
    _refuse(source, form, options.given)
    if form != "table":
        _refuse(source, form, _table_options(columns, transposed))
    return _read_file(source, form, columns or Columns(), transposed, scale)


def _logs(sources: list[Path], form: str | None) -> tuple[list[tuple[Harness, Unit]], list[Path]]:
    """Find the logs in files and folders; none if another form is named or the file is a table."""
    if form is not None and form not in HARNESSES:
        folder = next((source for source in sources if source.is_dir()), None)
        if folder:
            raise ReaderError(f"{folder}: a folder, not a file of form {form!r}")
        return [], []
    files = list_files(sources)
    found = find_units(files, [form] if form else list(HARNESSES))
    others = set(found.others)
    named = [source for source in sources if source in others]
    if form and (named or not found.units):
        raise ReaderError(
            f"{(named or sources)[0]}: no result file of {form}",
            hint=f"{form} writes {HARNESSES[form].files}",
        )
    folders = [source for source in sources if source.is_dir()]
    if folders and not found.units:
        there = sorted(entry.name for entry in folders[0].iterdir())
        raise ReaderError(
            f"{folders[0]}: no result files of a known kind in this folder",
            hint="lm-eval writes samples_*.jsonl with --log_samples; else name one file; there is "
            f"{some(there) or 'nothing'}",
        )
    if found.units and named:
        raise ReaderError(
            f"{some(named)}: not a log of a harness, and read together with logs",
            hint="only logs can be read several at a time",
        )
    return found.units, found.others


def _read_logs(
    units: list[tuple[Harness, Unit]],
    others: list[Path],
    options: LogOptions,
    scale: Scale | None,
    work: Path | None,
    workers: int,
    progress: Progress | None,
) -> Reading:
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    own = TemporaryDirectory() if work is None and workers > 1 else nullcontext(work)
    with own as folder:
        runs, left_out = gather(
            units,
            Wants(options.key, options.damaged == "rows"),
            work=None if folder is None else Path(folder),
            workers=workers,
            damaged=options.damaged,
            progress=progress,
        )
        reading = join(
            runs,
            metric=options.metric,
            filter=options.filter,
            scale=scale,
            same_model=options.same_model,
            key=options.key,
            work=work,
            progress=progress,
        )
    notes = list(reading.notes)
    if left_out:
        notes.insert(0, f"{len(left_out)} of {len(units)} files were left out: {left_out[0][1]}")
    untouched = [{"file": str(path), "rows": 0, "taken": 0, "note": why} for path, why in left_out]
    untouched += [{"file": str(path), "rows": 0, "taken": 0, "note": NOT_TAKEN} for path in others]
    harness = {str(unit.path): harness.name for harness, unit in units}
    files = pd.concat([reading.files, pd.DataFrame(untouched)], ignore_index=True)
    files.insert(1, "harness", files["file"].map(harness))
    text = ["harness", "model", "task", "filter", "metric", "time"]
    files[text] = files[text].fillna("")
    return replace(reading, notes=tuple(notes), files=files)


def _read_file(
    source: Path, form: str, columns: Columns, transposed: bool, scale: Scale | None
) -> Reading:
    if form == "scores":
        scores = load_scores(source)
        if scale not in (None, scores.scale):
            raise ReaderError(
                f"{source}: saved with another range of scores ({scores.scale})",
                hint="leave out --range and --lower-is-better",
            )
        return Reading(scores)
    if form == "npz":
        from fewbench.readers.npz import read_npz

        return read_npz(source, scale=scale)
    from fewbench.readers.tables import read_table

    return Reading(read_table(source, columns, transposed=transposed, scale=scale))


def _table_options(columns: Columns | None, transposed: bool) -> list[str]:
    given = {"columns": columns not in (None, Columns()), "--transposed": transposed}
    return [option for option, is_given in given.items() if is_given]


def _refuse(source: Path, form: str, useless: list[str]) -> None:
    if useless:
        raise ReaderError(
            f"{source}: read as {form!r}, which does not use {', '.join(useless)}",
            hint="leave it out, or name another with --from",
        )


def _file_form(source: Path) -> str:
    suffix = source.suffix.lower()
    if suffix == ".npz":
        return "npz"
    return "scores" if suffix == ".parquet" and _is_ours(source) else "table"


def _is_ours(source: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return b"fewbench" in (pq.read_schema(source).metadata or {})
    except (pa.ArrowException, OSError) as error:
        reason = first_line(error)
        raise ReaderError(f"{source}: not a whole Parquet file ({reason})") from error
