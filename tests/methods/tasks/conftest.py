"""Matrices of transferability made up, and the published one where it lies beside the checkout."""

from pathlib import Path

import numpy as np
import pytest

from fewbench.bento import Transferability


def transferability(n=9, seeds=3, seed=0, sizes=None):
    """Tasks in three groups that help each other; targets differ in how easy they are."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    values = 0.3 + 0.4 * rng.random(n) + 0.1 * np.equal.outer(group, group)
    names = tuple(f"task {at}" for at in range(n))
    noise = rng.normal(0.0, 0.02, (seeds, n, n))
    sizes = rng.integers(5, 90, n) if sizes is None else np.asarray(sizes)
    return Transferability(values + noise, names, names, sizes)


@pytest.fixture
def transfer():
    return transferability()


@pytest.fixture(scope="session")
def published():
    """The matrix of BenTo's authors (57 MMLU tasks, 10 seeds)."""
    path = Path(__file__).resolve().parents[4] / "shared/data/bento/mmlu_ict.npz"
    if not path.is_file():
        pytest.skip("shared/data/bento with the published matrix is not beside the checkout")
    return Transferability.load(path)
