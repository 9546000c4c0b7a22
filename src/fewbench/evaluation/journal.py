"""The folder of an evaluation: how it was opened, and every ask and answer in order.

`evaluation.json` is written at the start, and again for a new limit. `answers.jsonl` only grows
(see `fewbench._journal`): one line for each round of items asked, each tell, items that were
skipped or taken up again, each target that follows a run, and each batch that was run: at what
cost, which items failed, and how the model was run.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, model_validator

from fewbench._files import folder_name, written_whole
from fewbench._journal import Lines, checked
from fewbench._json import Frozen, loads, parse_json
from fewbench._names import counted, some
from fewbench._text import quoted
from fewbench.errors import EvaluationError
from fewbench.evaluation.opening import Stop
from fewbench.methods.subset import Provenance, Subset

HEADER = "evaluation.json"
ANSWERS = "answers.jsonl"
LM_EVAL_LOGS, INSPECT_LOGS = "lm_eval", "logs"
"""Folders of a run that keep logs: of lm-eval, with a folder for each target, and of Inspect."""


class Header(Frozen):
    """What an evaluation was opened with.

    `id` tells this evaluation from all others. The path `scores` is relative to the folder.
    `targets` are the first ones; others may join (`Followed`). `models` has a hash of each source
    model's answers, `changes` the number of times that items came, left or were corrected.
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


class Asked(Frozen):
    """One round of items requested from targets."""

    targets: tuple[str, ...]
    items: tuple[str, ...]


class Told(Frozen):
    """Answers of one target, scores in [0, 1].

    `differences` lists differences in prompts or scoring from the sources that the user accepted,
    `doubts` why that may be so. `replies` are the kinds of replies that deserve a warning, by item
    (see `fewbench.scores.replies`), `texts` the beginnings of replies, where a runner has them.
    `model` is the model that the answers' table names, where the user did not say whose they are.
    `corrects` marks answers that replace earlier ones of the same items. Unknown probabilities are
    null in the file. `conditions` are the prompts and scoring of the items, as far as the answers'
    table has them (see `fewbench.scores.conditions`): column → value → places in `items`. `repeat`
    is 2 for second answers to items, beside the first ones; a line without it has first answers.
    `counts` and `variances` say how many answers each score is the mean of, and how far they vary
    (see `fewbench.scores.repeats`).
    """

    target: str
    items: tuple[str, ...]
    scores: tuple[float, ...]
    probabilities: tuple[tuple[float | None, ...], ...] | None = None
    differences: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    replies: dict[str, str] = Field(default_factory=dict)
    texts: dict[str, str] = Field(default_factory=dict)
    model: str = ""
    corrects: bool = False
    conditions: dict[str, dict[str, tuple[int, ...]]] = Field(default_factory=dict)
    repeat: int = Field(default=1, ge=1)
    counts: tuple[int, ...] | None = None
    variances: tuple[float | None, ...] | None = None
    cost: float | None = None

    def at(self, places: Sequence[int]) -> "Told":
        """Return the answers to some items, by place; the cost is that of all."""
        beside = ("items", "scores", "probabilities", "counts", "variances")
        now = {at: place for place, at in enumerate(places)}
        parts: dict[str, Any] = {
            name: None if values is None else tuple(values[at] for at in places)
            for name in beside
            for values in [getattr(self, name)]
        }
        for name in ("replies", "texts"):
            parts[name] = {k: v for k, v in getattr(self, name).items() if k in parts["items"]}
        parts["conditions"] = {
            column: {
                text: tuple(now[at] for at in where if at in now) for text, where in texts.items()
            }
            for column, texts in self.conditions.items()
        }
        return self.model_copy(update=parts)

    @model_validator(mode="after")
    def _check(self) -> "Told":
        beside = (self.scores, self.probabilities, self.counts, self.variances)
        if any(part is not None and len(part) != len(self.items) for part in beside):
            raise ValueError("items, scores, probabilities and counts are of different numbers")
        return self


def kept_replies(told: Iterable[Told]) -> dict[tuple[str, int], str]:
    """Return the replies of a target that deserve a warning: (item, repeat) → kind.

    The last correction of an answer counts.
    """
    replies: dict[tuple[str, int], str] = {}
    for entry in told:
        for item in entry.items:
            replies.pop((item, entry.repeat), None)
        replies |= {(item, entry.repeat): kind for item, kind in entry.replies.items()}
    return replies


class Skipped(Frozen):
    """Items that a target cannot answer; or, with `again`, that are to be requested again."""

    target: str
    items: tuple[str, ...]
    again: bool = False

    def at(self, places: Sequence[int]) -> "Skipped":
        """Return the part of some items."""
        return self.model_copy(update={"items": tuple(self.items[at] for at in places)})


class Led(Frozen):
    """A run that a target follows; see `fewbench.methods.record.Lead`."""

    rounds: tuple[tuple[str, ...], ...]
    scores: dict[str, float]
    budget: int
    lead: "Led | None" = None

    def of_items(self, known: Container[str]) -> "Led":
        """Return the part of known items; rounds without any are none, as those of targets are."""
        rounds = (tuple(item for item in items if item in known) for items in self.rounds)
        return Led(
            rounds=tuple(items for items in rounds if items),
            scores={item: score for item, score in self.scores.items() if item in known},
            budget=self.budget,
            lead=None if self.lead is None else self.lead.of_items(known),
        )


class Followed(Frozen):
    """A target, which may be new, follows a run.

    `of` names that run. Its answers are kept here, as they decide the chances of a sample's items.
    """

    target: str
    of: str
    lead: Led


class DrawnPhase(Frozen):
    """One phase of a sample: the items asked before it, and the chance of each drawn item."""

    before: tuple[str, ...]
    chances: dict[str, float]


class Drawn(Frozen):
    """How a target's items were drawn so far, so that it can be known without the scores then.

    Without phases, a method chose them. The last entry of a target counts.
    """

    target: str
    phases: tuple[DrawnPhase, ...]

    def of_items(self, known: Container[str]) -> "Drawn":
        """Return the part of known items."""
        phases = (
            DrawnPhase(
                before=tuple(item for item in phase.before if item in known),
                chances={item: at for item, at in phase.chances.items() if item in known},
            )
            for phase in self.phases
        )
        return Drawn(target=self.target, phases=tuple(phase for phase in phases if phase.chances))


class Removed(Frozen):
    """Items that were taken out of the benchmark, or corrected: earlier answers do not count."""

    removed: tuple[str, ...]


class Ran(Frozen):
    """What a batch of a run cost, and which of its items failed.

    `counts` is False where the model failed as a whole, which does not count against the items.
    Earlier failures of the items in `again` do not count either. An entry with `facts` says how the
    model was run from there on. `seconds` and `own` are the time since the entry before, and the
    part of it that fewbench itself took.
    """

    target: str
    facts: dict[str, str] | None = None
    failed: dict[str, str] = Field(default_factory=dict)
    counts: bool = True
    again: tuple[str, ...] = ()
    cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    tokens: int = Field(default=0, ge=0)
    seconds: float = 0.0
    own: float = 0.0


Entry = Asked | Told | Skipped | Followed | Drawn | Removed | Ran
# No two have the same fields, so the first that fits is the one.
_ENTRY: TypeAdapter[Entry] = TypeAdapter(
    Annotated[
        Told | Asked | Skipped | Followed | Drawn | Removed | Ran,
        Field(union_mode="left_to_right"),
    ]
)


def part_of(
    entries: Iterable[Entry], items: Container[str], targets: Container[str]
) -> Iterator[Entry]:
    """Yield the parts of entries about some items and targets, without answers to removed items."""
    every, later, removed = list(entries), list[frozenset[str]](), frozenset[str]()
    for entry in reversed(every):
        later.append(removed)
        if isinstance(entry, Removed):
            removed |= {*entry.removed}
    for entry, removed in zip(every, reversed(later), strict=True):
        if isinstance(entry, Removed):
            continue
        if isinstance(entry, Asked):
            named = tuple(name for name in entry.targets if name in targets)
            kept = tuple(item for item in entry.items if item in items)
            if named and kept:
                yield Asked(targets=named, items=kept)
        elif entry.target not in targets:
            continue
        elif isinstance(entry, Followed):
            yield entry.model_copy(update={"lead": entry.lead.of_items(items)})
        elif isinstance(entry, Drawn):
            yield entry.of_items(items)
        elif isinstance(entry, Ran):
            yield entry
        else:
            is_told = isinstance(entry, Told)
            places = [
                at
                for at, item in enumerate(entry.items)
                if item in items and not (is_told and item in removed)
            ]
            if len(places) == len(entry.items):
                yield entry
            elif places:
                yield entry.at(places)


def names_of(entry: Entry) -> tuple[str, ...]:
    """Return the targets that an entry is about."""
    if isinstance(entry, Removed):
        return ()
    return entry.targets if isinstance(entry, Asked) else (entry.target,)


def targets_of(header: Header, entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the targets of an evaluation: the first ones, and those that joined it."""
    joined = [entry.target for entry in entries if isinstance(entry, Followed)]
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
            )
        return parse_json(Header, path.read_bytes(), str(path), EvaluationError)

    def scores_path(self, header: Header) -> Path | None:
        """Return the file of the scores that the evaluation was started with, if it is known."""
        return None if header.scores is None else self.folder.absolute() / header.scores

    def append(self, entry: Entry) -> None:
        """Add an entry and wait until it is on the disk; what cannot be written whole is undone."""
        self._lines.append(entry.model_dump_json(exclude_defaults=True).encode())

    def locked(self) -> AbstractContextManager[None]:
        """Keep other threads and processes from adding entries until the block ends."""
        return self._lines.locked()

    def fresh(self) -> Iterator[Entry]:
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
                ) from error

    def forget(self, target: str) -> None:
        """Remove a target with all its answers; another target stays.

        Targets that follow it keep its items.
        """

        def without(line: bytes) -> bytes | None:
            entry = _parse(line)
            names = names_of(entry)
            if target not in names:
                return line
            left = tuple(name for name in names if name != target)
            entry = entry.model_copy(update={"targets": left})
            return entry.model_dump_json(exclude_defaults=True).encode() if left else None

        with self.locked():
            header = self.header()
            left = [name for name in targets_of(header, self.fresh()) if name != target]
            self._lines.rewrite(without)
            named = tuple(name for name in header.targets if name != target)
            self.write(header.model_copy(update={"targets": named or tuple(left[:1])}))

    def repair(self) -> list[int]:
        """Drop damaged lines of the answers; return their numbers.

        Targets whose line `Followed` is lost stay: the header names them.

        EvaluationError if the header is lost: the answers do not say what it held.
        """
        try:
            header = self.header()
        except EvaluationError as error:
            entries = [_parse(line) for _, line in self._lines.read() if _is_sound(line)]
            if not entries and not (self.folder / HEADER).exists():
                raise
            asked = [entry for entry in entries if isinstance(entry, Asked)]
            targets = dict.fromkeys(name for entry in asked for name in entry.targets)
            n_answers = sum(len(entry.items) for entry in entries if isinstance(entry, Told))
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
            named = dict.fromkeys(name for entry in entries for name in names_of(entry))
            if lost := named.keys() - {*targets_of(header, entries)}:
                kept = (*header.targets, *(name for name in named if name in lost))
                self.write(header.model_copy(update={"targets": kept}))
        return dropped


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


def _parse(line: bytes) -> Entry:
    return _ENTRY.validate_python(loads(checked(line)))


def _is_sound(line: bytes) -> bool:
    try:
        _parse(line)
    except ValueError:
        return False
    return True
