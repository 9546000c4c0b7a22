"""From a method's predictions and the answers to estimates with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fewbench.evaluation.bounds import fit_tasks
from fewbench.evaluation.estimate import Estimate, Interval, RandomSampling, RankInterval
from fewbench.evaluation.intervals import Judgment
from fewbench.evaluation.ranks import Past, places
from fewbench.evaluation.sampling import error_within, wilson_interval
from fewbench.methods import Provenance
from fewbench.scores import Scores

OUTSIDE = (
    "the target answers unlike every source, and this method cannot predict a score beyond "
    "theirs: compare with random-ridge or random-linear"
)


@dataclass(frozen=True, eq=False)
class Said:
    """What a method said of one target, in [0, 1], and what the target answered.

    `score` is within what the answers leave possible.
    """

    target: str
    score: float
    tasks: NDArray[np.float64]
    outside: bool
    notes: tuple[str, ...]
    items: NDArray[np.intp]
    answers: NDArray[np.float64]


def make_estimate(
    said: Said,
    scores: Scores,
    judged: Judgment,
    level: float,
    provenance: Provenance,
    effect: float,
    past: Past,
    warnings: Sequence[str] = (),
) -> Estimate:
    """Make an estimate on the user's scale, beside what random sampling would give.

    `effect` is `sampling_effect` of the scores and `past` their `past_scores`, the same for all
    targets.
    """
    score, low, high = said.score, judged.low, judged.high
    tasks = fit_tasks(said.tasks, score, scores, said.items, said.answers)
    n, n_items = len(said.items), scores.n_items
    scale = scores.scale
    span = scale.high - scale.low
    plain = wilson_interval(score, n, n_items, level, effect)
    plain_error = error_within(*plain, n, n_items, effect)
    error = judged.expected_error
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
        interval_kind=judged.kind,
        interval_sources=judged.sources,
        beyond_sources=judged.beyond,
        warnings=tuple(w for w in (*said.notes, *judged.warnings, *warnings, outside) if w),
        provenance=provenance,
    )


def _interval(scores: Scores, low: float, high: float) -> Interval:
    low, high = scores.scale.interval_from_unit(low, high)
    return Interval(low=low, high=high)
