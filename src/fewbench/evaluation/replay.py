"""Playing an evaluation with targets whose answers are known already."""

import time
from dataclasses import dataclass

import numpy as np

from fewbench._threads import one_thread
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench.evaluation.bounds import bound_score, fit_tasks
from fewbench.methods.base import Answers, Method
from fewbench.scores import Scores


@dataclass(frozen=True, eq=False)
class Replay:
    """A method's predictions for targets.

    Attributes
    ----------
    scores : ndarray, shape (targets,)
        Predicted full scores, within what the answers leave possible.
    tasks : ndarray, shape (targets, tasks), optional
    outside : ndarray of bool, shape (targets,), optional
        Whether a target is unlike all sources, for methods that judge it.
    items : list of ndarray of int
        Positions of each target's items, in the order asked.
    notes : tuple of str
        The method's notes on its predictions.
    seconds_fit, seconds_predict : float
        Seconds to choose the items, and to fit the predictor and predict.
    spread : ndarray, shape (targets,), optional
        The method's own standard errors.
    """

    scores: FloatArray
    tasks: FloatArray | None
    outside: BoolArray | None
    items: list[IntArray]
    notes: tuple[str, ...]
    seconds_fit: float
    seconds_predict: float
    spread: FloatArray | None = None


def replay(
    method: Method,
    sources: Scores,
    targets: Scores,
    budget: int,
    seed: int,
    *,
    tasks: bool = False,
    limit: int | None = None,
) -> Replay:
    """Run a method on targets by looking up their answers.

    Parameters
    ----------
    sources, targets : Scores
        Same items in the same order; targets without missing cells. The method sees only the
        answers that it asks for.
    limit : int, optional
        Most answers per target, to predict from a part of them.
    """
    with one_thread():
        return _replay(method, sources, targets, budget, seed, tasks, limit)


def _replay(
    method: Method,
    sources: Scores,
    targets: Scores,
    budget: int,
    seed: int,
    tasks: bool,
    limit: int | None,
) -> Replay:
    names = targets.model_ids
    rows = {name: row for row, name in enumerate(names)}
    started = time.perf_counter()
    session = method.start(sources, budget, seed, names)
    record = session.record
    left = dict.fromkeys(names, targets.n_items if limit is None else limit)
    while asked := {n: items for n, items in session.ask().items() if len(items) and left[n]}:
        for name, wanted in asked.items():
            items, row = wanted[: left[name]], rows[name]
            options = None
            if targets.probabilities is not None:
                options = targets.probabilities.take(np.array([row])).of_items(items)
            session.tell(name, Answers(items, targets.values[[row]][:, items], options))
            left[name] -= len(items)
    chosen = time.perf_counter()
    prediction = session.predict(names, tasks=tasks)
    done = time.perf_counter()
    told = [record.answers(name) for name in names]
    said = [
        bound_score(score, sources, answers.items, answers.scores[0])
        for score, answers in zip(prediction.scores.tolist(), told, strict=True)
    ]
    of_tasks = None
    if prediction.tasks is not None:
        of_tasks = np.array(
            [
                fit_tasks(one, full, sources, answers.items, answers.scores[0])
                for one, full, answers in zip(prediction.tasks, said, told, strict=True)
            ]
        )
    return Replay(
        np.array(said),
        of_tasks,
        prediction.outside,
        [answers.items for answers in told],
        prediction.notes,
        chosen - started,
        done - chosen,
        prediction.spread,
    )
