"""fewbench compare: methods judged on models whose truth is known."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from fewbench.cli.options import AverageOption, ScoresPath, Seed, load, say, split_names
from fewbench.cli.progress import progress_bar
from fewbench.cli.text import number, points, table
from fewbench.errors import StudyError
from fewbench.scores import Scores
from fewbench.study import KINDS, Comparison, SplitSettings
from fewbench.study import compare as run_study

GAP = 0.2  # DISCO's: targets from the best 30 %, sources from the worst 50 %


def compare(
    scores_path: ScoresPath,
    methods: Annotated[str, typer.Option("--methods", "-m", help="Names, with commas between.")],
    budgets: Annotated[str, typer.Option("--budgets", "-n", help="Item counts, with commas.")],
    split: Annotated[
        str, typer.Option("--split", help=f"One or several of {', '.join(KINDS)}.")
    ] = "random",
    targets: Annotated[float, typer.Option(help="Share of the models to be targets.")] = 0.25,
    gap: Annotated[
        bool, typer.Option("--gap", help="performance: leave out 20 % between the two.")
    ] = False,
    group_by: Annotated[str, typer.Option(help="group: the models' column.")] = "family",
    resample: Annotated[
        bool, typer.Option("--resample", help="Draw sources and targets with replacement.")
    ] = False,
    repeats: Annotated[int, typer.Option(help="Divisions and seeds to average over.")] = 10,
    seed: Seed = 0,
    level: Annotated[float, typer.Option(help="Stated coverage of intervals.")] = 0.9,
    intervals: Annotated[
        bool, typer.Option(help="Judge intervals too (most of the time goes there).")
    ] = True,
    average: AverageOption = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; all processors by default.")
    ] = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write all as JSON.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="File of finished cells; by default one a user.")
    ] = None,
    use_cache: Annotated[
        bool, typer.Option("--cached/--no-cache", help="Go on where a stopped run was.")
    ] = True,
) -> None:
    """Compare methods by estimating models whose full score is known.

    Random sampling (random) and ridge regression on random items (random-ridge) always take part.

    \b
    fewbench compare scores.parquet --methods kmedoids-ridge --budgets 20,50,100
    fewbench compare scores.parquet -m anchor-points,disco-pds-rf -n 100 --split random,group
    fewbench compare scores.parquet -m kmedoids-ridge -n 50 --split performance --targets 0.3 --gap
    fewbench compare scores.parquet -m kmedoids-ridge -n 50 --json out.json --report out.html

    \b
    Splits:
    random         targets drawn at random
    every          every k-th model is a target
    given          as the models' column role says (source or target)
    chronological  the newest models, by date
    performance    the strongest models; with --gap, the sources are much weaker
    group          whole families (or another column: --group-by)
    """
    for output in (json_path, report):
        if output is not None and output.is_dir():  # said now, not after the work
            raise StudyError(f"{output}: a folder", hint="name a file to write")
    scores = load(scores_path, average)
    kinds = split_names(split)
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
            split_names(methods),
            parse_budgets(budgets),
            settings,
            repeats,
            seed,
            level=level if intervals else None,
            workers=(os.cpu_count() or 1) if workers is None else workers,
            cache=cache if use_cache else None,
            progress=progress,
            facts={"scores": scores_path.name, "command": shlex.join(["fewbench", *sys.argv[1:]])},
        )
    print(describe(outcome))
    if json_path is not None:
        outcome.save_json(json_path)
        say(f"wrote {json_path}")
    if report is not None:
        from fewbench.report import write_report

        write_report(outcome, report)
        say(f"wrote {report}")


def default_cache(scores: Scores) -> Path:
    """Return the user's file of finished cells for these scores."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fewbench" / f"cells-{scores.fingerprint}.jsonl"


def parse_budgets(text: str) -> list[int]:
    """Read '20,50,100'; StudyError if it is something else."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise StudyError(f"cannot read the budgets {text!r}", hint="as in 20,50,100") from error


def describe(outcome: Comparison) -> str:
    """Return the headline tables, one a split and budget, in percentage points."""
    cells = outcome.cells
    coverage = next((str(c) for c in cells if str(c).startswith("coverage")), None)
    blocks = [f"warning: {warning}" for warning in outcome.warnings]
    for (split, budget), rows in cells.groupby(["split", "budget"], sort=False):
        n_targets = rows["n_targets"].iloc[0]
        lines = []
        for row in rows.to_dict("records"):
            line = [
                str(row["method"]),
                f"{points(row['mae'], 2)} ± {points(row['mae_se'], 2)}",
                f"{number(row['ratio_to_random'], 2)} [{number(row['ratio_to_random_low'], 2)}, "
                f"{number(row['ratio_to_random_high'], 2)}]",
                number(row["ratio_to_random_ridge"], 2),
                number(row["kendall_tau"]),
                number(row["spearman"]),
            ]
            if coverage:
                width = coverage.replace("coverage", "width")
                line += [f"{points(row[coverage], 0)} %", points(row[width])]
            lines.append([*line, number(row["seconds_fit"] + row["seconds_predict"], 2)])
        header = ["method", "error (pp)", "vs random [90 %]", "vs ridge", "tau", "rho"]
        if coverage:
            header += [f"in {coverage.removeprefix('coverage')} % interval", "width (pp)"]
        title = f"{split} split, {budget} items, {n_targets} targets a repeat"
        blocks.append(f"{title}\n{table([*header, 'seconds'], lines)}")
    return "\n\n".join(blocks)
