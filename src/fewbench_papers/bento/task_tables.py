"""Small tables about tasks: scores of models on whole tasks, and numbers of questions."""

import os
from pathlib import Path

from fewbench.errors import ReaderError
from fewbench.readers.frames import load_table
from fewbench.support import pandas as pd
from fewbench.support import some


def read_task_table(
    path: str | os.PathLike[str], tasks: list[str]
) -> "tuple[pd.DataFrame, tuple[str, ...]]":
    """Read scores of models on tasks from a .csv with a column `model` and one column per task.

    Parameters
    ----------
    tasks : list of str
        The columns to read; all are required.

    Returns
    -------
    DataFrame, shape (models, tasks)
        Indexed by model.
    tuple of str
        Notes for the user: columns that were not read.

    Raises
    ------
    ReaderError
        If the file is not such a table, a task is missing, a model appears twice or a score is not
        a number.
    """
    path = Path(path)
    table = load_table(path, ["model", *tasks])
    if "model" not in table:
        raise ReaderError(
            f"{path}: no column 'model'; it has {some(list(table.columns))}",
            hint="write one row per model, with a column model and one column per task",
        )
    if lacking := [task for task in tasks if task not in table]:
        raise ReaderError(
            f"{path}: no column for {len(lacking)} of {len(tasks)} tasks: {some(lacking)}",
            hint="add a column for every task",
        )
    if not len(table):
        raise ReaderError(
            f"{path}: no models", hint="write one row per model under the header", kind="too-few"
        )
    models = table["model"]
    if (nameless := ~models.astype(bool)).any():
        raise ReaderError(f"{path}: row {nameless.argmax() + 2} names no model")
    if (twice := models.duplicated()).any():
        raise ReaderError(f"{path}: models named twice: {some(models[twice].unique())}")
    scores = table.set_index("model")[tasks]
    for task in tasks:
        column = pd.to_numeric(scores[task], errors="coerce")
        if column.isna().any():
            model = scores.index[column.isna()][0]
            raise ReaderError(
                f"{path}: {model} has {scores.loc[model, task]!r} for {task}, not a number",
                hint="run the model on the task, or remove the model",
            )
        scores[task] = column
    others = [str(column) for column in table.columns if column not in {"model", *tasks}]
    notes = (f"{path}: columns that are not tasks were skipped: {some(others)}",) if others else ()
    return scores.astype(float), notes


def read_question_counts(path: str | os.PathLike[str]) -> dict[str, int]:
    """Read the number of questions of each task from a .csv with columns `task` and `questions`.

    Raises
    ------
    ReaderError
        If the file is not such a table, a task appears twice, or a number is not 1 or more.
    """
    path = Path(path)
    table = load_table(path, ["task", "questions"])
    if lacking := [name for name in ("task", "questions") if name not in table]:
        raise ReaderError(
            f"{path}: no column {some(lacking)}; it has {some(list(table.columns))}",
            hint="write one row per task, with columns task and questions",
        )
    if (twice := table["task"].duplicated()).any():
        raise ReaderError(f"{path}: tasks named twice: {some(table['task'][twice].unique())}")
    for task, number in zip(table["task"], table["questions"], strict=True):
        if not str(number).isdecimal() or int(number) < 1:
            raise ReaderError(
                f"{path}: {task} has {number!r} questions", hint="use whole numbers from 1"
            )
    return dict(zip(table["task"], map(int, table["questions"]), strict=True))
