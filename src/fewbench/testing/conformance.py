"""A pytest class of promises that every method must keep, your own methods too.

A subclass supplies one fixture, the method:

    class TestMyMethod(MethodConformance):
        @pytest.fixture
        def method(self):
            return MyMethod()

`play` checks the protocol of asking and telling at every step, so each test checks it too.

What a pass shows, on small simulated tables:

- The method asks for the budget, no more and no less, and repeats itself under one seed, on any
  number of threads, beside other sessions.
- Estimates follow the answers. Nearly every answer counts, better targets get higher estimates,
  and the mean error has no sign. With every item run, the estimates are near the full scores
  before fewbench cuts them to what the answers allow.
- Nothing else changes the estimates: hidden answers, other targets, the order of targets, of
  telling, of source models and of items, the scale.
- Missing cells, constant scores, duplicate models and tables of a few models or items work, or
  are refused by a `MethodError`.

What a pass does not show:

- That the method is better than random sampling. `fewbench compare` measures that on your data.
- That estimates hold for targets unlike the source models. Here, targets are drawn like them.
- Small faults. Bias, the order of models and the order of items are judged by means over a few
  tables: a bias below about two percentage points passes.
- That the code cannot read files or other processes. Reading hidden answers is found where it
  changes an estimate or a choice of items in these tests.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

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
N_TABLES = 6
"""Tables over which a bias is averaged. Of a method without bias, fewer than 1 in 100 means lies
beyond the tolerance: two percentage points and three standard errors, five degrees of freedom."""


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
    exact : bool
        With every item run, the method's own estimate is the full score, before fewbench cuts it
        to what the answers allow. Regressions over models are not exact; means are.
    """

    needs_probabilities: ClassVar[bool] = False
    supports_missing: ClassVar[bool] = True
    whole_budget: ClassVar[bool] = True
    exact: bool = False

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

    def test_threads_change_nothing(self, method: Method) -> None:
        """One thread and two ask and predict the same, and so do one processor and two."""
        sources, targets = self._tables()
        played = []
        for n in (1, 2):
            with _processors(n):
                played.append(self._play(method, sources, targets, 8, tasks=True))
        _assert_same(*played)

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
        last_first = self._play(method, sources, targets, 8, tasks=True, one_by_one=True)
        _assert_same(forth, last_first)

    def test_order_of_models_and_items_does_not_matter(self, method: Method) -> None:
        """Weak source models first or strong ones, easy items first or hard ones: the same mean.

        Draws and folds may fall on other models or items, so single estimates may change. The
        mean over targets and tables may not, beyond five percentage points and four standard
        errors.
        """
        said = []
        for seed in range(5):
            # With option probabilities, for the nearest of equally near models may be the first.
            sources, targets = self._tables(n_models=10, n_items=20, options=4, seed=seed)
            strong = np.argsort(-sources.full_scores(), kind="stable")
            easy = np.argsort(-sources.filled.mean(axis=0), kind="stable")
            orders = (strong, easy), (strong[::-1], easy), (strong, easy[::-1])
            plays = [
                self._play(
                    method,
                    sources.take(models=models, items=items),
                    targets.take(items=items),
                    7,
                    seed,
                )
                for models, items in orders
            ]
            said.append([played.prediction.scores.mean() for played in plays])
        first, models, items = np.array(said).T
        for what, changes in (("source models", first - models), ("items", first - items)):
            mean, error = _mean_and_error(changes)
            assert abs(mean) <= 0.05 + 4.0 * error, (
                f"estimates change by {mean:+.3f} with the order of the {what}"
            )

    def test_one_target_alone_gets_what_it_gets_among_others(self, method: Method) -> None:
        """A target's estimate is its own matter, unless the method learns from targets together."""
        if not method.targets_apart:
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

    def test_hidden_answers_do_not_matter(self, method: Method) -> None:
        """Nothing is known of a target but what was told.

        The same answers to the items that are asked, and other answers to all other items, give
        the same estimates. So do targets whose answers were all seen before, as source models.
        """
        items, before = self._replay_hidden(method)
        for what, (again, after) in {
            "hidden answers change": self._replay_hidden(method, kept=items),
            "what targets answered as source models changes": self._replay_hidden(
                method, seen=True
            ),
        }.items():
            same = [a.tolist() for a in items] == [a.tolist() for a in again]
            assert same, f"{what} the items that are asked"
            assert np.array_equal(before, after), f"{what} the estimates"

    @pytest.mark.parametrize("scale", [Scale(0, 100), Scale(-2, 2, lower_is_better=True)])
    def test_scale_changes_nothing_inside(self, method: Method, scale: Scale) -> None:
        """Predictions are in [0, 1], 1 being best, whatever the user's scale."""
        sources, targets = self._tables()
        plain = self._play(method, sources, targets, 8)
        scaled = self._play(method, replace(sources, scale=scale), targets, 8)
        _assert_same(plain, scaled, exactly=True)

    # -- what it remembers ---------------------------------------------------------------------

    def test_goes_on_from_the_record_of_another_session(self, method: Method) -> None:
        """A session asks and predicts from its record alone, at every step."""
        sources, targets = self._tables()
        names = targets.model_ids
        first = method.start(sources, 8, 0, names)
        wanted: dict[str, IntArray] = {"": np.arange(0)}
        while wanted:
            other = method.start(sources, 8, 0, names)
            other.record = deepcopy(first.record)  # as it was before the next choice
            wanted, again = first.ask(), other.ask()
            assert list(again) == list(wanted), "another session asks other targets"
            for name, items in wanted.items():
                assert np.array_equal(items, again[name]), "another session asks other items"
                if len(items):
                    first.tell(name, _answers(targets, names.index(name), items))
        np.testing.assert_allclose(
            other.predict(names).scores,
            first.predict(names).scores,
            atol=CLOSE,
            rtol=0,
            err_msg="another session predicts other scores",
        )

    def test_predicts_from_a_part_of_the_answers(self, method: Method) -> None:
        """`predict` works after the first answers, and changes nothing that is asked."""
        sources, targets = self._tables()
        names = targets.model_ids
        session = method.start(sources, 8, 0, names)
        for name, items in session.ask().items():
            part = items[: max(1, len(items) // 2)]
            session.tell(name, _answers(targets, names.index(name), part))
        before = {name: items.tolist() for name, items in session.ask().items()}
        said = session.predict(names, tasks=True)
        assert said.scores.shape == (len(names),)
        assert np.isfinite(said.scores).all(), "a score from a part of the answers is not finite"
        assert (np.abs(said.scores - 0.5) <= 1.0).all(), "a score is far outside of [0, 1]"
        assert said.tasks is not None
        assert np.isfinite(said.tasks).all()
        after = {name: items.tolist() for name, items in session.ask().items()}
        assert before == after, "predicting changes what is asked"

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

    def test_every_answer_counts(self, method: Method) -> None:
        """Changing one answer of eight targets changes an estimate, for most items asked.

        For at least three quarters of them: a tree may not use an item, and the nearest source
        model may stay the nearest. A target that is right wherever any source model is must get
        a higher estimate than one that is wrong wherever any is.
        """
        sources, targets = self._tables(n_targets=8)
        filled = sources.filled
        best, worst = filled.argmax(axis=0), filled.argmin(axis=0)  # rows of source models
        columns = np.arange(sources.n_items)
        varied = filled[best, columns] > filled[worst, columns]
        before = self._play(method, sources, targets, 8)
        asked = [before.asked[name] for name in targets.model_ids]  # not as many of each, perhaps
        cells = [(row, at, k) for row, ks in enumerate(asked) for at, k in enumerate(ks)]
        rows, places, items = np.array([cell for cell in cells if varied[cell[2]]]).T
        # An answer is exchanged for that of a source model, with its option probabilities.
        right = targets.values[rows, items] >= filled[[best[items], worst[items]], items].mean(0)
        donor = np.where(right, worst[items], best[items])
        values, at = targets.values[rows], np.arange(len(rows))
        values[at, items] = filled[donor, items]
        values = np.vstack([values, filled[best, columns], filled[worst, columns]])
        options = None
        if sources.probabilities is not None:
            of_sources, options = _all_options(sources), _all_options(targets)[rows]
            options[at, items] = of_sources[donor, items]
            ends = np.stack([of_sources[best, columns], of_sources[worst, columns]])
            options = np.concatenate([options, ends])
        changed = _like(targets, values, options)
        after = self._play(method, sources, changed, 8).prediction.scores
        moved = np.abs(after[:-2] - before.prediction.scores[rows]) > CLOSE
        share = np.mean([moved[places == place].any() for place in np.unique(places)])
        assert share >= 0.75, f"{1 - share:.0%} of the answers change no estimate"
        assert after[-2] > after[-1] + 0.05, (
            f"all right is estimated at {after[-2]:.3f}, all wrong at {after[-1]:.3f}"
        )

    def test_estimates_follow_the_truth(self, method: Method) -> None:
        """Half of the items tell who is better and by how much, better than a tenth of them.

        See `_assert_follows`. As good as a tenth of the items is an error at most 0.02 larger.
        """
        few, many, truth, past = [], [], [], []
        for seed in range(N_TABLES):
            sources, targets = self._tables(n_models=30, n_targets=12, n_items=60, seed=seed)
            many.append(self._play(method, sources, targets, 30, seed).prediction.scores)
            truth.append(targets.full_scores())
            past.append(sources.full_scores().mean())
            if seed < N_TABLES / 2:
                few.append(self._play(method, sources, targets, 6, seed).prediction.scores)
        _assert_follows(np.array(many), np.array(truth), np.array(past))
        error, of_few = (
            np.abs(np.subtract(one[: len(few)], truth[: len(few)])).mean() for one in (many, few)
        )
        assert error <= of_few + 0.02, f"the error rises from {of_few:.3f} to {error:.3f}"

    def test_all_items_give_the_full_score(self, method: Method) -> None:
        """With every item run, estimates follow the full scores before they are cut to them.

        Of an `exact` method they are the full scores.
        """
        if not self._whole_budget(method):
            pytest.skip("the method may stop before the budget is spent")
        exact = self._exact(method)
        said, truth, past = [], [], []
        for seed in range(2 if exact else N_TABLES):
            average: Any = "macro" if exact and seed else "micro"
            sources, targets = self._tables(n_models=16, n_targets=5, n_items=20, seed=seed)
            sources, targets = sources.averaged(average), targets.averaged(average)
            said.append(self._play(method, sources, targets, 20, seed).prediction.scores)
            truth.append(targets.full_scores())
            past.append(sources.full_scores().mean())
        if exact:
            np.testing.assert_allclose(said, truth, atol=CLOSE, rtol=0)
        else:
            _assert_follows(np.array(said), np.array(truth), np.array(past))

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
        one_by_one: bool = False,
    ) -> Played:
        return play(
            method,
            sources,
            targets,
            budget,
            seed,
            whole_budget=self._whole_budget(method),
            tasks=tasks,
            one_by_one=one_by_one,
        )

    def _replay_hidden(
        self, method: Method, kept: list[IntArray] | None = None, *, seen: bool = False
    ) -> tuple[list[IntArray], FloatArray]:
        """Return what three targets are asked, and their estimates; no table outlives the call.

        Parameters
        ----------
        kept : list of ndarray, optional
            Items of each target that keep their answers; all other answers are changed.
        seen : bool
            Run the method first on a table in which the targets are source models.
        """
        whole = simulate(17, 40, options=4)
        values, options = whole.values.copy(), _all_options(whole)
        for row, items in enumerate(kept or [], start=14):
            others = np.setdiff1d(np.arange(40), items)
            values[row, others] = 1.0 - values[row, others]
            n_options = whole.items["n_options"].to_numpy()[others, None]
            shifted = np.arange(options.shape[2]) + 1
            shifted = np.where(shifted <= n_options, shifted % n_options, shifted - 1)
            options[row, others] = np.take_along_axis(options[row, others], shifted, axis=1)
        # Names that no other test uses, and one table of all: its parts may lead to the whole.
        names = [*whole.model_ids[:14], "hidden-a", "hidden-b", "hidden-c"]
        whole = _like(whole, values, options, names)
        if seen:
            other = _like(whole, values[:1], options[:1])
            self._play(method, whole, other, 8)
        sources, targets = whole.take(models=range(14)), whole.take(models=range(14, 17))
        said = replay(method, sources, targets, 8, 0)
        return said.items, said.scores

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


@contextmanager
def _processors(n: int) -> Iterator[None]:
    """Let numerical libraries use n threads, and the machine seem to have n processors."""
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(n):
        patch.setattr(os, "cpu_count", lambda: n)
        for name in ("process_cpu_count", "sched_getaffinity"):  # not on every platform
            found: Any = set(range(n)) if name == "sched_getaffinity" else n
            patch.setattr(os, name, lambda *_, found=found: found, raising=False)
        patch.setenv("OMP_NUM_THREADS", str(n))
        yield


def _like(
    table: Scores, values: FloatArray, options: FloatArray | None, names: list[str] | None = None
) -> Scores:
    """Return models with these scores and option probabilities on the items of a table."""
    names = names or [f"new-{row:03}" for row in range(len(values))]
    models = pd.DataFrame(index=pd.Index(names, dtype=object))
    probabilities = None if options is None else OptionProbabilities(options)
    return replace(table, values=values, models=models, probabilities=probabilities)


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Return the mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _assert_follows(said: FloatArray, truth: FloatArray, past: FloatArray) -> None:
    """Check estimates of targets that are drawn like the source models, (tables, targets).

    Within tables, estimates and full scores correlate at 0.4 or more, and a better target gets at
    least a tenth of what it is better by. The error is at most one and a half times that of the
    source models' mean `past`, (tables,). Signed errors have no mean: targets of one table err
    together, so that a table counts as one.
    """
    above, better = (one - one.mean(axis=1, keepdims=True) for one in (said, truth))
    both = (above * better).sum()
    correlation = both / np.sqrt((above**2).sum() * (better**2).sum() + 1e-30)
    assert correlation >= 0.4, f"estimates and full scores correlate at {correlation:.2f}"
    slope = both / (better**2).sum()
    assert slope >= 0.1, f"of what a target is better by, its estimate has {slope:.0%}"
    error, of_mean = np.abs(said - truth).mean(), np.abs(past[:, None] - truth).mean()
    assert error <= 1.5 * of_mean, f"the error {error:.3f} is far above {of_mean:.3f} of a constant"
    bias, error = _mean_and_error((said - truth).mean(axis=1))
    assert abs(bias) <= 0.02 + 3.0 * error, f"estimates are off by {bias:+.3f} on average"


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
