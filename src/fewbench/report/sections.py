"""Pages made of sections: a finding, then for each subject a note, charts, tables and facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fewbench.charts.theme import Look
from fewbench.report.frame import Charts, Placed, render_page


@dataclass(frozen=True)
class Table:
    """A table of words that sorts, and filters by `what` where it is long.

    Attributes
    ----------
    id, label : str
    head : sequence of (str, bool)
        Titles, and whether the column holds numbers.
    rows : sequence of sequence of str
    what : str
        What is filtered for, such as "a task".
    folded : str
        Title under which the table is folded away; by default it is shown.
    """

    id: str
    label: str
    head: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    what: str = ""
    folded: str = ""


@dataclass(frozen=True)
class Section:
    """A subject of a page; what is empty is left out."""

    id: str
    title: str
    notes: Sequence[str] = ()
    said: str = ""
    charts: Sequence[tuple[str, Placed]] = ()
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = ()


def placed(charts: Charts, *made: tuple[str, Any | None]) -> list[tuple[str, Placed]]:
    """Add charts with captions to a page, without those that could not be made."""
    added = [(caption, charts.add(one)) for caption, one in made]
    return [(caption, one) for caption, one in added if one is not None]


def render_sections(
    charts: Charts,
    *,
    over: str,
    title: str,
    answer: str,
    lesser: Sequence[str] = (),
    warnings: Sequence[str] = (),
    methods: Sequence[Look] = (),
    sections: Sequence[Section],
) -> str:
    """The page as text.

    Parameters
    ----------
    charts : Charts
        Those of the sections.
    over : str
        The command that the page is of.
    title, answer : str
        What it is about, and the finding in a sentence.
    lesser : sequence of str
        Sentences below the finding.
    warnings : sequence of str
    methods : sequence of Look
        Methods that can be switched off and isolated in all charts.
    sections : sequence of Section
    """
    return render_page(
        "sections.html.j2", charts, over=over, title=title, answer=answer, lesser=lesser,
        warnings=warnings, methods=methods, sections=sections,
    )  # fmt: skip
