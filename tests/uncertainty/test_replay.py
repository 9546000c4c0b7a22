import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.evaluation.opening import check_budget
from fewbench.methods import find_method
from fewbench.testing import simulate
from fewbench.uncertainty.bounds import known_bounds
from fewbench.uncertainty.replay import replay


def test_the_method_is_told_what_it_asked_and_no_more(two_rounds):
    table = simulate(12, 30, options=3)
    sources, targets = table.take(models=np.arange(9)), table.take(models=np.arange(9, 12))
    told = []
    start = type(two_rounds).start

    class Watched(type(two_rounds)):
        def start(self, *args):
            session = start(self, *args)
            ask, tell = session.ask, session.tell
            session.ask = lambda: told.append(("ask", ask())) or ask()
            session.tell = lambda target, a: told.append(("tell", target, a)) or tell(target, a)
            return session

    said = replay(Watched(), sources, targets, 7, 0, tasks=True)
    assert [len(items) for items in said.items] == [7, 7, 7]
    assert said.tasks.shape == (3, 3)
    for kind, *rest in told:
        if kind == "ask":
            asked = rest[0]
            continue
        target, answers = rest
        row = targets.model_ids.index(target)
        assert np.array_equal(answers.items, asked[target])
        assert answers.scores.tolist() == [targets.values[row, answers.items].tolist()]
        options = targets.probabilities.of_items(answers.items)[[row]]
        assert np.array_equal(answers.probabilities, options)


def test_scores_are_kept_within_what_the_answers_leave_possible():
    table = simulate(12, 20, seed=3)
    values = table.values.copy()
    values[:9], values[9:] = 1.0, 0.0
    table = type(table)(values, table.models, table.items)
    sources, targets = table.take(models=np.arange(9)), table.take(models=np.arange(9, 12))
    said = replay(find_method("random-ridge"), sources, targets, 15, 0)
    np.testing.assert_allclose(said.scores, 0.25)


def test_known_bounds_never_pass_1():
    """Though the sum of as many shares does, by rounding, for some numbers of items."""
    sums = []
    for n_items in range(1, 400):
        shares, right = np.full(n_items, 1 / n_items), np.ones(n_items)
        sums.append(shares @ right)
        low, high = known_bounds(shares, np.arange(n_items), right)
        assert 1 - 1e-12 < low == high <= 1
    assert max(sums) > 1


@pytest.mark.parametrize("budget", [0, -1, 21])
def test_a_budget_that_does_not_fit(budget):
    with pytest.raises(MethodError, match="from 1 to 20"):
        check_budget(budget, 20)
