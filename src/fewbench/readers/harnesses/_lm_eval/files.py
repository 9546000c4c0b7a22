"""Which files of lm-eval there are, and what their names say: the task and the time."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from fewbench.readers.files import head
from fewbench.readers.harness import Unit

STAMP = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
SAMPLES = re.compile(
    rf"samples_(?P<task>.+?)(?:_(?P<stamp>{STAMP}))?\.(?:jsonl?|parquet)", re.DOTALL
)
ENDING = re.compile(rf"_(?P<stamp>{STAMP})\.json$")
HUB = re.compile(r"(?P<org>.+?)__(?P<model>.+)__(?P<task>leaderboard_.+)")


class _Folder:
    """The JSON files of a folder: results by the time of their run, and all of them."""

    def __init__(self, folder: Path) -> None:
        self.json = sorted(folder.glob("*.json"))
        self.results = tuple(path for path in self.json if path.name.startswith("results_"))
        # With --output_path X.json the results are X_TIME.json beside the samples.
        stamped = ((ENDING.search(path.name), path) for path in self.json)
        self.of_run = {
            found["stamp"]: path
            for found, path in reversed(list(stamped))
            if found and not SAMPLES.fullmatch(path.name)
        }

    def beside(self, path: Path) -> tuple[Path, ...]:
        """Return the results of the same run, else all in the folder that may name the model."""
        task, stamp = name_parts(path)
        if task is None and path.suffix == ".jsonl":
            return tuple(other for other in self.json if not other.name.startswith("samples_"))
        return (self.of_run[stamp],) if stamp in self.of_run else self.results


def find_samples(files: Sequence[Path]) -> list[Unit]:
    """Return the sample files among files, each with the results of its run beside it."""
    folders: dict[Path, _Folder] = {}
    units = []
    for path in files:
        if _is_samples(path):
            if path.parent not in folders:
                folders[path.parent] = _Folder(path.parent)
            units.append(Unit(path, folders[path.parent].beside(path)))
    return units


def name_parts(path: Path) -> tuple[str | None, str]:
    """Return task and time stamp of a samples file; None before 0.4.3, when names held neither.

    Examples
    --------
    >>> name_parts(Path("samples_mmlu_anatomy_2024-08-01T10-00-00.123.jsonl"))
    ('mmlu_anatomy', '2024-08-01T10-00-00.123')
    """
    name = SAMPLES.fullmatch(path.name)
    return (name["task"], name["stamp"] or "") if name else (None, "")


def hub_parts(path: Path) -> tuple[str, str] | None:
    """Return model and task of the Parquet files of the Open LLM Leaderboard v2, else None.

    Examples
    --------
    >>> hub_parts(Path("org__model__leaderboard_musr/latest/0000.parquet"))
    ('org/model', 'leaderboard_musr')
    """
    if path.suffix.lower() != ".parquet":
        return None
    for folder in path.parts[-2:-4:-1]:
        if name := HUB.fullmatch(folder):
            return name["org"] + "/" + name["model"], name["task"]
    return None


def _is_samples(path: Path) -> bool:
    suffix = path.suffix.lower()
    named = SAMPLES.fullmatch(path.name) is not None
    if suffix == ".parquet":
        return named or hub_parts(path) is not None
    if suffix == ".jsonl" and not named:
        start = head(path).lstrip()
        if start[:1] == b"[":
            return b'"doc_id"' in start  # 0.4.2 and older
        # Renamed; other harnesses write neither of these, or not in the first place.
        return start.startswith(b'{"doc_id"') and b'"doc":' in start and b'"target":' in start
    if suffix == ".json":
        return named and b'"doc_id"' in head(path)
    return suffix == ".jsonl" and _may_be_rows(path)


def _may_be_rows(path: Path) -> bool:
    """Whether the first line is lm-eval's; a torn line is left to the reader to name."""
    start = head(path)
    line = start.partition(b"\n")[0]
    try:
        row = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return True
    return not isinstance(row, dict) or "doc_hash" in row or "doc_id" in row
