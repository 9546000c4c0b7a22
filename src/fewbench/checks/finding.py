"""One finding: what was found, which models or items it concerns, and advice."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["problem", "caution", "fact"]
SEVERITIES: tuple[Severity, ...] = ("problem", "caution", "fact")
Cell = str | int | float | None


@dataclass(frozen=True)
class Details:
    """Numbers behind a finding, row by row."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes
    ----------
    kind : str
        A fixed name, such as "near-duplicates".
    severity : {"problem", "caution", "fact"}
        A problem makes estimates wrong; a caution may affect them; a fact describes the table.
    what : str
        What was found, in one sentence.
    advice : str
        What to do about it, "" if nothing.
    of : {"models", "items", "tasks", ""}
        Kind of the ids.
    ids : tuple of str
        All ids concerned.
    groups : tuple of tuple of str
        The ids by group if they form groups.
    spare : tuple of str
        The ids that `drop` removes for this kind.
    table : Details, optional
    """

    kind: str
    severity: Severity
    what: str
    advice: str = ""
    of: Literal["models", "items", "tasks", ""] = ""
    ids: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    spare: tuple[str, ...] = ()
    table: Details | None = None


def share(value: float) -> str:
    """Return a share as a percentage, with a decimal below 2%.

    Examples
    --------
    >>> share(0.142), share(0.0054), share(0.01), share(0.00001), share(0.0)
    ('14%', '0.5%', '1%', '<0.1%', '0%')
    """
    percent = 100 * value
    if 0 < percent < 0.1:
        return "<0.1%"
    return f"{percent:.1f}".removesuffix(".0") + "%" if percent < 2 else f"{percent:.0f}%"
