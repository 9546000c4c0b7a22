"""Read scores from any file or folder; find logs, join them and account for every file."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from fewbench._content import is_lfs_pointer
from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some
from fewbench._progress import OnStep
from fewbench._text import quoted
from fewbench.errors import FewbenchError, MissingFileError, ReaderError
from fewbench.executors import Executor
from fewbench.readers.files import list_files, table_suffix
from fewbench.readers.frames import Columns, table_columns
from fewbench.readers.gather import Damaged, find_units, gather
from fewbench.readers.harness import Harness, LogUnit, Reading, Wants, WritesTotals
from fewbench.readers.harnesses import HARNESSES
from fewbench.readers.join.merge import SameModel
from fewbench.readers.join.table import join
from fewbench.readers.table_files import (
    SUFFIXES,
    TableOptions,
    form_of,
    read_files,
    refuse_options,
)
from fewbench.scores import Scale, Scores
from fewbench.scores.cell_words import CellWords
from fewbench.scores.repeats import answers_needed, repeats_notes
from fewbench.scores.table import key_field_of

TABLES = ("scores", "npz", "table")
RESULTS = {".json", ".jsonl", ".ndjson", ".parquet", ".npz", ".csv", ".tsv", ".eval", ".xlsx"}
EVALUATION = "evaluation.json"
DAMAGED = ("stop", "skip", "rows")
SAME_MODEL = ("stop", "newest", "apart")
ERRORS = ("wrong", "not-run")


@dataclass(frozen=True)
class LogOptions:
    """What to read from logs, in the same terms for all harnesses.

    Parameters
    ----------
    metric, filter : str, optional
        Comma-separated names in order of preference. Each task uses the first one that it has. By
        default the first of each task in logs of lm-eval and Inspect; needed in other logs.
    key : str, optional
        Item field that identifies an item, such as `id`, instead of a hash of its content.
    only_tasks, skip_tasks : str, optional
        Tasks to read or to skip: comma-separated names or patterns such as `mmlu_*`.
    damaged : {"stop", "skip", "rows"}
        For files that cannot be read: stop, skip them, or also use whole rows of truncated files.
    same_model : {"stop", "newest", "apart"}
        If two folders have different answers of a model: stop, use the newest, or read two models.
    only_model : str, optional
        Read only the runs of this model.
    accept_differences : bool
        Read models whose scoring differs: answer keys, filters, metrics or their arguments.
    trials : str, optional
        What several answers to an item become: mean, first, or pass@K.
    errors : {"wrong", "not-run"}, optional
        What answers count as that broke without the model's fault; see `import_results`.
    """

    metric: str | None = None
    filter: str | None = None
    key: str | None = None
    only_tasks: str | None = None
    skip_tasks: str | None = None
    damaged: Damaged = "stop"
    same_model: SameModel = "stop"
    only_model: str | None = None
    accept_differences: bool = False
    trials: str | None = None
    errors: str | None = None

    def __post_init__(self) -> None:
        if self.trials is not None:
            answers_needed(self.trials)
        for option, value, allowed in (
            ("damaged", self.damaged, DAMAGED),
            ("same-model", self.same_model, SAME_MODEL),
            ("errors", self.errors, (None, *ERRORS)),
        ):
            if value not in allowed:
                raise ReaderError(
                    f"--{option} cannot be {value!r}",
                    hint=f"use one of {', '.join(filter(None, allowed))}",
                )

    def wants(self, task: str) -> bool:
        """Whether to read a task."""
        named = self.only_tasks is None or _matches(task, self.only_tasks)
        return named and not (self.skip_tasks and _matches(task, self.skip_tasks))

    @property
    def given(self) -> list[str]:
        """The options for logs alone that differ from their defaults, as command-line options."""
        default = LogOptions()
        names = [option.name for option in fields(self) if option.name != "trials"]
        changed = [name for name in names if getattr(self, name) != getattr(default, name)]
        return [f"--{name.replace('_', '-')}" for name in changed]


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class FoundFiles:
    """Files and folders with their formats, so that they are searched only once.

    Parameters
    ----------
    sources : tuple of Path
        Files and folders that the user names.
    form : str, optional
        Format that the user names.
    files : list of Path
        The files, also those below the folders.
    units : list of (Harness, LogUnit)
        Logs among the files. Empty for a table.
    others : list of Path
        Files that are part of no log.
    """

    sources: tuple[Path, ...]
    form: str | None
    files: list[Path]
    units: list[tuple[Harness, LogUnit]]
    others: list[Path]

    @property
    def is_logs(self) -> bool:
        """Whether the files are logs of a harness, by their content or the named form."""
        return self.form in HARNESSES or bool(self.units)

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the first file as a table, [] if it is none."""
        return table_columns(self.sources[0])


def look(path: Paths, form: str | None = None) -> FoundFiles:
    """Return what files and folders are.

    Raises
    ------
    MissingFileError
        If one does not exist.
    ReaderError
        If no file is named, or the form is unknown.
    """
    sources = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(name) for name in path]
    check_form(form)
    if not sources:
        raise ReaderError("no file was named", hint="name files or folders", kind="too-few")
    for source in sources:
        if not source.exists():
            raise MissingFileError(f"{source}: no such file or folder")
    files = list_files(sources)
    if form is not None and form not in HARNESSES:
        return FoundFiles(tuple(sources), form, files, [], [])
    return FoundFiles(tuple(sources), form, files, *find_units(files, form))


def check_form(form: str | None, kind: type[FewbenchError] = ReaderError) -> None:
    """Raise an error of this kind if a name is not one of `--from`."""
    if form not in (None, *TABLES) and form not in HARNESSES:
        hint = did_you_mean(str(form), (*TABLES, *HARNESSES))
        raise kind(f"unknown form {form!r}", hint=hint)


def import_results(
    path: Paths | FoundFiles,
    *,
    form: str | None = None,
    columns: Columns | None = None,
    transposed: bool = False,
    metric: str | None = None,
    filter: str | None = None,
    only_tasks: str | None = None,
    skip_tasks: str | None = None,
    like: Scores | None = None,
    key: str | None = None,
    damaged: Damaged = "stop",
    same_model: SameModel = "stop",
    only_model: str | None = None,
    accept_differences: bool = False,
    missing: Sequence[str] = (),
    right: Sequence[str] = (),
    wrong: Sequence[str] = (),
    rescale: Mapping[str, float] | None = None,
    trials: str | None = None,
    errors: Literal["wrong", "not-run"] | None = None,
    scale: Scale | None = None,
    work: Path | None = None,
    workers: int = 1,
    executor: Executor = None,
    progress: OnStep | None = None,
) -> Reading:
    """Import other models' per-item results.

    The harness is recognized by the content of the files. Folders are searched.

    Parameters
    ----------
    path : path, sequence of paths, or FoundFiles
        Harness logs (files or folders), tables (.csv, .tsv, .parquet, .jsonl, .ndjson, .json, also
        packed as .csv.gz and so on), .npz files, or scores saved by fewbench (.parquet). Several
        tables or saved scores are joined: other models, other items or both. A result of `look`
        already has its format.
    form : str, optional
        Format if it is not recognized: scores, npz, table, or the name of a harness.
    columns : Columns, optional
        Columns of a table; see `fewbench.readers.tables.read_table`.
    transposed : bool
        Wide table: rows are items.
    metric, filter : str, optional
        Logs: comma-separated names in order of preference. By default the first of each task in
        logs of lm-eval and Inspect, with a note; needed in other logs where a task has several.
    only_tasks : str, optional
        Logs: comma-separated tasks to read, as in 'mmlu_*,gsm8k'.
    skip_tasks : str, optional
        Logs: comma-separated tasks to leave out.
    key : str, optional
        Logs: field that identifies an item (default: its content).
    damaged : {"stop", "skip", "rows"}
        Logs: what to do with files that cannot be read. With rows, skip them, but keep the complete
        rows of truncated files.
    same_model : {"stop", "newest", "apart"}
        Logs: what to do if a model has different answers in two folders. With apart, import it as
        two models.
    only_model : str, optional
        Logs: read only the runs of this model.
    accept_differences : bool
        Logs: import models with different prompts, settings, answer keys or scoring. Estimates then
        carry a warning.
    missing : sequence of str
        Table: texts for items that were not run, as in 'n/a,-', besides empty cells. With 'wrong',
        empty cells and null count as the worst score.
    right : sequence of str
        Table: texts for the best score, such as PASS.
    wrong : sequence of str
        Table: texts for the worst score, such as FAIL.
    rescale : mapping of str to float, optional
        Table: by how much a model's scores are divided, such as 100 for one model in percent among
        fractions.
    trials : str, optional
        Long table or logs: what several answers of a model to an item become: mean, first, or
        pass@K, the chance that one of K answers is right. The table keeps how far the answers vary.
        Logs of one model with the same settings are then further answers, and no newer run
        replaces an older one.
    errors : {"wrong", "not-run"}, optional
        Logs of agents: what answers count as that broke without the model's fault, as far as the
        log tells it: failures of the infrastructure, runs without a verdict. By default as the
        benchmark counts them, with a note.
    like : Scores, optional
        The scores of the source models if you read a target's answers. The metric and
        filter of each task are used unless named, and how replies ended is read from logs.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default; saved scores have their own.
    work : Path, optional
        Folder for intermediate results, so that a stopped import continues and uses little memory.
        Delete it after saving the scores.
    workers : int
        Logs: number of processes.
    executor : Executor, optional
        Where to read logs in place of processes of this machine: `dask-local`, `ray-local`,
        `dask://HOST:PORT`, `ray://HOST:PORT` or others of `fewbench.executors`. Workers need the
        logs and `work` under the same paths.
    progress : callable, optional
        Called with (files done, all files).

    Raises
    ------
    ReaderError, ScoresError
        If the kind is unknown, the content is invalid, or an option does not apply.
    """
    found = path if isinstance(path, FoundFiles) else look(path, form)
    sources, form = [*found.sources], found.form
    if like is not None:
        key = key or key_field_of(like.items)
    options = LogOptions(
        metric,
        filter,
        key,
        only_tasks,
        skip_tasks,
        damaged,
        same_model,
        only_model,
        accept_differences,
        trials,
        errors,
    )
    words = CellWords(missing, right, wrong)
    tables = TableOptions(
        columns or Columns(), transposed, words, trials, accept_differences, dict(rescale or {})
    )
    _check_found(found, has_tables=tables.columns != Columns())
    if found.units:
        refuse_options(sources[0], found.units[0][0].name, tables.given)
        how = (workers, executor, progress)
        return _read_logs(found.units, found.others, options, like, scale, work, *how)
    files = [*sources]
    if any(source.is_dir() for source in sources):
        files = [path for path in found.files if table_suffix(path) in SUFFIXES]
    if not files:
        raise ReaderError(
            f"{some(sources, quotes=False)}: no file of answers in this folder",
            hint=f"fewbench reads {', '.join(SUFFIXES)}",
            kind="missing",
        )
    if len(files) > 1:  # these may differ
        options = replace(options, accept_differences=False)
    refuse_options(files[0], form or form_of(files[0]), options.given)
    return read_files(files, form, tables, scale, like)


def _matches(task: str, patterns: str) -> bool:
    return any(fnmatchcase(task, pattern.strip()) for pattern in patterns.split(","))


def _check_found(found: FoundFiles, *, has_tables: bool) -> None:
    """Raise ReaderError if files are not what the user says, or of no known kind.

    `has_tables` says whether columns are named, so that a folder may be one of tables.
    """
    sources, form, files, units = found.sources, found.form, found.files, found.units
    folders = [source for source in sources if source.is_dir()]
    if form is not None and form not in HARNESSES:
        if folders and not has_tables:
            raise ReaderError(f"{folders[0]}: a folder, not a file of form {form!r}")
        return
    if pointers := [path for path in files if _is_result_pointer(path)]:
        raise ReaderError(
            f"{counted(len(pointers), 'file')} of results are Git LFS pointers, not the files "
            f"themselves: {some(pointers)}",
            hint="run git lfs pull in their repository",
            kind="format",
        )
    others = set(found.others)
    named = [source for source in sources if source in others]
    if form and (named or not units):
        raise ReaderError(
            f"{(named or sources)[0]}: no result file of {form}",
            hint=f"{form} writes {HARNESSES[form].files}",
        )
    if not units and (totals := _totals_only(found.others)):
        raise ReaderError(totals[0], hint=totals[1])
    is_tabular = has_tables and any(table_suffix(path) in SUFFIXES for path in files)
    if folders and not units and not is_tabular:
        there = sorted(entry.name for entry in folders[0].iterdir())
        if EVALUATION in there:
            raise ReaderError(
                f"{folders[0]}: an evaluation; its answers are for some items only",
                hint="add it to a table of scores: fewbench add "
                f"{quoted(folders[0])} -o scores.parquet",
            )
        raise ReaderError(
            f"{folders[0]}: no result files of a known kind in this folder",
            hint=f"fewbench reads logs of {', '.join(HARNESSES)}; of tables, name the columns: "
            f"--item COLUMN --score COLUMN. The folder has {some(there)}"
            if there
            else "the folder is empty: name another",
        )
    if units and named:
        raise ReaderError(
            f"{some(named)}: not a log of a harness, but passed together with logs",
            hint="import tables and logs separately, and then the two .parquet files together",
        )


def _read_logs(
    units: list[tuple[Harness, LogUnit]],
    others: list[Path],
    options: LogOptions,
    like: Scores | None,
    scale: Scale | None,
    work: Path | None,
    workers: int,
    executor: Executor,
    progress: OnStep | None,
) -> Reading:
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    context: AbstractContextManager[str | Path | None] = nullcontext(work)
    if work is None and executor is not None:  # where workers find the logs
        context = TemporaryDirectory(prefix=".fewbench-", dir=units[0][1].path.absolute().parent)
    elif work is None and workers > 1:
        context = TemporaryDirectory()
    with context as folder:
        runs, left_out = gather(
            units,
            Wants(
                options.key,
                options.damaged == "rows",
                replies=like is not None,
                trials=options.trials is not None,
                errors=options.errors,
            ),
            work=None if folder is None else Path(folder),
            workers=workers,
            executor=executor,
            damaged=options.damaged,
            progress=progress,
        )
        if (model := options.only_model) is not None:
            there = some(dict.fromkeys(run.model for run in runs), most=8)
            runs = [run for run in runs if run.model == model]
            if not runs:
                raise ReaderError(f"no runs of model {model!r}", hint=f"the logs are of {there}")
        wanted = [run for run in runs if options.wants(run.task)]
        if not wanted:
            tasks = list(dict.fromkeys(run.task for run in runs))
            raise ReaderError("no task left to read", hint=f"the logs have {some(tasks, most=8)}")
        reading = join(
            wanted,
            metric=options.metric,
            filter=options.filter,
            like=like,
            scale=scale,
            same_model=options.same_model,
            key=options.key,
            trials=options.trials or "",
            accept_differences=options.accept_differences,
            work=work,
            progress=progress,
        )
    notes = [*repeats_notes(reading.scores.repeats, options.trials), *reading.notes]
    if totals := _totals_only(others):
        notes.insert(0, f"{totals[0]}: these models are left out; {totals[1]}")
    if left_out:
        notes.insert(0, f"{len(left_out)} of {len(units)} files were left out: {left_out[0][1]}")
    unknown = "not a result file that fewbench can read"
    left_out += [(path, unknown) for path in others]
    untouched = [{"file": str(path), "rows": 0, "taken": 0, "note": why} for path, why in left_out]
    untouched += [
        {"file": str(run.path), "model": run.model, "task": run.task, "rows": run.n_rows}
        | {"taken": 0, "note": "the task is excluded"}
        for run in runs
        if not options.wants(run.task)
    ]
    harness = {str(unit.path): harness.name for harness, unit in units}
    files = pd.concat([reading.files, pd.DataFrame(untouched)], ignore_index=True)
    files.insert(1, "harness", files["file"].map(harness))
    text = ["harness", "model", "task", "filter", "metric", "time"]
    files[text] = files[text].fillna("")
    return replace(reading, notes=tuple(notes), files=files)


def _is_result_pointer(path: Path) -> bool:
    """Whether a result file is a Git LFS pointer."""
    return path.suffix.lower() in RESULTS and is_lfs_pointer(path)


def _totals_only(files: Sequence[Path]) -> tuple[str, str] | None:
    """Return which of the files have totals but no items, and a hint."""
    writers = [harness for harness in HARNESSES.values() if isinstance(harness, WritesTotals)]
    totals = [(list(filter(harness.is_totals, files)), harness) for harness in writers]
    paths, harness = max(totals, key=lambda pair: len(pair[0]))
    if not paths:
        return None
    holds = "holds totals" if len(paths) == 1 else "hold totals"
    return (
        f"{counted(len(paths), 'file')} of {harness.name} {holds} without the answers to single "
        f"items: {some(paths)}",
        harness.remedy,
    )
