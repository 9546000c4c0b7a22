"""When it pays to run items several times: never before all items ran once.

With between-item variance b and within-item variance v, n items of k answers each give the score of
a model, on questions like these and if run again, with the variance (b + v / k) / n. At a fixed
number of runs n k that is (k b + v) / (n k): more answers to fewer items never help.
"""

import math

import numpy as np

from fewbench.scores import Scores, Unit

RULE = (
    "run more items before you run any item twice (--repeats): at the same number of runs, more "
    "items always tell more"
)
TIMES = 4
"""Runs of each item of which the note speaks."""


def repeats_advice(scores: Scores) -> str:
    """Return when repeated runs pay, with numbers where models answered items several times.

    Examples
    --------
    >>> from fewbench import from_arrays
    >>> from fewbench.scores.repeats import Repeats
    >>> table = from_arrays([[0.5, 1.0, 0.0, 0.5]], models=["a"])
    >>> counts, variances = np.full((1, 4), 2), np.array([[0.5, 0.0, 0.0, 0.5]])
    >>> print(repeats_advice(table.changed(repeats=Repeats.from_counts(counts, variances))))
    run more items before you run any item twice (--repeats): at the same number of runs, more items
    always tell more. By the models that answered items several times, the standard error of a score
    in general is 27.0 pp with 4 items once, and 28.9 pp with 2 items twice; after all items ran, 4
    runs of each lower it to 16.1 pp
    """
    parts = _parts(scores)
    if parts is None:
        return f"{RULE}; once all items ran, more runs lower the run-to-run noise"
    between, within = parts
    unit, n, span = Unit(scores.scale), scores.n_items, scores.scale.span

    def error(items: float, times: int) -> str:
        return unit.points(span * math.sqrt((between + within / times) / items))

    return (
        f"{RULE}. By the models that answered items several times, the standard error of a score "
        f"in general is {error(n, 1)} with {n:,} items once, and {error(n / 2, 2)} with {n // 2:,} "
        f"items twice; after all items ran, {TIMES} runs of each lower it to {error(n, TIMES)}"
    )


def _parts(scores: Scores) -> tuple[float, float] | None:
    """Return the variance between and within items, of the models with several answers."""
    if scores.repeats is None or scores.n_items < 2:
        return None
    between, within = [], []
    for row in np.flatnonzero((scores.repeats.counts > 1).any(axis=1)):
        variances, counts = scores.repeats.variances[row], scores.repeats.counts[row]
        shown = np.isfinite(variances)
        if shown.sum() < 2:
            continue
        noise = float((variances[shown] / counts[shown]).mean())
        within.append(float(variances[shown].mean()))
        between.append(max(float(scores.cells[row][shown].var(ddof=1)) - noise, 0.0))
    return (float(np.mean(between)), float(np.mean(within))) if within else None
