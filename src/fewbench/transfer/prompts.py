"""What a model is asked: questions, tasks, and the templates that turn them into prompts.

The prompt for a target's question with a source's exemplars (paper, Appendix D) is

    context (instruction, then each exemplar with its answer) + ask (the question)

and an answer is scored as the continuation of that prompt. All questions with one source and seed
share the context, so that servers can reuse it.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from fewbench._names import some
from fewbench.errors import TransferError, first_line

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
IN_POOL = ("train", "pool")  # splits whose questions are exemplars
ALLOWED = {  # placeholders that each template field may hold, and those that it must hold
    "instruction": (("subject",), ()),
    "question": (("question", "options"), ("question",)),
    "option": (("letter", "option"), ("letter", "option")),
    "answer": (("answer",), ("answer",)),
    "between": ((), ()),
}
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")
Record = TypeVar("Record", bound=BaseModel)


class Question(BaseModel):
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


class Task(BaseModel):
    """A task: its subject, the questions to score, and the pool of exemplars.

    Parameters
    ----------
    name : str
    subject : str
        What the questions are about, for the instruction.
    instruction : str, optional
        The task's own instruction (default: the template's).
    questions : tuple of Question
        Questions that may be scored.
    pool : tuple of Question
        Questions to draw exemplars from. Without a pool, some of `questions` are set aside as
        exemplars.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    subject: str
    instruction: str | None = None
    questions: Annotated[tuple[Question, ...], Field(min_length=1)]
    pool: tuple[Question, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> "Task":
        every = (*self.questions, *self.pool)
        counts = Counter(question.id for question in every)
        if twice := [name for name, count in counts.items() if count > 1]:
            raise ValueError(f"two questions have the id {twice[0]!r}")
        if len({bool(question.options) for question in every}) > 1:
            raise ValueError("some questions have options and some have none")
        return self

    @property
    def has_options(self) -> bool:
        """Whether the questions are multiple-choice."""
        return bool(self.questions[0].options)

    @property
    def whole_text(self) -> str:
        """Instruction, questions, options and answers, one after another."""
        lines = [self.subject, self.instruction or ""]
        for question in (*self.pool, *self.questions):
            lines += [question.text, *question.options, question.shown]
        return "\n".join(filter(None, lines))


def right_option(answer: int | str, options: Sequence[str], where: str) -> int:
    """Return the position of the option that an answer means.

    An integer is a position from 0; a text is a letter or the text of an option. An integer may
    also be the text of an option: ["1", "2"] with the answer 1 is ambiguous.

    Raises
    ------
    TransferError
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
        raise TransferError(
            f"{where}: the answer {answer!r} could be option {means}",
            hint="reorder or rename the options so that letter, position and text agree",
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
        place, words = _first(error)
        raise TransferError(": ".join(filter(None, (where, place, words)))) from error


def _first(error: ValidationError) -> tuple[str, str]:
    """Return the place of the first mistake and what is wrong there."""
    first = error.errors()[0]
    return ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")


def check_apart(
    where: str,
    questions: Sequence[Question],
    pool: Sequence[Question],
    lines: Mapping[str, int] | None = None,
) -> None:
    """Raise TransferError if an exemplar could equal a scored question with another id.

    Exemplars come from the pool, or from the questions if there is no pool. `lines` holds the line
    number of each id, for the message.
    """
    first: dict[Any, str] = {}
    twins = []
    for one in questions:
        if first.setdefault(one.content, one.id) != one.id and not pool:
            twins.append((first[one.content], one.id))
    problem = "some questions appear twice, so an exemplar could equal a scored question"
    if pool:
        scored = {question.content: question.id for question in questions}
        twins = [(one.id, scored[one.content]) for one in pool if one.content in scored]
        problem = "the pool of exemplars holds questions that are scored too"
    if not twins:
        return
    if lines is None:
        named = some(f"{one} = {other}" for one, other in twins)
    else:
        pairs = [f"lines {lines[one]} and {lines[other]}" for one, other in twins]
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        named = ", ".join(pairs[:3]) + more
    raise TransferError(
        f"{where}: {problem}: {named}",
        hint="remove one of each pair; both have the same text and options",
    )


def subject_of(name: str) -> str:
    """Return a task's name as words: "high_school_biology" is about high school biology."""
    return " ".join(name.replace("_", " ").split()) or name


class Template(BaseModel):
    r"""How a prompt is put together.

    Placeholders in braces are replaced once: braces in the inserted texts stay as they are. Write
    `{{` and `}}` for braces.

    Parameters
    ----------
    instruction : str
        The beginning of the prompt; may hold `{subject}`. A task's own instruction replaces it,
        word for word, with a blank line at its end.
    question : str
        A question up to its answer; holds `{question}`, and `{options}` on a line of its own. That
        line is left out for questions without options and for those that show their options
        themselves.
    option : str
        One line of the options; holds `{letter}` and `{option}`.
    answer : str
        What follows the question, in exemplars and as the scored continuation; holds `{answer}`.
    between : str
        What follows an exemplar's answer.

    Examples
    --------
    >>> sums = Question(id="1", text="2 + 2 =", options=("3", "4"), answer=1)
    >>> print(TEMPLATES["mmlu"].ask(sums))
    2 + 2 =
    A. 3
    B. 4
    Answer:
    >>> TEMPLATES["mmlu"].continuations(sums), TEMPLATES["mmlu"].continuation(sums)
    ([' A', ' B'], ' B')
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    instruction: str = ""
    question: str
    option: str = "{letter}. {option}"
    answer: str = " {answer}"
    between: str = "\n\n"

    @field_validator("*")
    @classmethod
    def _check(cls, text: str, info: Any) -> str:
        allowed, needed = ALLOWED[info.field_name]
        found = _placeholders(text)
        named = " and ".join(f"{{{name}}}" for name in allowed) or "none"
        if unknown := [name for name in found if name not in allowed]:
            raise ValueError(
                f"the placeholder {{{unknown[0]}}} is unknown; allowed here: {named} "
                "(double the braces to show them)"
            )
        if missing := [name for name in needed if name not in found]:
            raise ValueError(f"{{{missing[0]}}} is missing; allowed here: {named}")
        if any({"options", "question"} <= set(_placeholders(line)) for line in text.split("\n")):
            raise ValueError("put {options} on a line of its own, not on the line of {question}")
        return text

    def context(self, task: Task, exemplars: Sequence[Question]) -> str:
        """Return the beginning that all questions with these exemplars of a task share."""
        own = task.instruction
        if own is None:
            own = _filled(self.instruction, subject=task.subject)
        elif own and not own.endswith("\n\n"):
            own = own.rstrip("\n") + "\n\n"
        between = _filled(self.between)
        return own + "".join(self.ask(one) + self.continuation(one) + between for one in exemplars)

    def ask(self, question: Question) -> str:
        """Return a question as it follows the context.

        Raises
        ------
        TransferError
            If the question has options that the template would not show.
        """
        if not question.options or question.options_in_text:
            lines = self.question.split("\n")
            kept = [line for line in lines if "options" not in _placeholders(line)]
            return _filled("\n".join(kept), question=question.text)
        if "options" not in _placeholders(self.question):
            raise TransferError(
                f"question {question.id!r} has options, but the template does not show them",
                hint="add a line {options} to the template's field 'question'",
            )
        lines = [
            _filled(self.option, letter=letter, option=option)
            for letter, option in zip(LETTERS, question.options, strict=False)
        ]
        return _filled(self.question, question=question.text, options="\n".join(lines))

    def continuations(self, question: Question) -> list[str]:
        """Return the continuation for each option of a multiple-choice question."""
        letters = LETTERS[: len(question.options)]
        return [_filled(self.answer, answer=letter) for letter in letters]

    def continuation(self, question: Question) -> str:
        """Return the right answer as the continuation of the question."""
        return _filled(self.answer, answer=question.shown)


def _placeholders(template: str) -> list[str]:
    return [name for name in PLACEHOLDER.findall(template) if name]


def _filled(template: str, **values: str) -> str:
    return PLACEHOLDER.sub(lambda part: values[part[1]] if part[1] else part[0][0], template)


TEMPLATES: dict[str, Template] = {
    "mmlu": Template(
        instruction="The following are multiple choice questions (with answers) about {subject}."
        "\n\n",
        question="{question}\n{options}\nAnswer:",
    ),
    "flan": Template(
        instruction="You are a helpful AI assistant. Here are some example input-output pairs "
        "that you should follow.\n\n",
        question="Input:\n{question}\n{options}\nOutput:",
    ),
}
"""The paper's templates by name."""


def read_template(name_or_path: str) -> Template:
    r"""Return a template of the paper, or one from a JSON or TOML file.

    Parameters
    ----------
    name_or_path : str
        `mmlu`, `flan`, or a path that ends with .json or .toml. The file holds one object (table)
        with the fields of `Template`; `question` is required.

    Raises
    ------
    TransferError
        If there is no such template or file, or a field or placeholder is wrong or missing.

    Examples
    --------
    >>> read_template("flan").question
    'Input:\n{question}\n{options}\nOutput:'
    """
    if name_or_path in TEMPLATES:
        return TEMPLATES[name_or_path]
    path = Path(name_or_path)
    names = ", ".join(TEMPLATES)
    if path.suffix not in {".json", ".toml"}:
        raise TransferError(
            f"no template {name_or_path!r}",
            hint=f"use one of {names}, or the path of a .json or .toml file",
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        return Template.model_validate(fields)
    except OSError as error:
        raise TransferError(
            f"template {path}: cannot be read ({error.strerror})",
            hint=f"check the path, or use one of {names}",
        ) from error
    except ValidationError as error:
        place, words = _first(error)
        raise TransferError(
            f"template {path}: {place or 'the file'}: {words}",
            hint=f"the fields are {', '.join(ALLOWED)}; see docs/transfer.md",
        ) from error
    except (ValueError, RecursionError) as error:
        raise TransferError(
            f"template {path}: not valid {path.suffix[1:].upper()} ({first_line(error)})"
        ) from error
