"""Tasks: their questions, and those that may be exemplars.

The prompt for a target's question with a source's exemplars (paper, Appendix D) is

    context (instruction, then each exemplar with its answer) + ask (the question)

and an answer is scored as the continuation of that prompt. All questions with one source and seed
share the context, so that servers can reuse it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from fewbench.errors import TransferError
from fewbench.runners.questions import Question
from fewbench.support import Frozen, some

IN_POOL = ("train", "pool")  # splits whose questions are exemplars


class MeasuredTask(Frozen):
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

    name: Annotated[str, Field(min_length=1)]
    subject: str
    instruction: str | None = None
    questions: Annotated[tuple[Question, ...], Field(min_length=1)]
    pool: tuple[Question, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> "MeasuredTask":
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
    for item in questions:
        if first.setdefault(item.content, item.id) != item.id and not pool:
            twins.append((first[item.content], item.id))
    problem = "some questions appear twice, so an exemplar could equal a scored question"
    if pool:
        scored = {question.content: question.id for question in questions}
        twins = [(member.id, scored[member.content]) for member in pool if member.content in scored]
        problem = "the pool of exemplars holds questions that are scored too"
    if not twins:
        return
    if lines is None:
        named = some(f"{twin} = {other}" for twin, other in twins)
    else:
        pairs = [f"lines {lines[twin]} and {lines[other]}" for twin, other in twins]
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        named = ", ".join(pairs[:3]) + more
    raise TransferError(
        f"{where}: {problem}: {named}",
        hint="remove one of each pair; both have the same text and options",
    )


def subject_of(name: str) -> str:
    """Return a task's name as words: "high_school_biology" is about high school biology."""
    return " ".join(name.replace("_", " ").split()) or name
