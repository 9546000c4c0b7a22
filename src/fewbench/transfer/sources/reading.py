"""Reading tasks of all sources, each under a name of its own."""

from collections.abc import Sequence
from pathlib import Path

from fewbench._names import some
from fewbench.errors import TransferError
from fewbench.transfer.sources.inspect_datasets import read_inspect
from fewbench.transfer.sources.jsonl import read_jsonl
from fewbench.transfer.sources.lm_eval import read_lm_eval
from fewbench.transfer.task import Task

FORMS = "a .jsonl file, a folder of them, lm-eval:NAME, inspect:FILE or inspect:FILE.py@TASK"


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
        files = sorted(file for file in path.glob("*.jsonl") if not _hidden(file))
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


def _hidden(file: Path) -> bool:
    """Whether a name begins with a dot, as those of copies that some systems make."""
    return file.name.startswith(".")


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
            if file.is_file() and file.suffix != ".jsonl" and not _hidden(file)
        )
        if others:
            notes.append(f"{path}: not read, for they do not end in .jsonl: {some(others)}")
    return notes
