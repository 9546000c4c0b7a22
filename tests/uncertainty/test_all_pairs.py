"""The differences of all pairs are those of each pair by itself."""

from itertools import combinations

import numpy as np
import pytest

import fewbench
from fewbench.testing import simulate
from fewbench.uncertainty.all_pairs import all_pairs
from fewbench.uncertainty.question_error import clustered_error
from fewbench.uncertainty.questions import Questions, questions_by_task, variance_of


@pytest.mark.parametrize("n_options", [0, 3])
def test_a_whole_table_has_the_variance_of_each_pair(n_options):
    table = simulate(6, 70, 4, seed=1, options=n_options or None)
    cells = table.values if not n_options else table.values * 0.7 + 0.1
    table = fewbench.from_arrays(cells, models=table.model_ids, tasks=list(table.items["task"]))
    weights = table.averaged("macro").item_weights
    micro, macro = (all_pairs(t, t.full_scores()) for t in (table, table.averaged("macro")))
    squares = np.bincount(table.task_of, weights**2)
    for i, j in combinations(range(6), 2):
        apart = cells[i] - cells[j]
        assert micro.difference[i, j] == pytest.approx(apart.mean())
        assert micro.variance[i, j] == pytest.approx(variance_of(apart) / 70)
        by_task = questions_by_task(apart, table.task_of, squares)
        assert macro.variance[i, j] == pytest.approx(by_task.variance)
        assert macro.freedom[i, j] == pytest.approx(by_task.freedom)
    assert not all_pairs(table, table.full_scores(), fixed_items=True).variance.any()


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_items_that_hang_together_have_the_variance_of_their_clusters(average):
    table = simulate(5, 80, 2, seed=4).averaged(average)
    clusters = [f"passage-{at // 5}" for at in range(80)]
    table = table.changed(items=table.items.assign(cluster=clusters))
    pairs, plain = (
        all_pairs(t, t.full_scores())
        for t in (table, table.changed(items=table.items.drop(columns="cluster")))
    )
    everything = np.arange(80)
    for i, j in combinations(range(5), 2):
        alone = Questions(float(plain.variance[i, j]), 79)
        apart = table.values[i] - table.values[j]
        error = clustered_error(alone, table, everything, apart, table.item_weights)
        assert pairs.variance[i, j] == pytest.approx(error.variance)
        assert pairs.freedom[i, j] == pytest.approx(error.freedom)
    assert (pairs.variance > plain.variance).any()


def test_a_pair_with_missing_cells_has_the_variance_of_its_common_items():
    cells = simulate(4, 60, seed=2).values.copy()
    cells[0, :12], cells[1, 50:] = np.nan, np.nan
    table = fewbench.from_arrays(cells, models=list("abcd"))
    full = table.full_scores()
    model, items = (all_pairs(table, full, fixed_items=fixed) for fixed in (False, True))
    for i, j in combinations(range(4), 2):
        apart = cells[i] - cells[j]
        apart = apart[~np.isnan(apart)]
        n, moved = len(apart), full[i] - full[j] - apart.mean()
        variance = variance_of(apart)
        assert model.variance[i, j] == pytest.approx(variance / n + moved**2)
        assert items.variance[i, j] == pytest.approx(variance * (1 / n - 1 / 60) + moved**2)
        assert model.freedom[i, j] == pytest.approx(n - 1)


def test_large_tables_are_read_in_blocks(monkeypatch):
    table = simulate(5, 90, 3, seed=3)
    whole = all_pairs(table, table.full_scores())
    monkeypatch.setattr("fewbench._blocks.CELLS", 100)
    parts = all_pairs(table, table.full_scores())
    np.testing.assert_allclose(whole.variance, parts.variance, rtol=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_runs_of_one_model_on_unequal_passages_are_told_apart_no_more_often(average):
    """By C / (C - 1) and C - 1 degrees of freedom, in .14 (micro) and .21 (macro)."""
    rng, verdicts = np.random.default_rng(1), []
    for _ in range(150):
        chances = rng.dirichlet(np.full(15, 0.7))
        cluster_of = np.sort(rng.choice(15, 300, p=chances))
        passages = rng.normal(size=15)[cluster_of] + rng.normal(0, 1.5, (4, 15))[:, cluster_of]
        cells = (rng.logistic(size=(4, 300)) < passages).astype(float)
        tasks = [f"task-{at // 180}" for at in range(300)]
        table = fewbench.from_arrays(cells, models=list("abcd"), tasks=tasks).averaged(average)
        table = table.changed(items=table.items.assign(cluster=[f"p{at}" for at in cluster_of]))
        p_values = all_pairs(table, table.full_scores()).p_values
        verdicts += [p_values[0, 1] < 0.1, p_values[2, 3] < 0.1]
    assert np.mean(verdicts) < 0.107 + 2 * np.sqrt(0.1 * 0.9 / 300)
