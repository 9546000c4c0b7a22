"""Play a method on targets with known answers, with checks at every step."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pytest

from fewbench._lazy import pandas as pd
from fewbench._types import FloatArray, IntArray
from fewbench.evaluation import Evaluation
from fewbench.methods import Answers, Method, Prediction
from fewbench.scores import OptionProbabilities, Scores
from fewbench.testing.simulation import simulate
from fewbench.uncertainty.bounds import known_bounds

CLOSE = 1e-9
"""Equal but for the order in which a matrix product adds up."""


@dataclass(frozen=True, eq=False)
class Played:
    """What a method asked and predicted; rows of the prediction follow the targets."""

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
    """Run a session to its end, checking the protocol at every step.

    `sources` and `targets` have the same items; the method gets only the answers that it asks.
    `whole_budget` requires exactly `budget` items per target, otherwise at most. `one_by_one`
    tells the last target all its items first, then the one before it; by default all targets get
    their answers in the order of the requests.
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
        # A target that waits for the others gets no items now.
        pairs = [(name, items) for name, items in wanted.items() if len(items)]
        assert pairs, "all targets wait; leave out those that need nothing more"
        if one_by_one:
            pairs = pairs[-1:]
        for name, items in pairs:
            assert name in asked, f"{name!r} is not a target"
            assert np.array_equal(items, again[name]), "asking again returns other items"
            assert np.issubdtype(items.dtype, np.integer), "items are given by position"
            assert items.min() >= 0, "a position is negative"
            assert items.max() < sources.n_items, "a position is beyond the last item"
            session.tell(name, answers_of(targets, names.index(name), items))
            asked[name].extend(items.tolist())
    assert not session.ask(), "the method never stops asking"
    for name, positions in asked.items():
        assert len(set(positions)) == len(positions), f"{name!r} gets an item twice"
        enough = len(positions) == budget if whole_budget else 1 <= len(positions) <= budget
        assert enough, f"{name!r} gets {len(positions)} items, the budget is {budget}"
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
    """Return the answers of one target to the asked items only."""
    options = None
    if targets.probabilities is not None:
        options = targets.probabilities.take(np.array([row])).of_items(items)
    return Answers(items, targets.values[row, items][None], options)


def assert_same(one: Played, two: Played, *, exactly: bool = False) -> None:
    """Check that two plays asked the same and predicted the same."""
    tolerance = 0.0 if exactly else CLOSE
    assert set(one.asked) == set(two.asked)
    for name, items in one.asked.items():
        assert np.array_equal(items, two.asked[name]), f"{name!r} gets other items"
    first, second = one.prediction, two.prediction
    for ours, theirs in ((first.scores, second.scores), (first.tasks, second.tasks)):
        if ours is not None and theirs is not None:
            np.testing.assert_allclose(ours, theirs, atol=tolerance, rtol=0)


def reordered(played: Played, order: IntArray) -> Played:
    """Return a play with the rows of its prediction reordered."""
    scores, tasks = played.prediction.scores, played.prediction.tasks
    return Played(played.asked, Prediction(scores[order], None if tasks is None else tasks[order]))


@lru_cache(maxsize=128)
def _simulated(**kind: Any) -> Scores:
    """Simulate a table once for all tests; what `take` returns is each test's own."""
    return simulate(**kind)


class Promises:
    """The traits of a method, which a subclass may set, and the tables for its tests.

    - `needs_probabilities`: The method needs option probabilities: all tables have them.
    - `supports_missing`: Scores may have missing cells.
    - `whole_budget`: Each target gets exactly the budget, unless the method's own `whole_budget`
      says otherwise.
    - `exact`: With all items run, the method's own estimate is the full score before fewbench clips
      it. Regressions over models are not exact; means are.
    - `informed`: The method chooses items by what they tell of models, not at random.
    - `estimates`: Also make estimates with intervals, which runs the method some 20 times on parts
      of the sources. Otherwise only predictions are tested, in a third of the time.
    """

    needs_probabilities: ClassVar[bool] = False
    supports_missing: ClassVar[bool] = True
    whole_budget: ClassVar[bool] = True
    exact: bool = False
    informed: bool = False
    estimates: bool = True

    @pytest.fixture
    def method(self) -> Method:
        """Return the method under test."""
        raise NotImplementedError("supply a fixture named `method`")

    def _whole_budget(self, method: Method) -> bool:
        return self.whole_budget and method.whole_budget

    def _exact(self, method: Method) -> bool:
        return self.exact or bool(getattr(method, "exact", False))

    def _tables(self, n_targets: int = 3, **kind: Any) -> tuple[Scores, Scores]:
        """Return sources and targets of one simulated table; targets have no missing cell."""
        if self.needs_probabilities and not kind.get("options"):
            kind["options"] = 4
        n_sources = kind.pop("n_models", 14)
        kind = {"n_models": n_sources + n_targets, "n_items": 40, **kind}
        rows = np.arange(n_sources + n_targets)
        whole = _simulated(**{**kind, "missing": 0.0}).take(models=rows[n_sources:])
        return _simulated(**kind).take(models=rows[:n_sources]), whole

    def _play(self, method: Method, *tables_and_budget: Any, **how: Any) -> Played:
        return play(method, *tables_and_budget, whole_budget=self._whole_budget(method), **how)

    def _predicts(self, method: Method, sources: Scores, targets: Scores, budget: int) -> None:
        """Predict the targets, or estimate them with intervals, and check each estimate."""
        if not self.estimates:
            self._play(method, sources, targets, budget, tasks=True)
            return
        evaluation = Evaluation(sources, method, budget, targets.model_ids)
        check_estimates(evaluation, targets, answer_all(evaluation, targets))


def like(
    table: Scores, values: FloatArray, options: FloatArray | None, names: list[str] | None = None
) -> Scores:
    """Return models with these scores and option probabilities on a table's items."""
    names = names or [f"new-{row:03}" for row in range(len(values))]
    models = pd.DataFrame(index=pd.Index(names, dtype=object))
    probabilities = None if options is None else OptionProbabilities(options)
    return replace(table, values=values, models=models, probabilities=probabilities)


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Return the mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def answer_all(evaluation: Evaluation, targets: Scores) -> dict[str, list[str]]:
    """Answer all that an evaluation asks; return what it asked."""
    asked: dict[str, list[str]] = {name: [] for name in evaluation.targets}
    for _ in range(len(asked) * targets.n_items + 1):
        wanted = evaluation.ask()
        if not wanted:
            return asked
        for name, items in wanted.items():
            asked[name].extend(items)
        evaluation.tell_table(targets)
    raise AssertionError("the method never stops asking")


def check_estimates(evaluation: Evaluation, targets: Scores, asked: dict[str, list[str]]) -> None:
    """Check that each estimate is within its interval, and the interval within bounds."""
    sources = evaluation.scores
    for row, (name, estimate) in enumerate(evaluation.estimate(warn=False).items()):
        items = sources.positions(asked[name])
        low, high = known_bounds(sources.item_weights, items, targets.values[row, items])
        ends = estimate.interval
        assert low - CLOSE <= ends.low <= estimate.score <= ends.high <= high + CLOSE
        assert ends.low >= 0.0
        assert ends.high <= 1.0
        assert list(estimate.tasks) == sources.tasks
        assert all(0.0 <= score <= 1.0 for score in estimate.tasks.values())
        assert estimate.items_run == len(items)


def all_options(scores: Scores) -> FloatArray:
    """Return the option probabilities of all cells."""
    if scores.probabilities is None:
        raise AssertionError("the table has no option probabilities")
    return scores.probabilities.of_items(np.arange(scores.n_items))
