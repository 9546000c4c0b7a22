"""Ask models the questions of a file: tasks of Inspect, made from the file and run as any other.

docs/how-to/own-loop.md has a table of the file's fields.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import StrictInt

from fewbench._json import loads
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench.errors import ReaderError, RunError
from fewbench.evaluation import Stop
from fewbench.methods import Method
from fewbench.methods.base import AUTO
from fewbench.readers.harness import key_of, key_text
from fewbench.readers.harnesses.inspect_logs.samples import answer_key
from fewbench.runners.inspect.feed import inspect_with_sources
from fewbench.runners.inspect.runner import run_inspect
from fewbench.runners.question_lines import AskedLine, Text, parse_line, question_of, read_objects
from fewbench.runners.questions import Question
from fewbench.runners.result import RunResult
from fewbench.runners.servers import check_address, check_server, refusing_empty_replies
from fewbench.scores import Benchmark, Scores
from fewbench.scores.benchmark import OWN_ID
from fewbench.scores.roles import as_sources
from fewbench.scores.table import KEYS, NO_TASK

Scorer = Literal["auto", "choice", "exact", "match", "pattern"]
# Inspect's own defaults are to retry and to wait forever: 5 retries take about 90 s, and of a reply
# that takes longer than 600 s nothing more is expected.
LIMITS = {"--max-retries": "5", "--attempt-timeout": "600", "--timeout": "600"}
TEXT = "text"
"""Column of the sources' items with the text of each, which must be the question's."""


class QuestionLine(AskedLine):
    """A line of the file, or a row of a CSV file."""

    id: StrictInt | Text


def run_endpoint(
    path: str | Path,
    models: Sequence[str],
    scores: Scores | None,
    method: str | Method = AUTO,
    stop: Stop | int | None = None,
    *,
    url: str | None = None,
    scorer: Scorer = "auto",
    pattern: str | None = None,
    arguments: Sequence[str] = (),
    **settings: Any,
) -> RunResult:
    """Ask models the chosen questions of a file through Inspect, and estimate their scores.

    Parameters
    ----------
    path : path
        JSON lines or CSV, one question each.
    models : sequence of str
        Inspect's names of the models, such as `openai-api/local/NAME`.
    scores, method, stop
        As for `fewbench.runners.inspect.run_inspect`. Without scores, questions are drawn from all
        of the file's, in the order of a random sample.
    url : str, optional
        Address of the server.
    scorer : {"auto", "choice", "exact", "match", "pattern"}
        Inspect's scorer. `auto`: `choice` for tasks with options, `exact` for others.
    pattern : str, optional
        Regular expression that finds the answer, for the scorer `pattern`.
    arguments : sequence of str
        Further arguments of `inspect eval`.
    **settings
        Further arguments of `run_inspect`.

    Raises
    ------
    ReaderError
        If the file cannot be read, or a line has a mistake.
    RunError
        As `run_inspect`, or if questions are missing or others than in the scores.
    """
    inspect_with_sources()
    if plain := [name for name in models if "/" not in name]:
        raise RunError(
            f"{some(plain)} is not the name of a model in Inspect",
            hint=f"name the provider too, as openai-api/local/{plain[0]} for a server of your own",
        )
    if url is not None:
        check_address(url)
    accepts = bool(settings.get("accept_differences", False))
    if scores is None:
        scores = as_sources(question_benchmark(path))
    make = partial(question_tasks, path, scores, scorer, pattern, accept_differences=accepts)
    metrics = make()[1]
    words = ["--model", ",".join(models), *(("--model-base-url", url) if url else ()), *arguments]
    named = {word.partition("=")[0] for word in arguments}
    words += [word for pair in LIMITS.items() if pair[0] not in named for word in pair]

    def make_tasks() -> list[Any]:
        if url is not None:
            check_server(url)
        return make()[0]

    settings |= {"make_tasks": make_tasks, "metric": metrics}
    with refusing_empty_replies():
        return run_inspect(scores, method, stop, words, **settings)


def question_tasks(
    path: str | Path,
    scores: Scores,
    scorer: Scorer = "auto",
    pattern: str | None = None,
    *,
    accept_differences: bool = False,
) -> tuple[list[Any], dict[str, str]]:
    """Return a task of Inspect for each task of the scores, and the scorer of each.

    Questions with options use Inspect's `multiple_choice`; others are sent unchanged.

    Raises
    ------
    ReaderError
        If the file cannot be read, or a line has a mistake.
    RunError
        If the scorer does not fit the questions, or they are others than in the scores.
    """
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.scorer import choice, exact, match
    from inspect_ai.scorer import pattern as pattern_scorer
    from inspect_ai.solver import generate, multiple_choice

    if (pattern is not None) != (scorer == "pattern"):
        raise RunError(
            "the scorer pattern needs a pattern, and no other scorer takes one",
            hint="give --scorer pattern with --pattern REGEX, or neither",
        )
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise RunError(f"the pattern {pattern!r} is not a regular expression: {error}") from error
    makers = {"choice": choice, "exact": exact, "match": match}
    tasks, metrics = [], {}
    for name, questions in read_questions(Path(path), scores).items():
        if not accept_differences:
            _check_texts(path, scores, name, questions)
        metrics[name] = kind = _scorer_of(f"{path}, task {name!r}", questions, scorer)
        made_scorer = makers[kind]() if kind in makers else pattern_scorer(pattern or "")
        tasks.append(
            Task(
                name=name,
                dataset=MemoryDataset(
                    [_sample(question) for question in questions], name=Path(path).stem
                ),
                solver=multiple_choice() if kind == "choice" else generate(),
                scorer=made_scorer,
            )
        )
    return tasks, metrics


def question_benchmark(path: str | Path) -> Benchmark:
    """Return the questions of a file as items: task, text, answer, options.

    Items have the ids of questions, TASK/ID where tasks share an id.

    Raises
    ------
    ReaderError
        If the file cannot be read, has no questions, or a line has a mistake.
    """
    asked = [
        (task, question)
        for task, several in read_questions(Path(path)).items()
        for question in several
    ]
    if not asked:
        raise ReaderError(f"{path}: no questions", hint="write one question a line")
    often = Counter(question.id for _, question in asked)
    columns: dict[str, list[str]] = {
        "task": [task for task, _ in asked],
        TEXT: [question.text for _, question in asked],
        "answer": ["\n".join([question.shown, *question.also]) for _, question in asked],
        "options": [json.dumps(question.options, ensure_ascii=False) for _, question in asked],
        OWN_ID: [question.id for _, question in asked],
        KEYS: [key_text(key_of(*answer_key(_sample(question)))) for _, question in asked],
    }
    ids = [
        question.id if often[question.id] == 1 else f"{task}/{question.id}"
        for task, question in asked
    ]
    return Benchmark(pd.DataFrame(columns, index=pd.Index(ids, dtype=object), dtype=object))


def read_questions(path: Path, scores: Scores | None = None) -> dict[str, list[Question]]:
    """Return the questions of a file for each task of the scores, or for each of the file's.

    Examples
    --------
    >>> import tempfile
    >>> from fewbench.testing import simulate
    >>> path = Path(tempfile.mkdtemp()) / "items.jsonl"
    >>> _ = path.write_text('{"id": "q1", "question": "2 + 2 =", "answer": "4"}')
    >>> [one.text for one in read_questions(path, simulate(5, 9, 1))["task-0"]]
    ['2 + 2 =']
    """
    tasks = {} if scores is None else scores.items["task"].astype(str).to_dict()
    names = [NO_TASK] if scores is None else scores.tasks
    by_task: dict[str, dict[str, Question]] = defaultdict(dict)
    for where, data in _rows(path):
        line = parse_line(data, where, QuestionLine)
        name = str(line.id)
        task = line.task or tasks.get(name) or (names[0] if len(names) == 1 else None)
        if task is None:
            raise RunError(
                f"{where}: the scores have no item {name!r}, and several tasks",
                hint="give the id that the item has in the scores, or the field 'task'",
            )
        if name in by_task[task]:
            raise ReaderError(
                f"{where}: the item {name!r} appears twice", hint="give it once", kind="repeated"
            )
        by_task[task][name] = question_of(line, name, where)
    names = list(by_task) if scores is None else names
    if lacking := [task for task in names if task not in by_task]:
        raise RunError(
            f"{path}: no question of task {some(lacking)}",
            hint="write every item of the scores, with its id or text there",
        )
    return {task: list(by_task[task].values()) for task in names}


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the place and the fields of each line of JSON, or of each row of CSV."""
    if path.suffix.lower() != ".csv":
        yield from ((f"{path}, line {number}", data) for number, data in read_objects(path))
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            for row in rows:
                where = f"{path}, line {rows.line_num}"
                if None in row:
                    raise ReaderError(f"{where}: more cells than columns", hint="quote commas")
                yield where, {name: _cell(name, cell, where) for name, cell in row.items() if cell}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReaderError(f"{path}: cannot be read as CSV ({error})") from error


def _cell(name: str, text: str, where: str) -> Any:
    if name not in ("options", "also"):
        return text
    try:
        return loads(text)
    except ValueError as error:
        example = json.dumps(["3", "4"])
        raise ReaderError(
            f"{where}: the column {name!r} is not JSON", hint=f"write a list, as {example}"
        ) from error


def _scorer_of(where: str, questions: Sequence[Question], scorer: Scorer) -> str:
    """Return the scorer of a task; RunError if some of its questions do not fit it."""
    with_options = [question.id for question in questions if question.options]
    without = [question.id for question in questions if not question.options]
    if scorer == "auto" and with_options and without:
        raise RunError(
            f"{where}: {counted(len(with_options), 'question')} with options ({some(with_options)})"
            f" and {len(without)} without ({some(without)})",
            hint="give all questions of a task options, or none",
        )
    kind = ("choice" if with_options else "exact") if scorer == "auto" else scorer
    if wrong := without if kind == "choice" else with_options:
        what = "without options" if kind == "choice" else "with options"
        raise RunError(
            f"{where}: scorer {kind}, but {counted(len(wrong), 'question')} {what}: {some(wrong)}",
            hint="leave out --scorer, or write the options into the question",
        )
    return kind


def _sample(question: Question) -> Any:
    from inspect_ai.dataset import Sample

    targets = [question.shown, *question.also]
    return Sample(
        id=question.id,
        input=question.text,
        choices=list(question.options) or None,
        target=targets if question.also else question.shown,
    )


def _check_texts(
    path: str | Path, scores: Scores, task: str, questions: Sequence[Question]
) -> None:
    """Raise RunError if the scores have other texts for the ids of questions."""
    if TEXT not in scores.items:
        return
    texts = scores.items[TEXT].to_dict()
    theirs = {
        question.id: texts.get(question.id, texts.get(f"{task}/{question.id}"))
        for question in questions
    }
    other = [
        question.id
        for question in questions
        if isinstance(text := theirs[question.id], str) and not _is_same(text, question.text)
    ]
    if other:
        raise RunError(
            f"{path}: {counted(len(other), 'item')} whose text differs from the scores: "
            f"{some(other)}",
            hint="give the questions that the source models answered, or pass --accept-differences "
            "if the texts differ in form only",
            kind="changed",
        )


def _is_same(text_of: str, other: str) -> bool:
    """Whether one text contains the other, without regard to spaces and case."""
    text_of, other = ("".join(text.split()).casefold() for text in (text_of, other))
    return text_of in other or other in text_of
