"""Check a table of source results for problems and suggest fixes."""

from fewbench.checks.audit import Audit, Fit, audit
from fewbench.checks.dropping import DROPS, drop, with_families
from fewbench.checks.finding import Finding, Table

__all__ = ["DROPS", "Audit", "Finding", "Fit", "Table", "audit", "drop", "with_families"]
