"""The errors that fewbench raises, and the category of its warnings.

FewbenchError
├── ScoresError           a score table that cannot be used as it stands; also a ValueError
│   ├── ColumnError       a column of scores with values that are not numbers
│   ├── RangeError        scores outside the stated range
│   ├── RepeatedError     several scores of a model and item
│   ├── MissingFileError  a file of scores, results or a pack that is not there; also a
│                         ReaderError, a PackError and a FileNotFoundError
│   └── WrongTypeError    something else in place of scores or of a method; also a MethodError and
│                         a TypeError
├── ReaderError           a file that cannot be read, or not in the requested way
├── FieldError            an argument of a record, such as a limit of Stop, that does not fit; also
│                         a ValueError
├── MethodError           an unknown method, a wrong setting, a budget that does not fit; also a
│                         ValueError
├── AnswersError          a target's answers that do not fit the requested items; also a ValueError
├── EvaluationError       an evaluation folder that cannot be opened or continued
├── RunError              a run of a model on chosen items that cannot start or resume
├── StudyError            a comparison that cannot be made (splits, repeats, targets); also a
│                         ValueError
├── TransferError         transferability that cannot be measured, or a measurement not continued
├── ModelError            a language model that cannot be reached or cannot do what is required
├── PublicError           public results that cannot be fetched, or not as requested
├── PackError             a pack that cannot be made, or does not contain what is needed
├── ClusterError          a cluster that cannot be reached, was lost, or cannot do the work
└── MissingExtraError     an optional part that is not installed

UserWarning
└── EstimateWarning       a reason to doubt an estimate or a decision

Messages may change in any version; a program tests the class and the `kind`. The kind is the
class's own ("range", "missing-file", …) unless one class serves several causes:

changed      what an evaluation or a run goes on from is not what it was
conflict     things that were given exclude each other
damaged      a file that cannot be read, is cut short or was altered
format       a file in a format that cannot be read or written here
limit        more than is read or allowed
missing      a file, a column or a setting that is needed is not there
name         a name that cannot be used
range        a number, or a range of scores, that is not possible
repeated     a name, a value or a cell that is there twice
scale        scores on a different scale than those of the source models
taken        a name, a place or an answer that is there already
too-few      fewer models, items, tasks or files than are needed
unanswered   no answers, where answers are needed
unknown      none of those that are there
unreachable  a host, a port or a process that does not answer
unsupported  what the method, the format or the model cannot do

An option of fewbench that a message names is an argument of the function: --next-items 50 is
next_items=50.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from fewbench._text import masked

__all__ = [
    "AnswersError",
    "ClusterError",
    "ColumnError",
    "EstimateWarning",
    "EvaluationError",
    "FewbenchError",
    "FieldError",
    "MethodError",
    "MissingExtraError",
    "MissingFileError",
    "ModelError",
    "PackError",
    "PublicError",
    "RangeError",
    "ReaderError",
    "RepeatedError",
    "RunError",
    "ScoresError",
    "StudyError",
    "TransferError",
    "WrongTypeError",
]

Cause = Literal[
    "changed", "conflict", "damaged", "format", "limit", "missing", "name", "range", "repeated",
    "scale", "taken", "too-few", "unanswered", "unknown", "unreachable", "unsupported",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class FewbenchError(Exception):
    """Base of all errors that fewbench raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong and where.
    hint : str, optional
        What to do about it.
    kind : str, optional
        What kind of mistake it is, for programs; by default that of the class.

    Examples
    --------
    >>> error = FewbenchError("model 'a' appears twice", hint="rename one of them", kind="repeated")
    >>> str(error), error.kind
    ("model 'a' appears twice (hint: rename one of them)", 'repeated')
    """

    kind: str = "fewbench"
    parts: "tuple[FewbenchError, ...]" = ()
    """The mistakes of an error that names several."""

    def __init__(self, message: str, *, hint: str | None = None, kind: Cause | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if kind is not None:
            self.kind = kind

    def __init_subclass__(cls) -> None:
        if "kind" not in vars(cls):
            words = re.sub(r"(?<=.)(?=[A-Z])", "-", cls.__name__.removesuffix("Error"))
            cls.kind = words.lower()

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message

    def within(self, where: str) -> "FewbenchError":
        """Return the error with the place that it is about, such as a file."""
        if self.parts:
            return Mistakes([part.within(where) for part in self.parts]).as_one()
        whole = type(self)(f"{where}: {self.message}", hint=self.hint)
        whole.kind = self.kind
        return whole


class EstimateWarning(UserWarning):
    """A reason to doubt an estimate or a decision, which the result also carries.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("error", category=EstimateWarning)  # to stop at the first one
    """


def first_line(error: BaseException | str) -> str:
    r"""Return the first line of an error or a text, masked; an error's type if it has no text.

    Examples
    --------
    >>> first_line(ValueError("no such column\nmore")), first_line(KeyError())
    ('no such column', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return masked(lines[0]) if lines else "" if isinstance(error, str) else type(error).__name__


class ScoresError(FewbenchError, ValueError):
    """A score table that cannot be used as it stands."""


class ColumnError(ScoresError):
    """A column of scores with values that are not numbers."""


class RangeError(ScoresError):
    """Scores outside the stated range."""


class RepeatedError(ScoresError):
    """Several scores of a model and item, of which nothing says what becomes of them."""


class ReaderError(FewbenchError):
    """A file that cannot be read, or not in the way that was asked for."""


@dataclass
class Mistakes:
    """Collects errors that do not depend on each other, to raise all of them as one.

    Examples
    --------
    >>> mistakes = Mistakes()
    >>> for name in ("q", "r"):
    ...     with mistakes.noted():
    ...         raise ScoresError(f"no column {name!r}", hint="name it")
    >>> mistakes.refuse()
    Traceback (most recent call last):
    fewbench.errors.ScoresError: 2 mistakes: (1) no column 'q' (hint: name it); (2) no column 'r'
    (hint: name it)
    """

    errors: list[FewbenchError] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Keep the error that the code within raises."""
        try:
            yield
        except FewbenchError as error:
            self.errors.append(error)

    def refuse(self) -> None:
        """Raise the errors that were kept as one, if there are any."""
        if self.errors:
            raise self.as_one()

    def as_one(self) -> FewbenchError:
        """Return the only error; for several one that names all, of a kind that fits them."""
        parts = [part for error in self.errors for part in (error.parts or (error,))]
        if len(parts) == 1:
            return parts[0]
        kinds = (type(parts[0]), ScoresError, ReaderError, FewbenchError)
        kind = next(kind for kind in kinds if all(isinstance(part, kind) for part in parts))
        listed = "; ".join(f"({at}) {part}" for at, part in enumerate(parts, start=1))
        whole = kind(f"{len(parts)} mistakes: {listed}")
        whole.parts = tuple(parts)
        if all(part.kind == parts[0].kind for part in parts):
            whole.kind = parts[0].kind
        return whole


class FieldError(FewbenchError, ValueError):
    """An argument of a record, such as a limit of `Stop`, that does not fit.

    Attributes
    ----------
    field : str
        Name of the argument, "" if several do not fit together.
    mistake : str
        What is wrong with it.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, field: str = "", mistake: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.field, self.mistake = field, mistake


class MethodError(FewbenchError, ValueError):
    """An unknown method, a wrong setting, or a budget that does not fit."""


class AnswersError(FewbenchError, ValueError):
    """A target's answers that do not fit the requested items."""


class EvaluationError(FewbenchError):
    """An evaluation folder that cannot be opened or continued."""


class RunError(FewbenchError):
    """A run of a model on chosen items that cannot start or resume."""


class StudyError(FewbenchError, ValueError):
    """A comparison that cannot be made."""


class TransferError(FewbenchError):
    """Transferability that cannot be measured, or a measurement that cannot be continued."""


class ModelError(FewbenchError):
    """A language model that cannot be reached, or cannot do what is required."""


class PublicError(FewbenchError):
    """Public results that cannot be fetched, or are not what the source promises."""


class PackError(FewbenchError):
    """A pack that cannot be made, or that does not contain what is needed."""


class MissingFileError(ScoresError, ReaderError, PackError, FileNotFoundError):
    """A file of scores, results or a pack that is not there; a `FileNotFoundError`, too.

    Examples
    --------
    >>> try:
    ...     raise MissingFileError("scores.parquet: no such file")
    ... except FileNotFoundError as error:
    ...     print(error)
    scores.parquet: no such file
    """


class WrongTypeError(ScoresError, MethodError, TypeError):
    """Something else in place of scores or of a method; a `TypeError`, too."""


class ClusterError(FewbenchError):
    """A cluster that cannot be reached, was lost, or whose workers cannot do the work."""


class MissingExtraError(FewbenchError):
    """An optional part of fewbench that is not installed."""
