"""From answers to a matrix of transferability."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._names import counted, some
from fewbench._types import FloatArray
from fewbench.errors import FewbenchError, TransferError
from fewbench.methods.tasks import Transferability
from fewbench.transfer.answers import EMPTY, NOT_LISTED, OPEN, TOO_LONG, Answers
from fewbench.transfer.design import Design

GUESSING = 0.05  # less than this share of what lies between guessing and all right is guessing


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
            hint="go on with fewbench transfer measure, or take what there is with --partial",
        )
    values, long = _means(answers), answers.count(TOO_LONG)
    if not np.isfinite(values).any():
        raise TransferError(
            "no question has an answer with a score"
            + (f": {_long(long)} into the model's context" if long else ""),
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


def _long(number: int) -> str:
    return f"{counted(number, 'prompt')} {'does' if number == 1 else 'do'} not fit"


def _means(answers: Answers) -> FloatArray:
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


def notes_on(answers: Answers, *, partial: bool = False) -> list[str]:
    """Return what was peculiar in the draws and the answers, in words; of a part, what it lacks."""
    design = answers.design
    notes = list(design.notes)
    if long := answers.count(TOO_LONG):
        sources = _where(answers, TOO_LONG)
        notes.append(
            f"{_long(long)} into the model's context and {'is' if long == 1 else 'are'} left out "
            f"of the means, behind exemplars of {some(sources)}"
        )
    if unlisted := answers.count(NOT_LISTED):
        said = "names none" if unlisted == 1 else "name none"
        notes.append(
            f"{counted(unlisted, 'answer')} {said} of the options and "
            f"{'counts' if unlisted == 1 else 'count'} as wrong, behind "
            f"exemplars of {some(_where(answers, NOT_LISTED))}"
        )
    if empty := answers.count(EMPTY):
        said = "is empty and counts" if empty == 1 else "are empty and count"
        notes.append(
            f"{counted(empty, 'answer')} {said} as wrong, behind exemplars of "
            f"{some(_where(answers, EMPTY))}"
        )
    if partial and (missing := answers.count(OPEN)):
        notes.append(f"{counted(missing, 'answer')} of {len(design):,} missing")
    if not (partial or answers.complete):
        return notes
    notes += _at_guessing_level(answers)
    if lacking := int(np.isnan(_means(answers)).sum()):
        entries = "entry has" if lacking == 1 else "entries have"
        notes.append(f"{lacking:,} {entries} no score at all (of a seed, a source and a target)")
    return notes


def _at_guessing_level(answers: Answers) -> list[str]:
    """Say where the model does no better than guessing: exemplars then make no difference."""
    design = answers.design
    if design.metric == "loss":
        return []
    right, guessed, asked = np.zeros((3, len(design.targets)))
    distinct = np.zeros(len(design.targets))
    for at, target in enumerate(design.targets):
        questions = design.tasks[target].questions
        drawn = [design.scored(target, seed) for seed in range(design.seeds)]
        distinct[at] = len(np.unique(np.concatenate(drawn)))
        for seed, (row, starts) in enumerate(_rows(answers, answers.values)):
            found = row[:, starts[at] : starts[at] + len(drawn[seed])]
            options = np.array([len(questions[q].options) for q in drawn[seed]])
            chance = np.where(options > 0, 1.0 / np.maximum(options, 1), 0.0)
            known = np.isfinite(found)
            right[at] += np.where(known, found, 0.0).sum()
            guessed[at] += (known * chance).sum()
            asked[at] += known.sum()
    if not asked.sum():
        return []
    level = guessed / np.maximum(asked, 1)
    low = _is_guessing(right / np.maximum(asked, 1), level, distinct) & (asked > 0)
    mean, chance = right.sum() / asked.sum(), guessed.sum() / asked.sum()
    if _is_guessing(mean, chance, distinct.sum()):
        return [
            f"the model answers {mean:.1%} right, and guessing {chance:.1%}: the matrix says "
            "little of what tasks help; measure a stronger model, or its loss (--metric loss)"
        ]
    if 2 * low.sum() >= len(low):
        names = [design.names[target] for target, guesses in zip(design.targets, low, strict=True)
                 if guesses]  # fmt: skip
        return [
            f"the model is at guessing level on {low.sum()} of {len(low)} targets: {some(names)}; "
            "what these say of sources is noise"
        ]
    return []


def _is_guessing(mean: Any, chance: Any, questions: Any) -> Any:
    """Whether a mean score is within two standard errors of guessing, or hardly above it."""
    error = 2.0 * np.sqrt(chance * (1.0 - chance) / np.maximum(questions, 1))
    return mean < chance + np.maximum(error, GUESSING * (1.0 - chance))


def summary(matrix: Transferability) -> dict[str, Any]:
    """Return the mean score, and the source behind which it is highest.

    Examples
    --------
    >>> values = np.array([[[0.5, 0.0], [1.0, 0.5]]])
    >>> summary(Transferability(values, ("a", "b"), ("a", "b"), np.ones(2, int)))
    {'mean': 0.5, 'strongest_source': 'b', 'strongest_mean': 0.75}
    """
    scored = np.isfinite(matrix.values)
    sums = np.where(scored, matrix.values, 0.0).sum(axis=(0, 2))
    means = sums / np.maximum(scored.sum(axis=(0, 2)), 1)
    means[~scored.any(axis=(0, 2))] = -np.inf
    best = int(means.argmax())
    return {
        "mean": float(matrix.values[scored].mean()),
        "strongest_source": matrix.tasks[best],
        "strongest_mean": float(means[best]),
    }


def check_not_smaller(kept: Path, design: Design) -> None:
    """Raise TransferError if a matrix that was kept has more than a design would give.

    It has if it has more seeds, other targets, or more questions of a target.
    """
    if not kept.exists():
        return
    try:
        matrix = Transferability.load(kept)
    except FewbenchError:
        return  # it is no matrix, and is written anew
    asked = [
        max(len(design.scored(at, seed)) for seed in range(design.seeds)) for at in design.targets
    ]
    most = matrix.about.get("most questions", "")
    wider = set(matrix.targets) - {design.names[at] for at in design.targets}
    deeper = most.isdecimal() and int(most) > max(asked)
    if matrix.n_seeds > design.seeds or wider or deeper:
        questions = f", up to {counted(int(most), 'question')}" if most.isdecimal() else ""
        raise TransferError(
            f"{kept} has more than is asked for now: {counted(matrix.n_seeds, 'seed')}, "
            f"{counted(len(matrix.targets), 'target')}{questions}",
            hint="choose another folder with -o, ask for no less, or move that file away: its "
            "answers stay in the folder",
        )


def _where(answers: Answers, state: int) -> list[str]:
    """Return the sources behind which a state occurs, most often first."""
    numbers = sum((row == state).sum(axis=1) for row, _ in _rows(answers, answers.states))
    order = np.argsort(-np.asarray(numbers), kind="stable")
    return [answers.design.names[at] for at in order if np.asarray(numbers)[at]]
