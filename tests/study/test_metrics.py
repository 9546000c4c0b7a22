"""Metrics against scipy and against their definitions, written out."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fewbench import compare
from fewbench.errors import StudyError
from fewbench.scores import Scale, from_arrays
from fewbench.study import metrics
from fewbench.study.metrics import (
    METRICS,
    Metric,
    find_metric,
    point_metrics,
    weighted_metrics,
)
from fewbench.testing import simulate

RNG = np.random.default_rng(0)
TRUTH, ESTIMATE, SOURCES = RNG.random(15), RNG.random(15), RNG.random(30)
# Few distinct values, so that ties are common.
TIED = st.integers(2, 12).flatmap(
    lambda n: st.tuples(*[hnp.arrays(np.float64, n, elements=st.integers(0, 5).map(float))] * 2)
)


@given(TIED)
@settings(max_examples=60, deadline=None)
def test_correlations_are_scipys(pair):
    from scipy import stats

    a, b = pair
    ours = (
        metrics.kendall_tau(a, b),
        metrics.pearson(stats.rankdata(a), stats.rankdata(b)),
        metrics.pearson(a, b),
    )
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert all(math.isnan(value) for value in ours)
        return
    theirs = [f(a, b).statistic for f in (stats.kendalltau, stats.spearmanr, stats.pearsonr)]
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_errors_follow_their_definitions():
    found = point_metrics(TRUTH, ESTIMATE, SOURCES)
    gaps = [abs(q - p) for p, q in zip(TRUTH, ESTIMATE, strict=True)]
    assert found["mae"] == pytest.approx(sum(gaps) / 15)
    assert found["max_error"] == pytest.approx(max(gaps))
    assert found["rmse"] == pytest.approx(math.sqrt(sum(gap**2 for gap in gaps) / 15))
    truth = math.sqrt(sum(p**2 for p in TRUTH) / 15)
    assert found["nrmse"] == pytest.approx(found["rmse"] / truth)


def test_ranks_are_among_the_sources_and_itself():
    found = point_metrics(TRUTH, ESTIMATE, SOURCES)

    def rank(score):
        return 1 + sum(source > score for source in SOURCES)

    true, said = [rank(p) for p in TRUTH], [rank(q) for q in ESTIMATE]
    off = [abs(r - s) for r, s in zip(true, said, strict=True)]
    gaps = np.abs(TRUTH - ESTIMATE)
    weights = [1 / r for r in true]
    assert found["rank_mae"] == pytest.approx(sum(off) / 15)
    weighted = sum(w * gap for w, gap in zip(weights, gaps, strict=True)) / sum(weights)
    assert found["weighted_mae"] == pytest.approx(weighted)
    weighted = sum(w * o for w, o in zip(weights, off, strict=True)) / sum(weights)
    assert found["weighted_rank_mae"] == pytest.approx(weighted)


def test_pairwise_accuracy_counts_pairs():
    # Pairs of different truth: (a,b) right, (a,c) tied estimates, (b,c) wrong; (c,d) are no pair.
    truth, estimate = np.array([0.1, 0.2, 0.3, 0.3]), np.array([0.4, 0.6, 0.4, 0.9])
    # (a,d) and (b,d) are right too: 3 right and one half of 5.
    found = point_metrics(truth, estimate, SOURCES)
    assert found["pairwise_accuracy"] == pytest.approx(3.5 / 5)
    tied = point_metrics(np.array([0.3, 0.3]), np.array([0.1, 0.2]), SOURCES)
    assert math.isnan(tied["pairwise_accuracy"])


def test_top_k_recall_is_over_sources_and_targets():
    sources, truth = np.array([0.9, 0.5, 0.4]), np.array([0.8, 0.1])
    # The best two are source 0 and target 0; target 0 is estimated below source 1.
    for estimate, k, share in (
        ([0.45, 0.1], 2, 0.5),
        ([0.6, 0.1], 2, 1),
        ([0.6, 1.0], 2, 0.5),
        ([0.0, 0.0], 10, 1),
    ):
        found = metrics.top_recall(truth, np.array(estimate), sources, np.ones((1, 2)), k)
        assert found.tolist() == [share]


def test_ndcg_is_that_of_the_field():
    from sklearn.metrics import ndcg_score

    gains, said = np.concatenate([SOURCES, TRUTH]), np.concatenate([SOURCES, ESTIMATE])
    expected = ndcg_score(gains[None], said[None])
    assert point_metrics(TRUTH, ESTIMATE, SOURCES)["ndcg"] == pytest.approx(expected)
    sources, truth, estimate = np.array([0.6]), np.array([0.9]), np.array([0.2])
    best = 0.9 + 0.6 / math.log2(3)
    assert point_metrics(truth, estimate, sources)["ndcg"] == pytest.approx(
        (0.6 + 0.9 / math.log2(3)) / best
    )


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.function])
def test_every_metric_is_in_its_unit_and_counts_its_weights(name):
    """Differences of scores halve with the scores; a weight of 2 is the target twice."""
    rng = np.random.default_rng(0)
    truth, sources = rng.random(9), rng.random(20)
    estimate = truth + rng.normal(0, 0.3, 9)
    whole, half = (
        point_metrics(*(share * scores for scores in (truth, estimate, sources)))[name]
        for share in (1.0, 0.5)
    )
    assert half == pytest.approx(whole / 2 if METRICS[name].unit == "score" else whole)
    times = np.array([1, 2, 1, 3, 1, 1, 2, 1, 1])
    weighted = weighted_metrics(truth, estimate, sources, times[None].astype(float))[name][0]
    repeated = point_metrics(np.repeat(truth, times), np.repeat(estimate, times), sources)[name]
    assert weighted == pytest.approx(repeated)


def test_rank_correlations_of_one_target_are_not_defined():
    found = point_metrics(np.array([0.5]), np.array([0.4]), SOURCES)
    assert [name for name, value in found.items() if math.isnan(value)] == [
        "kendall_tau",
        "spearman",
        "pearson",
        "pairwise_accuracy",
    ]


def test_a_metric_of_one_s_own_is_on_the_scale_of_the_scores_wherever_it_is_shown(monkeypatch):
    own = Metric("Bias", "score", "Mean of the errors.", lambda judged: judged.mean(judged.error))
    monkeypatch.setitem(METRICS, "bias", own)
    table = simulate(24, 60, 3, seed=1)
    scores = from_arrays(100 * table.values, models=table.model_ids, scale=Scale(0, 100))
    found = compare(scores, ["random"], [10], repeats=3)
    cell, _ = found.cells.to_dict("records")
    assert cell["mae"] > 1  # points of 100
    for part in ("", "_sd", "_se", "_low", "_high"):
        assert cell[f"bias{part}"] == pytest.approx(cell[f"mae{part}"]), part
    assert found.repeats["task_bias"].equals(found.repeats["task_mae"])
    section = next(one for one in found.page().sections if one.id == "metrics")
    assert section.facts["Bias"] == "Mean of the errors."


def test_a_metric_or_a_unit_that_the_table_does_not_have_is_refused():
    for name in ("kendall", "task_kendall", "coverage"):
        with pytest.raises(StudyError, match=f"unknown metric '{name}'"):
            find_metric(name)
    with pytest.raises(StudyError, match=r"'Bias'.*'points'"):
        Metric("Bias", "points", "Mean of the errors.")
