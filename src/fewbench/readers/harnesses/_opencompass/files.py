"""Where OpenCompass puts its files, and what its configs say of a run."""

import ast
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fewbench.readers.files import head
from fewbench.readers.run import UNKNOWN

STAMP = re.compile(r"\d{8}_\d{6}")
WRITTEN = ("configs", "predictions", "summary")  # beside the results
PIECE = re.compile(r"(.+)_(\d{1,6})")  # predictions in parts: DATASET_0.json, DATASET_1.json, …
FROM = re.compile(r"\[\s*(\d{0,9})\s*:\s*\d*\s*\]")
SETTINGS = ("type", "path", "max_seq_len", "max_out_len", "generation_kwargs", "meta_template")
DETAILS = (b'"example_abbr"', b'"origin_prediction"', b'"is_correct"')


class Place(NamedTuple):
    """Where a file stands: the folder of one call of OpenCompass, and what the names say."""

    work: Path
    part: str
    model: str
    task: str

    def beside(self, part: str, task: str) -> Path:
        return self.work / part / self.model / f"{task}.json"

    def predictions(self) -> list[Path]:
        """Return the predictions: one file, else its pieces up to the first that lacks."""
        whole = self.beside("predictions", self.task)
        if whole.is_file():
            return [whole]
        pieces: list[Path] = []
        while (piece := self.beside("predictions", f"{self.task}_{len(pieces)}")).is_file():
            pieces.append(piece)
        return pieces

    def configs(self) -> list[Path]:
        return sorted((self.work / "configs").glob("*.py"))


def place_of(path: Path) -> Place | None:
    """Return what a file's path says, None if it is not OpenCompass's."""
    parts = path.absolute().parts
    if path.suffix != ".json" or path.name.startswith("tmp_"):
        return None
    folders = [at for at, part in enumerate(parts[:-2]) if part in ("results", "predictions")]
    start = head(path).lstrip()
    told = b'"details"' in start and any(word in start for word in DETAILS)
    if not folders:
        return moved(path) if told else None
    at = folders[-1]
    # Not made absolute if it need not be, so that files beside are named as the user names them.
    up = len(parts) - at - 1
    work = path.parents[up] if len(path.parents) > up else Path(*parts[:at])
    if not told and not _is_work(work):
        return None
    if parts[at] == "results" and _is_of_an_evaluator(start, Path(*parts[: at + 1]), path):
        return None
    return Place(work, parts[at], "/".join(parts[at + 1 : -1]), path.stem)


def moved(path: Path) -> Place:
    """Return the place of results that stand elsewhere than OpenCompass wrote them."""
    return Place(path.parent, "results", path.absolute().parent.name, path.stem)


def _is_of_an_evaluator(start: bytes, results: Path, path: Path) -> bool:
    """Whether a file is what an evaluator, such as a judge, keeps in or beside the results."""
    if re.match(rb'\{\s*"0"\s*:', start):
        return True
    inside = [folder for folder in path.absolute().parents if results in folder.parents]
    return any(folder.with_name(f"{folder.name}.json").is_file() for folder in inside)


def _is_work(folder: Path) -> bool:
    """Whether a folder is of one call of OpenCompass; other programs also write `results`."""
    there = {name for name in WRITTEN if (folder / name).is_dir()}
    if STAMP.fullmatch(folder.absolute().name):
        return bool(there)
    return "predictions" in there and len(there) > 1


class Config(NamedTuple):
    """What the configs say: which part of the task was run, and with which model."""

    known: bool = False
    test_range: str = ""
    settings: tuple[tuple[str, str], ...] = ()

    def first(self) -> int:
        """Return the position of the first row, UNKNOWN if rows are not the task's in order."""
        if not self.known:
            return UNKNOWN
        start = FROM.fullmatch(self.test_range)
        return int(start[1] or 0) if start else UNKNOWN if self.test_range else 0


def configured(paths: tuple[Path, ...], place: Place) -> Config:
    """Read the configs that OpenCompass keeps of a run."""
    ranges: set[str] = set()
    settings: tuple[tuple[str, str], ...] = ()
    for path in paths:
        for abbr, named in _named(path, path.stat().st_mtime_ns if path.is_file() else 0):
            if abbr == place.task and "reader_cfg" in named:
                reader = next(_dicts(named["reader_cfg"]), {})
                given = reader.get("test_range", ast.Constant(""))
                value = given.value if isinstance(given, ast.Constant) else ast.unparse(given)
                ranges.add(str(value or ""))
            elif abbr == place.model and "type" in named:
                settings = tuple((key, ast.unparse(named[key])) for key in SETTINGS if key in named)
    known = len(ranges) == 1
    return Config(known, ranges.pop() if known else "", settings)


@lru_cache(maxsize=16)
def _named(path: Path, changed: int) -> list[tuple[object, dict[str, ast.expr]]]:
    """Return all that a config gives a short name; what OpenCompass executes is parsed only."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes and the like in what others wrote
            tree = ast.parse(path.read_bytes())
        every = list(_dicts(tree))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    abbrs = [named.get("abbr") for named in every]
    pairs = zip(abbrs, every, strict=True)
    return [(abbr.value, named) for abbr, named in pairs if isinstance(abbr, ast.Constant)]


def _dicts(tree: ast.AST) -> Iterator[dict[str, ast.expr]]:
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(called, ast.Name) and called.id == "dict":
            yield {pair.arg: pair.value for pair in node.keywords if pair.arg}
