"""fewbench run endpoint: ask a model the questions of a file."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from fewbench.cli.options import AcceptDifferences, Json, ScoresOrPack, Seed, Strict, items_of
from fewbench.cli.outputs import Force, Report
from fewbench.cli.run_inspect import run_in_inspect
from fewbench.cli.running import (
    AcceptChanges,
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
    stop_of,
)


def endpoint(
    scores_path: ScoresOrPack,
    items: Annotated[
        Path, typer.Argument(metavar="ITEMS", help="Questions: .jsonl or .csv, one a line.")
    ],
    model: Annotated[
        list[str],
        typer.Option(
            help="Inspect's name of the model, as openai/gpt-4o or openai-api/local/NAME. Repeat "
            "it for several targets."
        ),
    ],
    output: Output,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENTS", help="Options of inspect eval, after --."),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Server address, as http://localhost:8000/v1.")
    ] = None,
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
    scorer: Annotated[
        Literal["auto", "choice", "exact", "match", "pattern"],
        typer.Option(help="Inspect's scorer, see below."),
    ] = "auto",
    pattern: Annotated[
        str | None,
        typer.Option(help="Regular expression that finds the answer, for --scorer pattern."),
    ] = None,
    accept_differences: AcceptDifferences = False,
    accept_changes: AcceptChanges = False,
    strict: Strict = False,
    seed: Seed = 0,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Ask a model the questions of a file, through Inspect.

    Options of inspect eval follow --. The same command goes on after a stop. Logs are in DIR/logs.

    \b
    fewbench run endpoint scores.parquet items.jsonl -n 50 -o run --model openai/gpt-4o
    fewbench run endpoint scores.parquet items.jsonl -n 50 -o run \\
        --model openai-api/local/NAME --url http://localhost:8000/v1 -- --max-tokens 500

    \b
    Scorers:
    auto     choice for tasks with options, exact for others
    choice   the reply names the right option's letter, as in ANSWER: B
    exact    the reply is the answer, up to case, spaces, punctuation and articles
    match    the reply ends with the answer
    pattern  what --pattern finds in the reply is the answer, up to case

    \b
    A line of ITEMS: {"id": "q1", "question": "2 + 2 =", "options": ["3", "4"], "answer": "B"}
    """
    from fewbench.runners.endpoint import run_endpoint

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
        accept_changes=accept_changes,
        strict=strict,
        report=report,
        force=force,
        as_json=as_json,
    )
    run = partial(
        run_endpoint,
        items,
        model,
        url=url,
        scorer=scorer,
        pattern=pattern,
        arguments=arguments or (),
    )
    run_in_inspect(run, settings)
