"""Additive regression with natural cubic splines; leave-one-out error sets the smoothness.

A generalized additive model with Gaussian errors (Wood 2017, "Generalized Additive Models", §5.3.1
and §6.2): y = mean + f_1(x_1) + f_2(x_2) + …, each f penalized by its integrated squared second
derivative.

Beyond the fitted rows, the model continues along the straight line of y on each feature alone,
averaged over the features. The end slopes of the curves rest on few rows, and the slopes of
correlated features can have opposite signs: they ranked the best row below all others.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from fewbench.support import BoolArray, FloatArray

KNOTS = 10
ROUGHNESS = np.logspace(-4, 2, 7)
"""Penalties on the bends of each function, relative to the size of its basis."""
SLOPES = np.logspace(-4, -1, 4)
"""Penalties on the slopes, so that correlated features share their effect."""


@dataclass(frozen=True, eq=False)
class AdditiveSpline:
    """A fitted additive model with one basis per feature.

    `low` and `high`, shape (features,), are the range of each feature in the fitted rows;
    `beyond`, shape (features, outputs), has the slopes outside that range. `coefficients` has
    shape (columns, outputs) and `mean` (outputs,).
    """

    bases: "list[_Basis]"
    low: FloatArray
    high: FloatArray
    beyond: FloatArray
    coefficients: FloatArray
    mean: FloatArray

    def predict(self, x: FloatArray) -> FloatArray:
        """Predict outputs, shape (rows, outputs), from features, shape (rows, features)."""
        inside = np.clip(x, self.low, self.high)
        columns = [basis(inside[:, at]) for at, basis in enumerate(self.bases)]
        curved = np.hstack(columns) @ self.coefficients + self.mean
        return np.asarray(curved + (x - inside) @ self.beyond)


def fit_additive_spline(x: FloatArray, y: FloatArray) -> AdditiveSpline:
    """Fit an additive model; each output gets the penalties of least leave-one-out error.

    `x` has shape (rows, features), `y` (rows, outputs). Each feature has at most `KNOTS` knots at
    quantiles of its values. A feature with one value is ignored; one with two values has a slope
    only.

    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> fitted = fit_additive_spline(x, np.sqrt(x))
    >>> fitted.predict(np.array([[0.5]])).round(2).tolist()
    [[0.71]]
    """
    mean = y.mean(axis=0)
    bases = [_Basis(column) for column in x.T]
    parts = [basis(column) for basis, column in zip(bases, x.T, strict=True)]
    z, target = np.hstack(parts), y - mean
    ends = x.min(axis=0), x.max(axis=0), _slopes(x, target)
    gram, pull = z.T @ z, z.T @ target
    is_slope = np.concatenate([basis.is_slope for basis in bases])
    feature = np.repeat(np.arange(len(bases)), [part.shape[1] for part in parts])
    bent = [at for at in range(len(bases)) if (feature == at).sum() > 1]
    least = np.full(y.shape[1], np.inf)
    best = np.zeros_like(pull)
    for slope, *rough in product(SLOPES, *([ROUGHNESS] * len(bent))):
        penalty = np.full(len(feature), float(slope))
        for at, size in zip(bent, rough, strict=True):
            penalty[(feature == at) & ~is_slope] = size
        inverse = np.linalg.inv(gram + np.diag(penalty * len(x)))
        coefficients = inverse @ pull
        leverage = ((z @ inverse) * z).sum(axis=1) + 1.0 / len(x)  # the mean takes its share
        residual = (target - z @ coefficients) / np.maximum(1.0 - leverage, 1e-9)[:, None]
        error = (residual**2).mean(axis=0)
        better = error < least * (1.0 - 1e-9)  # not by rounding
        least = np.where(better, error, least)
        best[:, better] = coefficients[:, better]
    return AdditiveSpline(bases, *ends, best, mean)


def _slopes(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the slopes of y on each feature alone, divided by the number of features that vary."""
    varies = np.array([len(_distinct(column)) > 1 for column in x.T])
    centred = x - x.mean(axis=0)
    spread = np.where(varies, (centred**2).sum(axis=0), 1.0)
    slopes = np.where(varies, 1.0, 0.0)[:, None] * (centred.T @ y) / spread[:, None]
    return np.asarray(slopes / max(1, int(varies.sum())))


def _distinct(x: FloatArray) -> FloatArray:
    """Return the values of a feature that differ by more than rounding, increasing."""
    return np.unique(np.round(x, 12))


class _Basis:
    """Columns for one feature: its slope, and bends of penalty 1 each, all of mean 0."""

    def __init__(self, x: FloatArray) -> None:
        values = _distinct(x)
        self.centre, self.scale = float(x.mean()), float(x.std())
        self.columns = 0 if len(values) < 2 else 1
        self.bends = np.zeros((0, 0))
        self.offset = np.zeros(0)
        if len(values) > 2:
            self.knots = np.quantile(values, np.linspace(0, 1, min(KNOTS, len(values))))
            second, rough = _second_derivatives(self.knots)
            self.second = second
            sizes, axes = np.linalg.eigh(rough)
            # Two directions, a constant and a line, have no bend at all.
            bends = axes[:, 2:] / np.sqrt(sizes[2:])
            raw = _natural_spline(x, self.knots, second) @ bends
            self.offset = raw.mean(axis=0)
            size = np.sqrt(((raw - self.offset) ** 2).mean(axis=0).sum())
            self.bends, self.offset = bends / size, self.offset / size
            self.columns = 1 + bends.shape[1]

    @property
    def is_slope(self) -> BoolArray:
        """Which column is the slope, shape (columns,)."""
        return np.asarray(np.arange(self.columns) == 0)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the columns at x, shape (rows, columns)."""
        if not self.columns:
            return np.zeros((len(x), 0))
        slope = ((x - self.centre) / self.scale)[:, None]
        if self.columns == 1:
            return slope
        raw = _natural_spline(x, self.knots, self.second) @ self.bends
        return np.hstack([slope, raw - self.offset])


def _second_derivatives(knots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return two matrices, shape (knots, knots), of a natural spline with given values.

    The first maps the values to second derivatives (0 at both ends). With the second, `values @
    rough @ values` is the integrated squared second derivative.
    """
    gap = np.diff(knots)
    inner = len(knots) - 2
    rows = np.arange(inner)
    band = np.zeros((inner, inner))
    band[rows, rows] = (gap[:-1] + gap[1:]) / 3.0
    band[rows[:-1], rows[1:]] = band[rows[1:], rows[:-1]] = gap[1:-1] / 6.0
    jump = np.zeros((inner, len(knots)))  # by how much the slope changes at each inner knot
    jump[rows, rows] = 1.0 / gap[:-1]
    jump[rows, rows + 1] = -1.0 / gap[:-1] - 1.0 / gap[1:]
    jump[rows, rows + 2] = 1.0 / gap[1:]
    bend = np.linalg.solve(band, jump)
    return np.vstack([np.zeros(len(knots)), bend, np.zeros(len(knots))]), jump.T @ bend


def _natural_spline(x: FloatArray, knots: FloatArray, second: FloatArray) -> FloatArray:
    """Return the values at x of splines that are 1 at one knot, 0 at others: (rows, knots)."""
    x = np.clip(x, knots[0], knots[-1])
    at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    gap = knots[at + 1] - knots[at]
    left, right = knots[at + 1] - x, x - knots[at]
    values = np.eye(len(knots))
    by_value = (left / gap)[:, None] * values[at] + (right / gap)[:, None] * values[at + 1]
    by_bend = (left**3 / gap - gap * left)[:, None] / 6.0 * second[at]
    by_bend += (right**3 / gap - gap * right)[:, None] / 6.0 * second[at + 1]
    return np.asarray(by_value + by_bend)
