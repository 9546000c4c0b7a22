"""Where items stand in a harness now, if its data changed since the sources were run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from fewbench.scores import Scores

POSITION = "doc_id"


def moved_documents(sources: Scores, told: Scores, items: Sequence[str]) -> Iterator[str]:
    """Say for each task at which positions of asked items a log holds other documents.

    Parameters
    ----------
    sources, told : Scores
        Read from logs of one harness.
    items : sequence of str
        Items that were asked for and that the log does not hold.
    """
    if POSITION not in sources.items or POSITION not in told.items:
        return
    wanted = sources.items.loc[list(items)]
    asked = set(items)
    for task, there in told.items.groupby(told.items["task"].astype(str), sort=True):
        places = there[POSITION].dropna().astype(int)
        document = dict(zip(places, places.index, strict=True))
        mine = wanted[(wanted["task"].astype(str) == task) & wanted[POSITION].notna()]
        moved = [
            at
            for at in mine[POSITION].astype(int).tolist()
            if at in document and document[at] not in asked
        ]
        if moved:
            more = f" (and {len(moved) - 1} more of its positions)" if len(moved) > 1 else ""
            yield (
                f"position {min(moved)} of {task} holds another document than the sources saw{more}"
            )


def positions_in(sources: Scores, logs: Scores, items: Sequence[str]) -> tuple[Scores, list[str]]:
    """Take the positions of items from other logs than the sources'.

    Parameters
    ----------
    sources : Scores
    logs : Scores
        Read from logs of any model on the data as it is now.
    items : sequence of str
        Items of the sources.

    Returns
    -------
    (Scores, list of str)
        The sources with the positions of the logs, and which of the items these do not hold.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> table = from_arrays([[1, 0]], models=["m"], items=["t/a", "t/b"], tasks=["t", "t"])
    >>> before, after = (
    ...     replace(table, items=table.items.assign(doc_id=where)) for where in ([0, 1], [1, 0])
    ... )
    >>> now, lacking = positions_in(before, after, ["t/b"])
    >>> now.items["doc_id"].tolist(), lacking
    ([1, 0], [])
    """
    places = logs.items[POSITION] if POSITION in logs.items else pd.Series(dtype="Int64")
    found = places.reindex(sources.items.index).astype("Int64")
    lacking = [item for item in items if pd.isna(found[item])]
    return replace(sources, items=sources.items.assign(**{POSITION: found})), lacking
