"""fewbench import: read results of other models into a scores file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from fewbench._files import only_process, written_whole
from fewbench._names import as_cell, counted
from fewbench.cli.options import (
    AcceptDifferences,
    Cluster,
    Filter,
    ItemColumn,
    Key,
    Metric,
    ModelColumn,
    ScoreColumn,
    parse_range,
)
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import at_work, progress_bar
from fewbench.cli.text import echo, say
from fewbench.errors import ReaderError
from fewbench.readers import DAMAGED, FORMS, SAME_MODEL, Columns, Reading, join_attributes, read
from fewbench.readers.gather import SUFFIX
from fewbench.readers.join.table import PROBABILITIES
from fewbench.scores import Scores, save_scores


def import_(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files or folders to read.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Scores file to write (.parquet).")
    ],
    form: Annotated[
        str | None,
        typer.Option("--from", help=f"Format, if it is not recognized: {', '.join(FORMS)}."),
    ] = None,
    model: ModelColumn = None,
    item: ItemColumn = None,
    score: ScoreColumn = None,
    task: Annotated[str | None, typer.Option(help="Long table: column with the task.")] = None,
    date: Annotated[
        str | None, typer.Option(help="Long table: column with the model's date.")
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="Long table: column with the model's family.")
    ] = None,
    keep_item: Annotated[
        list[str] | None,
        typer.Option(help="Long table: column to keep with the items, such as doc_id. Repeatable."),
    ] = None,
    keep_model: Annotated[
        list[str] | None,
        typer.Option(help="Long table: column to keep with the models, such as role. Repeatable."),
    ] = None,
    transposed: Annotated[
        bool, typer.Option("--transposed", help="Wide table: rows are items.")
    ] = False,
    models: Annotated[
        Path | None,
        typer.Option(
            help="Table with one row per model: column model (the id), and any of date, family, "
            "role and others."
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            help="Table with one row per item: column item (the id), and any of task, doc_id, cost "
            "and others."
        ),
    ] = None,
    metric: Metric = None,
    filter_: Filter = None,
    only_tasks: Annotated[
        str | None, typer.Option(help="Logs: comma-separated tasks to read, as in 'mmlu_*,gsm8k'.")
    ] = None,
    skip_tasks: Annotated[
        str | None, typer.Option(help="Logs: comma-separated tasks to leave out.")
    ] = None,
    key: Key = None,
    damaged: Annotated[
        str,
        typer.Option(
            help=f"Logs: what to do with files that cannot be read: {', '.join(DAMAGED)} (rows: "
            "skip, but keep the complete rows of truncated files)."
        ),
    ] = "stop",
    same_model: Annotated[
        str,
        typer.Option(
            help="Logs: what to do if a model has different answers in two folders: "
            f"{', '.join(SAME_MODEL)} (apart: import it as two models)."
        ),
    ] = "stop",
    accept_differences: AcceptDifferences = False,
    workers: Annotated[
        int | None, typer.Option(help="Logs: number of processes (default: all processors).")
    ] = None,
    cluster: Cluster = None,
    score_range: Annotated[
        str | None, typer.Option("--range", help="Lowest and highest possible score, as in 0,100.")
    ] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="Scores are errors or losses.")
    ] = False,
    force: Force = False,
) -> None:
    """Import other models' per-item results into one scores file.

    The harness is recognized by the content of the files. Folders are searched. NAME.files.csv
    lists every file and how it was used. An interrupted import continues when you run it again.

    \b
    Logs:           fewbench import logs/ --metric acc -o scores.parquet
    A long table:   fewbench import r.csv --model llm --item id --score correct -o scores.parquet
    A wide table:   fewbench import r.csv --model llm -o scores.parquet
    Arrays:         fewbench import r.npz -o scores.parquet
    Percentages:    fewbench import r.csv … --range 0,100 -o scores.parquet
    Attributes:     fewbench import logs/ --models models.csv --items items.csv -o scores.parquet
    """
    if output.suffix != ".parquet":  # before the work
        raise ReaderError(
            f"{output}: scores are saved as Parquet", hint=f"use {output.with_suffix('.parquet')}"
        )
    report = output.with_suffix(".files.csv")
    check_outputs(output, report, inputs=[*paths, models, items], force=force)
    columns = Columns(
        model,
        item,
        score,
        task,
        date,
        family,
        keep_item=tuple(keep_item or ()),
        keep_model=tuple(keep_model or ()),
    )
    with _work_folder(output) as work:
        with progress_bar("reading") as progress:
            reading = read(
                paths if len(paths) > 1 else paths[0],
                form=form,
                columns=columns,
                transposed=transposed,
                metric=metric,
                filter=filter_,
                only_tasks=only_tasks,
                skip_tasks=skip_tasks,
                key=key,
                damaged=damaged,  # type: ignore[arg-type]
                same_model=same_model,  # type: ignore[arg-type]
                accept_differences=accept_differences,
                scale=parse_range(score_range, lower_is_better),
                work=work,
                workers=(os.cpu_count() or 1) if workers is None else workers,
                executor=cluster,
                progress=progress,
            )
        for note in reading.notes:
            say(f"note: {note}")
        scores = join_attributes(reading.scores, models=models, items=items)
        if "doc_id" in reading.scores.items and not scores.items["task"].equals(
            reading.scores.items["task"]
        ):
            say(f"note: tasks are taken from {items}, also for ask --for lm-eval")
        with at_work("writing"):
            written = save_scores(scores, output)
        if len(reading.files):
            _report_files(reading, report)
    echo(f"{written}: {_described(scores)}")


@contextmanager
def _work_folder(output: Path) -> Iterator[Path]:
    """Give this process a folder for intermediate results; remove it after success."""
    work = output.with_suffix(".partial")
    work.mkdir(parents=True, exist_ok=True)
    lock = work / "lock"
    try:
        with only_process(lock, f"{work}: another import into {output} is running"):
            yield work
            for path in [*work.glob(f"*{SUFFIX}"), work / PROBABILITIES]:
                path.unlink(missing_ok=True)
    finally:
        if not any(path != lock for path in work.iterdir()):
            lock.unlink(missing_ok=True)
            with suppress(OSError):
                work.rmdir()
        elif any(work.glob(f"*{SUFFIX}")):
            say(f"{work}: intermediate results; the next import into {output} continues from them")


def _described(scores: Scores) -> str:
    missing = f", {float(scores.missing_shares.mean()):.1%} of the cells missing"
    return (
        f"{counted(scores.n_models, 'model')} × {counted(scores.n_items, 'item')}, "
        f"{counted(len(scores.tasks), 'task')}"
        f"{missing if scores.has_missing else ''}, "
        f"{'with' if scores.probabilities is not None else 'without'} option probabilities, "
        f"fingerprint {scores.fingerprint}"
    )


def _report_files(reading: Reading, path: Path) -> None:
    with written_whole(path) as temporary:
        reading.files.map(as_cell).to_csv(temporary, index=False)
    by_file = reading.files.groupby("file")["taken"].sum()
    used = int((by_file > 0).sum())
    rest = f" and the reasons for {len(by_file) - used} unused files" if used < len(by_file) else ""
    say(f"{path}: results read from {counted(used, 'file')}{rest}")
