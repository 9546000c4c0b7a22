"""How far a target is like the sources, by its answers: what their held-out errors do not show.

Errors on held-out sources do not apply to a target unlike the sources. Its ability may be far
beyond theirs, above or below, or its answers may not fit (`fewbench.algorithms.abilities`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.abilities import Abilities, fit_abilities, novelty_p_values
from fewbench.methods.base import Answers
from fewbench.scores import Scores

MISFIT = 0.02
"""p-value of the answers' fit from which an estimate warns."""
LEAST_LIKELY, WIDENING = 0.005, 0.35
"""Errors grow as the p-value of resemblance, or this one if it is less, to the power of minus this,
measured on eight tables with targets like the sources, beyond them and unlike them
(docs/intervals.md)."""


@dataclass(frozen=True)
class Resemblance:
    """How far a target is like the sources.

    Attributes
    ----------
    p_value : float
        Geometric mean of the p-values of fit and novelty.
    beyond : float
        Probability that the ability is above 95% or below 5% of the sources.
    why : str or None
        "above" or "below" for a target beyond the sources, "misfit" for one whose answers do not
        fit.
    """

    p_value: float
    beyond: float
    why: str | None

    @property
    def widening(self) -> float:
        """By how much errors are larger than those of a target that is most like the sources.

        >>> round(Resemblance(0.1, 0.0, None).widening, 2)
        2.24
        """
        return float(max(self.p_value, LEAST_LIKELY) ** -WIDENING)


def resemblance_of(sources: Scores, answers: Sequence[Answers], reach: float) -> list[Resemblance]:
    """Return how far targets are like the sources, each by one row of answers.

    `reach` is that of the method (see `fewbench.methods.Method.reach`). Curves are fitted once for
    targets with the same items.
    """
    found: dict[int, Resemblance] = {}
    by_items: dict[bytes, list[int]] = {}
    for at, given in enumerate(answers):
        by_items.setdefault(np.asarray(given.items).tobytes(), []).append(at)
    full = sources.full_scores()
    for places in by_items.values():
        items = np.asarray(answers[places[0]].items)
        theirs, columns = sources.columns(items, filled=True), np.arange(len(items))
        abilities = fit_abilities(theirs, full, sources.n_items)
        rows = np.vstack([answers[at].scores[0] for at in places])
        fits = abilities.fit_p_values(theirs, columns, rows)
        novelties = novelty_p_values(theirs, rows)
        for at, row, fit, novelty in zip(places, rows, fits, novelties, strict=True):
            why = _why(abilities, theirs, columns, row, reach, min(fit, novelty))
            beyond = abilities.chance_beyond(abilities.posterior(columns, row))
            found[at] = Resemblance(math.sqrt(fit * novelty), beyond, why)
    return [found[at] for at in range(len(answers))]


def _why(
    abilities: Abilities,
    theirs: FloatArray,
    items: IntArray,
    row: FloatArray,
    reach: float,
    p_value: float,
) -> str | None:
    why = abilities.beyond(theirs, items, row, reach)
    return why or ("misfit" if p_value <= MISFIT else None)
