"""Where a new model stands among the sources."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.evaluation import Evaluation
from fewbench.scores import Scale, from_arrays
from fewbench.testing import simulate
from fewbench.uncertainty.bounds import past_scores, places, ranks_among

SOURCES = simulate(15, 40, seed=4, missing=0.1)


def played(scores, answers, budget, method="random", level=0.9):
    """Estimate of one target that answers as given, whatever is asked."""
    evaluation = Evaluation(scores, method, budget, ["new"])
    told = dict(zip(scores.item_ids, answers, strict=True))
    asked = evaluation.ask()["new"]
    evaluation.tell("new", {item: told[item] for item in asked})
    return evaluation.estimate(level)["new"]


def counted(past, score):
    """One more than the number of sources that are clearly better."""
    return 1 + int((past > score + 1e-9).sum())


def test_a_tie_with_a_source_is_not_below_it():
    ranks = ranks_among(np.array([0.9, 0.2, 0.5]), np.array([0.9, 0.5, 0.1, 1.0]))
    assert ranks.tolist() == [1, 2, 4, 1]


def test_scores_a_hair_apart_tie():
    third = sum([0.1] * 3)
    assert third > 0.3
    assert places(np.array([third, 0.9]), [0.3, 0.3 - 1e-9]) == [2, 3]


def test_missing_cells_are_filled():
    assert SOURCES.has_missing
    past = past_scores(SOURCES)
    np.testing.assert_array_equal(past.full, SOURCES.full_scores())
    assert past.tasks.shape == (15, 3)
    assert np.isfinite(past.tasks).all()


@pytest.mark.parametrize("method", ["random", "random-ridge"])
@pytest.mark.parametrize("seed", range(2))
def test_rank_interval_and_task_ranks_are_those_of_the_scores(method, seed):
    rng = np.random.default_rng(seed)
    answers = (rng.random(40) < rng.uniform(0.2, 0.9)).astype(float)
    found = played(SOURCES, answers, 12, method)
    past = SOURCES.full_scores()
    assert found.rank == counted(past, found.score)
    assert found.ranked_among == 16
    ends = found.rank_interval
    assert ends.best == counted(past, found.interval.high)
    assert ends.worst == counted(past, found.interval.low)
    assert 1 <= ends.best <= found.rank <= ends.worst <= 16
    assert list(found.task_ranks) == SOURCES.tasks
    for task, column in zip(SOURCES.tasks, SOURCES.task_scores().T, strict=True):
        assert found.task_ranks[task] == counted(column, found.tasks[task])


@pytest.mark.parametrize("scale", [Scale(0, 100), Scale(-2, 3, lower_is_better=True)])
def test_first_is_the_best_on_every_scale(scale):
    sources = replace(SOURCES, scale=scale)
    best, worst = scale.from_unit([1.0, 0.0])
    top = played(sources, np.full(40, best), 40)
    assert (top.rank, top.rank_interval.best, top.rank_interval.worst) == (1, 1, 1)
    assert set(top.task_ranks.values()) == {1}
    last = played(sources, np.full(40, worst), 40)
    assert last.rank == last.ranked_among == last.rank_interval.worst == 16
    answers = (np.arange(40) % 3 == 0).astype(float)
    plain, scaled = played(SOURCES, answers, 12), played(sources, scale.from_unit(answers), 12)
    assert scaled.rank == plain.rank
    assert scaled.rank_interval == plain.rank_interval
    assert scaled.rank_interval.best < scaled.rank_interval.worst
    assert scaled.task_ranks == plain.task_ranks


def test_all_items_give_the_true_rank():
    """A target that answers as a source did shares its rank, in every task too."""
    complete = simulate(15, 40, seed=4)
    for row in (0, 7, 14):
        found = played(complete, complete.values[row], 40, "random-ridge")
        assert found.rank == counted(complete.full_scores(), complete.full_scores()[row])
        assert found.rank_interval.best == found.rank == found.rank_interval.worst
        tasks = complete.task_scores()
        true = [counted(tasks[:, at], tasks[row, at]) for at in range(3)]
        assert list(found.task_ranks.values()) == true


def test_the_average_decides_the_rank():
    """Good at the one large task, bad at three small ones: high by items, low by tasks."""
    tasks = ["large"] * 20 + [f"small {at // 2}" for at in range(6)]
    middling = np.tile([1.0, 0.0], 13)
    sources = from_arrays(np.tile(middling, (5, 1)), models=list("abcde"), tasks=tasks)
    answers = np.array([1.0] * 20 + [0.0] * 6)
    micro = played(sources, answers, 26)
    macro = played(sources.averaged("macro"), answers, 26)
    assert (micro.rank, macro.rank) == (1, 6)
