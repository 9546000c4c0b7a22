"""Check a table of source results for problems and suggest fixes."""

from fewbench.audit.audit import Audit, Fit, audit
from fewbench.audit.dropping import DROPS, drop, with_families
from fewbench.audit.finding import Finding, Table

__all__ = ["DROPS", "Audit", "Finding", "Fit", "Table", "audit", "drop", "with_families"]
