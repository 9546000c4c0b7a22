"""Texts in cells of scores: missing, right, wrong, or not a score at all."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from shlex import quote
from typing import Any

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._types import FloatArray
from fewbench.errors import ColumnError, RangeError, ScoresError
from fewbench.scores.scale import Scale

EMPTY = ("", "nan", "NaN")
WRONG = "wrong"
"""What `--missing` takes in place of texts: an empty cell is a wrong answer."""
TRUTHS = {"true": 1.0, "false": 0.0}
USUAL = {
    "missing": ("n/a", "na", "-", "--", "none", "null", "?", "skipped"),
    "right": ("pass", "passed", "right", "correct", "yes", "success", "resolved", "c", "ok"),
    "wrong": ("fail", "failed", "wrong", "incorrect", "no", "failure", "unresolved", "i"),
}
"""Usual texts in place of scores, which hints propose."""
MOST = 8
LONGEST = 40


@dataclass(frozen=True)
class CellWords:
    """Texts that cells of scores hold in place of numbers.

    Parameters
    ----------
    missing : sequence of str
        For items that were not run, besides empty cells; a number such as "-1" as well. `WRONG`
        says that empty cells have the worst score.
    right, wrong : sequence of str
        For the best and the worst score.

    Raises
    ------
    ScoresError
        If a text has two meanings, or a number is to be right or wrong.

    Examples
    --------
    >>> words = CellWords(missing=["n/a"], right=["PASS"], wrong=["FAIL"])
    >>> [words.number(text, Scale(0, 100)) for text in ("PASS", "n/a", "-")]
    [100.0, nan, None]
    """

    missing: Sequence[str] = ()
    right: Sequence[str] = ()
    wrong: Sequence[str] = ()

    def __post_init__(self) -> None:
        counts = Counter([*self.missing, *self.right, *self.wrong])
        if twice := [text for text, times in counts.items() if times > 1]:
            raise ScoresError(
                f"the text {twice[0]!r} has two meanings",
                hint="name it once: as missing, right or wrong",
            )
        stated = [text for text in (*self.right, *self.wrong) if text.lower() not in TRUTHS]
        if numbers := [text for text in stated if _number(text) is not None]:
            raise RangeError(
                f"{numbers[0]!r} is a number, not a text for right or wrong",
                hint="pass the range of the scores: --range LOW,HIGH (in Python scale=)",
            )

    @property
    def empty_is_wrong(self) -> bool:
        """Whether an empty cell has the worst score, in place of none."""
        return WRONG in self.missing

    @cached_property
    def missing_numbers(self) -> list[float]:
        """The numbers that stand for a missing score."""
        return [number for text in self.missing if (number := _number(text)) is not None]

    def number(self, value: Any, scale: Scale) -> float | None:
        """Return the score of a cell's value on a scale: NaN if missing, None if it is not a
        score.
        """
        text = str(value).strip()
        if text in self.missing or text in EMPTY:
            return math.nan
        if text in self.right or text in self.wrong:
            return float(scale.from_unit(float(text in self.right)))
        return _number(value)


def _number(value: Any) -> float | None:
    text = value.strip() if isinstance(value, str) else ""
    # Python reads '1_0' and digits of other scripts as numbers; a typing error is likelier.
    if not text.isascii() or "_" in text:
        return None
    try:
        return TRUTHS[text.lower()] if text.lower() in TRUTHS else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass
class CellReader:
    """Reads columns of scores as numbers, and collects the values that are none.

    `places` holds the places of each such value, for one error that names all of them.
    """

    words: CellWords
    scale: Scale
    places: dict[str, list[str]] = field(default_factory=dict)

    def numbers(self, column: "pd.Series[Any]", where: str = "") -> FloatArray:
        """Return a column's scores; `where` follows the number of the row in messages."""
        return self.filled(self._converted(column, where))

    def filled(self, numbers: FloatArray) -> FloatArray:
        """Return numbers with what an empty cell, or a number for one, means."""
        if self.words.missing_numbers:
            numbers = np.where(np.isin(numbers, self.words.missing_numbers), np.nan, numbers)
        if self.words.empty_is_wrong:
            numbers = np.where(np.isnan(numbers), float(self.scale.from_unit(0.0)), numbers)
        return numbers

    def _converted(self, column: "pd.Series[Any]", where: str) -> FloatArray:
        if pd.api.types.is_numeric_dtype(column.dtype):
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        codes, distinct = pd.factorize(column.astype(object))
        scores = [self.words.number(value, self.scale) for value in distinct]
        for code, score in enumerate(scores):
            if score is None:
                rows = np.flatnonzero(codes == code)
                text = str(distinct[code])
                shown = repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")
                self.places.setdefault(shown, []).extend(f"row {row + 1}{where}" for row in rows)
        levels = np.array([math.nan if score is None else score for score in scores] + [math.nan])
        return np.asarray(levels[codes])  # -1 for what pandas takes as missing

    def refuse(self, table: str, hint: str = "") -> None:
        """Raise ColumnError if a value is not a number, with all such values, counts and places.

        `hint` comes before what to do about the values.
        """
        if not self.places:
            return
        total = sum(map(len, self.places.values()))
        what = (
            "1 value that is not a number"
            if total == 1
            else f"{total:,} values that are not numbers"
        )
        raise ColumnError(
            f"{table} has {what}: {'; '.join(self._listed())}",
            hint=f"{hint}leave cells empty for items that were not run; or {self.meaning()}",
        )

    def meaning(self) -> str:
        """Return options that say what the texts mean, with their values where these are usual."""
        texts = [text[1:-1] for text in self.places]
        named = {
            option: ",".join(text for text in texts if text.strip().casefold() in words)
            for option, words in USUAL.items()
        }
        rest = len(texts) > sum(text.count(",") + 1 for text in named.values() if text)
        options = " ".join(
            f"--{option} {quote(text) if text else 'TEXT'}"
            for option, text in named.items()
            if text or rest
        )
        return f"say what these texts mean: {options} (in Python missing=, right=, wrong=)"

    def _listed(self) -> Iterator[str]:
        often = sorted(self.places.items(), key=lambda pair: -len(pair[1]))
        for text, places in often[:MOST]:
            many = f" ({len(places):,}, first at {places[0]})"
            yield text + (many if len(places) > 1 else f" at {places[0]}")
        if len(often) > MOST:
            yield f"{len(often) - MOST} other values"
