"""Scores from pandas tables whose columns the user names."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fewbench._blocks import is_large
from fewbench._lazy import pandas as pd
from fewbench._memory import check_fits
from fewbench._names import counted, some
from fewbench._types import AnyArray, ArrayLike, FloatArray, IntArray
from fewbench.errors import Mistakes, RepeatedError, ScoresError, WrongTypeError
from fewbench.scores.cell_words import CellReader, CellWords
from fewbench.scores.cells import Cells, compact, frozen
from fewbench.scores.conditions import join_settings
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.scores.repeats import TRIALS, TRIALS_HINT, Repeats, answers_needed, reduce_answers
from fewbench.scores.scale import Scale
from fewbench.scores.table import NO_TASK, SETTINGS, Scores


def from_long(
    table: "pd.DataFrame",
    *,
    model: str,
    item: str,
    score: str,
    task: str | None = None,
    date: str | None = None,
    family: str | None = None,
    item_columns: Sequence[str] = (),
    model_columns: Sequence[str] = (),
    scale: Scale | None = None,
    missing: Sequence[str] = (),
    right: Sequence[str] = (),
    wrong: Sequence[str] = (),
    trials: str | None = None,
) -> Scores:
    """Build Scores from a table with one row per model and item, or per answer.

    Parameters
    ----------
    table : DataFrame
        An empty score means not run.
    model, item, score : str
        Names of columns.
    task, date, family : str, optional
        Names of columns with the item's task and the model's date and family.
    item_columns, model_columns : sequences of str
        Further columns to keep with the items and models.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default.
    missing, right, wrong : sequences of str
        Texts in place of scores: for items that were not run (besides empty cells), for the best
        and for the worst score.
    trials : str, optional
        What several rows of a model and item become: `mean`, `first`, or `pass@K`, the chance that
        one of K answers is right. `Scores.repeats` keeps how far they vary. By default such rows
        are an error.

    Raises
    ------
    ScoresError
        If a column is missing, a cell appears twice without `trials`, an item has two tasks, or a
        value is invalid.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"llm": ["a", "a", "b"], "q": ["1", "2", "1"], "ok": [1, 0, 1]})
    >>> from_long(table, model="llm", item="q", score="ok").values.tolist()
    [[1.0, 0.0], [1.0, nan]]
    >>> again = pd.concat([table, table.assign(ok=[0, 0, 1])])
    >>> from_long(again, model="llm", item="q", score="ok", trials="mean").values.tolist()
    [[0.5, 0.0], [1.0, nan]]
    """
    _check_frame(table)
    needed = None if trials is None else answers_needed(trials)
    named = [model, item, score, task, *item_columns, date, family, *model_columns]
    mistakes = Mistakes()
    with mistakes.noted():
        require_columns(table, [name for name in named if name])
    if table.empty:
        raise ScoresError("the table has no rows", kind="too-few")
    sound = set[str | None]()
    for name in dict.fromkeys(named):
        if name and [*table.columns].count(name) == 1:
            n_mistakes = len(mistakes.errors)
            with mistakes.noted():
                _scalars(table[name], name)
                if name in (model, item):
                    _filled(table[name], name)
            sound |= {name} if len(mistakes.errors) == n_mistakes else set()
    scale = scale or Scale()
    reader = CellReader(CellWords(missing, right, wrong), scale)
    numbers = reader.numbers(table[score]) if score in sound else None
    with mistakes.noted():
        reader.refuse(f"column {score!r}", "is this the score column? If it is, ")
    if not {model, item} <= sound:
        mistakes.refuse()
    rows, model_ids = _codes(table[model])
    columns, item_ids = _codes(table[item])
    shape = len(model_ids), len(item_ids)
    check_fits(
        16.0 * shape[0] * shape[1] + 400.0 * sum(shape),  # the table, labels, and building them
        f"a table of {counted(shape[0], 'model')} × {counted(shape[1], 'item')}",
    )
    cell = np.ravel_multi_index((rows, columns), shape)
    filled = np.zeros(shape[0] * shape[1], dtype=bool)
    filled[cell] = True
    is_repeated = np.count_nonzero(filled) < len(cell)
    if is_repeated and trials is None and score in sound:
        with mistakes.noted():
            _refuse_repeated(table, cell, (model, item, score))
    of_items, of_models = (
        [name for name in names if name in sound]
        for names in ((task, *item_columns), (date, family, *model_columns))
    )
    per_item = _per_each(table, columns, len(item_ids), of_items, "item", mistakes)
    per_model = _per_each(table, rows, len(model_ids), of_models, "model", mistakes)
    if numbers is None or reader.places:
        mistakes.refuse()
    assert numbers is not None  # else there was a mistake
    values, repeats = np.full(shape, np.nan), None
    with mistakes.noted():
        if trials is not None and (is_repeated or needed is not None):
            unit, counts, variances = reduce_answers(
                cell, scale.to_unit(numbers), filled.size, trials
            )
            values.reshape(-1)[filled] = scale.from_unit(unit[filled])
            repeats = Repeats.from_counts(counts.reshape(shape), variances.reshape(shape))
        else:
            values.reshape(-1)[cell] = numbers
        del cell, filled, numbers  # more memory than the table
        built = from_arrays(
            values,
            models=list(model_ids),
            items=list(item_ids),
            tasks=list(_text(per_item[task])) if task in per_item else None,
            dates=list(_text(per_model[date])) if date in per_model else None,
            families=list(_text(per_model[family])) if family in per_model else None,
            scale=scale,
        )
    mistakes.refuse()
    items = built.items.assign(**{name: per_item[name].to_numpy() for name in item_columns})
    if needed is not None:
        items = items.assign(**{SETTINGS: join_settings([{TRIALS: str(trials)}])})
    models = built.models.assign(**{name: per_model[name].to_numpy() for name in model_columns})
    return built.changed(items=items, models=models, repeats=repeats)


def _filled(column: "pd.Series[Any]", name: str) -> None:
    """Raise ScoresError if a row has no id."""
    absent = np.flatnonzero(column.isna())
    if len(absent):
        raise ScoresError(
            f"column {name!r} is empty in {counted(len(absent), 'row')}, first at row "
            f"{absent[0] + 1}",
            hint="fill it in, or delete rows that are not answers, such as totals",
        )


def _refuse_repeated(table: "pd.DataFrame", cell: IntArray, named: tuple[str, str, str]) -> None:
    """Raise ScoresError for rows of one cell, of which nothing says what becomes of them."""
    model, item, score = named
    cells = pd.Series(cell)
    twice = cells.duplicated().to_numpy()
    texts, first_of = pd.factorize(table[score].astype(object))[0], pd.factorize(cells)[0]
    starts = np.flatnonzero(~twice)  # the cells in the order of their numbers
    others = int((texts != texts[starts[first_of]]).sum())
    first = table.iloc[int(np.flatnonzero(twice)[0])]
    raise RepeatedError(
        f"{counted(int(twice.sum()), 'row repeats', 'rows repeat')} a cell"
        f"{f', {others:,} of them with a different score' if others else ' with the same score'}, "
        f"first: model {str(first[model])!r}, item {str(first[item])!r}",
        hint=TRIALS_HINT if others else f"delete the repeated rows; or, {TRIALS_HINT}",
    )


def _per_each(
    table: "pd.DataFrame",
    codes: IntArray,
    count: int,
    names: Sequence[str | None],
    kind: str,
    mistakes: Mistakes,
) -> "dict[str | None, pd.Series[Any]]":
    """Return one value of each column for each model or item, of columns that have one."""
    values: dict[str | None, pd.Series[Any]] = {}
    for name in filter(None, names):
        with mistakes.noted():
            values[name] = _per(table, codes, count, name, kind)
    return values


def from_wide(
    table: "pd.DataFrame",
    *,
    model: str | None = None,
    transposed: bool = False,
    scale: Scale | None = None,
    missing: Sequence[str] = (),
    right: Sequence[str] = (),
    wrong: Sequence[str] = (),
) -> Scores:
    """Build Scores from a table with one row per model and one column per item.

    Parameters
    ----------
    table : DataFrame
        Models × items; an empty cell means not run.
    model : str, optional
        The column of model ids (of item ids if `transposed`); the index by default.
    transposed : bool
        Whether rows are items and columns are models.
    scale : Scale, optional
        The scale of the scores, [0, 1] by default.
    missing, right, wrong : sequences of str
        Texts in place of scores: for items that were not run (besides empty cells), for the best
        and for the worst score.

    Raises
    ------
    ScoresError
        If the column is missing, labels repeat or a cell is not a number.

    Examples
    --------
    >>> import pandas as pd
    >>> from_wide(pd.DataFrame({"q1": [1], "q2": [0]}, index=["a"])).full_scores().tolist()
    [0.5]
    """
    _check_frame(table)
    if model is not None:
        require_columns(table, [model])
        _scalars(table[model], model)
        table = table.set_index(model)
    models, items = table.shape[::-1] if transposed else table.shape
    if table.empty:
        raise ScoresError(f"the table has {models} models and {items} items")
    if table.index.isna().any() or table.columns.isna().any():
        raise ScoresError("a model or an item has no name")
    check_fits(
        16.0 * models * items,
        f"a table of {counted(models, 'model')} × {counted(items, 'item')}",
    )
    reader = CellReader(CellWords(missing, right, wrong), scale or Scale())
    texts = list[str]()
    is_plain = all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in {*table.dtypes})
    values = reader.filled(table.to_numpy(dtype=np.float64)) if is_plain else np.empty(table.shape)
    for at, (name, column) in enumerate(() if is_plain else table.items()):
        unread = sum(map(len, reader.places.values()))
        _scalars(column, str(name))
        values[:, at] = reader.numbers(column, f" of column {str(name)!r}")
        if np.isnan(values[:, at]).all() and sum(map(len, reader.places.values())) > unread:
            texts.append(str(name))
    if texts and not np.isnan(values).all():
        raise ScoresError(
            f"the table has texts and no score in {some(texts)}",
            hint="a wide table has only scores: leave out other columns, or move attributes to a "
            f"file of their own ({'--items' if transposed else '--models'} FILE); "
            f"or {reader.meaning()}",
        )
    reader.refuse("the table")
    if transposed:
        table, values = table.T, values.T
    return from_arrays(
        values,
        models=[str(name) for name in table.index],
        items=[str(name) for name in table.columns],
        scale=scale,
    )


def require_columns(table: "pd.DataFrame", columns: Sequence[str]) -> None:
    """Raise ScoresError unless a table has each of these columns once."""
    lacking = [column for column in columns if column not in table.columns]
    if lacking:
        raise ScoresError(
            f"the table has no column {some(lacking)}",
            hint=f"its columns are {some(table.columns, most=8)}",
        )
    repeated = set(table.columns[table.columns.duplicated()]) & set(columns)
    if repeated:
        raise ScoresError(f"the table has two columns named {some(repeated)}")


def _scalars(column: "pd.Series[Any]", name: str) -> None:
    """Raise ScoresError if a column holds lists or objects."""
    if column.dtype != object:
        return
    nested = [at for at, value in enumerate(column) if not pd.api.types.is_scalar(value)]
    if nested:
        value = column.iloc[nested[0]]
        hint = "keep one plain value per cell"
        if isinstance(value, dict) and value:
            inner = some((f"{name}.{key}" for key in value), quotes=False)
            hint += f"; in JSON, name a value within it: {inner}"
        elif not isinstance(value, dict):
            hint += "; if a list has the scores of several answers, add --trials mean"
        raise ScoresError(
            f"column {name!r} contains lists or objects in {counted(len(nested), 'row')}, first at "
            f"row {nested[0] + 1}",
            hint=hint,
        )


def _text(column: "pd.Series[Any]") -> "pd.Series[Any]":
    return column.map(lambda value: "" if pd.isna(value) else str(value)).astype(object)


def _codes(column: "pd.Series[Any]") -> tuple[IntArray, list[str]]:
    """Return the position of each row's text among the distinct ones, and these as they appear."""
    if column.dtype == object or pd.api.types.is_float_dtype(column.dtype):
        column = _text(column)  # 1 and True, 0.0 and -0.0 are equal, their texts are not
    codes, distinct = pd.factorize(column)
    again, texts = pd.factorize(_text(pd.Series(distinct)))
    codes = codes if len(texts) == len(distinct) else again[codes]
    return codes.astype(np.int32), list(texts)


def _per(table: "pd.DataFrame", codes: Any, count: int, column: str, kind: str) -> "pd.Series[Any]":
    """Return one value of a column for each model or item."""
    values = table[column].reset_index(drop=True)
    first = np.full(count, -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    value_codes = pd.factorize(values)[0].astype(np.int32)  # -1 for all empty ones
    differs = np.flatnonzero(value_codes != value_codes[first][codes])
    if len(differs):
        at = int(differs[0])
        there, here = values.iloc[[first[codes[at]], at]].astype(object)
        raise ScoresError(
            f"one {kind} has two values in column {column!r}: {there!r} and {here!r} "
            f"(row {at + 1})",
            hint=f"give {'an' if kind == 'item' else 'a'} {kind} the same value in all its rows",
        )
    return values.iloc[first].reset_index(drop=True)


def _check_frame(table: object) -> None:
    if not isinstance(table, pd.DataFrame):
        raise WrongTypeError(
            f"{type(table).__name__} in place of a DataFrame",
            hint="use fewbench.from_arrays(array, models=[...]): models × items",
        )


def from_arrays(
    values: ArrayLike,
    *,
    models: Sequence[str],
    items: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    dates: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
    probabilities: AnyArray | OptionProbabilities | None = None,
    n_options: ArrayLike | None = None,
    scale: Scale | None = None,
) -> Scores:
    """Build Scores from arrays.

    Parameters
    ----------
    values : array-like, shape (models, items)
        Scores on `scale`, NaN where a model was not run.
    models, items : sequences of str
        Ids. Items are named "item-0", "item-1", … by default.
    tasks : sequence of str, length items, optional
        One task named "all" by default.
    dates, families : sequences of str, length models, optional
        Release dates (ISO text) and families.
    probabilities : ndarray, shape (models, items, options), optional
        Option probabilities, 0 for options that an item does not have.
    n_options : array-like of int, shape (items,), optional
        Number of options of each item; all by default.
    scale : Scale, optional
        The scale of `values`, [0, 1] by default.

    Raises
    ------
    ScoresError
        If shapes, labels or values do not fit.

    Examples
    --------
    >>> from_arrays([[50, 100]], models=["a"], scale=Scale(0, 100)).full_scores().tolist()
    [0.75]
    """
    scale = scale or Scale()
    unit = cast(FloatArray, _in_unit(values, scale))
    n_models, n_items = unit.shape
    model_table = pd.DataFrame(index=pd.Index(_column(models, n_models, "model", "row")))
    names = [f"item-{i}" for i in range(n_items)] if items is None else items
    item_table = pd.DataFrame(index=pd.Index(_column(names, n_items, "item", "column")))
    item_table["task"] = _column(
        [NO_TASK] * n_items if tasks is None else tasks, n_items, "task", "column"
    )
    if dates is not None:
        model_table["date"] = _column(dates, n_models, "date", "row")
    if families is not None:
        model_table["family"] = _column(families, n_models, "family name", "row")
    options = None
    if probabilities is not None:
        options = (
            probabilities
            if isinstance(probabilities, OptionProbabilities)
            else OptionProbabilities(np.asarray(probabilities))
        )
        counts = options.shape[2] if n_options is None else n_options
        item_table["n_options"] = _counts(counts, n_items, options.shape[2])
        if options.shape[:2] == unit.shape:  # otherwise Scores itself raises the error
            options.check(item_table["n_options"].to_numpy(np.intp), [str(m) for m in models])
    return Scores(unit, model_table, item_table, options, scale)


def _in_unit(values: ArrayLike, scale: Scale) -> FloatArray | Cells:
    """Return scores in [0, 1], a large table as bytes if it can be."""
    if isinstance(values, np.ndarray) and values.ndim == 2 and is_large(values.size):
        if values.dtype.kind in "biuf":
            cells = compact(values, None if scale.is_unit else scale.to_unit)
            if cells is not None:
                return cells
        check_fits(
            8.0 * values.size * (1 if scale.is_unit else 2),
            f"a table of {counted(values.shape[0], 'model')} × {counted(values.shape[1], 'item')} "
            "with more than 255 distinct scores",
        )
    try:
        raw = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ScoresError(f"the scores are not numbers: {error}") from error
    if raw.ndim != 2:
        raise ScoresError(
            f"scores have {counted(raw.ndim, 'dimension')}, not models × items",
            hint="give one row per model, also for one model: [[1, 0, 1]]",
        )
    return frozen(np.array(raw if scale.is_unit else scale.to_unit(raw), order="C"))


def _counts(counts: ArrayLike, n_items: int, most: int) -> NDArray[np.int64]:
    try:
        whole = np.broadcast_to(np.asarray(counts, dtype=np.float64), n_items)
    except (TypeError, ValueError) as error:
        raise ScoresError(f"n_options does not fit {n_items} items: {error}") from error
    bad = np.flatnonzero(~((whole >= 1) & (whole <= most) & (whole == np.round(whole))))
    if len(bad):
        raise ScoresError(
            f"n_options of item {int(bad[0])} is {whole[bad[0]]:g}, not a count from 1 to {most}"
        )
    return whole.astype(np.int64)


def _column(values: Sequence[str], length: int, what: str, axis: str) -> NDArray[np.object_]:
    if len(values) != length:
        raise ScoresError(
            f"{counted(len(values), what)} for {counted(length, axis)} of scores",
            hint="rows are models, columns are items",
        )
    texts = [str(value) for value in values]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        cut = "".join(texts)[max(0, error.start - 10) : error.end]
        raise ScoresError(
            f"{what} contain text that is not valid Unicode, at {cut!a}",
            hint="the text contains half of a surrogate pair; write the file as UTF-8",
        ) from error
    return np.array(texts, dtype=object)
