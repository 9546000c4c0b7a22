"""Playing an evaluation with targets whose answers are known already."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.methods.base import Answers, IntArray, Method
from fewbench.scores import Scores

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Replay:
    """What a method said of targets.

    Attributes
    ----------
    scores : ndarray, shape (targets,)
        Predicted full scores, within the bounds that the answers set.
    tasks : ndarray, shape (targets, tasks), optional
    items : list of ndarray of int
        Positions of the items that each target was run on.
    seconds_fit, seconds_predict : float
        Time to choose items and to predict (with what is learned at the first prediction).
    """

    scores: FloatArray
    tasks: FloatArray | None
    items: list[IntArray]
    seconds_fit: float
    seconds_predict: float


def replay(
    method: Method,
    sources: Scores,
    targets: Scores,
    budget: int,
    seed: int,
    *,
    tasks: bool = False,
) -> Replay:
    """Run a method on targets by looking up their answers.

    Parameters
    ----------
    sources, targets : Scores
        Of the same items in the same order; targets without missing cells. The method is given
        only the answers that it asks for.
    """
    names = targets.model_ids
    run: dict[str, list[IntArray]] = {name: [] for name in names}
    started = time.perf_counter()
    session = method.start(sources, budget, seed, names)
    while asked := session.ask():
        for name, items in asked.items():
            row = names.index(name)
            options = None
            if targets.probabilities is not None:
                options = targets.probabilities.take(np.array([row])).of_items(items)
            session.tell(name, Answers(items, targets.values[[row]][:, items], options))
            run[name].append(items)
    fitted = time.perf_counter()
    prediction = session.predict(names, tasks=tasks)
    seconds = time.perf_counter()
    items_run = [np.concatenate(run[name]) for name in names]
    low, high = np.array(
        [
            known_bounds(sources.item_weights, items, targets.values[row, items])
            for row, items in enumerate(items_run)
        ]
    ).T
    return Replay(
        np.clip(prediction.scores, low, high),
        prediction.tasks,
        items_run,
        fitted - started,
        seconds - fitted,
    )


def known_bounds(
    item_weights: FloatArray, items: IntArray, answers: FloatArray
) -> tuple[float, float]:
    """Return what the full score cannot be below or above, given answers in [0, 1].

    The bounds meet when every item was run, so any estimate within them is then exact.

    Examples
    --------
    >>> known_bounds(np.full(4, 0.25), np.array([0, 1]), np.array([1.0, 0.0]))
    (0.25, 0.75)
    """
    weights = item_weights[items]
    low = min(float(weights @ answers), 1.0)  # a sum of weights can pass 1 by rounding
    left = 1.0 - float(weights.sum()) if len(items) < len(item_weights) else 0.0
    return low, min(low + max(left, 0.0), 1.0)
