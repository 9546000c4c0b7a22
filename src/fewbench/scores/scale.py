"""The user's scale of scores, conversion to [0, 1] and back, and how scores are printed."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fewbench._names import fixed, signed
from fewbench._types import ArrayLike, FloatArray
from fewbench.errors import ScoresError


@dataclass(frozen=True)
class Scale:
    """The range of scores, as stated by the user.

    Inside fewbench scores are in [0, 1], 1 being best. Estimates are reported on this scale.

    Parameters
    ----------
    low, high : float
        The smallest and the largest possible score.
    lower_is_better : bool
        Whether `low` is the best score, as for error rates.

    Raises
    ------
    ScoresError
        If the bounds are not finite or not in order.

    Examples
    --------
    >>> percent = Scale(0, 100)
    >>> float(percent.to_unit(25)), float(percent.from_unit(0.25))
    (0.25, 25.0)
    >>> float(Scale(0, 1, lower_is_better=True).to_unit(0.1))
    0.9
    """

    low: float = 0.0
    high: float = 1.0
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.high - self.low) and self.low < self.high):
            raise ScoresError(
                f"a score range needs two finite numbers in order, not {self.low}..{self.high}",
                hint="pass the smallest and the largest possible score, such as 0,100",
                kind="range",
            )

    def to_unit(self, scores: ArrayLike) -> FloatArray:
        """Convert scores of any shape from this scale to [0, 1]; NaN stays NaN."""
        unit = (np.asarray(scores, dtype=np.float64) - self.low) / (self.high - self.low)
        return np.asarray(1.0 - unit if self.lower_is_better else unit)

    def from_unit(self, scores: ArrayLike) -> FloatArray:
        """Convert scores of any shape from [0, 1] to this scale."""
        unit = np.asarray(scores, dtype=np.float64)
        unit = 1.0 - unit if self.lower_is_better else unit
        return np.asarray(self.low + unit * (self.high - self.low))

    @property
    def span(self) -> float:
        """The largest difference of two scores."""
        return self.high - self.low

    def difference_from_unit(self, differences: ArrayLike) -> FloatArray:
        """Convert differences of scores in [0, 1], of any shape, to this scale."""
        span = -self.span if self.lower_is_better else self.span
        return np.asarray(span * np.asarray(differences, dtype=np.float64))

    @property
    def is_unit(self) -> bool:
        """Whether this is [0, 1] with 1 as the best."""
        return self == Scale()


class _Ends(Protocol):
    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


@dataclass(frozen=True)
class Unit:
    """How the scores of a scale are printed.

    Scores from 0 to 1 are percentages; their differences, widths and errors are percentage points
    (pp). Scores on other scales are plain numbers. NaN and None are a dash.

    Examples
    --------
    >>> share, points = Unit(Scale()), Unit(Scale(0, 100))
    >>> share.score(0.713), share.points(0.021), share.difference(0.0123)
    ('71.3%', '2.1 pp', '+1.2 pp')
    >>> points.score(71.3), points.points(2.1), points.difference(-1.23)
    ('71.3', '2.1', '−1.2')
    >>> share.score_title("full score"), share.points_title("error"), points.points_title("error")
    ('full score (%)', 'error (pp)', 'error')
    """

    scale: Scale

    @property
    def is_share(self) -> bool:
        """Whether scores are printed as percentages."""
        return (self.scale.low, self.scale.high) == (0, 1)

    @property
    def factor(self) -> float:
        """What a score is multiplied by when it is printed."""
        return 100.0 if self.is_share else 1.0

    @property
    def digits(self) -> int:
        """Decimals: a thousandth of the larger end of the scale."""
        largest = max(abs(self.scale.low), abs(self.scale.high))
        return 1 if self.is_share else max(0, 3 - max(0, round(math.log10(largest))))

    def score_title(self, name: str) -> str:
        """Return the title of a column or an axis of scores."""
        return f"{name} (%)" if self.is_share else name

    def points_title(self, name: str) -> str:
        """Return the title of a column or an axis of errors, widths or differences."""
        return f"{name} (pp)" if self.is_share else name

    def number(self, value: float | None, more_digits: int = 0) -> str:
        """Return a score, an error or a width without its unit, for a column with a title."""
        return fixed(math.nan if value is None else value * self.factor, self.digits + more_digits)

    def score(self, value: float | None, *, exact: bool = False) -> str:
        """Return a score, rounded unless it is to be `exact`, such as a threshold."""
        shown = self._number(value, exact=exact)
        return f"{shown}%" if self.is_share and shown != "–" else shown

    def scores(self, ends: _Ends) -> str:
        """Return the ends of an interval of a score."""
        return f"{self.score(ends.low)} to {self.score(ends.high)}"

    def points(self, value: float | None, *, exact: bool = False) -> str:
        """Return an error or a width, rounded unless it is to be `exact`, such as a margin."""
        shown = self._number(value, exact=exact)
        return f"{shown} pp" if self.is_share and shown != "–" else shown

    def difference(self, value: float | None) -> str:
        """Return a difference with its sign."""
        shown = self._number(value, is_signed=True)
        return f"{shown} pp" if self.is_share and shown != "–" else shown

    def differences(self, ends: _Ends | None) -> str:
        """Return the ends of an interval of a difference; the difference alone if it is known.

        An end near 0 has up to two more digits, as its side of 0 decides.

        >>> from types import SimpleNamespace as Ends
        >>> Unit(Scale()).differences(Ends(low=0.0002, high=0.304))
        '+0.02 to +30.4 pp'
        """
        if ends is None or ends.low == ends.high:
            return self.difference(None if ends is None else ends.low)
        low, high = (self._end(end) for end in (ends.low, ends.high))
        return f"{low} to {high}{' pp' if self.is_share and high != '–' else ''}"

    def _end(self, value: float) -> str:
        plain = self._number(value, is_signed=True)
        finer = (signed(value * self.factor, self.digits + more) for more in (0, 1, 2))
        return next((text for text in finer if text.strip("0.")), plain)

    def _number(self, value: float | None, *, is_signed: bool = False, exact: bool = False) -> str:
        shown = math.nan if value is None else value * self.factor
        if exact:
            return f"{shown:.6g}".replace("-", "−")
        return (signed if is_signed else fixed)(shown, self.digits)
