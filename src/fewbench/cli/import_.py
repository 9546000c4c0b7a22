"""fewbench import: results of other models → scores."""

from pathlib import Path
from typing import Annotated

import typer

from fewbench.cli.options import (
    Filter,
    ItemColumn,
    Metric,
    ModelColumn,
    ScoreColumn,
    parse_range,
    say,
)
from fewbench.readers import FORMS, Columns, join_attributes, read
from fewbench.scores import save_scores


def import_(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files or folders.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write, as .parquet.")],
    form: Annotated[
        str | None, typer.Option("--from", help=f"Instead of recognising it: {', '.join(FORMS)}.")
    ] = None,
    model: ModelColumn = None,
    item: ItemColumn = None,
    score: ScoreColumn = None,
    task: Annotated[str | None, typer.Option(help="Long table: the items' task.")] = None,
    date: Annotated[str | None, typer.Option(help="Long table: the models' date.")] = None,
    family: Annotated[str | None, typer.Option(help="Long table: the models' family.")] = None,
    keep_item: Annotated[
        list[str] | None,
        typer.Option(help="Long table: a column to keep with the items, such as doc_id."),
    ] = None,
    keep_model: Annotated[
        list[str] | None,
        typer.Option(help="Long table: a column to keep with the models, such as role."),
    ] = None,
    transposed: Annotated[
        bool, typer.Option("--transposed", help="Wide table: rows are items.")
    ] = False,
    models: Annotated[
        Path | None,
        typer.Option(
            help="Table of the models, one row each: column model (the id), and any of date, "
            "family, role and others."
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            help="Table of the items, one row each: column item (the id), and any of task, doc_id "
            "and others."
        ),
    ] = None,
    metric: Metric = None,
    filter_: Filter = None,
    score_range: Annotated[
        str | None, typer.Option("--range", help="Smallest and largest score, as in 0,100.")
    ] = None,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", help="Scores are errors or losses.")
    ] = False,
) -> None:
    """Read other models' per-item results and write them as one scores file.

    \b
    A long table:   fewbench import r.csv --model llm --item id --score correct -o scores.parquet
    A wide table:   fewbench import r.csv --model llm -o scores.parquet
    lm-eval logs:   fewbench import logs/ --metric acc -o scores.parquet
    Arrays:         fewbench import r.npz -o scores.parquet
    Percentages:    fewbench import r.csv … --range 0,100 -o scores.parquet
    Attributes:     fewbench import logs/ --models models.csv --items items.csv -o scores.parquet
    """
    reading = read(
        paths if len(paths) > 1 else paths[0],
        form=form,
        columns=Columns(
            model,
            item,
            score,
            task,
            date,
            family,
            keep_item=tuple(keep_item or ()),
            keep_model=tuple(keep_model or ()),
        ),
        transposed=transposed,
        metric=metric,
        filter=filter_,
        scale=parse_range(score_range, lower_is_better),
    )
    for note in reading.notes:
        say(f"note: {note}")
    scores = join_attributes(reading.scores, models=models, items=items)
    if "doc_id" in reading.scores.items and not scores.items["task"].equals(
        reading.scores.items["task"]
    ):
        say(f"note: the tasks are those of {items}, also where ask --for lm-eval names them")
    written = save_scores(scores, output)
    missing = f", {float((scores.values != scores.values).mean()):.1%} of the cells missing"
    print(
        f"{written}: {scores.n_models} models × {scores.n_items} items, {len(scores.tasks)} tasks"
        f"{missing if scores.has_missing else ''}, "
        f"{'with' if scores.probabilities is not None else 'without'} option probabilities, "
        f"fingerprint {scores.fingerprint}"
    )
