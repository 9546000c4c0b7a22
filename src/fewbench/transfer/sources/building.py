"""What all sources share: which option is right, and building tasks with errors that say where."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from fewbench._names import some
from fewbench.errors import TransferError
from fewbench.transfer.task import LETTERS, Question, Task


def right_option(answer: int | str, options: Sequence[str], where: str) -> int:
    """Return the position of the option that an answer means.

    An integer is a position, from 0; a text is a letter or the text of an option. An integer is
    also held against the texts: ["1", "2"] with the answer 1 could be either.

    Raises
    ------
    TransferError
        If it means no option, or more than one.

    Examples
    --------
    >>> [right_option(answer, ["three", "four"], "line 1") for answer in (1, "B", "four")]
    [1, 1, 1]
    """
    meant = {place for place, option in enumerate(options) if option == str(answer)}
    if isinstance(answer, int):
        meant |= {answer} & set(range(len(options)))
    elif answer in list(LETTERS[: len(options)]):
        meant.add(LETTERS.index(answer))
    if len(meant) == 1:
        return meant.pop()
    if meant:
        means = " or ".join(f"{LETTERS[place]} ({options[place]!r})" for place in sorted(meant))
        raise TransferError(
            f"{where}: the answer {answer!r} could be option {means}",
            hint="change the options' order or texts so that letter, position and text agree",
        )
    raise TransferError(
        f"{where}: the answer {answer!r} is none of the {len(options)} options",
        hint=f"give a letter (A to {LETTERS[min(len(options), len(LETTERS)) - 1]}), a position "
        f"from 0 as a number, or an option's text: {some(options)}",
    )


def make_question(where: str, **fields: Any) -> Question:
    """Return a question; TransferError, beginning with `where`, if a field does not do."""
    try:
        return Question(**fields)
    except ValidationError as error:
        raise TransferError(f"{where}: {_said(error)}") from error


def make_task(where: str, **fields: Any) -> Task:
    """Return a task; TransferError, beginning with `where`, if its parts do not fit."""
    try:
        return Task(**fields)
    except ValidationError as error:
        raise TransferError(f"{where}: {_said(error)}") from error


def check_apart(
    where: str,
    questions: Sequence[Question],
    pool: Sequence[Question],
    lines: Mapping[str, int] | None = None,
) -> None:
    """Raise TransferError if an exemplar could be a scored question under another id.

    Exemplars come from the pool, and from the questions where there is no pool. The twins are
    named by the numbers of their lines, where `lines` has these by id.
    """
    if pool:
        scored = {question.content: question.id for question in questions}
        twins = [(one.id, scored[one.content]) for one in pool if one.content in scored]
        said = "the pool of exemplars holds questions that are scored too"
    else:
        counts = Counter(question.content for question in questions)
        first: dict[Any, str] = {}
        twins = []
        for one in questions:
            if counts[one.content] > 1 and first.setdefault(one.content, one.id) != one.id:
                twins.append((first[one.content], one.id))
        said = "questions are there twice, so an exemplar could be one that is scored"
    if twins:
        if lines is None:
            named = some(f"{one} = {other}" for one, other in twins)
        else:
            pairs = [f"lines {lines[one]} and {lines[other]}" for one, other in twins]
            more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
            named = ", ".join(pairs[:3]) + more
        raise TransferError(
            f"{where}: {said}: {named}", hint="remove one of each; equal are text and options"
        )


def subject_of(name: str) -> str:
    """Return what a task is about, by its name.

    Examples
    --------
    >>> subject_of("high_school_biology")
    'high school biology'
    """
    return " ".join(name.replace("_", " ").split()) or name


def _said(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    return f"{where}: {said}" if where else said
