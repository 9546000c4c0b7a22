"""Warnings travel with the numbers that they are about: as text, in tables, and as Python's."""

import warnings
from collections.abc import Iterable
from html import escape

from fewbench._text import as_warning
from fewbench.errors import EstimateWarning


def with_warnings(text: str, said: Iterable[str]) -> str:
    """Return a text with a line for each warning.

    >>> print(with_warnings("0.7", ["few answers"]))
    0.7
    warning: few answers
    """
    return "\n".join([text, *map(as_warning, said)])


def as_html(said: Iterable[str]) -> str:
    """Return warnings as a list; nothing if there are none."""
    listed = "".join(f"<li>{escape(as_warning(warning))}</li>" for warning in said)
    return f"<ul>{listed}</ul>" if listed else ""


def in_cell(said: Iterable[str]) -> str:
    """Return warnings as the value of a table's cell."""
    return "; ".join(said)


def issue(said: Iterable[str]) -> None:
    """Issue each warning once, for the line that called the caller."""
    for warning in dict.fromkeys(said):
        warnings.warn(warning, EstimateWarning, stacklevel=3)
