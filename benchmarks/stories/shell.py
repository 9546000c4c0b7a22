"""The command line as people use it: words in, text and JSON out, files in a folder of its own."""

import contextlib
import csv
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from fewbench.cli import main

MARKS = ("warning: ", "note: ", "fewbench: error: ")
LONG = ("--model", "model", "--item", "item", "--task", "task", "--score", "score")

PROGRAM = """
import json, sys
with open("answers.json") as file:
    answers = json.load(file)
for line in sys.stdin:
    asked = json.loads(line)
    answer = answers[asked["item"]]
    answer = answer[asked.get("repeat", 1) - 1] if isinstance(answer, list) else answer
    print(json.dumps({"item": asked["item"]} | answer), flush=True)
"""
"""Prints recorded answers, in place of a model."""


@dataclass(frozen=True)
class Said:
    """What a command printed.

    Attributes
    ----------
    code : int
    out, err : str
        The text, in single spaces.
    """

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What was printed as JSON; RuntimeError if the command failed."""
        if self.code not in (0, 1, 3):
            raise RuntimeError(self.err)
        return json.loads(self.out)

    @property
    def warnings(self) -> list[str]:
        """Warnings, notes and errors on the result, wherever printed."""
        lines = [*self.out.splitlines(), *self.err.splitlines()]
        marked = [line for line in lines if line.startswith(MARKS)]
        return [*marked, *(f"warning: {text}" for text in self._in_json())]

    def _in_json(self) -> list[str]:
        """Return the warnings of a result in JSON."""
        if not self.out.lstrip().startswith("{"):
            return []
        texts, open_parts = [], [json.loads(self.out)]
        while open_parts:
            part = open_parts.pop()
            if isinstance(part, dict):
                texts += [*part.get("warnings", ()), *part.get("reused", ())]
                open_parts += part.values()
            elif isinstance(part, list):
                open_parts += part
        return texts


def fewbench(*words: object) -> Said:
    """Run `fewbench WORD …` in this process."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["fewbench", *map(str, words)]
    with (
        patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


def write_table(
    path: str, rows: Mapping[str, np.ndarray], ids: list[str], tasks: list[str]
) -> None:
    """Write scores of models (name → score of each item) as a long CSV."""
    with open(path, "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["model", "item", "task", "score"])
        for name, scores in rows.items():
            cells = ["" if np.isnan(score) else f"{score:g}" for score in scores]
            lines.writerows((name, *line) for line in zip(ids, tasks, cells, strict=True))


def import_table(path: str, *more: object) -> str:
    """Import a long CSV, and return the name of the scores file."""
    made = str(Path(path).with_suffix(".parquet"))
    said = fewbench("import", path, *LONG, *more, "-o", made, "--force")
    if said.code:
        raise RuntimeError(said.err)
    return made


def run_model(
    source: str, answers: Mapping[str, Any], target: str, place: str, *more: object
) -> Said:
    """Run a program that prints these answers on the items that fewbench chooses.

    They are by item: a line, or the lines of all rounds.
    """
    Path("answers.json").write_text(json.dumps(answers))
    Path("answer.py").write_text(PROGRAM)
    words = ("run", "command", source, "-t", target, "-o", place, "--json", *more)
    return fewbench(*words, "--", sys.executable, "-S", "answer.py")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Work in an empty folder, with a cache of its own."""
    with (
        tempfile.TemporaryDirectory() as place,
        contextlib.chdir(place),
        patch.dict(os.environ, {"XDG_CACHE_HOME": f"{place}/cache", "COLUMNS": "10000"}),
    ):
        yield Path(place)
