"""Results on tasks: what fits, and what the full score is."""

import numpy as np
import pytest

from fewbench.errors import StudyError
from fewbench.study.tasks import TaskResults
from fewbench.testing import simulate

S = np.array([[0.2, 0.4, 0.9], [0.5, 0.5, 0.0]])
SIZES = np.array([10, 30, 60])


def made(scores=S, models=("a", "b"), tasks=("x", "y", "z"), sizes=SIZES, **more):
    return TaskResults(np.array(scores, dtype=float), models, tasks, np.array(sizes), **more)


def test_full_and_reduced_scores_by_questions_and_by_tasks():
    by_questions, by_tasks = made(), made(weigh="tasks")
    np.testing.assert_allclose(by_questions.weights, [0.1, 0.3, 0.6])
    np.testing.assert_allclose(by_questions.full, [0.02 + 0.12 + 0.54, 0.2])
    np.testing.assert_allclose(by_tasks.full, [0.5, 1 / 3])
    chosen = np.array([2, 0])
    np.testing.assert_allclose(by_questions.reduced(chosen), [(54 + 2) / 70, 5 / 70])
    np.testing.assert_allclose(by_tasks.reduced(chosen), [0.55, 0.25])
    np.testing.assert_allclose(by_tasks.reduced(np.array([0, 0, 2])), [1.3 / 3, 1 / 3])
    np.testing.assert_allclose(by_questions.reduced(np.arange(3)), by_questions.full)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_of_single_questions(average, missing):
    scores = simulate(7, 50, 4, seed=2, missing=missing).averaged(average)
    found = TaskResults.of_scores(scores)
    np.testing.assert_allclose(found.full, scores.full_scores())
    assert found.weigh == ("questions" if average == "micro" else "tasks")
    assert found.questions is scores
    assert found.sizes.sum() == 50


def test_a_mean_that_rounds_to_more_than_1_is_1():
    assert made(scores=[[1 + 1e-15, 1, 1], [0, 0.5, 0]]).full[0] == pytest.approx(1)


def test_positions():
    assert made().positions(("z", "x")).tolist() == [2, 0]
    with pytest.raises(StudyError, match=r"no task 'w' .*theirs are 'x', 'y', 'z'"):
        made().positions(("z", "w"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scores": S[:, :2]}, r"shape \(2, 2\), not \(2, 3\)"),
        ({"models": ("a",)}, "shape"),
        ({"sizes": SIZES[:2]}, "shape"),
        ({"scores": np.zeros((0, 3)), "models": ()}, "shape"),
        ({"scores": [[0.1, 0.2, 0.3], [0.1, np.nan, 0.3]]}, "no score of b on y"),
        ({"scores": [[0.1, np.inf, 0.3], [0.1, 0.2, 0.3]]}, "no score of a on y"),
        ({"scores": 100 * S}, r"a has 20 on x: .*divide percentages by 100"),
        ({"scores": S - 0.3}, "a has -0.1 on x: scores are from 0 to 1"),
        ({"scores": np.zeros((2, 3))}, "every full score is 0"),
    ],
)
def test_what_does_not_fit(changes, said):
    with pytest.raises(StudyError, match=said):
        made(**changes)
