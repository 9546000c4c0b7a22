"""Scores: what models scored on items, with their labels."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fewbench._names import counted, some
from fewbench._types import FloatArray, IntArray
from fewbench.errors import ScoresError
from fewbench.scores.benchmark import Average, Benchmark, positions_in
from fewbench.scores.check import check_labels, check_values
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.scores.scale import Scale

MODEL_ATTRIBUTES = ("date", "family", "role")
# Columns of items that say how they were asked; estimates do not depend on them.
PROMPTS, SETTINGS, HARNESS_VERSION = "prompt_hashes", "task_settings", "harness_version"


@dataclass(frozen=True, eq=False)
class Scores:
    """An immutable, labelled table of scores: models × items.

    Build it with `from_arrays`, `from_long`, `from_wide`, or a reader of `fewbench.readers`.

    Parameters
    ----------
    values : ndarray of float64, shape (models, items)
        Scores in [0, 1], 1 being best; NaN where the model was not run on the item.
    models : DataFrame
        One row a model, its index the model ids. Optional columns with a meaning: `date`
        (ISO text), `family`, `role` ("source" or "target"). Others are kept.
    items : DataFrame
        One row an item, its index the item ids. Column `task`; `n_options` where there are
        probabilities. Others (such as a harness's own index) are kept.
    probabilities : OptionProbabilities, optional
        Predictive probabilities of the options.
    scale : Scale
        The user's scale, on which estimates are given back.
    average : {"micro", "macro"}
        How the full score is defined: the mean over items, or the mean of the tasks' means.

    Raises
    ------
    ScoresError
        For labels that repeat or lack, scores out of range, models or items without an answer.

    Examples
    --------
    >>> scores = from_arrays([[1, 0, 1], [0, 0, 1]], models=["a", "b"], tasks=["x", "x", "y"])
    >>> scores.full_scores().round(2).tolist()
    [0.67, 0.33]
    >>> scores.averaged("macro").full_scores().tolist()
    [0.75, 0.5]
    """

    values: FloatArray
    models: pd.DataFrame
    items: pd.DataFrame
    probabilities: OptionProbabilities | None = None
    scale: Scale = field(default_factory=Scale)
    average: Average = "micro"
    benchmark: Benchmark = field(init=False, repr=False)
    """The items without the models."""

    def __post_init__(self) -> None:
        # Kept apart from the caller, who may go on changing what he gave. A read-only array is
        # shared: copying one for every part that is taken would double the cost.
        if self.values.flags.writeable:
            object.__setattr__(self, "values", _frozen(self.values.copy()))
        object.__setattr__(self, "models", self.models.copy())
        object.__setattr__(self, "items", self.items.copy())
        check_labels(self.models.index, "model")
        benchmark = Benchmark(self.items, self.scale, self.average)
        object.__setattr__(self, "benchmark", benchmark)
        check_values(self.values, self.models.index, self.items.index)
        shared = sorted(set(self.models.columns) & set(self.items.columns))
        if shared:
            raise ScoresError(
                f"models and items both have columns named {some(shared)}", hint="rename one"
            )
        if self.probabilities is not None:
            if self.probabilities.shape[:2] != self.values.shape:
                raise ScoresError(
                    f"option probabilities are for {self.probabilities.shape[:2]} models and "
                    f"items, the scores for {self.values.shape}"
                )
            if "n_options" not in self.items:
                raise ScoresError("there are option probabilities but no column 'n_options'")

    # -- size and labels ---------------------------------------------------------------------

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.models)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @cached_property
    def model_ids(self) -> list[str]:
        """The models' ids, in order."""
        return [str(model) for model in self.models.index]

    @property
    def item_ids(self) -> NDArray[np.object_]:
        """The items' ids, in order."""
        return self.benchmark.item_ids

    @property
    def tasks(self) -> list[str]:
        """The tasks' names, in order of first appearance."""
        return self.benchmark.tasks

    @property
    def task_of(self) -> IntArray:
        """Each item's task as a position in `tasks`, shape (items,)."""
        return self.benchmark.task_of

    @property
    def has_missing(self) -> bool:
        """Whether any cell was not run."""
        return bool(np.isnan(self.values).any())

    @cached_property
    def is_binary(self) -> bool:
        """Whether every score is 0 or 1."""
        run = self.values[~np.isnan(self.values)]
        return bool(((run == 0) | (run == 1)).all())

    # -- full scores -------------------------------------------------------------------------

    @property
    def item_weights(self) -> FloatArray:
        """Weight of each item in the full score, shape (items,), sum 1."""
        return self.benchmark.item_weights

    @property
    def task_weights(self) -> FloatArray:
        """Weight of each item in each task's score, shape (items, tasks), columns of sum 1."""
        return self.benchmark.task_weights

    @cached_property
    def filled(self) -> FloatArray:
        """The values with each missing cell at item mean + model mean - grand mean, in [0, 1]."""
        if not self.has_missing:
            return self.values
        run = ~np.isnan(self.values)
        item_mean = np.nanmean(self.values, axis=0)
        # A model is compared with the others on the items that it did answer.
        above = np.where(run, self.values - item_mean, 0.0).sum(axis=1) / run.sum(axis=1)
        guess = np.clip(item_mean + above[:, None], 0.0, 1.0)
        return _frozen(np.where(run, self.values, guess))

    def full_scores(self) -> FloatArray:
        """Return each model's full score, shape (models,), missing cells filled (see `filled`)."""
        return np.asarray(self.filled @ self.item_weights)

    def task_scores(self) -> FloatArray:
        """Return each model's mean score per task, shape (models, tasks)."""
        return self.task_means(self.filled)

    def task_means(self, values: FloatArray) -> FloatArray:
        """Average scores of these items, shape (rows, items), by task: shape (rows, tasks)."""
        return self.benchmark.task_means(values)

    def averaged(self, average: Average) -> "Scores":
        """Return the same scores with another definition of the full score."""
        return self if average == self.average else replace(self, average=average)

    # -- parts -------------------------------------------------------------------------------

    def take(self, models: ArrayLike | None = None, items: ArrayLike | None = None) -> "Scores":
        """Return the scores of some models and items, given by position.

        Items that none of the models answered, and models that answered none of the items, are
        an error, as everywhere: nothing is dropped silently.
        """
        for given in (models, items):
            if given is not None and np.asarray(given).dtype == bool:
                raise ScoresError("a mask where positions are needed", hint="use np.flatnonzero")
        rows = np.arange(self.n_models) if models is None else np.asarray(models, dtype=np.intp)
        columns = np.arange(self.n_items) if items is None else np.asarray(items, dtype=np.intp)
        kept = None
        if self.probabilities is not None:
            kept = self.probabilities.take(rows, None if items is None else columns)
        return replace(
            self,
            values=_frozen(np.ascontiguousarray(self.values[np.ix_(rows, columns)])),
            models=self.models.iloc[rows],
            items=self.items.iloc[columns],
            probabilities=kept,
        )

    def complete(self) -> "Scores":
        """Return the same scores with missing cells filled (see `filled`)."""
        return replace(self, values=self.filled) if self.has_missing else self

    def positions(self, items: Iterable[str]) -> IntArray:
        """Return the positions of item ids; ScoresError names those that are unknown."""
        return self.benchmark.positions(items)

    def model_positions(self, models: Iterable[str]) -> IntArray:
        """Return the positions of model ids; ScoresError names those that are unknown."""
        return positions_in(self.models.index, list(models), "model")

    # -- identity ----------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that an estimate can depend on, 16 hexadecimal digits.

        Attributes of the models that have no meaning to fewbench do not count.
        """
        known = [name for name in MODEL_ATTRIBUTES if name in self.models]
        if len(known) == len(self.models.columns):
            return self.digest
        return self._hash(self.models[known])

    @cached_property
    def digest(self) -> str:
        """A hash of the whole table, 16 hexadecimal digits."""
        return self._hash(self.models)

    def _hash(self, models: pd.DataFrame) -> str:
        digest = hashlib.sha256(b"fewbench scores 1\0")
        for table in (models, self.items):
            for name, column in [("", table.index), *table.items()]:
                if name in (PROMPTS, SETTINGS, HARNESS_VERSION):
                    continue
                digest.update(str(name).encode() + b"\0")
                digest.update("\0".join("" if pd.isna(x) else str(x) for x in column).encode())
                digest.update(b"\0\0")
        digest.update(repr((self.values.shape, self.scale, self.average)).encode())
        values = self.values
        if self.has_missing:
            values = np.where(np.isnan(values), -1.0, values)
        digest.update(np.ascontiguousarray(values).data)
        if self.probabilities is not None:
            digest.update(self.probabilities.digest().encode())
        return digest.hexdigest()[:16]

    def to_frame(self) -> pd.DataFrame:
        """Return the scores on the user's scale, one row per model, one column per item."""
        values = self.scale.from_unit(self.values)
        return pd.DataFrame(values, index=self.models.index, columns=self.items.index)

    def __repr__(self) -> str:
        """Return the size of the table in a line."""
        missing = f", {np.isnan(self.values).mean():.1%} missing" if self.has_missing else ""
        options = "" if self.probabilities is None else ", with option probabilities"
        return (
            f"Scores: {counted(self.n_models, 'model')} × {counted(self.n_items, 'item')}, "
            f"{counted(len(self.tasks), 'task')}{missing}{options}"
        )

    def _repr_html_(self) -> str:
        full = pd.DataFrame({"full score": self.scale.from_unit(self.full_scores())})
        full.index = self.models.index
        return f"<p>{self!r}</p>{full.to_html(max_rows=10)}"

    def equals(self, other: "Scores") -> bool:
        """Whether both tables hold the same labels, scores, probabilities and attributes."""
        return self.digest == other.digest


def check_is_scores(scores: object) -> None:
    """Raise ScoresError for a path, or for what an import returned, in the place of scores."""
    if not isinstance(scores, Scores):
        raise ScoresError(
            f"the scores are a {type(scores).__name__}, not Scores",
            hint="use fewbench.load_scores(path), or .scores of what import_results returned",
        )


def from_arrays(
    values: ArrayLike,
    *,
    models: Sequence[str],
    items: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    dates: Sequence[str] | None = None,
    families: Sequence[str] | None = None,
    probabilities: NDArray[Any] | OptionProbabilities | None = None,
    n_options: ArrayLike | None = None,
    scale: Scale | None = None,
) -> Scores:
    """Build Scores from arrays.

    Parameters
    ----------
    values : array-like, shape (models, items)
        Scores on `scale`; NaN where a model was not run.
    models, items : sequences of str
        Ids. Items without ids are numbered "item-0", "item-1", …
    tasks : sequence of str, length items, optional
        By default all items are of one task named "all".
    dates, families : sequences of str, length models, optional
        Release dates (ISO text) and families.
    probabilities : ndarray, shape (models, items, options), optional
        Option probabilities, 0 for options that an item does not have.
    n_options : array-like of int, shape (items,), optional
        How many options each item has; all by default.
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
    try:
        raw = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ScoresError(f"the scores are not numbers: {error}") from error
    if raw.ndim != 2:
        raise ScoresError(f"scores have {raw.ndim} dimensions, not models × items")
    unit = _frozen(np.array(raw if scale.is_unit else scale.to_unit(raw), order="C"))
    n_models, n_items = raw.shape
    model_table = pd.DataFrame(index=_labels(models, n_models, "models"))
    names = [f"item-{i}" for i in range(n_items)] if items is None else items
    item_table = pd.DataFrame(index=_labels(names, n_items, "items"))
    item_table["task"] = _column(["all"] * n_items if tasks is None else tasks, n_items, "tasks")
    if dates is not None:
        model_table["date"] = _column(dates, n_models, "dates")
    if families is not None:
        model_table["family"] = _column(families, n_models, "families")
    options = None
    if probabilities is not None:
        options = (
            probabilities
            if isinstance(probabilities, OptionProbabilities)
            else OptionProbabilities(np.asarray(probabilities))
        )
        counts = options.shape[2] if n_options is None else n_options
        item_table["n_options"] = _counts(counts, n_items, options.shape[2])
        if options.shape[:2] == raw.shape:  # else Scores itself says so
            options.check(item_table["n_options"].to_numpy(np.intp), [str(m) for m in models])
    return Scores(unit, model_table, item_table, options, scale)


def _frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


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


def _labels(labels: Sequence[str], length: int, what: str) -> "pd.Index[Any]":
    return pd.Index(_column(labels, length, what))


def _column(values: Sequence[str], length: int, what: str) -> NDArray[np.object_]:
    if len(values) != length:
        raise ScoresError(f"there are {len(values)} {what} for {length} rows or columns of scores")
    texts = [str(value) for value in values]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:
        cut = "".join(texts)[max(0, error.start - 10) : error.end]
        raise ScoresError(
            f"{what} hold text that is not valid Unicode, at {cut!a}",
            hint="half of a surrogate pair was cut off; write the file as UTF-8",
        ) from error
    return np.array(texts, dtype=object)
