"""Transferability: how well a model answers one task's questions after examples of another."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import FewbenchError, MethodError
from fewbench.support import (
    FloatArray,
    IntArray,
    check_arrays_memory,
    loads,
    other_separator,
    refuse_pointer,
    some,
    text_encoding,
    why_not_utf8,
    written_whole,
)
from fewbench.support import pandas as pd

FORMAT = 1
MATRIX = "matrix.npz"
"""The matrix in a measurement's folder."""
VALUES = ("transferability", "acc")
Metric = Literal["accuracy", "loss", "exact-match"]


@dataclass(frozen=True, eq=False)
class Transferability:
    """Scores of one model on target tasks with in-context examples of source tasks.

    - `values`, shape (seeds, sources, targets): Mean metric over the target's questions, larger is
      better (Eq. 1); losses are negative. NaN where nothing was measured.
    - `tasks`: The benchmark's tasks, each a source.
    - `targets`: The tasks whose questions were used: all, or some in a cheaper design.
    - `n_questions`, shape (sources,): Questions of each task in the whole benchmark; all 1 if
      unknown.
    - `metric` ("accuracy", "loss", "exact-match")
    - `about`: What is known about the measurement: model, date, settings.

    Raises MethodError if shapes or names do not fit, or nothing was measured.

    >>> import numpy as np
    >>> t = Transferability(np.ones((2, 3, 3)), ("a", "b", "c"), ("a", "b", "c"), np.ones(3, int))
    >>> t.mean.shape, t.n_seeds
    ((3, 3), 2)
    """

    values: FloatArray
    tasks: tuple[str, ...]
    targets: tuple[str, ...]
    n_questions: IntArray
    metric: str = "accuracy"
    about: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(self.tasks), len(self.targets))
        if self.values.ndim != 3 or self.values.shape[1:] != shape or not len(self.values):
            raise MethodError(
                f"transferability has the shape {self.values.shape}; seeds × sources × targets is "
                f"(seeds, {shape[0]}, {shape[1]})"
            )
        for names in (self.tasks, self.targets):
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise MethodError(f"a task is named twice: {some(twice)}")
        if unknown := sorted(set(self.targets) - set(self.tasks)):
            raise MethodError(f"targets that are not tasks: {some(unknown)}")
        if len(self.tasks) < 2:
            raise MethodError(
                "there is only one task, so there is nothing to choose", kind="too-few"
            )
        if not self.targets:
            raise MethodError("no task was a target: nothing was measured")
        if self.n_questions.shape != shape[:1] or (self.n_questions < 1).any():
            raise MethodError("each task needs a number of questions, at least 1")
        if np.isinf(self.values).any():
            raise MethodError("transferability has infinite entries")

    @property
    def n_seeds(self) -> int:
        """Number of draws of in-context examples."""
        return len(self.values)

    @property
    def is_square(self) -> bool:
        """Whether each task is also a target, in the same order."""
        return self.tasks == self.targets

    @property
    def sizes_known(self) -> bool:
        """Whether the number of questions of each task is known."""
        return bool((self.n_questions > 1).any())

    def with_sizes(self, sizes: Mapping[str, int]) -> "Transferability":
        """Return the same matrix with known numbers of questions; MethodError if one is missing."""
        return replace(self, n_questions=sizes_of(self.tasks, sizes))

    def transformed(self, transform: Literal["exp"]) -> "Transferability":
        """Return losses as exp(-loss) (the paper's FLAN); raise MethodError for other metrics."""
        if self.metric != "loss":
            raise MethodError(
                f"--transform {transform} is for losses; the matrix contains {self.metric}",
                hint="leave it out, or pass --metric loss for a .csv of losses",
            )
        about = {**self.about, "transform": "exp(-loss)"}
        return replace(self, values=np.exp(self.values), metric="exp(-loss)", about=about)

    @cached_property
    def mean(self) -> FloatArray:
        """The matrix A, shape (sources, targets): means over seeds.

        MethodError if no seed measured an entry.
        """
        measured = np.isfinite(self.values)
        if (lacking := ~measured.any(axis=0)).any():
            source, target = np.argwhere(lacking)[0]
            raise MethodError(
                f"source task {self.tasks[source]} was not measured on {self.targets[target]} "
                f"({int(lacking.sum())} such pairs)",
                hint="continue with fewbench transfer measure, or leave those targets out",
            )
        return np.asarray(np.where(measured, self.values, 0.0).sum(axis=0) / measured.sum(axis=0))

    def mean_over(self, seeds: IntArray) -> FloatArray:
        """Return A from some seeds, which may repeat (a bootstrap).

        Entries without a measurement in these seeds are the mean over all seeds.
        """
        values = self.values[seeds]
        measured = np.isfinite(values)
        number = measured.sum(axis=0)
        total = np.where(measured, values, 0.0).sum(axis=0)
        return np.asarray(np.where(number > 0, total / np.maximum(number, 1), self.mean))

    @property
    def difficulty(self) -> FloatArray:
        """Mean metric of each target over sources and seeds, shape (targets,)."""
        return np.asarray(self.mean.mean(axis=0))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a compressed .npz, whole or not at all."""
        path = Path(path)
        about = {"format": FORMAT, "metric": self.metric, "about": dict(self.about)}
        with written_whole(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(
                file,
                transferability=self.values,
                tasks=np.array(self.tasks),
                targets=np.array(self.targets),
                n_questions=self.n_questions,
                facts=np.array(json.dumps(about)),
            )
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str], metric: Metric | None = None) -> "Transferability":
        """Read a file that `save` wrote, a measurement's folder, or another matrix.

        A folder is read from its `matrix.npz`. Another .npz needs the arrays `acc` or
        `transferability` (seeds × sources × targets, or sources × targets) and `tasks`, with
        optional `n_questions`. A .csv has one row per source under a header of targets; the
        sources' names are in the first column, which a square table may lack. A .csv has no
        numbers of questions (`n_questions` is 1).

        - `metric` ("accuracy", "loss", "exact-match"): What the entries are if the file does not
          say; by default accuracies. Positive losses become negative, so that larger is better.

        Raises MethodError if the file cannot be read or used, or has a different metric.
        """
        path = Path(path)
        if path.is_dir():
            if not (path / MATRIX).is_file():
                raise MethodError(
                    f"{path}: no {MATRIX} here",
                    hint="fewbench transfer measure writes it when all is measured",
                )
            path = path / MATRIX
        if not path.is_file():
            raise MethodError(f"{path}: no such file", kind="missing")
        refuse_pointer(path, MethodError)
        try:
            matrix = _from_csv(path) if path.suffix.lower() == ".csv" else _from_npz(path)
            return _as_metric(matrix, metric)
        except MethodError as error:
            raise MethodError(f"{path}: {error.message}", hint=error.hint) from error


def is_transferability(path: str | os.PathLike[str]) -> bool:
    """Whether `Transferability.load` can read a path, by its kind and arrays."""
    path = Path(path)
    if path.suffix.lower() != ".npz" or not path.is_file():
        return path.suffix.lower() == ".csv" or (path.is_dir() and (path / MATRIX).is_file())
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return bool(set(VALUES) & set(file.files))
    except Exception:  # numpy's header parser and zipfile let through all kinds
        return False


def sizes_of(tasks: tuple[str, ...], sizes: Mapping[str, int]) -> IntArray:
    """Return the number of questions of each task; MethodError if one is missing."""
    if lacking := [task for task in tasks if task not in sizes]:
        raise MethodError(f"no number of questions for {some(lacking)}")
    return np.array([sizes[task] for task in tasks], dtype=np.intp)


def _as_metric(matrix: Transferability, metric: Metric | None) -> Transferability:
    """Return a matrix with the user's metric, for a file without its own."""
    if matrix.metric:
        if metric not in (None, matrix.metric):
            raise MethodError(
                f"the file says that its metric is {matrix.metric}, not {metric}",
                hint="leave --metric out",
            )
        return matrix
    if metric not in (None, *get_args(Metric)):
        raise MethodError(
            f"unknown metric {metric!r}",
            hint=f"use one of {', '.join(get_args(Metric))}",
            kind="unknown",
        )
    entries = matrix.values[np.isfinite(matrix.values)]
    if metric == "loss":
        if (entries < 0).any() and (entries > 0).any():
            raise MethodError(
                "some losses are above 0 and some below",
                hint="give losses (0 or more), or log-probabilities (0 or less)",
            )
        return replace(matrix, values=-np.abs(matrix.values), metric="loss")
    if len(entries) and (entries.min() < 0 or entries.max() > 1):
        raise MethodError(
            f"entries run from {entries.min():g} to {entries.max():g}, and accuracies from 0 to 1",
            hint="pass --metric loss for losses; divide percentages by 100",
        )
    return replace(matrix, metric=metric or "accuracy")


def _from_npz(path: Path) -> Transferability:
    try:
        check_arrays_memory(path)
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FewbenchError:
        raise
    except Exception as error:  # numpy's header parser and zipfile let through all kinds
        raise MethodError("not a matrix of transferability (.npz or .csv)") from error
    values = next((arrays[key] for key in VALUES if key in arrays), None)
    if values is None or "tasks" not in arrays:
        raise MethodError(
            f"has {some(list(arrays))}, but needs transferability (or acc) and tasks",
            hint="fewbench transfer measure writes such a file",
        )
    tasks = _names("tasks", arrays["tasks"])
    numbers = arrays.get("n_questions", np.ones(len(tasks)))
    for name, array in (("the matrix", values), ("n_questions", numbers)):
        if array.dtype.kind not in "fiu":
            raise MethodError(f"{name} has type {array.dtype}, not numbers")
    if not ((np.abs(numbers) < 2**53).all() and (numbers == np.round(numbers)).all()):
        raise MethodError("n_questions are not whole numbers")
    metric, about = _facts(arrays.get("facts"))
    return Transferability(
        np.atleast_3d(values.T).T.astype(np.float64),
        tasks,
        _names("targets", arrays["targets"]) if "targets" in arrays else tasks,
        numbers.astype(np.intp),
        metric,
        about,
    )


def _names(what: str, array: NDArray[Any]) -> tuple[str, ...]:
    if array.ndim != 1 or array.dtype.kind not in "Uiu":
        raise MethodError(
            f"{what} is not a list of texts", hint="write names as fixed-width strings"
        )
    return tuple(map(str, array.tolist()))


def _facts(array: NDArray[Any] | None) -> tuple[str, dict[str, str]]:
    """Return the metric ("" if unknown) and other facts from JSON in an array."""
    if array is None:
        return "", {}
    try:
        facts = loads(str(array))
        about = {str(key): str(value) for key, value in facts.get("about", {}).items()}
        return str(facts.get("metric", "accuracy")), about
    except (ValueError, AttributeError) as error:
        raise MethodError("its facts are not the JSON that fewbench writes") from error


def _from_csv(path: Path) -> Transferability:
    hint = "a row for each source, its name first, under a header of targets"
    try:
        # As text: names such as 01 or NA are names.
        if other := other_separator(path, ","):
            raise MethodError(other[0], hint=other[1])
        encoding = text_encoding(path)
        table = pd.read_csv(path, dtype=str, header=None, keep_default_na=False, encoding=encoding)
        head, first = ([str(name).strip() for name in part] for part in (table.iloc[0], table[0]))
        named = not _lacks_names(head, first[1:])
        values = table.iloc[1:, int(named) :].replace("", "nan").to_numpy(dtype=np.float64)
    except MethodError:  # a ValueError, too
        raise
    except UnicodeError as error:
        what, hint = why_not_utf8(path) or ("not a table of numbers", hint)
        raise MethodError(what, hint=hint) from error
    except (ValueError, OSError) as error:
        raise MethodError("not a table of numbers", hint=hint) from error
    tasks, targets = (tuple(first[1:]), tuple(head[1:])) if named else (tuple(head), tuple(head))
    if not all((*tasks, *targets)):
        raise MethodError("a source or a target has no name", hint=hint)
    return Transferability(values[None], tasks, targets, np.ones(len(tasks), dtype=np.intp), "")


def _lacks_names(head: list[str], first: list[str]) -> bool:
    """Whether a square table of texts has no column of row names: numbers under names."""
    if len(first) != len(head) or not head[0] or set(head[1:]) <= set(first):
        return False
    return all(map(_is_number, first)) and not any(map(_is_number, head))


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True
