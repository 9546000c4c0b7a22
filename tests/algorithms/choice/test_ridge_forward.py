"""Forward selection by held-out ridge error, against refitting."""

import numpy as np
import pytest

from fewbench.algorithms.choice.ridge_forward import PENALTIES, ridge_forward


def refitted(x, y, groups, penalty):
    """Root mean square held-out error of a ridge that is fitted anew without each group."""
    errors = []
    for group in np.unique(groups):
        out = groups == group
        mean, level = x[~out].mean(axis=0), y[~out].mean()
        z = x[~out] - mean
        weights = np.linalg.solve(z.T @ z + penalty * np.eye(x.shape[1]), z.T @ (y[~out] - level))
        errors.append((y[out] - level - (x[out] - mean) @ weights) ** 2)
    return np.sqrt(np.concatenate(errors).mean())


@pytest.mark.parametrize("families", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_step_is_the_best_by_refitting(seed, families):
    rng = np.random.default_rng(seed)
    x = rng.random((25, 7))
    y = x @ rng.random(7) + 0.05 * rng.normal(size=25)
    groups = rng.integers(0, 8, 25) if families else np.arange(25)
    chosen, errors = ridge_forward(x, y, 3, groups)
    size = ((x - x.mean(axis=0)) ** 2).sum() / 7
    for step in range(3):
        kept = chosen[:step].tolist()
        tried = {
            other: min(refitted(x[:, [*kept, other]], y, groups, size * p) for p in PENALTIES)
            for other in set(range(7)) - set(kept)
        }
        assert tried[chosen[step]] == pytest.approx(min(tried.values()))
        assert errors[step] == pytest.approx(tried[chosen[step]])


def test_nothing_to_choose_by():
    chosen, errors = ridge_forward(np.ones((4, 3)), np.arange(4.0), 2)
    assert len(set(chosen.tolist())) == 2
    assert np.isfinite(errors).all()
    chosen, _ = ridge_forward(np.eye(3), np.ones(3), 3)
    assert sorted(chosen.tolist()) == [0, 1, 2]
