"""Ways of running a model on chosen items."""

from fewbench.runners.exports import (
    EXPORTS,
    check_export,
    export_items,
    moved_documents,
    positions_in,
)

__all__ = ["EXPORTS", "check_export", "export_items", "moved_documents", "positions_in"]
