"""fewbench transfer: measure how tasks transfer to each other."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fewbench._progress import at_work, progress_bar
from fewbench._text import keep_secrets
from fewbench.cli.options import Json, Seed, group_of_commands, split_names
from fewbench.cli.outputs import check_output_folder
from fewbench.cli.text import echo, say
from fewbench.errors import TransferError

if TYPE_CHECKING:
    from fewbench.tasks.measurement.answers import Answers
    from fewbench.tasks.measurement.cost import Prices
    from fewbench.tasks.measurement.design import Design
    from fewbench.tasks.measurement.measuring import Run

STOPPED = 1  # exit code: a limit was reached
NAMES = ("pretrained", "model")
HOW = {  # arguments of lm-eval's models that do not change answers
    *("base_url", "num_concurrent", "max_retries", "timeout", "batch_size", "max_batch_size"),
    *(
        "device",
        "parallelize",
        "api_key",
        "token",
        "auth_token",
        "header",
        "verify_certificate",
        "ca_cert_path",
    ),
    *("tensor_parallel_size", "data_parallel_size", "gpu_memory_utilization"),
}

transfer = group_of_commands()


@transfer.callback()
def _all() -> None:
    """Measure how tasks transfer to each other (BenTo).

    \b
    See what it costs:     fewbench transfer measure tasks/ --model hf --dry-run
    Measure:               fewbench transfer measure tasks/ -o ict --model hf
                           --model_args pretrained=NAME
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
        str, typer.Option(help="lm-eval's kind of model: hf, vllm, local-completions, …")
    ],
    model_args: Annotated[
        str, typer.Option("--model_args", help="Its arguments, as pretrained=NAME,dtype=float32.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for the measurement.")
    ] = None,
    template: Annotated[
        str, typer.Option(help="Prompt template: mmlu, flan, or a .json or .toml file.")
    ] = "mmlu",
    metric: Annotated[
        Literal["accuracy", "loss", "exact-match"],
        typer.Option(help="Score of an answer, see above."),
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
    batch: Annotated[
        int,
        typer.Option(
            help="Questions per call of the model. If the process is killed, those in flight are "
            "asked again.",
            min=1,
        ),
    ] = 64,
    use_cache: Annotated[
        str | None,
        typer.Option("--use_cache", help="File in which lm-eval keeps each response."),
    ] = None,
    price_in: Annotated[
        float | None, typer.Option("--price-in", help="Price of a million prompt tokens.")
    ] = None,
    price_out: Annotated[
        float | None, typer.Option("--price-out", help="Price of a million completion tokens.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(help="Stop when this much is spent, over all runs.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Stop when this many tokens are used, over all runs.")
    ] = None,
    chat: Annotated[
        bool | None,
        typer.Option(
            "--apply_chat_template/--no_chat_template",
            help="Metric exact-match: ask as chat messages (default: models whose name has chat).",
        ),
    ] = None,
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

    Any model of lm-eval works. Prints the expected cost before sending requests. Saves every
    answer: rerun the command to resume. You can add seeds, questions or columns later.

    \b
    fewbench transfer measure tasks/ --model hf --dry-run
    fewbench transfer measure tasks/ -o ict --model hf --model_args pretrained=Qwen/Qwen3-0.6B
    fewbench transfer measure lm-eval:mmlu -o ict --columns 20 --model local-completions \\
        --model_args model=NAME,base_url=http://localhost:8000/v1/completions,num_concurrent=16
    fewbench transfer measure bbh/ -o ict --metric exact-match --template flan \\
        --model local-chat-completions --model_args model=NAME,base_url=URL

    \b
    Metrics (accuracy and loss need log-probabilities; of servers: completions with echo):
    accuracy     1 if the right letter is the most likely one; 1/n in a tie of n
    loss         mean log-probability of the right answer's tokens
    exact-match  1 if the text is the answer, up to case and spaces
    """
    from fewbench.cli.transfer_text import describe_cost, describe_tasks, left_to_ask
    from fewbench.tasks.measurement.answers import check_not_smaller
    from fewbench.tasks.measurement.cost import (
        Limits,
        Prices,
        cost_of,
        example,
        overview,
        paper_cost,
    )
    from fewbench.tasks.measurement.design import Design
    from fewbench.tasks.measurement.measuring import ONE_PROMPT
    from fewbench.tasks.measurement.measuring import measure as ask_all
    from fewbench.tasks.measurement.sources import passed_over, read_tasks
    from fewbench.tasks.measurement.templates import read_template
    from fewbench.tasks.transferability import MATRIX

    if output is not None:
        _check_folder(output, names)
    elif not dry_run:
        raise TransferError("no output folder", hint="give -o FOLDER, or --dry-run to see the cost")
    given = dict(part.partition("=")[::2] for part in model_args.split(",") if part)
    keep_secrets(given)
    name = next((given[key] for key in NAMES if given.get(key)), model)
    facts = {"lm-eval model": model}
    facts |= {f"model_args {key}": one for key, one in given.items() if key not in {*HOW, *NAMES}}
    chats = "chat" in model if chat is None else chat
    if metric == "exact-match":  # only this metric supports chat
        facts["chat"] = "yes" if chats else "no"
    prices = Prices(price_in, price_out)
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
        answers = _kept_answers(output, design, name, facts)
        check_not_smaller(output / MATRIX, design)
    answered = 0 if answers is None else answers.n_done
    settings: dict[str, Any] = {
        "model": name,
        "metric": metric,
        "template": template,
        "tasks": len(design.tasks),
        "columns": len(design.targets),
        "seeds": seeds,
        "exemplars": exemplars,
        "questions": design.questions,
        "seed": seed,
    }
    one_by_one = model not in ONE_PROMPT
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
            echo(describe_cost(design, name, costs, answered))
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
            say(describe_cost(design, name, costs))
        with at_work(f"loading {name}"):
            lm = _loaded(model, model_args, use_cache)
        with progress_bar("asking") as progress:
            answers, run = ask_all(
                output,
                design,
                lm,
                name,
                facts=facts,
                chat=chats,
                one_prompt=not one_by_one,
                batch=batch,
                limits=limits,
                progress=progress,
                known=answers,
            )
    else:
        say(f"{output}: complete; no requests sent")
    _report(output, settings, answers, run, prices, as_json, partial)
    if not (answers.complete or partial):
        raise typer.Exit(STOPPED)


def _loaded(model: str, model_args: str, use_cache: str | None) -> Any:
    """Return a model of lm-eval, with its cache; RunError if lm-eval cannot make it."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # fewbench shows the progress
    from fewbench.runners.lm_eval_setup import Setup, cached, check_installed, make_model

    check_installed()
    parse = import_module("lm_eval.utils").simple_parse_args_string
    setup = Setup(model=model, model_args=parse(model_args), use_cache=use_cache)
    return cached(make_model(setup), setup)


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


def _kept_answers(
    folder: Path, design: "Design", name: str, facts: dict[str, str]
) -> "Answers | None":
    """Return a folder's answers; TransferError if they are of another design."""
    from fewbench.tasks.measurement.journal import Header, check, kept_header, read

    header = kept_header(folder)
    if header is None:
        return None
    check(folder, Header.of(design, name, facts))
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
    from fewbench.tasks.measurement.answers import notes_on, summary, transferability
    from fewbench.tasks.measurement.journal import kept_header
    from fewbench.tasks.transferability import MATRIX

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
