"""fewbench transfer: measure how tasks transfer to each other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fewbench.cli.commands import Call, command
from fewbench.cli.documented import documented
from fewbench.cli.help import Commands
from fewbench.cli.outputs import check_output_folder
from fewbench.errors import TransferError
from fewbench.show.page import as_text
from fewbench.support import counted, echo, say, say_note, some, split_names
from fewbench_papers.bento.measurement import Measurement, expected_cost, measure
from fewbench_papers.bento.measurement.journal import repair_measurement
from fewbench_papers.bento.measurement.sources import FORMS, passed_over, read_tasks
from fewbench_papers.bento.measurement.templates import Template, read_template

transfer = Commands()


@transfer.callback()
def _all() -> None:
    """Measure how tasks transfer to each other (BenTo).

    \b
    See what it costs:     fewbench transfer measure tasks/ --model hf --dry-run
    Measure:               fewbench transfer measure tasks/ -o ict --model hf
                           --model_args pretrained=NAME
    Choose tasks by it:    fewbench tasks select ict -k 3
    """


def _measure(call: Call, *, include_path: Path | None = None, dry_run: bool = False) -> Measurement:
    """Say the cost first.

    Parameters
    ----------
    include_path
        lm-eval: folder with further tasks.
    dry_run
        Print tasks, one prompt and the expected cost; send no requests.
    """
    output, names = call.given["output"], call.given["tasks"]
    if output is not None:
        _check_folder(output, names)
    elif not dry_run:
        raise TransferError("no output folder", hint="give -o FOLDER, or --dry-run to see the cost")
    for note in passed_over(names):
        say_note(note)

    def say_cost(start: Measurement) -> None:
        if start.answers.complete:
            say(f"{output}: complete; no requests sent")
        elif not call.given["partial"]:
            page = start.page()
            is_new = not start.answers.n_done
            say(as_text(replace(page, sections=page.sections[:1])) if is_new else start.left)

    if dry_run:
        words = call.arguments()
        prices = words["limits"].prices
        return expected_cost(words["design"], words["model"], prices, output)
    measurement: Measurement = call(on_start=say_cost)
    return measurement


def _check_folder(output: Path, names: list[str]) -> None:
    """Raise FewbenchError if the output is not writable, or the folder of the tasks."""
    check_output_folder(output)
    for name in names:
        kind, _, rest = name.partition(":")
        path = Path(rest.partition("@")[0] if kind == "inspect" else name)
        if kind == "lm-eval" or not path.exists():
            continue
        if (path if path.is_dir() else path.parent).resolve() == output.resolve():
            raise TransferError(
                f"{output} is the folder of the tasks ({name})",
                hint="name another folder with -o",
                kind="taken",
            )


def _template_of(_: Call, name: str) -> Template:
    return read_template(name)


def _number_or_all(_: Call, text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise TransferError(f"--questions is {text}", hint="use 1 or more, or all")
    return int(text)


def _columns_of(_: Call, text: str) -> tuple[str, ...] | int | None:
    if text == "all":
        return None
    return int(text) if text.isdecimal() else tuple(split_names(text))


def _tasks_of(call: Call, names: list[str]) -> Any:
    return tuple(read_tasks(names, include_path=call.given["include_path"]))


transfer.command("measure")(
    command(
        measure,
        work="asking",
        groups=["design", "model", "limits", "prices"],
        hidden=["sets", "on_start"],
        read={
            "tasks": (list[str], _tasks_of, f"Written as {FORMS}."),
            "output": (Path | None, lambda _, folder: folder, ""),
            "template": (str | None, _template_of, "Or a .json or .toml file."),
            "questions": (str | None, _number_or_all, ""),
            "columns": (str | None, _columns_of, "Comma-separated."),
        },
        flags={
            "model": "--model",
            "model_args": "--model_args",
            "use_cache": "--use_cache",
            "chat": "--apply_chat_template/--no_chat_template",
            "tokens": "--max-tokens",
            "money": "--max-cost",
            "prompt": "--price-in",
            "completion": "--price-out",
        },
        around=_measure,
        examples="""
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
""",
    )
)


def repair(folder: Path) -> None:
    """Drop damaged answers of a measurement, whose questions then run again.

    Prints the numbers of the lines, and keeps the damaged file as answers.jsonl.damaged.

    \b
    fewbench transfer repair ict

    Parameters
    ----------
    folder
        Folder of the measurement.
    """
    dropped = repair_measurement(folder)
    if dropped:
        echo(
            f"{folder}: dropped {counted(len(dropped), 'damaged line')} (line "
            f"{some(dropped, 20, quotes=False)}); the damaged file is answers.jsonl.damaged. Rerun "
            "fewbench transfer measure to ask these questions again."
        )
    else:
        echo(f"{folder}: nothing is damaged")


transfer.command("repair")(documented(repair))
