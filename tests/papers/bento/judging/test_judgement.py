"""Results of models on tasks, and errors next to those of random tasks and questions."""

from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest

from fewbench.errors import StudyError
from fewbench.methods import find_method
from fewbench.scores import from_arrays
from fewbench.study import Split
from fewbench.study.cell import Cell, run_cell
from fewbench.study.metrics import nrmse
from fewbench.testing import simulate
from fewbench_papers.bento import TaskResults, judge
from fewbench_papers.bento.judgement import (
    anchor_ratio,
    question_estimates,
    task_estimates,
)

TWO = np.array([[0.2, 0.4, 0.9], [0.5, 0.5, 0.0]])
TWO_SIZES = np.array([10, 30, 60])


def of_two(scores=TWO, models=("a", "b"), tasks=("x", "y", "z"), sizes=TWO_SIZES, **more):
    return TaskResults(np.array(scores, dtype=float), models, tasks, np.array(sizes), **more)


def test_a_mean_that_rounds_to_more_than_1_is_1():
    assert of_two(scores=[[1 + 1e-15, 1, 1], [0, 0.5, 0]]).full[0] == pytest.approx(1)


def test_positions():
    assert of_two().positions(("z", "x")).tolist() == [2, 0]
    with pytest.raises(StudyError, match=r"'w'.*'x'.*'y'.*'z'"):
        of_two().positions(("z", "w"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scores": TWO[:, :2]}, r"shape \(2, 2\) instead of \(2, 3\)"),
        ({"models": ("a",)}, "shape"),
        ({"sizes": TWO_SIZES[:2]}, "shape"),
        ({"scores": np.zeros((0, 3)), "models": ()}, "shape"),
        ({"scores": [[0.1, 0.2, 0.3], [0.1, np.nan, 0.3]]}, "b has no score on y"),
        ({"scores": [[0.1, np.inf, 0.3], [0.1, 0.2, 0.3]]}, "a has no score on y"),
        ({"scores": 100 * TWO}, r"a has 20 on x: .*divide percentages by 100"),
        ({"scores": TWO - 0.3}, "a has -0.1 on x: not from 0 to 1"),
        ({"scores": np.zeros((2, 3))}, "every full score is 0"),
    ],
)
def test_what_does_not_fit(changes, said):
    with pytest.raises(StudyError, match=said):
        of_two(**changes)


S = np.array([[0.2, 0.4, 0.9, 0.5, 0.3, 0.8], [0.5, 0.5, 0.1, 0.6, 0.2, 0.4]])
SIZES = np.array([10, 30, 60, 20, 5, 45])


def made(weigh="questions", scores=S, sizes=SIZES):
    models = tuple(f"m{at}" for at in range(len(scores)))
    tasks = tuple(f"t{at}" for at in range(scores.shape[1]))
    return TaskResults(scores, models, tasks, sizes, weigh)


def by_hand(results, chosen):
    """NRMSE as coded, by plain sums."""
    w = results.sizes if results.weigh == "questions" else np.ones(len(results.sizes))
    above = below = 0.0
    for row in results.scores:
        full = sum(row * w) / sum(w)
        said = sum(row[j] * w[j] for j in chosen) / sum(w[j] for j in chosen)
        above, below = above + (said - full) ** 2, below + full**2
    return sqrt(above / below)


def test_the_formula():
    said, full = np.array([0.5, 0.7]), np.array([0.6, 0.4])
    assert nrmse(said, full) == pytest.approx(sqrt((0.01 + 0.09) / (0.36 + 0.16)))
    assert nrmse(np.array([[0.5, 0.7], [0.6, 0.4]]), full).tolist()[1] == 0
    assert np.isnan(nrmse(np.array([0.5]), np.array([0.0])))


@pytest.mark.parametrize("weigh", ["questions", "tasks"])
@pytest.mark.parametrize("chosen", [[2], [0, 5], [4, 1, 3]])
def test_the_error_of_the_chosen(weigh, chosen):
    results = made(weigh)
    found = judge(results, np.array(chosen), draws=50)
    assert found.nrmse == pytest.approx(by_hand(results, chosen))
    assert found.random_tasks.questions == SIZES[chosen].sum()
    assert [judged.model for judged in found.models] == ["m0", "m1"]
    np.testing.assert_allclose([judged.full for judged in found.models], results.full)
    np.testing.assert_allclose(
        [judged.chosen for judged in found.models], results.reduced(np.array(chosen))
    )
    assert judge(results, np.array(chosen), draws=50) == found
    assert judge(results, np.array(chosen), 1, draws=50) != found


@pytest.mark.parametrize("weigh", ["questions", "tasks"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_random_tasks_are_all_sets_of_a_size(weigh, k):
    results = made(weigh)
    errors = np.array([by_hand(results, some) for some in combinations(range(6), k)])
    drawn = nrmse(task_estimates(results, k, 0, 4000), results.full)
    assert drawn.shape == (4000,)
    assert drawn.mean() == pytest.approx(errors.mean(), abs=4.5 * errors.std() / sqrt(4000) + 1e-9)
    assert np.abs(drawn[:, None] - errors).min(axis=1).max() < 1e-12
    if comb(6, k) > 1:
        assert len(set(np.round(drawn, 10))) == len(set(np.round(errors, 10)))


def test_the_percentile_is_the_share_of_sets_as_good_or_better():
    results = made()
    errors = {some: by_hand(results, some) for some in combinations(range(6), 2)}
    ranked = sorted(errors, key=errors.get)
    for place in (0, 7, 14):
        found = judge(results, np.array(ranked[place]), draws=3000)
        assert found.random_tasks.percentile == pytest.approx((place + 1) / 15, abs=0.04)
        assert 0 < found.random_tasks.percentile <= 1
    assert judge(results, np.array(ranked[14]), draws=3000).random_tasks.percentile == 1.0


def test_the_interval_is_over_models():
    """Half the models are judged without error, half with the same: shares of them are drawn."""
    full = np.full((200, 2), 0.5)
    full[::2] = [0.4, 0.6]
    results = made(scores=full, sizes=np.array([50, 50]))
    found = judge(results, np.array([0]), draws=2000)
    assert found.nrmse == pytest.approx(0.2 * sqrt(0.5))
    near = 0.2 * np.sqrt(0.5 + 1.645 * sqrt(0.25 / 200) * np.array([-1, 1]))
    np.testing.assert_allclose([found.low, found.high], near, atol=0.003)
    one = judge(made(scores=S[:1]), np.array([0, 1]), draws=20)
    assert one.low == pytest.approx(one.nrmse) == pytest.approx(one.high)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("n", [5, 40, 150])
def test_random_questions_without_single_questions_are_hypergeometric(average, n):
    """The same spread as drawing the questions; models answer independently of each other."""
    rng = np.random.default_rng(0)
    sizes = [40, 80, 60]
    tasks = np.repeat(["a", "b", "c"], sizes)
    chance = np.repeat([0.3, 0.6, 0.8], sizes)
    values = (rng.random((6, 180)) < chance).astype(float)
    models = [f"m{at}" for at in range(6)]
    scores = from_arrays(values, models=models, tasks=list(tasks)).averaged(average)
    known = TaskResults.of_scores(scores)
    unknown = TaskResults(known.scores, known.models, known.tasks, known.sizes, known.weigh)
    one, other = (
        nrmse(question_estimates(results, n, 3, 1500), results.full) for results in (known, unknown)
    )
    assert one.shape == other.shape == (1500,)
    assert (one**2).mean() == pytest.approx((other**2).mean(), rel=0.12)
    assert not np.array_equal(one, other)


def test_random_questions_where_they_are_known_are_those_of_the_table():
    values = np.array([[1, 0, 1, 1], [0, 0, 1, 0.0]])
    scores = from_arrays(values, models=["a", "b"], tasks=["x", "x", "y", "y"])
    drawn = nrmse(
        question_estimates(TaskResults.of_scores(scores), 1, 0, 2000), values.mean(axis=1)
    )
    each = [nrmse(values[:, at], values.mean(axis=1)) for at in range(4)]
    assert set(np.round(drawn, 9)) == set(np.round(each, 9))
    assert drawn.mean() == pytest.approx(np.mean(each), abs=4.5 * np.std(each) / sqrt(2000))


@pytest.mark.parametrize("known", [True, False])
def test_all_questions_leave_no_error(known):
    values = np.random.default_rng(1).integers(0, 2, (4, 30)).astype(float)
    models = list("abcd")
    results = TaskResults.of_scores(from_arrays(values, models=models, tasks=["x", "y", "y"] * 10))
    if not known:
        results = TaskResults(results.scores, results.models, results.tasks, results.sizes)
    assert nrmse(question_estimates(results, 30, 0, 20), results.full).max() < 1e-12
    assert judge(results, np.arange(2), draws=20).random_questions.mean < 1e-12


def test_the_anchor_ratio():
    results, anchor = made(), np.array([0.9, 0.1, 0.5, 0.4, 0.2, 0.6])
    chosen = np.array([0, 2])
    of_chosen = (0.9 * 10 + 0.5 * 60) / 70
    full = (anchor * SIZES).sum() / 170
    expected = results.reduced(chosen) * full / of_chosen
    np.testing.assert_allclose(anchor_ratio(results, chosen, anchor), expected)
    by_itself = anchor_ratio(results, chosen, results.scores[1])[1]
    assert by_itself == pytest.approx(results.full[1])
    nothing = anchor_ratio(results, chosen, np.array([0, 1, 0, 1, 1, 1.0]))
    np.testing.assert_allclose(nothing, results.reduced(chosen))


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_the_error_is_the_one_that_compare_measures(average):
    """One question, one answer: the chosen tasks as a method, with every model as a target."""
    scores = simulate(12, 120, 8, seed=3).averaged(average)
    results = TaskResults.of_scores(scores)
    chosen = results.positions(("task-1", "task-4"))
    method = find_method("tasks-listed(names=task-1|task-4,tasks=2)+mean")
    budget, everyone = int(results.sizes[chosen].sum()), Split(np.arange(12), np.arange(12))
    cell = Cell("listed", method, budget, "all", everyone, 0, 0, None, False)
    expected = run_cell(scores, cell, "").metrics["nrmse"]
    assert judge(results, chosen, draws=20).nrmse == pytest.approx(expected, rel=1e-12)
