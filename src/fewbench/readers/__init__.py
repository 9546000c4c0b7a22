"""Read result files of harnesses and plain tables into Scores."""

from fewbench.readers.attributes import join_attributes
from fewbench.readers.frames import Columns
from fewbench.readers.harness import Reading
from fewbench.readers.items import are_items, read_items
from fewbench.readers.reading import FoundFiles, check_form, import_results, look

__all__ = [
    "Columns",
    "FoundFiles",
    "Reading",
    "are_items",
    "check_form",
    "import_results",
    "join_attributes",
    "look",
    "read_items",
]
