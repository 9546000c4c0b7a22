"""Predictions beside right answers: whether they are equal, and what looks like them.

Right answers are a column of the same table (`compared`), or labels that come later, for items
whose predictions are known (`labeled`).
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench.errors import ReaderError
from fewbench.readers.files import table_suffix
from fewbench.readers.frames import Columns, load_table, table_columns
from fewbench.readers.table_hints import TARGETS, USUAL
from fewbench.readers.values import BOOLEANS, as_number
from fewbench.scores import Scores, from_arrays
from fewbench.scores.benchmark import PREDICTION
from fewbench.scores.build import require_columns
from fewbench.scores.cell_words import TRUTHS, CellWords

SCORE = "(score)"
"""Column of scores that a table does not have itself."""


def compared(frame: "pd.DataFrame", columns: Columns) -> "tuple[pd.DataFrame, Columns, str]":
    """Return the rows with a score: whether a prediction equals its target; and how it was found.

    Equal are the same texts, up to white space at their ends, and the same numbers. Loosely equal
    are also texts that differ in case, punctuation and white space.
    """
    require_columns(frame, [str(columns.score), str(columns.target)])
    pairs = frame[[columns.score, columns.target]].astype(object)
    empty = pairs.apply(_is_empty)
    if (lacking := empty[columns.target]).any():
        raise ReaderError(
            f"column {columns.target!r} is empty in {counted(int(lacking.sum()), 'row')}, first at "
            f"row {int(lacking.argmax()) + 1}",
            hint="fill in the right answers, or delete rows that are not items",
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


def target_of(sources: Sequence[Path], columns: Columns) -> str | None:
    """Return the first column with a usual name of right answers."""
    every = (name for source in sources for name in table_columns(source, columns.named))
    return next((name for name in every if name.lower() in TARGETS and name != columns.score), None)


def labels_in(names: Sequence[str], benchmark: Scores, targets: Sequence[str]) -> str | None:
    """Return the column of labels of a table without scores, if the targets' predictions are known.

    Otherwise None.
    """
    known = any(f"{PREDICTION}{target}" in benchmark.items for target in targets)
    labels = [name for name in names if name.lower() in TARGETS]
    return labels[0] if known and len(labels) == 1 and "score" not in names else None


def labeled(
    path: Path, label: str, item: str | None, benchmark: Scores, targets: Sequence[str]
) -> tuple[Scores, str]:
    """Return the scores of all targets by labels of items, and how they were found.

    A score is whether a target's prediction, in the items' column prediction:TARGET, equals the
    label, as text or number. Items with an empty label are not labeled yet.

    Raises
    ------
    ReaderError
        If a target or a labeled item has no prediction, or an item is unknown or labeled twice.
    """
    names = table_columns(path, [])
    item = item or next((name for name in ("id", "item") if name in names), "id")
    frame = load_table(path, [item, label])
    require_columns(frame, [item, label])
    frame = frame[~_is_empty(frame[label])]
    ids = frame[item].astype(str)
    if ids.duplicated().any():
        twice = ids[ids.duplicated()].unique()
        raise ReaderError(
            f"{path}: {counted(len(twice), 'item')} labeled twice: {some(twice)}",
            hint="keep one label for each item, such as that of most annotators",
        )
    at = benchmark.positions(ids)
    scores, equal = [], []
    for target in targets:
        column = f"{PREDICTION}{target}"
        if column not in benchmark.items:
            raise ReaderError(
                f"the items have no column {column!r}, which says what {target} predicted",
                hint="start from a file of items with this column, or give scores",
            )
        predicted = benchmark.items[column].astype(object).iloc[at]
        if (lacking := _is_empty(predicted)).any():
            raise ReaderError(
                f"{counted(int(lacking.sum()), 'labeled item')} without a prediction of {target}: "
                f"{some(ids[lacking.to_numpy()])}",
                hint="a model that does not answer is wrong: start again with a prediction for "
                "each item, such as 'none'",
            )
        pairs = pd.DataFrame({column: predicted.to_numpy(), label: frame[label].to_numpy()})
        compared_pairs, _, how = compared(pairs, Columns(score=column, target=label))
        scores.append(compared_pairs[SCORE].to_numpy())
        equal.append(how.split(" (")[0])
    tasks = benchmark.items["task"].iloc[at].tolist()
    found = from_arrays(np.array(scores), models=targets, items=[*ids], tasks=tasks)
    return found, "; ".join(equal)


def _is_empty(cells: "pd.Series[Any]") -> "pd.Series[Any]":
    return cells.isna() | (cells.astype(str).str.strip() == "")


def refuse_predictions(
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
    target = target_of(sources, columns)
    if target is None or str(columns.score).rpartition(".")[2].lower() in USUAL["score"]:
        return
    if is_bool or not isinstance(cells.iloc[0], str):
        source = next(path for path in sources if target in table_columns(path, columns.named))
        beside = load_table(source, [], replace(Columns(), score=target), words)[target]
        if table_suffix(source) not in (".csv", ".tsv") or not pd.api.types.is_bool_dtype(beside):
            return  # truth values, and the right answers are not truth values
    raise ReaderError(
        f"column {columns.score!r} holds True and False beside the column {target!r}: these look "
        "like answers, not like scores",
        hint=f"add --target {quote(target)} to compare them; if they are scores, name both: "
        "--right True,true --wrong False,false",
        kind="format",
    )
