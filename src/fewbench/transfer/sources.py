"""Read tasks by name: JSON lines (one question a line), lm-eval or Inspect.

Fields of a line: `question` and `answer`; where wanted `options`, `task`, `id`, `split`,
`instruction`, `subject`, `also`. docs/transfer.md has the table.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from fewbench._names import counted, some
from fewbench.errors import TransferError
from fewbench.transfer.harness_tasks import read_inspect, read_lm_eval
from fewbench.transfer.task import (
    IN_POOL,
    LETTERS,
    Question,
    Task,
    check_apart,
    made,
    right_option,
    subject_of,
)

FORMS = "a .jsonl file, a folder of them, lm-eval:NAME, inspect:FILE or inspect:FILE.py@TASK"
Text = Annotated[StrictStr, Field(min_length=1)]
ONE_A_LINE = "write one object a line, without [ ] around them and commas at the lines' ends"
MEANT = {  # what other formats call the fields
    **dict.fromkeys(("choices", "choice", "candidates"), "options"),
    **dict.fromkeys(("input", "prompt", "text"), "question"),
    **dict.fromkeys(("target", "label", "gold", "output"), "answer"),
    **dict.fromkeys(("category", "topic"), "subject"),
}


def read_tasks(names: Sequence[str], *, include_path: str | Path | None = None) -> list[Task]:
    """Return the tasks of all names, in their order.

    Parameters
    ----------
    names : sequence of str
        Each the path of a .jsonl file or of a folder of them, `lm-eval:NAME` (a task, group or
        tag of lm-eval), `inspect:FILE` (.json, .jsonl or .csv) or `inspect:FILE.py@TASK`. The
        last one, and tasks of lm-eval that have Python functions, run the code of their files.
    include_path : path, optional
        A folder with further tasks of lm-eval.

    Raises
    ------
    TransferError
        If something cannot be found or read, or two tasks have the same name.
    MissingExtraError
        If lm-eval or Inspect is needed and not installed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sums.jsonl").write_text('{"question": "2 + 2 =", "answer": "4"}')
    >>> [(task.name, len(task.questions)) for task in read_tasks([str(folder)])]
    [('sums', 1)]
    """
    if not names:
        raise TransferError("no tasks are named", hint=FORMS)
    found: list[tuple[str, Task]] = []
    harness = [name.removeprefix("lm-eval:") for name in names if name.startswith("lm-eval:")]
    loaded = read_lm_eval(harness, include_path) if harness else {}
    for name in names:
        kind, _, rest = name.partition(":")
        if kind == "lm-eval":
            found += [(name, task) for task in loaded[rest]]
        elif kind == "inspect":
            found.append((name, read_inspect(rest)))
        else:
            found += [(str(file), task) for file in _jsonl_files(name) for task in read_jsonl(file)]
    origins: dict[str, str] = {}
    for origin, task in found:
        if task.name in origins:
            raise TransferError(
                f"two tasks have the name {task.name!r}: one of {origins[task.name]} and one of "
                f"{origin}",
                hint="name each source once; rename one of the tasks, or put all lines of a task "
                "into one file",
            )
        origins[task.name] = origin
    return [task for _, task in found]


def _jsonl_files(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        files = sorted(file for file in path.glob("*.jsonl") if not file.name.startswith("."))
        if not files:
            inside = some(sorted(file.name for file in path.iterdir())) or "nothing"
            raise TransferError(
                f"{path}: a folder without .jsonl files (it holds {inside})",
                hint="name the folder that holds them",
            )
        return files
    if not path.exists():
        raise TransferError(f"tasks {name!r}: no such file or folder", hint=f"write {FORMS}")
    if path.suffix != ".jsonl":
        raise TransferError(
            f"{path}: not a .jsonl file", hint=f"write {FORMS}; rename it if it holds JSON lines"
        )
    return [path]


def passed_over(names: Sequence[str]) -> list[str]:
    """Return, in words, which files of the folders among the names are no .jsonl files.

    Hidden files, whose names begin with a dot, and folders are not mentioned.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sums.json").write_text("[]")
    >>> print(passed_over([str(folder)])[0].partition(": ")[2])
    not read, for they do not end in .jsonl: 'sums.json'
    """
    notes = []
    for name in names:
        path = Path(name)
        if name.partition(":")[0] in ("lm-eval", "inspect") or not path.is_dir():
            continue
        others = sorted(
            file.name
            for file in path.iterdir()
            if file.is_file() and file.suffix != ".jsonl" and not file.name.startswith(".")
        )
        if others:
            notes.append(f"{path}: not read, for they do not end in .jsonl: {some(others)}")
    return notes


class Line(BaseModel):
    """A line as it is written."""

    model_config = ConfigDict(extra="forbid")

    task: Text | None = None
    question: Text
    options: list[StrictStr] | dict[str, StrictStr] | None = None
    answer: StrictInt | StrictFloat | StrictStr
    id: StrictInt | Text | None = None
    split: Literal["train", "pool", "test"] | None = None
    instruction: StrictStr | None = None
    subject: Text | None = None
    also: list[StrictStr] = []


@dataclass
class _Gathered:
    """What the lines of a task have said so far."""

    questions: list[Question] = field(default_factory=list)
    pool: list[Question] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    facts: dict[str, tuple[str, int]] = field(default_factory=dict)


def read_jsonl(path: Path) -> list[Task]:
    r"""Return the tasks of a file, in the order in which they first appear.

    Parameters
    ----------
    path : Path
        UTF-8, an object a line; empty lines are passed over.

    Raises
    ------
    TransferError
        If the file cannot be read, a line is not whole or says something else than expected, or
        a question is among the exemplars and the scored ones.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "sums.jsonl"
    >>> _ = path.write_text('{"question": "2 + 2 =", "options": ["3", "4"], "answer": "B"}\n'
    ...                     '{"question": "1 + 1 =", "options": ["2", "0"], "answer": "A", '
    ...                     '"split": "train"}\n')
    >>> [(task.name, len(task.questions), len(task.pool)) for task in read_jsonl(path)]
    [('sums', 1, 1)]
    """
    tasks: dict[str, _Gathered] = {}
    for number, data in _objects(path):
        where = f"{path}, line {number}"
        line = _line(data, where)
        name = path.stem if line.task is None else line.task
        _add(tasks.setdefault(name, _Gathered()), line, number, where)
    if not tasks:
        raise TransferError(f"{path}: holds no questions", hint="write an object a line")
    return [_task(name, gathered, path) for name, gathered in tasks.items()]


def _objects(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise TransferError(f"{path}: cannot be read ({error.strerror})") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise TransferError(
                f"{path}, line {number}: not UTF-8 text (byte {error.start + 1} of the line)",
                hint="save the file as UTF-8",
            ) from error
        try:
            yield number, json.loads(text, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise TransferError(
                f"{path}, line {number}: not a whole JSON object ({error})",
                hint=ONE_A_LINE
                if _of_array(text)
                else "write each question as one object on one line",
            ) from error


def _of_array(text: str) -> bool:
    """Whether a line looks like a part of a JSON array, or of an object over several lines."""
    return text.strip() in {"[", "]", "{", "}", "},"} or text.strip().endswith((",", "}]"))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found


def _line(data: Any, where: str) -> Line:
    fields = ", ".join(Line.model_fields)
    if not isinstance(data, dict):
        hint = ONE_A_LINE if isinstance(data, list) else f"its fields are {fields}"
        raise TransferError(f"{where}: not an object", hint=hint)
    unknown = sorted(set(data) - set(Line.model_fields))
    if unknown:
        what = "unknown field" if len(unknown) == 1 else "unknown fields"
        meant = {name: MEANT[name.lower()] for name in unknown if name.lower() in MEANT}
        todo = [f"{name!r} is called {known!r} here" for name, known in meant.items()]
        if others := [name for name in unknown if name not in meant]:
            todo.append(f"remove {some(others)}")
        raise TransferError(
            f"{where}: {what} {some(unknown)}", hint=f"{', '.join(todo)}; known are {fields}"
        )
    try:
        return Line.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        expected = {
            "question": "a text",
            "options": 'a list of texts, or {"A": text, "B": text, …}',
            "answer": "a letter, a position, an option's text, or the text of an open answer",
            "split": '"test" (scored, as without it), "train" or "pool" (for exemplars)',
            "id": "a text or a whole number",
            "also": "a list of texts",
        }.get(str(first["loc"][0]), "a text")
        said = "is missing" if first["type"] == "missing" else "is not as expected"
        options = data.get("options")
        given = _texts(options) if isinstance(options, list | dict) else []
        if first["loc"][0] == "options" and any(type(each) in (int, float) for each in given):
            expected += '; put numbers into quotes, as ["3", "4"]'
        raise TransferError(
            f"{where}: the field {first['loc'][0]!r} {said}", hint=f"it is {expected}"
        ) from error


def _add(gathered: _Gathered, line: Line, number: int, where: str) -> None:
    for fact in ("instruction", "subject"):
        said = getattr(line, fact)
        known = gathered.facts.setdefault(fact, (said, number)) if said is not None else None
        if known and known[0] != said:
            raise TransferError(
                f"{where}: another {fact} than line {known[1]} gives the task",
                hint="give it on one line of the task, or the same on all",
            )
    group = gathered.pool if line.split in IN_POOL else gathered.questions
    place = f"pool-{len(group) + 1}" if line.split in IN_POOL else str(len(group) + 1)
    name = place if line.id is None else str(line.id)
    if name in gathered.lines:
        raise TransferError(
            f"{where}: the id {name!r} is that of line {gathered.lines[name]} too",
            hint="ids are unique in a task; a line without one is known by its place",
        )
    gathered.lines[name] = number
    group.append(_question(line, name, where))


def _question(line: Line, name: str, where: str) -> Question:
    options = _options(line.options, where)
    answer: int | str
    if not options:
        answer = line.answer if isinstance(line.answer, str) else json.dumps(line.answer)
    elif isinstance(line.answer, float):
        raise TransferError(f"{where}: the answer {line.answer} is no option's position")
    else:
        answer = right_option(line.answer, options, where)
        if line.also:
            raise TransferError(
                f"{where}: 'also' has other texts of an open answer, and there are options",
                hint="remove it",
            )
    return made(
        Question,
        where,
        id=name,
        text=line.question,
        options=options,
        answer=answer,
        also=tuple(line.also),
    )


def _options(options: list[str] | dict[str, str] | None, where: str) -> tuple[str, ...]:
    if not options:
        return ()
    letters = LETTERS[: len(options)]
    if len(options) == 1 or len(options) > len(LETTERS):
        raise TransferError(
            f"{where}: {counted(len(options), 'option')}", hint="2 to 26; an open question has none"
        )
    texts = [" ".join(option.split()) for option in _texts(options)]
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise TransferError(
            f"{where}: two options are the same: {twice[0]!r}", hint="each option stands once"
        )
    if isinstance(options, list):
        return tuple(options)
    if sorted(options) != list(letters):
        raise TransferError(
            f"{where}: the options are named {some(options)}",
            hint=f"name them {letters[0]} to {letters[-1]}, or give a list",
        )
    return tuple(options[letter] for letter in letters)


def _texts(options: list[Any] | dict[str, Any]) -> list[Any]:
    return options if isinstance(options, list) else list(options.values())


def _task(name: str, gathered: _Gathered, path: Path) -> Task:
    where = f"{path}, task {name!r}"
    if not gathered.questions:
        raise TransferError(
            f"{where}: all its questions are for exemplars, none to be scored",
            hint='leave "split" out of some, or remove it from all: exemplars are set aside then',
        )
    check_apart(where, gathered.questions, gathered.pool, gathered.lines)
    facts = {fact: said for fact, (said, _) in gathered.facts.items()}
    return made(
        Task,
        where,
        name=name,
        subject=facts.get("subject", subject_of(name)),
        instruction=facts.get("instruction"),
        questions=tuple(gathered.questions),
        pool=tuple(gathered.pool),
    )
