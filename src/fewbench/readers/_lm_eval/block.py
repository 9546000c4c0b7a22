"""The rows of one samples file under one filter, column by column."""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench.errors import ReaderError
from fewbench.readers._lm_eval.logs import Log
from fewbench.readers._lm_eval.numbers import as_number, describe
from fewbench.readers._lm_eval.options import FloatArray, option_table


@dataclass
class Block:
    """Columns that grow row by row.

    Parameters
    ----------
    filter : str or None
        None before lm-eval 0.4.7, when rows did not name it.
    values : dict of str to list of float
        Metric → its value in every row, NaN where it is not a number or absent.
    numeric : set of str
        Metrics that are a number in at least one row.
    unfit : dict of str to (int, str)
        Metric → the first line where it is not one finite number, and what it is there.
    options : list of (options × 4 table, right option), or None
        One a row; None as soon as a row is not multiple choice.
    """

    log: Log
    filter: str | None = None
    lines: list[int] = field(default_factory=list)
    doc_ids: list[int] = field(default_factory=list)
    doc_hashes: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    numeric: set[str] = field(default_factory=set)
    unfit: dict[str, tuple[int, str]] = field(default_factory=dict)
    options: list[tuple[FloatArray, int]] | None = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lines)

    def append(self, row: dict[str, Any], metrics: list[str], line: int) -> None:
        """Add a row that has the fields of lm-eval."""
        for metric in self.values.keys() - metrics:
            self.values[metric].append(math.nan)
            self.unfit.setdefault(metric, (line, "absent"))
        for metric in metrics:
            if metric not in self.values:
                self.values[metric] = [math.nan] * len(self)
                if len(self):
                    self.unfit[metric] = (self.lines[0], "absent")
            value = as_number(row[metric])
            if value is not None:
                self.numeric.add(metric)
            if value is None or not math.isfinite(value):
                self.unfit.setdefault(metric, (line, describe(row[metric])))
            self.values[metric].append(math.nan if value is None else value)
        self.lines.append(line)
        self.doc_ids.append(row["doc_id"])
        self.doc_hashes.append(row["doc_hash"])
        prompt = row.get("prompt_hash")
        self.prompts.append(prompt if isinstance(prompt, str) else "")
        if self.options is not None:
            results = self.log.results
            delimiter = results.delimiter(self.log.task) if results else " "
            of_row = option_table(row, metrics, delimiter)
            if of_row is None:
                self.options = None
            else:
                self.options.append(of_row)

    def numbers(self, metric: str) -> NDArray[np.float64]:
        """Return a metric of every row; ReaderError unless each is one finite number."""
        if metric not in self.values:
            raise ReaderError(
                f"{self.log.path}: no row has the metric {metric!r}",
                hint=f"it has {', '.join(self.values) or 'none'}",
            )
        if metric in self.unfit:
            line, what = self.unfit[metric]
            raise ReaderError(
                f"{self.log.path}, line {line}: metric {metric!r} of task {self.log.task!r} is "
                f"{what}, not one finite number",
                hint="name another metric of the task with --metric",
            )
        return np.array(self.values[metric])

    @property
    def is_whole(self) -> bool:
        """Whether every document of the task was run, and is here once."""
        original, effective = self.sizes
        return original == effective == len(self) == len(set(self.doc_ids))

    @property
    def sizes(self) -> tuple[int | None, int | None]:
        """How many documents the task has and how many were run, where the results say so."""
        return self.log.results.sizes(self.log.task) if self.log.results else (None, None)

    @property
    def has_true_ids(self) -> bool:
        """Whether doc_ids can be believed: `--samples` out of order makes lm-eval mix them up."""
        return self.is_whole or all(a < b for a, b in pairwise(self.doc_ids))
