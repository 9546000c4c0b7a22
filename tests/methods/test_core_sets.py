"""Selectors that choose items for a regression, and what predicts from anchors."""

import numpy as np
import pytest
from scipy.special import expit, logit

from fewbench.algorithms.choice.linear_choice import forward_selection
from fewbench.methods import Answers, Subset
from fewbench.methods.selection.core_sets import Greedy
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench_papers.algorithms.completion.low_rank import principal_components
from fewbench_papers.anchor_points.lines import AnchorLines
from fewbench_papers.benchmark_prediction.choosers import Joint, LassoPath
from fewbench_papers.benchmark_prediction.completed import RANKS, STEPS, Imputation
from fewbench_papers.benchmark_prediction.linear_choice import lasso_support


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_items_are_chosen_for_the_full_score_that_is_asked_for(average):
    scores = simulate(30, 60, seed=1).averaged(average)
    y = scores.full_scores()
    for selector, chosen in [
        (LassoPath(), lasso_support(scores.values, y, 8)),
        (Greedy(), forward_selection(scores.values, y, 8, 1.0)),
    ]:
        assert selector.select(scores, 8, 0).items == tuple(scores.item_ids[chosen])
        assert not selector.select(scores, 8, 0).notes


@pytest.mark.parametrize("selector", [LassoPath(), Greedy(), Joint()])
@pytest.mark.parametrize("n_models", [1, 6])
def test_there_are_as_many_items_as_the_budget_also_beyond_what_sources_choose(selector, n_models):
    scores = simulate(n_models, 50, seed=2)
    for budget in (1, 20, 50):
        subset = selector.select(scores, budget, 3)
        assert len(set(subset.items)) == budget
        assert subset == selector.select(scores, budget, 3)


def test_what_is_filled_up_at_random_is_said():
    scores = simulate(6, 50, seed=2)
    assert "of 20 items were drawn at random" in LassoPath().select(scores, 20, 0).notes[0]
    few = len(lasso_support(scores.values, scores.full_scores(), 20))
    one, two = (LassoPath().select(scores, 20, seed).items for seed in (0, 1))
    assert one[:few] == two[:few]
    assert one[few:] != two[few:]


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_anchor_lines_give_answers_where_there_are_some_and_lines_elsewhere(average):
    whole = simulate(30, 40, seed=6).averaged(average)
    sources, targets = whole.take(models=np.arange(26)), whole.take(models=np.arange(26, 30))
    at = np.array([3, 20, 31])
    told = Answers(at, targets.values[:, at])
    said = AnchorLines().fit(sources, Subset(items=tuple(sources.item_ids[at])), 0).predict(told)
    np.testing.assert_array_equal(said.items[:, at], told.scores)
    # Of right and wrong, a line is the share of the sources that answered the anchor alike.
    for item in (0, 39):
        shares = [
            [sources.values[sources.values[:, anchor] == told.scores[row, j], item].mean()
             for j, anchor in enumerate(at)]
            for row in range(4)
        ]  # fmt: skip
        near = np.abs(np.array(shares) - said.items[:, [item]])
        assert (near.min(axis=1) < 1e-9).all()
    np.testing.assert_allclose(said.scores, said.items @ sources.item_weights)
    np.testing.assert_allclose(said.tasks, sources.task_means(said.items))


def test_log_odds_draw_a_line_through_log_odds():
    rng = np.random.default_rng(7)
    ability = rng.normal(size=20)
    values = expit(np.column_stack([ability, 2 * ability - 1, 0.5 * ability + 2]))
    sources = from_arrays(values, models=[f"m{i}" for i in range(20)])
    told = Answers(np.array([0]), np.array([[0.2]]))
    subset = Subset(items=("item-0",))
    said = AnchorLines(logit=True).fit(sources, subset, 0).predict(told).items[0]
    expected = [0.2, expit(2 * logit(0.2) - 1), expit(0.5 * logit(0.2) + 2)]
    np.testing.assert_allclose(said, expected)


def test_rank_and_steps_are_those_that_err_least_on_sources_held_out():
    sources = simulate(60, 80, seed=8, continuous=True)
    chosen = set()
    for seed in range(6):
        at = np.random.default_rng(seed + 50).permutation(80)[:40]
        subset = Subset(items=tuple(sources.item_ids[at]))
        held = np.random.default_rng(seed).permutation(60)[:15]
        learn = np.delete(sources.values, held, axis=0)
        errors = {}
        for rank in RANKS:
            model = principal_components(learn, rank)
            for steps in STEPS:
                rows = model.impute(at, sources.values[held][:, at], steps)
                off = rows.mean(axis=1) - sources.values[held].mean(axis=1)
                errors[rank, steps] = round(np.abs(off).mean(), 12)
        for method, pairs in (
            (Imputation(), list(errors)),
            (Imputation(steps=1000), [pair for pair in errors if pair[1] == 1000]),
            (Imputation(rank=5), [pair for pair in errors if pair[0] == 5]),
        ):
            found = method._chosen(sources, subset, seed)
            assert found == min(pairs, key=errors.get)  # the first of equals
            chosen.add(found)
    assert len({rank for rank, _ in chosen}) > 1
    assert len({steps for _, steps in chosen}) > 1


def test_among_steps_that_err_alike_the_fewest_are_taken():
    sources = simulate(30, 40, seed=9)
    subset = Subset(items=tuple(sources.item_ids))  # with all items known nothing is imputed
    assert Imputation()._chosen(sources, subset, 0) == (RANKS[0], STEPS[0])


def test_the_score_is_the_mean_of_what_is_imputed_for_one_source_too():
    sources = simulate(30, 40, seed=9)
    at = np.arange(0, 40, 5)
    subset, told = Subset(items=tuple(sources.item_ids[at])), Answers(at, sources.values[:2, at])
    said = Imputation(rank=5, steps=100).fit(sources, subset, 0).predict(told)
    rows = principal_components(sources.values, 5).impute(at, told.scores, 100)
    np.testing.assert_allclose(said.scores, np.clip(rows.mean(axis=1), 0, 1))
    alone = Imputation().fit(sources.take(models=[7]), subset, 0).predict(told).scores
    expected = (told.scores.sum(axis=1) + np.delete(sources.values[7], at).sum()) / 40
    np.testing.assert_allclose(alone, expected)
