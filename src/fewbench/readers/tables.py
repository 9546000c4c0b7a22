"""Tables of scores whose columns the user names: long and wide, in one file or several."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench.errors import ColumnError, FewbenchError, Mistakes, ReaderError, RepeatedError
from fewbench.readers.frames import (
    Columns,
    load_table,
    parts_of,
    reader_of,
    table_columns,
)
from fewbench.readers.json_rows import KEYS, fitting, flat
from fewbench.readers.lookup import find_lookups, without
from fewbench.readers.values import BOOLEANS, as_number
from fewbench.scores import Scale, Scores, from_long, from_wide
from fewbench.scores.build import require_columns
from fewbench.scores.cell_words import TRUTHS, CellWords
from fewbench.scores.costs import MOST_COST, read_amounts, with_answer_costs

KEPT = {
    "task": "--task",
    "date": "--date",
    "family": "--family",
    "role": "--keep-model",
    "cost": "--keep-item",
}
"""Options that keep columns of usual names in a long table."""
COST = "cost"
"""Column of a told table with what each answer cost."""
NAMED_BY_FILE, NAMED_BY_COLUMN, SCORE = "(model)", "(name)", "(score)"
"""Columns of models that are called as their files, of what a pattern names, and of its scores."""
TARGETS = {
    *("target", "targets", "gold", "label", "reference", "expected", "expected_output", "truth"),
    *("answer", "correct_answer", "ground_truth", "gold_answer", "reference_answer"),
}
"""Usual names of columns of right answers."""
TRIAL = re.compile(r"(trial|run|epoch|seed|repeat|repetition|attempt|sample|iteration|try)s?(_?(id|idx|"
                   r"index|no|num|number))?|timestamp|time|date|n|k|i")  # fmt: skip
"""Usual names of columns that count the answers of one model to an item."""
MOST_SYSTEMS = 40
USUAL = {
    "item": ("item", "id", "item_id", "question_id", "task_id", "instance_id", "sample_id"),
    "model": ("model", "model_name", "model_id"),
    "score": (
        *("score", "correct", "is_correct", "acc", "accuracy", "exact_match", "passed", "success"),
        *("resolved", "is_resolved", "reward"),
    ),
}
"""Usual names of columns, which hints propose."""


def read_table(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    columns: Columns,
    *,
    transposed: bool = False,
    scale: Scale | None = None,
    has_tasks: bool = False,
    words: CellWords | None = None,
    trials: str | None = None,
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
        raise _no_columns_named(sources[0], columns)
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
        if not long:
            return from_wide(
                frame, model=label, transposed=transposed, scale=scale, **asdict(words)
            )
        if columns.target is not None:
            frame, columns, how = _compared(frame, columns)
            if notes is not None:
                notes.append(how)
        elif columns.score in frame:
            _refuse_predictions(sources, frame, columns, words)
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
        hint = "; ".join([*_systems(sources, columns, frame), str(hint)])
    if columns.model == NAMED_BY_FILE and columns.only_model is None:
        hint = "; ".join(filter(None, [hint, "if a column names models, add --model COLUMN"]))
    if columns.score and isinstance(error, ColumnError):  # only the named columns were read
        with suppress(FewbenchError):  # too large to read whole
            names = some(load_table(sources[0], []).columns, most=8)
            hint = f"the table's columns are {names}; {hint}"
        if (target := _target(sources, columns)) is not None:
            hint = f"if these are answers, add --target {quote(target)}; {hint}"
    return type(error)(error.message, hint=hint)


def _systems(sources: Sequence[Path], columns: Columns, frame: "pd.DataFrame") -> Iterator[str]:
    """Yield what tells rows of one model and item apart: files, or columns with few values.

    A model run with two settings is two systems more often than one that answered twice.
    """
    every = pd.DataFrame(index=frame.index)
    with suppress(FewbenchError):  # too large to read whole
        rows = [load_table(path, []).to_dict("records") for path in sources]
        tables = [pd.DataFrame([flat({**row}) for row in of_file]) for of_file in rows]
        if sum(map(len, tables)) == len(frame):
            names = names_of_files(sources)
            files = [name for name, table in zip(names, tables, strict=True) for _ in table.index]
            every = pd.concat(tables, ignore_index=True)
            every.insert(0, NAMED_BY_FILE, files)
    keys = frame[[columns.model, columns.item]].astype(str).reset_index(drop=True)
    for name in every.columns:
        values = every[name].astype(str)
        shown = list(dict.fromkeys(values))
        known = name in columns.named or TRIAL.fullmatch(str(name).lower())
        if known or not 1 < len(shown) <= MOST_SYSTEMS or keys.assign(by=values).duplicated().any():
            continue
        if name == NAMED_BY_FILE:
            yield f"if each file is a system of its own ({some(shown)}): --model-from file"
            continue
        model = name if columns.model == NAMED_BY_FILE else f"{columns.model},{name}"
        ways = [f"--model {quote(model)} if it names systems"]
        ways += [f"--item {quote(f'{columns.item},{name}')} if it names items"]
        yield f"the column {name!r} tells these rows apart ({some(shown)}): {', '.join(ways)}"


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
            if by_file or not is_named or len(sources) > 1:
                _require_in(source, frame, own.within(map(str, frame.columns)))
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
        frame, columns = _melted(frame, columns)
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


def _melted(frame: "pd.DataFrame", columns: Columns) -> "tuple[pd.DataFrame, Columns]":
    """Return a row for each column of scores, with what the `*` of the pattern stands for."""
    pattern = str(columns.score)
    found = columns.scored(map(str, frame.columns))
    require_columns(frame, [] if found else [pattern])
    named = NAMED_BY_COLUMN
    rest = [name for name in frame.columns if name not in found]
    frame = frame.melt(rest, found, named, SCORE)
    frame[named] = frame[named].map({name: fitting(name, pattern) for name in found})
    columns = replace(columns, score=SCORE)
    return frame, replace(columns, model=named) if columns.item else replace(columns, item=named)


def _compared(frame: "pd.DataFrame", columns: Columns) -> "tuple[pd.DataFrame, Columns, str]":
    """Return the rows with a score: whether a prediction equals its target; and how it was found.

    Equal are the same texts, up to white space at their ends, and the same numbers. Loosely equal
    are also texts that differ in case, punctuation and white space.
    """
    require_columns(frame, [str(columns.score), str(columns.target)])
    pairs = frame[[columns.score, columns.target]].astype(object)
    empty = pairs.isna() | (pairs.map(str).apply(lambda texts: texts.str.strip()) == "")
    if (lacking := empty[columns.target]).any():
        raise ReaderError(
            f"column {columns.target!r} is empty in {counted(int(lacking.sum()), 'row')}, first at "
            f"row {int(lacking.argmax()) + 1}",
            hint="fill in the right answers, or delete rows that are no items",
        )
    codes, distinct = pd.factorize(pd.MultiIndex.from_frame(pairs.astype(str)))
    loose = columns.match == "loose"
    equal = np.array([_is_equal(said, right, loose) for said, right in distinct], dtype=bool)
    scores = np.where(empty[columns.score], np.nan, equal[codes].astype(np.float64))
    how = f"a score is whether {columns.score!r} equals {columns.target!r}"
    how += " but for case, punctuation and white space" if loose else ", as text or number"
    how += f": {int(np.nansum(scores)):,} of {counted(int((~np.isnan(scores)).sum()), 'answer')}"
    how += "" if loose else " (--match loose ignores case, punctuation and white space)"
    return frame.assign(**{SCORE: scores}), replace(columns, score=SCORE), how


def _is_equal(prediction: str, target: str, loose: bool) -> bool:
    pair = prediction.strip(), target.strip()
    if pair[0] == pair[1]:
        return True
    numbers = [None if text in BOOLEANS else as_number(text) for text in pair]
    if None not in numbers:
        return numbers[0] == numbers[1]
    plain = [re.sub(r"[\W_]+", " ", text).strip().casefold() for text in pair]
    return loose and plain[0] == plain[1] != ""


def _target(sources: Sequence[Path], columns: Columns) -> str | None:
    """Return the first column with a usual name of right answers."""
    every = (name for source in sources for name in table_columns(source, columns.named))
    return next((name for name in every if name.lower() in TARGETS and name != columns.score), None)


def _refuse_predictions(
    sources: Sequence[Path], frame: "pd.DataFrame", columns: Columns, words: CellWords
) -> None:
    """Raise ReaderError if texts True and False stand beside a column of targets."""
    cells = frame[columns.score].dropna()
    is_bool = pd.api.types.is_bool_dtype(cells)
    if pd.api.types.is_numeric_dtype(cells) and not is_bool:
        return
    are_texts = is_bool or all(text.lower() in TRUTHS for text in cells.map(str).unique())
    if cells.empty or not are_texts or words.right or words.wrong:
        return
    target = _target(sources, columns)
    if target is None:
        return
    if is_bool or not isinstance(cells.iloc[0], str):
        source = next(path for path in sources if target in table_columns(path, columns.named))
        beside = load_table(source, [], replace(Columns(), score=target), words)[target]
        if source.suffix.lower() not in (".csv", ".tsv") or not pd.api.types.is_bool_dtype(beside):
            return  # truth values, and what is right is no such one
    raise ReaderError(
        f"column {columns.score!r} holds True and False beside the column {target!r}: these look "
        "like answers, not like scores",
        hint=f"add --target {quote(target)} to compare them; if they are scores, say so: --right "
        "True,true --wrong False,false",
    )


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


def names_of_files(paths: Sequence[Path], of_folders: bool = False) -> list[str]:
    """Return names of models, one for each file: the parts of paths, or folders, that differ.

    Examples
    --------
    >>> names_of_files([Path("out/gpt-x.jsonl")])
    ['gpt-x']
    >>> names_of_files([Path("out/gpt-x/answers.jsonl"), Path("out/claude-y/answers.jsonl")])
    ['gpt-x', 'claude-y']
    >>> names_of_files([Path("gpt-x.csv"), Path("gpt-x.json")])
    ['gpt-x.csv', 'gpt-x.json']
    """
    if of_folders:
        folders = list(dict.fromkeys(path.absolute().parent for path in paths))
        names = names_of_files([folder.with_name(f"{folder.name}.x") for folder in folders])
        return [names[folders.index(path.absolute().parent)] for path in paths]
    stems = [path.absolute().with_suffix("") for path in paths]
    times = Counter(stems)
    parts = [
        [*(path.absolute() if times[stem] > 1 else stem).parts]
        for path, stem in zip(paths, stems, strict=True)
    ]
    if len(parts) == 1:
        return [parts[0][-1]]
    while len({own[0] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[1:] for own in parts]
    while len({own[-1] for own in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [own[:-1] for own in parts]
    return ["/".join(own) for own in parts]


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


def options_that_keep(columns: Sequence[str]) -> str:
    """Return the options that keep the columns of usual names among these.

    >>> options_that_keep(["cost", "reply", "Task"])
    '--keep-item cost --task Task'
    """
    options = ((name, KEPT.get(name.lower())) for name in columns)
    return " ".join(f"{option} {quote(name)}" for name, option in options if option)


def _no_columns_named(source: Path, named: Columns) -> ReaderError:
    """Return the error for a table whose columns are not all named, with the columns it has."""
    table = load_table(source, [])  # says what is wrong with a damaged file
    how = table.attrs.get("found", "")
    columns = table_columns(source)
    fields = ("item", "model", "score")
    usual = {field: name for field in fields if (name := getattr(named, field))}
    which = "too few" if usual else "no"
    for field, names in USUAL.items():
        if field in usual:
            continue
        there = {name.lower(): name for name in columns if name not in usual.values()}
        if found := next((there[name] for name in names if name in there), None):
            usual[field] = found
    if "score" not in usual and "model" not in usual:  # objects of models, with scores in each
        endings = Counter(name.rpartition(".")[2].lower() for name in columns if "." in name)
        if ending := next((name for name in USUAL["score"] if endings[name] > 1), None):
            usual["score"] = f"*.{ending}"
    for name in columns:
        if KEYS.fullmatch(name) and table[name].nunique() > 1:
            usual.setdefault("item" if "score" in usual and "item" not in usual else "model", name)
    model, item, score = (
        f"--{field} {quote(usual.get(field, 'COLUMN'))}" for field in ("model", "item", "score")
    )
    by_file = "; without --model, the model is called as the file is"
    if {"item", "score"} <= {*usual}:
        options = [item, score, *([model] if "model" in usual else [])]
        hint = " ".join([*options, options_that_keep(columns)]).strip()
        hint += "" if "model" in usual or "*" in score else by_file
    else:
        hint = (
            f"long table: {item} {score} {model}{by_file}; wide table: {model} (one row per model) "
            f"or {item} --transposed (one row per item)"
        )
        if "item" not in usual:
            hint += "; a file of items, which has no scores, needs a column id"
    return ReaderError(
        f"{source}: {which} columns named; its columns are {some(columns, most=8)}"
        f"{f' ({how})' if how else ''}",
        hint=f"{hint}; in Python, the same as arguments of import_results",
    )


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
