"""Estimate in Inspect: two lines in a task of one's own.

`estimated` makes a task run only the samples that an estimate needs; `result` gives the estimate.
"""

from fewbench.runners.inspect.runner import estimated, result

__all__ = ["estimated", "result"]
