"""What was not run and why, and what methods that ran say of it or lack."""

import re
from collections.abc import Iterator, Sequence

from _baselines.cells import Record
from _baselines.tables import SPLITS, Loaded

UNEVEN = 0.01
"""Share by which the items run may be off the budget before it is told."""


def left_out(records: Sequence[Record], loaded: dict[str, Loaded], unrun: int) -> Iterator[str]:
    """Write every reason once, with the methods and tables that it is of."""
    if unrun:
        yield f"- **{unrun} cells were not run, for time was short.**"
    cannot = [
        (method, name, why)
        for name, table in loaded.items()
        for method, reasons in table.cannot.items()
        for why in reasons
    ]
    yield from _listed(cannot)
    yield from _failed(records)
    if not cannot and not unrun and not any(record.failed for record in records):
        yield "Nothing: every method ran on every table at every budget."
    lacking = [
        (method, name, why)
        for name, table in loaded.items()
        for method, reasons in table.lacking.items()
        for why in reasons
    ]
    if lacking:
        yield "\nOf those that ran, what `fewbench audit` says that they lack:\n"
        yield from _listed(lacking)
    notes = [(record.method, record.table, note) for record in records for note in record.notes]
    if notes:
        yield "\nWhat methods say of their own predictions (the first of each kind):\n"
        yield from _listed(notes)
    yield from _uneven(records)


def _listed(said: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Write (method, table, reason) with methods of like reasons on the same tables together."""
    tables: dict[tuple[str, str], dict[str, None]] = {}
    first: dict[tuple[str, str], str] = {}
    for method, table, why in said:
        tables.setdefault((_shape(why), method), {})[table] = None
        first.setdefault((_shape(why), method), _line(why))
    together: dict[tuple[str, str], list[str]] = {}
    for (shape, method), names in tables.items():
        together.setdefault((shape, ", ".join(names)), []).append(method)
    for (shape, names), methods in together.items():
        listed = ", ".join(f"`{method}`" for method in methods)
        yield f"- {listed} on {names}: {first[shape, methods[0]]}"


def _failed(records: Sequence[Record]) -> Iterator[str]:
    """Write what methods refused, with the budgets; a reason's numbers may differ."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.failed:
            found.setdefault((record.method, _shape(record.failed)), []).append(record)
    for (method, _), group in found.items():
        where = []
        for table in dict.fromkeys(record.table for record in group):
            here = [record for record in group if record.table == table]
            splits = [split for split in SPLITS if any(r.split == split for r in here)]
            budgets = sorted({record.budget for record in here})
            text = f"{table} at {', '.join(map(str, budgets))} items"
            where.append(text + (f" ({splits[0]} split)" if len(splits) == 1 else ""))
        verb = "**failed**" if group[0].broken else "refused"
        yield f"- `{method}` {verb} {'; '.join(where)}: {_line(group[0].failed)}"


def _uneven(records: Sequence[Record]) -> Iterator[str]:
    found: dict[tuple[str, int], list[float]] = {}
    for record in records:
        if not record.failed:
            found.setdefault((record.method, record.budget), []).append(record.items_run)
    lines = []
    for method in dict.fromkeys(record.method for record in records):
        said = []
        for (name, budget), ran in found.items():
            if name == method and max(abs(n / budget - 1) for n in ran) > UNEVEN:
                said.append(f"{min(ran):.0f}–{max(ran):.0f} for {budget}")
        if said:
            lines.append(f"- `{method}`: {', '.join(said)}")
    if lines:
        yield "\nItems run on average over targets, where that is not the budget:\n"
    yield from lines


def _shape(text: str) -> str:
    """Return a message without its numbers and names: those of one shape are told once."""
    return re.sub(r"'[^']*'|\d+(\.\d+)?", "#", text)


def _line(text: str) -> str:
    return " ".join(text.split())
