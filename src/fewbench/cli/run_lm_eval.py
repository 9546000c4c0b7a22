"""fewbench run lm-eval: run a model in lm-eval on chosen items."""

from typing import Annotated

import typer

from fewbench.cli.options import (
    AcceptDifferences,
    Json,
    Key,
    ScoresOrPack,
    Seed,
    items_of,
)
from fewbench.cli.outputs import Force, Report
from fewbench.cli.progress import at_work
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
    Tries,
    run_and_print,
    stop_of,
)


def lm_eval(
    scores_path: ScoresOrPack,
    output: Output,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGUMENTS", help="Arguments of lm-eval run, after --, without --tasks."
        ),
    ] = None,
    method: Method = "auto",
    budget: Items = None,
    half_width: HalfWidth = None,
    level: Level = 0.9,
    cost: Cost = None,
    minutes: Minutes = None,
    batch: BatchSize = None,
    target: Targets = None,
    tries: Tries = 3,
    key: Key = None,
    accept_differences: AcceptDifferences = False,
    accept_fractions: AcceptFractions = False,
    accept_changes: AcceptChanges = False,
    seed: Seed = 0,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a model in lm-eval on chosen documents.

    The model is loaded once. The scores must come from logs of lm-eval; they say which tasks are
    run. Documents and prompts are compared with those of the source models before the model is
    asked. Logs in lm-eval's own form are written to DIR/lm_eval. The same command goes on after a
    stop. Needs the extra lm-eval.

    \b
    fewbench run lm-eval scores.parquet -n 50 -o run -- --model hf --model_args pretrained=X
    fewbench run lm-eval scores.parquet -m fluid -n 30 -o run -- --model hf --model_args \\
        pretrained=X --include_path tasks
    """
    from fewbench.runners.lm_eval import LOGS, LmEvalRunner

    settings = Settings(
        scores_path=scores_path,
        method=method,
        stop=stop_of(items_of(scores_path, budget), half_width, level, cost, None, minutes),
        targets=target or ["target"],
        seed=seed,
        folder=output,
        batch=batch,
        tries=tries,
        accept_differences=accept_differences,
        accept_fractions=accept_fractions,
        accept_changes=accept_changes,
        report=report,
        force=force,
        as_json=as_json,
    )
    with at_work("reading lm-eval's arguments"):  # imports lm-eval
        runner = LmEvalRunner(
            arguments or [], folder=output / LOGS, key=key, accept_differences=accept_differences
        )
    run_and_print(runner, settings.load(), settings)
