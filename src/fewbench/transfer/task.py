"""A task as a model is asked it: questions to score, and a pool of exemplars."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fewbench._names import some
from fewbench.errors import TransferError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
IN_POOL = ("train", "pool")  # splits whose questions are exemplars
Record = TypeVar("Record", bound=BaseModel)


class Question(BaseModel):
    """One question and its answer.

    Parameters
    ----------
    id : str
        Unique in its task.
    text : str
        The question as it is shown, without its options.
    options : tuple of str
        The options of a multiple-choice question, at most 26; empty where the answer is open.
    answer : int or str
        The right option's position, or the text of an open answer.
    also : tuple of str
        Other texts of an open answer that an exact match accepts.
    options_in_text : bool
        Whether the text shows the options with their letters already; a template then adds none.

    Examples
    --------
    >>> Question(id="1", text="2 + 2 =", options=("3", "4"), answer=1).shown
    'B'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]
    options: Annotated[tuple[str, ...], Field(max_length=len(LETTERS))] = ()
    answer: int | str
    also: tuple[str, ...] = ()
    options_in_text: bool = False

    @model_validator(mode="after")
    def _check(self) -> "Question":
        if isinstance(self.answer, str):
            if self.options:
                raise ValueError("the answer of a question with options is an option's position")
            if not self.answer.strip():
                raise ValueError("the answer is empty")
        elif not 0 <= self.answer < len(self.options):
            raise ValueError(f"the answer is option {self.answer} of {len(self.options)}")
        return self

    @property
    def content(self) -> tuple[str, tuple[str, ...]]:
        """What makes two questions the same: text and options, but for spaces and order."""
        options = sorted(" ".join(option.split()) for option in self.options)
        return " ".join(self.text.split()), tuple(options)

    @property
    def shown(self) -> str:
        """The answer as an exemplar shows it: a letter, or the text."""
        return self.answer if isinstance(self.answer, str) else LETTERS[self.answer]


class Task(BaseModel):
    """A task: what it is about, the questions to be scored, and the pool of exemplars.

    Parameters
    ----------
    name : str
    subject : str
        What the instruction says that the questions are about.
    instruction : str, optional
        The task's own instruction; without one the template's is used.
    questions : tuple of Question
        The questions that may be scored.
    pool : tuple of Question
        The questions that exemplars are drawn from, none of them in `questions`. Where it is
        empty, exemplars are set aside from `questions` before any is scored.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    subject: str
    instruction: str | None = None
    questions: Annotated[tuple[Question, ...], Field(min_length=1)]
    pool: tuple[Question, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> "Task":
        seen: set[str] = set()
        for question in (*self.questions, *self.pool):
            if question.id in seen:
                raise ValueError(f"two questions have the id {question.id!r}")
            seen.add(question.id)
        if len({bool(question.options) for question in (*self.questions, *self.pool)}) > 1:
            raise ValueError("some questions have options and some have none")
        return self

    @property
    def has_options(self) -> bool:
        """Whether the questions are multiple-choice."""
        return bool(self.questions[0].options)

    @property
    def whole_text(self) -> str:
        """All that the task says: instruction, questions, options and answers."""
        lines = [self.subject, self.instruction or ""]
        for question in (*self.pool, *self.questions):
            lines += [question.text, *question.options, question.shown]
        return "\n".join(filter(None, lines))


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


def made(kind: type[Record], where: str, **fields: Any) -> Record:
    """Return a question or task; TransferError, beginning with `where`, if a field is wrong."""
    try:
        return kind(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        at = "".join(f"{part}." for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise TransferError(f"{where}: {at[:-1]}{': ' if at else ''}{said}") from error


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
