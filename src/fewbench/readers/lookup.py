"""Columns of a long table that are in a table of their own, such as the names of models by id."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fewbench._lazy import pandas as pd
from fewbench._names import some
from fewbench.errors import ReaderError
from fewbench.readers.frames import Columns, load_table, parts_of, table_columns

FIELDS = ("model", "item", "task", "date", "family")


@dataclass(frozen=True)
class Lookup:
    """A table with one row for each value of its columns `keys`, and the columns taken from it."""

    source: Path
    keys: tuple[str, ...]
    names: tuple[str, ...]

    def note(self) -> str:
        """Say what is taken from where."""
        return f"{some(self.names)} from {self.source}, by {some(self.keys)}"

    def added_to(self, frame: "pd.DataFrame") -> "pd.DataFrame":
        """Return rows with the columns; empty where the table does not have the keys."""
        keys = [*self.keys]
        table = load_table(self.source, keys).astype(dict.fromkeys(keys, str))
        twice = table[table.duplicated(keys)][keys].drop_duplicates()
        if len(twice):
            raise ReaderError(
                f"{self.source}: {some(keys)} {'is' if len(keys) == 1 else 'are'} not different in "
                f"every row: {some(map(', '.join, twice.to_numpy().tolist()))}",
                hint="keep one row for each",
            )
        found = frame[keys].astype(str).merge(table[[*keys, *self.names]], "left", keys)
        return frame.assign(**{name: found[name].array for name in self.names})


def find_lookups(sources: Sequence[Path], columns: Columns) -> tuple[list[Path], list[Lookup]]:
    """Return the files with answers, and the tables that have what these lack.

    Such a table has no column of scores, a column that is named and that no file of answers has,
    and columns that these have too, by which rows are found.
    """
    has = {source: table_columns(source, columns.named) for source in sources}
    answers = [source for source in sources if columns.scored(has[source])]
    there = {name for source in answers for name in has[source]}
    lookups = []
    for source in sources:
        wanted = [part for name in columns.named for part in parts_of(name, has[source])]
        names = [name for name in wanted if name not in there and name in has[source]]
        shared = [name for name in has[source] if name in there]
        if source not in answers and names and shared:
            lookups.append(Lookup(source, tuple(shared), tuple(names)))
    used = {lookup.source for lookup in lookups}
    return [source for source in sources if source not in used], lookups


def without(columns: Columns, lookups: Sequence[Lookup]) -> Columns:
    """Return the columns that the files of answers have, with the keys of the lookups."""
    gone = {name for lookup in lookups for name in lookup.names}
    fields: dict[str, Any] = {name: None for name in FIELDS if getattr(columns, name) in gone}
    kept = (name for name in (*columns.keep_item, *columns.keep_model) if name not in gone)
    keys = (key for lookup in lookups for key in lookup.keys)
    return replace(columns, **fields, keep_item=tuple(dict.fromkeys([*kept, *keys])), keep_model=())
