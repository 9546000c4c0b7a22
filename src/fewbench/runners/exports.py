"""Chosen items in the words of the harness that will run them."""

import json
import re
from collections.abc import Callable, Sequence
from glob import escape

import numpy as np
import pandas as pd

from fewbench._names import did_you_mean, some
from fewbench.errors import FewbenchError
from fewbench.scores import Scores

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
