"""Option probabilities of multiple-choice rows, from logged log-likelihoods.

Harnesses score `acc` by the largest log-likelihood, `acc_norm` by the largest per character of
the option, `acc_bytes` by the largest per byte, `acc_mutual_info` by the largest gain over the
option without its question. The softmax is taken of the same quantity, so that the most
probable option is the one that was scored.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbench._types import FloatArray, IntArray

LIKELIHOOD, UNCONDITIONAL, CHARACTERS, BYTES = range(4)
NO_ANSWER = -1
# Metrics that follow from the log-likelihoods.
COMPARED = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info")


TIES = 5
"""Rows of two options that must all be ties to say that the model tells no options apart."""


def unrated(rows: Sequence[Sequence[float]]) -> dict[int, str]:
    """Return the rows whose options a model did not rate, each with the reason.

    Each row has the log-likelihoods of its options. Harnesses take the first or the longest option
    of such a row for the answer, so that a broken model gets the score of a guess. Two options may
    be equally likely by chance: these count only if all rows are so.

    Examples
    --------
    >>> unrated([[-1.5, -2.0], [-1.0, float("nan")], [-0.5, -0.5, -0.5], [-2.0, -2.0]])
    {1: 'a log-likelihood is NaN', 2: 'all options have one log-likelihood'}
    """
    reasons = {}
    ties = {at for at, row in enumerate(rows) if len(row) > 1 and len(set(row)) == 1}
    all_tie = len(rows) >= TIES and len(ties) == len(rows)
    for at, row in enumerate(rows):
        if any(math.isnan(value) for value in row):
            reasons[at] = "a log-likelihood is NaN"
        elif at in ties and (len(row) > 2 or all_tie):
            reasons[at] = "all options have one log-likelihood"
    return reasons


@dataclass(frozen=True, slots=True)
class OptionTable:
    """A model's log-likelihood of each option of one item.

    `right` is -1 if unknown, `texts` and `unconditional` (log-likelihoods without the question) are
    empty if unknown. Plain lists, as there is one table per row.
    """

    likelihoods: Sequence[float]
    right: int = NO_ANSWER
    texts: Sequence[str] = ()
    unconditional: Sequence[float] = ()

    @staticmethod
    def columns(rows: Sequence["OptionTable"]) -> dict[str, NDArray[Any]]:
        """Return rows as arrays: `options` (rows × most options × 4), `counts` and `right`.

        An option has its log-likelihood, the same without the question, and the text's characters
        and bytes (NaN if unknown).

        Examples
        --------
        >>> found = OptionTable.columns([OptionTable([-1.5, -2.0], 0, ["four", "five!"])])
        >>> found["options"].tolist(), found["counts"].tolist(), found["right"].tolist()
        ([[[-1.5, nan, 4.0, 4.0], [-2.0, nan, 5.0, 5.0]]], [2], [0])
        """
        counts = np.array([len(row.likelihoods) for row in rows])
        options = np.full((len(rows), counts.max(), 4), np.nan)
        there = np.arange(counts.max()) < counts[:, None]
        for column, of_row in (
            (LIKELIHOOD, lambda row: row.likelihoods),
            (UNCONDITIONAL, lambda row: row.unconditional),
            (CHARACTERS, lambda row: [*map(len, row.texts)]),
            (BYTES, lambda row: [*map(_size, row.texts)]),
        ):
            values = [of_row(row) for row in rows]
            if not any(values):
                continue
            flat = [*chain.from_iterable(
                row or [np.nan] * count for row, count in zip(values, counts.tolist(), strict=True)
            )]  # fmt: skip
            options[there, column] = flat
        return {
            "options": options,
            "counts": counts,
            "right": np.array([row.right for row in rows]),
        }


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def compared(table: FloatArray, metric: str) -> FloatArray:
    """Return the quantity by which a metric compares options, for tables of shape (…, 4)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # an option may be the empty text
        if metric == "acc_norm":
            return np.asarray(table[..., LIKELIHOOD] / table[..., CHARACTERS])
        if metric == "acc_bytes":
            return np.asarray(table[..., LIKELIHOOD] / table[..., BYTES])
        if metric == "acc_mutual_info":
            return np.asarray(table[..., LIKELIHOOD] - table[..., UNCONDITIONAL])
    return np.asarray(table[..., LIKELIHOOD])


def recomputed(columns: Mapping[str, NDArray[Any]], metric: str) -> FloatArray:
    """Return a metric computed from log-likelihoods, NaN where these or the answer are unknown.

    Examples
    --------
    >>> rows = OptionTable.columns([OptionTable([-1.5, -2.0], 1, ["four", "fifteen"])])
    >>> recomputed(rows, "acc").tolist(), recomputed(rows, "acc_norm").tolist()
    ([0.0], [1.0])
    """
    worth = compared(columns["options"], metric)
    there = np.arange(worth.shape[1]) < columns["counts"][:, None]
    answerable = (columns["right"] >= 0) & ~(np.isnan(worth) & there).any(axis=1)
    best = np.where(np.isnan(worth), -np.inf, worth).argmax(axis=1)
    return np.where(answerable, (best == columns["right"]).astype(float), np.nan)


def softmax(values: FloatArray, counts: IntArray) -> NDArray[np.float32]:
    """Return probabilities of the first `counts` options of each row, 0 for the others.

    A row of NaN where a value is NaN or +inf, or all are -inf.

    Examples
    --------
    >>> softmax(np.array([[0.0, -np.inf, 7.0], [np.nan, 0.0, 0.0]]), np.array([2, 3])).tolist()
    [[1.0, 0.0, 0.0], [nan, nan, nan]]
    """
    there = np.arange(values.shape[1]) < counts[:, None]
    inside = np.where(there, values, -np.inf)
    largest = inside.max(axis=1)
    usable = np.isfinite(largest)  # NaN and +inf come through max, and so does -inf for all
    inside[~usable] = np.nan
    weights = np.exp(inside - np.where(usable, largest, 0.0)[:, None])
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)
