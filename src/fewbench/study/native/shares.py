"""A random share of each target's native sources (Figure 3a): does it matter how many there are?"""

import numpy as np
import pandas as pd

from fewbench.study.native.trial import IntArray, Trial

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)


def by_share(trial: Trial, shares: tuple[float, ...] = SHARES) -> pd.DataFrame:
    """Estimate targets by a random share of their native sources.

    As the sources are drawn from the native ones, their agreement with the target stays the same
    but for chance. Smaller shares are parts of larger ones, and targets with the same native
    sources share the draw.

    Parameters
    ----------
    trial : Trial
    shares : tuple of float
        Above 0, at most 1; at least one source is kept.

    Returns
    -------
    DataFrame
        As of `Trial.run`, a step for each share, named as in "40%".

    Examples
    --------
    >>> from fewbench.methods.adaptive.tailored import Tailored
    >>> from fewbench.study import Split
    >>> from fewbench.study.native import open_trial
    >>> from fewbench.testing import simulate
    >>> trial = open_trial(simulate(30, 80), Split(np.arange(24), np.arange(24, 30)),
    ...                    Tailored(), budget=15, seed=0)
    >>> by_share(trial, (0.5, 1.0)).groupby("step", sort=False)["natives"].mean().tolist()
    [6.0, 12.0]
    """
    return pd.concat(
        [
            trial.run(f"{share:.0%}", [_drawn(trial.seed, own, share) for own in trial.natives])
            for share in shares
        ],
        ignore_index=True,
    )


def _drawn(seed: int, natives: IntArray, share: float) -> IntArray:
    rng = np.random.default_rng([seed, 2, *natives.tolist()])
    count = max(1, round(share * len(natives)))
    return np.sort(rng.permutation(natives)[:count])
