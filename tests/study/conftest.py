"""A small table, and methods of a user's own that watch what they are given."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest

from fewbench.methods import Method, Prediction, Session, find_method
from fewbench.scores import Scores
from fewbench.study import SplitSettings, compare
from fewbench.testing import simulate


@pytest.fixture(scope="session")
def scores() -> Scores:
    return simulate(20, 40, seed=3)


@pytest.fixture
def with_models(scores):
    """The table with columns of its models replaced."""

    def change(table=scores, **columns):
        return replace(table, models=table.models.assign(**columns))

    return change


class _Session(Session):
    """Asks for the first items and says their mean."""

    def __init__(self, scores, budget, targets):
        super().__init__(targets, scores.n_items)
        self.scores = scores
        self.items = np.arange(budget, dtype=np.intp)

    def choose(self, targets):
        return {target: self.items for target in targets if not self.record.rounds(target)}

    def predict(self, targets, *, tasks=True):
        means = np.array([self.record.answers(target).scores.mean() for target in targets])
        each = np.repeat(means[:, None], len(self.scores.tasks), axis=1)
        return Prediction(means, each if tasks else None)


@dataclass
class FirstItems(Method):
    """A method as somebody else would write it; counts its sessions."""

    name: str = "first-items"
    starts: int = 0

    def start(self, scores, budget, seed, targets):
        self.starts += 1
        return _Session(scores, budget, targets)

    def describe(self):
        return self.name


@dataclass
class Spy(Method):
    """A method of the catalogue; keeps the sources and answers of every session."""

    name: str
    sessions: list = field(default_factory=list)

    def __post_init__(self):
        self._method = find_method(self.name)

    @property
    def plain_sampling(self):
        return self._method.plain_sampling

    def describe(self):
        return f"spy on {self.name}"

    def start(self, scores, budget, seed, targets):
        session = self._method.start(scores, budget, seed, targets)
        told = {}
        self.sessions.append((scores, told))
        tell = session.tell

        def listen(target, answers):
            told[target] = answers
            tell(target, answers)

        session.tell = listen
        return session


@pytest.fixture
def first_items():
    return FirstItems


@pytest.fixture
def spy():
    return Spy


@pytest.fixture(scope="session")
def outcome(scores):
    splits = [SplitSettings("random"), SplitSettings("group")]
    return compare(scores, ["random-linear"], [5, 10], splits, repeats=3)


@pytest.fixture(scope="session")
def assert_same():
    """Check that two comparisons have the same tables, but for the times that they took."""

    def check(one, two):
        for name in ("cells", "estimates", "task_errors"):
            left, right = (
                getattr(found, name).drop(
                    columns=["seconds_fit", "seconds_predict"], errors="ignore"
                )
                for found in (one, two)
            )
            pd.testing.assert_frame_equal(left, right, check_exact=True)

    return check
