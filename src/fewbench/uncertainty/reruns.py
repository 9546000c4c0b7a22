"""How much of what is seen on items is how the model happened to answer: run-to-run noise.

From two answers an item on, their variance about the item's own mean shows it. The mean over N
items of k answers each then varies, over new runs of the same items, by

    mean within-item variance / (k N)

and the rest of the error of a model's score is the choice of the items (Miller 2024, "Adding error
bars to evals", arXiv 2411.00640).
"""

from typing import Any

import numpy as np
from pydantic import Field

from fewbench._json import Frozen
from fewbench._types import FloatArray
from fewbench.methods import Answers
from fewbench.uncertainty.questions import variance_of, variance_of_score


class RunNoise(Frozen):
    """How far a mean over items varies from run to run.

    Attributes
    ----------
    items : int
        Number of items.
    answers_per_item : float
        Mean number of answers.
    half_width : float
        Half width of the interval of the mean over new runs of the same items, each answered as
        often, on the scale of the scores.
    share : float
        Part of the variance of the score, or difference, as a model: on questions like these and if
        run again. The rest is the choice of items.
    """

    items: int
    answers_per_item: float
    half_width: float = Field(ge=0)
    share: float = Field(ge=0, le=1)

    def sentence(self, what: str, half_width: str, level: float) -> str:
        """Return it in words; `what` varies.

        >>> noise = RunNoise(items=80, answers_per_item=5, half_width=0.02, share=0.053)
        >>> print(noise.sentence("their mean", "2.0 pp", 0.9))
        Run-to-run noise (80 items, 5 answers each): if they run again as often, their mean varies
        by ± 2.0 pp (90%). That is 5% of its variance in general; the choice of items is 95%.
        """
        each = f"{self.answers_per_item:.1f}".removesuffix(".0")
        noise = round(100 * self.share)
        return (
            f"Run-to-run noise ({self.items:,} items, {each} answers each): if they run again as "
            f"often, {what} varies by ± {half_width} ({level:.0%}). That is {noise}% of its "
            f"variance in general; the choice of items is {100 - noise}%."
        )


def noise_of_score(answers: Answers, weights: FloatArray, level: float) -> RunNoise | None:
    """Return the noise of the mean of a target's answers, for scores in [0, 1].

    None if no item was answered twice. Items that were answered once count as varying like the
    others.

    Parameters
    ----------
    answers : Answers
        Answers of one target.
    weights : ndarray, shape (items,)
        Weights of all items in the full score.
    level : float

    Examples
    --------
    >>> answers = Answers(np.arange(4), np.array([[1.0, 0.5, 0.5, 0.0]]), None,
    ...     np.full((1, 4), 2.0), np.array([[0.0, 0.5, 0.5, 0.0]]))
    >>> noise = noise_of_score(answers, np.full(4, 0.25), 0.9)
    >>> noise.items, round(noise.half_width, 3), round(noise.share, 2)
    (4, 0.291, 0.62)
    """
    if (spread := _spread_of(answers)) is None:
        return None
    scores, used = answers.scores[0], weights[answers.items]
    used = used / used.sum()
    total = variance_of_score(float(used @ scores), len(scores), scores)
    return _noise(spread, answers.counts, used, total, level)


def noise_of_difference(
    one: Answers, other: Answers, weights: FloatArray, level: float
) -> RunNoise | None:
    """Return the noise of the mean difference of two models on the items that both answered.

    None unless both answered items several times.
    """
    _, ours, theirs = np.intersect1d(one.items, other.items, return_indices=True)
    spreads = [_spread_of(one, ours), _spread_of(other, theirs)]
    if spreads[0] is None or spreads[1] is None or one.counts is None or other.counts is None:
        return None
    used = weights[one.items[ours]]
    used = used / used.sum()
    total = variance_of(one.scores[0, ours] - other.scores[0, theirs])
    counts = (one.counts[:, ours] + other.counts[:, theirs]) / 2
    return _noise(spreads[0] + spreads[1], counts, used, total, level)


def _spread_of(answers: Answers, places: Any = slice(None)) -> FloatArray | None:
    """Return the variance of each item's score over runs, or None if it cannot be estimated."""
    if answers.counts is None or answers.variances is None:
        return None
    counts, variances = answers.counts[0, places], answers.variances[0, places]
    is_shown = np.isfinite(variances)
    if not is_shown.any():
        return None
    return np.asarray(np.where(is_shown, variances, variances[is_shown].mean()) / counts)


def _noise(
    spread: FloatArray, counts: FloatArray | None, weights: FloatArray, total: float, level: float
) -> RunNoise:
    from scipy.special import ndtri

    assert counts is not None
    variance, squares = float(weights**2 @ spread), float(weights @ weights)
    return RunNoise(
        items=len(spread),
        answers_per_item=float(counts.mean()),
        half_width=float(ndtri(0.5 + level / 2)) * variance**0.5,
        share=min(1.0, variance / max(total * squares, 1e-12)),
    )
