"""Turn predictions and answers into estimates with intervals and warnings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from fewbench._types import FloatArray, IntArray
from fewbench.errors import EvaluationError
from fewbench.evaluation.bounds import Past, bound_score, fit_tasks, past_scores, places
from fewbench.evaluation.estimate import Estimate, Estimates, Interval, RandomSampling, RankInterval
from fewbench.evaluation.intervals import ErrorModel, Judgment
from fewbench.evaluation.packed import nearest_limit
from fewbench.evaluation.sampling import error_within, sampling_effect, wilson_interval
from fewbench.executors import Pool
from fewbench.methods import Answers, Method, Prediction, Provenance
from fewbench.scores import Scores
from fewbench.scores.packed import PackedScores

OUTSIDE = (
    "the target answers unlike every source model, and this method cannot predict a score beyond "
    "theirs: compare with random-ridge or random-linear"
)
ENOUGH = 0.8
"""Share of the budget from which the errors with the whole budget apply."""


AHEAD = 8
"""An adaptive method is judged after up to so many times as many answers in the same go."""
FIRST_LOOK = 40
"""Answers after which a method is judged before there are any, if the width will end the run."""


@dataclass(frozen=True, eq=False)
class Heard:
    """A target's answers (one row), whether it has open items, and warnings about the answers."""

    target: str
    answers: Answers
    is_partial: bool
    notes: tuple[str, ...] = ()


class Estimator:
    """Makes estimates from predictions and the method's past errors, which `folder` keeps.

    With `by_width` the width of the interval may end the run: it must hold whenever that happens.
    Errors are measured on `pool`, in this process by default.
    """

    def __init__(
        self,
        method: Method,
        scores: Scores,
        provenance: Provenance,
        folder: Path | None = None,
        *,
        by_width: bool = False,
    ) -> None:
        self.pool: Pool | None = None
        self._by_width = by_width
        self._method, self._scores, self._made = method, scores, provenance
        self._folder = folder
        self._models: dict[int | None, ErrorModel] = {}

    def estimate(
        self,
        prediction: Prediction,
        heard: Sequence[Heard],
        level: float,
        notes: Sequence[str] = (),
    ) -> Estimates:
        """Return one estimate per row; EvaluationError if task scores were not predicted."""
        if prediction.tasks is None:
            raise EvaluationError(f"{self._made.method} predicted no task scores")
        said = []
        for row, one in enumerate(heard):
            items, answers = one.answers.items, one.answers.scores[0]
            score = bound_score(float(prediction.scores[row]), self._scores, items, answers)
            outside = prediction.outside is not None and bool(prediction.outside[row])
            told = (*one.notes, *prediction.notes)
            said.append(
                Said(one.target, score, prediction.tasks[row], outside, told, items, answers)
            )
        errors = [self.errors(len(one.answers.items) if one.is_partial else None) for one in heard]
        judged: dict[int, Judgment] = {}
        for model in dict.fromkeys(errors):  # targets judged by the same errors together
            rows = [row for row, own in enumerate(errors) if own is model]
            found = model.judge(
                np.array([said[row].score for row in rows]),
                [said[row].items for row in rows],
                [said[row].answers for row in rows],
                level,
                None if prediction.spread is None else prediction.spread[rows],
            )
            judged |= dict(zip(rows, found, strict=True))
        answered = max((len(one.answers.items) for one in heard), default=0)
        general = [*self.warnings(answered), *notes] if heard else []
        estimates = Estimates()
        for row, (one_said, model) in enumerate(zip(said, errors, strict=True)):
            beyond = []
            if judged[row].is_beyond:
                beyond = [model.beyond_warning(self._made.method, self._span)]
            estimates[one_said.target] = make_estimate(
                one_said,
                self._scores,
                judged[row],
                level,
                self._made,
                self._effect,
                self._past,
                [*beyond, *general],
            )
        return estimates

    def warnings(self, answered: int = FIRST_LOOK) -> list[str]:
        """Return warnings about the method on these sources."""
        if self._by_width and not self._method.asks_once:  # the whole budget may never be run
            return self.errors(min(max(answered, 1), self._made.budget)).warn(self._span)
        return self.errors().warn(self._span)

    def errors(self, answered: int | None = None) -> ErrorModel:
        """Return the method's errors with the whole budget, or with so many answers.

        With fewer answers, errors are measured at the next smaller of budgets in steps of a fifth.
        """
        budget, limit = self._made.budget, None
        exact = self._method.plain_sampling and self._scores.average == "micro"
        # With a budget of all items the whole budget shows no error at all.
        few = answered is not None and (
            answered < ENOUGH * budget or budget == self._scores.n_items
        )
        if answered is not None and few and not exact:
            steps = int(np.floor(np.log(answered / budget) / np.log(ENOUGH)))
            limit = max(1, int(budget * ENOUGH ** (steps + 1)))
        scores = self._scores
        if limit is not None and isinstance(scores, PackedScores) and not scores.is_whole:
            limit = nearest_limit(scores, limit)
        if limit not in self._models:
            together: list[int | None] = [limit]
            if limit is not None and not self._method.asks_once:
                # The next estimates of the same run, each time the answers have doubled.
                later = {int(budget * ENOUGH**step) for step in range(steps - 2, 0, -3)} - {limit}
                together += sorted(n for n in later if n <= AHEAD * limit)
                together += [None] if budget <= AHEAD * limit else []
            other = next(iter(self._models.values()), None)
            self._models[limit] = ErrorModel(
                self._method,
                self._scores,
                budget,
                self._made.seed,
                folder=self._folder,
                limit=limit,
                together=together,
                kept=None if other is None else other.kept,
                looks=self._looks(limit) if self._by_width else None,
            )
        self._models[limit].pool = self.pool
        return self._models[limit]

    def _looks(self, limit: int | None) -> list[int]:
        """Return the numbers of answers below a limit at which errors may have been measured."""
        budget = self._made.budget
        most, found, looks = budget if limit is None else limit, budget * ENOUGH, []
        while found >= 1:
            looks.append(int(found))
            found *= ENOUGH
        return [look for look in dict.fromkeys(looks) if look < most]

    @property
    def _span(self) -> float:
        return self._scores.scale.high - self._scores.scale.low

    @cached_property
    def _past(self) -> Past:
        return past_scores(self._scores)

    @cached_property
    def _effect(self) -> float:
        return sampling_effect(self._scores, self._made.budget)


@dataclass(frozen=True, eq=False)
class Said:
    """A method's prediction for one target, in [0, 1], and the target's answers.

    `score` is one that the answers leave possible.
    """

    target: str
    score: float
    tasks: FloatArray
    outside: bool
    notes: tuple[str, ...]
    items: IntArray
    answers: FloatArray


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
    """Make an estimate on the user's scale.

    `effect` is the `sampling_effect` of the scores, and `past` their `past_scores`.
    """
    score, low, high = said.score, judged.low, judged.high
    tasks = fit_tasks(said.tasks, score, scores, said.items, said.answers)
    n, n_items = len(said.items), scores.n_items
    scale = scores.scale
    span = scale.high - scale.low
    plain = wilson_interval(score, n, n_items, level, effect)
    plain_error = error_within(*plain, n, n_items, effect)
    error = judged.expected_error
    # In [0, 1], where 1 is best on every scale.
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
