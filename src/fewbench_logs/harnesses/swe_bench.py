"""SWE-bench: submissions to its leaderboard, and the report that its own harness writes.

A submission is evaluation/SPLIT/DATE_SYSTEM/ with results/results.json or, newer,
per_instance_details.json. A report is MODEL.RUN.json.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from os.path import commonpath
from pathlib import Path
from typing import Any

from fewbench.errors import ReaderError
from fewbench.readers.files import head, load_object, object_at, state_of
from fewbench.readers.frames import load_table
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants
from fewbench.readers.values import describe
from fewbench.support import counted, some

TASK = "swe_bench"
"""The task, as Inspect names it too."""
LISTS, DETAILS = "results.json", "per_instance_details.json"
KEYS = ("resolved", "no_generation", "no_logs")
INSTANCE, RESOLVED = "instance_id", b'"resolved"'
COSTS = ("cost", "api_calls")
"""From an instance's details: dollars, and requests to the model."""
PARTS = ("completed_ids", "empty_patch_ids", "error_ids", "resolved_ids", "unresolved_ids")
"""What older reports list in place of all instances that have a prediction."""
REPORT = re.compile(
    rb'\s*\{\s*"total_instances"\s*:\s*\d+\s*,\s*"(submitted|completed|resolved)_instances"\s*:'
)
TABLES = (".parquet", ".jsonl", ".csv", ".tsv")
DATED = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)_")


def submission_of(path: Path) -> Path:
    """Return the folder of a submission, DATE_SYSTEM, of one of its files."""
    return path.parent.parent if path.parent.name == "results" else path.parent


def date_of(folder: str) -> str:
    """Return the date with which the name of a submission's folder begins, or "".

    Examples
    --------
    >>> date_of("20240620_sweagent_claude3.5sonnet"), date_of("sweagent")
    ('2024-06-20', '')
    """
    match = DATED.match(folder)
    return "-".join(match.groups()) if match else ""


class SweBench:
    """Read submissions to SWE-bench: lists of resolved instances, or details of each instance.

    A model is a submission, which is an agent with one or several models. An instance that a
    submission does not list as resolved has score 0. The lists do not say which instances there
    are. A table of them (.parquet, .jsonl, .csv) with a column `instance_id`, such as the data set
    on the Hugging Face Hub, must be among the files that are read.

    Reports name all instances. Those without a prediction count as not run; those with an empty
    patch or an error as not resolved. One instance is the same item in all splits.
    """

    name = "swe-bench"
    files = f"results/{LISTS} or {DETAILS} in the folder of every submission, and MODEL.RUN.json"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return reports, and submissions with the table of instances next to each."""
        submissions: dict[Path, Path] = {}
        reports = []
        for path in files:
            if path.name == DETAILS and RESOLVED in head(path):
                submissions[submission_of(path)] = path  # more detailed than lists
            elif path.name == LISTS and _has_lists(head(path)):
                submissions.setdefault(submission_of(path), path)
            elif path.suffix == ".json" and REPORT.match(head(path)):
                reports.append(LogUnit(path))
        if not submissions:
            return reports
        tables = [path for path in files if path.suffix in TABLES and _has_instances(path)]
        units = [LogUnit(path, _nearest(tables, folder)) for folder, path in submissions.items()]
        return [*reports, *units]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the one run of a submission or report."""
        path = unit.path
        if wants.key not in (None, INSTANCE):
            raise ReaderError(f"{path}: instances have no {wants.key!r}", hint="omit --key")
        if path.name not in (LISTS, DETAILS):
            return [_reported(path, wants)]
        folder = submission_of(path)
        in_table = instances(unit.beside[0]) if unit.beside else ()
        details: dict[str, Any] = {}
        broken: list[str] = []
        if path.name == DETAILS:
            details = load_object(path, "an object of instances")
            resolved, listed = _resolved(path, details), tuple(details)
        else:
            lists = load_object(path, "lists")
            resolved, listed = set(_ids(path, lists, "resolved")), ()
            broken = _ids(path, lists, "no_logs", required=False)
            if not in_table:
                raise ReaderError(
                    f"{path}: lists resolved instances, but not which instances there are",
                    hint=f"pass a table with a column {INSTANCE} too, such as the Parquet file of "
                    "the data set SWE-bench/SWE-bench_Verified",
                )
        every = list(in_table or listed)
        if resolved and not resolved & set(every):
            raise ReaderError(
                f"{path}: none of its resolved instances is in {unit.beside[0]}",
                hint="pass the table of the data set that was run",
            )
        notes = []
        if not in_table:
            notes.append(
                f"only the {counted(len(listed), 'instance')} with a result count: if others have "
                f"none, as they have no patch, pass a table with a column {INSTANCE} of all"
            )
        if others := sorted((resolved | set(listed)) - set(every)):
            notes.append(f"{counted(len(others), 'instance')} not in the table: {some(others)}")
        if in_table and listed and (lacking := sorted(set(in_table) - set(listed))):
            what = counted(len(lacking), "instance")
            notes.append(f"{what} without a result, which count as not resolved: {some(lacking)}")
        scores = _scores(resolved, broken, wants)
        stamp = date_of(folder.name)
        return [_run(path, folder.name, every, scores, details, notes, stamp, str(folder))]


def _run(
    path: Path,
    model: str,
    every: Sequence[str],
    scores: Mapping[str, Any],
    details: Mapping[str, Any],
    notes: Sequence[str],
    stamp: str = "",
    group: str = "",
    total: int | None = None,
) -> LogRun:
    rows = Rows(path, "instance")
    for place, instance in enumerate(every, start=1):
        stated = object_at(details, instance)
        costs = {name: stated[name] for name in COSTS if name in stated}
        score = {"resolved": scores.get(instance, 0.0)}
        rows.append(instance, score, place, own_id=instance, costs=costs)
    return rows.run(
        model,
        TASK,
        stamp=stamp,
        group=str(Path(group or path).absolute()),
        total=total or len(every),
        higher_is_better={"resolved": True},
        notes=tuple(notes),
    )


def _scores(resolved: Collection[str], broken: Collection[str], wants: Wants) -> dict[str, Any]:
    """Return the scores of instances that are not just unresolved."""
    return dict.fromkeys(broken, wants.broken("wrong")) | dict.fromkeys(resolved, 1.0)


def _reported(path: Path, wants: Wants) -> LogRun:
    """Return the run of a report: the instances that have a prediction."""
    report = load_object(path, "a report")
    resolved = _ids(path, report, "resolved_ids")
    parts = ("submitted_ids",) if "submitted_ids" in report else PARTS
    submitted = {one for name in parts for one in _ids(path, report, name, required=False)}
    notes = []
    if waiting := _ids(path, report, "incomplete_ids", required=False):
        notes.append(
            f"instances without a prediction count as not run ({len(waiting):,}): "
            f"{some(sorted(waiting))}"
        )
    errors = _ids(path, report, "error_ids", required=False)
    is_run = wants.broken("wrong") == 0.0
    for failed, why in (
        (
            _ids(path, report, "empty_patch_ids", required=False),
            "with an empty patch, not resolved",
        ),
        (errors, f"with an error, {'not resolved' if is_run else 'not run'}"),
    ):
        if failed:
            what = f"{counted(len(failed), 'instance')} {why}"
            notes.append(f"{what}: {some(sorted(failed))}")
    model = path.stem.rpartition(".")[0] or path.stem
    every = sorted(submitted)
    scores = _scores(resolved, errors, wants)
    return _run(path, model, every, scores, {}, notes, total=len(every) + len(waiting))


def _has_lists(start: bytes) -> bool:
    """Whether a file begins with lists of instances, which other results.json do not."""
    return start.lstrip()[:1] == b"{" and any(
        re.match(rb'\s*\{\s*"%s":\s*\[' % key.encode(), start) for key in KEYS
    )


def _has_instances(path: Path) -> bool:
    if path.suffix != ".parquet":
        first = head(path).partition(b"\n")[0]
        return INSTANCE.encode() in first
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return INSTANCE in pq.read_schema(path).names
    except (pa.ArrowException, OSError):
        return False


def _nearest(tables: list[Path], folder: Path) -> tuple[Path, ...]:
    """Return the table of instances that shares most folders with a submission."""
    home = folder.absolute()
    near = sorted(tables, key=lambda path: -len(commonpath([path.absolute(), home])))
    return tuple(near[:1])


def instances(path: Path) -> tuple[str, ...]:
    """Return the ids in a table of instances, in order.

    Raises
    ------
    ReaderError
        If the table cannot be read, or an id is missing or stands there twice.
    """
    return _instances(path, state_of(path))


@lru_cache(maxsize=16)
def _instances(path: Path, state: object) -> tuple[str, ...]:
    column = load_table(path, text=[INSTANCE])[INSTANCE]
    ids = tuple(str(instance) for instance in column if isinstance(instance, str) and instance)
    if not ids or len(ids) < len(column) or len(set(ids)) < len(ids):
        raise ReaderError(
            f"{path}: column {INSTANCE} has empty or repeated ids, or none",
            hint="pass the table of the data set, with one row per instance",
            kind="repeated",
        )
    return ids


def _resolved(path: Path, details: Mapping[str, Any]) -> set[str]:
    """Return the instances that details say are resolved."""
    resolved = set()
    for instance, detail in details.items():
        value = detail.get("resolved") if isinstance(detail, dict) else None
        if not isinstance(value, bool):
            raise ReaderError(
                f"{path}: 'resolved' of instance {instance!r} is {describe(value)}, not true or "
                "false"
            )
        if value:
            resolved.add(instance)
    return resolved


def _ids(path: Path, lists: Mapping[str, Any], name: str, *, required: bool = True) -> list[str]:
    """Return a list of instances by its name."""
    ids = lists.get(name, None if required else [])
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise ReaderError(f"{path}: {name!r} is {describe(ids)}, not a list of instance ids")
    return ids
