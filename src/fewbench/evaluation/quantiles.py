"""Quantiles of held-out errors."""

import math
from functools import cached_property

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.evaluation.errors import equal_weights

DEGREES = (3.0, 4.0, 6.0, 10.0, 30.0)
"""Degrees of freedom of the Student distributions that errors are fitted by."""
CONFORMAL = 40.0
"""Number of groups at which the conformal quantile counts as much as Student's."""
TINY = 1e-9


class Quantiles:
    """Quantiles of absolute relative errors, every group of sources weighted equally.

    Between the conformal quantile, which needs many groups, and that of a fitted Student
    distribution, which assumes a shape: q = conformal^(G/(G+40)) student^(40/(G+40)) for G groups.

    Parameters
    ----------
    relative : ndarray, shape (n,)
        Signed errors in their units.
    groups : ndarray of int, shape (n,)

    Examples
    --------
    >>> errors = np.random.default_rng(0).standard_normal(400)
    >>> round(Quantiles(errors, np.arange(400)).at(0.9), 1)
    1.5
    """

    def __init__(self, relative: FloatArray, groups: IntArray) -> None:
        self.groups = len(np.unique(groups))
        self._weights = equal_weights(groups)
        order = np.argsort(np.abs(relative), kind="stable")
        self._sizes, self._reached = np.abs(relative)[order], np.cumsum(self._weights[order])
        self._relative = relative
        self._known: dict[float, float] = {}

    @cached_property
    def _student(self) -> tuple[float, float]:
        """Degrees of freedom and scale of greatest likelihood."""
        from scipy.special import gammaln

        x, w = self._relative, self._weights
        best = (-math.inf, DEGREES[-1], 0.0)
        for nu in DEGREES:
            scale = max(float(w @ x**2), TINY**2)
            for _ in range(50):
                scale = max(float(w @ ((nu + 1) / (nu + x**2 / scale) * x**2)), TINY**2)
            fit = float(gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu * scale))
            fit -= (nu + 1) / 2 * float(w @ np.log1p(x**2 / (nu * scale)))
            best = max(best, (fit, nu, math.sqrt(scale)))
        return best[1:]

    @cached_property
    def mean(self) -> float:
        """Mean absolute relative error."""
        return float(self._weights @ np.abs(self._relative))

    def at(self, level: float) -> float:
        """Return the quantile of the absolute relative error at a level."""
        if level not in self._known:
            self._known[level] = self._at(level)
        return self._known[level]

    def plain(self, level: float) -> float:
        """Return the quantile of the held-out errors themselves."""
        at = int(np.searchsorted(self._reached, level - 1e-12))
        return float(self._sizes[min(at, len(self._sizes) - 1)])

    def _at(self, level: float) -> float:
        from scipy.special import stdtrit

        nu, scale = self._student
        groups = self.groups
        wider = math.sqrt(1 + 1 / groups) * (1 + 1 / groups)
        student = scale * float(stdtrit(nu, 0.5 + level / 2)) * wider
        # The target is one more group, with an error that may be any.
        share = groups / (groups + 1)
        if level <= share * (1 - 1e-12):
            conformal = self.plain(level / share)
        else:  # more than these groups can show: it grows as Student's
            ratio = float(stdtrit(nu, 0.5 + level / 2) / stdtrit(nu, 0.5 + share / 2))
            conformal = float(self._sizes[-1]) * ratio
        weight = groups / (groups + CONFORMAL)
        return float(max(conformal, TINY) ** weight * max(student, TINY) ** (1 - weight))
