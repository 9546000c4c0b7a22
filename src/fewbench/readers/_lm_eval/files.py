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
HUB = re.compile(r"(?P<org>.+?)__(?P<model>.+)__(?P<task>leaderboard_.+)")


def find_samples(files: Sequence[Path]) -> list[Unit]:
    """Return the sample files among files, each with the results of its run beside it."""
    listed: dict[Path, list[Path]] = {}
    units = []
    for path in files:
        if not _is_samples(path):
            continue
        folder = path.parent
        if folder not in listed:
            listed[folder] = sorted(folder.glob("*.json"))
        units.append(Unit(path, _results_of(path, listed[folder])))
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


def _results_of(path: Path, beside: list[Path]) -> tuple[Path, ...]:
    """Return the results of the same run, else all in the folder that may name the model."""
    task, stamp = name_parts(path)
    if task is None and path.suffix == ".jsonl":
        return tuple(other for other in beside if not other.name.startswith("samples_"))
    # With --output_path X.json the results are X_TIME.json beside the samples.
    same_run = [other for other in beside if stamp and other.name.endswith(f"_{stamp}.json")]
    same_run = [other for other in same_run if not SAMPLES.fullmatch(other.name)]
    if same_run:
        return tuple(same_run[:1])
    return tuple(other for other in beside if other.name.startswith("results_"))


def _is_samples(path: Path) -> bool:
    suffix = path.suffix.lower()
    named = SAMPLES.fullmatch(path.name) is not None
    if suffix == ".parquet":
        return named or hub_parts(path) is not None
    if suffix == ".jsonl" and not named:
        start = head(path).lstrip()
        return start[:1] == b"[" and b'"doc_id"' in start  # 0.4.2 and older
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
