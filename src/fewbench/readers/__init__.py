"""Result files of harnesses and plain tables, read into Scores."""

from fewbench.readers.attributes import join_attributes
from fewbench.readers.reading import Reading
from fewbench.readers.recognise import DAMAGED, FORMS, SAME_MODEL, read
from fewbench.readers.tables import Columns

__all__ = ["DAMAGED", "FORMS", "SAME_MODEL", "Columns", "Reading", "join_attributes", "read"]
