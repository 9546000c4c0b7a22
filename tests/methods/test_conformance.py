"""The conformance suite itself: an outsider's method passes, and broken ones are caught."""

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.methods import Method, Prediction, Session, StaticMethod, find_method
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.selection.random import Random
from fewbench.testing import simulate
from fewbench.testing.conformance import MethodConformance, play


class TestTwoRounds(MethodConformance):
    @pytest.fixture
    def method(self, two_rounds):
        return two_rounds


class Wrapped(Method, Session):
    """A method of the plain mean that is its own session, for the broken ones to spoil."""

    def __init__(self):  # the record is made when it starts
        pass

    def start(self, scores, budget, seed, targets):
        self.scores = scores
        self.inner = StaticMethod(Random(), Mean()).start(scores, budget, seed, targets)
        return self

    @property
    def record(self):
        return self.inner.record

    @record.setter
    def record(self, record):
        self.inner.record = record

    def choose(self, targets):
        return self.inner.choose(targets)

    def predict(self, targets, *, tasks=True):
        return self.inner.predict(targets, tasks=tasks)

    def describe(self):
        return "broken"


class AsksTwice(Wrapped):
    def ask(self):
        return {target: np.append(items[:-1], items[0]) for target, items in super().ask().items()}


class AsksOtherwise(Wrapped):
    def ask(self):
        return {target: np.random.permutation(items) for target, items in super().ask().items()}  # noqa: NPY002


class AsksBeyond(Wrapped):
    def ask(self):
        return {target: items + 1 for target, items in super().ask().items()}


class AsksTheSame(Wrapped):
    def choose(self, targets):
        return {target: np.array([0]) for target in targets}


class NeverStops(Wrapped):
    def start(self, scores, budget, seed, targets):
        self.first = targets[0]
        return super().start(scores, budget, seed, targets)

    def ask(self):
        return {self.first: np.array([0])}


class PredictsNaN(Wrapped):
    def predict(self, targets, *, tasks=True):
        return Prediction(np.full(len(targets), np.nan))


class NoTasks(Wrapped):
    def predict(self, targets, *, tasks=True):
        return Prediction(super().predict(targets).scores)


class Unseeded(Wrapped):
    def start(self, scores, budget, seed, targets):
        return super().start(scores, budget, int(np.random.default_rng().integers(2**31)), targets)


class GlobalRandom(Wrapped):
    def predict(self, targets, *, tasks=True):
        np.random.random()  # noqa: NPY002
        return super().predict(targets, tasks=tasks)


class SharedState(Wrapped):
    """`start` returns the method itself."""


class SpoilsSources(Wrapped):
    def start(self, scores, budget, seed, targets):
        scores.values.flags.writeable = True
        scores.values[0, 0] = 1 - scores.values[0, 0]
        return super().start(scores, budget, seed, targets)


class OrderMatters(Wrapped):
    def predict(self, targets, *, tasks=True):
        said = super().predict(targets, tasks=tasks)
        return Prediction(said.scores + 0.01 * np.arange(len(targets)), said.tasks)


class TargetsMatter(Wrapped):
    def predict(self, targets, *, tasks=True):
        said = super().predict(targets, tasks=tasks)
        return Prediction(said.scores / 2 + said.scores.mean() / 2, said.tasks)


class ScaleMatters(Wrapped):
    def predict(self, targets, *, tasks=True):
        said = super().predict(targets, tasks=tasks)
        return Prediction(np.asarray(self.scores.scale.from_unit(said.scores)), said.tasks)


class AlwaysMicro(Wrapped):
    def start(self, scores, budget, seed, targets):
        return super().start(scores.averaged("micro"), budget, seed, targets)


class WorseWithMore(Wrapped):
    def start(self, scores, budget, seed, targets):
        self.n = budget
        return super().start(scores, budget, seed, targets)

    def predict(self, targets, *, tasks=True):
        said = super().predict(targets, tasks=tasks)
        far = 0.02 * self.n * np.sign(said.scores - 0.5)  # the more items, the farther off
        return Prediction(said.scores + far, said.tasks)


class NoIdea(Wrapped):
    def predict(self, targets, *, tasks=True):
        said = super().predict(targets, tasks=tasks)
        return Prediction(1.0 - said.scores, said.tasks)


class NeedsVariety(Wrapped):
    def start(self, scores, budget, seed, targets):
        if not np.ptp(scores.filled, axis=0).all():
            raise ZeroDivisionError
        return super().start(scores, budget, seed, targets)


class NeedsWhole(Wrapped):
    def start(self, scores, budget, seed, targets):
        if scores.has_missing or scores.n_models < 3:
            raise IndexError
        return super().start(scores, budget, seed, targets)


BROKEN = {
    AsksTwice: [("test_asks_distinct_items_as_many_as_the_budget", 7)],
    AsksOtherwise: [("test_asks_distinct_items_as_many_as_the_budget", 7)],
    AsksBeyond: [("test_asks_distinct_items_as_many_as_the_budget", 40)],
    NeverStops: [("test_asks_distinct_items_as_many_as_the_budget", 1)],
    PredictsNaN: [("test_asks_distinct_items_as_many_as_the_budget", 7)],
    NoTasks: [("test_same_seed_same_answer",)],
    Unseeded: [("test_same_seed_same_answer",), ("test_hidden_answers_do_not_matter",)],
    GlobalRandom: [("test_same_seed_same_answer",)],
    SharedState: [("test_sessions_do_not_disturb_each_other",)],
    SpoilsSources: [("test_sources_are_left_alone",)],
    OrderMatters: [
        ("test_order_of_targets_does_not_matter",),
        ("test_predicts_the_targets_that_are_named_in_that_order",),
    ],
    TargetsMatter: [("test_one_target_alone_gets_what_it_gets_among_others",)],
    ScaleMatters: [("test_scale_changes_nothing_inside",)],
    AlwaysMicro: [("test_estimates_the_average_that_is_asked_for",)],
    WorseWithMore: [("test_estimates_follow_the_truth",)],
    NoIdea: [("test_tables_of_every_shape", {})],
    NeedsVariety: [("test_constant_answers", "items")],
    NeedsWhole: [("test_missing_cells_in_sources",), ("test_few_sources", 2)],
}


@pytest.mark.parametrize(
    ("broken", "test"), [(broken, test) for broken, tests in BROKEN.items() for test in tests]
)
def test_a_broken_method_is_caught(broken, test):
    name, *arguments = test
    with pytest.raises((AssertionError, ValueError, KeyError, ZeroDivisionError, IndexError)):
        getattr(MethodConformance(), name)(broken(), *arguments)


def test_a_session_that_chooses_the_same_again_does_not_run_for_ever():
    with pytest.raises(MethodError, check=lambda error: error.kind == "repeated"):
        MethodConformance().test_asks_distinct_items_as_many_as_the_budget(AsksTheSame(), 1)


class Frugal(Wrapped):
    """Stops at half of the budget."""

    def start(self, scores, budget, seed, targets):
        return StaticMethod(Random(), Mean()).start(scores, -(-budget // 2), seed, targets)


def test_a_method_may_stop_early_if_it_says_so():
    table = simulate(10, 20)
    sources, targets = table.take(models=np.arange(8)), table.take(models=[8, 9])
    assert len(play(Frugal(), sources, targets, 6, whole_budget=False).asked["model-09"]) == 3
    with pytest.raises(AssertionError, match=r"3 items.*6"):
        play(Frugal(), sources, targets, 6)


def test_simulated_tables_are_as_told():
    scores = simulate(10, 50, 4, seed=2, options=6, missing=0.25)
    assert scores.tasks == [f"task-{task}" for task in range(4)]
    assert np.isnan(scores.values).mean() == pytest.approx(0.22, abs=0.05)
    n_options = scores.items["n_options"].to_numpy()
    assert n_options.min() >= 2
    assert n_options.max() == 6
    p = scores.probabilities.of_items(np.arange(50))
    assert np.array_equal(np.isnan(p[:, :, 0]), np.isnan(scores.values))
    whole = simulate(10, 50, 4, seed=2, options=6)
    run = ~np.isnan(scores.values)
    assert np.array_equal(scores.values[run], whole.values[run])
    best = whole.probabilities.of_items(np.arange(50)).argmax(axis=2)
    for item in range(50):  # those who are right agree, and the others do not say the same
        right = whole.values[:, item] == 1
        assert len(set(best[right, item])) <= 1
        assert not set(best[right, item]) & set(best[~right, item])
    assert sorted(simulate(8, 10).models["family"].value_counts()) == [2, 2, 2, 2]
    assert not simulate(4, 10, continuous=True).is_binary
    assert find_method("random").plain_sampling
