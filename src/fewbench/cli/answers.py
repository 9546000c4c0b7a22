"""Read answers of target models from a file, for tell and track."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fewbench._names import some
from fewbench._text import say_note
from fewbench.errors import AnswersError, RangeError

if TYPE_CHECKING:  # imported where used: the help does not wait for pandas
    from fewbench.readers import Columns, FoundFiles
    from fewbench.scores import Scores


class AnswersFile(NamedTuple):
    """Answers of target models; `target` gave them, if the file does not name models."""

    scores: "Scores"
    target: str | None
    is_logs: bool


def read_answers(
    path: Path,
    sources: "Scores",
    targets: Sequence[str],
    target: str | None = None,
    *,
    form: str | None = None,
    model: str | None = None,
    item: str | None = None,
    score: str | None = None,
    transposed: bool = False,
    label: str | None = None,
    accept_differences: bool = False,
    **options: Any,
) -> AnswersFile:
    """Read answers as the source models' scores are, and print notes.

    Parameters
    ----------
    path : Path
    sources : Scores
        Scores of the source models.
    targets : sequence of str
        Targets of the evaluation.
    target : str, optional
        Target that gave the answers, as the user names it.
    form, item, score, transposed, **options
        As for `fewbench.import_results`.
    model : str, optional
        Column of models; of logs, the model to read.
    label : str, optional
        Column of right answers, as for `labeled`: scores are those of all targets.
    accept_differences : bool
        Only for logs.

    Raises
    ------
    AnswersError
        If options do not apply, scores are out of range, or it is unknown whose answers they are.
    ReaderError
        If the file cannot be read.
    """
    from fewbench.readers import Columns, import_results, look
    from fewbench.readers.predictions import labeled, labels_in

    found = look(path, form)
    if found.is_logs and (item or score):
        kind = form or found.units[0][0].name
        raise AnswersError(
            f"--item and --score name columns of a table; {path} is read as {kind}",
            hint="omit them, or --from" if form else "omit them, or add --from table",
        )
    if label is None and not (found.is_logs or score or model or transposed):
        label = labels_in(found.columns, sources, targets)
    if label is not None:
        scores, how = labeled(path, label, item, sources, [target] if target else targets)
        say_note(how)
        return AnswersFile(scores, target, is_logs=False)
    if transposed:
        columns = Columns(None, item)
    elif found.is_logs:
        columns = Columns()
    else:
        columns = _columns_of(found, model, item, score, target, targets)
    scale = sources.scale
    try:
        reading = import_results(
            found,
            columns=columns,
            transposed=transposed,
            like=sources,
            only_model=model if found.is_logs else None,
            accept_differences=accept_differences and found.is_logs,
            scale=scale,
            **options,
        )
    except RangeError as error:
        ends = f"{scale.low:g} to {scale.high:g}"
        hint = f"write scores on the scale of the source models, {ends}"
        raise AnswersError(error.message, hint=hint) from error  # there is no --range here
    for note in reading.notes:
        say_note(note)
    return AnswersFile(reading.scores, target or columns.only_model, found.is_logs)


def _columns_of(
    found: "FoundFiles",
    model: str | None,
    item: str | None,
    score: str | None,
    target: str | None,
    targets: Sequence[str],
) -> "Columns":
    """Return the columns of a table; without a column of models, all answers are one target's.

    Columns that are not named are the usual ones, if the table has them.
    """
    from fewbench.readers import Columns
    from fewbench.readers.items import answer_columns

    if model is not None:
        return Columns(model, item, score)
    item, score = answer_columns(found.columns, item, score)
    if item is None and score is None:
        return Columns()
    if target is None and len(targets) > 1:
        raise AnswersError(
            f"no target named for the answers; there are {len(targets)}: {some(targets)}",
            hint="add --target NAME, or --model COLUMN if the table names the models",
            kind="missing",
        )
    return Columns(None, item, score, only_model=target or targets[0])
