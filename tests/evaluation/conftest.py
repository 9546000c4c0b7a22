"""The last two models of a module's table are the targets, the others the sources."""

import numpy as np
import pytest


@pytest.fixture
def sources(table):
    return table.take(models=np.arange(table.n_models - 2))


@pytest.fixture
def targets(table):
    return table.take(models=[table.n_models - 2, table.n_models - 1])
