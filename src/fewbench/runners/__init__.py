"""Ways of running a model on chosen items."""

from fewbench.runners.exports import EXPORTS, export_items
from fewbench.runners.positions import moved_documents, positions_in

__all__ = ["EXPORTS", "export_items", "moved_documents", "positions_in"]
