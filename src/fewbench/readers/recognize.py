"""One door for all files of scores: the kind is recognised, or named by the user."""

import os
from collections.abc import Sequence
from pathlib import Path

from fewbench._names import did_you_mean, some
from fewbench.errors import ReaderError, first_line
from fewbench.readers.gather import Damaged, Progress
from fewbench.readers.harness import Reading
from fewbench.readers.harnesses import HARNESSES
from fewbench.readers.join.merge import SameModel
from fewbench.readers.logs import LogOptions, find_logs, read_logs
from fewbench.readers.tables import Columns
from fewbench.scores import Scale, Scores, load_scores

FORMS = ("scores", "npz", "table", *HARNESSES)


def read(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    form: str | None = None,
    columns: Columns | None = None,
    transposed: bool = False,
    metric: str | None = None,
    filter: str | None = None,
    only_tasks: str | None = None,
    skip_tasks: str | None = None,
    like: Scores | None = None,
    key: str | None = None,
    damaged: Damaged = "stop",
    same_model: SameModel = "stop",
    only_model: str | None = None,
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
    metric, filter, only_tasks, skip_tasks, key, damaged, same_model, only_model
        What to take of logs; see `LogOptions`.
    like : Scores, optional
        Scores from logs: their metric and filter of each task are taken where none is named.
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
        raise ReaderError(f"unknown form {form!r}", hint=did_you_mean(form, FORMS))
    if not sources:
        raise ReaderError("no file was named", hint="name files or folders")
    for source in sources:
        if not source.exists():
            raise ReaderError(f"{source}: no such file or folder")
    options = LogOptions(
        metric, filter, key, only_tasks, skip_tasks, damaged, same_model, only_model
    )
    units, others = find_logs(sources, form)
    if units:
        _refuse(sources[0], units[0][0].name, _table_options(columns, transposed))
        return read_logs(units, others, options, like, scale, work, workers, progress)
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
