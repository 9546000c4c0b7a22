"""A method played on targets whose answers are known, checked at every step."""

from dataclasses import dataclass

import numpy as np

from fewbench._types import IntArray
from fewbench.methods import Answers, Method, Prediction
from fewbench.scores import Scores

CLOSE = 1e-9
"""Equal but for the order in which a matrix product adds up."""


@dataclass(frozen=True, eq=False)
class Played:
    """What a method asked and predicted; rows of the prediction are in the targets' order."""

    asked: dict[str, IntArray]
    prediction: Prediction


def play(
    method: Method,
    sources: Scores,
    targets: Scores,
    budget: int,
    seed: int = 0,
    *,
    whole_budget: bool = True,
    tasks: bool = False,
    one_by_one: bool = False,
) -> Played:
    """Run a session to its end, checking at every step that it keeps the protocol.

    Parameters
    ----------
    sources, targets : Scores
        Of the same items; the method gets only the answers that it asks for.
    whole_budget : bool
        Whether every target must be asked exactly `budget` items, or at most as many.
    one_by_one : bool
        Tell the last target all it is asked for, then the one before it, and so on. By default
        all targets that are asked are told, in the order of the asking.
    """
    names = targets.model_ids
    session = method.start(sources, budget, seed, names)
    asked: dict[str, list[int]] = {name: [] for name in names}
    for _ in range(len(names) * sources.n_items + 1):
        wanted = session.ask()
        again = session.ask()
        assert list(wanted) == list(again), "asking again names other targets"
        if not wanted:
            break
        told = list(wanted.items())
        if one_by_one:  # of a target that waits for the others, nothing is asked now
            told = [(name, items) for name, items in told if len(items)][-1:]
        for name, items in told:
            assert name in asked, f"{name!r} is not a target"
            assert np.array_equal(items, again[name]), "asking again returns other items"
            assert np.issubdtype(items.dtype, np.integer), "items are asked by position"
            assert len(items), f"nothing is asked of {name!r}; leave it out"
            assert items.min() >= 0, "a position is negative"
            assert items.max() < sources.n_items, "a position is beyond the last item"
            session.tell(name, answers_of(targets, names.index(name), items))
            asked[name].extend(items.tolist())
    assert not session.ask(), "the method never stops asking"
    for name, positions in asked.items():
        assert len(set(positions)) == len(positions), f"{name!r} is asked an item twice"
        enough = len(positions) == budget if whole_budget else 1 <= len(positions) <= budget
        assert enough, f"{name!r} is asked {len(positions)} items, the budget is {budget}"
    prediction = session.predict(names, tasks=tasks)
    assert prediction.scores.shape == (len(names),)
    assert np.isfinite(prediction.scores).all(), "a predicted score is not finite"
    if tasks:
        assert prediction.tasks is not None, "task scores were wanted"
        assert prediction.tasks.shape == (len(names), len(sources.tasks))
        assert np.isfinite(prediction.tasks).all(), "a predicted task score is not finite"
    as_arrays = {name: np.array(positions, dtype=np.intp) for name, positions in asked.items()}
    return Played(as_arrays, prediction)


def answers_of(targets: Scores, row: int, items: IntArray) -> Answers:
    """Look up the answers of one target to the items asked of it, and no others."""
    options = None
    if targets.probabilities is not None:
        options = targets.probabilities.take(np.array([row])).of_items(items)
    return Answers(items, targets.values[row, items][None], options)


def assert_same(one: Played, two: Played, *, exactly: bool = False) -> None:
    """Check that two plays asked the same and predicted the same."""
    tolerance = 0.0 if exactly else CLOSE
    assert set(one.asked) == set(two.asked)
    for name, items in one.asked.items():
        assert np.array_equal(items, two.asked[name]), f"{name!r} is asked other items"
    np.testing.assert_allclose(one.prediction.scores, two.prediction.scores, atol=tolerance, rtol=0)
    if one.prediction.tasks is not None and two.prediction.tasks is not None:
        np.testing.assert_allclose(
            one.prediction.tasks, two.prediction.tasks, atol=tolerance, rtol=0
        )


def reordered(played: Played, order: IntArray) -> Played:
    """Return a play with the rows of its prediction in another order."""
    scores, tasks = played.prediction.scores, played.prediction.tasks
    return Played(played.asked, Prediction(scores[order], None if tasks is None else tasks[order]))
