"""The folder of an evaluation: what was opened, and every answer told, in order.

`evaluation.json` is written once. `answers.jsonl` only grows, one line a tell, flushed to the
disk before the tell returns; a last line torn by a crash was never acknowledged and is skipped.
"""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from fewbench._files import naming, written_whole
from fewbench._json import parse_json
from fewbench.errors import EvaluationError
from fewbench.methods.subset import Provenance, Subset

HEADER = "evaluation.json"
ANSWERS = "answers.jsonl"


class Header(BaseModel):
    """What an evaluation was opened with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    scores: str | None
    targets: tuple[str, ...]
    subset: Subset | None
    provenance: Provenance


class Told(BaseModel):
    """Answers of one target, scores in [0, 1].

    `differences` says how their prompts or settings differ from the sources', where the user
    accepted that.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    items: tuple[str, ...]
    scores: tuple[float, ...]
    probabilities: tuple[tuple[float, ...], ...] | None = None
    differences: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> "Told":
        options = self.scores if self.probabilities is None else self.probabilities
        if not len(self.items) == len(self.scores) == len(options):
            raise ValueError("items, scores and probabilities are of different numbers")
        return self


class Journal:
    """An evaluation's folder.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, header: Header) -> None:
        """Write the header of a new evaluation; EvaluationError if the folder holds answers."""
        self.check_free()
        with written_whole(self.folder / HEADER) as temporary:
            temporary.write_text(header.model_dump_json(indent=2) + "\n", encoding="utf-8")

    def check_free(self) -> None:
        """Raise EvaluationError if an evaluation, or answers to something else, are there."""
        if (self.folder / HEADER).exists():
            raise EvaluationError(
                f"{self.folder}: already holds an evaluation",
                hint="go on with ask, tell and estimate, or choose another folder",
            )
        if (self.folder / ANSWERS).exists():  # of a transfer measurement, say
            raise EvaluationError(
                f"{self.folder}: holds {ANSWERS} but no {HEADER}", hint="choose another folder"
            )

    def header(self) -> Header:
        """Read the header; EvaluationError if there is none or it does not fit."""
        path = self.folder / HEADER
        if not path.is_file():
            raise EvaluationError(
                f"{self.folder}: no evaluation here", hint="open one with fewbench start"
            )
        return parse_json(Header, path.read_bytes(), str(path), EvaluationError)

    def append(self, told: Told) -> None:
        """Add one tell and wait until it is on the disk; what cannot be written whole is undone."""
        path = self.folder / ANSWERS
        whole = path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
        unsaid = None if told.differences else {"differences"}
        line = told.model_dump_json(exclude=unsaid).encode() + b"\n"
        with naming(path), path.open("ab", buffering=0) as file:
            try:
                file.truncate(whole)  # a line torn by a crash was never acknowledged
                if file.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(whole)
                raise

    def replay(self) -> Iterator[Told]:
        """Yield every tell in order, but for a torn last line."""
        path = self.folder / ANSWERS
        if not path.exists():
            return
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                yield Told.model_validate(json.loads(line))
            except ValueError as error:
                raise EvaluationError(
                    f"{path}: line {number} is damaged",
                    hint="restore the file; nothing else in the folder is needed",
                ) from error
