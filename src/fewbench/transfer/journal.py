"""The folder of a measurement: what makes its answers comparable, and every answer, in order.

`measurement.json` is written once. `answers.jsonl` only grows (see `fewbench._journal`), one line
per answer, handed to the operating system before the answer counts as told, and to the disk about
once a second.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from fewbench._files import only_process, written_whole
from fewbench._journal import Lines
from fewbench._json import parse_json
from fewbench._names import some
from fewbench.errors import FewbenchError, TransferError
from fewbench.transfer.answers import Answer, Answers, read_answers
from fewbench.transfer.design import Design, Request
from fewbench.transfer.templates import TEMPLATES, Template

HEADER = "measurement.json"
ANSWERS = "answers.jsonl"
SYNC = 1.0  # seconds between waits for the disk
SLACK = "max_model_len"  # of a server that was started otherwise, with the same model


class Header(BaseModel):
    """What must be the same for answers to be comparable.

    Seeds, the number of questions and columns are not: they may grow.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    model: str
    facts: dict[str, str]
    """How the model is asked, as whether options are scored one by one."""
    metric: str
    exemplars: int
    sets: int
    seed: int
    template: Template
    tasks: dict[str, str]
    """Digests by name."""

    @classmethod
    def of(cls, design: Design, model: str, facts: Mapping[str, str]) -> "Header":
        """Return the header of a design that is put to a model."""
        return cls(
            model=model,
            facts=dict(facts),
            metric=design.metric,
            exemplars=design.exemplars,
            sets=design.sets,
            seed=design.seed,
            template=design.template,
            tasks={
                task.name: sha256(task.model_dump_json().encode()).hexdigest()[:16]
                for task in design.tasks
            },
        )

    def differences(self, wanted: "Header") -> list[str]:
        """Return in words what another header wants otherwise."""
        said = []
        for field in ("model", "metric", "exemplars", "sets", "seed"):
            here, there = getattr(self, field), getattr(wanted, field)
            if here != there:
                said.append(f"{field} {here!r} there, {there!r} now")
        for fact in sorted((self.facts.keys() | wanted.facts.keys()) - {SLACK}):
            was, now = self.facts.get(fact), wanted.facts.get(fact)
            if was != now:
                said.append(f"{fact} {was or 'not known'!r} there, {now or 'not known'!r} now")
        if (ours := _named(self.template)) and (theirs := _named(wanted.template)):
            if ours != theirs:
                said.append(f"template {ours!r} there, {theirs!r} now")
        else:
            for field in Template.model_fields:
                was, now = getattr(self.template, field), getattr(wanted.template, field)
                if was != now:
                    said.append(f"the template's {field} {was!r} there, {now!r} now")
        for names, what in (
            (self.tasks.keys() - wanted.tasks.keys(), "tasks there and not now"),
            (wanted.tasks.keys() - self.tasks.keys(), "tasks now and not there"),
            (
                {n for n, d in self.tasks.items() if wanted.tasks.get(n, d) != d},
                "tasks whose questions have changed",
            ),
        ):
            if names:
                said.append(f"{what}: {some(sorted(names))}")
        return said

    def notes(self, wanted: "Header") -> tuple[str, ...]:
        """Return in words what another header has otherwise that does not matter."""
        was, now = self.facts.get(SLACK), wanted.facts.get(SLACK)
        if was is None or now is None or was == now:
            return ()
        return (f"the model's context has room for {now} tokens now, and had for {was} before",)


def _named(template: Template) -> str | None:
    """Return the name of a template of the paper."""
    return next((name for name, known in TEMPLATES.items() if known == template), None)


class Journal:
    """A measurement's folder, open to this process alone; see `opened`.

    Parameters
    ----------
    folder : Path
    answers : Answers
        What the file holds; it grows with each answer.
    notes : tuple of str
        What is otherwise than when the answers came, and does not matter.
    """

    def __init__(self, folder: Path, answers: Answers, notes: tuple[str, ...] = ()) -> None:
        self.folder, self.answers, self.notes = folder, answers, notes
        self._lines = Lines(folder / ANSWERS, sync_every=SYNC)

    def append(self, request: Request, answer: Answer) -> None:
        """Add one answer; a line that cannot be written whole is undone.

        Raises
        ------
        OSError
            If the disk is full, say.
        """
        design = self.answers.design
        line = json.dumps(
            {
                "seed": request.seed,
                "source": design.names[request.source],
                "target": design.names[request.target],
                "question": design.question(request).id,
                "value": answer.value,
                "said": answer.said,
                "prompt": answer.usage.prompt,
                "completion": answer.usage.completion,
            },
            separators=(",", ":"),
            allow_nan=False,
        ).encode()
        self._lines.append(line)
        self.answers.add(request, answer)

    def sync(self) -> None:
        """Wait until all answers are on the disk."""
        self._lines.sync()


@contextmanager
def opened(
    folder: Path, header: Header, design: Design, known: Answers | None = None
) -> Iterator[Journal]:
    """Open a measurement's folder, or begin one, until the block ends.

    Parameters
    ----------
    folder : Path
    header : Header
    design : Design
    known : Answers, optional
        What was read before; taken if it is of this design, and nothing was added since.

    Raises
    ------
    TransferError
        If the folder holds another measurement, a line of its answers is damaged, or another
        process has it open.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            held.enter_context(only_process(folder / "lock", f"{folder}: another process has it"))
        except FewbenchError as error:
            raise TransferError(
                f"{folder}: another process measures into it",
                hint="wait for it, or choose another folder",
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
    """Raise TransferError if the folder holds a measurement that differs, saying in what."""
    found = kept_header(folder)
    if found is not None and (differences := found.differences(header)):
        raise TransferError(
            f"{folder}: holds another measurement: {'; '.join(differences)}",
            hint="choose another folder, or measure as there",
        )


def kept_header(folder: Path) -> Header | None:
    """Return the header in a folder; None if no answer was kept there, and any may begin.

    Raises
    ------
    TransferError
        If it does not fit, or there are answers without one.
    """
    answers, path = folder / ANSWERS, folder / HEADER
    if not answers.exists() or not answers.stat().st_size:
        return None
    if not path.exists():
        raise TransferError(
            f"{folder}: has {ANSWERS} but no {HEADER}", hint="restore it, or use another folder"
        )
    return parse_json(Header, path.read_bytes(), str(path), TransferError)


def read(folder: Path, design: Design) -> Answers:
    """Return the answers in a folder to a design, but for a torn last line."""
    path = folder / ANSWERS
    if not path.exists():
        return Answers(design)
    size = _size(folder)  # before it is read: what is added meanwhile makes it differ
    # lines end with "\n" only, and what stands in them is ASCII: bytes that are not are damage
    with path.open(encoding="ascii", errors="replace", newline="\n") as file:
        answers = read_answers(design, (line for line in file if line[-1] == "\n"), str(path))
    answers.size = size
    return answers


def _size(folder: Path) -> int:
    path = folder / ANSWERS
    return path.stat().st_size if path.exists() else 0


def repair_measurement(folder: Path) -> int:
    """Drop damaged lines of a measurement's answers; return how many there were."""
    return Lines(folder / ANSWERS).repair(_is_sound)


def _is_sound(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line.decode("ascii")), dict)
    except ValueError:
        return False
