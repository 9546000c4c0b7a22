"""A fixed number of nearest sources (Figure 4): is the number that the method finds a good one?"""

from collections.abc import Sequence

import pandas as pd

from fewbench.errors import StudyError
from fewbench.study.native.trial import Trial

CHOSEN = "as found"
_SHARES = (0.03, 0.07, 0.13, 0.27, 0.4, 0.6, 0.8, 1.0)


def counts_to_try(n_sources: int) -> list[int]:
    """Numbers of native sources from few to all.

    Examples
    --------
    >>> counts_to_try(75)
    [2, 5, 10, 20, 30, 45, 60, 75]
    """
    return sorted({max(1, round(share * n_sources)) for share in _SHARES})


def by_count(trial: Trial, counts: Sequence[int] | None = None) -> pd.DataFrame:
    """Estimate targets by as many of their nearest sources, and by those that the method finds.

    Parameters
    ----------
    trial : Trial
    counts : sequence of int, optional
        From 1 to the number of sources; `counts_to_try` by default.

    Returns
    -------
    DataFrame
        As of `Trial.run`, a step for each number, and "as found" for the method as it is.

    Raises
    ------
    StudyError
        If there are not so many sources.

    Examples
    --------
    >>> import numpy as np
    >>> from fewbench.methods.adaptive.tailored import Tailored
    >>> from fewbench.study import Split
    >>> from fewbench.study.native import open_trial
    >>> from fewbench.testing import simulate
    >>> trial = open_trial(simulate(30, 80), Split(np.arange(24), np.arange(24, 30)),
    ...                    Tailored(), budget=15, seed=0)
    >>> by_count(trial, [4, 24]).groupby("step", sort=False)["natives"].mean().tolist()
    [4.0, 24.0, 12.0]
    """
    n = trial.sources.n_models
    tried = counts_to_try(n) if counts is None else list(counts)
    for count in tried:
        if not 1 <= count <= n:
            raise StudyError(
                f"{count} native sources, where there are {n} sources", hint=f"use 1 to {n}"
            )
    runs = [trial.run(str(count), trial.nearest(count)) for count in tried]
    return pd.concat([*runs, trial.run(CHOSEN, trial.natives)], ignore_index=True)
