"""Plain aligned text for terminals and pipes."""

import sys
import textwrap
from collections.abc import Sequence

from fewbench._text import plain

WIDEST = 100


def echo(text: str) -> None:
    """Print a result to stdout. All that the command line prints passes here or through `say`."""
    print(plain(text), flush=True)


def say(text: str) -> None:
    """Print a note to stderr, so that results can be piped."""
    print(plain(text), file=sys.stderr, flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Align columns: the first `left` ones to the left, the others to the right.

    Examples
    --------
    >>> print(table(["name", "n"], [["a", "10"], ["bcd", "2"]]))
    name   n
    a     10
    bcd    2
    """
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def number(value: float, digits: int = 3) -> str:
    """Return a number as text, NaN as a dash."""
    return f"{value:.{digits}f}" if value == value else "–"


def points(share: float, digits: int = 1) -> str:
    """Return a share of the scores' range as percentage points."""
    return number(100 * share, digits)


def wrapped(line: str, indent: int = 0, width: int = WIDEST) -> str:
    """Break a line between words; further lines are indented."""
    return textwrap.fill(
        line,
        max(width, indent + 20),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
