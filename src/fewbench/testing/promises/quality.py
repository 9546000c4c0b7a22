"""How good estimates are: answers count, and estimates follow the truth."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fewbench._types import FloatArray
from fewbench.evaluation.replay import replay
from fewbench.methods import Method
from fewbench.testing.playing import CLOSE
from fewbench.testing.promises.base import Promises, all_options, like, mean_and_error

N_TABLES = 6
"""Tables over which a bias is averaged. Of a method without bias, fewer than 1 in 100 means lies
beyond the tolerance: two percentage points and three standard errors, five degrees of freedom."""


class Quality(Promises):
    """Every answer counts, and estimates follow the truth."""

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
    bias, error = mean_and_error((said - truth).mean(axis=1))
    assert abs(bias) <= 0.02 + 3.0 * error, f"estimates are off by {bias:+.3f} on average"
