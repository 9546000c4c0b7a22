"""Result files of harnesses and plain tables, read into Scores."""

from fewbench.readers.attributes import join_attributes
from fewbench.readers.harness import Reading
from fewbench.readers.logs import DAMAGED, SAME_MODEL, are_logs
from fewbench.readers.recognize import FORMS, read
from fewbench.readers.tables import Columns

__all__ = [
    "DAMAGED",
    "FORMS",
    "SAME_MODEL",
    "Columns",
    "Reading",
    "are_logs",
    "join_attributes",
    "read",
]
