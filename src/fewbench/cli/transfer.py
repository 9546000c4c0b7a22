"""fewbench transfer: measure how tasks transfer to each other."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fewbench.cli.options import (
    Concurrency,
    Json,
    PriceIn,
    PriceOut,
    Rate,
    Retries,
    Scoring,
    Seed,
    Template,
    Timeout,
    group_of_commands,
    split_names,
)
from fewbench.cli.outputs import check_output_folder
from fewbench.cli.progress import at_work, progress_bar
from fewbench.cli.text import echo, say
from fewbench.errors import TransferError

if TYPE_CHECKING:
    from fewbench.runners.asking import Prices
    from fewbench.transfer.answers import Answers
    from fewbench.transfer.design import Design
    from fewbench.transfer.measuring import Run

STOPPED = 1  # exit code: a limit was reached

transfer = group_of_commands()


@transfer.callback()
def _all() -> None:
    """Measure how tasks transfer to each other (BenTo).

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
            metavar="TASKS",
            help="Tasks: .jsonl file or folder of them, lm-eval:NAME, or inspect:FILE.",
        ),
    ],
    model: Annotated[
        str, typer.Option(help="Model name on the server, or folder of a local model.")
    ],
    url: Annotated[
        str | None, typer.Option(help="Server address, as http://localhost:8000/v1.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the measurement.")
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Run a local Hugging Face model instead of a server.")
    ] = False,
    template: Template = "mmlu",
    metric: Annotated[
        Literal["accuracy", "loss", "exact-match"],
        typer.Option(help="Score of an answer, see below."),
    ] = "accuracy",
    exemplars: Annotated[int, typer.Option(help="Number of examples in the prompt.")] = 5,
    seeds: Annotated[
        int, typer.Option(help="Number of random draws of examples and questions.")
    ] = 10,
    questions: Annotated[
        str, typer.Option(help="Most questions per target task and seed, or all.")
    ] = "50",
    columns: Annotated[
        str,
        typer.Option(help="Target tasks: all, a number of the shortest, or comma-separated names."),
    ] = "all",
    seed: Seed = 0,
    concurrency: Concurrency = 16,
    rate: Rate = None,
    timeout: Timeout = 120.0,
    retries: Retries = 8,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Stop when this much is spent, over all runs.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Stop when this many tokens are used, over all runs.")
    ] = None,
    chat: Annotated[
        bool | None,
        typer.Option(
            "--chat/--no-chat",
            help="Metric exact-match: ask as chat messages (default) or as plain text.",
        ),
    ] = None,
    scoring: Scoring = "auto",
    include_path: Annotated[
        Path | None, typer.Option(help="lm-eval: folder with further tasks.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print tasks, one prompt and the expected cost; send no requests."
        ),
    ] = False,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="Send no requests: write the matrix from the answers so far."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure a model's accuracy on each task with examples of every task in the prompt.

    Prints the expected cost before sending requests. Saves every answer: after a crash, the same
    command continues and repeats no request. You can add seeds, questions or columns later. The
    API key is read from OPENAI_API_KEY.

    \b
    fewbench transfer measure tasks/ --model my-model --dry-run
    fewbench transfer measure tasks/ --model my-model --url http://localhost:8000/v1 -o ict
    fewbench transfer measure lm-eval:mmlu --model my-model --url URL -o ict --columns 20
    fewbench transfer measure bbh/ --metric exact-match --template flan --model m --url URL -o ict

    \b
    Metrics:
    accuracy     1 if the right letter is the most likely one; 1/n in a tie of n
    loss         mean log-probability of the right answer's tokens
    exact-match  1 if the text is the answer, up to case and spaces
    """
    from fewbench.cli.transfer_text import describe_cost, describe_tasks, left_to_ask
    from fewbench.methods.tasks.transferability import MATRIX
    from fewbench.runners.asking import Limits, Patience, Prices, check_pace
    from fewbench.runners.models.model import Model
    from fewbench.runners.questions import read_template
    from fewbench.transfer.answers import check_not_smaller
    from fewbench.transfer.cost import cost_of, example, overview, paper_cost
    from fewbench.transfer.design import Design
    from fewbench.transfer.measuring import measure as send_all
    from fewbench.transfer.sources import passed_over, read_tasks

    if metric == "loss" and scoring == "top":
        raise TransferError(
            "--metric loss does not work with --scoring top",
            hint="use --scoring echo or auto",
        )
    if output is not None:
        _check_folder(output, names)
    elif not dry_run:
        raise TransferError("no output folder", hint="give -o FOLDER, or --dry-run to see the cost")
    if not (dry_run or partial) and local == (url is not None):
        raise TransferError(
            "--url and --local are both given" if local else "neither --url nor --local is given",
            hint="give one: --url http://HOST:PORT/v1 or --local",
        )
    check_pace(concurrency, rate)
    prices, patience = Prices(price_in, price_out), Patience(tries=retries)
    limits = Limits(max_tokens, max_cost, prices)
    with at_work("reading tasks"):
        design = Design(
            tuple(read_tasks(names, include_path=include_path)),
            read_template(template),
            metric,
            seeds,
            exemplars,
            _number_or_all(questions),
            _columns_of(columns),
            seed,
        )
    notes = passed_over(names)
    answers = None
    if output is not None:
        answers = _kept_answers(output, design, model)
        check_not_smaller(output / MATRIX, design)
    answered = 0 if answers is None else answers.n_done
    settings: dict[str, Any] = {
        "model": model,
        "metric": metric,
        "template": template,
        "tasks": len(design.tasks),
        "columns": len(design.targets),
        "seeds": seeds,
        "exemplars": exemplars,
        "questions": design.questions,
        "seed": seed,
    }
    one_by_one = scoring == "echo"
    costs = {
        "design": cost_of(design, prices, one_by_one),
        "paper": paper_cost(design, prices, one_by_one),
    }
    if dry_run:
        notes += design.notes
        if as_json:
            read = {
                **settings,
                "cost": {name: cost.to_dict() for name, cost in costs.items()},
                "answered": answered,
                "of_tasks": overview(design),
                "notes": notes,
                "example": example(design),
            }
            echo(json.dumps(read, ensure_ascii=False))
        else:
            echo(describe_cost(design, model, costs, scoring, answered))
            echo("\n" + describe_tasks(overview(design), notes, example(design)))
        return
    assert output is not None
    for note in notes:
        say(f"note: {note}")
    run = None
    if partial:
        if answers is None:
            raise TransferError(
                f"{output}: contains no answers", hint="measure first, without --partial"
            )
    elif answers is None or not answers.complete:
        if answered:
            say(left_to_ask(answered, len(design), costs["design"]))
        else:
            say(describe_cost(design, model, costs, scoring))
        written = metric == "exact-match"  # only this metric supports chat
        chats = written and (not local if chat is None else chat)
        asked: Model
        if local:
            from fewbench.runners.models.local import LocalModel

            asked = LocalModel(model, chat=chats)
        else:
            from fewbench.runners.models.endpoint import Endpoint

            asked = Endpoint(
                url or "",
                model,
                timeout=timeout,
                chat=chats,
                scoring=scoring,
                tries=retries,
                rate=rate,
            )
        with progress_bar("asking") as progress:
            answers, run = send_all(
                output,
                design,
                asked,
                prepared=lambda found: _say_if_one_by_one(found, scoring, design, prices),
                facts={"chat": "yes" if chats else "no"} if written else None,
                concurrency=concurrency,
                patience=patience,
                rate=rate,
                limits=limits,
                progress=progress,
                known=answers,
            )
    else:
        say(f"{output}: complete; no requests sent")
    _report(output, settings, answers, run, prices, as_json, partial)
    if not (answers.complete or partial):
        raise typer.Exit(STOPPED)


def _say_if_one_by_one(
    found: Mapping[str, str], scoring: str, design: "Design", prices: "Prices"
) -> None:
    """Print the cost again if the server needs one prompt per option."""
    from fewbench.transfer.cost import cost_of

    if scoring == "auto" and found.get("scoring") == "echo" and design.metric == "accuracy":
        cost = cost_of(design, prices, one_by_one=True)
        price = "" if cost.money is None else f", price about {cost.money:,.2f}"
        say(
            f"the server cannot list likely tokens, so each option needs a prompt: "
            f"{cost.requests:,} prompts, about {cost.tokens:,} tokens{price}"
        )


def _check_folder(output: Path, names: Sequence[str]) -> None:
    """Raise FewbenchError if the output is not writable, or the folder of the tasks."""
    check_output_folder(output)
    for name in names:
        kind, _, rest = name.partition(":")
        path = Path(rest.partition("@")[0] if kind == "inspect" else name)
        if kind == "lm-eval" or not path.exists():
            continue
        if (path if path.is_dir() else path.parent).resolve() == output.resolve():
            raise TransferError(
                f"{output} is the folder of the tasks ({name})", hint="name another folder with -o"
            )


def _number_or_all(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise TransferError(f"--questions is {text}", hint="use 1 or more, or all")
    return int(text)


def _columns_of(text: str) -> tuple[str, ...] | int | None:
    if text == "all":
        return None
    return int(text) if text.isdecimal() else tuple(split_names(text))


def _kept_answers(folder: Path, design: "Design", model: str) -> "Answers | None":
    """Return a folder's answers; TransferError if they are of another design."""
    from fewbench.transfer.journal import Header, check, kept_header, read

    header = kept_header(folder)
    if header is None:
        return None
    check(folder, Header.of(design, model, header.facts))
    with at_work("reading answers"):
        return read(folder, design)


def _report(
    folder: Path,
    settings: dict[str, Any],
    answers: "Answers",
    run: "Run | None",
    prices: "Prices",
    as_json: bool,
    partial: bool,
) -> None:
    from fewbench.cli.transfer_text import describe
    from fewbench.methods.tasks.transferability import MATRIX
    from fewbench.transfer.answers import notes_on, summary, transferability
    from fewbench.transfer.journal import kept_header

    notes = [*(run.notes if run is not None else ()), *notes_on(answers, partial=partial)]
    design = answers.design
    facts: dict[str, Any] = {
        **settings,
        "complete": answers.complete,
        "answers": answers.n_done,
        "asked": len(design),
        "tokens": {"prompt": answers.prompt, "completion": answers.completion},
        "spent": prices.of(answers.prompt, answers.completion),
        "run": None if run is None else vars(run),
        "notes": notes,
    }
    if answers.complete or partial:
        header = kept_header(folder)
        most = max(
            len(design.scored(at, seed)) for at in design.targets for seed in range(design.seeds)
        )
        about = {
            **{key: str(value) for key, value in settings.items()},
            **({} if header is None else header.facts),
            "date": datetime.now(UTC).date().isoformat(),
            "answers": f"{answers.n_done} of {len(design)}",
            "most questions": str(most),
            "notes": "\n".join(notes),
        }
        matrix = transferability(answers, about, partial=partial)
        facts["matrix"] = str(matrix.save(folder / MATRIX))
        facts |= summary(matrix)
    echo(json.dumps(facts, ensure_ascii=False) if as_json else describe(facts, folder))
