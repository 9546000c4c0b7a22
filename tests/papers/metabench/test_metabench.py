"""metabench (best for validation, information filter, ability-IRT) and random search."""

import numpy as np
import pytest

from fewbench.methods import Answers, StaticMethod, Subset
from fewbench.methods.selection.random import Random
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.uncertainty.replay import replay
from fewbench_papers.algorithms.irt import fit_irt
from fewbench_papers.algorithms.subset_search import divisions, ridge_losses
from fewbench_papers.benchmark_prediction.choosers import RidgeSearch
from fewbench_papers.metabench.ability import Ability
from fewbench_papers.metabench.additive_spline import fit_additive_spline
from fewbench_papers.metabench.subsets import BestOfRandom, Informative


def noise_and_signal(n_models=60, seed=0):
    """Items 0 to 29 go with ability, items 30 to 59 are tosses of a coin; weights are equal."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(n_models, 1))
    signal = rng.random((n_models, 30)) < 1 / (1 + np.exp(-3 * (ability - rng.normal(size=30))))
    noise = rng.random((n_models, 30)) < 0.5
    values = np.hstack([signal, noise]).astype(float)
    return from_arrays(values, models=[f"m{at}" for at in range(n_models)])


# -- which items ---------------------------------------------------------------------------------


def test_the_filter_leaves_out_items_that_tell_nothing_of_ability():
    scores = noise_and_signal()
    chosen = Informative(subsets=200).select(scores, 10, 0).items
    signal = (scores.positions(chosen) < 30).mean()
    plain = (scores.positions(BestOfRandom(200).select(scores, 10, 0).items) < 30).mean()
    assert signal == 1.0
    assert plain < 1.0


def test_the_filter_takes_only_preselected_items():
    scores = simulate(30, 60, seed=5)
    first = BestOfRandom(300).search(scores, 25, np.random.default_rng(7))
    chosen = Informative(300).select(scores, 10, 7).items
    assert set(scores.positions(chosen)) < set(first)


def test_ridge_search_finds_what_few_random_subsets_reach():
    scores = simulate(40, 80, seed=1)
    rng = np.random.default_rng(6)
    held_out = divisions(40, 0.25, 1, rng)[:, 0]
    losses = ridge_losses(scores.values, scores.full_scores(), held_out)
    found = scores.positions(RidgeSearch(1000).select(scores, 10, 6).items)
    others = np.array([rng.permutation(80)[:10] for _ in range(300)])
    assert losses(found[None])[0] < np.quantile(losses(others), 0.01)


def test_the_macro_average_decides():
    """With one item of weight one half, no good subset is without it."""
    values = simulate(60, 40, 1, seed=2).values
    scores = from_arrays(
        values, models=[f"m{at}" for at in range(60)], tasks=["one"] + ["other"] * 39
    )
    chosen = BestOfRandom(500).select(scores.averaged("macro"), 8, 0).items
    assert 0 in scores.positions(chosen)
    assert chosen != BestOfRandom(500).select(scores, 8, 0).items


# -- what is predicted ---------------------------------------------------------------------------


@pytest.mark.parametrize("uses", ["both", "ability", "score"])
def test_the_score_is_a_spline_in_what_is_used(uses):
    scores = simulate(40, 30, seed=6).averaged("macro")
    at = np.array([3, 29, 11, 0, 17, 8])
    subset = Subset(items=tuple(scores.item_ids[at]), weights=(1, 2, 3, 1, 1, 2))
    answers = simulate(44, 30, seed=6).values[40:, at]
    said = Ability(uses=uses).fit(scores, subset, 0).predict(Answers(at, answers))
    model = fit_irt(scores.values[:, at])
    features = {
        "ability": lambda rows: model.abilities(np.arange(6), rows).means,
        "score": lambda rows: np.average(rows, axis=1, weights=[1, 2, 3, 1, 1, 2])[:, None],
    }
    used = [make for name, make in features.items() if uses in (name, "both")]
    x = np.hstack([make(scores.values[:, at]) for make in used])
    new = np.hstack([make(answers) for make in used])
    full = fit_additive_spline(x, scores.full_scores()[:, None]).predict(new)[:, 0]
    tasks = fit_additive_spline(x, scores.task_scores()).predict(new)
    np.testing.assert_allclose(said.scores, np.clip(full, 0, 1), atol=1e-9)
    np.testing.assert_allclose(said.tasks, np.clip(tasks, 0, 1), atol=1e-9)


def test_targets_beyond_the_sources_are_beyond_them():
    """Not at the best source's score, and not above 1."""
    rng = np.random.default_rng(8)
    ability = np.append(rng.uniform(-2, 0.3, 80), [1.5, 8.0])[:, None]
    values = rng.random((82, 200)) < 1 / (1 + np.exp(-1.5 * (ability - rng.normal(size=200))))
    table = from_arrays(values.astype(float), models=[f"m{at}" for at in range(82)])
    sources, targets = table.take(models=np.arange(80)), table.take(models=[80, 81])
    said = replay(StaticMethod(Random(), Ability()), sources, targets, 50, 0).scores
    assert said[0] > sources.full_scores().max() + 0.05
    assert said[0] == pytest.approx(targets.full_scores()[0], abs=0.2)  # of 0.27 beyond
    assert said[0] < said[1] <= 1.0
