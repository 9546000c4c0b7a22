"""From a method's predictions and the answers to estimates with intervals."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.evaluation.bounds import bound_score, fit_tasks, known_bounds
from fewbench.evaluation.estimate import Estimate, Interval, RandomSampling, RankInterval
from fewbench.evaluation.intervals import (
    Calibration,
    expected_random_error,
    sampling_interval,
    wilson_interval,
)
from fewbench.evaluation.ranks import Past, places
from fewbench.methods import Provenance
from fewbench.scores import Scores

OUTSIDE = (
    "the target answers unlike every source, and this method cannot predict a score beyond "
    "theirs: compare with random-ridge or random-linear"
)


@dataclass(frozen=True, eq=False)
class Said:
    """What a method said of one target, in [0, 1], and what the target answered."""

    target: str
    score: float
    tasks: NDArray[np.float64]
    outside: bool
    notes: tuple[str, ...]
    items: NDArray[np.intp]
    answers: NDArray[np.float64]


def interval(
    score: float,
    items: NDArray[np.intp],
    answers: NDArray[np.float64],
    scores: Scores,
    calibration: Calibration | None,
    level: float,
) -> tuple[float, float, str | None]:
    """Return the interval of an estimate, in [0, 1], and a warning if one is due.

    Parameters
    ----------
    calibration : Calibration, optional
        The method's past errors; None for the mean of a simple random sample.
    """
    low, high = known_bounds(scores.item_weights, items, answers)
    warning = None
    if calibration is None:
        binary = scores.is_binary and bool(np.isin(answers, (0.0, 1.0)).all())
        ends = sampling_interval(score, len(items), scores.n_items, level, binary=binary)
    else:
        half, warning = calibration.half_width(level)
        ends = score - half, score + half
    # The exact test may reject the very mean of the sample, which is no multiple of 1 / n_items.
    return max(low, min(ends[0], score)), min(high, max(ends[1], score)), warning


def make_estimate(
    said: Said,
    scores: Scores,
    calibration: Calibration | None,
    level: float,
    provenance: Provenance,
    effect: float,
    past: Past,
) -> Estimate:
    """Make an estimate on the user's scale, beside what random sampling would give.

    `effect` is `sampling_effect` of the scores and `past` their `past_scores`, the same for all
    targets.
    """
    score = bound_score(said.score, scores, said.items, said.answers)
    tasks = fit_tasks(said.tasks, score, scores, said.items, said.answers)
    low, high, warning = interval(score, said.items, said.answers, scores, calibration, level)
    n, n_items = len(said.items), scores.n_items
    scale = scores.scale
    span = scale.high - scale.low
    plain = wilson_interval(score, n, n_items, level, effect)
    plain_error = expected_random_error(score, n, n_items, effect)
    error = plain_error if calibration is None else calibration.mean_error
    behind = None
    if calibration is not None and error is not None:
        usual = float(np.mean([expected_random_error(p, n, n_items, effect) for p in past.full]))
        behind = _behind(error * span, usual * span) if error > usual else None
    # In [0, 1], where 1 is the best whatever the user's scale says.
    rank, best, worst = places(past.full, [score, high, low])
    task_ranks = [places(past.tasks[:, at], [task_score])[0] for at, task_score in enumerate(tasks)]
    outside = OUTSIDE if said.outside else None
    run = np.bincount(scores.task_of[said.items], minlength=len(scores.tasks))
    return Estimate(
        target=said.target,
        score=float(scale.from_unit(score)),
        interval=_interval(scores, low, high),
        level=level,
        tasks=dict(zip(scores.tasks, scale.from_unit(tasks).tolist(), strict=True)),
        rank=rank,
        ranked_among=len(past.full) + 1,
        rank_interval=RankInterval(best=best, worst=worst),
        task_ranks=dict(zip(scores.tasks, task_ranks, strict=True)),
        items_run=n,
        items_total=n_items,
        task_items=dict(zip(scores.tasks, run.tolist(), strict=True)),
        random=RandomSampling(
            interval=_interval(scores, *plain),
            expected_error=plain_error * span,
        ),
        expected_error=None if error is None else error * span,
        warnings=tuple(w for w in (*said.notes, warning, behind, outside) if w),
        provenance=provenance,
    )


def _behind(error: float, usual: float) -> str:
    return (
        f"on past models this method errs by {error:.3g} on average, plain random sampling of as "
        f"many items by {usual:.3g}: use random, or more items"
    )


def _interval(scores: Scores, low: float, high: float) -> Interval:
    low, high = scores.scale.interval_from_unit(low, high)
    return Interval(low=low, high=high)
