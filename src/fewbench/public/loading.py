"""The one way from what a user names to scores: a path, or the name of a public source."""

import os

from fewbench._lazy import pandas as pd
from fewbench._names import some
from fewbench._text import quoted
from fewbench._warned import issue
from fewbench.errors import ReaderError
from fewbench.public.kept import located
from fewbench.readers import Reading, are_items, import_results, look
from fewbench.readers.items import items_and_notes
from fewbench.readers.table_files import read_saved
from fewbench.scores import Scale, Scores, from_long, from_wide
from fewbench.scores.files import is_saved
from fewbench.scores.roles import as_scores, as_sources

LONG = ("model", "item", "score")
ATTRIBUTES = ("task", "date", "family")


def open_scores(place: str | os.PathLike[str], scale: Scale | None = None) -> Reading:
    """Return the scores that a user names, whatever they are; saved cells are read when used.

    A file of items alone gives scores of no models. A pack may contain only the chosen items:
    `as_scores` refuses it.

    Parameters
    ----------
    place : path or str
        A path, or the name of a public source; see `located`.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default; saved scores have their own.

    Raises
    ------
    MissingFileError
        If there is no such file, folder or source.
    ReaderError
        If the content cannot be read without options of `fewbench import`.
    """
    path = located(place)
    if is_saved(path):
        return read_saved(path, scale)
    found = look(path)
    if are_items(found):
        benchmark, notes = items_and_notes(path)
        return Reading(as_sources(benchmark), notes=notes)
    try:
        return import_results(found, scale=scale)
    except ReaderError as error:
        if not path.is_dir():
            raise
        hint = f"import them first: fewbench import {quoted(path)} … -o scores.parquet (in Python "
        hint += "import_results)" + (f" ({error.hint})" if error.hint else "")
        raise ReaderError(error.message, hint=hint) from error


def load_scores(
    source: "str | os.PathLike[str] | pd.DataFrame", *, scale: Scale | None = None
) -> Scores:
    """Load scores of source models.

    `import_results` has more options: metrics, filters, names of columns.

    Parameters
    ----------
    source : path, str or DataFrame
        A scores file or pack of fewbench, an .npz file, a folder of harness logs, a table, a file
        of items without scores, or the name of a public source (see `located`). A DataFrame has
        one row per model and item, with columns
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
    PublicError
        If a public source cannot be fetched.

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
    reading = open_scores(source, scale)
    issue(reading.notes)
    return as_scores(reading.scores)
