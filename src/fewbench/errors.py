"""What fewbench raises, and the category of its warnings.

FewbenchError
├── ScoresError        a score table that cannot be used as it stands
│   ├── ColumnError    a column of scores with values that are not numbers
│   └── RangeError     scores that need another range than the one that was stated
├── ReaderError        a file that cannot be read, or not as asked
├── FieldError         an argument of a record, such as a limit of Stop, that does not fit
├── MethodError        an unknown method, a wrong setting, a budget that does not fit
├── AnswersError       a target's answers that do not fit what was asked
├── EvaluationError    an evaluation folder that cannot be opened or continued
├── StudyError         a comparison that cannot be made (splits, repeats, targets)
├── TransferError      transferability that cannot be measured, or a measurement not continued
├── ModelError         a language model that cannot be reached or cannot do what is asked
├── PublicError        public results that cannot be fetched, or not as asked
├── PackError          a pack that cannot be made, or does not contain what is needed
├── ClusterError       a cluster that cannot be reached, was lost, or cannot do the work
├── MissingExtraError  an optional part that is not installed
└── MissingFileError   a file of scores, results or a pack that is not there; a FileNotFoundError
"""

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
    "RunError",
    "ScoresError",
    "StudyError",
    "TransferError",
]


class FewbenchError(Exception):
    """Base of all errors that fewbench raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong and where.
    hint : str, optional
        What to do about it.

    Examples
    --------
    >>> str(FewbenchError("model 'a' appears twice", hint="rename one of them"))
    "model 'a' appears twice (hint: rename one of them)"
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message


class EstimateWarning(UserWarning):
    """A reason to doubt an estimate or a decision, which the result also carries.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("error", category=EstimateWarning)  # to stop at the first one
    """


def first_line(error: BaseException | str) -> str:
    r"""Return the first line of an error or a text; an error's type if it says nothing.

    Examples
    --------
    >>> first_line(ValueError("no such column\nmore")), first_line(KeyError())
    ('no such column', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "" if isinstance(error, str) else type(error).__name__


class ScoresError(FewbenchError):
    """A score table that cannot be used as it stands."""


class ColumnError(ScoresError):
    """A column of scores with values that are not numbers."""


class RangeError(ScoresError):
    """Scores that need another range than the one that was stated."""


class ReaderError(FewbenchError):
    """A file that cannot be read, or not in the way that was asked for."""


class FieldError(FewbenchError):
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


class MethodError(FewbenchError):
    """An unknown method, a wrong setting, or a budget that does not fit."""


class AnswersError(FewbenchError):
    """A target's answers that do not fit what was asked."""


class EvaluationError(FewbenchError):
    """An evaluation folder that cannot be opened or continued."""


class RunError(FewbenchError):
    """A run of a model on chosen items that cannot start or resume."""


class StudyError(FewbenchError):
    """A comparison that cannot be made."""


class TransferError(FewbenchError):
    """Transferability that cannot be measured, or a measurement that cannot be continued."""


class ModelError(FewbenchError):
    """A language model that cannot be reached, or cannot do what is asked of it."""


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


class ClusterError(FewbenchError):
    """A cluster that cannot be reached, was lost, or whose workers cannot do the work."""


class MissingExtraError(FewbenchError):
    """An optional part of fewbench that is not installed."""
