"""Results of models on tasks, and transferability between them, made up."""

import numpy as np
import pytest

from fewbench.testing import simulate
from fewbench_papers.bento import TaskResults, Transferability


@pytest.fixture(scope="session")
def table():
    return simulate(8, 80, 6, seed=5)


@pytest.fixture(scope="session")
def known(table):
    """Results with single questions."""
    return TaskResults.of_scores(table)


@pytest.fixture(scope="session")
def transfer(table):
    rng = np.random.default_rng(1)
    names = tuple(table.tasks)
    values = 0.3 + 0.3 * rng.random(6) + 0.1 * rng.random((3, 6, 6))
    return Transferability(values, names, names, np.bincount(table.task_of))
