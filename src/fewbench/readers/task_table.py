"""A table of models' scores on tasks: a row a model, a column a task."""

import os
from pathlib import Path

import pandas as pd

from fewbench._content import other_separator, refuse_pointer, text_encoding, why_not_utf8
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
        refuse_pointer(path, ReaderError)
        if other := other_separator(path, ","):
            raise ReaderError(f"{path}: {other[0]}", hint=other[1])
        table = pd.read_csv(path, dtype={MODEL: str}, encoding=text_encoding(path))
    except FileNotFoundError as error:
        raise ReaderError(f"{path}: no such file") from error
    except UnicodeError as error:
        what, hint = why_not_utf8(path) or ("not a .csv table", None)
        raise ReaderError(f"{path}: {what}", hint=hint) from error
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


def read_question_counts(path: str | os.PathLike[str]) -> dict[str, int]:
    """Read how many questions each task has from a .csv with columns `task` and `questions`.

    Raises
    ------
    ReaderError
        If the file is no such table, a task appears twice, or a number is not 1 or more.
    """
    path = Path(path)
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError as error:
        raise ReaderError(f"{path}: no such file") from error
    except (ValueError, OSError) as error:
        raise ReaderError(f"{path}: not a .csv table") from error
    if lacking := [name for name in ("task", "questions") if name not in table]:
        raise ReaderError(
            f"{path}: no column {some(lacking)}; it has {some(list(table.columns))}",
            hint="a row for each task, in columns task and questions",
        )
    if (twice := table["task"].duplicated()).any():
        raise ReaderError(f"{path}: tasks named twice: {some(table['task'][twice].unique())}")
    for task, number in zip(table["task"], table["questions"], strict=True):
        if not number.isdecimal() or int(number) < 1:
            raise ReaderError(
                f"{path}: {task} has {number!r} questions", hint="whole numbers of 1 or more"
            )
    return dict(zip(table["task"], map(int, table["questions"]), strict=True))
