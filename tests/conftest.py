"""Shared by all tests: fast and repeatable hypothesis, and an adaptive method of a third party."""

import signal
from dataclasses import dataclass

import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from fewbench.methods import Method, Prediction, Session

settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.load_profile("quick")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for doctests in the package alone: helpers of tests are not imported to be collected."""
    return [file for file in (yield) if not isinstance(file, DoctestModule)]


@pytest.fixture(scope="session", autouse=True)
def _interruptible():
    """Ctrl-C is heard, also where it was ignored when the tests began, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class TwoRounds(Method):
    """Asks every target for half of its items, then for others that follow from the answers."""

    def start(self, scores, budget, seed, targets):
        return TwoRoundsSession(scores, budget, seed, targets)

    def describe(self):
        return "two-rounds"


class TwoRoundsSession(Session):
    def __init__(self, scores, budget, seed, targets):
        super().__init__(targets, scores.n_items)
        self.scores = scores
        self.order = np.random.default_rng(seed).permutation(scores.n_items)
        self.budget = budget

    def choose(self, targets):
        half = -(-self.budget // 2)
        chosen = {}
        for target in targets:
            rounds = len(self.record.rounds(target))
            if not rounds:
                chosen[target] = self.order[:half]
            elif rounds == 1 and self.budget > half:
                rest = self.order[half:]
                hard = self.scores.filled[:, rest].mean(axis=0)
                good = self.record.answers(target, self.order[:half]).scores.mean() > 0.5
                by = np.argsort(hard if good else -hard, kind="stable")
                chosen[target] = rest[by][: self.budget - half]
        return chosen

    def predict(self, targets, *, tasks=True):
        full, each = self.scores.full_scores(), self.scores.task_scores()
        scores = []
        for target in targets:
            told = self.record.answers(target)
            above = (told.scores[0] - self.scores.filled[:, told.items].mean(axis=0)).mean()
            scores.append(np.clip(full.mean() + above, 0, 1))
        rows = np.array(scores)
        by_task = np.clip(each.mean(axis=0) + (rows - full.mean())[:, None], 0, 1)
        return Prediction(rows, by_task if tasks else None)


@pytest.fixture
def two_rounds():
    return TwoRounds()
