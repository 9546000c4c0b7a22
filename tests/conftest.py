"""Shared by all tests: fast and repeatable hypothesis, and an adaptive method of a third party."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings

from fewbench.methods import Prediction

settings.register_profile("quick", max_examples=25, deadline=None, derandomize=True)
settings.load_profile("quick")


@dataclass(frozen=True)
class TwoRounds:
    """Asks every target for half of its items, then for others that follow from the answers."""

    plain_sampling = False

    def start(self, scores, budget, seed, targets):
        return TwoRoundsSession(scores, budget, seed, targets)

    def describe(self):
        return "two-rounds"


class TwoRoundsSession:
    def __init__(self, scores, budget, seed, targets):
        self.scores = scores
        self.order = np.random.default_rng(seed).permutation(scores.n_items)
        self.budget = budget
        self.told = {target: [] for target in targets}

    def ask(self):
        half = -(-self.budget // 2)
        wanted = {}
        for target, told in self.told.items():
            if not told:
                wanted[target] = self.order[:half]
            elif len(told) == 1 and self.budget > half:
                rest = self.order[half:]
                hard = self.scores.filled[:, rest].mean(axis=0)
                by = np.argsort(hard if told[0].scores.mean() > 0.5 else -hard, kind="stable")
                wanted[target] = rest[by][: self.budget - half]
        return wanted

    def tell(self, target, answers):
        self.told[target].append(answers)

    def predict(self, targets, *, tasks=True):
        full, each = self.scores.full_scores(), self.scores.task_scores()
        scores = []
        for target in targets:
            items = np.concatenate([answers.items for answers in self.told[target]])
            said = np.concatenate([answers.scores[0] for answers in self.told[target]])
            above = (said - self.scores.filled[:, items].mean(axis=0)).mean()
            scores.append(np.clip(full.mean() + above, 0, 1))
        rows = np.array(scores)
        by_task = np.clip(each.mean(axis=0) + (rows - full.mean())[:, None], 0, 1)
        return Prediction(rows, by_task if tasks else None)


@pytest.fixture
def two_rounds():
    return TwoRounds()
