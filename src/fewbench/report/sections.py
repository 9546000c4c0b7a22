"""A `Page` as one HTML file, with its charts."""

from __future__ import annotations

from fewbench._page import Page
from fewbench.report.frame import Charts, render_page


def render(page: Page) -> str:
    """Return the file as text; charts that cannot be made are left out."""
    charts = Charts()
    drawn = {
        one.id: charts.placed(*((caption, make()) for caption, make in one.charts))
        for one in page.sections
    }
    return render_page("sections.html.j2", charts, page=page, drawn=drawn, title=page.title)
