"""One self-contained HTML page about a comparison of estimation methods."""

from fewbench.report.page import write_report

__all__ = ["write_report"]
