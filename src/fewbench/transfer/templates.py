"""Templates: how questions, options and answers become prompts.

The prompt of a target's question behind a source's exemplars (paper, Appendix D) is

    context (instruction, then each exemplar as it is asked and answered) + ask (the question)

and an answer is scored as the continuation of that prompt. All questions with one source and seed
share the context, so that servers can reuse it.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from fewbench.errors import TransferError, first_line
from fewbench.transfer.task import LETTERS, Question, Task

ALLOWED = {  # placeholders of each field, and those that it cannot do without
    "instruction": (("subject",), ()),
    "question": (("question", "options"), ("question",)),
    "option": (("letter", "option"), ("letter", "option")),
    "answer": (("answer",), ("answer",)),
    "between": ((), ()),
}
PART = re.compile(r"\{\{|\}\}|\{(\w+)\}")


class Template(BaseModel):
    r"""How a prompt is put together.

    In each field, the placeholders in braces are replaced, once: braces in the texts that replace
    them stay as they are. `{{` and `}}` stand for braces.

    Parameters
    ----------
    instruction : str
        What the prompt begins with; may hold `{subject}`. A task's own instruction is used
        instead, word for word; a blank line is added where it does not end with one.
    question : str
        A question up to where its answer follows; holds `{question}`, and `{options}` on a line
        without it. For questions without options, and those that show their options
        themselves, that line is left out.
    option : str
        One line of the options; holds `{letter}` and `{option}`.
    answer : str
        What follows the question, in exemplars and as the continuation that is scored; holds
        `{answer}`.
    between : str
        What stands after an exemplar's answer.

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
        found = _named(text)
        named = " and ".join(f"{{{name}}}" for name in allowed) or "none"
        for name in found:
            if name not in allowed:
                raise ValueError(
                    f"the placeholder {{{name}}} is unknown; allowed here: {named} "
                    "(double the braces to show them)"
                )
        for name in needed:
            if name not in found:
                raise ValueError(f"{{{name}}} is missing; allowed here: {named}")
        if info.field_name == "question":
            for line in text.split("\n"):
                if {"options", "question"} <= set(_named(line)):
                    raise ValueError("{options} stands on the line of {question}; give it its own")
        return text

    def context(self, task: Task, exemplars: Sequence[Question]) -> str:
        """Return what all questions behind these exemplars of a task share."""
        between = _filled(self.between, {})
        shown = "".join(
            self.ask(exemplar) + self.continuation(exemplar) + between for exemplar in exemplars
        )
        return self._instruction(task) + shown

    def ask(self, question: Question) -> str:
        """Return a question as it follows the context.

        Raises
        ------
        TransferError
            If the question has options that the template would not show.
        """
        if not question.options or question.options_in_text:
            lines = [line for line in self.question.split("\n") if "options" not in _named(line)]
            return _filled("\n".join(lines), {"question": question.text})
        if "options" not in _named(self.question):
            raise TransferError(
                f"question {question.id!r} has options, and the template does not show them",
                hint="give its field 'question' a line {options}",
            )
        lines = [
            _filled(self.option, {"letter": letter, "option": option})
            for letter, option in zip(LETTERS, question.options, strict=False)
        ]
        return _filled(self.question, {"question": question.text, "options": "\n".join(lines)})

    def continuations(self, question: Question) -> list[str]:
        """Return what may follow a multiple-choice question, one for each option."""
        letters = LETTERS[: len(question.options)]
        return [_filled(self.answer, {"answer": letter}) for letter in letters]

    def continuation(self, question: Question) -> str:
        """Return the right answer as what follows the question."""
        return _filled(self.answer, {"answer": question.shown})

    def _instruction(self, task: Task) -> str:
        own = task.instruction
        if own is None:
            return _filled(self.instruction, {"subject": task.subject})
        return own if own.endswith("\n\n") or not own else own.rstrip("\n") + "\n\n"


def _named(template: str) -> list[str]:
    return [name for name in PART.findall(template) if name]


def _filled(template: str, values: Mapping[str, str]) -> str:
    return PART.sub(lambda part: values[part[1]] if part[1] else part[0][0], template)


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
"""The paper's prompts, by name."""


def read_template(name_or_path: str) -> Template:
    r"""Return a template of the paper, or one from a JSON or TOML file.

    Parameters
    ----------
    name_or_path : str
        `mmlu`, `flan`, or a path that ends with .json or .toml; the file holds an object (table)
        with the fields of `Template`, of which `question` is needed.

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
            hint=f"one of {names}, or the path of a .json or .toml file",
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise TransferError(
            f"template {path}: cannot be read ({error.strerror})", hint=f"or one of {names}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise TransferError(
            f"template {path}: not whole {path.suffix[1:].upper()} ({first_line(error)})"
        ) from error
    try:
        return Template.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        said = first["msg"].removeprefix("Value error, ")
        raise TransferError(
            f"template {path}: {where}: {said}",
            hint=f"the fields are {', '.join(ALLOWED)}; see docs/transfer.md",
        ) from error
