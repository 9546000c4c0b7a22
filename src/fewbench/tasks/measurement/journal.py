"""The folder of a measurement: the settings that make answers comparable, and every answer.

`measurement.json` is written once. `answers.jsonl` only grows (see `fewbench._journal`): one line
per answer, handed to the operating system at once and forced to the disk about once a second.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from fewbench._files import only_process, written_whole
from fewbench._journal import Lines
from fewbench._json import loads, parse_json
from fewbench._names import some
from fewbench.errors import FewbenchError, TransferError
from fewbench.tasks.measurement.answers import OPEN, Answers
from fewbench.tasks.measurement.design import Design, Request
from fewbench.tasks.measurement.scoring import Answer
from fewbench.tasks.measurement.templates import TEMPLATES, Template

HEADER = "measurement.json"
ANSWERS = "answers.jsonl"
_decode = json.JSONDecoder().raw_decode
SETTINGS = ("metric", "exemplars", "sets", "seed")
SYNC = 1.0  # seconds between waits for the disk
MAY_DIFFER = "model_args max_length"  # the model may get more or less room


class Header(BaseModel):
    """What must be the same for answers to be comparable.

    The numbers of seeds, questions and columns may grow.

    Parameters
    ----------
    facts : dict of str to str
        How the model is asked, such as whether options are scored one by one.
    tasks : dict of str to str
        Digest of each task.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    model: str
    facts: dict[str, str]
    metric: str
    exemplars: int
    sets: int
    seed: int
    template: Template
    tasks: dict[str, str]

    @classmethod
    def of(cls, design: Design, model: str, facts: Mapping[str, str]) -> "Header":
        """Return the header for a design and a model."""
        digests = {
            task.name: sha256(task.model_dump_json().encode()).hexdigest()[:16]
            for task in design.tasks
        }
        settings = {name: getattr(design, name) for name in (*SETTINGS, "template")}
        return cls(model=model, facts=dict(facts), tasks=digests, **settings)

    def differences(self, wanted: "Header") -> list[str]:
        """Return what another header has otherwise, in words."""
        before, after = self._compared(), wanted._compared()
        if not ("template" in before and "template" in after):  # not both of the paper: by field
            before, after = self._compared(by_field=True), wanted._compared(by_field=True)
        found = [
            f"{name} was {before.get(name, 'not known')!r} and is {after.get(name, 'not known')!r}"
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        ]
        for names, what in (
            (self.tasks.keys() - wanted.tasks.keys(), "tasks that are missing now"),
            (wanted.tasks.keys() - self.tasks.keys(), "tasks that are new"),
            (
                {n for n, d in self.tasks.items() if wanted.tasks.get(n, d) != d},
                "tasks with changed questions",
            ),
        ):
            if names:
                found.append(f"{what}: {some(sorted(names))}")
        return found

    def _compared(self, *, by_field: bool = False) -> dict[str, object]:
        found: dict[str, object] = {name: getattr(self, name) for name in ("model", *SETTINGS)}
        found |= {name: fact for name, fact in sorted(self.facts.items()) if name != MAY_DIFFER}
        if by_field:
            return found | {f"the template's {k}": v for k, v in self.template.model_dump().items()}
        named = [name for name, known in TEMPLATES.items() if known == self.template]
        return found | ({"template": named[0]} if named else {})

    def notes(self, wanted: "Header") -> tuple[str, ...]:
        """Return differences to another header that do not affect the answers, in words."""
        before, after = self.facts.get(MAY_DIFFER), wanted.facts.get(MAY_DIFFER)
        if before is None or after is None or before == after:
            return ()
        return (f"the model's context now has room for {after} tokens; it had {before} before",)


class Journal:
    """A measurement's folder, held by this process; see `opened`.

    Parameters
    ----------
    folder : Path
    answers : Answers
        What the file holds; it grows with each answer.
    notes : tuple of str
        Differences to earlier runs that do not affect the answers.
    """

    def __init__(self, folder: Path, answers: Answers, notes: tuple[str, ...] = ()) -> None:
        self.folder, self.answers, self.notes = folder, answers, notes
        self._lines = Lines(folder / ANSWERS, sync_every=SYNC)

    def append(self, request: Request, answer: Answer) -> None:
        """Add one answer; OSError if its line cannot be written, and then nothing is added."""
        design = self.answers.design
        record = {
            "seed": request.seed,
            "source": design.names[request.source],
            "target": design.names[request.target],
            "question": design.question(request).id,
            "value": answer.value,
            "said": answer.said,
            "prompt": answer.prompt,
            "completion": answer.completion,
        }
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
        self._lines.append(line)
        self.answers.add(request, answer)

    def sync(self) -> None:
        """Wait until all answers are on the disk."""
        self._lines.sync()


@contextmanager
def opened(
    folder: Path, header: Header, design: Design, known: Answers | None = None
) -> Iterator[Journal]:
    """Open or create a measurement's folder until the block ends.

    `known` holds answers that were read before; they are used if they are of this design and
    nothing was added since.

    Raises
    ------
    TransferError
        If the folder holds another measurement, a line of its answers is damaged, or another
        process has it open.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(only_process(folder / "lock", "busy"))
        except FewbenchError as error:
            raise TransferError(
                f"{folder}: another process uses this folder",
                hint="wait for it to end, or choose another folder",
            ) from error
        check(folder, header)
        kept = kept_header(folder)
        if kept is None:
            with written_whole(folder / HEADER) as temporary:
                temporary.write_text(header.model_dump_json(indent=2) + "\n", encoding="utf-8")
        if known is not None and (known.design is not design or known.size != _size(folder)):
            known = None
        Lines(folder / ANSWERS).cut()
        notes = () if kept is None else kept.notes(header)
        journal = Journal(folder, known or read(folder, design), notes)
        try:
            yield journal
        finally:
            journal.sync()


def check(folder: Path, header: Header) -> None:
    """Raise TransferError if the folder holds another measurement, and name the differences."""
    found = kept_header(folder)
    if found is not None and (differences := found.differences(header)):
        raise TransferError(
            f"{folder}: contains another measurement: {'; '.join(differences)}",
            hint="choose another folder, or use the same settings",
        )


def kept_header(folder: Path) -> Header | None:
    """Return the header of a folder; None if the folder holds no answers yet.

    Raises
    ------
    TransferError
        If the header is damaged, or missing beside answers.
    """
    answers, path = folder / ANSWERS, folder / HEADER
    if not answers.exists() or not answers.stat().st_size:
        return None
    if not path.exists():
        raise TransferError(
            f"{folder}: has {ANSWERS} but no {HEADER}",
            hint="restore it from a backup, or use another folder",
        )
    return parse_json(Header, path.read_bytes(), str(path), TransferError)


def read(folder: Path, design: Design) -> Answers:
    """Return a folder's answers to a design, without a torn last line."""
    path = folder / ANSWERS
    if not path.exists():
        return Answers(design)
    size = _size(folder)  # before reading: lines that are added meanwhile make it differ
    # lines end with "\n" only and hold ASCII: other bytes are damage
    with path.open(encoding="ascii", errors="replace", newline="\n") as file:
        answers = read_answers(design, (line for line in file if line[-1] == "\n"), str(path))
    answers.size = size
    return answers


def _size(folder: Path) -> int:
    path = folder / ANSWERS
    return path.stat().st_size if path.exists() else 0


def repair_measurement(folder: Path) -> int:
    """Drop damaged lines of a measurement's answers and return their number."""
    return Lines(folder / ANSWERS).repair(_is_sound)


def _is_sound(line: bytes) -> bool:
    try:
        return isinstance(loads(line.decode("ascii")), dict)
    except ValueError:
        return False


def read_answers(design: Design, lines: Iterable[str], where: str) -> Answers:
    """Return the answers to a design from a journal's whole lines.

    Answers that the design does not need (fewer questions or seeds) are skipped, but their tokens
    count. A line that repeats an earlier request is skipped entirely: nothing was asked twice, the
    file was put together from several.

    Raises
    ------
    TransferError
        If a line is damaged, has a score that the metric cannot have, or names a task or question
        that the design does not have.
    """
    answers = Answers(design)
    keep, places = answers.keep, _Places(design)
    known = {
        task.name: {question.id: at for at, question in enumerate(task.questions)}
        for task in design.tasks
    }  # positions of each task's questions by id
    states, others = answers.states, set()  # requests that the design does not make
    least, most = (-1e300, 0.0) if design.metric == "loss" else (0.0, 1.0)
    prompt = completion = 0
    for number, line in enumerate(lines, start=1):
        try:
            record, end = _decode(line)
            if line[end:] not in ("\n", "\r\n"):
                raise ValueError("more than one record")
            seed, source, target = record["seed"], record["source"], record["target"]
            value, said = record["value"], record["said"]
            question = known[target][record["question"]]
            known[source]
            taken, written = record["prompt"], record["completion"]
            if type(seed) is not int or seed < 0 or not (taken >= 0 and written >= 0):
                raise ValueError("not a seed, or not a number of tokens")
            if value is not None and (type(value) is bool or not least <= value <= most):
                raise ValueError("not a score")
            if not (said is None or type(said) is str):
                raise ValueError("not a text")
        except (ValueError, KeyError, TypeError) as error:
            why = f" ({error})" if str(error).startswith("not ") else ""
            raise TransferError(
                f"{where}: line {number} is damaged{why}",
                hint="restore the file from a backup, or run fewbench repair on the folder to ask "
                "the question again",
            ) from error
        place = places.of(seed, source, target, question)
        if place is not None:
            if states[place] != OPEN:
                continue
            keep(place, value, said)
        else:
            key = (seed, source, target, question)
            if key in others:
                continue
            others.add(key)
        prompt += taken
        completion += written
    answers.prompt, answers.completion = prompt, completion
    return answers


class _Places:
    """Places of requests in a design; None for requests that it does not make."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._sources = {name: at for at, name in enumerate(design.names)}
        self._asked: dict[tuple[int, str], tuple[int, int, list[int]] | None] = {}

    def of(self, seed: int, source: str, target: str, question: int) -> int | None:
        key = (seed, target)
        try:
            found = self._asked[key]
        except KeyError:
            found = self._asked[key] = self._look_up(*key)
        if found is None:
            return None
        start, width, ranks = found
        rank = ranks[question]
        return None if rank < 0 else start + self._sources[source] * width + rank

    def _look_up(self, seed: int, name: str) -> tuple[int, int, list[int]] | None:
        """Return the place with the first source, the step between sources, and ranks."""
        design = self._design
        target = self._sources[name]
        if seed >= design.seeds or target not in design.targets:
            return None
        start = design.first(seed, 0, target)
        width = design.first(seed, 1, target) - start
        drawn = design.scored(target, seed)
        ranks = np.full(len(design.tasks[target].questions), -1)
        ranks[drawn] = np.arange(len(drawn))
        return start, width, ranks.tolist()
