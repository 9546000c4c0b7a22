"""What is wrong or peculiar in a table of past results, and what to do about it."""

from fewbench.audit.audit import Audit, audit
from fewbench.audit.dropping import DROPS, drop, with_families
from fewbench.audit.finding import Finding, Table
from fewbench.audit.support import Fit

__all__ = ["DROPS", "Audit", "Finding", "Fit", "Table", "audit", "drop", "with_families"]
