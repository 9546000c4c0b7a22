"""Where tasks come from: plain JSON lines, lm-eval, and datasets of Inspect."""

from fewbench.transfer.sources.reading import passed_over, read_tasks

__all__ = ["passed_over", "read_tasks"]
