"""Past models judged by choices without them, and the number of tasks where tasks cost."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import StudyError
from fewbench.testing import simulate
from fewbench_papers.bento import TaskMatrix, TaskResults, read_chooser
from fewbench_papers.bento.held_out import CostlyTasks, HeldOutTasks


@pytest.fixture(scope="module")
def past():
    return simulate(24, 300, 8, seed=6)


def parts_of(scores, ridge):
    return HeldOutTasks(TaskResults.of_scores(scores), TaskMatrix.of_scores(scores), ridge)


@pytest.mark.parametrize(("method", "ridge"), [("fit", False), ("ridge", True)])
def test_nothing_of_a_model_or_its_family_goes_into_its_own_estimate(past, method, ridge):
    """Other scores of a family change its own estimates only through its chosen tasks' scores."""
    parts = parts_of(past, ridge)
    family = past.models["family"].to_numpy()
    for part in parts.parts:
        assert not set(family[part]) & set(np.delete(family, part))
    first = parts.orders(read_chooser(method), [3])[3]
    part, chosen = parts.parts[0], first[0]
    changed = past.values.copy()
    others = ~np.isin(past.task_of, chosen)
    changed[np.ix_(part, np.flatnonzero(others))] = 1 - changed[np.ix_(part, others.nonzero()[0])]
    again = parts_of(replace(past, values=changed), ridge)
    second = again.orders(read_chooser(method), [3])[3]
    np.testing.assert_array_equal(second[0], chosen)
    np.testing.assert_allclose(
        again.estimates(second)[part], parts.estimates(first)[part], atol=1e-12
    )


def test_one_family_cannot_be_held_out(past):
    with pytest.raises(StudyError, check=lambda error: error.kind == "too-few"):
        parts_of(past.take(models=[0, 1]), False)


def test_dear_tasks_are_fewer_and_the_estimate_looks_at_their_questions_alone(past):
    cheap, dear = (CostlyTasks(80, cost).plan(past) for cost in (0, 25))
    assert dear.k <= 3 < max(cheap.errors)
    assert dear.questions == {1: 55, 2: 30, 3: 5}[dear.k]
    costly = CostlyTasks(80, 25)
    sources, target = past.take(models=range(22)), past.values[22:]
    tasks = np.array([1, 4])
    subset = costly.subset(sources, tasks)
    at = past.positions(subset.items)
    assert len(at) == 30
    assert set(past.task_of[at]) == {1, 4}
    hidden = np.full_like(target, np.nan)
    hidden[:, at] = target[:, at]
    np.testing.assert_array_equal(
        costly.estimate(sources, hidden, tasks), costly.estimate(sources, target, tasks)
    )


def test_ridge_on_chosen_tasks_beats_their_mean(past):
    """What the choice is for: it is near the full score only through the ridge."""
    truth = past.full_scores()
    ridge, mean = parts_of(past, True), parts_of(past, False)
    errors = [
        np.abs(parts.estimates(parts.orders(read_chooser("ridge"), [3])[3]) - truth).mean()
        for parts in (ridge, mean)
    ]
    assert errors[0] < 0.8 * errors[1]
