"""Plain aligned text for terminals and pipes."""

import sys
from collections.abc import Sequence


def say(text: str) -> None:
    """Tell the user something that is not the result: on stderr, so that results can be piped."""
    print(text, file=sys.stderr, flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Align columns; the first `left` of them to the left, the others to the right.

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
    """Return a number for reading; a dash where there is none."""
    return f"{value:.{digits}f}" if value == value else "–"


def points(share: float, digits: int = 1) -> str:
    """Return a share of the scores' range as percentage points."""
    return number(100 * share, digits)
