"""Tasks of Inspect: a dataset file, or the dataset of a task in a Python file.

A sample's input is the question, its choices the options, its target the answer: a letter, or an
option's text; of an open question, the first target is the answer and the others are accepted
too. Of an input of several messages, the texts are joined by blank lines. Samples whose metadata
say `split` = "train" or "pool" are exemplars.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from fewbench.errors import MissingExtraError, TransferError, first_line
from fewbench.transfer.sources.building import (
    check_apart,
    make_question,
    make_task,
    right_option,
    subject_of,
)
from fewbench.transfer.task import Question, Task

IN_POOL = ("train", "pool")


def read_inspect(name: str) -> Task:
    """Return the task of a file of samples, or of a task in a Python file.

    Parameters
    ----------
    name : str
        FILE.json, FILE.jsonl or FILE.csv, with the fields of Inspect's samples; the task is named
        after the file. Or FILE.py@TASK: the file is run, the function of that name is called
        without arguments, and its task's dataset is read.

    Raises
    ------
    MissingExtraError
        If Inspect is not installed.
    TransferError
        If there is no such file or task, or a sample cannot be asked as a question.
    """
    try:
        datasets = import_module("inspect_ai.dataset")
    except ImportError as error:
        raise MissingExtraError(
            "datasets of Inspect are read with inspect-ai, which is not installed",
            hint="pip install 'fewbench[inspect]'",
        ) from error
    file, at, function = name.rpartition("@")
    path = Path(file if at and file.endswith(".py") else name)
    if not path.is_file():
        raise TransferError(f"inspect:{name}: there is no file {path}")
    readers = {
        ".json": datasets.json_dataset,
        ".jsonl": datasets.json_dataset,
        ".csv": datasets.csv_dataset,
    }
    if path.suffix == ".py":
        if not function or not at:
            raise TransferError(
                f"inspect:{name}: no task is named",
                hint=f"write inspect:{path}@TASK with the name of a function in it; the file is "
                "run then",
            )
        return _task(function, f"{path}@{function}", _dataset_of(path, function))
    if path.suffix not in readers:
        raise TransferError(
            f"inspect:{name}: not a dataset of Inspect",
            hint="it ends with .json, .jsonl or .csv, or is FILE.py@TASK",
        )
    try:
        samples = list(readers[path.suffix](str(path)))
    except Exception as error:  # Inspect has no error type of its own for this
        raise TransferError(
            f"{path}: not a dataset that Inspect can read ({first_line(error)})",
            hint="its records have the fields input and target, and choices, id, metadata",
        ) from error
    return _task(path.stem, str(path), samples)


def _dataset_of(path: Path, function: str) -> list[Any]:
    where = f"inspect:{path}@{function}"
    spec = spec_from_file_location(f"fewbench_inspect_{path.stem}", path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    beside = str(path.parent.resolve())
    sys.path.insert(0, beside)  # as Inspect does, for files that it imports
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec.loader.exec_module(module)
            found = getattr(module, function, None)
            if not callable(found):
                raise TransferError(
                    f"{where}: the file has no function {function!r}",
                    hint="name a function that returns a task of Inspect",
                )
            made = found()
            samples = list(made.dataset)
    except TransferError:
        raise
    except (Exception, SystemExit) as error:  # the file's own code
        raise TransferError(
            f"{where}: does not run ({type(error).__name__}: {first_line(error)})",
            hint="the function is called without arguments and returns a task with a dataset",
        ) from error
    finally:
        if beside in sys.path:
            sys.path.remove(beside)
    return samples


def _task(name: str, where: str, samples: Sequence[Any]) -> Task:
    questions: list[Question] = []
    pool: list[Question] = []
    for sample in samples:
        split = (sample.metadata or {}).get("split")
        group = pool if split in IN_POOL else questions
        place = f"pool-{len(group) + 1}" if group is pool else str(len(group) + 1)
        number = len(questions) + len(pool) + 1
        group.append(_question(sample, place, f"{where}, sample {number}"))
    if not questions:
        raise TransferError(f"{where}: holds no samples to be scored")
    check_apart(where, questions, pool)
    return make_task(
        where,
        name=name,
        subject=subject_of(name),
        questions=tuple(questions),
        pool=tuple(pool),
    )


def _question(sample: Any, place: str, where: str) -> Question:
    targets = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    options = tuple(sample.choices or ())
    fields: dict[str, Any] = {
        "id": place if sample.id is None else str(sample.id),
        "text": _text(sample.input, where),
        "options": options,
    }
    if not options:
        answer = targets[0] if targets else ""
        return make_question(where, **fields, answer=answer, also=tuple(targets[1:]))
    if len(targets) != 1:
        raise TransferError(f"{where}: has {len(targets)} right options; one is needed")
    return make_question(where, **fields, answer=right_option(targets[0], options, where))


def _text(given: Any, where: str) -> str:
    if isinstance(given, str):
        return given
    parts = []
    for message in given:
        if not isinstance(message.content, str) and any(
            part.type != "text" for part in message.content
        ):
            raise TransferError(f"{where}: shows more than text", hint="leave the sample out")
        parts.append(message.text)
    return "\n\n".join(part for part in parts if part)
