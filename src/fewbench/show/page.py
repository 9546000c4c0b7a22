"""A result as a page: said once, shown as text, Markdown, in a notebook, or as an HTML file."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from html import escape
from typing import Any

from fewbench._names import did_you_mean, some
from fewbench._text import as_warning, printed, table, wrapped
from fewbench._warned import as_html, with_warnings
from fewbench.errors import FewbenchError

Chart = Callable[[], Any]
"""Makes an Altair chart when it is drawn, or None."""
SENTENCE = 60  # characters; longer cells do not fit columns on a terminal


@dataclass(frozen=True)
class Table:
    """A table of words.

    Parameters
    ----------
    title : str
    head : sequence of (str, bool)
        Titles, and whether the column holds numbers.
    rows : sequence of sequence of str
    what : str
        What a reader filters for, such as "a task".
    folded : str
        Title under which a page folds the table away; by default the table is shown.
    first : int, optional
        Number of rows that a text shows (default: all).
    """

    title: str
    head: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    what: str = ""
    folded: str = ""
    first: int | None = None

    @property
    def has_sentences(self) -> bool:
        """Whether cells hold sentences: too long for columns of a terminal or a phone."""
        numbers = any(is_number for _, is_number in self.head)
        return not numbers and any(len(cell) > SENTENCE for row in self.rows for cell in row)


@dataclass(frozen=True)
class Section:
    """A subject of a page; what is empty is left out.

    `charts` are captions with functions that make charts, and `legend` says how to read them; only
    HTML pages show either. A `detail` is not printed as text unless its id is named. Sections of
    one id that have a `tab` are shown in turn.
    """

    id: str
    title: str
    notes: Sequence[str] = ()
    said: str = ""
    charts: Sequence[tuple[str, Chart]] = ()
    tables: Sequence[Table] = ()
    lines: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    commands: Sequence[str] = ()
    detail: bool = False
    tab: str = ""
    legend: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """What a result shows: a finding in a sentence, what to doubt, and sections.

    Parameters
    ----------
    command : str
        The command that makes such a result.
    title, answer : str
        What the page is about, and the finding.
    first : str
        What to know before the finding is read.
    hint : str
        What a text leaves out, and how to see it; shown where it is left out.
    lesser : sequence of str
        Sentences below the finding.
    warnings : sequence of str
    sections : sequence of Section
    next : sequence of str
        What to run next.
    methods : sequence of Look
        Methods that can be switched off and isolated in all charts; see `show.charts.theme`.
    """

    command: str
    title: str
    answer: str
    lesser: Sequence[str] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[Section] = ()
    next: Sequence[str] = ()
    methods: Sequence[Any] = ()
    first: str = ""
    hint: str = ""

    @property
    def top(self) -> list[str]:
        """The sentences at the top: what to know first if there is anything, and the finding."""
        return [_sentence(text) for text in (self.first, self.answer) if text]


class Shown:
    """A result that shows itself, by its `page`."""

    def __dir__(self) -> list[str]:
        """Return the names for users, without those of pydantic."""
        theirs = [base for base in type(self).__mro__ if base.__module__.startswith("pydantic")]
        hidden = {"model_config"}.union(*map(vars, theirs))
        return [name for name in super().__dir__() if name not in hidden]

    def page(self, *args: Any, **shown: Any) -> Page:
        """Return what there is to show; the code that makes the page explains the rest."""
        return page_of(self, *args, **shown)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; undefined numbers are None."""
        return plain(self)

    def to_json(self) -> str:
        """Return the plain values as indented JSON."""
        return printed(self.to_dict())

    def __str__(self) -> str:
        """Return the page as text."""
        return as_text(self.page())

    def __repr__(self) -> str:
        """Return the finding in a line, and each warning in one."""
        page = self.page()
        line = " ".join([f"{type(self).__name__}:", *page.top, *page.lesser[:1]])
        return with_warnings(line, page.warnings)

    def _repr_html_(self) -> str:
        return as_fragment(self.page())

    def _charts(self) -> list[tuple[str, str, Chart]]:
        """Return the charts of the page: id of the section, tab and caption, what draws it."""
        return [
            (section.id, f"{section.tab} {caption}", make)
            for section in self.page().sections
            for caption, make in section.charts
        ]

    def plot(self, section: str = "", of: str = "") -> Any:
        """Return a chart of the page as an Altair chart.

        Parameters
        ----------
        section : str
            Id of the section (default: the first that has a chart).
        of : str
            A part of the chart's caption or tab, such as a split or a kind of target (default: the
            first).

        Raises
        ------
        FewbenchError
            If there is none.
        """
        drawn = self._charts()
        named = " of ".join(repr(name) for name in (section, of) if name)
        refused = f"no chart {named}".rstrip() + f" of this {type(self).__name__}"
        ids = list(dict.fromkeys(name for name, _, _ in drawn))
        if section and section not in ids:
            raise FewbenchError(
                refused, hint=did_you_mean(section, ids) if ids else "it has no charts"
            )
        for name, caption, make in drawn:
            is_named = section in ("", name) and of.lower() in caption.lower()
            if is_named and (chart := make()) is not None:
                return chart
        captions = dict.fromkeys(caption.strip() for name, caption, _ in drawn if name == section)
        raise FewbenchError(refused, hint=f"use one of {some(captions)}" if of else "add results")


def plain(values: Any) -> dict[str, Any]:
    """Return values as JSON has them; undefined numbers are None.

    Examples
    --------
    >>> plain({"error": float("nan"), "table": Table("a", (), ())})["error"] is None
    True
    """
    from pydantic_core import to_json

    as_json = to_json(values, inf_nan_mode="null", fallback=lambda number: number.item())
    return dict(json.loads(as_json))


@singledispatch
def page_of(result: Any, *args: Any, **shown: Any) -> Page:
    """Return the page of a result, by its type: pages depend on results, which are data."""
    raise NotImplementedError(f"{type(result).__name__} has no page")


def as_text(page: Page, *details: str) -> str:
    """Return a page for a terminal, with the details that are named by id."""
    hint = [page.hint] if page.hint and not details else []
    blocks = [[*map(wrapped, page.top), *map(wrapped, [*page.lesser, *hint])]]
    for section in _shown(page, details):
        lines = [wrapped(section.said)] if section.said else []
        for grid in section.tables:
            if not grid.folded:
                lines.append(_aligned(grid))
        lines += [wrapped(line) for line in (*section.notes, *section.lines)]
        lines += [wrapped(f"{name}: {text}", 2) for name, text in section.facts.items()]
        blocks.append(lines)
    blocks.append([as_warning(text) for text in page.warnings])
    further = [
        *page.next,
        *(line for section in _shown(page, details) for line in section.commands),
    ]
    blocks.append([f"Next: {text}" for text in further])
    return "\n\n".join("\n".join(lines) for lines in blocks if lines).replace("−", "-")


def _aligned(grid: Table) -> str:
    """Return a table in columns, or line by line if it holds sentences."""
    if not grid.has_sentences:
        rows = grid.rows[: grid.first]
        text = table([name for name, _ in grid.head], rows, [not n for _, n in grid.head])
        if more := len(grid.rows) - len(rows):
            text += f"\n… and {more:,} more rows: --report FILE and --json have all"
        return text
    lines = []
    for row in grid.rows:
        lines.append(wrapped(": ".join(row[:2]), 2))
        lines += [wrapped(f"  → {cell}", 4) for cell in row[2:] if cell]
    return "\n".join(lines)


def as_markdown(page: Page) -> str:
    """Return a page for the summary of a CI run, or an issue."""
    lines = [_cell(page.first)] if page.first else []
    lines += [f"### fewbench {page.command}: {_cell(page.answer)}", *map(_cell, page.lesser)]
    for section in _shown(page):
        for grid in section.tables:
            rows = [[x for x, _ in grid.head], ["---"] * len(grid.head), *grid.rows]
            lines.append("\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows))
    lines += [f"- warning: {_cell(text)}" for text in page.warnings]
    return "\n\n".join(lines) + "\n"


def as_fragment(page: Page) -> str:
    """Return a page for the cell of a notebook, without its charts."""
    parts = [f"<p><b>{escape(' '.join(page.top))}</b> {escape(' '.join(page.lesser))}</p>"]
    for section in _shown(page):
        for grid in section.tables:
            parts.append("<table><thead><tr>")
            parts += [f"<th>{escape(name)}</th>" for name, _ in grid.head]
            parts.append("</tr></thead><tbody>")
            for row in grid.rows:
                parts.append(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>")
            parts.append("</tbody></table>")
        parts += [f"<div>{escape(k)}: {escape(v)}</div>" for k, v in section.facts.items()]
    return "".join([*parts, as_html(page.warnings)])


def _shown(page: Page, details: Sequence[str] = ()) -> Iterator[Section]:
    return (section for section in page.sections if not section.detail or section.id in details)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _cell(text: str) -> str:
    """Return a text that is safe in Markdown, also in a cell of a table."""
    return escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("`", "'")
