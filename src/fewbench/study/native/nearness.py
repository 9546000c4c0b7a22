"""Fifths of the sources by nearness (Figure 3b): does it matter how consistent natives are?"""

import numpy as np
import pandas as pd

from fewbench.errors import StudyError
from fewbench.study.native.trial import Trial

PARTS = 5
LEAST = 2  # sources in each part


def by_nearness(trial: Trial, parts: int = PARTS) -> pd.DataFrame:
    """Estimate targets by the nearest part of the sources, by the next, … by the farthest.

    Every part has the same number of sources; if the sources cannot be divided evenly, the last
    ones of some parts are left out.

    Parameters
    ----------
    trial : Trial
    parts : int

    Returns
    -------
    DataFrame
        As of `Trial.run`, a step for each part, named by percentiles, as in "20–40%".

    Raises
    ------
    StudyError
        If a part would have fewer than two sources.

    Examples
    --------
    >>> from fewbench.methods.adaptive.tailored import Tailored
    >>> from fewbench.study import Split
    >>> from fewbench.study.native import open_trial
    >>> from fewbench.testing import simulate
    >>> trial = open_trial(simulate(30, 80), Split(np.arange(24), np.arange(24, 30)),
    ...                    Tailored(), budget=15, seed=0)
    >>> runs = by_nearness(trial, 3)
    >>> runs.groupby("step", sort=False)["natives"].mean()
    step
    0–33%      8.0
    33–67%     8.0
    67–100%    8.0
    Name: natives, dtype: float64
    """
    n = trial.sources.n_models
    size = n // parts
    if size < LEAST:
        raise StudyError(
            f"{n} sources cannot be divided by nearness into {parts} parts of {LEAST} or more",
            hint=f"{parts * LEAST} sources or more are needed",
        )
    runs = []
    for part in range(parts):
        first = part * n // parts
        name = f"{100 * part / parts:.0f}–{100 * (part + 1) / parts:.0f}%"
        runs.append(trial.run(name, [np.sort(row[first : first + size]) for row in trial.order]))
    return pd.concat(runs, ignore_index=True)
