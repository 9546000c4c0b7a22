"""Methods in which targets wait for one another: they choose by the answers of all targets."""

import numpy as np

from fewbench.evaluation import Evaluation
from fewbench.methods import Method, Prediction, Session
from fewbench.testing import simulate
from fewbench.uncertainty.replay import replay

TABLE = simulate(14, 30, seed=2)
SOURCES, TARGETS = TABLE.take(models=range(12)), TABLE.take(models=[12, 13])
NAMES = TARGETS.model_ids
PROBE = np.arange(3)


class Together(Method):
    """A probe for each target; then, once all have answered, three items by their mean answer."""

    targets_apart = False

    def start(self, scores, budget, seed, targets):
        return TogetherSession(scores, targets)

    def describe(self):
        return "together"


class TogetherSession(Session):
    def __init__(self, scores, targets):
        super().__init__(targets, scores.n_items)
        self.scores = scores

    def choose(self, targets):
        rounds = {target: len(self.record.rounds(target)) for target in targets}
        probed = np.array([self.record.scores(target)[PROBE] for target in self.record.targets])
        if np.isnan(probed).any():
            return {t: PROBE if r == 0 else PROBE[:0] for t, r in rounds.items() if r < 2}
        first = 3 + round(20 * float(probed.mean()))
        return {t: np.arange(first, first + 3) for t, r in rounds.items() if r == 1}

    def predict(self, targets, *, tasks=True):
        means = [self.record.answers(target).scores.mean() for target in targets]
        per_task = np.repeat(np.array(means)[:, None], len(self.scores.tasks), axis=1)
        return Prediction(np.array(means), per_task if tasks else None)


def test_a_target_that_waits_is_estimated_from_what_it_answered():
    evaluation = Evaluation(SOURCES, Together(), 6, NAMES)
    evaluation.tell_table(TARGETS.take(models=[0]), NAMES[0])
    assert set(evaluation.ask()) == {NAMES[1]}
    assert (evaluation.waiting(), evaluation.finished()) == ([NAMES[0]], [])
    assert evaluation.estimate(targets=[NAMES[0]])[NAMES[0]].items_run == 3
    while evaluation.ask():
        evaluation.tell_table(TARGETS)
    assert all(one.items_run == 6 for one in evaluation.estimate().values())


def test_a_replay_plays_it_to_the_end():
    said = replay(Together(), SOURCES, TARGETS, 6, 0)
    assert [len(items) for items in said.items] == [6, 6]
