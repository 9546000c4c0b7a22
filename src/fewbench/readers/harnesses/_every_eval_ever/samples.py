"""The rows of a file of samples, each one metric of one sample, checked and put together."""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.harnesses._every_eval_ever.record import Metric, Record
from fewbench.readers.identity import ID_LENGTH, content_id, field_value
from fewbench.readers.numbers import as_number, describe

PLACED = re.compile(r"(?:id)?(\d{1,9})")
LETTER = re.compile(r"[A-Z]")
# Harnesses whose own ids of documents say their place in the task.
PLACING = ("lm_eval", "helm")


@dataclass(frozen=True)
class Evaluation:
    """Whose answers to what a row is of."""

    model: str
    task: str
    filter: str | None


@dataclass
class Sample:
    """What the rows of one sample say: metric → its scores, of which there may be several."""

    place: int
    own_id: str
    content: str
    prompt: str
    scores: dict[str, list[Any]] = field(default_factory=dict)

    def means(self) -> dict[str, Any]:
        """Return the mean of each metric; a score that is no number stands as it is."""
        found: dict[str, Any] = {}
        for name, values in self.scores.items():
            numbers = [number for value in values if (number := as_number(value)) is not None]
            whole = len(numbers) == len(values)
            bad = next((value for value in values if as_number(value) is None), None)
            found[name] = sum(numbers) / len(numbers) if whole else bad
        return found

    @property
    def is_repeated(self) -> bool:
        """Whether the sample was scored more than once by one metric."""
        return any(len(values) > 1 for values in self.scores.values())


@dataclass(frozen=True)
class SampleRow:
    """One line of a file of samples."""

    row: dict[str, Any]
    where: str
    record: Record

    @classmethod
    def of(cls, row: Any, where: str, record: Record) -> "SampleRow":
        """Check a line; ReaderError if it is not a row of Every Eval Ever."""
        if not isinstance(row, dict):
            raise ReaderError(f"{where}: {describe(row)}, not a JSON object")
        for name in ("model_id", "evaluation_name", "sample_id"):
            value = row.get(name)
            if isinstance(value, bool) or not isinstance(value, str | int) or not str(value):
                raise ReaderError(
                    f"{where}: {name!r} is {value!r:.40}, not a name",
                    hint="every row of Every Eval Ever names its model, evaluation and sample",
                )
        for name in ("input", "evaluation"):
            if not isinstance(row.get(name), dict):
                raise ReaderError(f"{where}: {name!r} is {describe(row.get(name))}, not an object")
        return cls(row, where, record)

    @property
    def own_id(self) -> str:
        """The harness's own id of the sample."""
        return str(self.row["sample_id"])

    @property
    def metadata(self) -> dict[str, Any]:
        """What the converter kept of the harness's row."""
        found = self.row.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def metric(self) -> Metric:
        """The metric of the row."""
        result_id = self.row.get("evaluation_result_id")
        known = result_id if isinstance(result_id, str) and result_id else None
        return self.record.metric(str(self.row["evaluation_name"]), known)

    @property
    def score(self) -> Any:
        """The score as the row has it; None where lm-eval had none, for which 0 was written."""
        if "lm_eval_metrics" in self.metadata and self.row.get("evaluation_result_id") is None:
            return None
        return self.row["evaluation"].get("score")

    @property
    def filter(self) -> str:
        """lm-eval's filter, which its converter also puts behind the task; "" for others."""
        named = self.metadata.get("filter")
        return named if isinstance(named, str) else ""

    def evaluation(self) -> Evaluation:
        """Return model, task and filter, or HELM's split in place of it."""
        task = str(self.row["evaluation_name"])
        if self.filter:
            task = task.removesuffix(f"/{self.filter}")
        return Evaluation(str(self.row["model_id"]), task, self.filter or self.metric.split)

    def metric_name(self) -> str:
        """Return the metric's name, without the filter where only its id is known."""
        name = self.metric.name
        return name.removesuffix(f":{self.filter}") if self.filter else name

    def identity(self, key: str | None) -> tuple[str, str]:
        """Return what rows of one sample have in common.

        The converter of HELM writes a row for every request, and options that were asked one by
        one are requests of their own; there the id alone tells samples apart.
        """
        return self.own_id, "" if self.record.library == "helm" else self.content(key)

    def content(self, key: str | None) -> str:
        """Return what identifies the item; ReaderError if it lacks the field that is named."""
        if key is not None:
            return self._field(key)
        known = self.metadata.get("doc_hash")
        if isinstance(known, str) and known:
            return known[:ID_LENGTH]
        said = self.row["input"]
        question, options = said.get("raw"), said.get("choices") or []
        answers = said.get("reference")
        answers = [answers] if isinstance(answers, str) else answers or []
        for what in (options, answers):
            if not isinstance(what, list) or not all(isinstance(text, str) for text in what):
                raise ReaderError(f"{self.where}: 'choices' or 'reference' is not a list of texts")
        if not isinstance(question, str) or not question.strip():
            raise ReaderError(f"{self.where}: 'input.raw' is {describe(question)}, not a text")
        right = [_spelt(answer, options) for answer in answers]
        return content_id(*(text.strip() for text in (question, *options, *right)))

    def prompt(self) -> str:
        """Return what the model saw, "" if not known."""
        known = self.metadata.get("prompt_hash")
        said = self.row["input"]
        seen = known or said.get("formatted") or said.get("raw")
        return seen if isinstance(seen, str) else ""

    def _field(self, key: str) -> str:
        fields = {name: self.row.get(name) for name in ("sample_id", "sample_hash")}
        fields |= {name: self.row["input"].get(name) for name in ("raw", "formatted")}
        fields |= self.metadata
        return field_value(fields, key, self.where)


def positions(samples: list[Sample], record: Record) -> list[int] | None:
    """Return the samples' places in the task, None if their ids do not say them reliably."""
    given = [PLACED.fullmatch(sample.own_id) for sample in samples]
    if record.library not in PLACING or not all(given):
        return None
    places = [int(one[1]) for one in given if one]
    rising = all(a < b for a, b in pairwise(places))
    return places if rising or record.library == "helm" else None


def _spelt(answer: str, options: list[str]) -> str:
    """Return the text of an answer that is the letter of an option."""
    if answer in options or not LETTER.fullmatch(answer.strip()):
        return answer
    index = ord(answer.strip()) - ord("A")
    return options[index] if index < len(options) else answer
