"""EvalScope: reviews/MODEL/DATASET_SUBSET.jsonl of a work folder (1.0 and newer)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import JsonLines, head, load_json, object_at
from fewbench.readers.harness import UNKNOWN, LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import content_id, field_value, is_position

MARK = b'"sample_score"'


class EvalScope:
    """Read reviews of EvalScope: a task for each subset of a dataset, a metric for each score.

    Repeats of a sample, which have its `group_id`, are answers to one item.
    """

    name = "evalscope"
    files = "reviews/MODEL/DATASET_SUBSET.jsonl"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the reviews, each with the report on its dataset beside."""
        reports = [path for path in files if path.parent.parent.name == "reports"]
        units = []
        for path in files:
            if path.suffix == ".jsonl" and path.parent.parent.name == "reviews":
                start = head(path)  # a long question may come before the mark
                if MARK in start or start.lstrip().startswith(b'{"index"'):
                    units.append(LogUnit(path, tuple(_report_of(path, reports))))
        return units

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the one run of a file of reviews."""
        path = unit.path
        lines = JsonLines(path, wants.salvage)
        rows, again = Rows(path), dict[str, int]()
        for place, row in lines:
            score = object_at(row, "sample_score", "score", "value")
            if not score:
                raise ReaderError(f"{path}, line {place}: no sample_score.score.value")
            sample = object_at(row, "sample_score")
            own_id = sample.get("group_id")
            own_id = sample.get("sample_id") if own_id is None else own_id
            name = str(row.get("index") if own_id is None else own_id)
            trial = again.get(name, 0)
            again[name] = trial + 1
            fields = {"index": row.get("index"), "input": _text(row.get("input"))}
            fields |= object_at(sample, "sample_metadata")
            target = _text(row.get("target"))
            where = f"{path}, line {place}"
            rows.append(
                field_value(fields, wants.key, where)
                if wants.key
                else content_id(_text(row.get("input")), target),
                score,
                place,
                trial=trial,
                position=int(name) if _is_number(name) else UNKNOWN,
                own_id=name,
                prompt=_text(row.get("input")),
                answer=target,
            )
        dataset = object_at(load_json(unit.beside[0])).get("dataset_name") if unit.beside else ""
        return [
            rows.run(
                path.parent.name,
                path.stem,
                group=str(path.absolute().parent.parent.parent),
                suite=str(dataset or ""),
                notes=lines.notes,
            )
        ]


def _report_of(path: Path, reports: Sequence[Path]) -> list[Path]:
    """Return the report of a model on the dataset that the name of its reviews begins with."""
    own = [
        report
        for report in reports
        if report.parent.name == path.parent.name and path.stem.startswith(report.stem)
    ]
    return sorted(own, key=lambda report: -len(report.stem))[:1]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _is_number(name: str) -> bool:
    return name.isdecimal() and is_position(int(name))
