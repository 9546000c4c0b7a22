"""The answers of a measurement on disk, each found by a hash of its request.

`answers.jsonl` only grows (see `fewbench._journal`): one line per answer, handed to the operating
system at once and forced to the disk about once a second. A hash of the request says which request
a line answers. A change of the requests, such as a different model, finds none of the answers; more
seeds, questions, columns or tasks find all of them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from fewbench.errors import TransferError
from fewbench.support import Lines, checked, loads, only_process
from fewbench_papers.bento.measurement.answers import MeasuredAnswer, MeasuredAnswers
from fewbench_papers.bento.measurement.design import Design, Request

ANSWERS = "answers.jsonl"
SYNC = 1.0  # seconds between waits for the disk
MAY_DIFFER = "model_args max_length"  # only prompts that do not fit differ, and these are noted
DIGITS = 16  # of each half of a hash: about 1e-11 that any two of 20,000 are the same


class Hashes:
    """Hashes of a design's requests: what comes before the question, and the question.

    `asked` names the model and the form of the requests.
    """

    def __init__(self, design: Design, asked: Mapping[str, str]) -> None:
        self._design = design
        facts = {name: fact for name, fact in asked.items() if name != MAY_DIFFER}
        self._asked = [facts, design.metric, design.template.model_dump()]

    @cached_property
    def _contexts(self) -> dict[tuple[int, int], str]:
        """Hash of each seed and source."""
        design = self._design
        return {
            (seed, source): _digest(
                [*self._asked, seed, task.name, task.subject, task.instruction]
                + [exemplar.model_dump() for exemplar in design.exemplars_of(source, seed)]
            )
            for seed in range(design.seeds)
            for source, task in enumerate(design.tasks)
        }

    @cached_property
    def _questions(self) -> dict[int, list[str]]:
        """Hash of each question, by target."""
        tasks = self._design.tasks
        return {
            target: [_digest([tasks[target].name, q.model_dump()]) for q in tasks[target].questions]
            for target in self._design.targets
        }

    def hash_of(self, request: Request) -> str:
        """Return the hash of a request."""
        question = self._questions[request.target][request.question]
        return self._contexts[request.seed, request.source] + question

    @cached_property
    def place(self) -> Callable[[str], int | None]:
        """The place of the request with a hash, or None if the design does not make it."""
        design, first = self._design, self._design.targets[0]
        starts = {
            text: (seed, design.first(seed, source, first))
            for (seed, source), text in self._contexts.items()
        }
        columns: list[dict[str, int]] = []
        for seed in range(design.seeds):
            row = [
                self._questions[target][question]
                for target in design.targets
                for question in design.scored(target, seed)
            ]
            columns.append({text: column for column, text in enumerate(row)})

        def place(text: str) -> int | None:
            seed, start = starts.get(text[:DIGITS], (0, -1))
            column = columns[seed].get(text[DIGITS:])
            return None if start < 0 or column is None else start + column

        return place


def _digest(content: object) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:DIGITS]


class AnswerFile:
    """A measurement's folder, held by this process; see `open_measured`."""

    def __init__(self, folder: Path, answers: MeasuredAnswers, hashes: Hashes) -> None:
        self.folder, self.answers = folder, answers
        self._hashes = hashes
        self._lines = Lines(folder / ANSWERS, sync_every=SYNC)

    def append(self, request: Request, answer: MeasuredAnswer) -> None:
        """Add one answer; OSError if its line cannot be written, and then nothing is added."""
        design = self.answers.design
        record = {
            "request": self._hashes.hash_of(request),
            "seed": request.seed,
            "source": design.names[request.source],
            "target": design.names[request.target],
            "question": design.question(request).id,
            **vars(answer),
        }
        self._lines.append(json.dumps(record, separators=(",", ":"), allow_nan=False).encode())
        self.answers.add(request, answer)


@contextmanager
def open_measured(folder: Path, design: Design, asked: Mapping[str, str]) -> Iterator[AnswerFile]:
    """Open or create a measurement's folder until the block ends.

    Raises
    ------
    TransferError
        If the folder holds other answers only, or a line is damaged.
    FewbenchError
        If another process has the folder open.
    """
    busy = f"{folder}: another process uses this folder"
    with only_process(folder / "lock", busy, "wait for it to end, or choose another folder"):
        lines = Lines(folder / ANSWERS)
        lines.cut()
        hashes = Hashes(design, asked)
        try:
            yield AnswerFile(folder, read_measured(folder, hashes, design), hashes)
        finally:
            lines.sync()


def read_measured(folder: Path, hashes: Hashes, design: Design) -> MeasuredAnswers:
    """Return a folder's answers to a design, without a torn last line.

    Tokens of answers that the design does not need count too. A line that repeats an earlier
    request is skipped entirely: no request was sent twice; the file was merged from several.

    Raises
    ------
    TransferError
        If a line is damaged, or no line answers a request of the design.
    """
    answers, seen = MeasuredAnswers(design), set[str]()
    for number, line in Lines(folder / ANSWERS).read():
        try:
            request, answer = _parsed(line)
            place = hashes.place(request)
            if place is not None and not _is_score(answer.value, design.metric):
                raise ValueError("not a score")
        except (ValueError, KeyError, TypeError) as error:
            raise TransferError(
                f"{folder / ANSWERS}: line {number} is damaged",
                hint="restore the file from a backup, or run fewbench transfer repair on the "
                "folder to ask the question again",
                kind="damaged",
            ) from error
        if request in seen:
            continue
        seen.add(request)
        answers.prompt += answer.prompt
        answers.completion += answer.completion
        if place is not None:
            answers.keep(place, answer)
    if seen and not answers.n_done:
        raise TransferError(
            f"{folder}: contains another measurement: none of its {len(seen):,} answers is to a "
            "request of this one",
            hint="choose another folder, or use the same model, arguments, metric, template, "
            "exemplars, seed and tasks",
            kind="changed",
        )
    return answers


def _parsed(line: bytes) -> tuple[str, MeasuredAnswer]:
    """Return the hash and the answer of a line; ValueError, KeyError or TypeError for damage."""
    record = loads(checked(line).decode("ascii"))
    answer = MeasuredAnswer(*(record[name] for name in ("value", "said", "prompt", "completion")))
    if not (answer.said is None or isinstance(answer.said, str)):
        raise ValueError("not a text")
    if not (answer.prompt >= 0 and answer.completion >= 0):
        raise ValueError("not a number of tokens")
    return str(record["request"]), answer


def _is_score(value: Any, metric: str) -> bool:
    least, most = (-1e300, 0.0) if metric == "loss" else (0.0, 1.0)
    return value is None or (type(value) in (int, float) and least <= value <= most)


def is_measurement(folder: Path) -> bool:
    """Whether a folder holds answers of a measurement."""
    return any(b'"request":' in line for _, line in Lines(folder / ANSWERS).read())


def repair_measurement(folder: Path) -> list[int]:
    """Drop damaged lines of a measurement's answers and return their numbers."""
    return Lines(folder / ANSWERS).repair(_is_sound)


def _is_sound(line: bytes) -> bool:
    try:
        _parsed(line)
    except (ValueError, KeyError, TypeError):
        return False
    return True
