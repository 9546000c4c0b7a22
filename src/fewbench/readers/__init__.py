"""Read result files of harnesses and plain tables into Scores."""

from fewbench.readers.attributes import join_attributes
from fewbench.readers.frames import Columns
from fewbench.readers.harness import Reading
from fewbench.readers.items import are_items, read_items
from fewbench.readers.reading import FORMS, FoundFiles, look, read

__all__ = [
    "FORMS",
    "Columns",
    "FoundFiles",
    "Reading",
    "are_items",
    "join_attributes",
    "look",
    "read",
    "read_items",
]
