"""Chosen items in the words of the harness that will run them, and where they stand there now."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from glob import escape

import numpy as np
import pandas as pd

from fewbench._names import did_you_mean, some
from fewbench.errors import FewbenchError
from fewbench.scores import Scores

POSITION = "doc_id"
UNFIT = re.compile(r"[,*?[]")


def check_export(harness: str) -> None:
    """Raise FewbenchError for a harness that items cannot be exported to."""
    if harness not in EXPORTS:
        raise FewbenchError(f"unknown harness {harness!r}", hint=did_you_mean(harness, EXPORTS))


def export_items(scores: Scores, items: Sequence[str], harness: str) -> str:
    """Write items as one text that a harness, or a script, takes.

    Parameters
    ----------
    scores : Scores
        The sources: they know where an item stands in its task.
    items : sequence of str
        Item ids.
    harness : {"ids", "lm-eval", "inspect"}
        ids: one id a line. lm-eval: the JSON of `--samples`, positions sorted and unique, as
        lm-eval needs them. inspect: the comma-separated list of `--sample-id`, as TASK:ID; bare
        ids where neither tasks nor Inspect's own ids are known.

    Raises
    ------
    FewbenchError
        If the harness is unknown, the items are of another, have no known place in it, or ids
        that Inspect's command line does not take.
    """
    check_export(harness)
    return EXPORTS[harness](scores.items.iloc[scores.positions(items)])


def _ids(items: pd.DataFrame) -> str:
    return "\n".join(str(item) for item in items.index)


def _lm_eval(items: pd.DataFrame) -> str:
    _check_origin(items, "lm-eval")
    if "doc_id" not in items:
        raise FewbenchError(
            "the scores do not say which documents of lm-eval the items are (no column doc_id)",
            hint="import them from lm-eval logs, or keep a column doc_id with the items",
        )
    unknown = items.index[items["doc_id"].isna()]
    if len(unknown):
        raise FewbenchError(
            f"the position in lm-eval is not known of {len(unknown)} items: {some(unknown)}",
            hint="import a full run of the task too; subset runs do not show it safely",
        )
    samples = {
        str(task): np.unique(group["doc_id"].astype(int)).tolist()
        for task, group in items.groupby("task", sort=True)
    }
    return json.dumps(samples)


def _inspect(items: pd.DataFrame) -> str:
    _check_origin(items, "inspect")
    own = [str(sample) for sample in items.get("sample_id", items.index)]
    named = "sample_id" in items or set(items["task"]) != {"all"}  # of tables that name no tasks
    tasks = [f"{task}:" if named else "" for task in items["task"]]
    ids = [task + one for task, one in zip(tasks, own, strict=True)]
    if unfit := [one for one in ids if UNFIT.search(one) or one != one.strip()]:
        # Entries are patterns in Python too; escaped they stand for themselves.
        escaped = [task + escape(one) for task, one in zip(tasks, own, strict=True)]
        raise FewbenchError(
            f"{len(unfit)} of {len(ids)} ids cannot be given to Inspect's --sample-id, which takes "
            f"commas, spaces at an end and the characters * ? [ otherwise: {some(unfit)}",
            hint=f"run the items in Python: inspect_ai.eval(tasks, sample_id={escaped!r})",
        )
    return ",".join(ids)


def _check_origin(items: pd.DataFrame, harness: str) -> None:
    """Raise FewbenchError if the items are of another harness: its positions and ids differ."""
    known = items["harness"] if "harness" in items else pd.Series([], dtype=str)
    others = sorted(set(known) - {harness, ""})
    if others:
        raise FewbenchError(
            f"the items are of logs of {some(others)}, not of {harness}",
            hint="run them there; ask without --for lists the items' own ids, and with --json by "
            "target",
        )


EXPORTS: dict[str, Callable[[pd.DataFrame], str]] = {
    "ids": _ids,
    "lm-eval": _lm_eval,
    "inspect": _inspect,
}


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
