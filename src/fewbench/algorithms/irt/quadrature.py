"""Marginal maximum likelihood of models of one ability, by the EM algorithm on a grid.

Bock & Aitkin 1981, "Marginal maximum likelihood estimation of item parameters: application of an
EM algorithm", Psychometrika 46. Exact where the variational fit is an approximation, which tells
where models answered some tens of items.
"""

import numpy as np

from fewbench._types import FloatArray
from fewbench.algorithms.irt.model import GUESSES, Abilities, Form, ItemResponse, known_share

REACH = 5.0
CLOSE = 1e-3
NEWTON_STEPS = 2
A_VARIANCE, B_VARIANCE = 1.0, 4.0
LARGEST_STEP = 1.0
CERTAIN = 27.0
"""Log odds beyond which chances are cut, to 1e-12 from 0 and 1."""


def fit_by_quadrature(
    values: FloatArray, begin: ItemResponse, form: Form, steps: int
) -> ItemResponse:
    """Improve a model of one ability.

    Items' parameters are the most likely ones under normal priors, whose means are those of all
    items. Their variances are wide, for a narrow one would draw the most discriminating items,
    which are the least sure, most of all.

    Parameters
    ----------
    values : ndarray, shape (models, items)
        In [0, 1]; NaN where a model was not run.
    begin : ItemResponse
        A rough fit, whose sign is kept.
    form : {"1pl", "2pl", "3pl"}
    steps : int
        At most so many rounds.
    """
    run = (~np.isnan(values)).astype(np.float64)
    whole = bool(run.all())
    right = np.nan_to_num(values)
    # Finer than what so many answers tell of an ability.
    nodes = np.linspace(-REACH, REACH, 61 + 4 * int(np.sqrt(values.shape[1])))
    log_prior = -0.5 * nodes**2
    a, b, g = begin.discrimination[:, 0].copy(), begin.intercept.copy(), begin.guessing.copy()
    posterior = _posterior(right, run, nodes, log_prior, a, b, g)
    for _ in range(steps):
        before = np.concatenate([a, b])
        expected_right = right.T @ posterior
        expected_run = posterior.sum(axis=0)[None] if whole else run.T @ posterior
        if form == "3pl":
            share = known_share(np.outer(a, nodes) + b[:, None], g[:, None])
            guessed = (expected_right * (1.0 - share)).sum(axis=1) + GUESSES[0]
            g = guessed / (expected_run.sum(axis=1) + sum(GUESSES))
            known = expected_right * share
            expected_run = expected_run - expected_right + known
            expected_right = known
        a, b = _improved(a, b, expected_right, expected_run, nodes, form)
        # To mean 0 and variance 1 of the abilities, which is the prior's best mean and variance.
        mass = posterior.mean(axis=0)
        mean = float(mass @ nodes)
        a, b = a * np.sqrt(float(mass @ (nodes - mean) ** 2)), b + a * mean
        posterior = _posterior(right, run, nodes, log_prior, a, b, g)
        if np.sqrt(((np.concatenate([a, b]) - before) ** 2).mean()) < CLOSE:
            break
    means = posterior @ nodes
    variances = posterior @ nodes**2 - means**2
    # What is left of bringing abilities to mean 0 and variance 1.
    mean = float(means.mean())
    scale = np.sqrt(float(variances.mean() + ((means - mean) ** 2).mean()))
    abilities = Abilities(((means - mean) / scale)[:, None], (variances / scale**2)[:, None, None])
    return ItemResponse((a * scale)[:, None], b + a * mean, g, abilities)


def _posterior(
    right: FloatArray,
    run: FloatArray,
    nodes: FloatArray,
    log_prior: FloatArray,
    a: FloatArray,
    b: FloatArray,
    g: FloatArray,
) -> FloatArray:
    """Return the probability of each ability of the grid, shape (models, nodes)."""
    from scipy.special import expit

    log_odds = np.outer(a, nodes) + b[:, None]
    if not g.any() and run.all() and np.abs(log_odds).max() < CERTAIN:
        # Nothing is missing, and log odds are linear in the ability: no product over items.
        wrong = np.log1p(-expit(log_odds)).sum(axis=0)
        told = np.outer(right @ a, nodes) + (right @ b)[:, None] + wrong + log_prior
    else:
        chance = g[:, None] + (1.0 - g[:, None]) * expit(log_odds)
        chance = np.clip(chance, 1e-12, 1.0 - 1e-12)
        wrong = np.log1p(-chance)
        told = right @ (np.log(chance) - wrong) + run @ wrong + log_prior
    told -= told.max(axis=1, keepdims=True)
    posterior = np.exp(told)
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def _improved(
    a: FloatArray, b: FloatArray, right: FloatArray, run: FloatArray, nodes: FloatArray, form: Form
) -> tuple[FloatArray, FloatArray]:
    """Take Newton's steps in all items at once, given expected answers at each ability."""
    from scipy.special import expit

    a_prior, b_prior = a.mean(), b.mean()
    for _ in range(NEWTON_STEPS):
        chance = expit(np.outer(a, nodes) + b[:, None])
        residual = right - run * chance
        weight = run * chance * (1.0 - chance)
        slope_b = residual.sum(axis=1) - (b - b_prior) / B_VARIANCE
        h_bb = weight.sum(axis=1) + 1.0 / B_VARIANCE
        if form == "1pl":  # the common discrimination follows from the abilities' variance
            b = b + np.clip(slope_b / h_bb, -LARGEST_STEP, LARGEST_STEP)
            continue
        slope_a = residual @ nodes - (a - a_prior) / A_VARIANCE
        h_aa = weight @ nodes**2 + 1.0 / A_VARIANCE
        h_ab = weight @ nodes
        area = h_aa * h_bb - h_ab**2
        step_a = (h_bb * slope_a - h_ab * slope_b) / area
        step_b = (h_aa * slope_b - h_ab * slope_a) / area
        a = a + np.clip(step_a, -LARGEST_STEP, LARGEST_STEP)
        b = b + np.clip(step_b, -LARGEST_STEP, LARGEST_STEP)
    return a, b
