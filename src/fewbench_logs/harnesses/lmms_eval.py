"""lmms-eval: TIME_samples_TASK.jsonl with TIME_results.json."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import JsonLines, object_at
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants, empty
from fewbench.readers.harnesses.lm_eval.run_results import Results, model_of_others
from fewbench.readers.values import as_number, content_id, describe, field_value, is_position
from fewbench.support import some

SAMPLES = re.compile(r"(?P<stamp>\d{8}_\d{6})_samples_(?P<task>.+)\.jsonl", re.DOTALL)
RESULTS = "_results.json"
NOT_METRICS = {
    *("doc_id", "doc", "target", "arguments", "input", "input_media", "resps", "filtered_resps"),
    *("token_counts", "doc_hash", "prompt_hash", "target_hash", "filter", "metrics"),
}
SCORE = "score"
NO_RESULTS = (
    "no results file in the folder; the model is named after the folder or other runs, and the "
    "number of items of the task is unknown"
)


class LmmsEval:
    """Read logs of lmms-eval 0.2.4 to 0.7.3 (`--log_samples`); 0.2.3 writes lm-eval's files.

    An item is identified by its position and target. Nothing else works: since 0.4 the document is
    not logged and `doc_hash` is constant, and prompts lack the picture and differ between models.
    For a metric that is a dictionary, its `score` counts. Options are not read, as lmms-eval logs
    losses.
    """

    name = "lmms-eval"
    files = "TIME_samples_TASK.jsonl, written with --log_samples"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the sample files, each with the results of its run beside it."""
        listed: dict[Path, list[Path]] = {}
        units = []
        for path in files:
            name = SAMPLES.fullmatch(path.name)
            if not name:
                continue
            folder = path.parent
            if folder not in listed:
                listed[folder] = sorted(folder.glob(f"*{RESULTS}"))
            same_run = folder / (name["stamp"] + RESULTS)
            beside = (same_run,) if same_run in listed[folder] else tuple(listed[folder])
            units.append(LogUnit(path, beside))
        return units

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return a run for each filter of a samples file."""
        name = SAMPLES.fullmatch(unit.path.name)
        assert name, unit.path
        task, stamp = name["task"], name["stamp"]
        same_run = [path for path in unit.beside if path.name == stamp + RESULTS]
        results = Results.read(same_run[0]) if same_run else None
        lines = JsonLines(unit.path, wants.salvage)
        score_key, model = SCORE, ""
        if results:
            named = results.part("configs", task).get("score_key")
            score_key = named if isinstance(named, str) and named else SCORE
            model = str(results.model or results.part("config").get("model") or "")
        samples = list(_samples(lines, score_key))
        if not samples:
            raise empty(unit.path)
        filters = results.filters(task) if results else []
        parts = _parts(samples, task)
        notes = [*lines.notes]
        if results is None:
            notes.append(NO_RESULTS)
            model = model_of_others(unit)
        if len(parts) > 1:
            notes.append(
                f"items have different metrics, so task {task!r} is split into {len(parts)}: "
                f"{some(parts)}"
            )
        n_documents = len({sample.doc_id for sample in samples})
        runs = []
        for part, some_of in parts.items():
            for time, rows in enumerate(_by_filter(unit.path, some_of, filters, wants.key)):
                filtered = filters[time] if filters else None
                facts = _facts(results, task, n_documents, filtered)
                if len(parts) > 1:
                    is_whole = facts.get("total") == n_documents
                    facts |= {"total": len(rows) if is_whole else None, "ran": None}
                facts |= {"stamp": stamp, "filter": filtered, "notes": tuple(notes)}
                runs.append(rows.run(model, part, **facts))
        return runs


@dataclass(frozen=True)
class _Sample:
    where: str
    place: int
    row: dict[str, Any]
    scores: Mapping[str, Any]

    @property
    def doc_id(self) -> int:
        return int(self.row["doc_id"])

    @property
    def prompt(self) -> str:
        prompt = self.row.get("input")
        if prompt is None:
            return ""
        return prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True)

    def content(self, key: str | None) -> str:
        if key is None:
            return content_id(str(self.doc_id), str(self.row.get("target")).strip())
        there = {name: self.row[name] for name in sorted(NOT_METRICS & self.row.keys())}
        there |= object_at(self.row, "doc")  # until 0.3
        return field_value(there, key, self.where)


def _samples(lines: JsonLines, score_key: str) -> Iterator[_Sample]:
    for place, row in lines:
        where = f"{lines.path}, line {place}"
        if not isinstance(row, dict):
            raise ReaderError(f"{where}: not a JSON object")
        doc_id = row.get("doc_id")
        if not is_position(doc_id):
            state = "absent" if "doc_id" not in row else describe(doc_id)
            raise ReaderError(f"{where}: 'doc_id' is {state}, not the position of a document")
        if "target" not in row:
            raise ReaderError(f"{where}: no 'target', so not a row of lmms-eval")
        yield _Sample(where, place, row, _scores(row, score_key))


def _scores(row: Mapping[str, Any], score_key: str) -> dict[str, Any]:
    """Return the metrics of a row: of a dictionary its score, else every number in it.

    Examples
    --------
    >>> _scores({"doc_id": 0, "a": 1.0, "b": {"id": 7, "score": 0.5}, "c": {"hit": True}}, "score")
    {'a': 1.0, 'b': 0.5, 'c.hit': True}
    """
    scores: dict[str, Any] = {}
    for name, value in row.items():
        if name in NOT_METRICS:
            continue
        if not isinstance(value, dict):
            scores[name] = value
        elif as_number(value.get(score_key)) is not None:
            scores[name] = value[score_key]
        else:
            numbers = {f"{name}.{k}": v for k, v in value.items() if isinstance(v, int | float)}
            if numbers:
                scores |= numbers
            else:
                scores[name] = value
    return scores


def _parts(samples: list[_Sample], task: str) -> dict[str, list[_Sample]]:
    """Split samples into tasks by their metrics: tasks such as MME have several kinds of items."""
    by_metrics: dict[tuple[str, ...], list[_Sample]] = {}
    for sample in samples:
        by_metrics.setdefault(tuple(sample.scores), []).append(sample)
    names = [name for metrics in by_metrics for name in metrics]
    if len(by_metrics) == 1 or () in by_metrics or len(set(names)) < len(names):
        return {task: samples}
    return {f"{task}_{metrics[0]}": some_of for metrics, some_of in by_metrics.items()}


def _by_filter(
    path: Path, samples: list[_Sample], filters: list[str], key: str | None
) -> list[Rows]:
    """Return the rows of each filter: a document's n-th row is of the n-th filter."""
    met: Counter[int] = Counter()
    by_filter: list[Rows] = []
    for sample in samples:
        time = met[sample.doc_id]
        met[sample.doc_id] += 1
        if time and time >= len(filters):
            message = f"{sample.where}: document {sample.doc_id} has a further row"
            if filters:
                raise ReaderError(
                    f"{message} than the task has filters",
                    hint="two runs in one second write to one file; run them one after the other",
                )
            raise ReaderError(
                f"{message}; lmms-eval writes one per filter, and no results file in the folder "
                "names several",
                hint="add the run's TIME_results.json to the folder",
            )
        if time == len(by_filter):
            by_filter.append(Rows(path))
        by_filter[time].append(
            sample.content(key),
            sample.scores,
            sample.place,
            position=sample.doc_id,
            prompt=sample.prompt,
            answer=str(sample.row.get("target")).strip(),
        )
    return by_filter


def _facts(results: Results | None, task: str, logged: int, filtered: str | None) -> dict[str, Any]:
    if results is None:
        return {}
    facts = results.known(task, logged, filtered)
    if results.part("config").get("offset"):
        facts["ran"] = None  # lmms-eval forgets that an offset leaves fewer
    # lmms-eval does not log chat templates and system prompts.
    unlogged = ("chat template", "system prompt")
    asked = facts["task_settings"]
    return facts | {"task_settings": tuple(pair for pair in asked if pair[0] not in unlogged)}
