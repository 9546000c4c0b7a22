"""Turn predictions and answers into estimates with intervals and warnings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import numpy as np

from fewbench._names import counted
from fewbench.algorithms import ties
from fewbench.evaluation.choosing import Choosing
from fewbench.evaluation.estimate import Estimate, Estimates
from fewbench.evaluation.interval import GroupScore, Interval, RandomSampling, RankInterval
from fewbench.evaluation.opening import Stop
from fewbench.evaluation.packed import known_errors
from fewbench.executors import Executor, Pool, open_pool
from fewbench.methods import Method, Provenance, Record
from fewbench.methods.adaptive.unrun import WithUnrun, budget_of_ran
from fewbench.methods.kriging import MOST_UNRUN, learns_from_whole
from fewbench.methods.sources import FEWEST_OTHERS, RELIABLE, are_opposed, reliability
from fewbench.scores import Scores, Unit
from fewbench.scores.conditions import disagreements, passes_of
from fewbench.scores.table import SETTINGS, UNRUN
from fewbench.uncertainty.bounds import Past, past_scores, places
from fewbench.uncertainty.held_out import HeldOut, measure_for
from fewbench.uncertainty.intervals import Scored, Uncertainty, stricter
from fewbench.uncertainty.judge import Judge
from fewbench.uncertainty.question_error import of_model
from fewbench.uncertainty.reruns import noise_of_score
from fewbench.uncertainty.sampling import error_within

OUTSIDE = (
    "the target answers unlike every source model, and this method cannot predict a score outside "
    "their range: compare with random-ridge or random-linear"
)
SWITCHED = (
    "the target does not answer like the source models: the interval is that of the items that "
    "were drawn at random, not of errors on held-out source models"
)
OPPOSITE = (
    "the target tends to be right where the source models are wrong: if its scores are errors, or "
    "are recorded for other items, the estimate is wrong. Check a few of its answers"
)


class Estimating:
    """Makes estimates of targets, with what is known about the method's errors.

    Parameters
    ----------
    choosing : Choosing
        The method at work on the targets.
    """

    def __init__(self, choosing: Choosing) -> None:
        self._choosing, self._ledger = choosing, choosing.ledger
        self._narrow: dict[str, bool] = {}  # of the last estimates
        self._kept: dict[tuple[str, ...], tuple[tuple[float, int], Estimates]] = {}
        self._pool: Pool | None = None
        self.errors_folder = self._ledger.folder
        """Where measured errors of the method are kept."""

    @cached_property
    def judge(self) -> Judge:
        """What says how far the method's estimates may be off."""
        choosing, provenance = self._choosing, self._choosing.provenance
        scores, stop = choosing.scores, choosing.settings.stop
        half_width = None if stop.half_width is None else stop.half_width / scores.scale.span
        packed = known_errors(scores, choosing.method, provenance)
        method, whole, budget = choosing.method, scores.whole, provenance.budget
        table, ran_budget = whole, budget
        if self.samples_unrun:
            table, ran_budget = scores.ran.whole, budget_of_ran(scores, budget)

        def errors(answered: int) -> HeldOut:
            if packed is not None:
                return packed
            return measure_for(
                method, table, ran_budget, provenance.seed, answered,
                stops_early=half_width is not None, folder=self.errors_folder, pool=self._pool,
            )  # fmt: skip

        of_ran = Judge(method, table, ran_budget, errors) if self.samples_unrun else None
        return Judge(method, whole, budget, errors, half_width, stop.level, of_ran)

    @cached_property
    def samples_unrun(self) -> bool:
        """Whether items that no source ran are a random sample beside what the method asks."""
        return isinstance(self._choosing.session, WithUnrun)

    @contextmanager
    def measured_by(self, workers: int, executor: Executor) -> Iterator[None]:
        """Measure the method's errors there."""
        with open_pool(executor, workers) as self._pool:
            try:
                yield
            finally:
                self._pool = None

    @cached_property
    def _mixed_sources(self) -> tuple[str, ...]:
        return disagreements(self._choosing.scores, but_agents=True)

    def estimates(self, level: float, names: list[str]) -> Estimates:
        """Return the estimates of targets with answers, with every warning on them."""
        choosing, record = self._choosing, self._ledger.record
        waiting, key = list[str](), tuple(names)
        with suppress(OSError):  # new items cannot be noted in a folder that can only be read
            waiting = choosing.advance()
        state = (level, self._ledger.n_changes)
        if (kept := self._kept.get(key)) is not None and kept[0] == state:
            return Estimates(kept[1])  # no requests or answers since
        prediction = choosing.predict(names, tasks=True)
        stop, scores = choosing.settings.stop, choosing.scores
        past, estimates = past_scores(scores.whole), Estimates()
        general: list[str] | None = None
        for row, name in enumerate(names):
            score = Scored.from_row(prediction, row, record.answers(name), scores)
            uncertainty = self.judge.uncertainty(score)
            self._narrow[name] = uncertainty.ends_run
            notes = progress_notes(
                record, name, choosing.budget, stop, choosing.method,
                is_waiting=name in waiting, affordable=len(choosing.affordable(name)) > 0,
                is_narrow=self._narrow[name], is_sampled=score.is_sampled,
            )  # fmt: skip
            notes += [*self._ledger.notes(name), *prediction.notes]
            if not (score.ran or score).is_sampled:
                general = self.method_notes() if general is None else general
                notes += general
            elif (
                self.judge.method.reach
                and not prediction.notes
                and (score.ran is not None or learns_from_whole(scores))
            ):
                notes.append(SWITCHED)
            n_ran = len((score.ran or score).answers.items)
            if n_unrun := len(score.answers.items) - n_ran:
                notes.append(beside_note(scores, n_unrun))
            if prediction.outside is not None and prediction.outside[row]:
                notes.append(OUTSIDE)
            notes += direction_notes(score, self.judge.scores)
            notes += [*choosing.notes, *self._mixed_sources, *self._other_trials(name)]
            estimate = make_estimate(
                name, score, uncertainty, self.judge, level, choosing.provenance, past, notes
            )  # fmt: skip
            if not general and not uncertainty.warnings and _random_is_better(estimate):
                unit = Unit(estimate.scale)
                better = "random" if len(estimate.tasks) < 2 else "random-stratified"
                worse = (
                    f"for this target, the same number of random items would give a lower error "
                    f"({unit.points(estimate.random.expected_error)}): run it with -m {better}"
                )
                warned = (*estimate.warnings, worse)
                estimate = estimate.model_copy(update={"warnings": warned})
            estimates[name] = estimate
        self._kept[key] = (state, estimates)
        return Estimates(estimates)

    def _other_trials(self, target: str) -> list[str]:
        """Return a warning if the source models' scores are pass@K and a target's are not."""
        items = self._choosing.scores.items
        wanted = passes_of(items[SETTINGS].astype(str).unique()) if SETTINGS in items else ""
        settings = [entry.conditions.get(SETTINGS, {}) for entry in self._ledger.answers_of(target)]
        if not wanted or all(passes_of(texts) == wanted for texts in settings):
            return []
        return [
            f"the source models' scores are {wanted}, and the target's are not known to be: record "
            f"its answers with --trials {wanted}; means of single answers make the estimate too low"
        ]

    def is_narrow(self, target: str) -> bool:
        """Whether a target's interval is so narrow that the run ends."""
        self.estimates(self._choosing.settings.stop.level, [target])
        return self._narrow[target]

    def method_notes(self) -> list[str]:
        """Return warnings about the method on these sources."""
        judge = self.judge
        if judge.method.plain_sampling:
            return []
        scores, errors, notes = judge.scores, judge.errors(judge.budget), list[str]()
        if not self.samples_unrun and self._choosing.scores.unrun_share > MOST_UNRUN:
            notes.append(unrun_note(self._choosing.scores))
        error, random = errors.mean_error, errors.mean_random
        if error is not None and random is not None and errors.is_worse_than_random:
            span, unit = scores.scale.span, Unit(scores.scale)
            notes.append(
                f"on held-out source models the mean error of this method with "
                f"{counted(int(errors.looks[-1]), 'item')} is {unit.points(error * span)}, and "
                f"that of random sampling {unit.points(random * span)}: use random, or compare "
                "methods (fewbench compare)"
            )
        alpha = reliability(scores)
        if scores.n_models > 2 and alpha < RELIABLE:
            notes.append(
                f"the source models hardly differ in ability (reliability {max(alpha, 0):.2f} of "
                "1), so they do not show how a better model answers. Use random if the target is "
                "better"
            )
        return notes


def unrun_note(scores: Scores) -> str:
    """Say that items have a share in the full score that no source model ran."""
    n = int(scores.items[UNRUN].sum() if UNRUN in scores.items else scores.unrun.sum())
    return (
        f"no source model ran {counted(n, 'item')} ({scores.unrun_share:.0%} of the full score): "
        "their part is guessed from the other items, and errors and intervals are of the older "
        "items only. The method fewbench draws of them too"
    )


def beside_note(scores: Scores, n: int) -> str:
    """Say that so many answers are a sample of the items that no source model ran."""
    return (
        f"no source model ran {counted(int(scores.unrun.sum()), 'item')} ({scores.unrun_share:.0%} "
        f"of the full score): {counted(n, 'answer is', 'answers are')} a random sample of them"
    )


def _random_is_better(estimate: Estimate) -> bool:
    """Whether random sampling has a lower error and a narrower interval at this score."""
    if estimate.interval_kind != "held-out" or estimate.expected_error is None:
        return False
    half, plain = (estimate.interval.high - estimate.interval.low) / 2, estimate.random
    # An interval is often exactly as wide: rounding must not decide.
    return not (
        ties.at_least(plain.half_width, half)
        or ties.at_least(plain.expected_error, estimate.expected_error)
    )


def make_estimate(
    target: str,
    scored: Scored,
    uncertainty: Uncertainty,
    judge: Judge,
    level: float,
    provenance: Provenance,
    past: Past,
    warnings: Sequence[str] = (),
) -> Estimate:
    """Make an estimate on the user's scale; `past` are the `past_scores` of the scores."""
    scores, items, replies = judge.scores, scored.answers.items, scored.answers.scores[0]
    low, high = uncertainty.interval(level)
    score, tasks = float(scored.estimates[0]), scored.estimates[1:]
    n, n_items = len(items), scores.n_items
    as_model = of_model(scores, scored.answers, uncertainty).interval(level)
    scale, span = scores.scale, scores.scale.span
    plain = judge.random.interval(score, n, stricter(level) if uncertainty.ends_run else level)
    plain_error = error_within(*plain, n, n_items, judge.random.effect)
    if uncertainty.kind not in ("exact", "betting"):
        spread = judge.share_if_spread(scored.estimates, n, level)
        plain = score - spread * (score - plain[0]), score + spread * (plain[1] - score)
        plain_error *= spread
    is_binary = bool(np.isin(replies, (0.0, 1.0)).all())
    if scored.is_plain and not is_binary and uncertainty.error is not None:
        # It is itself a random sample, of scores whose variance only it knows.
        plain, plain_error = (low, high), uncertainty.error
    # An exact interval is that of random sampling, and so is the error to expect.
    error = plain_error if uncertainty.kind == "exact" else uncertainty.error
    # In [0, 1], where 1 is best on every scale.
    ranks: dict[str, Any] = {}
    if len(past.full):
        rank, best, worst = places(past.full, [score, high, low])
        task_ranks = [places(past.tasks[:, at], [value])[0] for at, value in enumerate(tasks)]
        ranks = {
            "rank": rank,
            "ranked_among": len(past.full) + 1,
            "rank_interval": RankInterval(best=best, worst=worst),
            "task_ranks": dict(zip(scores.tasks, task_ranks, strict=True)),
        }
    run = np.bincount(scores.task_of[items], minlength=len(scores.tasks))
    names = scores.tasks

    def interval_of(found: Uncertainty | None) -> Interval | None:
        ends = None if found is None else found.interval(level)
        return None if ends is None else Interval.between(scale.from_unit(ends))

    of_tasks = judge.task_uncertainties(scored, uncertainty)
    groups = {
        group.name: GroupScore(
            score=None if np.isnan(value) else float(scale.from_unit(value)),
            interval=interval_of(found),
            items_run=int(run[group.weights > 0].sum()),
            rank=places(past.tasks @ group.weights, [value])[0] if ranks else None,
            parts=group.parts,
        )
        for group, (value, found) in zip(
            scores.groups, judge.group_uncertainties(scored, uncertainty, of_tasks), strict=True
        )
    }
    noise = noise_of_score(scored.answers, scores.item_weights, level)
    if noise is not None:
        noise = noise.model_copy(update={"half_width": noise.half_width * span})
    return Estimate(
        target=target,
        scale=scale,
        score=float(scale.from_unit(score)),
        interval=Interval.between(scale.from_unit((low, high))),
        level=level,
        as_model=Interval.between(scale.from_unit(as_model)),
        tasks=dict(zip(names, scale.from_unit(tasks).tolist(), strict=True)),
        task_intervals=dict(zip(names, map(interval_of, of_tasks), strict=True)),
        groups=groups,
        **ranks,
        items_run=n,
        items_total=n_items,
        task_items=dict(zip(names, run.tolist(), strict=True)),
        answers_mean=float(scale.from_unit(float(replies.mean()))),
        answers_right=int(replies.sum()) if is_binary else None,
        random=RandomSampling(
            half_width=(plain[1] - plain[0]) / 2 * span,
            expected_error=plain_error * span,
        ),
        expected_error=None if error is None else error * span,
        interval_kind=uncertainty.kind,
        interval_sources=uncertainty.sources,
        repeats=noise,
        warnings=tuple(dict.fromkeys((*uncertainty.warnings, *warnings))),
        provenance=provenance,
    )


def progress_notes(
    record: Record,
    target: str,
    budget: int,
    stop: Stop,
    method: Method,
    *,
    is_waiting: bool,
    affordable: bool,
    is_narrow: bool,
    is_sampled: bool,
) -> list[str]:
    """Return warnings if the estimate rests on fewer answers than asked.

    `is_waiting` for other targets' answers; `affordable` if the cost allows a further item;
    `is_narrow` if the interval is, which ends the run; `is_sampled` if the answered items are a
    random sample.
    """
    answered, asked = len(record.answered(target)), len(record.asked(target))
    left = len(record.open(target))
    skipped = asked - answered - left
    notes = []
    if is_narrow:
        pass  # nothing is missing
    elif left and stop.cost is not None and not affordable:
        if not method.extends:  # nothing is missing of a sample in the order drawn
            notes.append(f"{answered} of {asked} chosen items answered: the cost allows no more")
    elif left and stop.half_width is not None:
        notes.append(
            f"{answered} of at most {asked} items answered: the interval's width decides when "
            "to stop"
        )
    elif left and method.asks_once:
        notes.append(
            f"{answered} of {asked} items answered: the estimate uses {answered}, and its interval "
            "is valid only if they are a random sample of these; record the missing "
            f"{counted(left, 'answer')}"
        )
    elif left or is_waiting:
        most = f"{answered} of {max(budget, asked)} items answered: "
        if stop.cost is not None and stop.items is None:  # the budget is that of cheap items
            most = f"{counted(answered, 'item')} answered, and the limit on cost allows more: "
        notes.append(
            most
            + (
                "they are a random sample, so the estimate is valid; more make it more precise"
                if is_sampled and not len(record.lost(target))
                else "the method asks for more items before its estimate is final"
            )
        )
    elif method.whole_budget and asked < budget:
        notes.append(f"only {asked} of {budget} items requested: the others were lost or changed")
    if skipped:
        notes.append(
            f"{counted(skipped, 'item')} skipped: if the model fails on items that are hard "
            "for it, the estimate is too high"
        )
    return notes


def direction_notes(scored: Scored, scores: Scores) -> list[str]:
    """Return a warning if a target's answers go against those of the source models."""
    if scores.n_models < FEWEST_OTHERS:
        return []
    easiness = scores.columns(np.asarray(scored.answers.items), filled=True).mean(axis=0)
    return [OPPOSITE] if bool(are_opposed(scored.answers.scores, easiness)[0]) else []
