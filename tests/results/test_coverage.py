"""Intervals stated at 90 % on real tables: they hold under random splits; elsewhere it is shown.

Beyond the sources they hold, or the estimate says that they may not (docs/intervals.md). Run with
-s to see the figures.
"""

import numpy as np
import pytest

from fewbench.algorithms.soundness.likeness import duplicate_groups
from fewbench.evaluation.intervals import ErrorModel
from fewbench.evaluation.replay import replay
from fewbench.methods import find_method
from fewbench.study import SplitSettings, compare, make_split

pytestmark = pytest.mark.slow

# One of each kind of predictor: means, regression, nearest model, completion.
METHODS = ["anchor-points", "random-ridge", "random-signature-knn", "random-low-rank"]
SHOWN = ["method", "split", "coverage90", "width90", "mae"]


def coverage(real, methods, tables):
    """Share of the targets inside their interval, pooled over the tables."""
    covered, met = {}, {}
    for table, repeats in tables.items():
        outcome = compare(real(table), methods, [30], repeats=repeats, workers=1)
        print(table, outcome.cells[SHOWN].to_string(), sep="\n")
        for row in outcome.cells.to_dict("records"):
            name = row["method"]
            covered[name] = covered.get(name, 0.0) + row["coverage90"] * row["n_targets"] * repeats
            met[name] = met.get(name, 0) + row["n_targets"] * repeats
    return {name: covered[name] / met[name] for name in covered}


# A share of 240 targets of 90 % has a standard error near 2 points. Intervals a fifth too narrow
# hold 81 %.
def test_random_splits(real):
    share = coverage(real, METHODS, {"gsm8k_150": 4, "helm_med_qa": 4})
    assert min(share.values()) >= 0.86, share


def test_random_splits_with_methods_that_adapt(real):
    share = coverage(real, ["tailored", "collaborative-low-rank"], {"helm_math": 3})
    assert min(share.values()) >= 0.84, share


# Folds with 17 of 22 sources have to run what 22 sources run: else intervals hold .74 to .84.
@pytest.mark.parametrize("method", ["fewbench", "fewbench-static"])
def test_a_few_more_sources_than_change_the_method(real, method):
    covered = []
    for table in ("helm_med_qa", "gsm8k_150"):
        scores = real(table)
        scores = scores.take(
            models=np.unique(duplicate_groups(scores.filled), return_index=True)[1]
        )
        for repeat in range(6):
            drawn = np.random.default_rng(repeat).permutation(scores.n_models)
            sources, targets = (scores.take(models=at) for at in (drawn[:22], drawn[22:52]))
            said = replay(find_method(method), sources, targets, 50, repeat)
            errors = ErrorModel(find_method(method), sources, 50, repeat)
            answers = [targets.values[row, at] for row, at in enumerate(said.items)]
            found = errors.judge(said.scores, said.items, answers, 0.9, said.spread)
            ends = np.array([[one.low, one.high] for one in found]).T
            covered.append(
                np.abs(targets.full_scores() - ends.mean(axis=0))
                <= np.diff(ends, axis=0)[0] / 2 + 1e-9
            )
    assert np.mean(covered) >= 0.86, np.mean(covered)


# Of three tables the weaker models foretell the stronger, or do in part, or only guess.
SIX = ("gsm8k_150", "helm_gsm", "helm_med_qa", "helm_math", "glue_sst2", "glue_rte")
SPLITS = [
    *((name, "performance", 0) for name in ("helm_math", "helm_med_qa", "glue_rte")),
    *((name, "random", 0) for name in SIX),
]
LEARNING = ["greedy-ridge", "anchor-points", "disco-jsd-ridge"]


@pytest.mark.parametrize("name", LEARNING)
def test_targets_beyond_the_sources_are_covered_or_warned_of(real, name):
    """Performance splits: 80 % covered, or 80 % of those missed carry a warning.

    Like the sources: under 10 % carry one, and the intervals are at most 10 % wider than a plain
    quantile of the errors would make them.
    """
    flagged, grown = [], []
    for table, kind, repeat in SPLITS:
        scores = real(table)
        split = make_split(scores, SplitSettings(kind), 0, repeat)
        sources, targets = (scores.take(models=m) for m in (split.sources, split.targets))
        said = replay(find_method(name), sources, targets, 50, repeat)
        errors = ErrorModel(find_method(name), sources, 50, repeat)
        answers = [targets.values[row, at] for row, at in enumerate(said.items)]
        found = errors.judge(said.scores, said.items, answers, 0.9, said.spread)
        truth = targets.full_scores()
        ends = np.array([[one.low, one.high] for one in found])
        missed = (truth < ends[:, 0] - 1e-9) | (truth > ends[:, 1] + 1e-9)
        alike = any("hardly differ in ability" in said for said in errors.warn(1))
        warned = np.array([one.is_beyond or alike for one in found])
        print(table, kind, f"covered {1 - missed.mean():.2f}, warned {warned.mean():.2f}")
        if kind == "random":
            flagged.append(warned.mean())
            past = np.sort(np.abs(errors.inside.past.errors))
            plain = 2 * past[int(np.ceil(0.9 * (len(past) + 1))) - 1]
            grown.append(np.diff(ends, axis=1).mean() / plain)
        else:
            assert missed.mean() <= 0.2 or warned[missed].mean() >= 0.8, table
    assert np.mean(flagged) < 0.1
    assert np.exp(np.log(grown).mean()) <= 1.1
