"""Fit item response models to models' scores, missing cells included.

The logistic likelihood is bounded from below by a parabola in the logits (Jaakkola & Jordan 2000;
Cho et al. 2021, "Gaussian variational estimation for multidimensional item response theory", Br.
J. Math. Stat. Psychol. 74). Items given abilities, and abilities given items, are then linear
regressions: matrix products without a step size or randomness.

Models of one ability are improved by marginal maximum likelihood, by the EM algorithm on a grid
(Bock & Aitkin 1981, Psychometrika 46). It is exact where the variational fit is an approximation,
which matters where models answered some tens of items.
"""

from dataclasses import dataclass

import numpy as np

from fewbench.support import FloatArray
from fewbench_papers.algorithms.irt.model import IrtAbilities, ItemResponse, curvature

REACH = 5.0
CLOSE = 1e-3
"""Mean change in a round, of abilities with a standard deviation of 1 or of item parameters, at
which a fit ends."""
NEWTON_STEPS = 2
BLOCK = 64
"""Items at a time, so that a table of items and grid abilities stays in the processor's cache."""
A_VARIANCE, B_VARIANCE = 1.0, 4.0
LARGEST_STEP = 1.0
CERTAIN = 27.0
"""Log odds beyond which chances are cut, to 1e-12 from 0 and 1."""


def fit_by_quadrature(values: FloatArray, begin: ItemResponse, steps: int) -> ItemResponse:
    """Improve a rough model of one ability, keeping its sign, in at most `steps` rounds.

    Item parameters are the most likely ones under normal priors with the means of all items. The
    variances are wide: a narrow prior would shrink the most discriminating items most. `values`,
    shape (models, items), are in [0, 1], NaN where not run.
    """
    run = (~np.isnan(values)).astype(np.float64)
    whole = bool(run.all())
    right = np.nan_to_num(values)
    # Finer than the standard error of an ability.
    nodes = np.linspace(-REACH, REACH, 61 + 4 * int(np.sqrt(values.shape[1])))
    log_prior = -0.5 * nodes**2
    a, b = begin.discrimination[:, 0].copy(), begin.intercept.copy()
    posterior = _posterior(right, run, nodes, log_prior, a, b)
    for _ in range(steps):
        before = np.concatenate([a, b])
        expected_right = right.T @ posterior
        expected_run = posterior.sum(axis=0)[None] if whole else run.T @ posterior
        a, b = _improved(a, b, expected_right, expected_run, nodes)
        # To mean 0 and variance 1 of the abilities, which is the prior's best mean and variance.
        mass = posterior.mean(axis=0)
        mean = float(mass @ nodes)
        a, b = a * np.sqrt(float(mass @ (nodes - mean) ** 2)), b + a * mean
        posterior = _posterior(right, run, nodes, log_prior, a, b)
        if np.sqrt(((np.concatenate([a, b]) - before) ** 2).mean()) < CLOSE:
            break
    means = posterior @ nodes
    variances = posterior @ nodes**2 - means**2
    # What is left of bringing abilities to mean 0 and variance 1.
    mean = float(means.mean())
    scale = np.sqrt(float(variances.mean() + ((means - mean) ** 2).mean()))
    sources = IrtAbilities(((means - mean) / scale)[:, None], (variances / scale**2)[:, None, None])
    return ItemResponse((a * scale)[:, None], b + a * mean, sources)


def _posterior(
    right: FloatArray,
    run: FloatArray,
    nodes: FloatArray,
    log_prior: FloatArray,
    a: FloatArray,
    b: FloatArray,
) -> FloatArray:
    """Return the probability of each ability of the grid, shape (models, nodes)."""
    from scipy.special import expit

    log_odds = np.outer(a, nodes) + b[:, None]
    if run.all() and np.abs(log_odds).max() < CERTAIN:
        # Nothing is missing, and log odds are linear in the ability: no product over items.
        # log P(right) - log P(wrong) is the log odds: an answer adds its log odds to what all wrong
        # answers would have.
        wrong = np.log1p(-expit(log_odds)).sum(axis=0)
        log_posterior = np.outer(right @ a, nodes) + (right @ b)[:, None] + wrong + log_prior
    else:
        chance = np.clip(expit(log_odds), 1e-12, 1.0 - 1e-12)
        wrong = np.log1p(-chance)
        log_posterior = right @ (np.log(chance) - wrong) + run @ wrong + log_prior
    log_posterior -= log_posterior.max(axis=1, keepdims=True)
    posterior = np.exp(log_posterior)
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def _improved(
    a: FloatArray, b: FloatArray, right: FloatArray, run: FloatArray, nodes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Take Newton steps in all items, given expected answers at each ability."""
    from scipy.special import expit

    # Towards the mean item, not towards 0: on a benchmark most items discriminate, and shrinking to
    # 0 would take away what they say.
    a_prior, b_prior = a.mean(), b.mean()
    a, b = a.copy(), b.copy()
    for first in range(0, len(a), BLOCK):
        at = slice(first, first + BLOCK)
        run_at = run if len(run) == 1 else run[at]
        for _ in range(NEWTON_STEPS):
            chance = expit(np.outer(a[at], nodes) + b[at, None])
            expected = run_at * chance
            residual = right[at] - expected
            weight = expected * (1.0 - chance)
            slope_b = residual.sum(axis=1) - (b[at] - b_prior) / B_VARIANCE
            h_bb = weight.sum(axis=1) + 1.0 / B_VARIANCE
            slope_a = residual @ nodes - (a[at] - a_prior) / A_VARIANCE
            h_aa = weight @ nodes**2 + 1.0 / A_VARIANCE
            h_ab = weight @ nodes
            # Newton's step in both at once: discrimination and intercept are correlated.
            area = h_aa * h_bb - h_ab**2
            step_a = (h_bb * slope_a - h_ab * slope_b) / area
            step_b = (h_aa * slope_b - h_ab * slope_a) / area
            a[at] += np.clip(step_a, -LARGEST_STEP, LARGEST_STEP)
            b[at] += np.clip(step_b, -LARGEST_STEP, LARGEST_STEP)
    return a, b


MOST_STEPS = 100
BEGIN = 10  # rounds before the grid takes over
DIMENSIONS = (1, 2, 5, 10, 15)
MOST_ITEMS = 1000
HELD_OUT = 0.1
STEPS = 30  # more change the likelihood of held-out cells in the fourth digit


def fit_irt(values: FloatArray, dimensions: int = 1) -> ItemResponse:
    """Fit an item response model (2PL).

    One ability is integrated over exactly, on a grid; several approximately, with priors learned
    from all items.

    - `values`, shape (models, items): Scores in [0, 1], NaN where a model was not run. Fractional
      scores count as that share of a right answer; `binary` makes them right or wrong first.
    - `dimensions`: Number of abilities. It is cut to models - 1 and to items.

    Returns ItemResponse. Abilities have mean 0 and variance 1 over the models, are uncorrelated and
    ordered by their part of the items' discrimination, which is mostly positive.

    >>> ability, difficulty = np.linspace(-2, 2, 50)[:, None], np.linspace(-1, 1, 30)
    >>> model = fit_irt((ability > difficulty).astype(float))
    >>> bool(np.corrcoef(model.sources.means[:, 0], ability[:, 0])[0, 1] > 0.97)
    True
    """
    if dimensions > 1:
        return VariationalFit(values, dimensions).run(MOST_STEPS)
    return fit_by_quadrature(values, VariationalFit(values, dimensions).run(BEGIN), MOST_STEPS)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Means and covariances of vectors, shapes (vectors, size) and (vectors, size, size)."""

    means: FloatArray
    covariances: FloatArray

    def second(self) -> FloatArray:
        """Return flat second moments, shape (vectors, size²)."""
        outer = self.means[:, :, None] * self.means[:, None, :] + self.covariances
        return np.asarray(outer.reshape(len(outer), -1))


def _solved(precision: FloatArray, pull: FloatArray) -> _Moments:
    inverse = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    return _Moments((inverse @ pull[:, :, None])[:, :, 0], inverse)


class VariationalFit:
    """The variational fit, with abilities (θ, 1) and items (a, b)."""

    def __init__(self, values: FloatArray, dimensions: int) -> None:
        self.run_cells = (~np.isnan(values)).astype(np.float64)
        self.right = np.nan_to_num(values)
        self.centered = self.right - 0.5 * self.run_cells
        n_models, n_items = values.shape
        self.dimensions = max(1, min(dimensions, n_models - 1, n_items))
        self.models, self.items = self._begin()
        # Priors of the items: of each discrimination, and of the intercept.
        self.prior_mean = np.zeros(self.dimensions + 1)
        self.prior_variance = np.append(np.ones(self.dimensions), 4.0)

    def _begin(self) -> tuple[_Moments, _Moments]:
        """Start from the table's principal components, which give a fixed orientation."""
        count = np.maximum(self.run_cells.sum(axis=0), 1)
        rate = (self.right.sum(axis=0) + 0.5) / (count + 1.0)
        residual = (self.right - self.right.sum(axis=0) / count) * self.run_cells
        residual /= np.sqrt(rate * (1.0 - rate))
        theta = _leading(residual, self.dimensions) * np.sqrt(len(residual))
        a = residual.T @ theta / len(theta)
        sign = np.where(a.sum(axis=0) < 0, -1.0, 1.0)
        b = np.log(rate / (1.0 - rate))
        size = self.dimensions + 1
        models = np.column_stack([theta * sign, np.ones(len(theta))])
        return (
            _Moments(models, np.zeros((len(models), size, size))),
            _Moments(np.column_stack([a * sign, b]), np.zeros((len(b), size, size))),
        )

    def run(self, steps: int) -> ItemResponse:
        """Alternate between items and models, in at most so many rounds."""
        for _ in range(steps):
            before = self.models.means
            self._update_items()
            self._update_models()
            self._standardise()
            if np.sqrt(((self.models.means - before) ** 2).mean()) < CLOSE:
                break
        return self._result()

    def _cells(self) -> tuple[FloatArray, FloatArray]:
        """Return regression weights and weighted responses, both (models, items)."""
        # The bound is tightest where it touches at the root of the expected squared logit. With x
        # the logit, a cell then adds (y - 1/2) x - weight x² / 2: a regression on y - 1/2.
        weights = self.models.second() @ self.items.second().T
        np.sqrt(np.maximum(weights, 0.0, out=weights), out=weights)
        weights = curvature(weights)
        weights *= self.run_cells
        return weights, self.centered

    def _update_items(self) -> None:
        weights, half = self._cells()
        size = self.dimensions + 1
        precision = (weights.T @ self.models.second()).reshape(-1, size, size)
        precision += np.diag(1.0 / self.prior_variance)
        pull = half.T @ self.models.means + self.prior_mean / self.prior_variance
        self.items = _solved(precision, pull)
        self._learn_priors()

    def _learn_priors(self) -> None:
        self.prior_mean[-1] = self.items.means[:, -1].mean()
        apart = self.items.means - self.prior_mean
        spread = (apart**2).mean(axis=0)
        spread += np.diagonal(self.items.covariances, axis1=1, axis2=2).mean(axis=0)
        self.prior_variance = np.maximum(spread, 1e-4)

    def _update_models(self) -> None:
        weights, half = self._cells()
        size, d = self.dimensions + 1, self.dimensions
        second = (weights @ self.items.second()).reshape(-1, size, size)
        precision = second[:, :d, :d] + np.eye(d)
        pull = half @ self.items.means[:, :d] - second[:, :d, d]
        abilities = _solved(precision, pull)
        covariances = np.zeros((len(second), size, size))
        covariances[:, :d, :d] = abilities.covariances
        ones = np.ones((len(second), 1))
        self.models = _Moments(np.hstack([abilities.means, ones]), covariances)

    def _standardise(self) -> None:
        """Scale abilities to mean 0 and covariance 1, and items with them: no logit changes.

        Without this, the two would drift along each other's scale for hundreds of rounds.
        """
        d = self.dimensions
        mean = self.models.means[:, :d].mean(axis=0)
        centred = self.models.means[:, :d] - mean
        spread = centred.T @ centred / len(centred)
        spread += self.models.covariances[:, :d, :d].mean(axis=0)
        lower = np.linalg.cholesky(spread + 1e-9 * np.eye(d))
        inverse = np.linalg.inv(lower)
        # θ = mean + lower z, so a · θ + b = (lowerᵀ a) · z + (b + a · mean).
        models = self.models.means.copy()
        models[:, :d] = centred @ inverse.T
        covariances = self.models.covariances.copy()
        covariances[:, :d, :d] = inverse @ covariances[:, :d, :d] @ inverse.T
        self.models = _Moments(models, covariances)
        change = np.eye(d + 1)
        change[:d, :d] = lower.T
        change[d, :d] = mean
        self.items = _Moments(
            self.items.means @ change.T, change @ self.items.covariances @ change.T
        )

    def _result(self) -> ItemResponse:
        d = self.dimensions
        a = self.items.means[:, :d]
        # Turned to the principal axes of the discriminations: no order or sign is left to chance.
        _, axes = np.linalg.eigh(a.T @ a)
        axes = axes[:, ::-1]
        axes = axes * np.where((a @ axes).sum(axis=0) < 0, -1.0, 1.0)
        covariances = axes.T @ self.models.covariances[:, :d, :d] @ axes
        abilities = IrtAbilities(self.models.means[:, :d] @ axes, covariances)
        return ItemResponse(a @ axes, self.items.means[:, d], abilities)


def _leading(table: FloatArray, k: int) -> FloatArray:
    """Return the first k left singular vectors, from the smaller table of inner products."""
    if len(table) <= table.shape[1]:
        return np.asarray(np.linalg.eigh(table @ table.T)[1][:, ::-1][:, :k])
    scores = table @ np.linalg.eigh(table.T @ table)[1][:, ::-1][:, :k]
    return np.asarray(scores / np.maximum(np.linalg.norm(scores, axis=0), 1e-9))


def choose_dimensions(values: FloatArray, rng: np.random.Generator) -> int:
    """Return the number of abilities with the highest probability of held-out cells.

    A tenth of the cells of at most 1,000 random items is held out. More abilities are
    tried until a number does not improve the mean log likelihood in the third digit; numbers not
    below those of models and of items are left out. All fits are variational. `values`, shape
    (models, items), are in [0, 1], NaN where not run.
    """
    items = np.sort(rng.permutation(values.shape[1])[:MOST_ITEMS])
    part = values[:, items]
    held_out = (rng.random(part.shape) < HELD_OUT) & ~np.isnan(part)
    possible = [d for d in DIMENSIONS if d < min(part.shape)] or [1]
    if len(possible) == 1 or not held_out.any():
        return possible[0]
    truth, shown = part[held_out], np.where(held_out, np.nan, part)
    chosen, best = possible[0], -np.inf
    for dimensions in possible:
        model = VariationalFit(shown, dimensions).run(STEPS)
        chance = np.clip(model.expected(model.sources.means)[held_out], 1e-6, 1.0 - 1e-6)
        by_cell = truth * np.log(chance) + (1.0 - truth) * np.log(1.0 - chance)
        if (likelihood := round(float(by_cell.mean()), 3)) <= best:
            break
        chosen, best = dimensions, likelihood
    return chosen
