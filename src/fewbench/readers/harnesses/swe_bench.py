"""SWE-bench submissions: evaluation/SPLIT/DATE_SYSTEM/results/results.json and its newer form."""

import re
from collections.abc import Sequence
from functools import lru_cache
from os.path import commonpath
from pathlib import Path

from fewbench._names import counted, some
from fewbench.errors import ReaderError
from fewbench.readers.files import head, load_object, state_of
from fewbench.readers.harness import LogRun, LogUnit, Rows, Wants
from fewbench.readers.tables import load_table
from fewbench.readers.values import describe

LISTS, DETAILS = "results.json", "per_instance_details.json"
KEYS = ("resolved", "no_generation", "no_logs")
INSTANCE, RESOLVED = "instance_id", b'"resolved"'
SPLITS = ("verified", "lite", "test", "multimodal", "multilingual", "bash-only")
TABLES = (".parquet", ".jsonl")  # a cut .csv could not be told from a whole one
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
    are. A table of them (.parquet, .jsonl) with a column `instance_id`, such as the data set
    on the Hugging Face Hub, must be among the files that are read.
    """

    name = "swe-bench"
    files = f"results/{LISTS} or {DETAILS} in the folder of every submission"

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the submissions, each with the table of instances beside."""
        submissions: dict[Path, Path] = {}
        for path in files:
            if path.name == DETAILS and RESOLVED in head(path):
                submissions[submission_of(path)] = path  # says more than lists
            elif path.name == LISTS and _has_lists(head(path)):
                submissions.setdefault(submission_of(path), path)
        if not submissions:
            return []
        tables = [path for path in files if path.suffix in TABLES and _has_instances(path)]
        return [LogUnit(path, _nearest(tables, folder)) for folder, path in submissions.items()]

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return the one run of a submission."""
        path = unit.path
        if wants.key not in (None, INSTANCE):
            raise ReaderError(f"{path}: instances have no {wants.key!r}", hint="omit --key")
        folder = submission_of(path)
        split = folder.parent.name if folder.parent.name in SPLITS else ""
        in_table = instances(unit.beside[0]) if unit.beside else ()
        notes = []
        if path.name == DETAILS:
            resolved, listed = _details(path)
        else:
            resolved, listed = _lists(path), ()
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
        rows = Rows(path, "instance")
        for place, instance in enumerate(every, start=1):
            score = {"resolved": float(instance in resolved)}
            rows.append(instance, score, place, own_id=instance)
        return [
            rows.run(
                folder.name,
                f"swe-bench-{split}" if split else "swe-bench",
                stamp=date_of(folder.name),
                group=str(folder.absolute()),
                total=len(every),
                higher_is_better={"resolved": True},
                notes=tuple(notes),
            )
        ]


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
        )
    return ids


def _details(path: Path) -> tuple[set[str], tuple[str, ...]]:
    details = load_object(path, "an object of instances")
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
    return resolved, tuple(details)


def _lists(path: Path) -> set[str]:
    lists = load_object(path, "an object of lists")
    resolved = lists.get("resolved")
    if not isinstance(resolved, list) or not all(isinstance(name, str) for name in resolved):
        raise ReaderError(f"{path}: 'resolved' is {describe(resolved)}, not a list of instance ids")
    return set(resolved)
