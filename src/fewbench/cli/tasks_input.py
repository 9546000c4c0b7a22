"""What the commands of fewbench tasks read: matrices, texts, selections, results."""

import os
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import numpy as np

from fewbench._names import some
from fewbench.cli.options import load
from fewbench.cli.text import say
from fewbench.errors import MethodError
from fewbench.methods.tasks import (
    TaskMatrix,
    TaskSelection,
    Transferability,
    is_transferability,
)
from fewbench.methods.tasks.texts import of_texts
from fewbench.methods.tasks.transferability import MATRIX, Metric
from fewbench.readers.task_table import read_question_counts, read_task_table
from fewbench.scores import Average
from fewbench.study.tasks import TaskResults, Weigh
from fewbench.study.tasks.costs import CostlyTasks, TaskPlan

AVERAGES: dict[Weigh, Average] = {"questions": "micro", "tasks": "macro"}


def read_given(
    path: Path, weigh: Weigh | None, metric: Metric | None, transform: Literal["exp"] | None
) -> tuple[Transferability | TaskMatrix, TaskResults | None]:
    """Read transferability, or past scores, which compare tasks too and can judge."""
    if is_transferability(path) or _is_measurement(path) or not path.exists():
        return read_matrix(path, metric, transform), None
    if metric is not None or transform is not None:
        raise MethodError(
            f"{path}: past scores, and --metric and --transform are for a matrix",
            hint="leave them out",
        )
    scores = load(path, None if weigh is None else AVERAGES[weigh])
    return TaskMatrix.of_scores(scores), TaskResults.of_scores(scores)


def read_matrix(
    path: Path, metric: Metric | None, transform: Literal["exp"] | None
) -> Transferability:
    """Read transferability, with what the user says of it."""
    if _is_measurement(path) and not (path / MATRIX).is_file():
        raise MethodError(
            f"{path}: the measurement is not finished",
            hint="run fewbench transfer measure again as before: it goes on",
        )
    given = Transferability.load(path, metric)
    return given if transform is None else given.transformed(transform)


def _is_measurement(path: Path) -> bool:
    from fewbench.transfer.journal import HEADER

    return (path / HEADER).is_file()


def plan_of(costly: CostlyTasks, past: TaskResults | None, seed: int) -> TaskPlan:
    """Share a budget between tasks and questions by past scores; MethodError without them."""
    if past is None or past.questions is None:
        raise MethodError(
            "--budget needs past scores to say how many tasks",
            hint="give scores as MATRIX, or the number of tasks by -k",
        )
    return costly.plan(past.questions, seed)


def read_sizes(
    questions: str | None,
    given: Transferability | TaskMatrix | TaskSelection,
    results: TaskResults | None,
) -> dict[str, int] | None:
    """Return each task's number of questions, as the user or the results say; None if neither."""
    if isinstance(given, TaskSelection):
        names = tuple(given.sizes)
    else:
        names = given.tasks if isinstance(given, Transferability) else given.names
    if questions is None:
        if results is None or results.questions is None:
            return None
        return dict(zip(results.tasks, map(int, results.sizes), strict=True))
    if questions.isdecimal():
        if int(questions) < 2:
            raise MethodError(f"--questions {questions}", hint="a number of 2 or more, or a file")
        return dict.fromkeys(names, int(questions))
    path = Path(questions)
    if path.suffix.lower() == ".csv":
        found = read_question_counts(path)
    else:
        numbers = load(path).items["task"].value_counts()
        found = {str(task): int(number) for task, number in numbers.items()}
    if lacking := [name for name in names if name not in found]:
        raise MethodError(
            f"{path}: no number of questions for {some(lacking)}", hint="name every task"
        )
    return {name: found[name] for name in names}


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


def read_results(
    path: Path,
    names: tuple[str, ...],
    weigh: Weigh | None,
    losses: bool,
    transform: Literal["exp"] | None,
) -> TaskResults:
    """Read scores of single questions, or a .csv of models by tasks, for the named tasks.

    Of a .csv the tasks' numbers of questions are not known.
    """
    if path.suffix.lower() != ".csv":
        if losses:
            raise MethodError(
                f"{path}: --lower-is-better is for results in a .csv",
                hint="scores say themselves which is better (fewbench import --lower-is-better)",
            )
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
    table, notes = read_task_table(path, list(names))
    for note in notes:
        say(f"note: {note}")
    values = table.to_numpy()
    if losses and transform == "exp":
        values, losses = np.exp(-values), False
    sizes = np.ones(len(names), dtype=np.intp)
    models = tuple(map(str, table.index))
    return TaskResults(values, models, names, sizes, weigh or "questions", losses=losses)
