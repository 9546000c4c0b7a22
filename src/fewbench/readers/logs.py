"""Logs of harnesses: found among files, read, joined, and every file accounted for."""

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from fewbench._content import is_lfs_pointer
from fewbench._names import counted, some
from fewbench.errors import ReaderError
from fewbench.readers.files import head, list_files
from fewbench.readers.gather import Damaged, Progress, find_units, gather
from fewbench.readers.harness import Harness, Reading, Run, Unit, Wants
from fewbench.readers.harnesses import HARNESSES
from fewbench.readers.join.merge import SameModel
from fewbench.readers.join.table import join
from fewbench.scores import Scale, Scores

RESULTS = {".json", ".jsonl", ".ndjson", ".parquet", ".npz", ".csv", ".tsv", ".eval", ".xlsx"}
LM_EVAL = re.compile(rb'^\s*\{\s*"results":\s*\{')
LIGHTEVAL = re.compile(rb'^\s*\{\s*"config_general":\s*\{')
HELM_TOTALS = {"stats.json", "run_spec.json"}
HINTS = {
    "lm-eval": "run lm-eval again with --log_samples --output_path FOLDER, and import that folder",
    "lighteval": "run lighteval again with --save-details, and import its folder of details",
    "helm": "copy per_instance_stats.json of each run too: helm-run writes it in the same folder",
    "opencompass": "import the folder that holds predictions and results, and not the summary only",
}
DAMAGED = ("stop", "skip", "rows")
SAME_MODEL = ("stop", "newest", "apart")
NOT_TAKEN = "not a result file that fewbench knows"


def is_result_pointer(path: Path) -> bool:
    """Whether a file that may hold results is a pointer of Git LFS."""
    return path.suffix.lower() in RESULTS and is_lfs_pointer(path)


def totals_only(files: Sequence[Path]) -> tuple[str, str] | None:
    """Return which of the files, that no reader takes, hold totals without items, and a hint."""
    found: dict[str, list[Path]] = {}
    for path in files:
        if (harness := _harness_of(path)) is not None:
            found.setdefault(harness, []).append(path)
    if not found:
        return None
    harness, paths = max(found.items(), key=lambda pair: len(pair[1]))
    holds = "holds totals" if len(paths) == 1 else "hold totals"
    return (
        f"{counted(len(paths), 'file')} of {harness} {holds} without the answers to single items: "
        f"{some(paths)}",
        HINTS[harness],
    )


def _harness_of(path: Path) -> str | None:
    name = path.name
    if path.suffix == ".json" and "results" in name:
        start = head(path)
        if LM_EVAL.match(start):
            return "lm-eval"
        return "lighteval" if LIGHTEVAL.match(start) else None
    if name in HELM_TOTALS and not path.with_name("per_instance_stats.json").exists():
        return "helm"
    if name.startswith("summary_") and path.parent.name == "summary":
        return "opencompass"
    return None


@dataclass(frozen=True)
class LogOptions:
    """What to take of harnesses' logs: one vocabulary for all of them.

    Parameters
    ----------
    metric, filter : str, optional
        Needed where a task has several: names in order of preference, separated by commas. For
        each task the first that it has is taken.
    key : str, optional
        The field of an item that identifies it, such as `id`, instead of a hash of its content.
    only_tasks, skip_tasks : str, optional
        Which tasks to read, or to leave out: names or patterns such as `mmlu_*`, with commas.
    damaged : {"stop", "skip", "rows"}
        Files that cannot be read: stop, leave them out, or also take whole rows of torn files.
    same_model : {"stop", "newest", "apart"}
        Where two folders have different answers of one model: stop, take the newest, or read
        them as two models.
    only_model : str, optional
        Read only the runs of this model.
    """

    metric: str | None = None
    filter: str | None = None
    key: str | None = None
    only_tasks: str | None = None
    skip_tasks: str | None = None
    damaged: Damaged = "stop"
    same_model: SameModel = "stop"
    only_model: str | None = None

    def __post_init__(self) -> None:
        for option, value, known in (
            ("damaged", self.damaged, DAMAGED),
            ("same-model", self.same_model, SAME_MODEL),
        ):
            if value not in known:
                raise ReaderError(
                    f"--{option} cannot be {value!r}", hint=f"one of {', '.join(known)}"
                )

    def wants(self, task: str) -> bool:
        """Whether a task is to be read."""
        named = self.only_tasks is None or _matches(task, self.only_tasks)
        return named and not (self.skip_tasks and _matches(task, self.skip_tasks))

    @property
    def given(self) -> list[str]:
        """The options that are not at their default, as the command line names them."""
        default = LogOptions()
        names = [one.name for one in fields(self)]
        given = [name for name in names if getattr(self, name) != getattr(default, name)]
        return [f"--{name.replace('_', '-')}" for name in given]


def are_logs(path: Path) -> bool:
    """Whether a file or folder holds logs of a harness."""
    return bool(find_units(list_files([path]), list(HARNESSES)).units)


def _of_model(runs: list[Run], model: str) -> list[Run]:
    found = [run for run in runs if run.model == model]
    if not found:
        there = some(dict.fromkeys(run.model for run in runs), most=8)
        raise ReaderError(f"no run is of model {model!r}", hint=f"the logs are of {there}")
    return found


def _matches(task: str, patterns: str) -> bool:
    return any(fnmatchcase(task, pattern.strip()) for pattern in patterns.split(","))


def find_logs(
    sources: list[Path], form: str | None
) -> tuple[list[tuple[Harness, Unit]], list[Path]]:
    """Find the logs in files and folders; none if another form is named or the file is a table."""
    if form is not None and form not in HARNESSES:
        folder = next((source for source in sources if source.is_dir()), None)
        if folder:
            raise ReaderError(f"{folder}: a folder, not a file of form {form!r}")
        return [], []
    files = list_files(sources)
    if pointers := [path for path in files if is_result_pointer(path)]:
        raise ReaderError(
            f"{counted(len(pointers), 'file')} of results are Git LFS pointers, not the files "
            f"themselves: {some(pointers)}",
            hint="run git lfs pull in their repository",
        )
    found = find_units(files, [form] if form else list(HARNESSES))
    others = set(found.others)
    named = [source for source in sources if source in others]
    if form and (named or not found.units):
        raise ReaderError(
            f"{(named or sources)[0]}: no result file of {form}",
            hint=f"{form} writes {HARNESSES[form].files}",
        )
    folders = [source for source in sources if source.is_dir()]
    if not found.units and (said := totals_only(found.others)):
        raise ReaderError(said[0], hint=said[1])
    if folders and not found.units:
        there = sorted(entry.name for entry in folders[0].iterdir())
        raise ReaderError(
            f"{folders[0]}: no result files of a known kind in this folder",
            hint=f"fewbench reads logs of {', '.join(HARNESSES)}; else name one file; there is "
            f"{some(there) or 'nothing'}",
        )
    if found.units and named:
        raise ReaderError(
            f"{some(named)}: not a log of a harness, and read together with logs",
            hint="only logs can be read several at a time",
        )
    return found.units, found.others


def read_logs(
    units: list[tuple[Harness, Unit]],
    others: list[Path],
    options: LogOptions,
    like: Scores | None,
    scale: Scale | None,
    work: Path | None,
    workers: int,
    progress: Progress | None,
) -> Reading:
    """Read logs and join them; see `fewbench.readers.read`."""
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    own = TemporaryDirectory() if work is None and workers > 1 else nullcontext(work)
    with own as folder:
        runs, left_out = gather(
            units,
            Wants(options.key, options.damaged == "rows"),
            work=None if folder is None else Path(folder),
            workers=workers,
            damaged=options.damaged,
            progress=progress,
        )
        if options.only_model is not None:
            runs = _of_model(runs, options.only_model)
        wanted = [run for run in runs if options.wants(run.task)]
        if not wanted:
            tasks = list(dict.fromkeys(run.task for run in runs))
            raise ReaderError(
                "no task is left to read", hint=f"the logs have {some(tasks, most=8)}"
            )
        reading = join(
            wanted,
            metric=options.metric,
            filter=options.filter,
            like=like,
            scale=scale,
            same_model=options.same_model,
            key=options.key,
            work=work,
            progress=progress,
        )
    notes = list(reading.notes)
    if said := totals_only(others):
        notes.insert(0, f"{said[0]}: their models are left out; {said[1]}")
    if left_out:
        notes.insert(0, f"{len(left_out)} of {len(units)} files were left out: {left_out[0][1]}")
    untouched = [{"file": str(path), "rows": 0, "taken": 0, "note": why} for path, why in left_out]
    untouched += [
        {"file": str(run.path), "model": run.model, "task": run.task, "rows": run.n_rows}
        | {"taken": 0, "note": "the task was not asked for"}
        for run in runs
        if not options.wants(run.task)
    ]
    untouched += [{"file": str(path), "rows": 0, "taken": 0, "note": NOT_TAKEN} for path in others]
    harness = {str(unit.path): harness.name for harness, unit in units}
    files = pd.concat([reading.files, pd.DataFrame(untouched)], ignore_index=True)
    files.insert(1, "harness", files["file"].map(harness))
    text = ["harness", "model", "task", "filter", "metric", "time"]
    files[text] = files[text].fillna("")
    return replace(reading, notes=tuple(notes), files=files)
