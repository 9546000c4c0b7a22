"""Export chosen items for a harness, and find their current positions there."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from glob import escape

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import did_you_mean, some
from fewbench.errors import FewbenchError
from fewbench.scores import Scores
from fewbench.scores.groups import harness_tasks
from fewbench.scores.table import POSITION, ROUTE

UNFIT = re.compile(r"[,*?[]")


def check_export(harness: str) -> None:
    """Raise FewbenchError if items cannot be exported to a harness."""
    if harness not in EXPORTS:
        raise FewbenchError(
            f"unknown harness {harness!r}", hint=did_you_mean(harness, EXPORTS), kind="unknown"
        )


def export_items(scores: Scores, items: Sequence[str], harness: str) -> str:
    """Return items as a text for a harness or script.

    Parameters
    ----------
    scores : Scores
        The source models' scores, with the items' positions in their tasks.
    items : sequence of str
        Item ids.
    harness : {"ids", "lm-eval", "inspect"}
        ids: one id per line. lm-eval: JSON for `--samples`, with sorted unique positions. inspect:
        comma-separated list for `--sample-id`, as TASK:ID; plain ids if neither tasks nor Inspect's
        own ids are known.

    Raises
    ------
    FewbenchError
        If the harness is unknown, the items belong to a different harness, their positions are not
        known, or Inspect's command line does not accept an id.
    """
    check_export(harness)
    return EXPORTS[harness](scores.items.iloc[scores.positions(items)])


def _ids(items: "pd.DataFrame") -> str:
    return "\n".join(str(item) for item in items.index)


def _lm_eval(items: "pd.DataFrame") -> str:
    check_origin(items, "lm-eval")
    if "doc_id" not in items:
        raise FewbenchError(
            "the positions of the items in lm-eval are not known (no column doc_id)",
            hint="import the scores from lm-eval logs, or add a column doc_id to the items",
        )
    unknown = items.index[items["doc_id"].isna()]
    if len(unknown):
        raise FewbenchError(
            f"the positions in lm-eval are not known of {len(unknown)} items: {some(unknown)}",
            hint="also import a full run of the task; positions in subset runs are not reliable",
        )
    samples = {
        str(task): np.unique(group["doc_id"].astype(int)).tolist()
        for task, group in items.groupby("task", sort=True)
    }
    return json.dumps(samples)


def _inspect(items: "pd.DataFrame") -> str:
    check_origin(items, "inspect")
    samples = [str(sample) for sample in items.get("sample_id", items.index)]
    named = "sample_id" in items or set(items["task"]) != {"all"}  # "all": a table without tasks
    tasks = [f"{task}:" if named else "" for task in harness_tasks(items)]
    ids = [task + sample for task, sample in zip(tasks, samples, strict=True)]
    if unfit := [name for name in ids if UNFIT.search(name) or name != name.strip()]:
        # Entries are patterns in Python too, and must be escaped.
        escaped = [task + escape(sample) for task, sample in zip(tasks, samples, strict=True)]
        raise FewbenchError(
            f"{len(unfit)} of {len(ids)} ids do not work with Inspect's --sample-id, because of "
            f"commas, outer spaces or the characters * ? [: {some(unfit)}",
            hint=f"run the items in Python: inspect_ai.eval(tasks, sample_id={escaped!r})",
        )
    return ",".join(ids)


def check_origin(items: "pd.DataFrame", harness: str) -> None:
    """Raise FewbenchError if the items have positions and ids of a different harness."""
    names = items[ROUTE] if ROUTE in items else items.get("harness", ())
    others = sorted(set(names) - {harness, ""})
    if others:
        raise FewbenchError(
            f"the items have the positions and ids of {some(others)}, not of {harness}",
            hint="run them there; ask without --for lists plain ids, with --json per target",
        )


EXPORTS: "dict[str, Callable[[pd.DataFrame], str]]" = {
    "ids": _ids,
    "lm-eval": _lm_eval,
    "inspect": _inspect,
}


def moved_documents(sources: Scores, told: Scores, items: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each task whose log has other documents at the items' positions.

    `sources` and `told` are read from logs of one harness; `items` were asked for, but are not in
    the log `told`.
    """
    if POSITION not in sources.items or POSITION not in told.items:
        return
    wanted = sources.items.loc[list(items)]
    tasks, asked = harness_tasks(wanted), set(items)
    for task, there in told.items.groupby(harness_tasks(told.items), sort=True):
        places = there[POSITION].dropna().astype(int)
        document = dict(zip(places, places.index, strict=True))
        mine = wanted[(tasks == task) & wanted[POSITION].notna()]
        moved = [
            at
            for at in mine[POSITION].astype(int).tolist()
            if at in document and document[at] not in asked
        ]
        if moved:
            more = f" (and {len(moved) - 1} more positions)" if len(moved) > 1 else ""
            yield (
                f"position {min(moved)} of {task} holds another document than the sources had{more}"
            )


def positions_in(sources: Scores, logs: Scores, items: Sequence[str]) -> tuple[Scores, list[str]]:
    """Replace the items' positions in the sources by those in current logs of any model.

    Returns the sources with the new positions, and the items (of `items`) that the logs lack.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> table = from_arrays([[1, 0]], models=["m"], items=["t/a", "t/b"], tasks=["t", "t"])
    >>> before, after = (
    ...     table.changed(items=table.items.assign(doc_id=where)) for where in ([0, 1], [1, 0])
    ... )
    >>> now, lacking = positions_in(before, after, ["t/b"])
    >>> now.items["doc_id"].tolist(), lacking
    ([1, 0], [])
    """
    places = logs.items[POSITION] if POSITION in logs.items else pd.Series(dtype="Int64")
    positions = places.reindex(sources.items.index).astype("Int64")
    lacking = [item for item in items if pd.isna(positions[item])]
    moved = sources.items.assign(**{POSITION: positions})
    return sources.changed(items=moved), lacking
