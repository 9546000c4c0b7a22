"""A `Page` as one HTML file, with its charts."""

from __future__ import annotations

from fewbench._page import Page, Section
from fewbench.report.frame import Charts, render_page


def render(page: Page, version: int | None = None) -> str:
    """Return the file as text; charts that cannot be made are left out.

    A live page has a version, and asks for newer ones.
    """
    charts = Charts()
    subjects, groups = [], dict[str, list[Section]]()
    for one in page.sections:
        groups.setdefault(one.id, []).append(one)
    for parts in groups.values():
        drawn = [charts.placed(*((said, make()) for said, make in one.charts)) for one in parts]
        notes = dict.fromkeys(note for one in parts for note in one.notes)
        subjects.append((parts, drawn, list(notes)))
    most = max((len(parts) for parts, *_ in subjects), default=0)
    return render_page(charts, version, page=page, subjects=subjects, most=most)
