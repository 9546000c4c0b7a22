"""The record beside a file of samples: what the evaluation as a whole says of its metrics."""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.json_files import load_json
from fewbench.readers.numbers import as_number, describe


@dataclass(frozen=True)
class Metric:
    """A metric that samples refer to by `evaluation_result_id`.

    Parameters
    ----------
    name : str
    split : str or None
        HELM's split, which its converter writes into the metric's details.
    perturbation : str
        HELM's perturbation, "" for questions as they are.
    higher_is_better : bool or None
    """

    name: str
    split: str | None = None
    perturbation: str = ""
    higher_is_better: bool | None = None


@dataclass(frozen=True)
class Record:
    """A record, {uuid}.json; empty where there is none.

    Parameters
    ----------
    metrics : dict
        Task and `evaluation_result_id`, "" for results without one → metric.
    library : str
        The harness that ran the evaluation, as in "lm_eval" or "helm".
    stamp : str
        When the evaluation ran, else when the record was made, "" if neither is known.
    n_rows : int or None
        How many rows of samples the record says there are.
    """

    metrics: dict[tuple[str, str], Metric] = field(default_factory=dict)
    library: str = ""
    stamp: str = ""
    n_rows: int | None = None

    def metric(self, task: str, result_id: str | None) -> Metric:
        """Return the metric of a row; by its bare id where the record does not have it."""
        known = self.metrics.get((task, result_id or ""))
        return known or Metric("score" if result_id in (None, task) else str(result_id))


def read_record(path: Path) -> Record:
    """Read a record; ReaderError if it is torn."""
    data = load_json(path)
    if not isinstance(data, dict):
        raise ReaderError(f"{path}: {describe(data)}, not a record of Every Eval Ever")
    listed = data.get("evaluation_results")
    results = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    ran, made = data.get("evaluation_timestamp"), data.get("retrieved_timestamp")
    rows = _object(data, "detailed_evaluation_results").get("total_rows")
    return Record(
        _metrics(results),
        str(_object(data, "eval_library").get("name") or ""),
        time_of(ran) or time_of(made),
        rows if isinstance(rows, int) else None,
    )


def time_of(value: Any) -> str:
    """Return a time as text that sorts; records have seconds since 1970, or ISO dates.

    Examples
    --------
    >>> time_of("1767261600"), time_of("2026-01-01T11:00:00+01:00"), time_of("long ago")
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


def _metrics(results: list[dict[str, Any]]) -> dict[tuple[str, str], Metric]:
    found: dict[tuple[str, str], Metric] = {}
    for one in results:
        task, result_id = one.get("evaluation_name"), one.get("evaluation_result_id")
        if not isinstance(task, str):
            continue
        if not isinstance(result_id, str):
            if any(name == task for name, _ in found):
                continue  # no telling which of them a row is of
            result_id = ""
        config = _object(one, "metric_config")
        details = _object(_object(one, "score_details"), "details")
        name, lower = config.get("metric_name"), config.get("lower_is_better")
        found[task, result_id] = Metric(
            str(name or config.get("metric_id") or result_id or "score"),
            str(details.get("split") or "") or None,
            str(details.get("perturbation") or ""),
            not lower if isinstance(lower, bool) else None,
        )
    # Scorers of one task may report metrics of one name; then only the ids tell them apart.
    times = Counter((task, *_meaning(metric)) for (task, _), metric in found.items())
    return {
        (task, result_id): metric
        if times[task, *_meaning(metric)] == 1
        else replace(metric, name=result_id or "score")
        for (task, result_id), metric in found.items()
    }


def _meaning(metric: Metric) -> tuple[str, str | None, str]:
    return metric.name, metric.split, metric.perturbation


def _object(data: dict[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}
