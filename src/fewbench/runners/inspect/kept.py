"""Logs that runs in Inspect leave: read again after a crash, deleted if nobody can read them."""

import logging
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from fewbench.readers.harnesses.inspect_logs.header import MARK

LOG = logging.getLogger(__name__)


def kept_logs(folder: Path) -> Iterator[tuple[Path, Any, list[Any]]]:
    """Yield the logs that fewbench's runs wrote, with header and summaries of samples."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

    for path in sorted([*folder.glob("*.eval"), *folder.glob("*.json")]):
        try:
            header = read_eval_log(str(path), header_only=True)
            if MARK in (header.eval.metadata or {}):
                yield path, header, read_eval_log_sample_summaries(str(path))
        except Exception as error:  # of zip, zstd, JSON and pydantic: the log of a killed run
            LOG.warning("%s cannot be read (%s); its samples run again", path, error)


def close_logs(folder: Path, evals: Container[str]) -> str | None:
    """Return why evals (by id) ended early: "" if they were interrupted, None if they did not.

    Deletes logs of stopped runs in which no sample was scored: nothing can read them.
    """
    why: str | None = None
    for path, header, summaries in kept_logs(folder):
        if header.eval.eval_id in evals and header.status != "success":
            error = getattr(header.error, "message", None)
            why = f"{header.eval.task}: {first_of(error)}" if error else why or ""
        is_stopped = header.status in ("started", "cancelled") or not summaries
        if is_stopped and not any(one.scores for one in summaries):
            path.unlink()
    return why


def first_of(text: str) -> str:
    """Return the first line of a text."""
    return (text.strip().splitlines() or [""])[0]
