"""fewbench run endpoint: ask a model behind an endpoint the questions of a file."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fewbench.cli.options import (
    AcceptDifferences,
    Concurrency,
    Json,
    PriceIn,
    PriceOut,
    Rate,
    Retries,
    ScoresOrPack,
    Scoring,
    Seed,
    Strict,
    Template,
    Timeout,
    items_of,
)
from fewbench.cli.outputs import Force
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
    Report,
    Settings,
    Targets,
    Tokens,
    Tries,
    run_and_print,
    stop_of,
)
from fewbench.cli.text import echo, say
from fewbench.errors import RunError
from fewbench.scores import Scores

if TYPE_CHECKING:
    from fewbench.runners.endpoint import EndpointRunner


def endpoint(
    scores_path: ScoresOrPack,
    items: Annotated[
        Path, typer.Argument(metavar="ITEMS", help="JSON lines: one question of the scores each.")
    ],
    model: Annotated[
        list[str], typer.Option(help="Model name on the server. Repeat it for several targets.")
    ],
    url: Annotated[
        str | None, typer.Option(help="Server address, as http://localhost:8000/v1.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the evaluation. The same command goes on there."
        ),
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
    metric: Annotated[
        Literal["accuracy", "letter", "exact-match"],
        typer.Option(help="Score of an answer, see below."),
    ] = "accuracy",
    template: Template = "mmlu",
    pattern: Annotated[
        str | None,
        typer.Option(
            help="Regular expression that finds the answer in a written text: its last match, or "
            "the first group of that."
        ),
    ] = None,
    max_written: Annotated[
        int | None,
        typer.Option(help="Most tokens of a written answer (default: by the longest answer)."),
    ] = None,
    concurrency: Concurrency = 16,
    rate: Rate = None,
    timeout: Timeout = 120.0,
    retries: Retries = 8,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    chat: Annotated[
        bool, typer.Option("--chat/--no-chat", help="Written answers: ask as chat messages.")
    ] = True,
    scoring: Scoring = "auto",
    accept_differences: AcceptDifferences = False,
    accept_fractions: AcceptFractions = False,
    accept_changes: AcceptChanges = False,
    strict: Strict = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the expected cost and a prompt; send no requests."),
    ] = False,
    seed: Seed = 0,
    report: Report = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Ask a model behind an endpoint with OpenAI's interface the questions of a file.

    Prints the expected cost before sending requests. The API key is read from OPENAI_API_KEY. The
    same command goes on after a stop; responses are in responses.jsonl in the folder.

    \b
    fewbench run endpoint scores.parquet items.jsonl -n 50 --model my-model --dry-run
    fewbench run endpoint scores.parquet items.jsonl -n 50 --model my-model --url URL -o run

    \b
    Metrics:
    accuracy     the right letter is the most likely next token
    letter       the written text names the letter of the right option
    exact-match  the written text is the answer, up to case and spaces

    \b
    A line of ITEMS: {"id": "q1", "question": "2 + 2 =", "options": ["3", "4"], "answer": "B"}
    """
    from fewbench.runners.asking import Patience, Prices
    from fewbench.runners.endpoint import EndpointRunner
    from fewbench.runners.models import Endpoint, Model
    from fewbench.runners.questions import read_template

    names = target or model
    if len(names) != len(model):
        raise RunError(
            f"{len(names)} targets, but {len(model)} models", hint="give -t once for each --model"
        )
    if not dry_run and output is None:
        raise RunError("no output folder", hint="give -o FOLDER, or --dry-run to see the cost")
    if not dry_run and url is None:
        raise RunError("no server", hint="give --url http://HOST:PORT/v1")
    if cost is not None and price_in is None and price_out is None:
        raise RunError("a cost limit needs prices", hint="give --price-in and --price-out")
    models: dict[str, Model] = {}
    if not dry_run:
        models = {
            name: Endpoint(
                url or "",
                one,
                timeout=timeout,
                chat=chat,
                scoring=scoring,
                tries=retries,
                rate=rate,
            )
            for name, one in zip(names, model, strict=True)
        }
    runner = EndpointRunner(
        items,
        models,
        read_template(template),
        metric,
        pattern=pattern,
        most=max_written,
        prices=Prices(price_in, price_out),
        concurrency=concurrency,
        rate=rate,
        patience=Patience(tries=retries),
        log=output,
        accept_differences=accept_differences,
    )
    settings = Settings(
        scores_path=scores_path,
        method=method,
        stop=stop_of(items_of(scores_path, budget), half_width, level, cost, tokens, minutes),
        targets=names,
        seed=seed,
        folder=output or Path(),
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
    scores = settings.load()
    overview = runner.overview(scores, settings.stop, one_by_one=scoring == "echo")
    if dry_run and as_json:
        _print_expected(runner, scores, settings, scoring == "echo")
    elif dry_run:
        echo(overview)
    else:
        say(overview.partition("\n\n")[0])
        run_and_print(runner, scores, settings)


def _print_expected(
    runner: "EndpointRunner", scores: Scores, settings: Settings, one_by_one: bool
) -> None:
    most = min(settings.stop.items or scores.n_items, scores.n_items)
    costs = {"run": most, "full": scores.n_items}
    found = {name: asdict(runner.expected(scores, n, one_by_one)) for name, n in costs.items()}
    echo(json.dumps(found, indent=2))
