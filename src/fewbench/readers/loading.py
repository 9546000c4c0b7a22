"""Load scores from whatever holds them: a file, a folder of logs, a pack, a DataFrame."""

import os
from pathlib import Path

from fewbench._lazy import pandas as pd
from fewbench._names import some
from fewbench._warned import issue
from fewbench.errors import ReaderError
from fewbench.readers.items import are_items, read_items
from fewbench.readers.reading import read
from fewbench.scores import Scale, Scores, from_long, from_wide, open_sources
from fewbench.scores.files import is_saved
from fewbench.scores.pack_files import is_pack
from fewbench.scores.roles import as_scores

LONG = ("model", "item", "score")
ATTRIBUTES = ("task", "date", "family")


def load_scores(
    source: "str | os.PathLike[str] | pd.DataFrame", *, scale: Scale | None = None
) -> Scores:
    """Load scores of source models.

    `import_results` has more options: metrics, filters, names of columns.

    Parameters
    ----------
    source : path or DataFrame
        A scores file or pack of fewbench, an .npz file, a folder of harness logs, a table, or a
        file of items without scores. A DataFrame has one row per model and item, with columns
        `model`, `item`, `score` and optionally `task`, `date` and `family`; or one row per model
        (the index) and one column per item.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default; saved scores have their own.

    Raises
    ------
    ReaderError, ScoresError
        If the kind is unknown, or the content is invalid.
    PackError
        For a pack that contains only the chosen items. Use `open_pack`.

    Warns
    -----
    EstimateWarning
        For each fact that changes what the scores mean, such as a file that could not be read.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"q1": [1, 0], "q2": [1, 1]}, index=["a", "b"])
    >>> load_scores(table).full_scores().tolist()
    [1.0, 0.5]
    """
    if isinstance(source, pd.DataFrame):
        lacking = [name for name in LONG if name not in source.columns]
        if len(lacking) == 1:
            raise ReaderError(
                f"the table has no column {lacking[0]!r}; its columns are "
                f"{some(source.columns, most=8)}",
                hint=f"rename the column of {lacking[0]}s to {lacking[0]!r}",
            )
        if lacking:
            return from_wide(source, scale=scale)
        task, date, family = (name if name in source.columns else None for name in ATTRIBUTES)
        return from_long(
            source, model="model", item="item", score="score",
            task=task, date=date, family=family, scale=scale,
        )  # fmt: skip
    path = Path(source)
    if is_pack(path):
        return as_scores(open_sources(path))
    scores, notes = read_any(path, scale)
    issue(notes)
    return scores


def open_any(path: Path) -> tuple[Scores, tuple[str, ...]]:
    """Return the scores that a command was given, and notes; cells of saved ones are read later."""
    if is_pack(path) or (path.suffix == ".parquet" and is_saved(path)):
        return open_sources(path), ()
    return read_any(path)


def read_any(path: Path, scale: Scale | None = None) -> tuple[Scores, tuple[str, ...]]:
    """Return the scores in a file or folder that needs no options, and notes; no pack."""
    if path.is_file() and are_items(path):
        return as_scores(read_items(path)), ()
    try:
        reading = read(path, scale=scale)
    except ReaderError as error:
        if not path.is_dir():
            raise
        hint = f"import them first: fewbench import {path} … -o scores.parquet (in Python "
        hint += "import_results)" + (f" ({error.hint})" if error.hint else "")
        raise ReaderError(error.message, hint=hint) from error
    return reading.scores, tuple(reading.notes)
