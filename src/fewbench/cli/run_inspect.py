"""fewbench run inspect: run chosen samples of Inspect tasks."""

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from fewbench.cli.evaluate import MEASURING
from fewbench.cli.options import AcceptDifferences, Json, ScoresOrPack, Seed, Strict, items_of
from fewbench.cli.outputs import Force, Report
from fewbench.cli.progress import status_line
from fewbench.cli.running import (
    AcceptChanges,
    AcceptFractions,
    BatchSize,
    Cost,
    HalfWidth,
    Items,
    Level,
    Method,
    Minutes,
    Notes,
    Output,
    ProgressLine,
    Settings,
    Targets,
    Tokens,
    Tries,
    print_result,
    stop_of,
)
from fewbench.cli.text import say

if TYPE_CHECKING:
    from fewbench.runners.result import RunResult


def inspect(
    scores_path: ScoresOrPack,
    arguments: Annotated[
        list[str],
        typer.Argument(metavar="ARGUMENTS", help="Tasks and options of inspect eval, after --."),
    ],
    output: Output,
    method: Method = "auto",
    budget: Items = None,
    half_width: HalfWidth = None,
    level: Level = 0.9,
    cost: Cost = None,
    tokens: Tokens = None,
    minutes: Minutes = None,
    batch: BatchSize = None,
    target: Targets = None,
    tries: Tries = 3,
    metric: Annotated[
        str | None,
        typer.Option(help="Which value of the scorers (default: that of the source models)."),
    ] = None,
    accept_differences: AcceptDifferences = False,
    accept_fractions: AcceptFractions = False,
    accept_changes: AcceptChanges = False,
    strict: Strict = False,
    seed: Seed = 0,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run chosen samples of Inspect tasks.

    What follows -- is as for inspect eval: tasks, --model, -T, --epochs and other options. Samples
    and settings are compared with those of the source models before anything is spent. Logs are
    in DIR/logs. The same command goes on after a stop.

    \b
    fewbench run inspect scores.parquet -n 50 -o run -- task.py --model openai/gpt-4o
    fewbench run inspect scores.parquet -m fluid --half-width 0.03 -o run -- task.py@name \\
        --model openai/gpt-4o -T level=hard --max-connections 20
    """
    from fewbench.runners.inspect import run_inspect

    settings = Settings(
        scores_path=scores_path,
        method=method,
        stop=stop_of(items_of(scores_path, budget), half_width, level, cost, tokens, minutes),
        targets=target or [],
        seed=seed,
        folder=output,
        batch=batch,
        tries=tries,
        accept_differences=accept_differences,
        accept_fractions=accept_fractions,
        accept_changes=accept_changes,
        strict=strict,
        report=report,
        force=force,
        as_json=as_json,
    )
    run_in_inspect(partial(run_inspect, arguments, metric=metric), settings)


def run_in_inspect(run: "Callable[..., RunResult]", settings: Settings) -> None:
    """Run with the settings, show progress, and print the result.

    `run` takes scores, method, stop, and what else `run_inspect` takes.
    """
    scores = settings.load()
    told = Notes()
    # On a terminal, Inspect shows the progress itself.
    shown = nullcontext(_only_end) if sys.stderr.isatty() else status_line("running inspect")
    with shown as update:
        result = run(
            scores,
            settings.method,
            settings.stop,
            targets=settings.targets or None,
            tries=settings.tries,
            quiet=settings.as_json,
            on_notes=told.tell,
            on_progress=ProgressLine(update),
            on_end=lambda: update(MEASURING),
            **settings.of_run(),
        )
    print_result(result, scores, settings, told)


def _only_end(text: str) -> None:
    """Say what happens after Inspect's own display."""
    if text == MEASURING:
        say(text)
