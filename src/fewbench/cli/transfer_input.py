"""What fewbench transfer measure is told: read, and checked before anything is asked."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fewbench.cli.options import split_names
from fewbench.cli.outputs import check_output_folder
from fewbench.cli.progress import at_work
from fewbench.errors import TransferError

if TYPE_CHECKING:
    from fewbench.runners.models.model import Model
    from fewbench.transfer.answers import Answers
    from fewbench.transfer.design import Design

WAYS = ("auto", "top", "echo")


def check_ways(metric: str, scoring: str) -> None:
    """Raise TransferError if a metric or a way of scoring is unknown, or they do not fit."""
    from fewbench.transfer.design import METRICS

    if metric not in METRICS:
        raise TransferError(f"unknown metric {metric!r}", hint=f"one of {', '.join(METRICS)}")
    if scoring not in WAYS:
        raise TransferError(f"unknown scoring {scoring!r}", hint=f"one of {', '.join(WAYS)}")
    if metric == "loss" and scoring == "top":
        raise TransferError(
            "--metric loss with --scoring top: a loss is read from given text",
            hint="--scoring echo, or auto",
        )


def check_ends(
    names: Sequence[str],
    output: Path | None,
    url: str | None,
    local: bool,
    *,
    asking: bool,
    dry_run: bool,
) -> None:
    """Raise TransferError if there is nowhere to write, or no model where one is asked."""
    if output is None and not dry_run:
        raise TransferError(
            "no folder to keep answers in", hint="give -o FOLDER, or --dry-run to see the cost"
        )
    if asking and local == (url is not None):
        raise TransferError(
            "a server and a local model" if local else "no server and no local model",
            hint="give --url http://HOST:PORT/v1 or --local",
        )
    if output is None:
        return
    check_output_folder(output)
    for name in names:
        kind, _, rest = name.partition(":")
        path = Path(rest.partition("@")[0] if kind == "inspect" else name)
        if kind == "lm-eval" or not path.exists():
            continue
        if (path if path.is_dir() else path.parent).resolve() == output.resolve():
            raise TransferError(
                f"-o {output}: the folder that the tasks are read from ({name})",
                hint="keep the measurement in a folder of its own",
            )


def number_or_all(text: str) -> int | None:
    """Read --questions: None for all."""
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise TransferError(f"--questions {text}", hint="1 or more, or all")
    return int(text)


def columns_of(text: str) -> tuple[str, ...] | int | None:
    """Read --columns: None for all, a number, or names."""
    if text == "all":
        return None
    return int(text) if text.isdecimal() else tuple(split_names(text))


def model_of(
    name: str,
    url: str | None,
    local: bool,
    timeout: float,
    chat: bool,
    scoring: str,
    tries: int,
    rate: float | None,
) -> "Model":
    """Return the model that is asked."""
    if local:
        from fewbench.runners.models.local import LocalModel

        return LocalModel(name, chat=chat)
    from fewbench.runners.models.endpoint import Endpoint

    way: Literal["auto", "top", "echo"] = scoring  # type: ignore[assignment]
    return Endpoint(
        url or "", name, timeout=timeout, chat=chat, scoring=way, tries=tries, rate=rate
    )


def kept_answers(folder: Path, design: "Design", model: str) -> "Answers | None":
    """Return the answers to a design in a folder; TransferError if they are to another."""
    from fewbench.transfer.journal import Header, check, kept_header, read

    header = kept_header(folder)
    if header is None:
        return None
    # how the server is asked is found out only where it is asked
    check(folder, Header.of(design, model, header.facts))
    with at_work("reading answers"):
        return read(folder, design)
