"""fewbench compare: compare methods on models with known full scores."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from fewbench.cli.commands import default_cache
from fewbench.cli.options import AverageOption, Cluster, Json, ScoresPath, Seed, load, split_names
from fewbench.cli.outputs import FORMATS, WRITES, Force, Report, check_outputs, show, write
from fewbench.cli.progress import progress_bar
from fewbench.errors import StudyError
from fewbench.study import KINDS, SplitSettings
from fewbench.study import compare as run_study
from fewbench.study.cache import is_folder

FAILED = 1  # exit code: some results failed
GAP = 0.2  # DISCO's: targets from the best 30 %, sources from the worst 50 %


def compare(
    scores_path: ScoresPath,
    methods: Annotated[
        list[str],
        typer.Option("--methods", "-m", help="Comma-separated method names; can be repeated."),
    ],
    budgets: Annotated[
        list[str],
        typer.Option("--budgets", "-n", help="Comma-separated numbers of items; can be repeated."),
    ],
    split: Annotated[
        list[str] | None,
        typer.Option("--split", help=f"Comma-separated: {', '.join(KINDS)} (default: random)."),
    ] = None,
    targets: Annotated[float, typer.Option(help="Share of the models used as targets.")] = 0.25,
    gap: Annotated[
        bool,
        typer.Option(
            "--gap",
            help="Split performance: leave out the 20 % of models between sources and targets.",
        ),
    ] = False,
    group_by: Annotated[
        str, typer.Option(help="Split group: column of the models that names the group.")
    ] = "family",
    resample: Annotated[
        bool, typer.Option("--resample", help="Draw sources and targets with replacement.")
    ] = False,
    repeats: Annotated[
        int, typer.Option(help="Number of random splits and seeds to average over.")
    ] = 10,
    seed: Seed = 0,
    level: Annotated[float, typer.Option(help="Stated coverage of intervals.")] = 0.9,
    intervals: Annotated[
        bool, typer.Option(help="Measure the coverage of intervals too (takes most of the time).")
    ] = True,
    average: AverageOption = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes (default: all processors).")
    ] = None,
    cluster: Cluster = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help=WRITES)] = None,
    as_json: Json = False,
    report: Report = None,
    cache: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Cache for finished results: a file or a folder (FOLDER/) (default: a file in "
            "your cache directory).",
        ),
    ] = None,
    use_cache: Annotated[
        bool, typer.Option("--cached/--no-cache", help="Reuse finished results of earlier runs.")
    ] = True,
    force: Force = False,
) -> None:
    """Compare methods on models with known full scores.

    random and random-ridge (ridge regression on random items) are always included. If a method
    fails on a split, the table shows why, all other results stand, and the exit code is 1.

    \b
    fewbench compare scores.parquet --methods greedy-ridge --budgets 20,50,100
    fewbench compare scores.parquet -m anchor-points,disco-pds-rf -n 100 --split random,group
    fewbench compare scores.parquet -m greedy-ridge -n 50 --split performance --targets 0.3 --gap
    fewbench compare scores.parquet -m greedy-ridge -n 50 -o out.json --report out.html
    fewbench compare scores.parquet -m fewbench -n 100 --cluster dask://10.0.0.1:8786

    \b
    Splits:
    random         targets are drawn at random
    every          every k-th model is a target
    given          the column role of the models names sources and targets
    chronological  the newest models are targets
    performance    the strongest models are targets; with --gap, sources are much weaker
    group          whole families (or another column, --group-by) are targets
    """
    check_outputs(output, report, inputs=[scores_path], force=force, formats=FORMATS)
    if cache is not None and not is_folder(cache):
        check_outputs(Path(cache), inputs=[scores_path], force=True)  # it grows
    scores = load(scores_path, average)
    kinds = split_names(",".join(split or ["random"]))
    settings = [
        SplitSettings(
            kind,  # type: ignore[arg-type]
            targets,
            GAP if gap and (kind == "performance" or "performance" not in kinds) else 0.0,
            group_by,
            resample,
        )
        for kind in kinds
    ]
    if use_cache and cache is None:
        cache = default_cache(scores)
    with progress_bar("comparing") as progress:
        outcome = run_study(
            scores,
            split_names(",".join(methods)),
            parse_budgets(",".join(budgets)),
            settings,
            repeats,
            seed,
            level=level if intervals else None,
            workers=(os.cpu_count() or 1) if workers is None else workers,
            executor=cluster,
            cache=cache if use_cache else None,
            progress=progress,
            facts={"scores": scores_path.name, "command": shlex.join(["fewbench", *sys.argv[1:]])},
        )
    page = outcome.page()
    show(page, outcome, output, as_json)
    if report is not None:
        write(page, outcome, report)
    if len(outcome.failures):
        raise typer.Exit(FAILED)


def parse_budgets(text: str) -> list[int]:
    """Read '20,50,100'; StudyError for other text."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise StudyError(f"cannot read the budgets {text!r}", hint="as in 20,50,100") from error
