"""Targets with known answers, and evaluations of them."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.evaluation import Evaluation
from fewbench.testing import simulate

TABLE = simulate(64, 300, seed=5)
TABLE = replace(TABLE, models=TABLE.models.drop(columns="family"))
N_TARGETS = 20


@pytest.fixture(scope="session")
def table():
    return TABLE


@pytest.fixture(scope="session")
def sources():
    return TABLE.take(models=np.arange(N_TARGETS, TABLE.n_models))


@pytest.fixture(scope="session")
def targets():
    return TABLE.take(models=np.arange(N_TARGETS))


@pytest.fixture
def play(targets):
    """Answer what is asked, up to so many answers per target."""

    def answer(evaluation: Evaluation, upto: int | None = None, truth=targets) -> Evaluation:
        while asked := evaluation.ask():
            done = True
            for name, items in asked.items():
                left = len(items)
                if upto is not None:
                    left = upto - len(evaluation.record.answered(name))
                row = truth.to_frame().loc[name]
                if items[:left]:
                    done = False
                    evaluation.tell(name, row[items[:left]].to_dict())
            if done:
                break
        return evaluation

    return answer
