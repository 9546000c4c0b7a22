"""Read tasks by name: JSON lines (one question a line), lm-eval or Inspect.

A line holds `question` and `answer`, and optionally `options`, `task`, `id`, `split`,
`instruction`, `subject` and `also`. docs/tasks.md has the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fewbench.errors import TransferError
from fewbench.runners.question_lines import Line, parse_line, question_of, read_objects
from fewbench.runners.questions import Question, made
from fewbench.support import some
from fewbench_papers.bento.measurement.harness_tasks import read_inspect, read_lm_eval
from fewbench_papers.bento.measurement.prompts import IN_POOL, MeasuredTask, check_apart, subject_of

FORMS = "a .jsonl file, a folder of them, lm-eval:NAME, inspect:FILE or inspect:FILE.py@TASK"


def read_tasks(
    names: Sequence[str], *, include_path: str | Path | None = None
) -> list[MeasuredTask]:
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
    TransferError, ReaderError
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
        raise TransferError("no tasks are named", hint=f"give {FORMS}", kind="too-few")
    named_tasks: list[tuple[str, MeasuredTask]] = []
    harness = [name.removeprefix("lm-eval:") for name in names if name.startswith("lm-eval:")]
    loaded = read_lm_eval(harness, include_path) if harness else {}
    for name in names:
        kind, _, rest = name.partition(":")
        if kind == "lm-eval":
            named_tasks += [(name, task) for task in loaded[rest]]
        elif kind == "inspect":
            named_tasks.append((name, read_inspect(rest)))
        else:
            named_tasks += [
                (str(file), task) for file in _jsonl_files(name) for task in read_jsonl(file)
            ]
    origins: dict[str, str] = {}
    for origin, task in named_tasks:
        if task.name in origins:
            raise TransferError(
                f"two tasks have the name {task.name!r}: one from {origins[task.name]} and one "
                f"from {origin}",
                hint="name each source once; rename one task, or put all lines of a task into one "
                "file",
                kind="repeated",
            )
        origins[task.name] = origin
    return [task for _, task in named_tasks]


def _jsonl_files(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        files = sorted(file for file in path.glob("*.jsonl") if not file.name.startswith("."))
        if not files:
            inside = some(sorted(file.name for file in path.iterdir())) or "nothing"
            raise TransferError(
                f"{path}: the folder has no .jsonl files (it holds {inside})",
                hint="name the folder that holds them",
                kind="missing",
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


@dataclass
class _Gathered:
    """A task while its lines are read; `lines` and `facts` hold line numbers for messages."""

    questions: list[Question] = field(default_factory=list)
    pool: list[Question] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    facts: dict[str, tuple[str, int]] = field(default_factory=dict)


def read_jsonl(path: Path) -> list[MeasuredTask]:
    """Return the tasks of a UTF-8 file, in order of first appearance; empty lines are skipped.

    Raises
    ------
    ReaderError
        If the file cannot be read, or a line is wrong.
    TransferError
        If an exemplar equals a scored question.
    """
    tasks: dict[str, _Gathered] = {}
    for number, data in read_objects(path):
        where = f"{path}, line {number}"
        line = parse_line(data, where, Line)
        name = path.stem if line.task is None else line.task
        _add(tasks.setdefault(name, _Gathered()), line, number, where)
    if not tasks:
        raise TransferError(
            f"{path}: contains no questions", hint="write one object per line", kind="too-few"
        )
    return [_task(name, gathered, path) for name, gathered in tasks.items()]


def _add(gathered: _Gathered, line: Line, number: int, where: str) -> None:
    for fact in ("instruction", "subject"):
        value = getattr(line, fact)
        first = gathered.facts.setdefault(fact, (value, number)) if value is not None else None
        if first and first[0] != value:
            raise TransferError(
                f"{where}: the {fact} differs from the one in line {first[1]}",
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
    group.append(question_of(line, name, where))


def _task(name: str, gathered: _Gathered, path: Path) -> MeasuredTask:
    where = f"{path}, task {name!r}"
    if not gathered.questions:
        raise TransferError(
            f"{where}: all its questions are exemplars, so none is left to score",
            hint='remove "split" from some questions, or from all: exemplars are then set aside '
            "automatically",
        )
    check_apart(where, gathered.questions, gathered.pool, gathered.lines)
    facts = {"subject": subject_of(name)} | {k: value for k, (value, _) in gathered.facts.items()}
    questions, pool = tuple(gathered.questions), tuple(gathered.pool)
    return made(MeasuredTask, where, name=name, questions=questions, pool=pool, **facts)
