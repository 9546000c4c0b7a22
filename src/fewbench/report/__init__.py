"""Self-contained HTML pages: comparisons, estimates, plans, audits, task selections and others."""

from fewbench.report.writing import write_report

__all__ = ["write_report"]
