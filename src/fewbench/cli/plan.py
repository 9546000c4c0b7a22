"""fewbench plan: which method, how many items, what to expect."""

import math
import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from fewbench._text import table
from fewbench.cli.compare import default_cache
from fewbench.cli.options import AverageOption, Cluster, Json, ScoresPath, Seed, load, split_names
from fewbench.cli.outputs import Force, check_outputs
from fewbench.cli.progress import progress_bar
from fewbench.cli.text import echo, number, say
from fewbench.errors import StudyError
from fewbench.study import Forecast, Plan
from fewbench.study import plan as make_plan
from fewbench.study.forecast import TARGETS

FORMATS = (".html", ".json")


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
    if output is not None and output.suffix not in FORMATS:
        raise StudyError(f"cannot write {output}", hint="name a file that ends in .html or .json")
    check_outputs(output, inputs=[scores_path], force=force)
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
    echo(made.to_json() if as_json else describe(made, str(scores_path), cost_column))
    if output is None:
        return
    if output.suffix == ".json":
        made.save_json(output)
    else:
        from fewbench.report import write_plan

        write_plan(made, output, scores_path.name)
    say(f"wrote {output}")


def _early(first: Plan) -> str:
    return f"First answer, from a few held-out models: {first.answer}\nJudging it on others …\n"


def describe(made: Plan, path: str = "SCORES", unit: str | None = None) -> str:
    """Return a plan as text: the answer, how sure it is, and a table."""
    first = made.forecasts[0]
    lines = [made.answer, *_sure(made, first), "", _table(made)]
    better = [one for one in made.forecasts if one.is_better]
    if better and len(better) < len(made.forecasts):
        for one in made.forecasts:
            if not one.is_better:
                lines.append(f"targets {TARGETS[one.target][1]}: {one.reason}")
    lines += ["", _cost(made, first, unit)]
    if made.learning is not None:
        lines += ["", made.learning.says, _sources(made)]
    lines += ["", *(f"note: {note}" for note in made.notes)]
    if first.items < made.n_items:
        lines.append(
            f"Next: fewbench start {shlex.quote(path)} --method {shlex.quote(first.method)} "
            f"--budget {first.items} -o DIR"
        )
    return "\n".join(lines)


def _sure(made: Plan, one: Forecast) -> list[str]:
    """Say how sure the answer is, and what random sampling would need."""
    d, said = made.digits, []
    if one.is_better:
        said.append(
            f"How sure: the error is between {number(one.error_low, d)} and "
            f"{number(one.error_high, d)} (90% interval)"
        )
        low, high = one.items_low, one.items_high
        if low is not None and high is not None and low < high:
            said[-1] += f"; {low:,} to {high:,} items may be needed"
        said[-1] += "."
        needs = f"{one.random_items:,} items"
        if one.random_items >= made.n_items:
            needs = f"all {made.n_items:,} items"
        how = " if both models run the same items" if made.goal == "difference" else ""
        said.append(f"Plain random sampling needs {needs} for the same{how}.")
    else:
        said.append(f"Use plain random sampling: {one.reason}.")
    if made.goal == "budget":
        said[-1] += f" With {one.items:,} items it errs by {number(one.random_error, d)}."
    return said


def _table(made: Plan) -> str:
    d = made.digits
    squared = "vs random, squared" if made.goal == "difference" else "vs random"
    header = ["target model", "method", "items", "error [90%]", f"interval {made.level:.0%}"]
    header += [f"{squared} [90%]", "random needs"]
    rows = []
    for one in made.forecasts:
        error, ratio = number(one.error, d), number(one.ratio, 2)
        if one.error_low < one.error_high:
            error += f" [{number(one.error_low, d)}, {number(one.error_high, d)}]"
            ratio += f" [{number(one.ratio_low, 2)}, {number(one.ratio_high, 2)}]"
        width = "–" if math.isnan(one.half_width) else f"±{number(one.half_width, d)}"
        row = [TARGETS[one.target][1], one.method, f"{one.items:,}", error, width, ratio]
        rows.append([*row, f"{one.random_items:,}"])
    return table(header, rows, left=2)


def _cost(made: Plan, one: Forecast, unit: str | None) -> str:
    """Say what a run costs, and when the source models' full runs have paid."""
    if one.cost is None or one.full_cost is None or one.random_cost is None:
        return ""
    of = "items" if unit is None else unit
    said = f"Cost of a run: {one.cost:,.6g} of {one.full_cost:,.6g} {of}"
    said += f" ({one.cost / one.full_cost:.1%} of a full run)"
    if not one.is_better:
        return f"{said}."
    said += f"; random sampling {one.random_cost:,.6g}."
    if one.breakeven is not None:
        said += (
            f" If you ran the {made.n_models:,} source models yourself, they have paid after "
            f"{one.breakeven:,} new models that are not run in full"
        )
        if one.breakeven_random is not None:
            said += f", or after {one.breakeven_random:,} in place of random sampling"
        said += "."
    return said


def _sources(made: Plan) -> str:
    learning = made.learning
    if learning is None:
        return ""
    counts = [f"{n:,}" for n in learning.sources]
    errors = [number(one.value * made.span, made.digits) for one in learning.errors]
    return table(["source models", *counts], [["error", *errors]])
