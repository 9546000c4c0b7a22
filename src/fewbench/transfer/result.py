"""From answers to a matrix of transferability."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._names import some
from fewbench.errors import TransferError
from fewbench.methods.tasks import Transferability
from fewbench.transfer.answers import NOT_LISTED, TOO_LONG, Answers


def transferability(
    answers: Answers, about: Mapping[str, str] | None = None, *, partial: bool = False
) -> Transferability:
    """Return the means over questions, of each seed, source and target (Eq. 1).

    Prompts that did not fit into the model's context are left out of the means.

    Parameters
    ----------
    answers : Answers
    about : mapping of str to str, optional
        Facts to keep with the matrix.
    partial : bool
        Whether a measurement that is not complete will do: what was not answered is left out.

    Raises
    ------
    TransferError
        If answers are missing, or there is none at all.
    """
    design = answers.design
    if not (partial or answers.complete):
        raise TransferError(
            f"{answers.n_done:,} of {len(design):,} answers are there",
            hint="go on with fewbench transfer measure",
        )
    values = _means(answers)
    if not np.isfinite(values).any():
        raise TransferError(
            "no question has an answer with a score" + _why(answers),
            hint="use fewer exemplars, or a model with a longer context",
        )
    return Transferability(
        values,
        design.names,
        tuple(design.names[at] for at in design.targets),
        design.n_questions,
        design.metric,
        dict(about or {}),
    )


def _why(answers: Answers) -> str:
    long = answers.count(TOO_LONG)
    return f": {long:,} prompts do not fit into the model's context" if long else ""


def _means(answers: Answers) -> NDArray[np.float64]:
    """Return means, seeds × sources × targets; NaN where nothing has a score."""
    design = answers.design
    means = []
    for row, starts in _rows(answers, answers.values):
        scored = np.isfinite(row)
        numbers = np.add.reduceat(scored, starts, axis=1, dtype=np.intp)
        sums = np.add.reduceat(np.where(scored, row, 0.0), starts, axis=1)
        means.append(np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan))
    return np.array(means).reshape(design.seeds, len(design.tasks), len(design.targets))


def _rows(answers: Answers, of: NDArray[Any]) -> list[tuple[NDArray[Any], list[int]]]:
    """Return, of each seed, sources × questions, and where each target's questions start."""
    design, found = answers.design, []
    for seed in range(design.seeds):
        starts = [design.first(seed, 0, target) for target in design.targets]
        width = design.first(seed, 1, design.targets[0]) - starts[0]
        row = of[starts[0] : starts[0] + width * len(design.tasks)]
        found.append((row.reshape(len(design.tasks), width), [at - starts[0] for at in starts]))
    return found


def notes_on(answers: Answers) -> list[str]:
    """Return what was peculiar in the draws and the answers, in words."""
    design = answers.design
    notes = list(design.notes)
    if long := answers.count(TOO_LONG):
        sources = _where(answers, TOO_LONG)
        notes.append(
            f"{long:,} prompts do not fit into the model's context and are left out of the "
            f"means, behind exemplars of {some(sources)}"
        )
        pairs = int(np.isnan(_means(answers)).sum()) if answers.complete else 0
        if pairs:
            notes.append(f"{pairs:,} of seed, source and target have no score at all")
    if unlisted := answers.count(NOT_LISTED):
        notes.append(
            f"{unlisted:,} answers name none of the options and count as wrong, behind "
            f"exemplars of {some(_where(answers, NOT_LISTED))}"
        )
    return notes


def _where(answers: Answers, state: int) -> list[str]:
    """Return the sources behind which a state occurs, most often first."""
    numbers = sum((row == state).sum(axis=1) for row, _ in _rows(answers, answers.states))
    order = np.argsort(-np.asarray(numbers), kind="stable")
    return [answers.design.names[at] for at in order if np.asarray(numbers)[at]]
