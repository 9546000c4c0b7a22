"""Tables of scores whose columns the user names: long and wide, in one file or several."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, did_you_mean, some
from fewbench.errors import ColumnError, FewbenchError, Mistakes, ReaderError, RepeatedError
from fewbench.readers.frames import Columns, load_table, parts_of, reader_of, table_columns
from fewbench.readers.json_rows import fitting
from fewbench.readers.lookup import find_lookups, without
from fewbench.readers.predictions import SCORE, compared, refuse_predictions, target_of
from fewbench.readers.table_hints import (
    NAMED_BY_FILE,
    names_of_files,
    no_columns_named,
    systems_in,
)
from fewbench.scores import Scale, Scores, from_long, from_wide
from fewbench.scores.build import require_columns
from fewbench.scores.cell_words import CellWords
from fewbench.scores.costs import MOST_COST, read_amounts, with_answer_costs

COST = "cost"
"""Column of a told table with what each answer cost."""
NAMED_BY_COLUMN = "(name)"
"""Column of what the `*` of a pattern stands for."""


def read_table(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    columns: Columns,
    *,
    transposed: bool = False,
    scale: Scale | None = None,
    has_tasks: bool = False,
    words: CellWords | None = None,
    trials: str | None = None,
    rescale: Mapping[str, float] | None = None,
    notes: list[str] | None = None,
) -> Scores:
    """Read a long or wide table of scores; the columns named say which it is.

    Parameters
    ----------
    path : path or sequence of paths
        A .csv, .tsv, .parquet, .jsonl, .ndjson or .json file. Several files of a long table are
        read as one. A file without scores may have columns that the others lack, such as the names
        of models by an id.
    columns : Columns
        `model`, `item` and `score` for a long table; only `model` for a wide table (one row per
        model, all other columns are items). A long table without a column of models is of one
        model, which is called as the file is.
    transposed : bool
        For a wide table: rows are items, and `columns.item` names their column.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default.
    has_tasks : bool
        Whether a column `task` of a long table contains the tasks if `columns` names none, and a
        column `cost` what each answer cost.
    words : CellWords, optional
        Texts for missing, right and wrong scores.
    trials : str, optional
        For a long table: what several rows of a model and item become; see `from_long`.
    rescale : mapping of str to float, optional
        By how much the scores of a model are divided.
    notes : list of str, optional
        Receives notes on rows without a score, and on models that are called as their files.

    Raises
    ------
    ReaderError, ScoresError
        If a file cannot be read or its content is invalid.
    """
    sources = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(name) for name in path]
    for source in sources:
        reader_of(source)
    long = columns.is_long
    label = columns.item if transposed else columns.model
    if not long and label is None:
        raise no_columns_named(sources[0], columns)
    _check_layout(sources[0], columns, long, transposed, trials)
    words = words or CellWords()
    what = str(sources[0]) if len(sources) == 1 else f"{len(sources)} files ({some(sources)})"
    if long:
        columns = _with_own_columns(sources, columns) if has_tasks else columns
        frame, columns = _long_rows(sources, columns, words, notes)
        score = str(columns.score)
        if trials is not None and score in frame and frame[score].dtype == object:
            frame = frame.explode(score, ignore_index=True)  # a list has several answers
    else:
        frame = load_table(sources[0], columns.ids, None, words)
    try:
        if rescale:
            named = None if transposed else str(columns.model)
            frame = _rescaled(frame, rescale, named, score if long else None)
        if not long:
            return from_wide(
                frame, model=label, transposed=transposed, scale=scale, **asdict(words)
            )
        if columns.target is not None:
            frame, columns, how = compared(frame, columns)
            if notes is not None:
                notes.append(how)
        elif columns.score in frame:
            refuse_predictions(sources, frame, columns, words)
        if notes is not None and not words.missing:
            notes += _empty_cells(what, frame, columns.score)
        scores = from_long(
            frame,
            model=str(columns.model),
            item=str(columns.item),
            score=str(columns.score),
            task=columns.task,
            date=columns.date,
            family=columns.family,
            item_columns=columns.keep_item,
            model_columns=columns.keep_model,
            scale=scale,
            trials=trials,
            **asdict(words),
        )
        return (
            scores
            if columns.cost is None
            else with_answer_costs(scores, _costs(frame, columns, scores))
        )
    except FewbenchError as error:
        raise _explained(error, sources, columns, frame).within(what) from error


def _rescaled(
    frame: "pd.DataFrame", factors: Mapping[str, float], model: str | None, score: str | None
) -> "pd.DataFrame":
    """Divide the scores of some models: rows by a column of models, or columns without one."""
    if bad := [name for name, factor in factors.items() if not 0 < factor < np.inf]:
        raise ReaderError(
            f"cannot divide the scores of {some(bad)} by {factors[bad[0]]:g}",
            hint="use a number above 0: 100 for percentages",
        )
    columns = [*map(str, frame.columns)]
    names = frame[model].astype(str).to_numpy(object) if model else np.array(columns, dtype=object)
    if unknown := [name for name in factors if name not in {*names}]:
        raise ReaderError(
            f"no model {some(unknown)} to rescale",
            hint=did_you_mean(unknown[0], {*names}, f"models look like {some(names[:2])}"),
        )
    scored = [score] if score else [name for name in columns if name != model]
    cells = frame[scored].astype(object).to_numpy(copy=True)  # texts for right and wrong stay
    for name, factor in factors.items():
        at = (names == name, slice(None)) if model else (slice(None), columns.index(name))
        numbers = pd.to_numeric(pd.Series(cells[at].ravel()), errors="coerce").to_numpy() / factor
        there = cells[at]
        cells[at] = np.where(np.isnan(numbers), there.ravel(), numbers).reshape(there.shape)
    rescaled = pd.DataFrame(cells, index=frame.index, columns=scored).infer_objects()
    return pd.concat([frame.drop(columns=scored), rescaled], axis=1)[columns]


def _costs(
    frame: "pd.DataFrame", columns: Columns, scores: Scores
) -> Iterator[tuple[str, int, float]]:
    """Yield what answers cost: (model, column of the item, cost or NaN)."""
    costs = read_amounts(frame[columns.cost])
    is_known = (costs >= 0) & (costs <= MOST_COST)
    at = scores.items.index.get_indexer(pd.Index(frame[columns.item].astype(str)))
    models = frame[columns.model].astype(str)
    yield from zip(models, at.tolist(), np.where(is_known, costs, np.nan).tolist(), strict=True)


def _explained(
    error: FewbenchError, sources: Sequence[Path], columns: Columns, frame: "pd.DataFrame"
) -> FewbenchError:
    """Return an error about the rows of a table with what its columns suggest."""
    if error.parts:
        parts = [_explained(part, sources, columns, frame) for part in error.parts]
        return Mistakes(parts).as_one()
    hint = error.hint
    if isinstance(error, RepeatedError):
        hint = "; ".join([*systems_in(sources, columns, frame), str(hint)])
    if columns.model == NAMED_BY_FILE and columns.only_model is None:
        hint = "; ".join(filter(None, [hint, "if a column names models, add --model COLUMN"]))
    if columns.score and isinstance(error, ColumnError):  # only the named columns were read
        with suppress(FewbenchError):  # too large to read whole
            names = some(load_table(sources[0], []).columns, most=8)
            hint = f"the table's columns are {names}; {hint}"
        if (target := target_of(sources, columns)) is not None:
            hint = f"if these are answers, add --target {quote(target)}; {hint}"
    error.hint = hint
    return error


def _with_own_columns(sources: Sequence[Path], columns: Columns) -> Columns:
    """Return the columns, with those of tasks and costs if all files have one of this name."""
    names = set.intersection(*({*table_columns(source, columns.named)} for source in sources))
    free = names - {columns.model, columns.item, columns.score}
    task = columns.task or ("task" if "task" in free else None)
    return replace(columns, task=task, cost=COST if COST in free else None)


def _long_rows(
    sources: Sequence[Path], columns: Columns, words: CellWords, notes: list[str] | None
) -> "tuple[pd.DataFrame, Columns]":
    """Return the rows of all files, and their columns with one of models, items and scores each."""
    frames, mistakes, said = [], Mistakes(), list[str]()
    by_file = columns.model_from is not None or columns.only_model is not None
    there = [name for source in sources for name in table_columns(source, columns.named)]
    is_named = columns.model is not None or (columns.item is not None and _melts(columns, there))
    columns = replace(columns, model=None) if by_file else columns
    sources, lookups = find_lookups(sources, columns)
    own = without(columns, lookups) if lookups else columns
    text = [part for name in own.ids for part in parts_of(name, there)]
    text += [key for lookup in lookups for key in lookup.keys]
    text += [*own.scored(there), own.target] if own.target else []
    models = names_of_files(sources, of_folders=columns.model_from == "folder")
    if columns.only_model:
        models = [columns.only_model] * len(sources)
    for source, model in zip(sources, models, strict=True):
        with mistakes.noted():
            frame = load_table(source, text, own, words)
            if (how := frame.attrs.pop("found", "")) and how not in said:
                said.append(f"{source}: {how}")
            needed = own.within(map(str, frame.columns))
            if by_file or not is_named or len(sources) > 1 or needed != own.named:
                _require_in(source, frame, needed)
            if by_file or not is_named:
                if not by_file:
                    _refuse_own_models(source, columns)
                frame[NAMED_BY_FILE] = pd.Categorical([model]).repeat(len(frame))
            frames.append(frame)
    mistakes.refuse()
    if by_file or not is_named:
        columns = replace(columns, model=NAMED_BY_FILE)
        if columns.only_model is None:
            what = "folder" if columns.model_from == "folder" else "file"
            named = "the model is" if len(models) == 1 else "the models are"
            said.insert(
                0,
                f"{named} called as the {what}{'s are' if len(models) > 1 else ' is'}, "
                f"{some(dict.fromkeys(models))} (--model COLUMN names a column of models)",
            )
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    for lookup in lookups:
        frame = lookup.added_to(frame)
        said.append(lookup.note())
    for field in ("model", "item", "task"):
        name = getattr(columns, field)
        if name and name not in frame and len(parts := parts_of(name, frame.columns)) > 1:
            require_columns(frame, parts)
            frame[name] = _joined(frame[parts])
    if _melts(columns, frame.columns):
        frame, columns = _melted(sources[0], frame, columns)
        if not words.empty_is_wrong:  # an object that has no such score, where another has it
            again = frame.duplicated([columns.model, columns.item], keep=False)
            frame = frame[frame[SCORE].notna() | ~again].reset_index(drop=True)
    if notes is not None:
        notes += said
    return frame, columns


def _melts(columns: Columns, there: Iterable[str]) -> bool:
    """Whether scores are in several columns, by a pattern."""
    return columns.score is not None and "*" in columns.score and columns.score not in {*there}


def _joined(parts: "pd.DataFrame") -> "pd.Series[Any]":
    """Return columns joined by `/`; empty where all are, and without those that are."""
    texts = parts.astype(object).where(parts.notna(), None)
    cells = ["/".join(str(cell) for cell in row if cell is not None) for row in texts.to_numpy()]
    return pd.Series(cells, index=parts.index, dtype=object).replace("", None)


def _melted(
    source: Path, frame: "pd.DataFrame", columns: Columns
) -> "tuple[pd.DataFrame, Columns]":
    """Return a row for each column of scores, with what the `*` of the pattern stands for."""
    pattern = str(columns.score)
    found = columns.scored(map(str, frame.columns))
    _require_in(source, frame, [] if found else [pattern])
    named = NAMED_BY_COLUMN
    rest = [name for name in frame.columns if name not in found]
    frame = frame.melt(rest, found, named, SCORE)
    frame[named] = frame[named].map({name: fitting(name, pattern) for name in found})
    columns = replace(columns, score=SCORE)
    if not columns.item:
        return frame, replace(columns, item=named)
    if columns.model:
        frame[named] = _joined(frame[[columns.model, named]])
    return frame, replace(columns, model=named)


def _require_in(source: Path, frame: "pd.DataFrame", names: list[str]) -> None:
    try:
        require_columns(frame, names)
    except FewbenchError as error:
        raise error.within(str(source)) from error


def _refuse_own_models(source: Path, columns: Columns) -> None:
    """Raise ReaderError if a table has a column of models that is not named."""
    own = [name for name in table_columns(source, columns.named) if name.lower() == "model"]
    if own:
        raise ReaderError(
            f"{source}: the column {own[0]!r} is not named",
            hint=f"add --model {quote(own[0])}; or --model-from file, if each file is a model",
        )


def _empty_cells(what: str, frame: "pd.DataFrame", score: str | None) -> list[str]:
    """Return a note on rows without a score, if there are any."""
    n_empty = int(frame[score].isna().sum()) if score in frame else 0
    if not n_empty:
        return []
    return [
        f"{what}: {counted(n_empty, 'row')} of {len(frame):,} without a score "
        f"{'counts' if n_empty == 1 else 'count'} as not run; if the benchmark counts "
        "them as wrong, pass --missing wrong (in Python missing=['wrong'])"
    ]


def _check_layout(
    source: Path, columns: Columns, long: bool, transposed: bool, trials: str | None
) -> None:
    """Raise ReaderError for columns that the layout does not use."""
    if long:
        if transposed:
            raise ReaderError(
                f"{source}: --item and --score name columns of a long table, which cannot be "
                "--transposed",
                hint="omit --transposed; or --score, if rows are items and columns models",
            )
        return
    named = {
        "--model": columns.model if transposed else None,
        "--item": None if transposed else columns.item,
        "--score": columns.score,
        "--task": columns.task,
        "--date": columns.date,
        "--family": columns.family,
        "--keep-item": columns.keep_item,
        "--keep-model": columns.keep_model,
        "--trials": trials,
    }
    useless = [option for option, column in named.items() if column]
    if not transposed and useless and (columns.item is None) != (columns.score is None):
        lacking = "--score" if columns.score is None else "--item"
        raise ReaderError(
            f"{source}: {lacking} is missing", hint=f"a long table needs {lacking} COLUMN"
        )
    if useless:
        raise ReaderError(
            f"{source}: a wide table has one column of {'items' if transposed else 'models'} and "
            f"columns of scores; it does not use {', '.join(useless)}",
            hint="for a long table, pass --item and --score; pass attributes in separate files: "
            "fewbench import --models FILE --items FILE",
        )
