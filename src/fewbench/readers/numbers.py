"""What counts as a number in a log."""

import math
from typing import Any


def as_number(value: Any) -> float | None:
    """Return a finite or infinite number or NaN, None for anything else.

    Truth values are numbers, and so are texts of either: lm-eval writes both as text in places.

    Examples
    --------
    >>> as_number(True), as_number("-3.5"), as_number("False"), as_number([1.0]), as_number("C")
    (1.0, -3.5, 0.0, None, None)
    """
    if isinstance(value, str):
        value = {"True": True, "False": False}.get(value, value)
    try:
        return float(value) if isinstance(value, bool | int | float | str) else None
    except (ValueError, OverflowError):
        return None


def describe(value: Any) -> str:
    """Say what a value is that is not one finite number.

    Examples
    --------
    >>> describe([1, 2]), describe({}), describe(float("nan")), describe(None), describe("C")
    ('a list of 2', 'an object', 'nan', 'null', "the text 'C'")
    """
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    number = as_number(value)
    if number is not None and not math.isfinite(number):
        return str(number)
    if value is None:
        return "null"
    return f"the text {value[:40]!r}" if isinstance(value, str) else "a number too large"
