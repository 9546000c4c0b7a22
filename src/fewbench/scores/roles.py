"""Which models are the source models, and what may be given in place of their scores."""

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted
from fewbench._types import BoolArray
from fewbench.errors import WrongTypeError
from fewbench.scores.benchmark import Benchmark
from fewbench.scores.table import RUN, Scores


def is_added(scores: Scores) -> BoolArray:
    """Whether each model was added from an evaluation (`fewbench.add`), shape (models,)."""
    if RUN not in scores.models:
        return np.zeros(scores.n_models, dtype=bool)
    texts = scores.models[RUN].astype(str)
    return texts.str.fullmatch("[0-9a-f]{16}:.+").to_numpy(dtype=bool)


def as_scores(given: object) -> Scores:
    """Return whole scores as `as_sources` does; PackError for a pack of the chosen items alone."""
    scores = as_sources(given)
    _ = scores.cells  # a pack refuses to give them
    return scores


def as_sources(given: object) -> Scores:
    """Return the scores of source models; of a benchmark alone, those of no models.

    WrongTypeError for a path, a DataFrame or an array in place of scores.

    Examples
    --------
    >>> as_sources(Benchmark(pd.DataFrame({"task": ["x", "x"]}, index=["q1", "q2"])))
    Scores: 0 models × 2 items, 1 task
    """
    if isinstance(given, Benchmark):
        nothing = pd.DataFrame(index=pd.Index([], dtype=object))
        values = np.empty((0, given.n_items))
        return Scores(values, nothing, given.items, None, given.scale, given.average)
    if not isinstance(given, Scores):
        raise wrong_type(given, "Scores")
    return given


def wrong_type(given: object, wanted: str) -> WrongTypeError:
    """Return the error on an object in place of scores, with the call that makes scores of it."""
    name = type(given).__name__
    how = {
        "DataFrame": "fewbench.from_wide(frame): rows are models, columns are items; or "
        "fewbench.from_long(frame): a row for each answer",
        "ndarray": "fewbench.from_arrays(array, models=[...]): rows are models, columns are items",
        "Reading": ".scores of what import_results returned",
    }
    how["list"] = how["ndarray"]
    usual = "fewbench.load_scores(path), or fewbench.read_items(path) for items alone"
    return WrongTypeError(f"{name} in place of {wanted}", hint=f"use {how.get(name, usual)}")


def source_models(scores: Scores) -> tuple[Scores, tuple[str, ...]]:
    """Return the scores without models whose `role` is target, and a note if there are any.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> table = from_arrays([[1, 0], [0, 1]], models=["a", "b"])
    >>> table = table.changed(models=table.models.assign(role=["source", "target"]))
    >>> sources, notes = source_models(table)
    >>> sources.model_ids, notes[0]
    (['a'], '1 of 2 models has the role target and is not used as a source model')
    """
    if scores.origin is not None or "role" not in scores.models:
        return scores, ()
    is_target = (scores.models["role"] == "target").to_numpy(dtype=bool)
    count = int(is_target.sum())
    if not count:
        return scores, ()
    models = counted(scores.n_models, "model")
    note = f"{count} of {models} have the role target and are not used as source models"
    if count == 1:
        note = f"1 of {models} has the role target and is not used as a source model"
    if count == scores.n_models:
        return as_sources(scores.benchmark), (note,)
    return scores.take(models=np.flatnonzero(~is_target)), (note,)
