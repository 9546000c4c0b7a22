"""fewbench import, add: put results of other models, or finished runs, into a scores file."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from fewbench._files import only_process, written_whole
from fewbench._names import as_cell, counted, some
from fewbench._progress import at_work
from fewbench._text import echo, say, say_note
from fewbench.cli.commands import Call, command
from fewbench.cli.options import parse_range
from fewbench.cli.outputs import check_outputs
from fewbench.errors import EstimateWarning, FewbenchError, Mistakes, ReaderError
from fewbench.evaluation import add as add_runs
from fewbench.evaluation.journal import HEADER, Journal, folder_and_target
from fewbench.readers import Columns, Reading, import_results, join_attributes
from fewbench.readers.attributes import in_clusters, read_attributes
from fewbench.readers.frames import table_columns
from fewbench.readers.gather import SUFFIX
from fewbench.readers.join.table import PROBABILITIES
from fewbench.runners.uniting import unite_runs
from fewbench.scores import Scores, open_saved, save_scores
from fewbench.scores.benchmark import retired_note
from fewbench.scores.families import models_in_words, runs_note
from fewbench.scores.table import NO_TASK, RUN

LONG = 10.0
"""Seconds of reading after which a failed import keeps what was read."""


def _import(
    call: Call,
    *,
    output: Path,
    model: str | None = None,
    item: str | None = None,
    score: str | None = None,
    model_name: str | None = None,
    model_from: Literal["file", "folder"] | None = None,
    target: str | None = None,
    match: Literal["exact", "loose"] = "exact",
    task: str | None = None,
    date: str | None = None,
    family: str | None = None,
    keep_item: list[str] | None = None,
    keep_model: list[str] | None = None,
    by: str | None = None,
    models: Path | None = None,
    items: Path | None = None,
    range: str | None = None,
    lower_is_better: bool = False,
) -> None:
    """Read results and save them as scores.

    Parameters
    ----------
    output
        Scores file to write (.parquet). NAME.files.csv lists every file and how it was used. An
        interrupted import continues when you run it again.
    model
        Table: column with the model, or several comma-separated ones, such as model,setting
        (default: each file is one model, called as the file is).
    item
        Table: column with the item id, or several comma-separated ones.
    score
        Long table: column with the score. In JSON, OBJECT.NAME is a value within an object. If each
        model has a column of its own, write * for its name, as in '*.is_correct'.
    model_name
        Long table: name of the one model of all rows.
    model_from
        Long table: name models by their files or folders, also if there is a column of models.
    target
        Long table: column with the right answer. An answer in --score is right if it equals it.
    match
        How answers equal those of --target: exact, or loose (case, punctuation and white space do
        not count).
    task
        Long table: column with the task.
    date
        Long table: column with the model's date.
    family
        Long table: column with the model's family.
    keep_item
        Long table: column to keep with the items, such as doc_id. Repeatable.
    keep_model
        Long table: column to keep with the models, such as role. Repeatable.
    by
        Column of the items that says which of them belong together, such as the passage of several
        questions. Verdicts on models then count no item by itself. The column may be in --items.
    models
        Table with one row per model: column model (the id), and any of date, family, role and
        others.
    items
        Table with one row per item: column item (the id), and any of task, doc_id, cost, cluster
        (as --by) and others.
    range
        Lowest and highest possible score, as in 0,100.
    lower_is_better
        Scores are errors or losses.
    """
    if output.suffix != ".parquet":  # before the work
        raise ReaderError(
            f"{output}: scores are saved as Parquet", hint=f"use {output.with_suffix('.parquet')}"
        )
    report = output.with_suffix(".files.csv")
    check_outputs(report, inputs=call.paths(), force=call.given["force"])
    kept_items = [*(keep_item or ())]
    if by is not None and score is not None and (items is None or by not in table_columns(items)):
        kept_items += [by] if by not in (*kept_items, task) else []
    kept = tuple(kept_items), tuple(keep_model or ())
    columns = Columns(
        model, item, score, task, date, family, model_name, *kept,
        model_from=model_from, target=target, match=match,
    )  # fmt: skip
    mistakes, scale = Mistakes(), None
    with mistakes.noted():
        scale = parse_range(range, lower_is_better)
    with _work_folder(output) as work:
        with mistakes.noted():
            reading: Reading = call(columns=columns, scale=scale, work=work)
        if mistakes.errors:
            for kind, path in (("model", models), ("item", items)):
                with mistakes.noted():
                    _ = path and read_attributes(path, kind)
        mistakes.refuse()
        for note in reading.notes:
            say_note(note)
        scores = join_attributes(reading.scores, models=models, items=items)
        for note in retired_note(reading.scores.n_items, scores.n_items):
            say_note(note)
        scores = scores if by is None else in_clusters(scores, "task" if by == task else by)
        if "doc_id" in reading.scores.items and not scores.items["task"].equals(
            reading.scores.items["task"]
        ):
            say_note(f"tasks are taken from {items}, also for ask --for lm-eval")
        for note in runs_note(scores):
            say_note(f"{note} (--models FILE with a column family)")
        with at_work("writing"):
            written = save_scores(scores, output)
        if len(reading.files):
            _report_files(reading, report)
    if (scores.items["task"] == NO_TASK).all():
        way = "--task COLUMN, or " if score is not None else ""
        say_note(
            "all items count as one task. To name tasks, pass "
            f"{way}--items FILE with the columns item and task"
        )
    echo(f"{written}: {described(scores)}")


@contextmanager
def _work_folder(output: Path) -> Iterator[Path]:
    """Give this process a folder for intermediate results; they stay if a long reading failed."""
    work = output.with_suffix(".partial")
    lock, started, is_done = work / "lock", time.monotonic(), False
    try:
        with only_process(lock, f"{work}: another import into {output} is running"):
            try:
                yield work
                is_done = True
            finally:
                if is_done or time.monotonic() - started < LONG:
                    for path in [*work.glob(f"*{SUFFIX}"), work / PROBABILITIES]:
                        path.unlink(missing_ok=True)
    finally:
        if work.exists() and not any(path != lock for path in work.iterdir()):
            lock.unlink(missing_ok=True)
            with suppress(OSError):
                work.rmdir()
        elif any(work.glob(f"*{SUFFIX}")):
            say(f"{work}: intermediate results; the next import into {output} continues from them")


def described(scores: Scores) -> str:
    """Return the size of a table in a line."""
    missing = f", {float(scores.missing_shares.mean()):.1%} of the answers missing"
    return (
        f"{models_in_words(scores)} × {counted(scores.n_items, 'item')}, "
        f"{counted(len(scores.tasks), 'task')}"
        f"{missing if scores.has_missing else ''}"
        f"{', with option probabilities' if scores.probabilities is not None else ''}"
    )


def _report_files(reading: Reading, path: Path) -> None:
    with written_whole(path) as temporary:
        reading.files.map(as_cell).to_csv(temporary, index=False)
    by_file = reading.files.groupby("file")["taken"].sum()
    used = int((by_file > 0).sum())
    rest = f" and the reasons for {len(by_file) - used} unused files" if used < len(by_file) else ""
    say(f"{path}: results read from {counted(used, 'file')}{rest}")


import_ = command(
    import_results,
    work="reading",
    report=False,
    writes=["output"],
    hidden=["columns", "like", "only_model", "scale", "work"],
    read={"path": (list[Path], lambda _, typed: typed if len(typed) > 1 else typed[0], "")},
    around=_import,
    examples="""
Logs:           fewbench import logs/ --metric acc -o scores.parquet
A long table:   fewbench import r.csv --model llm --item id --score correct -o scores.parquet
A wide table:   fewbench import r.csv --model llm -o scores.parquet
Arrays:         fewbench import r.npz -o scores.parquet
Percentages:    fewbench import r.csv … --range 0,100 -o scores.parquet
One model:      fewbench import r.csv … --rescale model-a=100 -o scores.parquet
One file each:  fewbench import runs/*.jsonl --item id --score correct -o scores.parquet
Two imports:    fewbench import a.parquet b.parquet -o scores.parquet
Several runs:   fewbench import r.csv … --trials mean -o scores.parquet
By passage:     fewbench import r.csv … --by passage -o scores.parquet
Attributes:     fewbench import logs/ --models models.csv --items items.csv -o scores.parquet
""",
)


def _add(call: Call, *, output: Path) -> None:
    """Add runs to a file.

    Parameters
    ----------
    output
        Scores file to write (.parquet). If it exists and --scores is not given, the models are
        added to it. Or the folder of a run of the same benchmark: the targets then join that run.
    """
    if (output / HEADER).is_file():
        call.refuse(
            [name for name in ("scores", "names", "family") if call.given[name]],
            "where targets join a run",
            "leave it out, or name a scores file (.parquet) to make source models of the runs",
        )
        joined = unite_runs(output, call.given["runs"])
        answers = some((f"{name} ({n:,} answers)" for name, n in joined.items()), quotes=False)
        echo(f"{output}: {answers or 'no new target'} joined")
        return
    if output.suffix != ".parquet":  # before the work
        raise FewbenchError(
            f"{output}: scores are saved as Parquet", hint=f"use {output.with_suffix('.parquet')}"
        )
    grows = output.exists() and call.given["scores"] is None
    check_outputs(output, inputs=call.paths(), force=grows or call.given["force"])
    lock = output.with_name(f".{output.name}.lock")
    with (
        only_process(lock, f"{output}: another fewbench add is writing it"),
        warnings.catch_warnings(record=True) as accepted,
    ):
        warnings.simplefilter("always", EstimateWarning)
        table: Scores = call(scores=open_saved(output)) if grows else call()
        save_scores(table, output)
    for warning in accepted:
        say_note(f"{output}: {warning.message}")
    places = [folder_and_target(str(run)) or (run, None) for run in call.given["runs"]]
    ids = [f"{Journal(run).header().id}:{target or ''}" for run, target in places]
    n_runs = sum(source.startswith(tuple(ids)) for source in table.models[RUN])
    for note in runs_note(table):
        say_note(f"{note} (--family)")
    runs = f"{counted(n_runs, 'run')} from {some(call.given['runs'])}"
    echo(f"{output}: has {runs}; {described(table)}")


def _named(_: Call, typed: list[str]) -> dict[str, str]:
    pairs = [pair.rpartition("=") for pair in typed]
    if wrong := [pair for pair, (where, _, name) in zip(typed, pairs, strict=True)
                 if not where or not name]:  # fmt: skip
        raise FewbenchError(f"{wrong[0]}: no folder and name", hint="write DIR=NAME")
    return {where: name for where, _, name in pairs}


add = command(
    add_runs,
    work="adding",
    report=False,
    around=_add,
    read={
        "runs": (list[Path], lambda _, typed: typed, ""),
        "names": (list[str], _named, "Written as DIR=NAME or DIR:TARGET=NAME; can be repeated."),
    },
    examples="""
The first runs:  fewbench add run-a run-b -o scores.parquet
One more:        fewbench add run-c -o scores.parquet
Join two runs:   fewbench add other-machine/run -o run
With a name:     fewbench add run-d --name run-d=my-model -o scores.parquet
One target:      fewbench add run:step-3000 -o scores.parquet
One family:      fewbench add warmup-*/ --family warmup -o scores.parquet
Then:            fewbench run command scores.parquet -n 50 -o run-e -- python answer.py
""",
)
