"""fewbench compare: compare methods on models with known full scores."""

import math
import os
import re
import shlex
import sys
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from fewbench._text import table
from fewbench.cli.commands import default_cache
from fewbench.cli.options import AverageOption, Cluster, Json, ScoresPath, Seed, load, split_names
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import progress_bar
from fewbench.cli.text import echo, number, points, say
from fewbench.errors import StudyError
from fewbench.study import KINDS, Comparison, SplitSettings
from fewbench.study import compare as run_study
from fewbench.study.cache import is_folder
from fewbench.study.inference import LEVEL

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
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JSON file to write.")
    ] = None,
    as_json: Json = False,
    report: Annotated[Path | None, typer.Option(help="HTML report to write.")] = None,
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
    check_outputs(output, report, inputs=[scores_path], force=force)
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
    echo(outcome.to_json() if as_json else describe(outcome))
    if output is not None:
        outcome.save_json(output)
        say(f"wrote {output}")
    if report is not None:
        from fewbench.report import write_report

        write_report(outcome, report)
        say(f"wrote {report}")
    if len(outcome.failures):
        raise typer.Exit(FAILED)


def parse_budgets(text: str) -> list[int]:
    """Read '20,50,100'; StudyError for other text."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise StudyError(f"cannot read the budgets {text!r}", hint="as in 20,50,100") from error


def describe(outcome: Comparison) -> str:
    """Return one table per split and budget, in percentage points."""
    cells = outcome.cells
    coverage = next((str(c) for c in cells if re.fullmatch(r"coverage\d+", str(c))), None)
    blocks = [f"warning: {warning}" for warning in outcome.warnings]
    header = ["method", "error (pp)", f"vs random [{LEVEL:.0%}]", "vs ridge", "tau", "rho"]
    if coverage:
        header += [f"in {coverage.removeprefix('coverage')} % interval", "width (pp)"]
    for (split, budget), rows in cells.groupby(["split", "budget"], sort=False):
        ordered = rows.sort_values("mae", kind="stable", na_position="last")
        lines = [_line(row, coverage) for row in ordered.to_dict("records")]
        expected = rows["expected_random_mae"].dropna()
        title = (
            f"{split} split, {budget} items, {rows['n_targets'].iloc[0]} targets per repeat, "
            f"{rows['n_repeats'].max()} repeats"
        )
        if len(expected):
            title += f"; expected error of random sampling: {points(expected.iloc[0], 2)} pp"
        blocks.append(f"{title}\n{table([*header, 'seconds'], lines)}")
    legend = ["tau, rho: Kendall's and Spearman's correlation of estimates with full scores"]
    if cells["mae_se"].notna().any():
        legend.append("± one standard error; vs random: the error divided by the expected error")
    if cells["level_with_best"].notna().any():
        legend.append("* the best method, and methods without a significant difference to it")
    blocks.append("\n".join(legend))
    for (method, reason), rows in outcome.failures.groupby(["method", "reason"], sort=False):
        first = rows.iloc[0]
        where = f"{first['budget']} items, {first['split']} split, repeat {first['repeat']}"
        more = f" and {len(rows) - 1} more cells" if len(rows) > 1 else ""
        blocks.append(f"failed: {method} at {where}{more}: {reason}")
    return "\n\n".join(blocks)


def _line(row: Mapping[Hashable, Any], coverage: str | None) -> list[str]:
    if not row["n_repeats"]:
        return [str(row["method"]), "failed", *["–"] * (7 if coverage else 5)]
    error = points(row["mae"], 2)
    if not math.isnan(row["mae_se"]):
        error += f" ± {points(row['mae_se'], 2)}"
    level = row["level_with_best"]
    ratio = number(row["ratio_to_random"], 2)
    if not math.isnan(row["ratio_to_random_low"]):
        ends = (number(row[f"ratio_to_random_{end}"], 2) for end in ("low", "high"))
        ratio += f" [{', '.join(ends)}]"
    line = [
        str(row["method"]),
        error if pd.isna(level) else f"{error} {'*' if level else ' '}",
        ratio,
        number(row["ratio_to_random_ridge"], 2),
        number(row["kendall_tau"]),
        number(row["spearman"]),
    ]
    if coverage:
        width = coverage.replace("coverage", "width")
        line += [f"{points(row[coverage], 0)} %", points(row[width])]
    return [*line, number(row["seconds_fit"] + row["seconds_predict"], 2)]
