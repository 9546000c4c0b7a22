"""Why a method cannot run: known before a target is run, or a cell of a comparison begins."""

from collections.abc import Iterator

import numpy as np

from fewbench._names import counted, some
from fewbench.errors import FewbenchError, MethodError, MissingExtraError
from fewbench.methods.needs import Need, extras_of, needs_of
from fewbench.methods.selection.semantic import item_texts
from fewbench.scores import Scores


def obstacle(method: object, scores: Scores | None = None) -> FewbenchError | None:
    """Return why a method cannot run, as the error to raise; None if nothing known stops it.

    Parameters
    ----------
    method : Method or a part of one
        What it needs is in `needs` and `extras`.
    scores : Scores, optional
        The source models' scores. Without them, only missing packages are found.

    Examples
    --------
    >>> from fewbench.methods import find_method
    >>> from fewbench.testing import simulate
    >>> print(obstacle(find_method("random-ridge"), simulate(n_models=1)))
    a regression needs two sources: there is 1 source model, and 2 are needed (hint: use random,
    or more past models)
    >>> obstacle(find_method("random"), simulate(n_models=1)) is None
    True
    """
    return next(_obstacles(method, scores), None)


def supply(scores: Scores) -> dict[str, int]:
    """Return how much a table has of each thing that a `Need` can name.

    Distinct sources are counted as sources: `fewbench.audit` counts them without near-copies.
    """
    has_text = np.array([bool(text) for text in item_texts(scores)])
    tasks_with_text = np.unique(scores.task_of[has_text])
    return {
        "sources": scores.n_models,
        "distinct sources": scores.n_models,
        "tasks": len(scores.tasks),
        "probabilities": int(scores.probabilities is not None),
        "text": int(has_text.all()),
        "task text": int(len(tasks_with_text) == len(scores.tasks)),
    }


def _obstacles(method: object, scores: Scores | None) -> Iterator[FewbenchError]:
    for extra in extras_of(method):
        if not extra.is_installed:
            yield MissingExtraError(f"{extra.package} is not installed", hint=extra.hint)
    required = [need for need in needs_of(method) if need.required]
    if scores is None or not required:
        return
    has = supply(scores)
    for need in required:
        if has[need.what] < need.least:
            yield _lack(need, scores)


def _lack(need: Need, scores: Scores) -> MethodError:
    if need.what in ("text", "task text"):
        texts = item_texts(scores)
        blank = [item for item, text in zip(scores.item_ids, texts, strict=True) if not text]
        return MethodError(
            f"{len(blank)} of {scores.n_items} items have no text: {some(blank)}",
            hint="import the scores with --items FILE, a table with columns item and text"
            + ("; or give embeddings=FILE.npz" if need.what == "text" else ""),
        )
    if need.what == "probabilities":
        return MethodError(need.without, hint="go by the scores themselves")
    if need.what == "tasks":
        return MethodError(f"{need.without}: there is {counted(len(scores.tasks), 'task')}")
    there = f"there {'is' if scores.n_models == 1 else 'are'} "
    return MethodError(
        f"{need.without}: {there}{counted(scores.n_models, 'source model')}, and {need.least} are "
        "needed",
        hint="use random, or more past models",
    )
