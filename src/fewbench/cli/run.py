"""fewbench run: run a model on chosen items and estimate its score."""

from typing import Annotated

import typer

from fewbench.cli.options import Json, ScoresOrPack, Seed, group_of_commands, items_of
from fewbench.cli.outputs import Force, Report
from fewbench.cli.run_endpoint import endpoint
from fewbench.cli.run_inspect import inspect
from fewbench.cli.run_lm_eval import lm_eval
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
    Output,
    Settings,
    Targets,
    Tokens,
    Tries,
    run_and_print,
    stop_of,
)

run = group_of_commands()
run.command("lm-eval")(lm_eval)


@run.callback()
def _all() -> None:
    """Run a model on chosen items and estimate its full score.

    \b
    lm-eval:      fewbench run lm-eval scores.parquet -n 50 -o run -- --model hf --model_args
                  pretrained=X
    A program:    fewbench run command scores.parquet -n 50 -o run -- python answer.py
    An endpoint:  fewbench run endpoint scores.parquet items.jsonl -n 50 --model M --url U -o run
    Inspect:      fewbench run inspect scores.parquet -n 50 -o run -- task.py --model MODEL
    """


run.command()(endpoint)
run.command()(inspect)


@run.command()
def command(
    scores_path: ScoresOrPack,
    program: Annotated[
        list[str], typer.Argument(metavar="PROGRAM", help="Program and arguments, after --.")
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
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds without an answer after which the program counts as hanging."),
    ] = None,
    accept_fractions: AcceptFractions = False,
    accept_changes: AcceptChanges = False,
    seed: Seed = 0,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a program that reads items as JSON lines and prints answers as JSON lines.

    Each line of its input names an item: {"item": ID, "target": NAME, "task": TASK, "last": BOOL}.
    For each it prints {"item": ID, "score": NUMBER} or {"item": ID, "error": TEXT}, in any order,
    and may add "cost" and "tokens". The same command goes on after a stop.

    \b
    fewbench run command scores.parquet -n 50 -o run -- python answer.py
    fewbench run command scores.parquet -m fluid --half-width 0.03 -o run -- ./answer.sh
    """
    from fewbench.runners.command import CommandRunner

    settings = Settings(
        scores_path=scores_path,
        method=method,
        stop=stop_of(items_of(scores_path, budget), half_width, level, cost, tokens, minutes),
        targets=target or ["target"],
        seed=seed,
        folder=output,
        batch=batch,
        tries=tries,
        accept_fractions=accept_fractions,
        accept_changes=accept_changes,
        report=report,
        force=force,
        as_json=as_json,
    )
    run_and_print(CommandRunner(program, timeout=timeout), settings.load(), settings)
