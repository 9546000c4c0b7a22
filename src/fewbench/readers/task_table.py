"""A table of models' scores on tasks: a row a model, a column a task."""

import os
from pathlib import Path

import pandas as pd

from fewbench._names import some
from fewbench.errors import ReaderError

MODEL = "model"


def read_task_table(
    path: str | os.PathLike[str], tasks: list[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read models' scores on given tasks from a .csv with a column `model`.

    Parameters
    ----------
    tasks : list of str
        The columns that are taken, all of them needed.

    Returns
    -------
    DataFrame, shape (models, tasks)
        Its index the models.
    tuple of str
        What a user should know: columns that are no tasks and were not read.

    Raises
    ------
    ReaderError
        If the file is no such table, a task lacks, a model appears twice or a score is no number.
    """
    path = Path(path)
    try:
        table = pd.read_csv(path, dtype={MODEL: str})
    except FileNotFoundError as error:
        raise ReaderError(f"{path}: no such file") from error
    except (ValueError, OSError) as error:
        raise ReaderError(f"{path}: not a .csv table") from error
    if MODEL not in table:
        raise ReaderError(
            f"{path}: no column {MODEL!r}; it has {some(list(table.columns))}",
            hint="a row a model, its name in the column model, and a column a task",
        )
    if lacking := [task for task in tasks if task not in table]:
        raise ReaderError(
            f"{path}: no column for {len(lacking)} of {len(tasks)} tasks: {some(lacking)}",
            hint="every task needs a column of its name",
        )
    if not len(table):
        raise ReaderError(f"{path}: has no models", hint="a row a model under the header")
    if table[MODEL].isna().any():
        raise ReaderError(f"{path}: row {table[MODEL].isna().argmax() + 2} names no model")
    if (twice := table[MODEL].duplicated()).any():
        raise ReaderError(f"{path}: models named twice: {some(table[MODEL][twice].unique())}")
    scores = table.set_index(MODEL)[tasks]
    for task in tasks:
        column = pd.to_numeric(scores[task], errors="coerce")
        if column.isna().any():
            model = scores.index[column.isna()][0]
            raise ReaderError(
                f"{path}: {model} has {scores.loc[model, task]!r} for {task}, not a number",
                hint="leave the model out, or run it there",
            )
        scores[task] = column
    others = [str(column) for column in table.columns if column not in {MODEL, *tasks}]
    notes = (f"{path}: columns that are no tasks, not read: {some(others)}",) if others else ()
    return scores.astype(float), notes
