"""fewbench transfer: how well a model answers one task shown another's examples."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fewbench.cli.options import Json, Seed, say, split_names
from fewbench.cli.progress import at_work, progress_bar
from fewbench.cli.transfer_text import describe, describe_cost, summary
from fewbench.errors import TransferError

if TYPE_CHECKING:
    from fewbench.runners.models.model import Model
    from fewbench.transfer.answers import Answers
    from fewbench.transfer.cost import Prices
    from fewbench.transfer.design import Design
    from fewbench.transfer.measuring import Run

MATRIX = "matrix.npz"
STOPPED = 1  # exit code: a limit was reached, and answers are missing

transfer = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@transfer.callback()
def _all() -> None:
    """Measure how well a model answers one task shown another's examples.

    \b
    See what it costs:     fewbench transfer measure tasks/ --model my-model --dry-run
    Measure:               fewbench transfer measure tasks/ --model my-model --url URL -o ict
    Choose tasks by it:    fewbench tasks select ict -k 3
    """


@transfer.command()
def measure(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="TASKS…", help="A .jsonl file or a folder of them, lm-eval:NAME, inspect:FILE."
        ),
    ],
    model: Annotated[str, typer.Option(help="The model's name on the server, or its folder.")],
    url: Annotated[str | None, typer.Option(help="As http://localhost:8000/v1.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The measurement's folder.")
    ] = None,
    local: Annotated[bool, typer.Option("--local", help="A Hugging Face model here.")] = False,
    template: Annotated[str, typer.Option(help="mmlu, flan, or a .json or .toml file.")] = "mmlu",
    metric: Annotated[str, typer.Option(help="accuracy, loss or exact-match.")] = "accuracy",
    exemplars: Annotated[int, typer.Option(help="Shown before each question.")] = 5,
    seeds: Annotated[int, typer.Option(help="Draws of exemplars and questions.")] = 10,
    questions: Annotated[str, typer.Option(help="Most of one target and seed, or all.")] = "50",
    columns: Annotated[
        str, typer.Option(help="Targets: all, a number of the shortest, or names with commas.")
    ] = "all",
    seed: Seed = 0,
    concurrency: Annotated[int, typer.Option(help="Requests under way at a time.")] = 16,
    rate: Annotated[float | None, typer.Option(help="Most requests a minute.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds until a request has failed.")] = 120.0,
    retries: Annotated[int, typer.Option(help="Tries of a request before giving up.")] = 8,
    price_in: Annotated[
        float | None, typer.Option("--price-in", help="Of a million tokens of prompts.")
    ] = None,
    price_out: Annotated[
        float | None, typer.Option("--price-out", help="Of a million tokens written.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Stop when so much is spent, all runs together.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Stop when so many tokens are used, all runs together.")
    ] = None,
    chat: Annotated[
        bool | None,
        typer.Option(
            "--chat/--no-chat", help="exact-match: in a chat (a server's default), or plainly."
        ),
    ] = None,
    scoring: Annotated[
        str, typer.Option(help="Log-probabilities: auto, top (listed tokens) or echo.")
    ] = "auto",
    include_path: Annotated[
        Path | None, typer.Option(help="lm-eval: a folder with further tasks.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it costs, and ask nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask a model each task's questions behind exemplars of every task.

    What it costs is told before anything is asked. Every answer is kept as it comes: the same
    command goes on after a crash, and asks nothing twice. More seeds, questions or columns can be
    asked for later. A server's key is taken from OPENAI_API_KEY.

    \b
    fewbench transfer measure tasks/ --model my-model --dry-run
    fewbench transfer measure tasks/ --model my-model --url http://localhost:8000/v1 -o ict
    fewbench transfer measure lm-eval:mmlu --model my-model --url URL -o ict --columns 20
    fewbench transfer measure bbh/ --metric exact-match --template flan --model m --url URL -o ict

    \b
    Scores of an answer:
    accuracy     1 if the right letter is the most likely one; a tie of n counts 1/n
    loss         the mean log-probability of the right answer's tokens
    exact-match  1 if what is written is the answer, but for case and spaces
    """
    from fewbench.transfer.cost import Prices, cost_of, paper_cost
    from fewbench.transfer.design import Design
    from fewbench.transfer.limits import Limits, Patience
    from fewbench.transfer.sources import read_tasks
    from fewbench.transfer.templates import read_template

    if not dry_run:
        _check_ends(url, output, local)
    if metric not in ("accuracy", "loss", "exact-match"):
        raise TransferError(f"unknown metric {metric!r}", hint="one of accuracy, loss, exact-match")
    if scoring not in ("auto", "top", "echo"):
        raise TransferError(f"unknown scoring {scoring!r}", hint="one of auto, top, echo")
    prices, patience = Prices(price_in, price_out), Patience(tries=retries)
    limits = Limits(max_tokens, max_cost, prices)
    with at_work("reading tasks"):
        design = Design(
            tuple(read_tasks(names, include_path=include_path)),
            read_template(template),
            metric,  # type: ignore[arg-type]
            seeds,
            exemplars,
            _number_or_all(questions),
            _columns(columns),
            seed,
        )
    before = None if output is None else _kept(output, design, model)
    one_by_one = scoring == "echo"
    costs = {
        "design": cost_of(design, prices, one_by_one),
        "paper": paper_cost(design, prices, one_by_one),
    }
    told = describe_cost(design, model, costs, scoring, 0 if before is None else before.n_done)
    if dry_run:
        facts = {name: cost.to_dict() for name, cost in costs.items()}
        answered = 0 if before is None else before.n_done
        read = {**_facts(design, model, template), "cost": facts, "answered": answered}
        print(json.dumps(read, ensure_ascii=False) if as_json else told)
        return
    assert output is not None
    say(told)
    run = None
    if before is None or not before.complete:
        from fewbench.transfer.measuring import measure as run_measure

        written = metric == "exact-match"  # what else is asked has no chat
        chats = written and (not local if chat is None else chat)
        with progress_bar("asking") as progress:
            before, run = run_measure(
                output,
                design,
                _model(model, url, local, timeout, chats, scoring),
                prepared=lambda found: _say_if_one_by_one(found, scoring, design, prices),
                facts={"chat": "yes" if chats else "no"} if written else None,
                concurrency=concurrency,
                patience=patience,
                rate=rate,
                limits=limits,
                progress=progress,
            )
    else:
        say(f"{output}: complete; nothing was asked")
    _report(output, _facts(design, model, template), before, run, prices, as_json)


def _say_if_one_by_one(
    found: Mapping[str, str], scoring: str, design: "Design", prices: "Prices"
) -> None:
    """Tell the cost again where it turns out that each option is a prompt of its own."""
    from fewbench.transfer.cost import cost_of

    if scoring == "auto" and found.get("scoring") == "echo" and design.metric == "accuracy":
        cost = cost_of(design, prices, one_by_one=True)
        price = "" if cost.money is None else f", price about {cost.money:,.2f}"
        say(
            f"the server cannot list likely tokens: each option is a prompt of its own, "
            f"{cost.requests:,} in all, about {cost.tokens:,} tokens{price}"
        )


def _check_ends(url: str | None, output: Path | None, local: bool) -> None:
    if output is None:
        raise TransferError(
            "no folder to keep answers in", hint="give -o FOLDER, or --dry-run to see the cost"
        )
    if local == (url is not None):
        raise TransferError(
            "a server and a local model" if local else "no server and no local model",
            hint="give --url http://HOST:PORT/v1 or --local",
        )


def _number_or_all(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal():
        raise TransferError(f"--questions {text}: not a number", hint="as 50, or all")
    return int(text)


def _columns(text: str) -> tuple[str, ...] | int | None:
    if text == "all":
        return None
    return int(text) if text.isdecimal() else tuple(split_names(text))


def _model(
    name: str, url: str | None, local: bool, timeout: float, chat: bool, scoring: str
) -> "Model":
    if local:
        from fewbench.runners.models.local import LocalModel

        return LocalModel(name, chat=chat)
    from fewbench.runners.models.endpoint import Endpoint

    way: Literal["auto", "top", "echo"] = scoring  # type: ignore[assignment]
    return Endpoint(url or "", name, timeout=timeout, chat=chat, scoring=way)


def _kept(folder: Path, design: "Design", model: str) -> "Answers | None":
    """Return the answers to a design in a folder; TransferError if they are to another."""
    from fewbench.transfer.journal import Header, check, kept_header, read

    if not folder.is_dir() and folder.exists():
        raise TransferError(f"{folder}: not a folder", hint="name another with -o")
    header = kept_header(folder)
    if header is None:
        return None
    # how the server is asked is found out only where it is asked
    check(folder, Header.of(design, model, header.facts))
    with at_work("reading answers"):
        return read(folder, design)


def _facts(design: "Design", model: str, template: str) -> dict[str, Any]:
    return {
        "model": model,
        "metric": design.metric,
        "template": template,
        "tasks": len(design.tasks),
        "columns": len(design.targets),
        "seeds": design.seeds,
        "exemplars": design.exemplars,
        "questions": design.questions,
        "seed": design.seed,
    }


def _report(
    folder: Path,
    settings: dict[str, Any],
    answers: "Answers",
    run: "Run | None",
    prices: "Prices",
    as_json: bool,
) -> None:
    """Write the matrix if all is answered, and tell what there is."""
    from fewbench.transfer.journal import kept_header
    from fewbench.transfer.result import notes_on, transferability

    notes, spent = notes_on(answers), prices.of(answers.prompt, answers.completion)
    facts: dict[str, Any] = {
        **settings,
        "complete": answers.complete,
        "answers": answers.n_done,
        "asked": len(answers.design),
        "tokens": {"prompt": answers.prompt, "completion": answers.completion},
        "spent": spent,
        "run": None if run is None else vars(run),
        "notes": notes,
    }
    if answers.complete:
        header = kept_header(folder)
        about = {
            **{key: str(value) for key, value in settings.items()},
            **({} if header is None else header.facts),
            "date": datetime.now(UTC).date().isoformat(),
            "notes": "\n".join(notes),
        }
        matrix = transferability(answers, about)
        facts["matrix"] = str(matrix.save(folder / MATRIX))
        facts |= summary(matrix)
    print(json.dumps(facts, ensure_ascii=False) if as_json else describe(facts, folder))
    if not answers.complete:
        raise typer.Exit(STOPPED)
