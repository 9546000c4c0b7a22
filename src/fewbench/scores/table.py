"""Scores: what models scored on items, with their labels."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from fewbench._blocks import Matrix, by_columns, by_rows, is_large, not_run, row_blocks
from fewbench._lazy import pandas as pd
from fewbench._names import counted, some
from fewbench._text import quoted
from fewbench._types import AnyArray, ArrayLike, BoolArray, FloatArray, IntArray
from fewbench.errors import PackError, RangeError, ScoresError
from fewbench.scores.benchmark import (
    WEIGHT,
    Average,
    Benchmark,
    ItemTable,
    check_labels,
    positions_in,
)
from fewbench.scores.cells import Cells, ChosenAnswers, Unread, compact, filled_cells, frozen
from fewbench.scores.groups import EQUAL, GROUP
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.scores.repeats import Repeats
from fewbench.scores.scale import Scale

MODEL_ATTRIBUTES = ("date", "family", "role")
# Columns of items with their prompts and scoring; estimates do not depend on them.
PROMPTS, KEYS, SETTINGS = "prompt_hashes", "key_hashes", "task_settings"
HARNESS_VERSION = "harness_version"
KEY_FIELD = "key_field"
"""Column of the items with the field that their documents are named by; empty for their content."""
POSITION = "doc_id"
"""Column of the items with their positions in the harness's tasks; also a field to name them by."""
RUN = "run"
"""Column of the models with the evaluation that a row was added from; empty for others."""
ROUTE = "route"
"""Column of the items with the harness whose names of tasks and documents they have."""
TEXTS = "text_hashes"
"""Column of the items with FIELD=HASH, of a text of their documents; see `text_hash`."""
CREDIT = "credit"
"""Column of the models with where their results were published, the license, and how to cite it."""
UNRUN = "unrun"
"""Column of a pack's items: 1 for those that none of its source models ran."""
NO_TASK = "all"  # the task of all items if none are given
MOST_MISSING = 0.5
"""A model that ran a smaller share of the items is not a full source: few methods can use it."""


def key_field_of(items: "pd.DataFrame") -> str | None:
    """Return the field of a document that names all items, or None if there is no such field.

    Examples
    --------
    >>> import pandas as pd
    >>> key_field_of(pd.DataFrame({"key_field": ["id", "id"]})), key_field_of(pd.DataFrame())
    ('id', None)
    """
    names = set(items[KEY_FIELD]) if KEY_FIELD in items else set()
    return str(names.pop()) if len(names) == 1 and names != {""} else None


@dataclass(frozen=True)
class Origin:
    """How a pack's method was set up on the whole table, and the fingerprint of the table.

    `provenance` and `subset` have the fields of these classes of `fewbench.methods`; no subset if
    items are chosen as answers arrive. `errors` has those of
    `fewbench.uncertainty.held_out.HeldOut`, `backtest` the method's errors by kind of target.
    """

    fingerprint: str
    provenance: Mapping[str, Any]
    subset: Mapping[str, Any] | None
    errors: Mapping[str, FloatArray]
    backtest: Sequence[Mapping[str, Any]] = ()


class _Values:
    """The field `Scores.values`: given as an array, Cells or Unread, used as an array."""

    def __get__(self, scores: "Scores | None", owner: type) -> FloatArray:
        if scores is None:  # asked by dataclass: the field has no default
            raise AttributeError("values")
        return scores._whole

    def __set__(self, scores: "Scores", given: "FloatArray | Cells | Unread") -> None:
        stored = given
        if isinstance(given, np.ndarray):
            large = given.ndim == 2 and is_large(given.size)
            stored = (compact(given) if large else None) or (
                # copied, as the caller may change it later
                frozen(given.copy()) if given.flags.writeable else given
            )
        object.__setattr__(scores, "_given", stored)


@dataclass(frozen=True, eq=False)
class Scores(ItemTable):
    """An immutable, labelled table of scores: models × items.

    Build it with `from_arrays`, `from_long`, `from_wide`, or a reader of `fewbench.readers`.

    Parameters
    ----------
    values : ndarray of float64, shape (models, items), or Cells
        Scores in [0, 1], 1 being best, NaN where the model was not run on the item. A table of more
        than 8 million cells is held as one byte per cell if it has at most 255 distinct scores.
        `values` then makes the whole array when it is first used, and `cells` gives parts of it.
    models : DataFrame
        One row per model, indexed by model id. Optional columns with a meaning: `date`
        (ISO text), `family`, `role` ("source" or "target"). Other columns are kept.
    items : DataFrame
        One row per item, indexed by item id. Column `task`, and `n_options` if there are
        probabilities. Other columns are kept.
    probabilities : OptionProbabilities, optional
        Option probabilities.
    scale : Scale
        The user's scale, on which estimates are reported.
    average : {"micro", "macro"}
        Full score: the mean over items, or the mean of the task means.
    origin : Origin, optional
        Set for scores that come from a pack, but not for parts of them.
    repeats : Repeats, optional
        How often items were answered, and how far the answers vary, if any was more than once. Its
        score is then the mean of its answers, or another reduction of them.

    Raises
    ------
    ScoresError
        For missing or repeated labels, scores out of range, models without an answer.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> scores = from_arrays([[1, 0, 1], [0, 0, 1]], models=["a", "b"], tasks=["x", "x", "y"])
    >>> scores.full_scores().round(2).tolist()
    [0.67, 0.33]
    >>> scores.averaged("macro").full_scores().tolist()
    [0.75, 0.5]
    """

    if TYPE_CHECKING:
        values: FloatArray
    else:
        values: FloatArray = _Values()
    models: "pd.DataFrame"
    items: "pd.DataFrame"
    probabilities: OptionProbabilities | None = None
    scale: Scale = field(default_factory=Scale)
    average: Average = "micro"
    origin: Origin | None = None
    repeats: Repeats | None = None
    learned: dict[str, AnyArray] = field(init=False, default_factory=dict)
    _given: Any = field(init=False)  # what `values` was given as

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", self.models.copy())
        object.__setattr__(self, "items", self.items.copy())
        check_labels(self.models.index, "model")
        self._check_items()
        if not isinstance(self._given, Unread):
            _check_cells(self.cells, self.models.index, self.items, self.scale)
        shared = sorted(set(self.models.columns) & set(self.items.columns))
        if shared:
            raise ScoresError(
                f"models and items both have columns named {some(shared)}", hint="rename one"
            )
        shape = self.n_models, self.n_items
        if self.repeats is not None and self.repeats.counts.shape != shape:
            raise ScoresError(
                f"numbers of answers have {self.repeats.counts.shape} models and items, the scores "
                f"{shape}",
                kind="conflict",
            )
        if self.probabilities is not None:
            if self.probabilities.shape[:2] != shape:
                raise ScoresError(
                    f"option probabilities have {self.probabilities.shape[:2]} models and items, "
                    f"the scores {shape}"
                )
            if "n_options" not in self.items:
                raise ScoresError("there are option probabilities but no column 'n_options'")

    def __len__(self) -> int:
        """Return the number of models."""
        return self.n_models

    def __bool__(self) -> bool:
        """Return True: a table without models is a table."""
        return True

    @overload
    def __getitem__(self, models: str) -> "pd.Series[float]": ...
    @overload
    def __getitem__(self, models: list[str]) -> "Scores": ...
    def __getitem__(self, models: "str | list[str]") -> "pd.Series[float] | Scores":
        """Return the scores of a model by item, on the user's scale; of a list, their table.

        ScoresError names unknown models.

        Examples
        --------
        >>> from fewbench import from_arrays
        >>> scores = from_arrays([[1, 0], [0, 0]], models=["a", "b"], items=["x", "y"])
        >>> len(scores), scores["a"].to_dict(), scores[["b"]].model_ids
        (2, {'x': 1.0, 'y': 0.0}, ['b'])
        """
        if isinstance(models, str):
            row = self.cells[self.model_positions([models])][0]
            return pd.Series(self.scale.from_unit(row), self.items.index, name=models)
        return self.take(models=self.model_positions(models))

    def __dir__(self) -> list[str]:
        """Return the names for users."""
        return [name for name in super().__dir__() if not name.startswith("_") or "__" in name]

    # -- cells -------------------------------------------------------------------------------

    @cached_property
    def cells(self) -> Matrix:
        """The values by parts: `cells[rows]`, `cells[:, items]`, each as float64.

        The same as `values` for a table that is not held as bytes. PackError for a pack of the
        chosen items alone.
        """
        cells: Matrix = self._given.read() if isinstance(self._given, Unread) else self._given
        return cells

    @cached_property
    def _whole(self) -> FloatArray:
        return self.held if self._bytes is None else frozen(np.asarray(self._bytes))

    @property
    def held(self) -> FloatArray:
        """What a new table may be given as its `values`, without making the whole array."""
        return cast(FloatArray, self.cells)

    @property
    def chosen(self) -> ChosenAnswers | None:
        """What a pack holds in place of all answers, or None if all are here."""
        return self._given if isinstance(self._given, ChosenAnswers) else None

    @property
    def _bytes(self) -> Cells | None:
        """The cells of a table that is held as bytes."""
        return self.cells if isinstance(self.cells, Cells) else None

    @cached_property
    def filled_cells(self) -> Matrix:
        """`filled` by parts, as `cells`."""
        return filled_cells(self.cells, self.task_of) if self.has_missing else self.cells

    @property
    def is_run(self) -> BoolArray:
        """Whether each cell was run, shape (models, items)."""
        coded = self._bytes
        return coded.is_run if coded is not None else ~not_run(self.values)

    @cached_property
    def missing_shares(self) -> FloatArray:
        """The share of the items that each model was not run on, shape (models,)."""
        if isinstance(self._given, Unread):
            return self._given.missing_shares
        shares: FloatArray = by_rows(self.cells, lambda part: np.isnan(part).mean(axis=1))
        return shares

    # -- size and labels ---------------------------------------------------------------------

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.models)

    @cached_property
    def model_ids(self) -> list[str]:
        """Model ids, in order."""
        return [str(model) for model in self.models.index]

    @cached_property
    def benchmark(self) -> Benchmark:
        """The items without the models."""
        return Benchmark(self.items, self.scale, self.average)

    def model_positions(self, models: Iterable[str]) -> IntArray:
        """Return the positions of model ids; ScoresError names unknown ids."""
        return positions_in(self.models.index, list(models), "model")

    @property
    def credits(self) -> tuple[str, ...]:
        """Where the models' results were published, with license and citation, each once."""
        texts = self.models.get(CREDIT, ())
        return tuple(text for text in dict.fromkeys(texts) if isinstance(text, str) and text)

    @property
    def has_missing(self) -> bool:
        """Whether any cell was not run."""
        if isinstance(self._given, Unread):
            return bool(self.missing_shares.any())
        coded = self._bytes
        return coded.has_missing if coded is not None else bool(np.isnan(self.values).any())

    @cached_property
    def is_binary(self) -> bool:
        """Whether every score is 0 or 1."""
        if self.chosen is not None:
            return self.chosen.is_binary
        coded = self._bytes
        if coded is not None and coded.above is None:
            return bool(np.isin(coded.distinct, (0.0, 1.0)).all())
        return all(_is_binary(self.cells[rows]) for rows in row_blocks(self.cells))

    # -- full scores -------------------------------------------------------------------------

    @cached_property
    def filled(self) -> FloatArray:
        """The values with each missing cell at item mean + model mean - grand mean, in [0, 1].

        The mean of an item that no model ran is that of its task.
        """
        return frozen(np.asarray(self.filled_cells)) if self.has_missing else self.values

    def full_scores(self) -> FloatArray:
        """Return each model's full score, shape (models,), missing cells filled (see `filled`)."""
        if self.chosen is not None:
            return self.chosen.full
        scores: FloatArray = by_rows(self.filled_cells, lambda part: part @ self.item_weights)
        return scores

    def task_scores(self) -> FloatArray:
        """Return each model's mean score per task, shape (models, tasks)."""
        if self.chosen is not None:
            return self.chosen.by_task
        scores: FloatArray = by_rows(self.filled_cells, self.task_means)
        return scores

    def averaged(self, average: Average) -> "Scores":
        """Return the same scores with another definition of the full score; PackError of a pack."""
        if average == self.average:
            return self
        if self.origin is not None:
            raise PackError(
                f"the pack's full score is a {self.average} average, not {average}",
                hint="leave out --average, or make a pack with it",
            )
        return self.changed(average=average)

    def changed(self, **parts: Any) -> "Scores":
        """Return the same scores with other `models`, `items`, `probabilities`, `repeats`, `scale`.

        As `dataclasses.replace`, which makes the whole array of a large table. The new scores keep
        nothing of what was computed from these.
        """
        return replace(self, **({"values": self.held, "origin": None} | parts))

    @cached_property
    def by_benchmark(self) -> "Scores":
        """The same scores, with benchmarks in place of tasks (see `benchmarks`)."""
        of_task, weights = np.empty(len(self.tasks), dtype=object), np.zeros(self.n_items)
        for name, shares in self.benchmarks.items():
            held = shares > 0
            of_task[held] = name
            # An item counts in its benchmark as it does there, and in the whole as before.
            weights += (self.task_weights @ shares) * self.task_shares[held].sum()
        items = self.items.drop(columns=[GROUP, EQUAL], errors="ignore")
        items = items.assign(task=of_task[self.task_of], **{WEIGHT: weights})
        return self.changed(items=items, average="micro")

    def columns(self, items: IntArray, *, filled: bool = False) -> FloatArray:
        """Return the scores on some items, shape (models, items), NaN where not run, or filled.

        Raises PackError for items that a pack does not hold.
        """
        if self.chosen is not None:
            return self.chosen.columns(items, filled=filled)
        return (self.filled_cells if filled else self.cells)[:, items]

    def remember(self, name: str, make: Callable[[], ArrayLike]) -> AnyArray:
        """Return what was learned from the whole table under this name, or learn it now."""
        if name not in self.learned:
            self.learned[name] = np.asarray(make())
        return self.learned[name]

    # -- parts -------------------------------------------------------------------------------

    def take(self, models: ArrayLike | None = None, items: ArrayLike | None = None) -> "Scores":
        """Return the scores of some models and items, given by position.

        Raises ScoresError for ids or a mask, and if a model is then left without an answer.
        """
        for positions in (models, items):
            listed = np.asarray([] if positions is None else positions)
            if listed.size and listed.dtype.kind not in "iu":
                raise ScoresError(
                    f"take needs positions, not {some(listed.ravel())}",
                    hint='of ids, use scores[["a", "b"]], or take(scores.model_positions(ids), '
                    "scores.positions(ids)); of a mask, np.flatnonzero(mask)",
                )
        rows = np.arange(self.n_models) if models is None else np.asarray(models, dtype=np.intp)
        columns = np.arange(self.n_items) if items is None else np.asarray(items, dtype=np.intp)
        kept = None
        if self.probabilities is not None:
            kept = self.probabilities.take(rows, None if items is None else columns)
        coded = self._bytes
        if coded is None:
            part = frozen(np.ascontiguousarray(self.values[np.ix_(rows, columns)]))
        else:
            taken = coded.take(None if models is None else rows, None if items is None else columns)
            small = not is_large(taken.codes.size)
            part = frozen(np.asarray(taken)) if small else cast(FloatArray, taken)
        return replace(
            self,
            values=part,
            models=self.models.iloc[rows],
            items=self.items.iloc[columns],
            probabilities=kept,
            origin=None,
            repeats=None if self.repeats is None else self.repeats.take(rows, columns),
        )

    @cached_property
    def unrun_share(self) -> float:
        """The weight, in the full score, of the items that no model ran.

        0 without models. For a pack of the chosen items, the share in the table it was made from.
        """
        if not self.n_models or (self.chosen is None and not self.has_missing):
            return 0.0
        if UNRUN in self.items:
            return float(self.item_weights @ self.items[UNRUN].to_numpy(dtype=np.float64))
        if self.chosen is not None or not self.missing_shares.min():
            return 0.0
        return float(self.item_weights @ self.unrun)

    @cached_property
    def unrun(self) -> BoolArray:
        """Whether each item was run by none of the models, shape (items,)."""
        times = by_columns(self.cells, lambda part: (~np.isnan(part)).sum(axis=0))
        return np.asarray(times == 0)

    @cached_property
    def ran(self) -> "Scores":
        """The scores on the items that some model ran; the table itself if these are all.

        These items weigh in proportion to what they weigh here, whatever each task has lost.
        """
        if not self.unrun.any():
            return self
        items = np.flatnonzero(~self.unrun)
        part, weights = self.take(items=items), self.item_weights[items]
        if np.allclose(part.item_weights, weights / weights.sum(), rtol=1e-9, atol=0):
            return part
        weighted = part.items.assign(**{WEIGHT: weights / weights.mean()})
        return part.changed(items=weighted, average="micro")

    @property
    def whole(self) -> "Scores":
        """The scores of the models that ran most of the items; the table itself if all did."""
        return self if self._most is None else self._most

    @cached_property
    def _most(self) -> "Scores | None":
        rows = np.flatnonzero(self.missing_shares <= MOST_MISSING)
        return None if len(rows) == self.n_models else self.take(models=rows)

    def complete(self) -> "Scores":
        """Return the same scores with missing cells filled (see `filled`)."""
        if not self.has_missing:
            return self
        return self.changed(values=self.filled_cells)

    # -- identity ----------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that estimates depend on, 16 hexadecimal digits.

        Excludes attributes of models that fewbench does not use.
        """
        if self.origin is not None:
            return self.origin.fingerprint
        if isinstance(self._given, Unread):
            return self._given.fingerprint
        kept = [name for name in MODEL_ATTRIBUTES if name in self.models]
        if len(kept) == len(self.models.columns):
            return self.digest
        return self._hash(self.models[kept])

    @cached_property
    def digest(self) -> str:
        """A hash of the whole table, 16 hexadecimal digits."""
        if isinstance(self._given, Unread):
            return self._given.digest
        return self._hash(self.models)

    def _hash(self, models: "pd.DataFrame") -> str:
        digest = hashlib.sha256(b"fewbench scores 1\0")
        for table in (models, self.items):
            for name, column in [("", table.index), *table.items()]:
                if name in (PROMPTS, KEYS, SETTINGS, HARNESS_VERSION):
                    continue
                digest.update(str(name).encode() + b"\0")
                cells = np.asarray(column, dtype=object)
                digest.update("\0".join(map(str, np.where(pd.isna(cells), "", cells))).encode())
                digest.update(b"\0\0")
        digest.update(repr((self.cells.shape, self.scale, self.average)).encode())
        for rows in row_blocks(self.cells):
            values = self.cells[rows]
            if self.has_missing:
                values = np.where(np.isnan(values), -1.0, values)
            digest.update(np.ascontiguousarray(values).data)
        if self.probabilities is not None:
            digest.update(self.probabilities.digest().encode())
        if self.repeats is not None:
            digest.update(self.repeats.counts.tobytes())
            digest.update(np.nan_to_num(self.repeats.variances, nan=-1.0).tobytes())
        return digest.hexdigest()[:16]

    def to_frame(self) -> "pd.DataFrame":
        """Return the scores on the user's scale, one row per model, one column per item."""
        values = self.scale.from_unit(self.values)
        return pd.DataFrame(values, index=self.models.index, columns=self.items.index)

    def __repr__(self) -> str:
        """Return the size of the table in a line."""
        missing = f", {self.missing_shares.mean():.1%} missing" if self.has_missing else ""
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
        """Whether both tables have the same labels, scores, probabilities and attributes."""
        return self.digest == other.digest


def one_sided(scores: Scores) -> str:
    """Return "worst" or "best" if all of several scores are the worst or the best one, else ""."""
    ends: set[float] = set()
    n = 0
    for rows in row_blocks(scores.cells):
        values = scores.cells[rows]
        run = values[~np.isnan(values)]
        n += len(run)
        ends |= {float(run.min()), float(run.max())} if len(run) else set()
        if len(ends) > 1:
            return ""
    return "" if n < 2 else {0.0: "worst", 1.0: "best"}.get(ends.pop(), "")


def _is_binary(values: FloatArray) -> bool:
    run = values[~np.isnan(values)]
    return bool(((run == 0) | (run == 1)).all())


def _check_cells(
    cells: Matrix, models: "pd.Index[Any]", table: "pd.DataFrame", scale: Scale
) -> None:
    items = table.index
    if len(cells.shape) != 2 or cells.shape != (len(models), len(items)):
        raise ScoresError(
            f"scores have shape {cells.shape}, but there are {counted(len(models), 'model')} "
            f"and {counted(len(items), 'item')}",
            hint="rows are models, columns are items",
        )
    if not len(items):
        raise ScoresError("no scores: the table has no items")
    outside, first, beyond_at = 0, (0, 0), np.zeros(len(items), dtype=bool)
    beyond_of: list[str] = []
    lacking: list[Any] = []
    for rows in row_blocks(cells):
        if isinstance(cells, Cells) and cells.is_unit:  # all that is not known is who ran what
            gone = ~cells.was_run(rows)
            lacking.append(gone.all(axis=1))
            continue
        values = cells[rows]
        if np.isinf(values).any():
            row, column = np.argwhere(np.isinf(values))[0]
            raise ScoresError(
                f"model {models[rows][row]!r} has an infinite score on item {items[column]!r}",
                hint="leave the cell empty if the item was not run, and leave out items that no "
                "model ran",
            )
        beyond = (values < 0) | (values > 1)
        if not outside and beyond.any():
            row, column = np.argwhere(beyond)[0]
            first = rows.start + row, column
        outside += int(beyond.sum())
        beyond_at |= beyond.any(axis=0)
        beyond_of += [str(name) for name in models[rows][np.flatnonzero(beyond.any(axis=1))]]
        gone = np.isnan(values)
        lacking.append(gone.all(axis=1))
    if outside:
        tasks = table["task"].astype(str)
        concerned = list(dict.fromkeys(tasks[beyond_at]))
        where, hint = (
            "",
            (
                "correct them; or, if all models use some other range, state it on import: --range "
                "0,100 or Scale(0, 100); if only some models do, rescale their scores: --rescale "
                f"{quoted(beyond_of[0])}=100 on import (in Python rescale=)"
            ),
        )
        if len(beyond_of) < len(models):
            where = f", all of {counted(len(beyond_of), 'model')}"
        if len(concerned) < tasks.nunique():
            where = f", all in {'task' if len(concerned) == 1 else 'tasks'} {some(concerned)}"
            hint = (
                "rescale the scores of these tasks, such as percentages divided by 100: a range, "
                "as in --range 0,100, is one of all tasks"
            )
        raise RangeError(
            f"{counted(outside, 'score')} outside the range {scale.low:g} to "
            f"{scale.high:g}{where}, first: model {models[first[0]]!r}, item {items[first[1]]!r}",
            hint=hint,
        )
    empty = np.flatnonzero(np.concatenate(lacking))
    if len(empty):
        raise ScoresError(
            f"{counted(len(empty), 'model')} without any answer: {some(models[empty])}",
            hint="fill in their scores, which are empty, or leave them out",
            kind="unanswered",
        )


def credit_facts(scores: Scores) -> dict[str, str]:
    """Return the credits of a table as a fact of a result; empty if there are none."""
    return {"source results": "; ".join(scores.credits)} if scores.credits else {}
