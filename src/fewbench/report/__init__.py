"""Self-contained HTML pages: about a comparison of methods, and about a table of scores."""

from fewbench.report.audit_page import write_audit
from fewbench.report.native_page import write_native
from fewbench.report.page import write_report

__all__ = ["write_audit", "write_native", "write_report"]
