"""What estimates may depend on: the answers of the target, and no more."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench._types import FloatArray, IntArray
from fewbench.evaluation.replay import replay
from fewbench.methods import Method
from fewbench.scores import Scale
from fewbench.testing.playing import CLOSE, answers_of, assert_same
from fewbench.testing.promises.base import Promises, all_options, like, mean_and_error
from fewbench.testing.simulation import simulate


class Dependence(Promises):
    """Estimates follow from the target's answers and the sources, and from nothing else."""

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
            mean, error = mean_and_error(changes)
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
                session.tell(name, answers_of(targets, names.index(name), items))
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

    def test_scale_changes_nothing_inside(self, method: Method) -> None:
        """Predictions are in [0, 1], 1 being best, whatever the user's scale."""
        sources, targets = self._tables()
        plain = self._play(method, sources, targets, 8)
        for scale in (Scale(0, 100), Scale(-2, 2, lower_is_better=True)):
            scaled = self._play(method, replace(sources, scale=scale), targets, 8)
            assert_same(plain, scaled, exactly=True)

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
        values, options = whole.values.copy(), all_options(whole)
        for row, items in enumerate(kept or [], start=14):
            others = np.setdiff1d(np.arange(40), items)
            values[row, others] = 1.0 - values[row, others]
            n_options = whole.items["n_options"].to_numpy()[others, None]
            shifted = np.arange(options.shape[2]) + 1
            shifted = np.where(shifted <= n_options, shifted % n_options, shifted - 1)
            options[row, others] = np.take_along_axis(options[row, others], shifted, axis=1)
        # Names that no other test uses, and one table of all: its parts may lead to the whole.
        names = [*whole.model_ids[:14], "hidden-a", "hidden-b", "hidden-c"]
        whole = like(whole, values, options, names)
        if seen:
            other = like(whole, values[:1], options[:1])
            self._play(method, whole, other, 8)
        sources, targets = whole.take(models=range(14)), whole.take(models=range(14, 17))
        said = replay(method, sources, targets, 8, 0)
        return said.items, said.scores

    def test_predicts_from_a_part_of_the_answers(self, method: Method) -> None:
        """`predict` works after the first answers, and changes nothing that is asked."""
        sources, targets = self._tables()
        names = targets.model_ids
        session = method.start(sources, 8, 0, names)
        for name, items in session.ask().items():
            part = items[: max(1, len(items) // 2)]
            session.tell(name, answers_of(targets, names.index(name), part))
        before = {name: items.tolist() for name, items in session.ask().items()}
        said = session.predict(names, tasks=True)
        assert said.scores.shape == (len(names),)
        assert np.isfinite(said.scores).all(), "a score from a part of the answers is not finite"
        assert (np.abs(said.scores - 0.5) <= 1.0).all(), "a score is far outside of [0, 1]"
        assert said.tasks is not None
        assert np.isfinite(said.tasks).all()
        after = {name: items.tolist() for name, items in session.ask().items()}
        assert before == after, "predicting changes what is asked"
