"""Check a table of source results for problems and suggest fixes."""

from fewbench.checks.audit import Audit, Fit, audit
from fewbench.checks.dropping import DROPS, drop, with_families
from fewbench.checks.finding import Details, Finding
from fewbench.checks.page import audit_page  # noqa: F401 - pages enter by their types

__all__ = ["DROPS", "Audit", "Details", "Finding", "Fit", "audit", "drop", "with_families"]
