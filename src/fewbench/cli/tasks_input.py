"""What the commands of fewbench tasks read: matrices, texts, selections, results."""

import os
from pathlib import Path
from urllib.parse import quote

import numpy as np

from fewbench._names import some
from fewbench.cli.options import load, say
from fewbench.errors import MethodError
from fewbench.methods.tasks import (
    TaskMatrix,
    TaskSelection,
    Transferability,
    is_transferability,
)
from fewbench.methods.tasks.texts import of_texts
from fewbench.methods.tasks.transferability import MATRIX
from fewbench.readers.task_table import read_task_table
from fewbench.scores import Average
from fewbench.study.tasks import TaskResults, Weigh

AVERAGES: dict[Weigh, Average] = {"questions": "micro", "tasks": "macro"}


def read_given(path: Path, weigh: Weigh | None) -> Transferability | TaskMatrix:
    """Read transferability, or past scores, which compare tasks too."""
    from fewbench.transfer.journal import HEADER

    if (path / HEADER).is_file() and not (path / MATRIX).is_file():
        raise MethodError(
            f"{path}: the measurement is not finished",
            hint="run fewbench transfer measure again as before: it goes on",
        )
    if is_transferability(path) or not path.exists():
        return Transferability.load(path)
    return TaskMatrix.of_scores(load(path, None if weigh is None else AVERAGES[weigh]))


def by_texts(given: Transferability | TaskMatrix, texts: list[str] | None) -> TaskMatrix:
    """Compare the same tasks by BM25 between their texts."""
    if not texts:
        raise MethodError(
            "bm25 compares the tasks' texts, and none are given",
            hint="--texts tasks/, as fewbench transfer measure takes them",
        )
    from fewbench.transfer.sources import read_tasks

    said = {task.name: task.whole_text for task in read_tasks(texts)}
    if isinstance(given, Transferability):
        return of_texts(said, given.tasks, given.n_questions)
    return of_texts(said, given.names, given.sizes)


def listed_names(names: str) -> list[str]:
    """Read names with commas between, or a file with one a line."""
    path = Path(names)
    if os.path.isfile(path):  # Path raises an error where a long list is no name of a file
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise MethodError(f"{path}: not a list of names in UTF-8") from error
        return [line.strip() for line in lines if line.strip()]
    return [name.strip() for name in names.split(",") if name.strip()]


def written_name(name: str) -> str:
    """Write a task's name so that it can stand in a method's settings."""
    return quote(name, safe=" _-./:;!?'&=@#")


def read_selection(path: Path) -> TaskSelection:
    """Read what fewbench tasks select -o wrote."""
    if not path.is_file():
        raise MethodError(f"{path}: no such file", hint="fewbench tasks select … -o FILE writes it")
    return TaskSelection.from_json(path.read_bytes(), str(path))


def read_results(path: Path, selection: TaskSelection, weigh: Weigh | None) -> TaskResults:
    """Read scores of single questions, or a .csv of models by tasks, for the selection's tasks."""
    names = list(selection.sizes)
    if path.suffix.lower() != ".csv":
        scores = load(path, None if weigh is None else AVERAGES[weigh])
        if lacking := [name for name in names if name not in scores.tasks]:
            raise MethodError(
                f"{path}: has no task {some(lacking)}",
                hint="its tasks need the names of the matrix",
            )
        of_benchmark = scores.items["task"].isin(names).to_numpy()
        if others := len(set(scores.tasks) - set(names)):
            say(f"note: {path}: {others} tasks are not in the matrix and are left out")
            scores = scores.take(items=of_benchmark.nonzero()[0])
        return TaskResults.of_scores(scores)
    table, notes = read_task_table(path, names)
    for note in notes:
        say(f"note: {note}")
    sizes = np.array([selection.sizes[name] for name in names], dtype=np.intp)
    models = tuple(map(str, table.index))
    return TaskResults(table.to_numpy(), models, tuple(names), sizes, weigh or "questions")
