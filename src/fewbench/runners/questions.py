"""Questions with their answers: measurements of transfer and runs at an endpoint ask them."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field, model_validator

from fewbench._json import Frozen
from fewbench._names import some
from fewbench.errors import FieldError, ReaderError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
Record = TypeVar("Record", bound=Frozen)


class Question(Frozen):
    """One question and its answer.

    Parameters
    ----------
    id : str
        Unique in its task.
    text : str
        The question without its options.
    options : tuple of str
        The options of a multiple-choice question, at most 26; empty for an open question.
    answer : int or str
        The position of the right option, or the text of an open answer.
    also : tuple of str
        Other texts that an exact match accepts for an open answer.
    options_in_text : bool
        Whether the text already shows the options with their letters; a template then adds none.

    Examples
    --------
    >>> Question(id="1", text="2 + 2 =", options=("3", "4"), answer=1).shown
    'B'
    """

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
                raise ValueError("a question with options needs the position of an option")
            if not self.answer.strip():
                raise ValueError("the answer is empty")
        elif not 0 <= self.answer < len(self.options):
            raise ValueError(f"the answer is option {self.answer} of {len(self.options)}")
        return self

    @property
    def content(self) -> tuple[str, tuple[str, ...]]:
        """Text and options without regard to spaces and order: equal for the same question."""
        options = sorted(" ".join(option.split()) for option in self.options)
        return " ".join(self.text.split()), tuple(options)

    @property
    def shown(self) -> str:
        """The answer as an exemplar shows it: a letter, or the text."""
        return self.answer if isinstance(self.answer, str) else LETTERS[self.answer]


def right_option(answer: int | str, options: Sequence[str], where: str) -> int:
    """Return the position of the option that an answer means.

    An integer is a position from 0; a text is a letter or the text of an option. An integer may
    also be the text of an option: ["1", "2"] with the answer 1 is ambiguous.

    Raises
    ------
    ReaderError
        If the answer means no option, or more than one.

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
        raise ReaderError(
            f"{where}: the answer {answer!r} could be option {means}",
            hint="reorder or rename the options so that letter, position and text agree",
        )
    raise ReaderError(
        f"{where}: the answer {answer!r} is none of the {len(options)} options",
        hint=f"give a letter (A to {LETTERS[min(len(options), len(LETTERS)) - 1]}), a position "
        f"from 0 as a number, or an option's text: {some(options)}",
    )


def made(kind: type[Record], where: str, **fields: Any) -> Record:
    """Return a question or task; ReaderError, beginning with `where`, if a field is wrong."""
    try:
        return kind(**fields)
    except FieldError as error:
        raise ReaderError(": ".join(filter(None, (where, error.field, error.mistake)))) from error
