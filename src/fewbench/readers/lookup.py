"""Columns of a long table that are in a table of their own, such as the names of models by id."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fewbench._lazy import pandas as pd
from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.frames import Columns, load_table, table_columns

FIELDS = ("model", "item", "task", "date", "family")


@dataclass(frozen=True)
class Lookup:
    """A table with one row for each value of its column `key`, and the columns taken from it."""

    source: Path
    key: str
    names: tuple[str, ...]

    def note(self) -> str:
        """Say what is taken from where."""
        return f"{some(self.names)} from {self.source}, by {self.key!r}"

    def added_to(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Return rows with the columns; empty where the table does not have a key."""
        table = load_table(self.source, [self.key])
        keys = table[self.key].astype(str)
        if keys.duplicated().any():
            raise ReaderError(
                f"{self.source}: {self.key!r} is not different in every row: "
                f"{some(keys[keys.duplicated()].unique())}",
                hint="keep one row for each",
            )
        by_key = table.set_axis(keys)
        wanted = frame[self.key].astype(str)
        return frame.assign(**{name: wanted.map(by_key[name]) for name in self.names})


def find_lookups(sources: Sequence[Path], columns: Columns) -> tuple[list[Path], list[Lookup]]:
    """Return the files with answers, and the tables that have what these lack.

    Such a table has no column of scores, a column that is named and that no file of answers has,
    and one column that these have too, by which rows are found.
    """
    has = {source: table_columns(source) for source in sources}
    answers = [source for source in sources if columns.score in has[source]]
    there = {name for source in answers for name in has[source]}
    lookups = []
    for source in sources:
        names = [name for name in columns.named if name not in there and name in has[source]]
        shared = [name for name in has[source] if name in there]
        if source not in answers and names and shared:
            lookups.append(Lookup(source, shared[0], tuple(names)))
    used = {lookup.source for lookup in lookups}
    return [source for source in sources if source not in used], lookups


def without(columns: Columns, lookups: Sequence[Lookup]) -> Columns:
    """Return the columns that the files of answers have, with the keys of the lookups."""
    gone = {name for lookup in lookups for name in lookup.names}
    fields = {name: None for name in FIELDS if getattr(columns, name) in gone}
    kept = (name for name in (*columns.keep_item, *columns.keep_model) if name not in gone)
    keys = (lookup.key for lookup in lookups)
    return replace(columns, **fields, keep_item=tuple(dict.fromkeys([*kept, *keys])), keep_model=())
