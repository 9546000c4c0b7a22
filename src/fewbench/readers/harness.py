"""What a reader of a harness's files is: it finds its files, and reads them one by one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fewbench.readers.run import Run


@dataclass(frozen=True)
class Unit:
    """What is read at a time: a file of answers, and the files beside it that say more of it.

    Parameters
    ----------
    path : Path
    beside : tuple of Path
        Read along; they need not be among the files that were named.
    """

    path: Path
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Wants:
    """What the user asked of every reader.

    Parameters
    ----------
    key : str, optional
        The field of an item that identifies it, such as `id` or `question_id`, instead of a hash
        of its content: for joining with results that have no content.
    salvage : bool
        Whether whole rows of a torn file are read, and the torn last one left out with a note.
    """

    key: str | None = None
    salvage: bool = False


class Harness(Protocol):
    """A harness whose result files fewbench reads.

    A new one is a file with a class like this and a line in `fewbench.readers.harnesses`.
    `name` is the word for `--from`; `files` says which files the harness writes, for messages.
    """

    name: str
    files: str

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the units among files, in their order; [] if none is of this harness.

        Called with all files below what the user named, so it must be cheap: decide by name, then
        by `head`. Never raises for what other programs wrote. A file that has the harness's name
        but is torn is found, and named when it is read.
        """

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return what a unit says: a run for each model, task and filter in it.

        Raises
        ------
        ReaderError
            If a file is torn or holds what the harness does not write: which file, which line.
        """
