"""The folder of an evaluation: how it was opened, and every ask and answer in order.

`evaluation.json` is written at the start, and again for a new limit. `answers.jsonl` only grows
(see `fewbench._journal`): one line for each round of items asked, each tell, items that were
skipped or taken up again, each target that follows a run, and each batch that was run: at what
cost, which items failed, and how the model was run.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from pydantic import Field

from fewbench._files import folder_name, written_whole
from fewbench._journal import Lines, checked
from fewbench._json import Frozen, loads, parse_json
from fewbench._names import counted, some
from fewbench._text import quoted
from fewbench.errors import EvaluationError
from fewbench.evaluation.entries import AnswerSet, FollowedRun, JournalEntry, read_entry
from fewbench.evaluation.opening import Stop
from fewbench.methods.subset import Provenance, Subset

HEADER = "evaluation.json"
ANSWERS = "answers.jsonl"
LM_EVAL_LOGS, INSPECT_LOGS = "lm_eval", "logs"
"""Folders of a run that keep logs: of lm-eval, with a folder for each target, and of Inspect."""


class Header(Frozen):
    """What an evaluation was opened with.

    `id` tells this evaluation from all others. The path `scores` is relative to the folder.
    `targets` are the first ones; others may join (`FollowedRun`). `models` has a hash of each
    source model's answers, `changes` the number of times that items came, left or were corrected.
    """

    format: Literal[1] = 1
    id: str
    scores: str | None
    targets: tuple[str, ...]
    subset: Subset | None
    stop: Stop | None = None
    provenance: Provenance
    reason: str | None = None
    """Why this method, where `auto` chose it."""
    models: dict[str, str] = Field(default_factory=dict)
    changes: int = 0

    @property
    def limits(self) -> Stop:
        """When the evaluation stops asking."""
        return self.stop or Stop(items=self.provenance.budget)


def targets_of(header: Header, entries: Iterable[JournalEntry]) -> tuple[str, ...]:
    """Return the targets of an evaluation: the first ones, and those that joined it."""
    joined = [entry.target for entry in entries if isinstance(entry, FollowedRun)]
    return tuple(dict.fromkeys([*header.targets, *joined]))


class Journal:
    """An evaluation's folder.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines = Lines(folder.absolute() / ANSWERS)  # the working directory may change

    def create(self, header: Header) -> None:
        """Write the header of a new evaluation; EvaluationError if the folder holds answers."""
        self.check_free()
        self.write(header)

    def write(self, header: Header) -> None:
        """Write the header."""
        with written_whole(self.folder / HEADER) as temporary:
            temporary.write_text(header.model_dump_json(indent=2) + "\n", encoding="utf-8")

    def check_free(self) -> None:
        """Raise EvaluationError if an evaluation, or answers to something else, are there."""
        if (self.folder / HEADER).exists():
            raise EvaluationError(
                f"{self.folder}: already contains an evaluation",
                hint="continue with ask, tell and estimate; name a target with -t to add it, or to "
                "go on to a larger --cost; or choose another folder",
                kind="taken",
            )
        if (self.folder / ANSWERS).exists():  # of a transfer measurement, say
            raise EvaluationError(
                f"{self.folder}: contains {ANSWERS} but no {HEADER}",
                hint="choose another folder",
            )

    def header(self) -> Header:
        """Read the header; EvaluationError if there is none or it does not fit."""
        path = self.folder / HEADER
        if not path.is_file():
            if self.folder.suffix and not self.folder.exists():  # a file, it seems
                raise EvaluationError(
                    f"{self.folder}: no such file or folder",
                    hint="check the path; fewbench run and fewbench start make a folder",
                )
            inner = sorted(str(header.parent) for header in self.folder.glob(f"*/{HEADER}"))
            raise EvaluationError(
                f"{self.folder}: no evaluation here",
                hint=f"name evaluations in it: {some(inner, quotes=False)}"
                if inner
                else "start one with fewbench run or fewbench start",
                kind="missing",
            )
        return parse_json(Header, path.read_bytes(), str(path), EvaluationError)

    def scores_path(self, header: Header) -> Path | None:
        """Return the file of the scores that the evaluation was started with, if it is known."""
        return None if header.scores is None else self.folder.absolute() / header.scores

    def append(self, entry: JournalEntry) -> None:
        """Add an entry and wait until it is on the disk; what cannot be written whole is undone."""
        self._lines.append(entry.line())

    def locked(self) -> AbstractContextManager[None]:
        """Keep other threads and processes from adding entries until the block ends."""
        return self._lines.locked()

    def fresh(self) -> Iterator[JournalEntry]:
        """Yield the entries that were neither read nor written here yet, in order.

        A torn last line is skipped.
        """
        for number, line in self._lines.unread():
            try:
                yield _parse(line)
            except ValueError as error:
                raise EvaluationError(
                    f"{self.folder / ANSWERS}: line {number} is damaged",
                    hint=f"restore {ANSWERS} from a backup, or run fewbench repair "
                    f"{quoted(self.folder)} to drop damaged lines",
                    kind="damaged",
                ) from error

    def forget(self, target: str) -> None:
        """Remove a target with all its answers; another target stays.

        Targets that follow it keep its items.
        """

        def without(line: bytes) -> bytes | None:
            entry = _parse(line)
            if target not in entry.names:
                return line
            part = entry.part(_AllBut(), _AllBut(target))
            return None if part is None else part.line()

        with self.locked():
            header = self.header()
            left = [name for name in targets_of(header, self.fresh()) if name != target]
            self._lines.rewrite(without)
            named = tuple(name for name in header.targets if name != target)
            self.write(header.model_copy(update={"targets": named or tuple(left[:1])}))

    def repair(self) -> list[int]:
        """Drop damaged lines of the answers; return their numbers.

        Targets whose line `FollowedRun` is lost stay: the header names them.

        EvaluationError if the header is lost: the answers do not say what it held.
        """
        try:
            header = self.header()
        except EvaluationError as error:
            entries = [_parse(line) for _, line in self._lines.read() if _is_sound(line)]
            if not entries and not (self.folder / HEADER).exists():
                raise
            targets = dict.fromkeys(name for entry in entries for name in entry.names)
            n_answers = sum(len(entry.items) for entry in entries if isinstance(entry, AnswerSet))
            raise EvaluationError(
                f"{self.folder}: {HEADER} is lost or damaged, and with it the scores file, method, "
                f"budget and seed; {ANSWERS} still contains {counted(n_answers, 'answer')}"
                + (f" of {some(targets)}" if targets else ""),
                hint=f"restore {HEADER} from a backup; or run fewbench start with the same scores "
                f"and options and -o NEW, copy {ANSWERS} to NEW, and run fewbench repair NEW",
            ) from error
        if not self._lines.path.exists():
            return []
        with self.locked():
            dropped = self._lines.repair(_is_sound)
            entries = list(self.fresh()) if dropped else []
            named = dict.fromkeys(name for entry in entries for name in entry.names)
            if lost := named.keys() - {*targets_of(header, entries)}:
                kept = (*header.targets, *(name for name in named if name in lost))
                self.write(header.model_copy(update={"targets": kept}))
        return dropped


class _AllBut:
    """All names but one."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name

    def __contains__(self, name: object) -> bool:
        return name != self._name


def logs_of(folder: Path, target: str) -> Path:
    """Return where the folder of a run keeps a target's logs of lm-eval."""
    return folder / LM_EVAL_LOGS / folder_name(target, gap="__")


def has_evaluation(folder: str | Path | None) -> bool:
    """Whether there is an evaluation in a folder."""
    return folder is not None and (Path(folder) / HEADER).exists()


def folder_and_target(name: str) -> tuple[Path, str | None] | None:
    """Return the folder of an evaluation and the target that DIR or DIR:TARGET names.

    None if there is no such folder. Names of folders and of targets may hold colons.
    """
    if (Path(name) / HEADER).is_file():
        return Path(name), None
    folder, colon, target = name.partition(":")
    while colon:
        if target and (Path(folder) / HEADER).is_file():
            return Path(folder), target
        more, colon, target = target.partition(":")
        folder = f"{folder}:{more}"
    return None


def _parse(line: bytes) -> JournalEntry:
    return read_entry(loads(checked(line)))


def _is_sound(line: bytes) -> bool:
    try:
        _parse(line)
    except ValueError:
        return False
    return True
