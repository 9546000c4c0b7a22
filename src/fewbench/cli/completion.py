"""What a shell completes: methods, splits, metrics, runs and targets."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args


def _last(incomplete: str, names: Iterable[str]) -> list[str]:
    """Complete the last of several comma-separated names."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


def methods(incomplete: str) -> list[str]:
    """Complete names of methods; where none begins so, those that a published name means.

    Not those that need a file, whose names alone are refused.

    Examples
    --------
    >>> methods("random,tailored-"), methods("DISC")[0]
    (['random,tailored-as-printed'], 'disco-pds-rf')
    """
    from fewbench.methods.base import AUTO
    from fewbench.methods.catalogue import CATALOGUE, published_as

    before, comma, last = incomplete.rpartition(",")
    meant = [name for name in published_as(last) if name in CATALOGUE]
    return _last(incomplete, (AUTO, *CATALOGUE)) or [f"{before}{comma}{name}" for name in meant]


def splits(incomplete: str) -> list[str]:
    """Complete kinds of splits."""
    from fewbench.study.splits import Kind

    return _last(incomplete, get_args(Kind))


def metrics(incomplete: str) -> list[str]:
    """Complete metrics that many logs have."""
    from fewbench.readers.options import COMPARED

    return _last(incomplete, (*COMPARED, "exact_match"))


def runs(incomplete: str) -> list[str]:
    """Complete folders of evaluations; after DIR:, the targets of one."""
    folder, colon, start = incomplete.rpartition(":")
    if colon:
        return [f"{folder}:{name}" for name in _targets_of(folder) if name.startswith(start)]
    from fewbench.evaluation.journal import HEADER

    parent = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    folders = sorted(str(path.parent) for path in parent.glob(f"*/{HEADER}"))
    return [path for path in folders if path.startswith(incomplete)]


def targets(ctx: Any, incomplete: str) -> list[str]:
    """Complete targets of the run that the command names, as its folder or its output."""
    folder = ctx.params.get("folder") or ctx.params.get("output")
    folder = folder or next(iter(ctx.args), None)  # before an option that still has no value
    return [name for name in _targets_of(folder) if name.startswith(incomplete)] if folder else []


def _targets_of(folder: str) -> list[str]:
    from fewbench.errors import EvaluationError
    from fewbench.evaluation.journal import Journal, targets_of

    journal = Journal(Path(folder))
    try:
        return list(targets_of(journal.header(), journal.fresh()))
    except (OSError, EvaluationError):
        return []


BY_NAME = {
    "method": methods, "methods": methods, "split": splits, "metric": metrics,
    "a": runs, "b": runs, "target": runs, "not_below": runs, "evaluations": runs, "runs": runs,
    "checkpoints": runs,
}  # fmt: skip
"""Completion of parameters of functions that commands are made from."""
