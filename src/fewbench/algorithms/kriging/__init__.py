"""fewbench's own estimator: a Gaussian process over items, inside and beyond the sources.

`inside` is a Gaussian process whose item covariance comes from the sources that answer as the
target does. `extrapolation` carries item characteristic curves to abilities that no source has.
`sample` draws items with known probabilities, where sources cannot be trusted or are few or none.
`posterior` weighs the two models by Bayesian model averaging, and `design` chooses the items that
lower the posterior variance of the wanted score most.
"""

from fewbench.algorithms.kriging.model import KrigingModel, fit_kriging, pool_size
from fewbench.algorithms.kriging.posterior import (
    FAR,
    KrigingRun,
    choose_static,
    next_together,
    settle,
)
from fewbench.algorithms.kriging.sample import (
    FEW,
    PILOT,
    Draw,
    Estimated,
    SampledRun,
    SampleModel,
    fit_sample,
)

__all__ = [
    "FAR",
    "FEW",
    "PILOT",
    "Draw",
    "Estimated",
    "KrigingModel",
    "KrigingRun",
    "SampleModel",
    "SampledRun",
    "choose_static",
    "fit_kriging",
    "fit_sample",
    "next_together",
    "pool_size",
    "settle",
]
