"""A task as it is asked of a model: its questions, and those kept apart as exemplars."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


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
