"""The difference estimator: unbiased given any pilot, with a standard error that holds."""

from dataclasses import dataclass

import numpy as np
import pytest

from fewbench.algorithms.assisted import FEWEST, Phase, assisted, sample_errors
from fewbench.algorithms.sampling import NestedSample, permanent_order

N, PILOT, DRAWN = 200, 12, 30
RNG = np.random.default_rng(0)
PREDICTED = np.clip(RNG.beta(2, 1.5, N), 0.05, 0.95)
TASK = RNG.permutation(N) < 60
WEIGHTS = {
    "micro": np.full(N, 1 / N),
    "macro": np.where(TASK, 0.5 / 60, 0.5 / 140),
    "any": RNG.dirichlet(np.full(N, 3.0)),
}
TARGETS = {
    "as predicted": (RNG.random(N) < PREDICTED).astype(float),
    "inverted": (RNG.random(N) > PREDICTED).astype(float),
    "coin": RNG.integers(0, 2, N).astype(float),
    "fractions": np.clip(PREDICTED + RNG.normal(0, 0.2, N), 0, 1),
}
PILOTS = {  # which no estimate may trust: they look at the answers
    "right": lambda answers: np.argsort(-answers, kind="stable")[:PILOT],
    "easy": lambda answers: np.argsort(-PREDICTED, kind="stable")[:PILOT],
    "none": lambda answers: np.empty(0, dtype=np.intp),
}


@dataclass
class Found:
    scores: np.ndarray
    errors: np.ndarray
    freedom: float


def estimated(answers, weights, pilot, seed, predicted=PREDICTED):
    """Estimate the weighted mean, and that of the task, from a pilot and a sample of the rest."""
    rest = np.setdiff1d(np.arange(N), pilot)
    wanted = np.vstack([weights, TASK / TASK.sum()])
    noise = predicted * (1 - predicted)
    sizes = 0.8 * weights * np.sqrt(noise) / np.mean(weights * np.sqrt(noise))
    sizes += 0.2 * weights / weights.mean()
    sample = NestedSample(rest[permanent_order(TASK[rest].astype(int), seed)], sizes)
    drawn = sample.take(DRAWN)
    items = np.concatenate([pilot, drawn])
    known = wanted[:, pilot]
    phase = Phase(
        known @ answers[pilot],
        1 - known.sum(axis=1),
        wanted @ predicted - known @ predicted[pilot],
        np.arange(len(pilot), len(items)),
        wanted[:, drawn] / sample.chances(DRAWN)[drawn],
        1.0,
    )
    found = assisted(
        [phase], answers[items], predicted[items], noise[items], float(predicted.var()),
        np.count_nonzero(wanted, axis=1).astype(float),
    )  # fmt: skip
    return Found(found.scores, found.errors, found.freedom[0])


@pytest.mark.parametrize("pilot", PILOTS)
@pytest.mark.parametrize(
    ("target", "weights"),
    [("as predicted", "any"), ("inverted", "macro"), ("coin", "any"), ("fractions", "micro")],
)
def test_over_all_samples_it_is_right_on_average_and_as_far_off_as_it_says(target, weights, pilot):
    answers, of = TARGETS[target], WEIGHTS[weights]
    first = PILOTS[pilot](answers)
    found = [estimated(answers, of, first, seed) for seed in range(200)]
    off = np.array([one.scores for one in found]) - [of @ answers, answers[TASK].mean()]
    spread = off.std(axis=0)
    assert (np.abs(off.mean(axis=0)) < 0.25 * spread).all()
    # Items are spread by difficulty, so it may be nearer than it says, and hardly farther.
    said = np.sqrt(np.mean([one.errors**2 for one in found], axis=0))
    assert 0.8 < (said / spread)[0] < 1.8
    assert {one.freedom for one in found} == {DRAWN - 1}


def test_all_right_leaves_an_error_and_no_trust_in_predictions():
    found = estimated(np.ones(N), WEIGHTS["micro"], np.arange(PILOT), 0)
    assert found.scores[0] == pytest.approx(1)
    assert found.errors[0] > 0.005


def test_few_items_of_a_task_have_no_standard_error():
    phase = Phase(
        np.zeros(2), np.ones(2), np.full(2, 0.5), np.arange(8),
        np.vstack([np.full(8, 1 / 8), np.where(np.arange(8) < FEWEST - 1, 1 / 4, 0)]), 1.0,
    )  # fmt: skip
    answers, half = np.arange(8) % 2.0, np.full(8, 0.5)
    found = assisted([phase], answers, half, half / 2, 0.04, np.array([100.0, 40.0]))
    assert np.isfinite(found.errors).tolist() == [True, False]
    assert np.isfinite(found.scores).all()


def test_errors_are_of_what_is_left_and_vanish_where_all_items_were_run():
    answers, half = np.arange(20) % 2.0, np.full(20, 0.5)

    def error(left, size):
        loads = np.full((1, 20), left / 20)
        phase = Phase(np.zeros(1), np.full(1, left), np.zeros(1), np.arange(20), loads, 1.0)
        return assisted([phase], answers, half, half / 2, 0.04, np.array([size])).errors[0]

    assert error(0.5, 1e9) == pytest.approx(0.5 * error(1.0, 1e9))
    assert error(1.0, 80.0) == pytest.approx(error(1.0, 1e9) * np.sqrt(1 - 20 / 80))
    assert error(1.0, 20.0) == 0


def test_phases_count_by_their_precision():
    """The second of two phases draws with a tenth of the first one's variance."""

    def phase(sampled, known, variance):
        loads = np.full((1, 10), 0.1)
        left = np.ones(1) - len(known) / 100
        return Phase(np.array([sum(known) / 100]), left, 0.5 * left, sampled, loads, variance)

    answers = np.concatenate([np.zeros(10), np.ones(10)])
    first, second = phase(np.arange(10), [], 1.0), phase(np.arange(10, 20), [0.0] * 10, 0.1)
    half, sizes = np.full(20, 0.5), np.array([100.0])
    found = assisted([first, second], answers, half, half / 2, 0.04, sizes)
    assert found.scores[0] == pytest.approx((0 * 1 + 0.9 * 10) / 11, abs=0.01)


def test_a_sample_s_error_is_that_of_its_residuals_and_of_the_rest():
    rng = np.random.default_rng(1)
    answers, predicted = rng.random((3, 40)), rng.random((3, 40))
    of_400 = np.ones(40), np.arange(40), np.full(400, 0.1)
    errors, freedom, sources = sample_errors(answers, predicted, *of_400)
    residuals = answers - predicted
    plain = residuals.std(axis=1, ddof=1) / np.sqrt(40) * np.sqrt(0.9)
    np.testing.assert_allclose(errors, plain, rtol=0.1)
    assert freedom.tolist() == [39.0] * 3
    squares = [np.nansum(source.influence**2) * 40**2 for source in sources]
    shares = [source.item_share for source in sources]
    np.testing.assert_allclose(shares, 1 / (np.array(squares) + 0.5), rtol=0.01)
    of_40 = np.ones(40), np.arange(40), np.ones(40)
    assert sample_errors(answers, predicted, *of_40)[0].tolist() == [0.0] * 3
    assert (sample_errors(np.ones((1, 40)), np.ones((1, 40)), *of_400)[0] > 0).all()
