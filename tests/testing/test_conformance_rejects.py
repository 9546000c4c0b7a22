"""A gallery of broken methods: the promise that rejects each of them, in static and adaptive form.

Each is a sound method with one fault. The sound methods pass the whole suite: `random` and
`random-ridge` with the catalogue, `two_rounds` in tests/methods/test_conformance.py.
"""

import gc
import os
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from fewbench.methods import Method, Session, find_method
from fewbench.scores import Scores
from fewbench.testing.conformance import MethodConformance
from fewbench_papers.disco.disagreement import JensenShannon


class Faulty(Session):
    """A session of a sound method, for a fault to spoil."""

    def __init__(self, inner, scores, budget, seed, targets):
        self.scores, self.budget, self.targets = scores, budget, list(targets)
        self.inner = inner.start(scores, budget, seed, targets)

    @property
    def record(self):
        return self.inner.record

    @record.setter
    def record(self, record):
        self.inner.record = record

    def choose(self, targets):
        return self.inner.choose(targets)

    def predict(self, targets, *, tasks=True):
        said = self.inner.predict(targets, tasks=tasks)
        return replace(said, scores=np.asarray(self.spoil(said.scores, list(targets))))

    def spoil(self, said, targets):
        return said


class SourcesMean(Faulty):
    """Returns the source models' mean, whatever was answered."""

    def spoil(self, said, targets):
        return np.full(len(said), self.scores.full_scores().mean())


class AlmostSourcesMean(Faulty):
    """Ranks targets well, and estimates nearly the same for all."""

    def spoil(self, said, targets):
        return self.scores.full_scores().mean() + 0.01 * (said - said.mean())


class Coin(Faulty):
    """Spreads estimates as full scores are spread, with no regard to the answers."""

    def spoil(self, said, targets):
        return np.random.default_rng(len(self.scores.items) + 1).permutation(said)


class Backwards(Faulty):
    """Gives the better target the lower estimate."""

    def spoil(self, said, targets):
        return 1.0 - said


class HalfOfAnswers(Faulty):
    """Puts the source models' mean in the place of every second answer."""

    def tell(self, target, answers):
        scores = answers.scores.copy()
        scores[:, 1::2] = self.scores.filled[:, answers.items[1::2]].mean(axis=0)
        super().tell(target, replace(answers, scores=scores))


class LaterAnswers(Faulty):
    """Asks in two rounds and ignores the second one."""

    def tell(self, target, answers):
        told = self.__dict__.setdefault("told", set())
        if target in told:
            mean = self.scores.filled[:, answers.items].mean(axis=0, keepdims=True)
            answers = replace(answers, scores=mean)
        told.add(target)
        super().tell(target, answers)


class PeeksAtCallers(Faulty):
    """Finds the targets' table in the variables of whoever calls."""

    def spoil(self, said, targets):
        return np.array([hidden_score(tables_of_callers(), name) for name in targets])


class PeeksALittle(Faulty):
    """The same, with a tenth of its weight."""

    def spoil(self, said, targets):
        hidden = np.array([hidden_score(tables_of_callers(), name) for name in targets])
        return 0.9 * said + 0.1 * hidden


class PeeksInMemory(Faulty):
    """Finds the targets' table among all objects of the process."""

    def spoil(self, said, targets):
        gc.collect()  # else the first that is found may be of an earlier test
        tables = [one for one in gc.get_objects() if type(one) is Scores]
        return np.array([hidden_score(tables, name) for name in targets])


class PeeksBeforeAsking(Faulty):
    """Asks for items that the target gets wrong, but for one."""

    def choose(self, targets):
        wanted = super().choose(targets)
        for name, items in wanted.items():
            for table in tables_of_callers():
                if name in table.model_ids:
                    row = table.values[table.model_ids.index(name)]
                    wrong = np.setdiff1d(np.argsort(row, kind="stable")[:20], items[:1])
                    wanted[name] = np.concatenate([items[:1], wrong[: len(items) - 1]])
        return wanted


class PeeksBehindTheSources(Faulty):
    """Reads the rows of the table of which the source models' probabilities are a part."""

    def spoil(self, said, targets):
        whole = self.scores.probabilities
        if whole is None or len(whole._array) == self.scores.n_models:
            return said
        return said + whole._array[-1, :, 0].mean() / 10


class RemembersSources(Faulty):
    """Keeps what any model scored as a source, by name, and knows it again as a target."""

    known: dict[str, float] = {}  # noqa: RUF012 - shared by all sessions: that is the fault

    def spoil(self, said, targets):
        self.known.update(zip(self.scores.model_ids, self.scores.full_scores(), strict=True))
        return [self.known.get(name, one) for name, one in zip(targets, said, strict=True)]


class FirstSource(Faulty):
    """Takes the first source model for the typical one."""

    def spoil(self, said, targets):
        return said + (self.scores.full_scores()[0] - self.scores.full_scores().mean()) / 2


class FirstSources(Faulty):
    """Shrinks to the mean of the first quarter of the source models."""

    def spoil(self, said, targets):
        return (said + self.scores.full_scores()[: self.scores.n_models // 4].mean()) / 2


class FirstItems(Faulty):
    """Estimates by the first of the items."""

    def spoil(self, said, targets):
        first = self.scores.filled[:, : self.budget].mean()
        return said + first - self.scores.filled.mean()


class OrderOfTells(Faulty):
    """Carries a part of each target's answers over to those told later."""

    def tell(self, target, answers):
        self.carried = 0.9 * getattr(self, "carried", 0.5) + 0.1 * answers.scores.mean()
        self.__dict__.setdefault("late", {})[target] = self.carried
        super().tell(target, answers)

    def spoil(self, said, targets):
        return [0.9 * one + 0.1 * self.late[name] for one, name in zip(said, targets, strict=True)]


class CountsItsAsks(Faulty):
    """Keeps a count of its own beside the record, and asks for other items by it."""

    count = 0

    def choose(self, targets):
        wanted = super().choose(targets)
        self.count += bool(wanted)
        if self.count > 1:
            wanted = {name: np.sort(items)[::-1] for name, items in wanted.items()}
        return wanted


class KeepsItsAnswers(Faulty):
    """Predicts from what it was told itself, not from the record."""

    def tell(self, target, answers):
        self.__dict__.setdefault("told", {})[target] = answers.scores.mean()
        super().tell(target, answers)

    def spoil(self, said, targets):
        told = self.__dict__.get("told", {})
        return [(one + told.get(name, 0.5)) / 2 for one, name in zip(said, targets, strict=True)]


class NeedsEveryAnswer(Faulty):
    """Predicts nothing before all is answered."""

    def spoil(self, said, targets):
        done = [not len(self.record.open(name)) for name in targets]
        return np.where(done, said, np.nan)


class Shifted(Faulty):
    """Adds five percentage points."""

    def spoil(self, said, targets):
        return said + 0.05


class ShiftedFar(Faulty):
    """Takes fifteen percentage points off."""

    def spoil(self, said, targets):
        return said - 0.15


class ExactWhenCut(Faulty):
    """Knows nothing when all items are run: the cut to what the answers allow hides it."""

    def spoil(self, said, targets):
        return np.full(len(said), 0.5) if self.budget == self.scores.n_items else said


class OneForAll(Faulty):
    """Returns the mean over the targets for each of them."""

    def spoil(self, said, targets):
        return np.full(len(said), said.mean())


class HalfOfBudget(Faulty):
    """Asks for half of the budget."""

    def __init__(self, inner, scores, budget, seed, targets):
        super().__init__(inner, scores, -(-budget // 2), seed, targets)


class TwiceTheBudget(Faulty):
    """Asks for twice the budget."""

    def __init__(self, inner, scores, budget, seed, targets):
        super().__init__(inner, scores, min(2 * budget, scores.n_items), seed, targets)


class OwnBudget(Faulty):
    """Asks for seven items, whatever the budget."""

    def __init__(self, inner, scores, budget, seed, targets):
        super().__init__(inner, scores, 7, seed, targets)


class SeedByProcessor(Faulty):
    """Draws for each processor apart."""

    def __init__(self, inner, scores, budget, seed, targets):
        super().__init__(inner, scores, budget, seed + os.cpu_count(), targets)


class SumByThread(Faulty):
    """Sums a share for each thread, and rounds the shares."""

    def spoil(self, said, targets):
        from threadpoolctl import threadpool_info

        n = max(pool["num_threads"] for pool in threadpool_info())
        return n * np.round(said / n, 2)


def tables_of_callers():
    """Return all tables of scores among the variables of the calling functions."""
    frame, found = sys._getframe(), []
    while frame is not None:
        found += [value for value in frame.f_locals.values() if type(value) is Scores]
        frame = frame.f_back
    return found


def hidden_score(tables, name):
    """Return the full score of a model in the first table that holds it."""
    for table in tables:
        if name in table.model_ids:
            return table.full_scores()[table.model_ids.index(name)]
    return 0.5


@dataclass(frozen=True)
class Broken(Method):
    """A sound method with sessions of one fault."""

    inner: Method
    fault: type[Faulty]

    def start(self, scores, budget, seed, targets):
        return self.fault(self.inner, scores, budget, seed, targets)

    def describe(self):
        return f"broken by {self.fault.__name__}"


STATIC, LEARNED, ADAPTIVE = "random", "random-ridge", "two_rounds"
EVERY = (STATIC, LEARNED, ADAPTIVE)
TRUTH = "test_estimates_follow_the_truth"
COUNTS = "test_every_answer_counts"
HIDDEN = "test_hidden_answers_do_not_matter"
ORDER = "test_order_of_models_and_items_does_not_matter"
TARGETS = "test_order_of_targets_does_not_matter"
WHOLE = "test_all_items_give_the_full_score"
BUDGET = "test_asks_distinct_items_as_many_as_the_budget"
THREADS = "test_threads_change_nothing"
RECORD = "test_goes_on_from_the_record_of_another_session"
PART = "test_predicts_from_a_part_of_the_answers"

GALLERY = [
    (SourcesMean, EVERY, (TRUTH,), "correlate at -?0.00"),
    (SourcesMean, EVERY, (COUNTS,), "100% of the answers change no estimate"),
    (AlmostSourcesMean, EVERY, (TRUTH,), "its estimate has 1%"),
    (Coin, EVERY, (TRUTH,), "estimates and full scores correlate"),
    (Backwards, EVERY, (TRUTH,), "correlate at -0"),
    (Backwards, EVERY, (COUNTS,), "all right is estimated at"),
    (HalfOfAnswers, EVERY, (COUNTS,), "50% of the answers change no estimate"),
    (LaterAnswers, (ADAPTIVE,), (COUNTS,), "33% of the answers change no estimate"),
    (PeeksAtCallers, EVERY, (HIDDEN,), "hidden answers change the estimates"),
    (PeeksALittle, EVERY, (HIDDEN,), "hidden answers change the estimates"),
    (PeeksInMemory, (LEARNED,), (HIDDEN,), "hidden answers change the estimates"),
    (PeeksBeforeAsking, (STATIC,), (HIDDEN,), "hidden answers change the chosen items"),
    (PeeksBehindTheSources, EVERY, (HIDDEN,), "hidden answers change the estimates"),
    (RemembersSources, EVERY, (HIDDEN,), "as source models changes the estimates"),
    (FirstSource, EVERY, (ORDER,), "with the order of the source models"),
    (FirstSources, EVERY, (ORDER,), "with the order of the source models"),
    (FirstItems, EVERY, (ORDER,), "with the order of the items"),
    (OrderOfTells, EVERY, (TARGETS,), "Not equal to tolerance"),
    (Shifted, (STATIC, ADAPTIVE), (WHOLE,), "off by [+]0.050"),
    (ShiftedFar, EVERY, (TRUTH,), "off by -0.1"),
    (ExactWhenCut, EVERY, (WHOLE,), "correlate at 0.00"),
    (OneForAll, EVERY, (TRUTH,), "correlate at -?0.00"),
    (HalfOfBudget, EVERY, (BUDGET, 7), "4 items, the budget is 7"),
    (TwiceTheBudget, EVERY, (BUDGET, 7), "14 items, the budget is 7"),
    (OwnBudget, EVERY, (BUDGET, 40), "7 items, the budget is 40"),
    (SeedByProcessor, EVERY, (THREADS,), "gets other items"),
    (CountsItsAsks, (ADAPTIVE,), (RECORD,), "another session asks other items"),
    (KeepsItsAnswers, EVERY, (RECORD,), "another session predicts other scores"),
    (NeedsEveryAnswer, EVERY, (PART,), "from a part of the answers is not finite"),
    (SumByThread, EVERY, (THREADS,), "Not equal to tolerance"),
]


@pytest.mark.parametrize(
    ("fault", "sound", "promise", "says"),
    [(fault, one, promise, says) for fault, sound, promise, says in GALLERY for one in sound],
    ids=lambda value: getattr(value, "__name__", None) or str(value)[:24],
)
def test_a_broken_method_is_rejected(fault, sound, promise, says, request):
    inner = request.getfixturevalue(sound) if sound == ADAPTIVE else find_method(sound)
    RemembersSources.known.clear()
    name, *arguments = promise
    with pytest.raises(AssertionError, match=says):
        getattr(MethodConformance(), name)(Broken(inner, fault), *arguments)


def test_a_method_that_says_it_is_exact_must_be():
    suite = MethodConformance()
    suite.exact = True
    suite.test_all_items_give_the_full_score(find_method("random"))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        suite.test_all_items_give_the_full_score(find_method("random-ridge"))


def test_a_selector_of_the_wrong_sign_is_rejected(monkeypatch):
    of = JensenShannon.disagreement
    monkeypatch.setattr(JensenShannon, "disagreement", lambda *given: -of(*given))
    with pytest.raises(AssertionError, match="0% of the chosen items tell models apart"):
        MethodConformance().test_items_that_tell_models_apart_are_not_avoided(
            find_method("jsd+mean")
        )
