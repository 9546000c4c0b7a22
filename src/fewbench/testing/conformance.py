"""What every method must keep, as a pytest class that a method of your own runs through too.

A subclass supplies one fixture, the method:

    class TestMyMethod(MethodConformance):
        @pytest.fixture
        def method(self):
            return MyMethod()

`play` checks the protocol of asking and telling at every step, so each test here checks it too.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from fewbench.errors import MethodError
from fewbench.evaluation import Estimate, Evaluation
from fewbench.evaluation.bounds import known_bounds
from fewbench.evaluation.replay import replay
from fewbench.methods import Answers, Method, Prediction
from fewbench.scores import OptionProbabilities, Scale, Scores
from fewbench.testing.simulation import simulate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
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
) -> Played:
    """Run a session to its end, checking at every step that it keeps the protocol.

    Parameters
    ----------
    sources, targets : Scores
        Of the same items; the method gets only the answers that it asks for.
    whole_budget : bool
        Whether every target must be asked exactly `budget` items, or at most as many.
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
        for name, items in wanted.items():
            assert name in asked, f"{name!r} is not a target"
            assert np.array_equal(items, again[name]), "asking again returns other items"
            assert np.issubdtype(items.dtype, np.integer), "items are asked by position"
            assert len(items), f"nothing is asked of {name!r}; leave it out"
            assert items.min() >= 0, "a position is negative"
            assert items.max() < sources.n_items, "a position is beyond the last item"
            session.tell(name, _answers(targets, names.index(name), items))
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


class MethodConformance:
    """The promises of a method, each a test; see the module's docstring for how to use it.

    Attributes
    ----------
    needs_probabilities : bool
        The method works on option probabilities only: every table has them.
    supports_missing : bool
        Sources may have missing cells.
    whole_budget : bool
        Every target is asked exactly as many items as the budget allows; a method that says
        otherwise by its own `whole_budget` is believed.
    """

    needs_probabilities: ClassVar[bool] = False
    supports_missing: ClassVar[bool] = True
    whole_budget: ClassVar[bool] = True

    @pytest.fixture
    def method(self) -> Method:
        """Return the method under test."""
        raise NotImplementedError("supply a fixture named `method`")

    # -- what a method asks --------------------------------------------------------------------

    @pytest.mark.parametrize("budget", [1, 7, 40])
    def test_asks_distinct_items_as_many_as_the_budget(self, method: Method, budget: int) -> None:
        """Every target is asked `budget` distinct items of the benchmark; `play` checks it."""
        self._play(method, *self._tables(), budget)

    def test_same_seed_same_answer(self, method: Method) -> None:
        """Two sessions of one seed ask and predict the same, whatever numpy's global state."""
        sources, targets = self._tables()
        before = str(np.random.get_state(legacy=False))  # noqa: NPY002 - it must stay untouched
        one = self._play(method, sources, targets, 8, seed=5, tasks=True)
        after = str(np.random.get_state(legacy=False))  # noqa: NPY002
        assert before == after, "numpy's global generator was used"
        two = self._play(method, sources, targets, 8, seed=5, tasks=True)
        _assert_same(one, two, exactly=True)

    def test_sessions_do_not_disturb_each_other(self, method: Method) -> None:
        """Sessions of one method side by side ask and predict as each would alone."""
        sources, targets = self._tables()
        name, others = targets.model_ids[0], targets.model_ids[1:]
        alone = self._play(method, sources, targets.take(models=[0]), 6)
        one = method.start(sources, 6, 0, [name])
        two = method.start(sources, 6, 1, others)
        asked: list[int] = []
        while wanted := one.ask():
            asked.extend(wanted[name].tolist())
            for other, items in two.ask().items():
                two.tell(other, _answers(targets, targets.model_ids.index(other), items))
            one.tell(name, _answers(targets, 0, wanted[name]))
        assert asked == alone.asked[name].tolist()
        np.testing.assert_allclose(
            one.predict([name]).scores, alone.prediction.scores, atol=CLOSE, rtol=0
        )

    def test_sources_are_left_alone(self, method: Method) -> None:
        """The sources are the same after a session as before."""
        sources, targets = self._tables(options=3)
        fingerprint = sources.fingerprint
        self._play(method, sources, targets, 8, tasks=True)
        assert replace(sources).fingerprint == fingerprint

    # -- what it may depend on -----------------------------------------------------------------

    def test_order_of_targets_does_not_matter(self, method: Method) -> None:
        """Targets named and told in another order get the same."""
        sources, targets = self._tables()
        order = np.arange(targets.n_models)[::-1]
        forth = self._play(method, sources, targets, 8, tasks=True)
        back = self._play(method, sources, targets.take(models=order), 8, tasks=True)
        _assert_same(forth, _reordered(back, order))

    def test_one_target_alone_gets_what_it_gets_among_others(self, method: Method) -> None:
        """A target's estimate is its own matter, unless the method learns from targets together."""
        if not getattr(method, "targets_apart", True):
            pytest.skip("the method learns from its targets together")
        sources, targets = self._tables()
        together = self._play(method, sources, targets, 8)
        for row in (0, targets.n_models - 1):
            alone = self._play(method, sources, targets.take(models=[row]), 8)
            name = targets.model_ids[row]
            assert np.array_equal(alone.asked[name], together.asked[name])
            np.testing.assert_allclose(
                alone.prediction.scores, together.prediction.scores[[row]], atol=CLOSE, rtol=0
            )

    def test_predicts_the_targets_that_are_named_in_that_order(self, method: Method) -> None:
        """`predict` returns one row for each name given; tasks are extra, and change no score."""
        sources, targets = self._tables()
        names = targets.model_ids
        session = method.start(sources, 8, 0, names)
        while wanted := session.ask():
            for name, items in wanted.items():
                session.tell(name, _answers(targets, names.index(name), items))
        full = session.predict(names, tasks=True).scores
        some = session.predict([names[2], names[0]], tasks=False).scores
        np.testing.assert_allclose(some, full[[2, 0]], atol=CLOSE, rtol=0)

    def test_answers_to_other_items_do_not_matter(self, method: Method) -> None:
        """Changing every answer of the targets to items that were not asked changes nothing."""
        sources, targets = self._tables(options=4)
        before = replay(method, sources, targets, 8, 0)
        values = 1.0 - targets.values
        options = _all_options(targets)[:, :, ::-1].copy()
        for row, items in enumerate(before.items):
            values[row, items] = targets.values[row, items]
            options[row, items] = _all_options(targets)[row, items]
        changed = replace(targets, values=values, probabilities=OptionProbabilities(options))
        after = replay(method, sources, changed, 8, 0)
        assert [a.tolist() for a in before.items] == [a.tolist() for a in after.items]
        assert np.array_equal(before.scores, after.scores)

    @pytest.mark.parametrize("scale", [Scale(0, 100), Scale(-2, 2, lower_is_better=True)])
    def test_scale_changes_nothing_inside(self, method: Method, scale: Scale) -> None:
        """Predictions are in [0, 1], 1 being best, whatever the user's scale."""
        sources, targets = self._tables()
        plain = self._play(method, sources, targets, 8)
        scaled = self._play(method, replace(sources, scale=scale), targets, 8)
        _assert_same(plain, scaled, exactly=True)

    # -- tables of every kind ------------------------------------------------------------------

    def test_missing_cells_in_sources(self, method: Method) -> None:
        """Sources need not have run every item, with option probabilities or without."""
        if not self.supports_missing:
            pytest.skip("the method needs whole sources")
        for options in (None, 3):
            targets = self._tables(options=options, n_models=16)[1]
            sources = self._tables(options=options, n_models=16, missing=0.2)[0]
            assert sources.has_missing
            assert not targets.has_missing
            self._estimates(method, sources, targets, 8)

    @pytest.mark.parametrize(
        "shape",
        [
            {"n_models": 8, "n_items": 150},
            {"n_models": 40, "n_items": 12, "n_tasks": 1},
            {"continuous": True},
            {"options": 2},
            {"options": 5},
            {"n_items": 24, "n_tasks": 24},
        ],
        ids=["wide", "tall", "continuous", "two options", "unequal options", "an item a task"],
    )
    def test_tables_of_every_shape(self, method: Method, shape: dict[str, Any]) -> None:
        """Many items, few items, continuous scores, option probabilities, many tasks."""
        sources, targets = self._tables(**shape)
        said = [self._play(method, sources, targets, 9, tasks=True).prediction.scores]
        truth = targets.full_scores()
        if np.abs(said[0] - truth).mean() >= 0.3:  # nine items of one or two tasks, say
            said = [replay(method, sources, targets, 9, seed).scores for seed in range(10)]
        assert np.abs(said - truth).mean() < 0.3, "the estimates have nothing to do with the truth"

    @pytest.mark.parametrize("constant", ["items", "sources", "everything", "targets"])
    def test_constant_answers(self, method: Method, constant: str) -> None:
        """Items that all or none get right, and models that get all or none right."""
        sources, targets = self._tables()
        values, answers = sources.values.copy(), targets.values.copy()
        if constant == "items":
            values[:, ::2], values[:, 1::4] = 1.0, 0.0
        elif constant == "sources":
            values[::2], values[1::4] = 1.0, 0.0
        elif constant == "everything":
            values[:] = 1.0
        else:
            answers[:] = [[0.0], [1.0], [1.0]]
        sources, targets = replace(sources, values=values), replace(targets, values=answers)
        self._play(method, sources, targets, 6, tasks=True)

    def test_twins_among_the_sources(self, method: Method) -> None:
        """Real leaderboards hold the same model several times."""
        sources, targets = self._tables(n_models=15)
        twins = np.repeat(np.arange(5), 3)
        values = sources.values[twins]
        options = None
        if sources.probabilities is not None:
            options = OptionProbabilities(_all_options(sources)[twins])
        same = replace(sources, values=values, probabilities=options)
        self._play(method, same, targets, 8, tasks=True)

    @pytest.mark.parametrize("n_sources", [1, 2, 3])
    def test_few_sources(self, method: Method, n_sources: int) -> None:
        """A handful of sources gives an estimate, or an error of ours that says so."""
        sources, targets = self._tables(n_models=n_sources)
        with suppress(MethodError):
            self._estimates(method, sources, targets, 8)

    @pytest.mark.parametrize("n_items", [1, 2])
    def test_few_items(self, method: Method, n_items: int) -> None:
        """A benchmark of one item, or two, gives an estimate, or an error of ours."""
        sources, targets = self._tables(n_items=n_items, n_tasks=2)
        for budget in range(1, n_items + 1):
            with suppress(MethodError):
                self._play(method, sources, targets, budget, tasks=True)

    # -- how good it is ------------------------------------------------------------------------

    @pytest.mark.parametrize("average", ["micro", "macro"])
    def test_all_items_give_the_full_score(self, method: Method, average: Any) -> None:
        """With a budget of all items score and task scores are exact, and the interval too."""
        sources, targets = self._tables(n_models=12, n_items=25)
        sources, targets = sources.averaged(average), targets.averaged(average)
        if not self._whole_budget(method):
            pytest.skip("the method may stop before the budget is spent")
        estimates = self._estimates(method, sources, targets, 25)
        truth = zip(targets.full_scores(), targets.task_scores(), strict=True)
        for estimate, (score, tasks) in zip(estimates.values(), truth, strict=True):
            np.testing.assert_allclose(estimate.score, score, atol=CLOSE, rtol=0)
            np.testing.assert_allclose(list(estimate.tasks.values()), tasks, atol=CLOSE, rtol=0)
            np.testing.assert_allclose(
                [estimate.interval.low, estimate.interval.high], score, atol=CLOSE, rtol=0
            )

    def test_estimates_the_average_that_is_asked_for(self, method: Method) -> None:
        """Where tasks differ, the macro average is estimated as such and not as the micro one."""
        sources, targets = self._tables(n_models=30, n_targets=8, n_items=60)
        easy = sources.task_of == 2  # half of all items
        values, answers = sources.values.copy(), targets.values.copy()
        values[:, easy], answers[:, easy] = 1.0, 1.0
        sources = replace(sources, values=values, average="macro")
        targets = replace(targets, values=answers, average="macro")
        # One draw says little of few items, or of few tasks: what fails by one is judged by ten.
        for seeds in (1, 10):
            said = np.array(
                [replay(method, sources, targets, 30, seed).scores for seed in range(seeds)]
            )
            macro = np.abs(said - targets.full_scores()).mean()
            micro = np.abs(said - targets.averaged("micro").full_scores()).mean()
            if macro < micro:
                break
        assert macro < micro, f"error {macro:.3f} from the macro average, {micro:.3f} from micro"

    def test_more_items_do_not_hurt(self, method: Method) -> None:
        """On average over seeds and targets half of the items are as good as a tenth, or better.

        As good means a mean absolute error that is at most 0.02 larger.
        """
        few, many = [], []
        for seed in range(3):
            sources, targets = self._tables(n_models=30, n_targets=10, n_items=80, seed=seed)
            truth = targets.full_scores()
            few.append(np.abs(replay(method, sources, targets, 8, seed).scores - truth).mean())
            many.append(np.abs(replay(method, sources, targets, 40, seed).scores - truth).mean())
        assert np.mean(many) <= np.mean(few) + 0.02

    # -- in an evaluation ----------------------------------------------------------------------

    def test_answers_in_parts_and_an_evaluation_resumed(
        self, method: Method, tmp_path: Path
    ) -> None:
        """Stopped in the middle of a target's answers and opened again: the same estimates."""
        sources, targets = self._tables()
        names = targets.model_ids
        whole = self._estimates(method, sources, targets, 8)
        begun = Evaluation(sources, method, 8, names)
        begun.save(tmp_path)
        asked = begun.ask()[names[0]]
        first = targets.positions(asked[: len(asked) // 2])
        if len(first):  # a method that asks one item at a time is stopped between two
            begun.tell_table(targets.take(models=[0], items=first), names[0])
        resumed = Evaluation.open(tmp_path, sources, method)
        assert resumed.ask()[names[0]] == asked[len(asked) // 2 :]
        assert resumed.ask() == begun.ask()
        _answer(resumed, targets)
        again = resumed.estimate()
        for name in names:
            np.testing.assert_allclose(
                _numbers(again[name]), _numbers(whole[name]), atol=CLOSE, rtol=0
            )

    def test_says_what_it_is(self, method: Method) -> None:
        """The description is one line of text."""
        text = method.describe()
        assert text.strip()
        assert "\n" not in text

    # -- helpers -------------------------------------------------------------------------------

    def _whole_budget(self, method: Method) -> bool:
        return self.whole_budget and bool(getattr(method, "whole_budget", True))

    def _tables(self, n_targets: int = 3, **kind: Any) -> tuple[Scores, Scores]:
        """Return sources and targets of one simulated table; targets have no missing cell."""
        if self.needs_probabilities and not kind.get("options"):
            kind["options"] = 4
        n_sources = kind.pop("n_models", 14)
        kind = {"n_models": n_sources + n_targets, "n_items": 40, **kind}
        rows = np.arange(n_sources + n_targets)
        whole = simulate(**{**kind, "missing": 0.0}).take(models=rows[n_sources:])
        return simulate(**kind).take(models=rows[:n_sources]), whole

    def _play(
        self,
        method: Method,
        sources: Scores,
        targets: Scores,
        budget: int,
        seed: int = 0,
        *,
        tasks: bool = False,
    ) -> Played:
        return play(
            method,
            sources,
            targets,
            budget,
            seed,
            whole_budget=self._whole_budget(method),
            tasks=tasks,
        )

    def _estimates(
        self, method: Method, sources: Scores, targets: Scores, budget: int
    ) -> dict[str, Estimate]:
        """Estimate the targets, and check what holds of every estimate."""
        evaluation = Evaluation(sources, method, budget, targets.model_ids)
        asked = _answer(evaluation, targets)
        estimates = evaluation.estimate()
        for row, (name, estimate) in enumerate(estimates.items()):
            items = sources.positions(asked[name])
            low, high = known_bounds(sources.item_weights, items, targets.values[row, items])
            ends = estimate.interval
            assert low - CLOSE <= ends.low <= estimate.score <= ends.high <= high + CLOSE
            assert ends.low >= 0.0
            assert ends.high <= 1.0
            assert list(estimate.tasks) == sources.tasks
            assert all(0.0 <= score <= 1.0 for score in estimate.tasks.values())
            assert estimate.items_run == len(items)
        return estimates


def _answers(targets: Scores, row: int, items: IntArray) -> Answers:
    """Look up the answers of one target to the items asked of it, and no others."""
    options = None
    if targets.probabilities is not None:
        options = targets.probabilities.take(np.array([row])).of_items(items)
    return Answers(items, targets.values[row, items][None], options)


def _answer(evaluation: Evaluation, targets: Scores) -> dict[str, list[str]]:
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


def _assert_same(one: Played, two: Played, *, exactly: bool = False) -> None:
    tolerance = 0.0 if exactly else CLOSE
    assert set(one.asked) == set(two.asked)
    for name, items in one.asked.items():
        assert np.array_equal(items, two.asked[name]), f"{name!r} is asked other items"
    np.testing.assert_allclose(one.prediction.scores, two.prediction.scores, atol=tolerance, rtol=0)
    if one.prediction.tasks is not None and two.prediction.tasks is not None:
        np.testing.assert_allclose(
            one.prediction.tasks, two.prediction.tasks, atol=tolerance, rtol=0
        )


def _reordered(played: Played, order: IntArray) -> Played:
    scores, tasks = played.prediction.scores, played.prediction.tasks
    return Played(played.asked, Prediction(scores[order], None if tasks is None else tasks[order]))


def _numbers(estimate: Estimate) -> Sequence[float]:
    ends = estimate.interval
    return [estimate.score, ends.low, ends.high, *estimate.tasks.values()]


def _all_options(scores: Scores) -> FloatArray:
    if scores.probabilities is None:
        raise AssertionError("the table has no option probabilities")
    return scores.probabilities.of_items(np.arange(scores.n_items))
