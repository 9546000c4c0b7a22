"""Self-contained HTML reports: comparisons, plans, audits, task selections, native sources."""

from fewbench.report.audit_page import write_audit
from fewbench.report.native_page import write_native
from fewbench.report.page import write_report
from fewbench.report.plan_page import write_plan
from fewbench.report.tasks_page import write_tasks

__all__ = ["write_audit", "write_native", "write_plan", "write_report", "write_tasks"]
