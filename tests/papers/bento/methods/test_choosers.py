"""Choosers of tasks, each against what it promises."""

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.scores import from_arrays
from fewbench_papers.bento import Similarity, TaskMatrix, read_chooser
from fewbench_papers.bento.choosers import (
    CHOOSERS,
    BentoLe,
    BentoSim,
    ListedTasks,
    fitted_one_by_one,
)
from fewbench_papers.bento.facility_location import coverage

NAMES = ("a", "b, (c)", "d|e", "f+g", "h=%2C", "ï j")


def matrix(n=9, seed=0, **more):
    rng = np.random.default_rng(seed)
    rows = rng.random((n, n)) * 0.2 + 0.3
    names = more.pop("names", tuple(f"task {at}" for at in range(n)))
    sizes = rng.integers(5, 50, n)
    return TaskMatrix(rows, names, sizes, rows.mean(axis=0), more.pop("kind", "made up"), **more)


def order(text, given, k, seed=0):
    return read_chooser(text).order(given, k, seed)


@pytest.mark.parametrize(
    "name", sorted(set(CHOOSERS) - {"tasks-listed", "tasks-fit", "tasks-ridge"})
)
def test_k_different_tasks_and_the_same_again(name):
    for k in (1, 2, 5, 8, 9):
        found = order(name, matrix(), k, 4)
        assert len(set(found.tasks.tolist())) == k == len(found.tasks)
        assert 0 <= found.tasks.min() <= found.tasks.max() < 9
        assert np.array_equal(found.tasks, order(name, matrix(), k, 4).tasks)


@pytest.mark.parametrize("text", ["bento-sim", "bento-le(components=4)", "tasks-random"])
def test_what_is_called_nested_is(text):
    whole = order(text, matrix(), 9)
    assert whole.nested
    for k in range(1, 9):
        found = order(text, matrix(), k)
        assert found.nested
        assert np.array_equal(found.tasks, whole.tasks[:k])


def test_random_sets_are_equally_likely():
    counts = {}
    for seed in range(2000):
        drawn = frozenset(order("tasks-random", matrix(5), 2, seed).tasks.tolist())
        counts[drawn] = counts.get(drawn, 0) + 1
    assert len(counts) == 10
    assert sum((n - 200) ** 2 / 200 for n in counts.values()) < 27.9  # χ²(9), p = 0.001


def test_gains_and_coverage():
    given = matrix()
    found = order("bento-sim(scaling=sum)", given, 4)
    s = Similarity("sum").sim(given.rows)
    assert (
        found.coverage
        == pytest.approx(coverage(s, found.tasks))
        == pytest.approx(found.gains.sum())
    )


@pytest.mark.parametrize("printed", [False, True])
def test_bento_le_is_the_authors_program_or_the_printed_equations(printed):
    """Eq. 4 with the diagonal, and Eq. 5 without a floor, by plain loops; or without and with."""
    given = matrix(12, 3)
    s = Similarity().sim(given.rows)
    graph = s if printed else s - np.diag(np.diag(s))
    root = 1 / np.sqrt(graph.sum(axis=1))
    a = np.linalg.eigh(np.eye(12) - root[:, None] * graph * root)[1][:, :4]
    unit = a / np.linalg.norm(a, axis=1, keepdims=True)
    cosines, chosen = unit @ unit.T, []

    def value(some):
        best = cosines[:, some].max(axis=1)
        return (best if printed else np.maximum(best, 0)).sum()

    for _ in range(5):
        rest = [task for task in range(12) if task not in chosen]
        chosen.append(max(rest, key=lambda task: value([*chosen, task])))
    found = order(f"bento-le(components=4,printed={str(printed).lower()})", given, 5)
    assert found.tasks[:4].tolist() == chosen[:4]  # at the fifth, two tasks are as good
    assert found.coverage == pytest.approx(value(chosen)) == pytest.approx(found.gains.sum())


def test_ties_are_told_and_go_by_position():
    rows = np.zeros((6, 6))
    given = TaskMatrix(rows, tuple("abcdef"), np.ones(6, dtype=int), None, "x")
    found = order("bento-sim", given, 2)
    assert found.tasks.tolist() == [0, 1]
    assert any("at choice 1 a second task is as good" in note for note in found.notes)
    assert order("bento-sim(tie=last)", given, 2).tasks.tolist() == [5, 4]
    assert not order("bento-sim", matrix(), 4).notes


def test_an_embedding_in_which_tasks_are_not_similar_is_told():
    def told(components):
        notes = order(f"bento-le(components={components})", matrix(30), 2).notes
        return any("hardly any two tasks are similar" in note for note in notes)

    assert [told(components) for components in (5, 10, 29)] == [False, False, True]


def test_listed_tasks_are_taken_in_their_order():
    given = matrix(6, names=NAMES)
    written = "tasks-listed(names=%C3%AF j|b%2C %28c%29|h=%252C|d%7Ce|f%2Bg)"
    found = order(written, given, 4)
    assert [given.names[task] for task in found.tasks] == ["ï j", "b, (c)", "h=%2C", "d|e"]
    assert order(written, given, 2).tasks.tolist() == found.tasks[:2].tolist()


@pytest.mark.parametrize(
    ("names", "k", "said"),
    [
        ("a|x|y", 2, "no such task: 'x', 'y'"),
        ("a|a", 2, "listed twice"),
        ("a|%61", 2, "listed twice"),
        ("a", 2, "1 tasks are listed, but 2 are needed"),
        ("", 1, "0 tasks are listed"),
    ],
)
def test_lists_that_do_not_fit(names, k, said):
    with pytest.raises(MethodError, match=said):
        ListedTasks(names).order(matrix(6, names=NAMES), k, 0)


def past(values, **more):
    values = np.asarray(values, dtype=float)
    tasks = [f"t{at}" for at in range(values.shape[1])]
    models = [f"m{at}" for at in range(len(values))]
    scores = from_arrays(values, models=models, tasks=tasks)
    return TaskMatrix.of_scores(scores.averaged(more.get("average", "micro")))


@pytest.mark.parametrize("seed", range(4))
def test_fitted_tasks_come_nearest_the_full_scores(seed):
    """No exchange of one task lowers the error; a single task is the best of all."""
    given = past(np.random.default_rng(seed).random((6, 8)))
    w, full = given.weights, given.weights @ given.rows

    def error(some):
        some = list(some)
        return (((w[some] @ given.rows[some]) / w[some].sum() - full) ** 2).mean()

    assert error(order("tasks-fit", given, 1).tasks) == min(error([task]) for task in range(8))
    found = set(order("tasks-fit", given, 3).tasks.tolist())
    weighted = given.rows * w[:, None]
    plain = fitted_one_by_one(weighted, w, full, 3)
    assert error(found) <= error(plain) + 1e-15
    swaps = [found - {out} | {other} for out in found for other in set(range(8)) - found]
    assert all(error(some) >= error(found) - 1e-14 for some in swaps)
    for step in range(3):
        tried = [error([*plain[:step], other]) for other in range(8) if other not in plain[:step]]
        assert error(plain[: step + 1]) == pytest.approx(min(tried), abs=1e-15)


def test_fitted_tasks_need_past_scores():
    with pytest.raises(MethodError, match=r"these are made up .*give scores"):
        order("tasks-fit", matrix(), 2)
    assert sorted(order("tasks-fit", past(np.eye(4)), 4).tasks.tolist()) == [0, 1, 2, 3]


def test_a_mean_over_tasks_counts_every_task_the_same():
    values = np.random.default_rng(0).random((4, 6))
    scores = from_arrays(values, models=list("abcd"), tasks=["x", "x", "x", "y", "y", "z"])
    micro = TaskMatrix.of_scores(scores)
    macro = TaskMatrix.of_scores(scores.averaged("macro"))
    np.testing.assert_allclose(micro.weights, [3 / 6, 2 / 6, 1 / 6])
    np.testing.assert_allclose(macro.weights, [1 / 3] * 3)
    np.testing.assert_allclose(macro.weights @ macro.rows, scores.averaged("macro").full_scores())
    np.testing.assert_allclose(micro.weights @ micro.rows, scores.full_scores())


@pytest.mark.parametrize(
    ("chooser", "said"),
    [
        (BentoSim(scaling="log"), "scaling is 'log'"),
        (BentoSim(tie="middle"), "tie is 'middle'"),
        (BentoLe(components=9), "9 eigenvectors of 9"),
        (BentoLe(components=-1), "components is -1"),
    ],
)
def test_settings_that_do_not_fit(chooser, said):
    with pytest.raises(MethodError, match=said):
        chooser.order(matrix(), 3, 0)


def test_tasks_that_cannot_be_compared():
    with pytest.raises(MethodError, check=lambda error: error.kind == "too-few"):
        TaskMatrix(np.ones((1, 2)), ("a",), np.ones(1, dtype=int), None, "x")
    with pytest.raises(MethodError, match="some of the tasks' x is missing"):
        TaskMatrix(np.full((2, 2), np.nan), ("a", "b"), np.ones(2, dtype=int), None, "x")


def test_tasks_for_ridge_leave_whole_families_out():
    """A task that tells families apart, and nothing else, is of no use for a new family."""
    rng = np.random.default_rng(1)
    family = np.repeat(np.arange(8), 4)
    level = rng.random(8)[family]
    rows = np.stack([level + 0.05 * rng.normal(size=32), rng.random(8)[family], rng.random(32)])
    given = TaskMatrix(
        rows, ("a", "b", "c"), np.array([5, 5, 5]), None, "scores of source models",
        families=tuple(map(str, family)),
    )  # fmt: skip
    assert given.groups.tolist() == family.tolist()
    assert len(set(order("ridge", given, 3).tasks.tolist())) == 3
    with pytest.raises(MethodError, match="these are made up"):
        order("ridge", matrix(), 2)
