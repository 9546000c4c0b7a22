"""fewbench plan: which method, how many items, what to expect."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fewbench.cli.compare import default_cache
from fewbench.cli.options import AverageOption, Cluster, Json, ScoresPath, Seed, load, split_names
from fewbench.cli.outputs import FORMATS, Force, check_outputs, show
from fewbench.cli.progress import progress_bar
from fewbench.cli.text import echo
from fewbench.study import Plan
from fewbench.study import plan as make_plan
from fewbench.study.forecast import TARGETS


def plan(
    scores_path: ScoresPath,
    error: Annotated[
        float | None,
        typer.Option(help="Wanted mean absolute error, on the scale of the scores."),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(help="Wanted half width of the interval, on the scale of the scores."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", "-n", help="Number of items: what to expect of it.")
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(help="Tell two models apart that differ by this, on the scale of the scores."),
    ] = None,
    power: Annotated[
        float,
        typer.Option(help="With --difference: share of such pairs that are to be told apart."),
    ] = 0.8,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "-m",
            help="Comma-separated method names, the preferred first (default: fewbench's own and "
            "those recommended for the table).",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help=f"Plan only for target models of this kind: {', '.join(TARGETS)} (default: all)."
        ),
    ] = None,
    cost_column: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Column of the items with the cost of each."),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.9,
    repeats: Annotated[int, typer.Option(help="Number of splits to average over, 3 or more.")] = 8,
    seed: Seed = 0,
    average: AverageOption = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of processes (default: all processors).")
    ] = None,
    cluster: Cluster = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, .html or .json.")
    ] = None,
    as_json: Json = False,
    use_cache: Annotated[
        bool, typer.Option("--cached/--no-cache", help="Reuse finished results of earlier runs.")
    ] = True,
    force: Force = False,
) -> None:
    """Plan how many items to run and with which method.

    Backtests methods on the models of the table: each is estimated from the others. A first answer
    comes after seconds; then models held out anew judge the methods that it chose.

    \b
    fewbench plan scores.parquet --error 0.02
    fewbench plan scores.parquet --interval 0.03 --target stronger
    fewbench plan scores.parquet --budget 100 -o plan.html
    fewbench plan scores.parquet --difference 0.01 --cost-column tokens

    \b
    Kinds of target models:
    like      like the source models (a random part of them is held out)
    family    of a new family (whole families are held out)
    stronger  stronger than all source models (the strongest are held out)
    """
    check_outputs(output, inputs=[scores_path], force=force, formats=FORMATS)
    scores = load(scores_path, average)
    with progress_bar("backtesting") as progress:
        made = make_plan(
            scores,
            error=error,
            half_width=interval,
            budget=budget,
            difference=difference,
            power=power,
            methods=None if methods is None else split_names(",".join(methods)),
            costs=cost_column,
            target=target,  # type: ignore[arg-type]
            level=level,
            repeats=repeats,
            seed=seed,
            jobs=(os.cpu_count() or 1) if jobs is None else jobs,
            executor=cluster,
            cache=default_cache(scores) if use_cache else None,
            progress=progress,
            on_first=None if as_json else lambda first: echo(_early(first)),
        )
    show(made.page(str(scores_path), cost_column or "items"), made, output, as_json)


def _early(first: Plan) -> str:
    return f"First answer, from a few held-out models: {first.answer}\nJudging it on others …\n"
