"""Every Eval Ever: {uuid}_samples.jsonl with the record {uuid}.json beside, schema 0.3."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.files import head
from fewbench.readers.harness import Unit, Wants
from fewbench.readers.harnesses._every_eval_ever.record import Record, read_record
from fewbench.readers.harnesses._every_eval_ever.samples import (
    Evaluation,
    Sample,
    SampleRow,
    positions,
)
from fewbench.readers.json_files import JsonLines
from fewbench.readers.run import MIXED_UP, UNKNOWN, Rows, Run

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
NAMED = re.compile(rf"({UUID})_samples\.jsonl")
FIELDS = (b'"evaluation_id"', b'"evaluation_name"', b'"model_id"')


class EveryEvalEver:
    """What Every Eval Ever keeps of the samples of an evaluation, of any harness.

    A row is one metric of one sample; its score is `evaluation.score` (`is_correct` follows from
    it, or is false where the converter could not tell, and is not taken). The metric's name is
    that of the record beside. An item is known by the hash that lm-eval gave it, where the row
    keeps it, else by its input, its choices and its references; `sample_id` is its own id.
    Several rows of one sample and metric are averaged. Rows with an error are left out.
    """

    name = "every-eval-ever"
    files = "{uuid}_samples.jsonl beside {uuid}.json"

    def find(self, files: Sequence[Path]) -> list[Unit]:
        """Return the files of samples, each with its record."""
        units = []
        for path in files:
            named = NAMED.fullmatch(path.name)
            start = head(path) if path.suffix == ".jsonl" else b""
            if not named and not all(field in start for field in FIELDS):
                continue
            record = path.with_name(path.name.removesuffix("_samples.jsonl") + ".json")
            there = path.name.endswith("_samples.jsonl") and record.is_file()
            units.append(Unit(path, (record,) if there else ()))
        return units

    def read(self, unit: Unit, wants: Wants) -> list[Run]:
        """Return a run for each model, task and filter of a file of samples."""
        record = read_record(unit.beside[0]) if unit.beside else Record()
        lines = JsonLines(unit.path, wants.salvage)
        samples: dict[Evaluation, dict[tuple[str, str], Sample]] = {}
        directions: dict[str, bool] = {}
        errors: list[str] = []
        perturbed: Counter[str] = Counter()
        count = 0
        for place, line in lines:
            row = SampleRow.of(line, f"{unit.path}, line {place}", record)
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
            own = samples.setdefault(row.evaluation(), {})
            identity = row.identity(wants.key)
            if identity not in own:
                content = identity[1] or row.content(wants.key)
                own[identity] = Sample(place, row.own_id, content, row.prompt())
            own[identity].scores.setdefault(name, []).append(row.score)
        notes = (*lines.notes, *_notes(unit, record, count, errors))
        if perturbed:
            said = f"{perturbed.total()} rows of perturbed samples ({some(perturbed)}) not taken"
            notes = (*notes, said)
        if not samples:
            raise ReaderError(
                f"{unit.path}: {'no row that can be taken' if count else 'empty'}"
                + (f"; every sample has an error ({errors[0]} …)" if errors else ""),
                hint="leave it out with --damaged skip",
            )
        return [
            _run(unit.path, evaluation, list(own.values()), record, directions, notes)
            for evaluation, own in samples.items()
        ]


def _run(
    path: Path,
    evaluation: Evaluation,
    samples: list[Sample],
    record: Record,
    directions: dict[str, bool],
    notes: tuple[str, ...],
) -> Run:
    rows = Rows(path)
    places = positions(samples, record)
    unknown = MIXED_UP if record.library == "lm_eval" else UNKNOWN
    for at, sample in enumerate(samples):
        rows.append(
            sample.content,
            sample.means(),
            sample.place,
            position=places[at] if places else unknown,
            own_id=sample.own_id,
            prompt=sample.prompt,
        )
    repeated = sum(sample.is_repeated for sample in samples)
    if repeated:
        notes = (*notes, f"{repeated} samples have several rows of one metric and are averaged")
    return rows.run(
        evaluation.model,
        evaluation.task,
        filter=evaluation.filter or "none",
        stamp=record.stamp,
        higher_is_better={name: up for name, up in directions.items() if name in rows.values},
        notes=notes,
    )


def _notes(unit: Unit, record: Record, count: int, errors: list[str]) -> list[str]:
    notes = []
    if not unit.beside:
        notes.append(
            "without its record beside; metrics have the names that the rows give, and whether "
            "higher is better is not checked"
        )
    elif record.n_rows is not None and record.n_rows != count:
        notes.append(f"has {count} rows, and its record says {record.n_rows}: a copy cut short")
    if errors:
        listed = some(dict.fromkeys(errors))
        notes.append(f"{len(errors)} rows with an error are left out (samples {listed})")
    return notes
