"""Read tasks by name: JSON lines (one question a line), lm-eval or Inspect.

A line holds `question` and `answer`, and optionally `options`, `task`, `id`, `split`,
`instruction`, `subject` and `also`. docs/transfer.md has the table.
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
from fewbench.transfer.prompts import (
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
ONE_A_LINE = "write one object per line, without [ ] around all and without commas at line ends"
KNOWN_AS = {  # names of the fields in other formats
    **dict.fromkeys(("choices", "choice", "candidates"), "options"),
    **dict.fromkeys(("input", "prompt", "text"), "question"),
    **dict.fromkeys(("target", "label", "gold", "output"), "answer"),
    **dict.fromkeys(("category", "topic"), "subject"),
}
EXPECTED = {
    "question": "a text",
    "options": 'a list of texts, or {"A": text, "B": text, …}',
    "answer": "a letter, a position, an option's text, or the text of an open answer",
    "split": '"test" (scored; the default), "train" or "pool" (for exemplars)',
    "id": "a text or a whole number",
    "also": "a list of texts",
}


def read_tasks(names: Sequence[str], *, include_path: str | Path | None = None) -> list[Task]:
    """Return the tasks of all names, in their order.

    Parameters
    ----------
    names : sequence of str
        Paths of .jsonl files or of folders of them, `lm-eval:NAME` (a task, group or tag),
        `inspect:FILE` (.json, .jsonl or .csv) or `inspect:FILE.py@TASK`. The last form runs the
        file, and lm-eval runs the Python functions of its tasks.
    include_path : path, optional
        A folder with more lm-eval tasks.

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
        raise TransferError("no tasks are named", hint=f"give {FORMS}")
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
                f"two tasks have the name {task.name!r}: one from {origins[task.name]} and one "
                f"from {origin}",
                hint="name each source once; rename one task, or put all lines of a task into one "
                "file",
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
                f"{path}: the folder has no .jsonl files (it holds {inside})",
                hint="name the folder that holds them",
            )
        return files
    if not path.exists():
        raise TransferError(f"tasks {name!r}: no such file or folder", hint=f"give {FORMS}")
    if path.suffix != ".jsonl":
        raise TransferError(
            f"{path}: not a .jsonl file", hint=f"give {FORMS}; rename the file if it is JSON lines"
        )
    return [path]


def passed_over(names: Sequence[str]) -> list[str]:
    """Return a note for each named folder with visible files that are not .jsonl files."""
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
            notes.append(f"{path}: files that do not end in .jsonl are not read: {some(others)}")
    return notes


class Line(BaseModel):
    """A line of a .jsonl file."""

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
    """A task while its lines are read; `lines` and `facts` hold line numbers for messages."""

    questions: list[Question] = field(default_factory=list)
    pool: list[Question] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    facts: dict[str, tuple[str, int]] = field(default_factory=dict)


def read_jsonl(path: Path) -> list[Task]:
    """Return the tasks of a UTF-8 file, in order of first appearance; empty lines are skipped.

    Raises
    ------
    TransferError
        If the file cannot be read, a line is wrong, or an exemplar equals a scored question.
    """
    tasks: dict[str, _Gathered] = {}
    for number, data in _objects(path):
        where = f"{path}, line {number}"
        line = _line(data, where)
        name = path.stem if line.task is None else line.task
        _add(tasks.setdefault(name, _Gathered()), line, number, where)
    if not tasks:
        raise TransferError(f"{path}: holds no questions", hint="write one object per line")
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
            bare = text.strip()
            spread = bare in {"[", "]", "{", "}", "},"} or bare.endswith((",", "}]"))
            raise TransferError(
                f"{path}, line {number}: not a whole JSON object ({error})",
                hint=ONE_A_LINE if spread else "write each question as one object on one line",
            ) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field appears twice")
    return found


def _line(data: Any, where: str) -> Line:
    fields = ", ".join(Line.model_fields)
    if not isinstance(data, dict):
        hint = ONE_A_LINE if isinstance(data, list) else f"the fields are {fields}"
        raise TransferError(f"{where}: not an object", hint=hint)
    unknown = sorted(set(data) - set(Line.model_fields))
    if unknown:
        known = {name: KNOWN_AS[name.lower()] for name in unknown if name.lower() in KNOWN_AS}
        todo = [f"{name!r} is called {own!r} here" for name, own in known.items()]
        if others := [name for name in unknown if name not in known]:
            todo.append(f"remove {some(others)}")
        raise TransferError(
            f"{where}: unknown field{'' if len(unknown) == 1 else 's'} {some(unknown)}",
            hint=f"{', '.join(todo)}; the fields are {fields}",
        )
    try:
        return Line.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        problem = "is missing" if first["type"] == "missing" else "is not as expected"
        expected = EXPECTED.get(name, "a text")
        options = data.get("options")
        given = list(options.values()) if isinstance(options, dict) else options
        numbers = isinstance(given, list) and any(type(each) in (int, float) for each in given)
        if name == "options" and numbers:
            expected += '; put numbers into quotes, as ["3", "4"]'
        raise TransferError(
            f"{where}: the field {name!r} {problem}", hint=f"give {expected}"
        ) from error


def _add(gathered: _Gathered, line: Line, number: int, where: str) -> None:
    for fact in ("instruction", "subject"):
        value = getattr(line, fact)
        known = gathered.facts.setdefault(fact, (value, number)) if value is not None else None
        if known and known[0] != value:
            raise TransferError(
                f"{where}: the {fact} differs from the one in line {known[1]}",
                hint="give it in one line of the task, or the same in all lines",
            )
    group = gathered.pool if line.split in IN_POOL else gathered.questions
    place = f"pool-{len(group) + 1}" if line.split in IN_POOL else str(len(group) + 1)
    name = place if line.id is None else str(line.id)
    if name in gathered.lines:
        raise TransferError(
            f"{where}: line {gathered.lines[name]} has the id {name!r} too",
            hint="give each question of a task its own id; without an id, its position is used",
        )
    gathered.lines[name] = number
    group.append(_question(line, name, where))


def _question(line: Line, name: str, where: str) -> Question:
    options = _options(line.options, where)
    answer: int | str
    if not options:
        answer = line.answer if isinstance(line.answer, str) else json.dumps(line.answer)
    elif isinstance(line.answer, float):
        raise TransferError(f"{where}: the answer {line.answer} is not the position of an option")
    else:
        answer = right_option(line.answer, options, where)
        if line.also:
            raise TransferError(
                f"{where}: 'also' is for open answers, but the question has options",
                hint="remove 'also'",
            )
    also = tuple(line.also)
    return made(
        Question, where, id=name, text=line.question, options=options, answer=answer, also=also
    )


def _options(options: list[str] | dict[str, str] | None, where: str) -> tuple[str, ...]:
    if not options:
        return ()
    letters = LETTERS[: len(options)]
    if len(options) == 1 or len(options) > len(LETTERS):
        raise TransferError(
            f"{where}: {counted(len(options), 'option')}",
            hint="give 2 to 26 options, or none for an open question",
        )
    given = options if isinstance(options, list) else list(options.values())
    texts = [" ".join(option.split()) for option in given]
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise TransferError(
            f"{where}: two options are the same: {twice[0]!r}", hint="give each option once"
        )
    if isinstance(options, list):
        return tuple(options)
    if sorted(options) != list(letters):
        raise TransferError(
            f"{where}: the options are named {some(options)}",
            hint=f"name them {letters[0]} to {letters[-1]}, or give a list",
        )
    return tuple(options[letter] for letter in letters)


def _task(name: str, gathered: _Gathered, path: Path) -> Task:
    where = f"{path}, task {name!r}"
    if not gathered.questions:
        raise TransferError(
            f"{where}: all its questions are for exemplars; none is left to score",
            hint='remove "split" from some questions, or from all: exemplars are then set aside '
            "automatically",
        )
    check_apart(where, gathered.questions, gathered.pool, gathered.lines)
    facts = {"subject": subject_of(name)} | {k: value for k, (value, _) in gathered.facts.items()}
    questions, pool = tuple(gathered.questions), tuple(gathered.pool)
    return made(Task, where, name=name, questions=questions, pool=pool, **facts)
