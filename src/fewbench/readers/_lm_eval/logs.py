"""Which sample files there are: whose, of which task, and when."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fewbench.errors import ReaderError
from fewbench.readers._lm_eval.results import Results, read_results

STAMP = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
SAMPLES = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<stamp>{STAMP}))?\.jsonl", re.DOTALL)


@dataclass(frozen=True)
class Log:
    """One samples file and what is known of its run; `stamp` is "" if the name has none."""

    path: Path
    model: str
    task: str
    stamp: str
    results: Results | None


def find_logs(paths: Iterable[str | os.PathLike[str]]) -> list[Log]:
    """Find the samples files in files and folders, searched through; each file once.

    Raises
    ------
    ReaderError
        If a path lacks, holds no samples, or is a file of another name.
    """
    found: dict[Path, Path] = {}
    for given in map(Path, paths):
        if given.is_dir():
            inside = sorted(given.rglob("samples_*.jsonl"))
            if not inside:
                raise ReaderError(
                    f"{given}: no samples_*.jsonl in this folder",
                    hint="run lm-eval with --log_samples --output_path",
                )
        elif given.is_file():
            inside = [given]
        else:
            raise ReaderError(f"{given}: no such file or folder")
        for path in inside:
            found.setdefault(path.resolve(), path)
    read_once = cache(read_results)
    return [_log(path, read_once) for path in found.values()]


def _log(path: Path, read: Callable[[Path], Results]) -> Log:
    name = SAMPLES.fullmatch(path.name)
    if name is None:
        raise ReaderError(
            f"{path}: not named samples_TASK_TIME.jsonl",
            hint="lm-eval 0.4.3 and newer name their sample files so, and the task is read there",
        )
    stamp = name["stamp"] or ""
    # With --output_path X.json the results are X_TIME.json beside the samples.
    same_run = sorted(path.parent.glob(f"*_{stamp}.json")) if stamp else []
    results = read(same_run[0]) if same_run else None
    model = results.model if results else None
    if model is None:
        # Another run's results in this folder still name the model, unless they disagree.
        others = {read(other).model for other in path.parent.glob("results_*.json")} - {None}
        model = others.pop() if len(others) == 1 else _model_of(path.resolve().parent)
    return Log(path, str(model), name["task"], stamp, results)


def _model_of(folder: Path) -> str:
    return folder.name.replace("__", "/")
