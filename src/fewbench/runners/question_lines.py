"""Read questions from JSON lines, one object a line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from fewbench._json import loads
from fewbench._names import counted, some
from fewbench.errors import ReaderError
from fewbench.runners.questions import LETTERS, Question, made, right_option

Text = Annotated[StrictStr, Field(min_length=1)]
ONE_A_LINE = "write one object per line, without [ ] around all and without commas at line ends"
KNOWN_AS = {  # names of the fields in other formats
    **dict.fromkeys(("choices", "choice", "candidates"), "options"),
    **dict.fromkeys(("input", "prompt", "text"), "question"),
    **dict.fromkeys(("target", "label", "gold", "output"), "answer"),
    **dict.fromkeys(("category", "topic"), "subject"),
}
EXPECTED = {
    "question": "a text",
    "options": 'a list of texts, or {"A": text, "B": text, …}',
    "answer": "a letter, a position, an option's text, or the text of an open answer",
    "split": '"test" (scored; the default), "train" or "pool" (for exemplars)',
    "id": "a text or a whole number",
    "also": "a list of texts",
}


Form = TypeVar("Form", bound=BaseModel)


class AskedLine(BaseModel):
    """What a line of any file of questions has."""

    model_config = ConfigDict(extra="forbid")

    task: Text | None = None
    question: Text
    options: list[StrictStr] | dict[str, StrictStr] | None = None
    answer: StrictInt | StrictFloat | StrictStr
    also: list[StrictStr] = []


class Line(AskedLine):
    """A line of a file of tasks, with exemplars."""

    id: StrictInt | Text | None = None
    split: Literal["train", "pool", "test"] | None = None
    instruction: StrictStr | None = None
    subject: Text | None = None


def read_objects(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a UTF-8 file with their line numbers; empty lines are skipped."""
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror})", kind="damaged") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise ReaderError(
                f"{path}, line {number}: not UTF-8 text (byte {error.start + 1} of the line)",
                hint="save the file as UTF-8",
            ) from error
        try:
            yield number, loads(text)
        except ValueError as error:
            bare = text.strip()
            spread = bare in {"[", "]", "{", "}", "},"} or bare.endswith((",", "}]"))
            raise ReaderError(
                f"{path}, line {number}: not a whole JSON object ({error})",
                hint=ONE_A_LINE if spread else "write each question as one object on one line",
                kind="damaged",
            ) from error


def parse_line(data: Any, where: str, kind: type[Form]) -> Form:
    """Return a line of a known form; ReaderError, beginning with `where`, if it does not fit."""
    fields = ", ".join(kind.model_fields)
    if not isinstance(data, dict):
        hint = ONE_A_LINE if isinstance(data, list) else f"the fields are {fields}"
        raise ReaderError(f"{where}: not an object", hint=hint)
    unknown = sorted(set(data) - set(kind.model_fields))
    if unknown:
        renamed = {name: KNOWN_AS[name.lower()] for name in unknown if name.lower() in KNOWN_AS}
        todo = [f"{name!r} is called {name_here!r} here" for name, name_here in renamed.items()]
        if others := [name for name in unknown if name not in renamed]:
            todo.append(f"remove {some(others)}")
        raise ReaderError(
            f"{where}: unknown field{'' if len(unknown) == 1 else 's'} {some(unknown)}",
            hint=f"{', '.join(todo)}; the fields are {fields}",
        )
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        problem = "is missing" if first["type"] == "missing" else "is not as expected"
        expected = EXPECTED.get(name, "a text")
        options = data.get("options")
        values = list(options.values()) if isinstance(options, dict) else options
        numbers = isinstance(values, list) and any(type(each) in (int, float) for each in values)
        if name == "options" and numbers:
            expected += '; put numbers into quotes, as ["3", "4"]'
        raise ReaderError(
            f"{where}: the field {name!r} {problem}", hint=f"give {expected}"
        ) from error


def question_of(line: AskedLine, name: str, where: str) -> Question:
    """Return the question of a line; ReaderError, beginning with `where`, if it has a mistake."""
    options = _options(line.options, where)
    answer: int | str
    if not options:
        answer = line.answer if isinstance(line.answer, str) else json.dumps(line.answer)
    elif isinstance(line.answer, float):
        raise ReaderError(f"{where}: the answer {line.answer} is not the position of an option")
    else:
        answer = right_option(line.answer, options, where)
        if line.also:
            raise ReaderError(
                f"{where}: 'also' is for open answers, but the question has options",
                hint="remove 'also'",
            )
    also = tuple(line.also)
    return made(
        Question, where, id=name, text=line.question, options=options, answer=answer, also=also
    )


def _options(options: list[str] | dict[str, str] | None, where: str) -> tuple[str, ...]:
    if not options:
        return ()
    letters = LETTERS[: len(options)]
    if len(options) == 1 or len(options) > len(LETTERS):
        raise ReaderError(
            f"{where}: {counted(len(options), 'option')}",
            hint="give 2 to 26 options, or none for an open question",
        )
    values = options if isinstance(options, list) else list(options.values())
    texts = [" ".join(option.split()) for option in values]
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise ReaderError(
            f"{where}: two options are the same: {twice[0]!r}", hint="give each option once"
        )
    if isinstance(options, list):
        return tuple(options)
    if sorted(options) != list(letters):
        raise ReaderError(
            f"{where}: the options are named {some(options)}",
            hint=f"name them {letters[0]} to {letters[-1]}, or give a list",
        )
    return tuple(options[letter] for letter in letters)
