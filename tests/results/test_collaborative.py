"""Two-stage collaborative filtering on real tables: which of the paper's claims hold there.

docs/reproduction.md has all rows; the paper's own tables are not at hand.
"""

import numpy as np
import pytest

from fewbench.audit import audit, drop
from fewbench.study import SplitSettings, compare

pytestmark = pytest.mark.slow

RANDOM = SplitSettings("random")
OTHERS = ["random-stratified", "clustering", "sorted+threshold", "collaborative-low-rank"]


def ahead(outcome, method, other, metric):
    """How much smaller the error of `method` is, over its standard error, paired over repeats."""
    wide = outcome.repeats.pivot(index="repeat", columns=["budget", "method"], values=metric)
    found = []
    for budget in outcome.repeats["budget"].unique():
        less = wide[budget][other] - wide[budget][method]
        found.append(less.mean() / (less.std() / np.sqrt(len(less))))
    return np.array(found)


@pytest.fixture(scope="module")
def leaderboard(real):
    scores = real("openllm2_math_musr")
    clean, _ = drop(scores, audit(scores), ["duplicates"])
    clean = clean.take(models=np.random.default_rng(0).permutation(clean.n_models)[:200])
    budgets = [round(ratio * clean.n_items) for ratio in (0.1, 0.3)]
    return compare(clean, ["collaborative", *OTHERS], budgets, RANDOM, 3, level=None)


@pytest.mark.parametrize("other", OTHERS[:3])
def test_task_scores_err_less_than_with_simpler_methods(leaderboard, other):
    assert (ahead(leaderboard, "collaborative", other, "task_mae") > 0).all()


def test_low_rank_completion_is_better_still(leaderboard):
    """As in Table 5, and at no price: it takes less time."""
    for metric in ("task_mae", "task_rank_mae", "mae"):
        assert (ahead(leaderboard, "collaborative-low-rank", "collaborative", metric) > 2).all(), (
            metric
        )


def test_transport_helps_where_tasks_are_alike(real):
    """The paper's ablation, on the seven tasks of HELM MATH."""
    outcome = compare(
        real("helm_math"),
        ["collaborative", "collaborative-no-transport"],
        [140, 175],
        RANDOM,
        5,
        level=None,
    )
    assert (ahead(outcome, "collaborative", "collaborative-no-transport", "task_mae") > 2).all()
