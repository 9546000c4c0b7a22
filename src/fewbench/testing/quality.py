"""What estimates depend on, and how good they are."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fewbench._types import FloatArray, IntArray
from fewbench.methods import Method
from fewbench.scores import Scale, Scores
from fewbench.testing.playing import (
    CLOSE,
    Promises,
    all_options,
    answers_of,
    assert_same,
    like,
    mean_and_error,
)
from fewbench.testing.simulation import simulate
from fewbench.uncertainty.replay import replay


class Dependence(Promises):
    """Estimates follow only from the target's answers and the sources."""

    def test_order_of_models_and_items_does_not_matter(self, method: Method) -> None:
        """The order of source models, weak or strong first, and of items does not change the mean.

        Draws and folds may fall on other models or items, so single estimates may change. The mean
        over targets and tables may not change by more than five percentage points plus four
        standard errors.
        """
        means = []
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
            means.append([played.prediction.scores.mean() for played in plays])
        first, models, items = np.array(means).T
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
        """A method depends only on the answers that it received.

        Answers to items outside the run change no estimate. Nor does it matter that a target's
        answers were all seen before, as a source model.
        """
        items, before = self._replay_hidden(method)
        for what, (again, after) in {
            "hidden answers change": self._replay_hidden(method, kept=items),
            "what targets answered as source models changes": self._replay_hidden(
                method, seen=True
            ),
        }.items():
            same = [a.tolist() for a in items] == [a.tolist() for a in again]
            assert same, f"{what} the chosen items"
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
        """Return the items and estimates of three targets; no table outlives the call.

        All answers change except those to `kept`, items of each target. `seen` first runs the
        method on a table with the targets as source models.
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
        outcome = replay(method, sources, targets, 8, 0)
        return outcome.items, outcome.scores

    def test_predicts_from_a_part_of_the_answers(self, method: Method) -> None:
        """`predict` works after the first answers, and does not change the next items."""
        sources, targets = self._tables()
        names = targets.model_ids
        session = method.start(sources, 8, 0, names)
        for name, items in session.ask().items():
            part = items[: max(1, len(items) // 2)]
            session.tell(name, answers_of(targets, names.index(name), part))
        before = {name: items.tolist() for name, items in session.ask().items()}
        partial = session.predict(names, tasks=True)
        assert partial.scores.shape == (len(names),)
        assert np.isfinite(partial.scores).all(), "a score from a part of the answers is not finite"
        assert (np.abs(partial.scores - 0.5) <= 1.0).all(), "a score is far outside of [0, 1]"
        assert partial.tasks is not None
        assert np.isfinite(partial.tasks).all()
        after = {name: items.tolist() for name, items in session.ask().items()}
        assert before == after, "predicting changes the next items"


N_TABLES = 6
"""Tables over which a bias is averaged. For a method without bias, fewer than 1 in 100 means lies
beyond the tolerance: two percentage points and three standard errors, five degrees of freedom."""


class Quality(Promises):
    """Every answer counts, and estimates follow the truth."""

    def test_every_answer_counts(self, method: Method) -> None:
        """Changing one answer changes an estimate, for at least three quarters of the items.

        A tree may not use an item, and the nearest source model may stay the nearest. A target
        that is right wherever any source model is must get a higher estimate than one that is
        wrong wherever any is.
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
            of_sources, options = all_options(sources), all_options(targets)[rows]
            options[at, items] = of_sources[donor, items]
            ends = np.stack([of_sources[best, columns], of_sources[worst, columns]])
            options = np.concatenate([options, ends])
        changed = like(targets, values, options)
        after = self._play(method, sources, changed, 8).prediction.scores
        moved = np.abs(after[:-2] - before.prediction.scores[rows]) > CLOSE
        share = np.mean([moved[places == place].any() for place in np.unique(places)])
        assert share >= 0.75, f"{1 - share:.0%} of the answers change no estimate"
        assert after[-2] > after[-1] + 0.05, (
            f"all right is estimated at {after[-2]:.3f}, all wrong at {after[-1]:.3f}"
        )

    def test_estimates_follow_the_truth(self, method: Method) -> None:
        """Half of the items tell who is better and by how much, at least as well as a tenth.

        See `_assert_follows`. The error with half may exceed that with a tenth by at most 0.02.
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
            np.abs(np.subtract(rows[: len(few)], truth[: len(few)])).mean() for rows in (many, few)
        )
        assert error <= of_few + 0.02, f"the error rises from {of_few:.3f} to {error:.3f}"

    def test_items_that_tell_models_apart_are_not_avoided(self, method: Method) -> None:
        """Where two thirds of the items are the same for all models, the others are still chosen.

        By chance, a third of the chosen items tell models apart. For an `informed` method, more do.
        """
        told = []
        for seed in range(N_TABLES):
            sources, targets = self._tables(n_models=30, n_items=60, seed=seed)
            same = np.random.default_rng(100 + seed).permutation(60)[:40]
            sources, targets = (
                _same_for_all(table, same[:20], same[20:]) for table in (sources, targets)
            )
            asked = self._play(method, sources, targets, 12, seed).asked.values()
            told.append(np.mean([np.isin(items, same, invert=True).mean() for items in asked]))
        least = 0.4 if self.informed else 0.1  # far below chance
        assert np.mean(told) >= least, f"{np.mean(told):.0%} of the chosen items tell models apart"

    def test_all_items_give_the_full_score(self, method: Method) -> None:
        """With every item run, estimates follow the full scores before they are cut to them.

        For an `exact` method, they are the full scores.
        """
        if not self._whole_budget(method):
            pytest.skip("the method may stop before the budget is spent")
        exact = self._exact(method)
        estimates, truth, past = [], [], []
        for seed in range(2 if exact else N_TABLES):
            average: Any = "macro" if exact and seed else "micro"
            sources, targets = self._tables(n_models=16, n_targets=5, n_items=20, seed=seed)
            sources, targets = sources.averaged(average), targets.averaged(average)
            estimates.append(self._play(method, sources, targets, 20, seed).prediction.scores)
            truth.append(targets.full_scores())
            past.append(sources.full_scores().mean())
        if exact:
            np.testing.assert_allclose(estimates, truth, atol=CLOSE, rtol=0)
        else:
            _assert_follows(np.array(estimates), np.array(truth), np.array(past))

    def test_estimates_the_average_that_is_asked_for(self, method: Method) -> None:
        """Where tasks differ, the macro average is estimated as such and not as the micro one."""
        sources, targets = self._tables(n_models=30, n_targets=8, n_items=60)
        easy = sources.task_of == 2  # half of all items
        values, answers = sources.values.copy(), targets.values.copy()
        values[:, easy], answers[:, easy] = 1.0, 1.0
        sources = replace(sources, values=values, average="macro")
        targets = replace(targets, values=answers, average="macro")
        # One draw is unreliable for few items or tasks: a failure with one is judged by ten.
        for seeds in (1, 10):
            estimates = np.array(
                [replay(method, sources, targets, 30, seed).scores for seed in range(seeds)]
            )
            macro = np.abs(estimates - targets.full_scores()).mean()
            micro = np.abs(estimates - targets.averaged("micro").full_scores()).mean()
            if macro < micro:
                break
        assert macro < micro, f"error {macro:.3f} from the macro average, {micro:.3f} from micro"


def _same_for_all(table: Scores, right: IntArray, wrong: IntArray) -> Scores:
    """Return the table with some items that all models get right, and some that all get wrong."""
    values = table.values.copy()
    values[:, right], values[:, wrong] = 1.0, 0.0
    options = None if table.probabilities is None else all_options(table)
    if options is not None:
        options[:, np.union1d(right, wrong)] = options[:1, np.union1d(right, wrong)]
    return like(table, values, options, table.model_ids)


def _assert_follows(estimates: FloatArray, truth: FloatArray, past: FloatArray) -> None:
    """Check estimates of targets drawn like the source models, shape (tables, targets).

    Within tables, estimates and full scores correlate at 0.4 or more, and the slope is at least a
    tenth. The error is at most 1.5 times that of the source models' mean `past`, (tables,). Signed
    errors have mean 0: errors within a table are correlated, so a table counts as one.
    """
    above, better = (scores - scores.mean(axis=1, keepdims=True) for scores in (estimates, truth))
    both = (above * better).sum()
    correlation = both / np.sqrt((above**2).sum() * (better**2).sum() + 1e-30)
    assert correlation >= 0.4, f"estimates and full scores correlate at {correlation:.2f}"
    slope = both / (better**2).sum()
    assert slope >= 0.1, f"of what a target is better by, its estimate has {slope:.0%}"
    error, of_mean = np.abs(estimates - truth).mean(), np.abs(past[:, None] - truth).mean()
    assert error <= 1.5 * of_mean, f"the error {error:.3f} is far above {of_mean:.3f} of a constant"
    bias, error = mean_and_error((estimates - truth).mean(axis=1))
    assert abs(bias) <= 0.02 + 3.0 * error, f"estimates are off by {bias:+.3f} on average"
