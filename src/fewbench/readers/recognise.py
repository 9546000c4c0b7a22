"""One door for all files of scores: the kind is recognised, or named by the user."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from fewbench._names import some
from fewbench.errors import ReaderError, first_line
from fewbench.readers.reading import Reading
from fewbench.readers.tables import Columns
from fewbench.scores import Scale, load_scores

FORMS = ("scores", "npz", "table", "lm-eval")


def read(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    form: str | None = None,
    columns: Columns | None = None,
    transposed: bool = False,
    metric: str | None = None,
    filter: str | None = None,
    scale: Scale | None = None,
) -> Reading:
    """Read scores from a file or folder of any kind that fewbench knows.

    Parameters
    ----------
    path : path or sequence of paths
        Scores that fewbench saved (.parquet), an .npz file, a table (.csv, .tsv, .parquet,
        .jsonl, .ndjson), or files and folders of lm-eval's logs, which may be several.
    form : {"scores", "npz", "table", "lm-eval"}, optional
        The kind; recognised by name and content by default.
    columns, transposed
        How a table is laid out; see `fewbench.readers.tables.read_table`.
    metric, filter : str, optional
        What to take of lm-eval's logs; see `fewbench.readers.lm_eval.read_lm_eval`.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default; saved scores carry their own.

    Raises
    ------
    ReaderError, ScoresError
        If the path is of no known kind, the content does not fit, or an option does not apply.
    """
    sources = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(one) for one in path]
    if form is not None and form not in FORMS:
        raise ReaderError(f"unknown form {form!r}", hint=f"one of {', '.join(FORMS)}")
    for source in sources:
        if not source.exists():
            raise ReaderError(f"{source}: no such file or folder")
    forms = {source: form or _recognise(source) for source in sources}
    other = [source for source in sources if forms[source] != "lm-eval"]
    if not sources or (other and len(sources) > 1):
        raise ReaderError(
            f"{len(sources)} files or folders, and {some(other)} is not a log of lm-eval"
            if sources
            else "no file was named",
            hint="only logs of lm-eval can be read several at a time",
        )
    source, form = sources[0], forms[sources[0]]
    if source.is_dir() and form != "lm-eval":
        raise ReaderError(f"{source}: a folder, not a file of form {form!r}")
    columns = columns or Columns()
    given = {
        "columns": form != "table" and columns != Columns(),
        "--transposed": form != "table" and transposed,
        "--metric": form != "lm-eval" and metric is not None,
        "--filter": form != "lm-eval" and filter is not None,
    }
    useless = [option for option, is_useless in given.items() if is_useless]
    if useless:
        raise ReaderError(
            f"{source}: read as {form!r}, which does not use {', '.join(useless)}",
            hint="leave it out, or name another with --from",
        )
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

        return Reading(read_npz(source, scale=scale))
    if form == "table":
        from fewbench.readers.tables import read_table

        return Reading(read_table(source, columns, transposed=transposed, scale=scale))
    from fewbench.readers.lm_eval import read_lm_eval

    return read_lm_eval(sources, metric=metric, filter=filter, scale=scale)


def _recognise(source: Path) -> str:
    if source.is_dir():
        if next(source.rglob("samples_*.jsonl"), None) is None:
            raise ReaderError(
                f"{source}: no result files of a known kind in this folder",
                hint="lm-eval writes samples_*.jsonl with --log_samples; else name one file; "
                f"there is {some(sorted(entry.name for entry in source.iterdir())) or 'nothing'}",
            )
        return "lm-eval"
    suffix = source.suffix.lower()
    if suffix == ".npz":
        return "npz"
    if suffix == ".parquet":
        return "scores" if _is_ours(source) else "table"
    if suffix == ".jsonl" and source.name.startswith("samples_") and _is_log(source):
        return "lm-eval"
    return "table"


def _is_ours(source: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return b"fewbench" in (pq.read_schema(source).metadata or {})
    except (pa.ArrowException, OSError) as error:
        reason = first_line(error)
        raise ReaderError(f"{source}: not a whole Parquet file ({reason})") from error


def _is_log(source: Path) -> bool:
    """Whether the first line is lm-eval's; a torn line is left to that reader to name."""
    try:
        with source.open("rb") as file:
            row = json.loads(file.readline().decode("utf-8"))
    except (ValueError, OSError, RecursionError):
        return True
    return not isinstance(row, dict) or "doc_hash" in row
