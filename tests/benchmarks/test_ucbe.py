"""UCB-E-LRF: the factorizations, which target runs next, and which of its items."""

import numpy as np
import pytest

from fewbench.methods import Answers
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.testing.conformance import Settings
from fewbench.uncertainty.replay import replay
from papers.methods.ucbe import Ucbe, fit_ensemble

QUICK = {"members": 8, "steps": 4}


class TestWholeBudget(Settings):
    estimates = False

    @pytest.fixture
    def method(self):
        return Ucbe(share=1.0, rank=2, **QUICK)


class TestBandit(Settings):
    estimates = False

    @pytest.fixture
    def method(self):
        return Ucbe(batch=3, **QUICK)


def tables(n_targets=6, seed=1):
    whole = simulate(n_models=46, n_items=200, seed=seed)
    rows = np.arange(46)
    return whole.take(models=rows[n_targets:]), whole.take(models=rows[:n_targets])


def told(session, targets, batches):
    """Answer a number of batches; return the targets and items asked."""
    log = []
    for _ in range(batches):
        asked = {name: items for name, items in session.ask().items() if len(items)}
        log.append(asked)
        for name, items in asked.items():
            row = targets.model_ids.index(name)
            session.tell(name, Answers(items, targets.values[[row]][:, items]))
    return log


def plain_ridge(table, kept, by, penalty):
    """Regress each row on its kept cells, one after the other."""
    found = np.empty((len(table), by.shape[1]))
    for row in range(len(table)):
        x, y = by[kept[row]], table[row][kept[row]]
        found[row] = np.linalg.solve(x.T @ x + penalty * np.eye(by.shape[1]), x.T @ y)
    return found


def test_factorizations_are_alternating_ridge_regressions():
    rng = np.random.default_rng(3)
    table = rng.random((12, 20))
    made = fit_ensemble(table, 2, 3, 0.2, 0.1, 4, np.random.default_rng(0))
    draws = np.random.default_rng(0)
    for member in range(3):
        kept = draws.random(table.shape) >= 0.2
        items = draws.random((20, 2))
        for _ in range(4):
            models = plain_ridge(table, kept, items, 0.1)
            items = plain_ridge(table.T, kept.T, models, 0.1)
        np.testing.assert_allclose(made.loadings[member], items, atol=1e-9)
    known, answers = np.array([1, 4, 5, 9]), rng.random(4)
    completed = made.complete(known, answers)
    for member in range(3):
        row = np.zeros(20)
        row[known] = answers
        kept = np.isin(np.arange(20), known) & made.kept[member]
        (factors,) = plain_ridge(row[None], kept[None], made.loadings[member], 0.1)
        np.testing.assert_allclose(completed[member], made.loadings[member] @ factors, atol=1e-9)


def test_scores_of_low_rank_are_completed():
    rng = np.random.default_rng(0)
    values = rng.uniform(0.3, 1, (30, 1)) * rng.uniform(0.2, 1, (1, 80))
    sources = from_arrays(values[1:], models=[f"m{m}" for m in range(29)])
    new = from_arrays(values[:1], models=["new"])
    said = replay(Ucbe(penalty=1e-3), sources, new, 10, 0, tasks=True)
    assert said.scores[0] == pytest.approx(values[0].mean(), abs=0.003)


def test_after_the_warmup_the_target_of_highest_bound_runs_its_most_uncertain_items():
    sources, targets = tables()
    method = Ucbe(batch=4, warmup=0.1, **QUICK)
    session = method.start(sources, 60, 0, targets.model_ids)
    (first,) = told(session, targets, 1)
    assert set(first) == set(targets.model_ids)
    assert {len(items) for items in first.values()} == {20}
    for _ in range(5):
        high = {}
        for name in targets.model_ids:
            run = session.record.answered(name)
            made = session._ensemble.complete(run, session.record.scores(name)[run])
            bound = made.mean(axis=0) + 5.0 * made.std(axis=0)
            bound[run] = session.record.scores(name)[run]
            high[name] = bound.mean(), made.std(axis=0), run
        best = max(high, key=lambda name: high[name][0])
        (asked,) = told(session, targets, 1)
        assert list(asked) == [best]
        _, spread, run = high[best]
        rest = np.setdiff1d(np.arange(200), run)
        most = rest[np.argsort(-spread[rest])][:4]
        assert sorted(asked[best].tolist()) == sorted(most.tolist())


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_all_targets_share_the_items(share):
    sources, targets = tables(8)
    run = replay(Ucbe(share=share, batch=7, **QUICK), sources, targets, 50, 0)
    counts = np.array([len(items) for items in run.items])
    assert counts.sum() == round(share * 50) * 8
    assert counts.max() <= 50
    assert counts.min() >= 10  # the warmup


def test_a_single_target_runs_its_whole_budget():
    sources, targets = tables(1)
    assert len(replay(Ucbe(**QUICK), sources, targets, 40, 0).items[0]) == 40
