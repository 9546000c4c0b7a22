"""Two-stage collaborative filtering on real tables: which of the paper's claims hold there.

benchmarks/results/collaborative.md has all rows; the paper's own tables are not at hand.
"""

from pathlib import Path

import numpy as np
import pytest

from fewbench.checks import audit, drop
from fewbench.study import SplitSettings, compare

pytestmark = pytest.mark.slow

RANDOM = SplitSettings("random")
OTHERS = ["random-stratified", "clustering", "collaborative-low-rank"]


def ahead(outcome, method, other, metric):
    """How much smaller the error of `method` is, over its standard error, paired over repeats."""
    wide = outcome.repeats.pivot(index="repeat", columns=["budget", "method"], values=metric)
    found = []
    for budget in outcome.repeats["budget"].unique():
        less = wide[budget][other] - wide[budget][method]
        found.append(less.mean() / (less.std() / np.sqrt(len(less))))
    return np.array(found)


def test_task_scores_err_less_than_with_simpler_methods_and_low_rank_completion_least(
    real, monkeypatch
):
    """As in Table 5; low-rank completion also takes less time."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from papers.methods import find

    scores = real("openllm2_math_musr")
    clean, _ = drop(scores, audit(scores), ["duplicates"])
    clean = clean.take(models=np.random.default_rng(0).permutation(clean.n_models)[:200])
    budget = round(0.1 * clean.n_items)
    methods = ["collaborative", *OTHERS, find("sort-and-search")]
    outcome = compare(clean, methods, [budget], RANDOM, 3, level=None)
    for other in (*OTHERS[:2], "sort-and-search"):
        assert (ahead(outcome, "collaborative", other, "task_mae") > 0).all(), other
    # Not so with ridge on random items, which the paper does not compare with.
    assert (ahead(outcome, "random-ridge", "collaborative", "task_mae") > 2).all()
    assert (ahead(outcome, "random-stratified", "collaborative", "weighted_mae") > 0).all()
    for metric in ("task_mae", "task_rank_mae", "mae"):
        assert (ahead(outcome, OTHERS[2], "collaborative", metric) > 2).all(), metric


def test_transport_helps_where_tasks_are_alike(real):
    """The paper's ablation, on the seven tasks of HELM MATH."""
    outcome = compare(
        real("helm_math"),
        ["collaborative", "collaborative-no-transport"],
        [140],
        RANDOM,
        5,
        level=None,
    )
    assert (ahead(outcome, "collaborative", "collaborative-no-transport", "task_mae") > 2).all()
