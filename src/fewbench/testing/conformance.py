"""A pytest class with the promises that every method must keep, your own methods too.

A subclass supplies one fixture, the method:

    class TestMyMethod(MethodConformance):
        @pytest.fixture
        def method(self):
            return MyMethod()

`play` checks the protocol of asking and telling at every step, so each test checks it too.

What a pass shows, on small simulated tables:

- The method asks exactly the budget, and repeats itself under one seed, with any number of threads
  and with other sessions running.
- Estimates follow the answers. Nearly every answer counts, better targets get higher estimates,
  and the mean error is about 0. With all items run, the estimates are near the full scores before
  fewbench clips them to what the answers allow.
- Items on which models differ are not avoided, and an `informed` method prefers them.
- Nothing else changes the estimates: hidden answers, other targets, the order of targets, answers,
  source models and items, the scale.
- Missing cells, constant scores, duplicate models and tables of a few models or items work, or
  raise a `MethodError`.

What a pass does not show:

- That the method is better than random sampling. `fewbench compare` measures that on your data.
- That estimates hold for targets unlike the source models. Here, targets are drawn like them.
- Small faults. Bias and order effects are judged by means over a few tables: a bias below about
  two percentage points passes.
- That the code cannot read files or other processes. Reading hidden answers is found only if it
  changes an estimate or a choice of items in these tests.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fewbench.errors import MethodError
from fewbench.evaluation import Evaluation
from fewbench.methods import Method
from fewbench.scores import OptionProbabilities
from fewbench.testing.playing import (
    CLOSE,
    Played,
    Promises,
    all_options,
    answer_all,
    answers_of,
    assert_same,
    check_estimates,
    play,
    reordered,
)
from fewbench.testing.quality import Dependence, Quality
from fewbench.uncertainty.replay import replay

__all__ = ["MethodConformance", "Played", "StaticConformance", "play"]


def __dir__() -> list[str]:
    return __all__


class Asking(Promises):
    """A method asks its budget, repeats itself, and changes nothing else."""

    def test_says_what_it_is(self, method: Method) -> None:
        """The description is one line of text."""
        text = method.describe()
        assert text.strip()
        assert "\n" not in text

    @pytest.mark.parametrize("budget", [1, 7, 40])
    def test_asks_distinct_items_as_many_as_the_budget(self, method: Method, budget: int) -> None:
        """Every target gets `budget` distinct items of the benchmark; `play` checks it."""
        self._play(method, *self._tables(), budget)

    def test_same_seed_same_answer(self, method: Method) -> None:
        """Two sessions of one seed ask and predict the same, whatever numpy's global state."""
        sources, targets = self._tables()
        before = str(np.random.get_state(legacy=False))  # noqa: NPY002 - it must stay untouched
        first = self._play(method, sources, targets, 8, seed=5, tasks=True)
        after = str(np.random.get_state(legacy=False))  # noqa: NPY002
        assert before == after, "numpy's global generator was used"
        two = self._play(method, sources, targets, 8, seed=5, tasks=True)
        assert_same(first, two, exactly=True)

    def test_fixed_for_its_sources_it_is_the_same_method(self, method: Method) -> None:
        """`for_sources` changes nothing with these sources, and stays fixed with fewer."""
        sources, targets = self._tables()
        fixed = method.for_sources(sources)
        played = self._play(method, sources, targets, 8)
        assert_same(played, self._play(fixed, sources, targets, 8), exactly=True)
        fewer = sources.take(models=np.arange(sources.n_models - 1))
        assert fixed.for_sources(fewer).describe() == fixed.describe()

    def test_threads_change_nothing(self, method: Method) -> None:
        """One thread and two ask and predict the same, and so do one processor and two."""
        sources, targets = self._tables()
        played = []
        for n in (1, 2):
            with _processors(n):
                played.append(self._play(method, sources, targets, 8, tasks=True))
        assert_same(*played)

    def test_sources_are_left_alone(self, method: Method) -> None:
        """A session does not change the sources."""
        sources, targets = self._tables(options=3)
        fingerprint = sources.fingerprint
        self._play(method, sources, targets, 8, tasks=True)
        assert replace(sources).fingerprint == fingerprint


@contextmanager
def _processors(n: int) -> Iterator[None]:
    """Let numerical libraries use n threads, and the machine seem to have n processors."""
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(n):
        patch.setattr(os, "cpu_count", lambda: n)
        for name in ("process_cpu_count", "sched_getaffinity"):  # not on every platform
            value: Any = set(range(n)) if name == "sched_getaffinity" else n
            patch.setattr(os, name, lambda *_, result=value: result, raising=False)
        patch.setenv("OMP_NUM_THREADS", str(n))
        yield


class Sessions(Promises):
    """Sessions are independent, accept targets in any order, and can be stopped and resumed."""

    def test_sessions_do_not_disturb_each_other(self, method: Method) -> None:
        """Simultaneous sessions of one method ask and predict as each alone."""
        sources, targets = self._tables()
        name, others = targets.model_ids[0], targets.model_ids[1:]
        alone = self._play(method, sources, targets.take(models=[0]), 6)
        session = method.start(sources, 6, 0, [name])
        two = method.start(sources, 6, 1, others)
        asked: list[int] = []
        while wanted := session.ask():
            asked.extend(wanted[name].tolist())
            for other, items in two.ask().items():
                two.tell(other, answers_of(targets, targets.model_ids.index(other), items))
            session.tell(name, answers_of(targets, 0, wanted[name]))
        assert asked == alone.asked[name].tolist()
        np.testing.assert_allclose(
            session.predict([name]).scores, alone.prediction.scores, atol=CLOSE, rtol=0
        )

    def test_order_of_targets_does_not_matter(self, method: Method) -> None:
        """The order in which targets are named and answered does not matter."""
        sources, targets = self._tables()
        order = np.arange(targets.n_models)[::-1]
        forth = self._play(method, sources, targets, 8, tasks=True)
        back = self._play(method, sources, targets.take(models=order), 8, tasks=True)
        assert_same(forth, reordered(back, order))
        last_first = self._play(method, sources, targets, 8, tasks=True, one_by_one=True)
        assert_same(forth, last_first)

    def test_answers_in_parts_and_an_evaluation_resumed(
        self, method: Method, tmp_path: Path
    ) -> None:
        """Stopped in the middle of a target's answers and opened again: the same predictions."""
        sources, targets = self._tables()
        names = targets.model_ids
        whole = self._play(method, sources, targets, 8, tasks=True)
        begun = Evaluation(sources, method, 8, names)
        begun.save(tmp_path)
        asked = begun.ask()[names[0]]
        first = targets.positions(asked[: len(asked) // 2])
        if len(first):  # a method that asks one item at a time is stopped between two
            begun.tell_table(targets.take(models=[0], items=first), names[0])
        resumed = Evaluation.open(tmp_path, sources, method)
        assert resumed.ask()[names[0]] == asked[len(asked) // 2 :]
        assert resumed.ask() == begun.ask()
        run = answer_all(resumed, targets)
        run[names[0]] = asked[: len(first)] + run[names[0]]
        for name in names:
            assert set(run[name]) == set(sources.item_ids[whole.asked[name]])
        again = resumed._choosing.predict(names, tasks=True)
        np.testing.assert_allclose(again.scores, whole.prediction.scores, atol=CLOSE, rtol=0)
        assert again.tasks is not None
        assert whole.prediction.tasks is not None
        np.testing.assert_allclose(again.tasks, whole.prediction.tasks, atol=CLOSE, rtol=0)
        if self.estimates:
            check_estimates(resumed, targets, run)

    def test_goes_on_from_the_record_of_another_session(self, method: Method) -> None:
        """A session asks and predicts from its record alone, at every step."""
        sources, targets = self._tables()
        names = targets.model_ids
        first = method.start(sources, 8, 0, names)
        wanted = {"": np.arange(0)}
        while wanted:
            other = method.start(sources, 8, 0, names)
            other.record = deepcopy(first.record)  # as it was before the next choice
            wanted, again = first.ask(), other.ask()
            assert list(again) == list(wanted), "another session asks other targets"
            for name, items in wanted.items():
                assert np.array_equal(items, again[name]), "another session asks other items"
                if len(items):
                    first.tell(name, answers_of(targets, names.index(name), items))
        np.testing.assert_allclose(
            other.predict(names).scores,
            first.predict(names).scores,
            atol=CLOSE,
            rtol=0,
            err_msg="another session predicts other scores",
        )


class Tables(Promises):
    """Tables of every kind are estimated, or refused by a fewbench error."""

    def test_missing_cells_in_sources(self, method: Method) -> None:
        """Sources need not have run every item, with option probabilities or without."""
        if not self.supports_missing:
            pytest.skip("the method needs whole sources")
        for options in (None, 3):
            targets = self._tables(options=options, n_models=16)[1]
            sources = self._tables(options=options, n_models=16, missing=0.2)[0]
            assert sources.has_missing
            assert not targets.has_missing
            self._predicts(method, sources, targets, 8)

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
        rows = [self._play(method, sources, targets, 9, tasks=True).prediction.scores]
        truth = targets.full_scores()
        if np.abs(rows[0] - truth).mean() >= 0.3:  # nine items of one or two tasks, say
            rows = [replay(method, sources, targets, 9, seed).scores for seed in range(10)]
        assert np.abs(rows - truth).mean() < 0.3, "the estimates have nothing to do with the truth"

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
            options = OptionProbabilities(all_options(sources)[twins])
        same = replace(sources, values=values, probabilities=options)
        self._play(method, same, targets, 8, tasks=True)

    @pytest.mark.parametrize("n_sources", [1, 2, 3])
    def test_few_sources(self, method: Method, n_sources: int) -> None:
        """A few sources give an estimate, or a fewbench error."""
        sources, targets = self._tables(n_models=n_sources)
        with suppress(MethodError):
            self._predicts(method, sources, targets, 8)

    @pytest.mark.parametrize("n_items", [1, 2])
    def test_few_items(self, method: Method, n_items: int) -> None:
        """A benchmark of one or two items gives an estimate, or a fewbench error."""
        sources, targets = self._tables(n_items=n_items, n_tasks=2)
        for budget in range(1, n_items + 1):
            with suppress(MethodError):
                self._play(method, sources, targets, budget, tasks=True)


class StaticConformance(Asking, Dependence, Tables, Quality):
    """The promises of a `StaticMethod`'s parts, a selector and a predictor.

    All parts share one session class, so the promises of sessions are tested on a few of them.
    """


class StaticSettings(Promises):
    """What settings may break of a static method whose own settings keep all promises.

    Budgets too small or large for them, few sources, constant answers, the seed, the estimate.
    """

    test_asks_distinct_items_as_many_as_the_budget = (
        Asking.test_asks_distinct_items_as_many_as_the_budget
    )
    test_same_seed_same_answer = Asking.test_same_seed_same_answer
    test_constant_answers = Tables.test_constant_answers
    test_few_sources = Tables.test_few_sources
    test_estimates_follow_the_truth = Quality.test_estimates_follow_the_truth


class Settings(StaticSettings):
    """The same of a method that adapts, and what it asks follows from its record alone."""

    test_goes_on_from_the_record_of_another_session = (
        Sessions.test_goes_on_from_the_record_of_another_session
    )


class MethodConformance(StaticConformance, Sessions):
    """The promises of a method, one test each; the module's docstring shows how to use them."""
