"""Estimate in Inspect: a few lines in a task of one's own.

`estimated` makes a task run only the samples that an estimate needs; `result` gives the estimate.
`EarlyStopping` ends a task once its interval is narrow enough.
"""

from fewbench.runners.inspect.runner import estimated, result
from fewbench.runners.inspect.stopping import EarlyStopping

__all__ = ["EarlyStopping", "estimated", "result"]
