"""lm-evaluation-harness: samples_TASK_TIME.jsonl with results_TIME.json, of every version."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from fewbench._json import loads
from fewbench.errors import ReaderError
from fewbench.readers.files import head, starts_as_results
from fewbench.readers.harness import MIXED_UP, LogRun, LogUnit, Rows, Wants, empty
from fewbench.readers.harnesses.lm_eval.run_results import NAMES, Results, model_of_others
from fewbench.readers.harnesses.lm_eval.samples import (
    OPEN,
    DocumentCheck,
    SampleRows,
    answer_of,
    content_of,
    filter_of,
    metrics_of,
    prompt_of,
)
from fewbench.readers.options import OptionTable, recomputed
from fewbench.readers.values import setting

STAMP = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
SAMPLES = re.compile(
    rf"samples_(?P<task>.+?)(?:_(?P<stamp>{STAMP}))?\.(?:jsonl?|parquet)", re.DOTALL
)
ENDING = re.compile(rf"_(?P<stamp>{STAMP})\.json$")
HUB = re.compile(r"(?P<org>.+?)__(?P<model>.+)__(?P<task>leaderboard_.+)")
INSIDE = re.compile(rb'"samples"\s*:\s*\{\s*"[^"]+"\s*:\s*\[\s*\{')
NO_RESULTS = (
    "no results file of this run in the folder; the model {!r} is read from the name of the file, "
    "the folder or other runs, and it is not checked whether higher is better"
)
NO_TASK = "not named samples_TASK_TIME, so the task has the name of the file"
WRONG_SCORES = (
    "log-likelihoods contradict scores: lm-eval 0.4.5 to 0.4.8 mixes up requests of tasks with "
    "acc_mutual_info, so run it again with a different version"
)
UNNAMED_FILTER = "written before lm-eval 0.4.7, without the name of the filter"


class _Folder:
    """The JSON files of a folder; `of_run` maps the time of a run to its results."""

    def __init__(self, folder: Path) -> None:
        self.json = sorted(folder.glob("*.json"))
        self.results = tuple(path for path in self.json if path.name.startswith("results_"))
        # With --output_path X.json the results are X_TIME.json beside the samples.
        stamped = ((ENDING.search(path.name), path) for path in self.json)
        self.of_run = {
            match["stamp"]: path
            for match, path in reversed(list(stamped))
            if match and not SAMPLES.fullmatch(path.name)
        }

    def beside(self, path: Path) -> tuple[Path, ...]:
        task, stamp = name_parts(path)
        if task is None and path.suffix == ".jsonl":
            return tuple(other for other in self.json if not other.name.startswith("samples_"))
        return (self.of_run[stamp],) if stamp in self.of_run else self.results


def name_parts(path: Path) -> tuple[str | None, str]:
    """Return task and time of a samples file; before 0.4.3, names have neither.

    Examples
    --------
    >>> name_parts(Path("samples_mmlu_anatomy_2024-08-01T10-00-00.123.jsonl"))
    ('mmlu_anatomy', '2024-08-01T10-00-00.123')
    """
    name = SAMPLES.fullmatch(path.name)
    return (name["task"], name["stamp"] or "") if name else (None, "")


def hub_parts(path: Path) -> tuple[str, str] | None:
    """Return model and task of the Parquet files of the Open LLM Leaderboard v2, else None.

    Examples
    --------
    >>> hub_parts(Path("org__model__leaderboard_musr/latest/0000.parquet"))
    ('org/model', 'leaderboard_musr')
    """
    if path.suffix.lower() != ".parquet":
        return None
    for folder in path.parts[-2:-4:-1]:
        if name := HUB.fullmatch(folder):
            return name["org"] + "/" + name["model"], name["task"]
    return None


def _is_samples(path: Path) -> bool:
    suffix = path.suffix.lower()
    named = SAMPLES.fullmatch(path.name) is not None
    if suffix == ".parquet":
        return named or hub_parts(path) is not None
    if suffix == ".jsonl" and not named:
        start = head(path).lstrip()
        if start[:1] == b"[":
            return b'"doc_id"' in start  # 0.4.2 and older
        # Renamed; other harnesses write neither of these, or not in the first place.
        return start.startswith(b'{"doc_id"') and b'"doc":' in start and b'"target":' in start
    if suffix == ".json":
        return named and b'"doc_id"' in head(path)
    return suffix == ".jsonl" and _may_be_rows(path)


def _may_be_rows(path: Path) -> bool:
    """Whether the first line is lm-eval's; a damaged line is left to the reader."""
    start = head(path)
    line = start.partition(b"\n")[0]
    try:
        row = loads(line.decode("utf-8"))
    except ValueError:
        return True
    return not isinstance(row, dict) or "doc_hash" in row or "doc_id" in row


@dataclass(frozen=True)
class LogOrigin:
    """The run of a samples file; `stamp` is "" if unknown.

    `results` belong to the same run. `filters` are the task's filters in the order of the rows, []
    if unknown.
    """

    model: str
    task: str
    stamp: str
    results: Results | None
    filters: list[str]


def identify(unit: LogUnit) -> LogOrigin:
    """Return model, task and time of a samples file.

    Raises
    ------
    ReaderError
        If a results file is damaged, or missing where only it names the task.
    """
    if on_hub := hub_parts(unit.path):
        return LogOrigin(*on_hub, "", None, [])
    task, stamp = name_parts(unit.path)
    if task is None and head(unit.path).lstrip()[:1] == b"[":
        return _before_0_4_3(unit)
    task = task or unit.path.stem
    same_run = [path for path in unit.beside if stamp and path.name.endswith(f"_{stamp}.json")]
    results = Results.read(same_run[0]) if same_run else None
    model = results.model if results else None
    if model is None:
        model = model_of_others(unit)
    return LogOrigin(str(model), task, stamp, results, results.filters(task) if results else [])


def _before_0_4_3(unit: LogUnit) -> LogOrigin:
    """Read MODEL_ARGS_TASK.jsonl, where only the results file separates model from task.

    A second run into the same folder overwrites the results, which then name only the tasks.
    """
    name = unit.path.name.removesuffix(".jsonl")
    unread: ReaderError | None = None
    for path in unit.beside:
        try:
            results = Results.read(path)
            tasks = results.part("configs")
            arguments = results.part("config").get("model_args")
        except ReaderError as error:
            unread = unread or error  # the results, torn, or a file of something else
            continue
        for task in sorted(tasks, key=len, reverse=True):
            if not name.endswith(f"_{task}"):
                continue
            written = name.removesuffix(f"_{task}")
            if isinstance(arguments, str) and written == re.sub("/|=", "__", arguments):
                return LogOrigin(results.model or written, task, "", results, results.filters(task))
            return LogOrigin(_model_in(written), task, "", None, results.filters(task))
    if unread:
        raise unread
    raise ReaderError(
        f"{unit.path}: written by lm-eval 0.4.2 or older, and no results file in the folder names "
        "its model and task",
        hint="add results.json of the run to the folder",
    )


def _model_in(written: str) -> str:
    """Return the model of arguments in a file's name, where / and = are both written __.

    Examples
    --------
    >>> _model_in("pretrained__org__a,dtype__float16")
    'org/a'
    """
    pairs = dict(part.split("__", 1) for part in written.split(",") if "__" in part)
    model = next((pairs[key] for key in NAMES if pairs.get(key)), written)
    return model.replace("__", "/")


class LmEval:
    """Read logs of lm-eval 0.4.0 to 0.4.13 (`--log_samples --output_path`).

    An item is a document, identified by lm-eval's hash of it (computed for versions before 0.4.3),
    so runs of a subset in any order join with whole runs. Also reads the details of the Open LLM
    Leaderboard v2, and what `simple_evaluate` returns, saved as results*.json.
    """

    name = "lm-eval"
    files = "samples_TASK_TIME.jsonl, written with --log_samples --output_path"
    remedy = "run lm-eval again with --log_samples --output_path FOLDER, and import that folder"

    def is_totals(self, path: Path) -> bool:
        """Whether a file has results alone."""
        return starts_as_results(path, b"results")

    def find(self, files: Sequence[Path]) -> list[LogUnit]:
        """Return the sample files, each with its run's results."""
        folders: dict[Path, _Folder] = {}
        units = []
        for path in files:
            if _has_samples_inside(path):
                units.append(LogUnit(path, (path,)))
            elif _is_samples(path):
                if path.parent not in folders:
                    folders[path.parent] = _Folder(path.parent)
                units.append(LogUnit(path, folders[path.parent].beside(path)))
        return units

    def read(self, unit: LogUnit, wants: Wants) -> list[LogRun]:
        """Return a run for each filter of a samples file, or of each task of saved results."""
        if unit.beside != (unit.path,):
            return _runs(unit.path, identify(unit), wants)
        results = Results.read(unit.path)
        model, named = model_of_others(unit), ENDING.search(unit.path.name)
        stamp = named["stamp"] if named else ""
        return [
            run
            for task, rows in results.part("samples").items()
            for run in _runs(
                unit.path,
                LogOrigin(results.model or model, task, stamp, results, results.filters(task)),
                wants,
                rows,
            )
        ]


def _runs(
    path: Path, origin: LogOrigin, wants: Wants, listed: list[Any] | None = None
) -> list[LogRun]:
    """Return a run for each filter of a task's rows."""
    results, task = origin.results, origin.task
    delimiter = results.delimiter(task) if results else " "
    rows = SampleRows(path, delimiter, wants.salvage, wants.key, listed)
    parts: dict[tuple[str | None, int], Rows] = {}  # by filter, or None and its number
    met: dict[tuple[str | None, int, str], int] = {}
    documents, in_context = DocumentCheck(), False
    for place, where, row, asked in rows:
        documents.add(row, asked, place)
        named = filter_of(row, where)
        if parts and (named is None) != (next(iter(parts))[0] is None):
            raise ReaderError(f"{where}: some rows name their filter and some do not")
        document = named, row["doc_id"], "" if named is None else row["doc_hash"]
        time = met.get(document, 0)
        if named is not None and time:
            raise ReaderError(
                f"{where}: document {row['doc_id']} has a second row for filter {named!r}",
                hint="the file was joined from two; keep one of them",
            )
        met[document] = time + 1
        if time >= max(len(origin.filters), 1):
            raise ReaderError(
                f"{where}: document {row['doc_id']} has a second row; before 0.4.7 lm-eval "
                "wrote one per filter, and no results file in the folder names the filters",
                hint="add the run's results file, or run it again with lm-eval 0.4.7 or newer",
            )
        if (part := parts.get((named, time))) is None:
            part = parts[named, time] = Rows(path, rows.place_word)
        metrics = metrics_of(row, where)
        in_context = in_context or asked.in_context
        part.append(
            content_of(row, wants.key, where),
            {name: row[name] for name in metrics},
            place,
            position=row["doc_id"],
            prompt=prompt_of(row),
            answer=answer_of(row),
            choices=asked.choices,
            options=None if part.options is None else asked.options_of(row, metrics, delimiter),
        )
    if not parts:
        raise empty(path)
    notes = (*rows.lines.notes, *documents.check(path, rows.place_word))
    if task == path.stem:
        notes = (*notes, NO_TASK)
    runs = []
    for (named, time), filled in parts.items():
        name = origin.filters[time] if named is None and origin.filters else named
        runs.append(_run(filled, name, origin, notes, in_context))
    return runs


def _has_samples_inside(path: Path) -> bool:
    """Whether results hold the rows too, as a saved return value of `simple_evaluate` does."""
    if not starts_as_results(path, b"results") or not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return INSIDE.search(content) is not None


def _run(
    rows: Rows, named: str | None, origin: LogOrigin, notes: tuple[str, ...], in_context: bool
) -> LogRun:
    results, task = origin.results, origin.task
    facts = {}
    if results is not None:
        facts = results.known(task, len(rows), named, in_context=in_context)
    total = facts.get("total")
    if not _has_true_ids(rows.positions, total):
        rows.positions = [MIXED_UP] * len(rows)
    if total == len(rows):  # a whole run has the prompts of its own documents
        notes = tuple(note for note in notes if note != OPEN)
    if results is None:
        notes = (*notes, NO_RESULTS.format(origin.model))
        if origin.stamp:  # runs without a known model are not re-runs of each other
            facts = {"variant": f"run={origin.stamp}"}
    else:
        facts |= {
            "suite": results.suite(task),
            "variant": results.variant(task),
            "settings": tuple((key, setting(text)) for key, text in facts["settings"]),
            "prompt_form": results.prompt_form,
            "harness_version": results.harness_version,
        }
    if named is None:
        notes = (*notes, UNNAMED_FILTER)
    if wrong := _wrong_scores(rows):
        notes = (*notes, f"{WRONG_SCORES} ({wrong} here)")
    return rows.run(origin.model, task, filter=named, stamp=origin.stamp, notes=notes, **facts)


def _wrong_scores(rows: Rows) -> int:
    if "acc_mutual_info" not in rows.values or not rows.options or "acc" not in rows.values:
        return 0
    expected = recomputed(OptionTable.columns(rows.options), "acc")
    return int((np.isfinite(expected) & (expected != rows.values["acc"])).sum())


def _has_true_ids(doc_ids: list[int], total: int | None) -> bool:
    """Whether doc_ids are reliable: lm-eval mixes them up for `--samples` out of order."""
    whole = total == len(doc_ids) == len(set(doc_ids))
    return whole or all(a < b for a, b in pairwise(doc_ids))
