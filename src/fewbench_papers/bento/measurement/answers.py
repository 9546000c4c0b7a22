"""The answers of a measurement: by their place, and as a matrix of transferability."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import FewbenchError, TransferError
from fewbench.support import FloatArray, counted, some
from fewbench_papers.bento.measurement.design import Design, Request
from fewbench_papers.bento.transferability import Transferability

OPEN, ANSWERED, NOT_LISTED, TOO_LONG, EMPTY = range(5)
GUESSING = 0.05  # a score above chance by less than this share of the way to 1 is guessing


@dataclass(frozen=True)
class MeasuredAnswer:
    """A scored answer.

    Parameters
    ----------
    value : float or None
        The score in the metric, or None if the prompt did not fit into the model's context.
    said : str or None
        The chosen letter or the written text, or None if no option is likely at all, or for a loss.
    prompt, completion : int
        Tokens read and written, estimated if the model has no tokenizer.
    """

    value: float | None
    said: str | None
    prompt: int = 0
    completion: int = 0


class MeasuredAnswers:
    """Answers to a design's requests.

    Attributes
    ----------
    values : ndarray of float, shape (requests,)
        Scores (NaN where missing).
    states : ndarray of int, shape (requests,)
        OPEN, ANSWERED, NOT_LISTED (a choice that named no option, scored 0), EMPTY (nothing was
        written, scored 0) or TOO_LONG.
    prompt, completion : int
        Tokens used, including those for answers that the design no longer needs.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.values: FloatArray = np.full(len(design), np.nan)
        self.states: NDArray[np.int8] = np.zeros(len(design), dtype=np.int8)
        self.prompt = self.completion = 0

    @property
    def n_done(self) -> int:
        """Number of requests that need not be sent."""
        return int(np.count_nonzero(self.states))

    @property
    def complete(self) -> bool:
        """Whether nothing is left to ask."""
        return self.n_done == len(self.states)

    def pending(self) -> Iterable[Request]:
        """Yield the requests that are still open, in order."""
        return map(self.design.request, np.flatnonzero(self.states == OPEN).tolist())

    def count(self, state: int) -> int:
        """Return how many requests are in a state."""
        return int(np.count_nonzero(self.states == state))

    def keep(self, place: int, answer: MeasuredAnswer) -> None:
        """Record the answer to the request at a place."""
        state, metric = ANSWERED, self.design.metric
        if answer.value is None:
            state = TOO_LONG
        elif metric == "accuracy" and answer.said is None:
            state = NOT_LISTED
        elif metric == "exact-match" and not (answer.said or "").strip():
            state = EMPTY
        self.states[place] = state
        self.values[place] = np.nan if answer.value is None else answer.value

    def add(self, request: Request, answer: MeasuredAnswer) -> None:
        """Record a new answer and its tokens."""
        self.keep(request.place, answer)
        self.prompt += answer.prompt
        self.completion += answer.completion

    def rows(self, values: NDArray[Any]) -> list[tuple[NDArray[Any], list[int]]]:
        """Return for each seed (sources × questions, start of each target's questions)."""
        design, rows = self.design, []
        for seed in range(design.seeds):
            starts = [design.first(seed, 0, target) for target in design.targets]
            width = design.first(seed, 1, design.targets[0]) - starts[0]
            row = values[starts[0] : starts[0] + width * len(design.tasks)]
            rows.append((row.reshape(len(design.tasks), width), [at - starts[0] for at in starts]))
        return rows

    def means(self) -> FloatArray:
        """Return means over questions, seeds × sources × targets, NaN without any score."""
        means = []
        for row, starts in self.rows(self.values):
            scored = np.isfinite(row)
            numbers = np.add.reduceat(scored, starts, axis=1, dtype=np.intp)
            sums = np.add.reduceat(np.where(scored, row, 0.0), starts, axis=1)
            means.append(np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan))
        return np.array(means)


def transferability(
    answers: MeasuredAnswers, about: Mapping[str, str] | None = None
) -> Transferability:
    """Return the mean over questions for each seed, source and target (Eq. 1).

    Open requests and prompts that did not fit into the model's context are left out of the means.

    Parameters
    ----------
    answers : MeasuredAnswers
    about : mapping of str to str, optional
        Facts to keep with the matrix.

    Raises
    ------
    TransferError
        If no answer has a score.
    """
    design = answers.design
    values, long = answers.means(), answers.count(TOO_LONG)
    if not np.isfinite(values).any():
        raise TransferError(
            "no question has an answer with a score"
            + (f": {_do_not_fit(long)} into the model's context" if long else ""),
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


def _do_not_fit(number: int) -> str:
    return f"{counted(number, 'prompt')} {'does' if number == 1 else 'do'} not fit"


def notes_on(answers: MeasuredAnswers, *, partial: bool = False) -> list[str]:
    """Return notes on the draws and answers that affect the matrix."""
    design = answers.design
    notes = list(design.notes)
    if long := answers.count(TOO_LONG):
        notes.append(
            f"{_do_not_fit(long)} into the model's context and {'is' if long == 1 else 'are'} left "
            f"out of the means, with exemplars of {_sources(answers, TOO_LONG)}"
        )
    for state, singular, plural in (
        (NOT_LISTED, "names none of the options and counts", "name none of the options and count"),
        (EMPTY, "is empty and counts", "are empty and count"),
    ):
        if number := answers.count(state):
            notes.append(
                f"{counted(number, 'answer')} {singular if number == 1 else plural} as wrong, with "
                f"exemplars of {_sources(answers, state)}"
            )
    if partial and (missing := answers.count(OPEN)):
        notes.append(f"{counted(missing, 'answer')} of {len(design):,} missing")
    if not (partial or answers.complete):
        return notes
    notes += guesses(answers)
    if lacking := int(np.isnan(answers.means()).sum()):
        entries = "entry of the matrix has" if lacking == 1 else "entries of the matrix have"
        notes.append(f"{lacking:,} {entries} no score (an entry is a seed, source and target)")
    return notes


def guesses(answers: MeasuredAnswers) -> list[str]:
    """Return a note if the model only guesses: exemplars then make no difference."""
    design = answers.design
    if design.metric == "loss":
        return []
    right, guessed, asked, distinct = np.zeros((4, len(design.targets)))
    rows = answers.rows(answers.values)
    for at, target in enumerate(design.targets):
        questions = design.tasks[target].questions
        drawn = [design.scored(target, seed) for seed in range(design.seeds)]
        distinct[at] = len(np.unique(np.concatenate(drawn)))
        for of_seed, (row, starts) in zip(drawn, rows, strict=True):
            scores = row[:, starts[at] : starts[at] + len(of_seed)]
            options = np.array([len(questions[q].options) for q in of_seed])
            chance = np.where(options > 0, 1.0 / np.maximum(options, 1), 0.0)
            scored = np.isfinite(scores)
            right[at] += np.where(scored, scores, 0.0).sum()
            guessed[at] += (scored * chance).sum()
            asked[at] += scored.sum()
    if not asked.sum():
        return []
    level = guessed / np.maximum(asked, 1)
    low = _is_guessing(right / np.maximum(asked, 1), level, distinct) & (asked > 0)
    mean, chance = right.sum() / asked.sum(), guessed.sum() / asked.sum()
    if _is_guessing(mean, chance, distinct.sum()):
        return [
            f"the model answers {mean:.1%} right, and guessing {chance:.1%}: the matrix hardly "
            "shows which tasks help; measure a stronger model, or its loss (--metric loss)"
        ]
    if 2 * low.sum() >= len(low):
        names = some(design.names[design.targets[at]] for at in np.flatnonzero(low))
        return [
            f"the model is at guessing level on {low.sum()} of {len(low)} targets: {names}; "
            "differences between sources are noise there"
        ]
    return []


def _is_guessing(mean: Any, chance: Any, questions: Any) -> Any:
    """Whether a mean is within two standard errors of chance, or hardly above it."""
    error = 2.0 * np.sqrt(chance * (1.0 - chance) / np.maximum(questions, 1))
    return mean < chance + np.maximum(error, GUESSING * (1.0 - chance))


def _sources(answers: MeasuredAnswers, state: int) -> str:
    """Return the sources whose exemplars led to a state, the most frequent first."""
    numbers = np.sum([(row == state).sum(axis=1) for row, _ in answers.rows(answers.states)], 0)
    order = np.argsort(-numbers, kind="stable")
    return some(answers.design.names[at] for at in order if numbers[at])


def check_not_smaller(kept: Path, design: Design) -> None:
    """Raise TransferError if a saved matrix has more seeds, targets or questions than a design."""
    if not kept.exists():
        return
    try:
        matrix = Transferability.load(kept)
    except FewbenchError:
        return  # not a matrix; it is replaced
    drawn = [len(design.scored(at, seed)) for at in design.targets for seed in range(design.seeds)]
    most = matrix.about.get("most questions", "")
    wider = set(matrix.targets) - {design.names[at] for at in design.targets}
    deeper = most.isdecimal() and int(most) > max(drawn)
    if matrix.n_seeds > design.seeds or wider or deeper:
        questions = f", up to {counted(int(most), 'question')}" if most.isdecimal() else ""
        raise TransferError(
            f"{kept} holds more than this run would measure: {counted(matrix.n_seeds, 'seed')}, "
            f"{counted(len(matrix.targets), 'target')}{questions}",
            hint="choose another folder with -o, ask for at least as much, or pass --force to "
            "replace it (its answers stay in the folder)",
        )
