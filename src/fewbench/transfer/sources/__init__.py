"""Where tasks come from: plain JSON lines, lm-eval, and datasets of Inspect."""

from fewbench.transfer.sources.reading import read_tasks

__all__ = ["read_tasks"]
