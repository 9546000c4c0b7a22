"""Every Eval Ever, schema 0.3: {uuid}_samples.jsonl and the record {uuid}.json."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from fewbench.errors import ReaderError
from fewbench.readers.files import JsonLines, head, load_object, object_at
from fewbench.readers.harness import MIXED_UP, UNKNOWN, LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import ID_LENGTH, as_number, content_id, describe, field_value, mean_of
from fewbench.scores.conditions import SCORING
from fewbench.support import counted, some

PLACED = re.compile(r"(?:id)?(\d{1,9})")
LETTER = re.compile(r"[A-Z]")
# Harnesses whose own ids of documents say their place in the task.
PLACING = ("lm_eval", "helm")
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
NAMED = re.compile(rf"({UUID})_samples\.jsonl")
FIELDS = (b'"evaluation_id"', b'"evaluation_name"', b'"model_id"')


@dataclass(frozen=True)
class _Metric:
    name: str
    split: str | None = None
    perturbation: str = ""
    higher_is_better: bool | None = None


@dataclass(frozen=True)
class _EvalRecord:
    """A record, {uuid}.json; empty if there is none.

    `metrics` maps task and `evaluation_result_id` ("" if absent) to a metric; `library` is the
    harness.
    """

    metrics: dict[tuple[str, str], _Metric] = field(default_factory=dict)
    library: str = ""
    stamp: str = ""
    n_rows: int | None = None

    def metric(self, task: str, result_id: str | None) -> _Metric:
        metric = self.metrics.get((task, result_id or ""))
        return metric or _Metric("score" if result_id in (None, task) else str(result_id))


def _read_record(path: Path) -> _EvalRecord:
    data = load_object(path, "a record of Every Eval Ever")
    listed = data.get("evaluation_results")
    results = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    ran, retrieved = data.get("evaluation_timestamp"), data.get("retrieved_timestamp")
    rows = object_at(data, "detailed_evaluation_results").get("total_rows")
    return _EvalRecord(
        _metrics(results),
        str(object_at(data, "eval_library").get("name") or ""),
        _time_of(ran) or _time_of(retrieved),
        rows if isinstance(rows, int) else None,
    )


def _time_of(value: Any) -> str:
    """Return a time as text that sorts; records have seconds since 1970, or ISO dates.

    Examples
    --------
    >>> _time_of("1767261600"), _time_of("2026-01-01T11:00:00+01:00"), _time_of("long ago")
    ('2026-01-01T10:00:00.000', '2026-01-01T10:00:00.000', '')
    """
    seconds = as_number(value)
    try:
        if seconds is not None and math.isfinite(seconds):
            moment = datetime.fromtimestamp(seconds, UTC)
        else:
            moment = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return ""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{zoned.microsecond // 1000:03}"


def _metrics(results: list[dict[str, Any]]) -> dict[tuple[str, str], _Metric]:
    metrics: dict[tuple[str, str], _Metric] = {}
    for result in results:
        task, result_id = result.get("evaluation_name"), result.get("evaluation_result_id")
        if not isinstance(task, str):
            continue
        if not isinstance(result_id, str):
            if any(name == task for name, _ in metrics):
                continue  # it is unknown to which of them a row belongs
            result_id = ""
        config = object_at(result, "metric_config")
        details = object_at(result, "score_details", "details")
        name, lower = config.get("metric_name"), config.get("lower_is_better")
        metrics[task, result_id] = _Metric(
            str(name or config.get("metric_id") or result_id or "score"),
            str(details.get("split") or "") or None,
            str(details.get("perturbation") or ""),
            not lower if isinstance(lower, bool) else None,
        )
    # Scorers of a task may report metrics of one name; then their ids are used.
    meanings = {key: (key[0], m.name, m.split, m.perturbation) for key, m in metrics.items()}
    times = Counter(meanings.values())
    return {
        key: metric if times[meanings[key]] == 1 else replace(metric, name=key[1] or "score")
        for key, metric in metrics.items()
    }


class _Evaluation(NamedTuple):
    model: str
    task: str
    filter: str | None


@dataclass
class _EvalSample:
    place: int
    own_id: str
    content: str
    prompt: str
    key: tuple[str | None, list[str]]
    scores: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class _SampleRow:
    row: dict[str, Any]
    where: str
    record: _EvalRecord

    @classmethod
    def from_row(cls, row: Any, where: str, record: _EvalRecord) -> "_SampleRow":
        if not isinstance(row, dict):
            raise ReaderError(f"{where}: {describe(row)}, not a JSON object")
        for name in ("model_id", "evaluation_name", "sample_id"):
            value = row.get(name)
            if isinstance(value, bool) or not isinstance(value, str | int) or not str(value):
                raise ReaderError(
                    f"{where}: {name!r} is {value!r:.40}, not a name",
                    hint="a row of Every Eval Ever names its model, evaluation and sample",
                )
        for name in ("input", "evaluation"):
            if not isinstance(row.get(name), dict):
                raise ReaderError(f"{where}: {name!r} is {describe(row.get(name))}, not an object")
        return cls(row, where, record)

    @property
    def own_id(self) -> str:
        return str(self.row["sample_id"])

    @property
    def metadata(self) -> dict[str, Any]:
        return object_at(self.row, "metadata")

    @property
    def metric(self) -> _Metric:
        result_id = self.row.get("evaluation_result_id")
        stated = result_id if isinstance(result_id, str) and result_id else None
        return self.record.metric(str(self.row["evaluation_name"]), stated)

    @property
    def score(self) -> Any:
        if "lm_eval_metrics" in self.metadata and self.row.get("evaluation_result_id") is None:
            return None
        return self.row["evaluation"].get("score")

    @property
    def filter(self) -> str:
        named = self.metadata.get("filter")
        return named if isinstance(named, str) else ""

    def evaluation(self) -> _Evaluation:
        task = str(self.row["evaluation_name"])
        if self.filter:
            task = task.removesuffix(f"/{self.filter}")
        return _Evaluation(str(self.row["model_id"]), task, self.filter or self.metric.split)

    def metric_name(self) -> str:
        name = self.metric.name
        return name.removesuffix(f":{self.filter}") if self.filter else name

    def identity(self, key: str | None) -> tuple[str, str]:
        """Return what the rows of one sample share.

        HELM's converter writes one row per request, so for HELM the id alone identifies a sample.
        """
        return self.own_id, "" if self.record.library == "helm" else self.content(key)

    def content(self, key: str | None) -> str:
        if key is not None:
            fields = {name: self.row.get(name) for name in ("sample_id", "sample_hash")}
            fields |= {name: self.row["input"].get(name) for name in ("raw", "formatted")}
            return field_value(fields | self.metadata, key, self.where)
        doc_hash = self.metadata.get("doc_hash")
        if isinstance(doc_hash, str) and doc_hash:
            return doc_hash[:ID_LENGTH]
        question = self.row["input"].get("raw")
        if (pair := self._key()) is None:
            raise ReaderError(f"{self.where}: 'choices' or 'reference' is not a list of texts")
        options, right = pair
        if not isinstance(question, str) or not question.strip():
            raise ReaderError(f"{self.where}: 'input.raw' is {describe(question)}, not a text")
        return content_id(*(text.strip() for text in (question, *options, *right)))

    def key(self) -> tuple[str | None, list[str]]:
        """Return the right answer or lm-eval's hash of it, and the options."""
        options, right = self._key() or ([], [])
        target_hash = self.metadata.get("target_hash")
        if not isinstance(target_hash, str) or not target_hash:
            target_hash = "\x1f".join(text.strip() for text in right) or None
        return target_hash, options if len(options) > 1 else []

    def _key(self) -> tuple[list[str], list[str]] | None:
        """Return options and right answers, None if they are not texts."""
        asked = self.row["input"]
        options, answers = asked.get("choices") or [], asked.get("reference")
        answers = [answers] if isinstance(answers, str) else answers or []
        for what in (options, answers):
            if not isinstance(what, list) or not all(isinstance(text, str) for text in what):
                return None
        return options, [_spelt(answer, options) for answer in answers]

    def prompt(self) -> str:
        prompt_hash = self.metadata.get("prompt_hash")
        asked = self.row["input"]
        seen = prompt_hash or asked.get("formatted") or asked.get("raw")
        return seen if isinstance(seen, str) else ""


def _positions(samples: list[_EvalSample], record: _EvalRecord) -> list[int] | None:
    matches = [PLACED.fullmatch(sample.own_id) for sample in samples]
    if record.library not in PLACING or not all(matches):
        return None
    places = [int(match[1]) for match in matches if match]
    rising = all(a < b for a, b in pairwise(places))
    return places if rising or record.library == "helm" else None


def _spelt(answer: str, options: list[str]) -> str:
    if answer in options or not LETTER.fullmatch(answer.strip()):
        return answer
    index = ord(answer.strip()) - ord("A")
    return options[index] if index < len(options) else answer


class EveryEvalEver:
    """Read sample files of Every Eval Ever, from any harness.

    A row is one metric of one sample, with the score `evaluation.score`; the record names the
    metric. An item is identified by lm-eval's hash if the row has it, else by its input, choices
    and references; `sample_id` is the harness's id. Several rows of one sample and metric are
    averaged. Rows with an error are skipped.
    """

    name = "every-eval-ever"
    files = "{uuid}_samples.jsonl beside {uuid}.json"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the files of samples, each with its record."""
        units = []
        for path in files:
            named = NAMED.fullmatch(path.name)
            start = head(path) if path.suffix == ".jsonl" else b""
            if not named and not all(field in start for field in FIELDS):
                continue
            record = path.with_name(path.name.removesuffix("_samples.jsonl") + ".json")
            there = path.name.endswith("_samples.jsonl") and record.is_file()
            units.append(LogUnit(path, (record,) if there else ()))
        return units

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return a run for each model, task and filter of a file of samples."""
        record = _read_record(unit.beside[0]) if unit.beside else _EvalRecord()
        lines = JsonLines(unit.path, wants.salvage)
        samples: dict[_Evaluation, dict[tuple[str, str], _EvalSample]] = {}
        directions: dict[str, bool] = {}
        errors: list[str] = []
        perturbed: Counter[str] = Counter()
        count = 0
        for place, line in lines:
            row = _SampleRow.from_row(line, f"{unit.path}, line {place}", record)
            count += 1
            if row.row.get("error"):
                errors.append(row.own_id)
                continue
            name, metric = row.metric_name(), row.metric
            if metric.perturbation:
                perturbed[metric.perturbation] += 1
                continue
            if metric.higher_is_better is not None:
                directions[name] = metric.higher_is_better
            by_item = samples.setdefault(row.evaluation(), {})
            identity = row.identity(wants.key)
            if identity not in by_item:
                content = identity[1] or row.content(wants.key)
                by_item[identity] = _EvalSample(place, row.own_id, content, row.prompt(), row.key())
            by_item[identity].scores.setdefault(name, []).append(row.score)
        notes = (*lines.notes, *_notes(unit, record, count, errors))
        if perturbed:
            note = f"{perturbed.total()} rows of perturbed samples ({some(perturbed)}) skipped"
            notes = (*notes, note)
        if not samples:
            raise ReaderError(
                f"{unit.path}: {'no usable row' if count else 'empty'}"
                + (f"; every sample has an error ({errors[0]} …)" if errors else ""),
                hint="skip the file with --damaged skip",
            )
        return [
            _run(unit.path, evaluation, list(group.values()), record, directions, notes)
            for evaluation, group in samples.items()
        ]


def _run(
    path: Path,
    evaluation: _Evaluation,
    samples: list[_EvalSample],
    record: _EvalRecord,
    directions: dict[str, bool],
    notes: tuple[str, ...],
) -> LogRun:
    rows = Rows(path)
    places = _positions(samples, record)
    unknown = MIXED_UP if record.library == "lm_eval" else UNKNOWN
    for at, sample in enumerate(samples):
        rows.append(
            sample.content,
            # HELM's converter writes one row per request.
            _trials_of(sample.scores, is_one=record.library == "helm"),
            sample.place,
            position=places[at] if places else unknown,
            own_id=sample.own_id,
            prompt=sample.prompt,
            answer=sample.key[0],
            choices=sample.key[1],
        )
    times = [max(map(len, sample.scores.values())) for sample in samples]
    repeated = sum(n > 1 for n in times)
    if repeated:
        notes = (*notes, f"{repeated} samples have several rows of a metric, which are averaged")
    return rows.run(
        evaluation.model,
        evaluation.task,
        filter=evaluation.filter or "none",
        stamp=record.stamp,
        task_settings=((f"{SCORING}repeats", str(max(times))),) if record.library != "helm" else (),
        higher_is_better={name: up for name, up in directions.items() if name in rows.values},
        notes=notes,
    )


def _trials_of(scores: Mapping[str, Sequence[Any]], *, is_one: bool) -> list[dict[str, Any]]:
    """Return the scores of each trial; means if it is one, or metrics have different numbers."""
    if is_one or len(set(map(len, scores.values()))) > 1:
        return [{name: mean_of(values) for name, values in scores.items()}]
    return [dict(zip(scores, values, strict=True)) for values in zip(*scores.values(), strict=True)]


def _notes(unit: LogUnit, record: _EvalRecord, count: int, errors: list[str]) -> list[str]:
    notes = []
    if not unit.beside:
        notes.append(
            "no record in the folder; metrics have the names in the rows, and it is not checked "
            "whether higher is better"
        )
    elif record.n_rows is not None and record.n_rows != count:
        notes.append(f"has {count} rows, but its record says {record.n_rows}: an incomplete copy")
    if errors:
        listed = some(dict.fromkeys(errors))
        notes.append(f"{counted(len(errors), 'row')} with an error left out (samples {listed})")
    return notes
