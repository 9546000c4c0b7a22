"""Is a target beyond the sources? What its answers say of its ability among theirs.

One ability a model, the sources' abilities being their known full scores (as standardized logits),
an item characteristic curve for every item that was run, and a flat prior over a grid that goes on
beyond the strongest source. It works for the answers to any items, whichever method chose them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import fit_curves
from fewbench.scores import Scores

EDGE = 0.95
RELIABLE = 0.5
"""Reliability below which sources say little of a better model."""
BELOW, ABOVE, NODES = 1.0, 4.0, 101


@dataclass(frozen=True, eq=False)
class Placement:
    """Where targets stand among the sources.

    Attributes
    ----------
    chance : ndarray, shape (targets,)
        Probability that the ability is above the sources' 95 % quantile.
    distance : ndarray, shape (targets,)
        Posterior mean ability less that quantile, in standard deviations of the sources.
    """

    chance: FloatArray
    distance: FloatArray


def place(sources: Scores, items: Sequence[IntArray], answers: Sequence[FloatArray]) -> Placement:
    """Place targets among the sources by their answers.

    Parameters
    ----------
    sources : Scores
    items, answers : sequences of ndarray
        For every target the positions of the items that it was run on, and its scores in [0, 1].
    """
    full = sources.full_scores()
    logits = np.log((full * sources.n_items + 0.5) / ((1 - full) * sources.n_items + 0.5))
    if logits.std() < 1e-9:  # sources that all score the same span no range
        best = [sources.filled[:, at].mean(axis=1).max() for at in items]
        own = [float(scores.mean()) for scores in answers]
        above = np.array(own) > np.array(best) + 1e-9
        return Placement(above.astype(np.float64), np.zeros(len(items)))
    abilities = (logits - logits.mean()) / logits.std()
    used = np.unique(np.concatenate(items))
    right = np.zeros((len(items), len(used)))
    wrong = np.zeros_like(right)
    for row, (at, scores) in enumerate(zip(items, answers, strict=True)):
        columns = np.searchsorted(used, at)
        right[row, columns], wrong[row, columns] = scores, 1 - scores
    grid = np.linspace(abilities.min() - BELOW, abilities.max() + ABOVE, NODES)
    chances = fit_curves(sources.filled[:, used], abilities).expected(grid)
    log_likelihood = right @ np.log(chances).T + wrong @ np.log1p(-chances).T
    posterior = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    edge = float(np.quantile(abilities, EDGE))
    return Placement(posterior @ (grid > edge), posterior @ grid - edge)


def reliability(sources: Scores) -> float:
    """Return Cronbach's alpha of the sources' scores: 1 where they differ in one ability.

    Near 0 or below, sources differ no more than by chance (all guess, say), and then they do not
    show how a better model answers.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> round(reliability(simulate(30, 200)), 1)
    1.0
    """
    values = sources.filled
    whole = float(values.sum(axis=1).var())
    n = values.shape[1]
    if n < 2 or whole <= 0:
        return 0.0
    return float(n / (n - 1) * (1 - values.var(axis=0).sum() / whole))
