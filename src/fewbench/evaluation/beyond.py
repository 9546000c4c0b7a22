"""The probability that a target is beyond the sources, from its answers to any items.

A model has one ability. The sources' abilities are the standardized logits of their full scores;
every item run has a characteristic curve. The prior is flat over a grid that extends beyond the
strongest source.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewbench._blocks import Matrix, by_columns, by_rows
from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.item_curves import fit_curves, score_logits
from fewbench.scores import Scores

EDGE = 0.95
RELIABLE = 0.5
"""Reliability below which sources do not show how a better model answers."""
BELOW, ABOVE, NODES = 1.0, 4.0, 101


@dataclass(frozen=True, eq=False)
class Placement:
    """The place of targets among the sources.

    Attributes
    ----------
    chance : ndarray, shape (targets,)
        Probability that the ability exceeds the sources' 95 % quantile.
    distance : ndarray, shape (targets,)
        Posterior mean ability minus that quantile, in standard deviations of the sources.
    """

    chance: FloatArray
    distance: FloatArray


def place(sources: Scores, items: Sequence[IntArray], answers: Sequence[FloatArray]) -> Placement:
    """Place targets among the sources by their answers.

    Parameters
    ----------
    sources : Scores
    items, answers : sequences of ndarray
        Each target's items, as positions, and scores in [0, 1].
    """
    logits = score_logits(sources.full_scores(), sources.n_items)
    if logits.std() < 1e-9:  # all sources score the same
        best = [sources.filled_cells[:, at].mean(axis=1).max() for at in items]
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
    chances = fit_curves(sources.filled_cells[:, used], abilities).expected(grid)
    log_likelihood = right @ np.log(chances).T + wrong @ np.log1p(-chances).T
    posterior = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    edge = float(np.quantile(abilities, EDGE))
    return Placement(posterior @ (grid > edge), posterior @ grid - edge)


def reliability(sources: Scores) -> float:
    """Return Cronbach's alpha of the sources' scores: 1 if they differ in one ability.

    At 0 or below, sources differ only by chance, for example because all guess.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> round(reliability(simulate(30, 200)), 1)
    1.0
    """
    return float(sources.remember("reliability", lambda: _alpha(sources.filled_cells)))


def _alpha(values: Matrix) -> float:
    whole = float(by_rows(values, lambda part: part.sum(axis=1)).var())
    n = values.shape[1]
    if n < 2 or whole <= 0:
        return 0.0
    of_items = by_columns(values, lambda part: part.var(axis=0)).sum()
    return float(n / (n - 1) * (1 - of_items / whole))
