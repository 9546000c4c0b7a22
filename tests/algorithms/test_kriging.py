"""The Gaussian process of fewbench's own estimator, against dense linear algebra."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.algorithms.kriging import (
    KrigingRun,
    choose_static,
    fit_kriging,
    next_together,
    settle,
)
from fewbench.algorithms.kriging.design import VarianceReduction, choose
from fewbench.algorithms.kriging.inside import Gaussian, bernoulli
from fewbench.algorithms.kriging.sample import SampledRun, fit_sample
from fewbench.algorithms.sampling import permanent_order
from fewbench.testing import simulate
from fewbench.uncertainty.sampling import expected_random_errors

RNG = np.random.default_rng(0)
N, K = 12, 4
WEIGHTS = np.vstack([np.full(N, 1 / N), RNG.dirichlet(np.ones(N))])
FACTORS, NOISE, MEAN = RNG.normal(size=(K, N)), RNG.uniform(0.1, 1, N), RNG.uniform(size=N)
GAUSSIAN = Gaussian(
    MEAN, FACTORS, NOISE, WEIGHTS @ MEAN, FACTORS @ WEIGHTS.T, WEIGHTS**2 @ NOISE, WEIGHTS
)
DENSE = FACTORS.T @ FACTORS + np.diag(NOISE)
ITEMS = np.array([7, 2, 9, 4])
ANSWERS = np.array([1.0, 0.0, 1.0, 1.0])


def conditioned(items):
    """Return the dense posterior covariance of all items given some."""
    solved = np.linalg.solve(DENSE[np.ix_(items, items)], DENSE[items])
    return DENSE - DENSE[:, items] @ solved


@pytest.fixture(scope="module")
def table():
    return simulate(60, 200, seed=1)


@pytest.fixture(scope="module")
def model(table):
    weights = np.vstack([table.item_weights, table.task_weights.T])
    return fit_kriging(table.values[:50], weights, permanent_order(table.task_of, 0), 50)


NOTHING = np.empty(0, dtype=np.intp)


def play(model, answers, rounds, costs=None):
    """Run a target in rounds of so many items; `answers` are those of the candidates."""
    run = KrigingRun(model)
    settle([run], NOTHING, 200, costs)
    for n in rounds:
        new = next_together([run], n, run.items, costs)
        run.hear(new, answers[new])
        settle([run], run.items, 200, costs)
    return run


class TestGaussian:
    def test_prediction_is_that_of_the_dense_covariance(self):
        means, variances = GAUSSIAN.predict(ITEMS, ANSWERS)
        gain = np.linalg.solve(DENSE[np.ix_(ITEMS, ITEMS)], DENSE[ITEMS])
        every = MEAN + (ANSWERS - MEAN[ITEMS]) @ gain
        np.testing.assert_allclose(means, WEIGHTS @ every)
        after = conditioned(ITEMS)
        np.testing.assert_allclose(variances, np.diag(WEIGHTS @ after @ WEIGHTS.T))

    def test_each_answer_is_foreseen_from_those_before_it(self):
        expected = []
        for at, item in enumerate(ITEMS):
            before = ITEMS[:at]
            gain = np.linalg.solve(DENSE[np.ix_(before, before)], DENSE[before, item])
            chance = MEAN[item] + (ANSWERS[:at] - MEAN[before]) @ gain
            expected.append(bernoulli(ANSWERS[at], chance))
        np.testing.assert_allclose(GAUSSIAN.one_step_ahead(ITEMS, ANSWERS), expected)


def test_factors_do_not_depend_on_the_axes_that_an_eigensolver_returns(model):
    """Single precision rounds factors: rotated ones would be other numbers, on other machines."""
    inside = model.inside
    turn = np.linalg.qr(RNG.normal(size=(8, 8)))[0]
    turned = replace(
        inside,
        directions=inside.directions @ turn,
        along=turn.T @ inside.along,
        along_wanted=turn.T @ inside.along_wanted,
    )
    for items in (NOTHING, np.arange(10)):  # without answers all sources weigh the same
        answers = np.ones(len(items))
        one, other = (
            np.abs((each.near(items, answers) if len(items) else each.all_sources).factors_of())
            for each in (inside, turned)
        )
        assert np.abs(one - other).max() < 1e-11  # single precision has seven digits


class TestDesign:
    @pytest.mark.parametrize("taken", [0, 2])
    def test_gains_are_the_variance_that_an_item_takes(self, taken):
        reduction = VarianceReduction(GAUSSIAN, ITEMS[:-taken] if taken else ITEMS, taken)
        for item in ITEMS[len(ITEMS) - taken :]:
            reduction.take(int(item))
        wanted = WEIGHTS[0]
        left = wanted @ conditioned(ITEMS) @ wanted
        assert reduction.left == pytest.approx(left)
        others = np.setdiff1d(np.arange(N), ITEMS)
        after = [wanted @ conditioned(np.append(ITEMS, j)) @ wanted for j in others]
        np.testing.assert_allclose(reduction.gains()[others] * left, left - np.array(after))

    def test_no_item_is_chosen_twice_and_closed_ones_never(self):
        closed = np.array([1, 3, 5])
        chosen = choose([(1.0, [GAUSSIAN], closed[:1])], 100, closed=closed)
        assert sorted([*chosen, *closed]) == list(range(N))

    def test_the_first_items_of_more_are_those_of_fewer(self, model, table):
        fewer, more = (play(model, table.values[55], (5, n)).items for n in (10, 30))
        assert more[:15].tolist() == fewer.tolist()

    def test_dear_items_are_left_out(self, model):
        costs = np.where(np.arange(200) % 2, 1.0, 50.0)
        dear, alike = (choose_static(model, 20, given)[0] for given in (costs, None))
        assert (dear % 2).mean() > 0.8
        assert (alike % 2).mean() < 0.7


class TestBeyond:
    def test_the_filter_is_the_dense_gaussian_at_every_node(self, model):
        from scipy.stats import multivariate_normal

        curves, items = model.beyond, np.array([3, 50, 120, 7, 66])
        answers = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
        known = curves.hear(
            curves.hear(curves.start(), items[:2], answers[:2]), items[2:], answers[2:]
        )
        loadings, noise = curves._loadings(items)
        means, _ = curves.predict(known, items, answers, model.weights[:, items])
        for node in (0, 30, -1):
            covariance = loadings[node] @ loadings[node].T + np.diag(noise[node])
            law = multivariate_normal(curves.chances[node, items], covariance)
            constant = 0.5 * len(items) * np.log(2 * np.pi)
            assert known.likelihood[node] == pytest.approx(law.logpdf(answers) + constant)
            off = np.linalg.solve(covariance, answers - curves.chances[node, items])
            every, _ = curves._loadings(np.arange(200))
            expected = curves.chances[node] + every[node] @ loadings[node].T @ off
            expected[items] = answers
            assert means[node, 0] == pytest.approx(expected.mean())


class TestRun:
    def test_a_run_knows_on_which_side_of_the_sources_a_target_is(self, table):
        order = np.argsort(table.full_scores())
        values, weights = table.values, np.full((1, 200), 1 / 200)
        model = fit_kriging(values[order[:30]], weights, permanent_order(table.task_of, 0), 30)
        found = {}
        for side, rows in {"like": order[10:20], "beyond": order[-6:]}.items():
            said = []
            for row in rows:
                run = play(model, values[row], (5, 5, 10, 20))
                said.append(run.estimate().beyond)
            found[side] = np.mean(said)
        assert found["like"] < 0.3
        assert found["beyond"] > 0.8

    @pytest.mark.parametrize(
        "target", ["like", "all right", "all wrong", "coin", "inverted", "hard half"]
    )
    def test_the_later_items_of_a_target_unlike_the_sources_are_a_sample(
        self, model, table, target
    ):
        hard = table.values[:50].mean(axis=0).argsort().argsort() < 100
        answers = {
            "like": table.values[55],
            "all right": np.ones(200),
            "all wrong": np.zeros(200),
            "coin": np.random.default_rng(0).integers(0, 2, 200).astype(float),
            "inverted": 1 - table.values[55],
            "hard half": hard.astype(float),
        }[target]
        run = play(model, answers, (5, 5, 10, 20))
        found = run.estimate()
        if target == "like":
            assert not run.draws
            assert found.freedom is None
            return
        if target == "coin":  # the curves of guessing explain it
            assert abs(found.scores[0] - answers.mean()) < 0.1
            return
        [draw] = run.draws
        assert draw.before.tolist() == run.items[: len(draw.before)].tolist()
        assert len(draw.before) <= 20
        drawn = draw.holds(run.items)
        assert drawn.sum() == 40 - len(draw.before) == found.freedom[0] + 1
        assert (draw.chances_of(int(drawn.sum()))[run.items[drawn]] > 0).all()

    def test_few_sources_leave_a_sample_from_the_first_item(self, table):
        weights = table.item_weights[None]
        model = fit_kriging(table.values[:8], weights, permanent_order(table.task_of, 0), 8)
        run = play(model, table.values[55], (5, 5, 10))
        first, second = run.draws
        assert len(first.before) == 0
        assert np.ptp(first.chances_of(10)) < 1e-9, "the first ten with equal chances"
        assert second.before.tolist() == run.items[:10].tolist()
        assert run.estimate().freedom[0] == 19

    def test_all_items_give_the_exact_score_of_every_task(self, model, table):
        run = KrigingRun(model)
        run.hear(np.arange(200), table.values[55])
        means = run.estimate().scores
        tasks = table.task_scores()[55]
        np.testing.assert_allclose(means, [table.full_scores()[55], *tasks], atol=1e-12)

    def test_a_large_benchmark_is_estimated_from_a_sample_of_candidates(self):
        table = simulate(40, 3000, seed=2)
        weights = table.item_weights[None]
        model = fit_kriging(
            table.values[:30],
            weights,
            permanent_order(table.task_of, 0),
            30,
            include=np.arange(7),
        )
        assert len(model.candidates) < 2010
        assert set(range(7)) <= set(model.candidates.tolist())
        truth, off = table.full_scores()[30:], []
        for row in range(30, 40):
            run = play(model, table.values[row, model.candidates], (5, 15, 30))
            off.append(run.estimate().scores[0] - truth[row - 30])
        assert np.abs(off).mean() < expected_random_errors(truth, 50, 3000, 1.0).mean()


def test_targets_that_answer_alike_share_what_follows_and_nothing_depends_on_it(table, monkeypatch):
    weights = table.item_weights[None]
    rows = table.values[[55, 56, 55, 57]]

    def runs():
        model = fit_kriging(table.values[:50], weights, permanent_order(table.task_of, 0), 50)
        every = [play(model, row, (5, 5, 10)) for row in rows]
        return model, [(run.items.tolist(), run.estimate().scores.tolist()) for run in every]

    model, shared = runs()
    assert len(model.heard) < 3 * len(rows)
    monkeypatch.setattr("fewbench.algorithms.kriging.model.KEPT", 1)
    model, alone = runs()
    assert len(model.heard) == 1
    assert alone == shared


def test_right_and_wrong_answers_have_their_whole_variance_beside_means_of_runs():
    """Means of three runs vary less about the curves than a target's single answers do."""
    rng, shape = np.random.default_rng(0), (8, 40)
    chances = rng.beta(1, 1, shape[1])
    means = rng.binomial(3, chances, shape) / 3
    models, items = (cells.ravel() for cells in np.indices(shape))
    tasks, weights = np.zeros(shape[1], dtype=int), np.full((1, shape[1]), 1 / shape[1])
    order = np.arange(shape[1])
    model = fit_sample(models, items, means.ravel(), shape[0], tasks, weights, order)
    noise = {}
    for kind, answers in (
        ("single", np.array([1.0, 0.0, 1.0])),
        ("means", np.array([1, 0, 2 / 3])),
    ):
        run = SampledRun(model)
        run.hear(order[:3], answers)
        expected = run.posterior @ (model.abilities.chances * (1 - model.abilities.chances))
        noise[kind] = float((run.noise / expected).mean())
    assert noise["single"] == pytest.approx(1.0)
    assert noise["means"] < 0.6
