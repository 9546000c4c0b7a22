"""Ways of running a model on chosen items."""

from fewbench.runners.exports import EXPORTS, export_items

__all__ = ["EXPORTS", "export_items"]
