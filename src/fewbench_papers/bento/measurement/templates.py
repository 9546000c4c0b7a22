"""Templates that turn questions into prompts."""

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError, field_validator

from fewbench.errors import ReaderError, first_line
from fewbench.runners.questions import LETTERS, Question
from fewbench.support import Frozen, first_mistake
from fewbench_papers.bento.measurement.prompts import MeasuredTask

ALLOWED = {  # placeholders that each template field may hold, and those that it must hold
    "instruction": (("subject",), ()),
    "question": (("question", "options"), ("question",)),
    "option": (("letter", "option"), ("letter", "option")),
    "answer": (("answer",), ("answer",)),
    "between": ((), ()),
}
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")


class Template(Frozen):
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

    instruction: str = ""
    question: str
    option: str = "{letter}. {option}"
    answer: str = " {answer}"
    between: str = "\n\n"

    @field_validator("*")
    @classmethod
    def _check(cls, text: str, info: Any) -> str:
        allowed, needed = ALLOWED[info.field_name]
        names = _placeholders(text)
        named = " and ".join(f"{{{name}}}" for name in allowed) or "none"
        if unknown := [name for name in names if name not in allowed]:
            raise ValueError(
                f"the placeholder {{{unknown[0]}}} is unknown; allowed here: {named} "
                "(double the braces to show them)"
            )
        if missing := [name for name in needed if name not in names]:
            raise ValueError(f"{{{missing[0]}}} is missing; allowed here: {named}")
        if any({"options", "question"} <= set(_placeholders(line)) for line in text.split("\n")):
            raise ValueError("put {options} on a line of its own, not on the line of {question}")
        return text

    def context(self, task: MeasuredTask, exemplars: Sequence[Question]) -> str:
        """Return the beginning that all questions with these exemplars of a task share."""
        text = task.instruction
        if text is None:
            text = _filled(self.instruction, subject=task.subject)
        elif text and not text.endswith("\n\n"):
            text = text.rstrip("\n") + "\n\n"
        between = _filled(self.between)
        return text + "".join(self.ask(doc) + self.continuation(doc) + between for doc in exemplars)

    def ask(self, question: Question) -> str:
        """Return a question as it follows the context.

        Raises
        ------
        ReaderError
            If the question has options that the template would not show.
        """
        if not question.options or question.options_in_text:
            lines = self.question.split("\n")
            kept = [line for line in lines if "options" not in _placeholders(line)]
            return _filled("\n".join(kept), question=question.text)
        if "options" not in _placeholders(self.question):
            raise ReaderError(
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
    ReaderError
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
        raise ReaderError(
            f"no template {name_or_path!r}",
            hint=f"use one of {names}, or the path of a .json or .toml file",
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        return Template.model_validate(fields)
    except OSError as error:
        raise ReaderError(
            f"template {path}: cannot be read ({error.strerror})",
            hint=f"check the path, or use one of {names}",
            kind="damaged",
        ) from error
    except ValidationError as error:
        raise ReaderError(
            f"template {path}: {first_mistake(error, 'the file')}",
            hint=f"the fields are {', '.join(ALLOWED)}; see docs/tasks.md",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ReaderError(
            f"template {path}: not valid {path.suffix[1:].upper()} ({first_line(error)})"
        ) from error
