"""Logs as Inspect's own reader gives them: the cheapest part that says enough."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from fewbench.errors import MissingExtraError, ReaderError, first_line

# Of whole samples, what may be large and is not needed.
UNREAD = frozenset({"messages", "events", "store", "attachments"})
CHOICES_SINCE = (0, 3, 200)  # summaries of older versions lack the choices
CUT = ("...\n(content truncated)", "(Image)", "(Audio)", "(Video)", "(Data)", "(Document)")
REMOVED, SHORTENED = "Key removed from summary (> 1k)", 1000


@dataclass(frozen=True)
class Log:
    """A log: its header, and its samples as summaries or whole."""

    header: Any
    samples: Sequence[Any]


def read_log(path: Path, key: str | None = None) -> Log:
    """Read a log: the header and summaries if they say enough, else whole samples.

    Parameters
    ----------
    path : Path
    key : str, optional
        A field of the samples' metadata that is needed whole.

    Raises
    ------
    MissingExtraError
        If Inspect is not installed.
    ReaderError
        If the log is torn or not Inspect's.
    """
    try:
        inspect_log = import_module("inspect_ai.log")
    except ImportError as error:
        raise MissingExtraError(
            "logs of Inspect are read with inspect-ai, which is not installed",
            hint="pip install 'fewbench[inspect]'",
        ) from error
    try:
        if path.suffix == ".json":
            log = inspect_log.read_eval_log(str(path))
            return Log(log, log.samples or [])
        header = inspect_log.read_eval_log(str(path), header_only=True)
        summaries = inspect_log.read_eval_log_sample_summaries(str(path))
        if not _needs_samples(header, summaries, key):
            return Log(header, summaries)
        read = inspect_log.read_eval_log
        sparing = "exclude_fields" in signature(read).parameters  # not in 0.3.200
        whole = read(str(path), **({"exclude_fields": set(UNREAD)} if sparing else {}))
        return Log(header, whole.samples or [])
    except Exception as error:  # of zip, zstd, JSON and pydantic, by version
        raise ReaderError(
            f"{path}: not a whole log of Inspect ({type(error).__name__}: {first_line(error)})",
            hint="copy it again; if a newer Inspect wrote it, update inspect-ai",
        ) from error


def has_logprobs(header: Any) -> bool:
    """Whether the model was asked for the probabilities of its words."""
    asked = (header.plan.config, header.eval.model_generate_config)
    return any(one is not None and one.logprobs for one in asked)


def _needs_samples(header: Any, summaries: Sequence[Any], key: str | None) -> bool:
    if has_logprobs(header) and any(one.choices for one in summaries):
        return True
    if _version(header) < CHOICES_SINCE:
        return True
    texts = [text for one in summaries for text in (*_texts(one.input), *_texts(one.target))]
    if any(text.endswith(CUT) for text in texts):
        return True
    return key not in (None, "id", "input") and any(
        value is None or value == REMOVED or (isinstance(value, str) and len(value) > SHORTENED)
        for value in (one.metadata.get(key) for one in summaries)
    )


def _texts(said: Any) -> list[str]:
    """Return the texts of an input or target, as summaries have them."""
    if isinstance(said, str):
        return [said]
    found = []
    for one in said:
        content = one if isinstance(one, str) else one.content
        parts = [content] if isinstance(content, str) else content
        found += [part if isinstance(part, str) else getattr(part, "text", "") for part in parts]
    return found


def _version(header: Any) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", str(header.eval.packages.get("inspect_ai", "")))
    return tuple(int(number) for number in numbers[:3])
