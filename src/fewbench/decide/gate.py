"""Gate: whether a model reaches a threshold or is no worse than a baseline."""

from functools import partial
from typing import Literal

from pydantic import ConfigDict

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted
from fewbench._text import quoted
from fewbench._warned import issue
from fewbench.decide.differences import POWER, checked_at, frame_of
from fewbench.decide.joint_estimate import contrast
from fewbench.decide.next_items import ONE_LOOK, ask_next, check_next
from fewbench.decide.operands import Given, Operand, at_score, labels, operands, warnings_of
from fewbench.decide.pairing import Pairing, pairing
from fewbench.decide.random_pairs import ToDecide, items_to_decide
from fewbench.decide.versus import check_margin
from fewbench.decide.words import AS_MODELS, beyond, looks, more_items, needed, on_these, seen
from fewbench.errors import EvaluationError
from fewbench.evaluation.evaluation import Evaluation
from fewbench.evaluation.interval import Interval
from fewbench.methods.written import check_number
from fewbench.scores import Average, Scale, Scores, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.show.charts import deciding
from fewbench.show.page import Page, Section, Shown, Table
from fewbench.uncertainty.sampling import check_level

Verdict = Literal["pass", "fail", "undecided"]
CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "undecided": 3}
"""Exit codes; 2 is an error."""
ROUNDING = 1e-9


class Check(Frozen):
    """One condition of a gate.

    Attributes
    ----------
    rule : str
        The condition in words.
    baseline : str
        What it is compared with; empty for a score.
    is_score, is_paired : bool
        Whether a score is compared, and not a difference; whether the baseline is estimated as
        well, so that both run the same items.
    value, interval
        What is compared: the full score (`at_least`), or the difference to the baseline, on the
        scale of the scores.
    bound : float
        What the value must not fall behind.
    level : float
        Level of the interval.
    kind : str
        What the interval rests on (see `Estimate.interval_kind`); answers if all items ran, or
        known for exactly these items.
    verdict : str
        pass if all of the interval meets the condition, fail if none of it does.
    items_needed, items_if_known : int or None
        About how many items would decide it if the value stays as it is, the same for both if the
        baseline is estimated; and if it ran all items once.
    is_decidable : bool
        Whether all items would decide it if the value stays as it is.
    questions_needed : int or None
        If not: about how many questions like these would, or None if more than 100 times as many.
    margin_decided : float or None
        Beside a baseline: the smallest margin with which a model as good as this one passes in 80%
        of cases, by intervals of this width.
    """

    model_config = ConfigDict(ser_json_inf_nan="constants")

    rule: str
    baseline: str = ""
    is_score: bool
    is_paired: bool = False
    value: float
    interval: Interval
    bound: float
    level: float
    kind: str
    verdict: Verdict
    items_needed: int | None = None
    items_if_known: int | None = None
    is_decidable: bool = True
    questions_needed: int | None = None
    margin_decided: float | None = None


class Gate(Shown, Frozen):
    """Whether a target passes.

    Attributes
    ----------
    target : str
    scale : Scale
        The scale of the scores.
    average : str
        What a full score is: the mean over items (micro) or over task scores (macro).
    verdict : str
        pass if all checks pass, fail if one fails, else undecided.
    checks : tuple of Check
    level : float
        As given. With two checks, each interval has a higher one, `Check.level`.
    fixed_items : bool
        Whether intervals and verdicts are about exactly these items, of these runs. If not, they
        are about the models, on questions like these and if they run again.
    checked_at : tuple of int
        Numbers of answers after which you may check the verdict; the level applies to all of these
        checks together. Empty for a single check.
    looks : int
        Number of planned checks, of which the level holds together.
    items_run, items_total, items_open : int
        Items answered, all items, and items asked without an answer.
    pairing : Pairing or None
        How to run target and baseline on the same items if they share few.
    is_limited : bool
        Whether a limit on cost leaves no further items.
    warnings : tuple of str
    """

    target: str
    scale: Scale
    average: Average
    verdict: Verdict
    checks: tuple[Check, ...]
    level: float
    fixed_items: bool = False
    checked_at: tuple[int, ...] = ()
    looks: int = 1
    items_run: int
    items_total: int
    items_open: int
    pairing: Pairing | None = None
    is_limited: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail, 3 for undecided."""
        return CODES[self.verdict]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per check: value, interval, bound and verdict."""
        columns = ["rule", "value", "low", "high", "bound", "verdict"]
        return frame_of(self.checks, columns, self.warnings).set_index("rule")

    def page(self, folder: str = "DIR") -> Page:
        """Return the verdict, the checks, and what would decide them.

        `folder` is the evaluation's, for the command to run next.
        """
        words = [self._words(check) for check in self.checks]
        head = [("Condition", False), ("Value", True), ("Interval", True), ("Bound", True)]
        rows = [
            [check.rule, *texts, check.verdict]
            for check, texts in zip(self.checks, words, strict=True)
        ]
        about = f"on exactly these {counted(self.items_total, 'item')}"
        if not self.fixed_items:
            about = f"in general, {AS_MODELS}"
        answer = {
            "pass": f"{self.target} passes {about}",
            "fail": f"{self.target} fails {about}",
            "undecided": f"It is undecided whether {self.target} passes {about}",
        }[self.verdict]
        together = ""
        if self.checked_at:
            together = f", also if you check after {looks(self.checked_at, self.items_run)}"
        if self.looks > 1:
            together += f", in all {self.looks:,} checks together; one that should pass fails with "
            together += "at most the same"
        lesser = [
            f"{on_these(self.items_total)}, {'; '.join(map(self._seen, self.checks))}.",
            f"{self.items_run:,} of {counted(self.items_total, 'item')} run."
            + f" A model that should fail passes with a probability of at most "
            f"{(1 - self.level) / 2:.0%}{together}."
            * any(check.kind != "known" for check in self.checks),
            *average_notes(self.average),
        ]
        facts, further = {}, []
        if self.verdict == "undecided":
            open_ = [check for check in self.checks if check.verdict == "undecided"]
            out_of_reach = [check for check in open_ if not check.is_decidable]
            most = max((check.items_needed or 0 for check in open_), default=0)
            if most and not out_of_reach:
                paired = any(check.is_paired for check in self.checks)
                facts["If the value stays"] = needed(most, self.items_total, is_paired=paired)
            if any(check.items_if_known for check in open_) and not out_of_reach:
                most_known = max(check.items_if_known or check.items_needed or 0 for check in open_)
                facts["If the baseline ran all items once"] = (
                    f"about {most_known:,} items decide it"
                )
            for check in open_:
                if check.margin_decided is not None:
                    points = Unit(self.scale).points(check.margin_decided)
                    facts["Smallest margin that these answers decide"] = (
                        f"{points}: a model as good as {check.baseline} then passes in 80% of cases"
                    )
            if out_of_reach:
                numbers = [check.questions_needed for check in out_of_reach]
                questions = None if None in numbers else max(n for n in numbers if n is not None)
                all_ran = all(check.kind in ("known", "answers") for check in out_of_reach)
                lesser.insert(1, beyond(self.items_total, questions, all_ran=all_ran))
            elif most:
                more, sequential = most - self.items_run, bool(self.checked_at)
                further = [more_items(more, limited=self.is_limited, sequential=sequential)]
            if self.items_open:
                further = [
                    "rerun the command of fewbench run, or fewbench ask "
                    f"{quoted(folder)} --target {quoted(self.target)}"
                ]
        if self.pairing is not None:
            further = [self.pairing.command]
        checks = Section(
            "checks",
            "Checks",
            ["A check passes if the whole interval meets its bound, and fails if none of it does."],
            charts=[("Each value minus its bound", lambda: deciding.checks(self))],
            tables=[Table("Checks", [*head, ("Verdict", False)], rows)],
            facts=facts,
        )
        first = "" if self.pairing is None else self.pairing.note
        shown = (self.target, answer, lesser, self.warnings, [checks], further)
        return Page("gate", *shown, first=first)

    def _seen(self, check: Check) -> str:
        """Return what was seen of a check on these items."""
        unit, is_estimated = Unit(self.scale), check.kind not in ("known", "answers")
        if not check.is_score:
            baseline = check.baseline
            return seen(self.target, baseline, check.value, unit, is_estimated=is_estimated)
        estimated = "an estimated " if is_estimated else ""
        return f"{self.target} scores {estimated}{unit.score(check.value)}"

    def _words(self, check: Check) -> tuple[str, str, str]:
        """Return the value of a check, its interval and its bound."""
        unit = Unit(self.scale)
        if check.is_score:
            return unit.score(check.value), unit.scores(check.interval), unit.score(check.bound)
        ends = unit.differences(check.interval)
        return unit.difference(check.value), ends, unit.difference(check.bound)


def gate(
    target: Evaluation | tuple[Evaluation, str],
    *,
    at_least: float | None = None,
    not_below: Given | None = None,
    margin: float | None = None,
    level: float = 0.9,
    sequential: bool = False,
    looks: int = 1,
    fixed_items: bool = False,
    next_items: int | None = None,
    ask: bool = False,
) -> Gate:
    """Pass or fail a target by a threshold or a baseline.

    The verdict holds for the model, on questions like these and if it runs again: the interval is
    wider than that of fewbench estimate. With `fixed_items` it holds for exactly these items. With
    two conditions, each is tested at half the allowed share of wrong verdicts.

    Parameters
    ----------
    target : Evaluation or (Evaluation, str)
        Evaluation of one target, or an evaluation and one of its targets.
    at_least : float, optional
        Pass if the full score is at least this, on the scale of the scores.
    not_below : Evaluation, (Evaluation, str) or str, optional
        Pass if the target is not worse than this: another evaluation, another target, or a source
        model.
    margin : float, optional
        With `not_below`: largest loss that passes, on the scale of the scores (default: 0).
    level : float
        Level of the interval. A model that should fail passes with a probability of at most (1 -
        level) / 2, and one that should pass fails with at most the same (5% at level 0.9).
    sequential : bool
        Allow for checks after 10, 20, 40, … answers up to the budget, until pass or fail: the
        interval is valid for all of these checks together.
    looks : int
        Number of checks that are planned, as of the checkpoints of a training run, each with this
        number: the level holds for all of them together.
    fixed_items : bool
        Judge the score on exactly these items, of this run, and not the model.
    next_items : int, optional
        With `ask`: number of further items to ask for, even above the budget. A baseline that is
        estimated gets the same ones. All answers are kept.
    ask : bool
        With `next_items`: ask for these items. fewbench ask DIR then lists them.

    Raises
    ------
    EvaluationError
        Without a condition, if the threshold is out of range, or the target has no answers.

    Examples
    --------
    >>> from fewbench import Evaluation
    >>> from fewbench.testing import simulate
    >>> evaluation = Evaluation(simulate(30, 200, seed=1), "random", 40)
    >>> for item in evaluation.ask()["target"]:
    ...     left = evaluation.tell("target", {item: 1.0})
    >>> gate(evaluation, at_least=0.6).verdict
    'pass'
    """
    check_level(level)
    check_next(next_items, ask=ask, is_shown=False)
    check_number("looks", looks, 1)
    if at_least is None and not_below is None:
        raise EvaluationError(
            "there is no condition to check",
            hint="give a threshold (--at-least) or a baseline (--not-below)",
        )
    if margin is not None and not_below is None:
        raise EvaluationError(
            "a margin is given without a baseline",
            hint="give a baseline (--not-below), or omit the margin",
        )
    given: tuple[Given, ...] = (target,) if not_below is None else (target, not_below)
    sides, scores, notes = operands(*given, ask=ask)
    side = sides[0]
    scale, unit = scores.scale, Unit(scores.scale)
    if margin != 0:
        check_margin(margin, scores)
    if at_least is not None and not scale.low <= at_least <= scale.high:
        raise EvaluationError(
            f"the threshold is {at_least:g}, and the scores are from {scale.low:g} to "
            f"{scale.high:g}",
            hint=f"use {at_least / 100:g}"
            if scale.low <= at_least / 100 <= scale.high
            else "give the threshold on the scale of the scores",
        )
    n_checks = (at_least is not None) + (not_below is not None)
    each = 1 - (1 - level) / n_checks / looks  # Bonferroni: any dependence between checkpoints
    check = partial(
        _check, side, scores=scores, level=each, sequential=sequential, fixed_items=fixed_items
    )
    checks = []
    if at_least is not None:
        bound = at_score(float(scale.to_unit(at_least)), scores)
        words = "at most" if scale.lower_is_better else "at least"
        rule = f"score {words} {unit.score(at_least, exact=True)}"
        checks.append(check(bound, rule, at_least, is_score=True))
    for baseline in sides[1:]:
        if (baseline.name, baseline.evaluation) == (side.name, side.evaluation):
            raise EvaluationError(
                f"{side.name!r} is its own baseline", hint="name another model with --not-below"
            )
        by_margin = f" by more than {unit.points(margin, exact=True)}" if margin else ""
        name = labels(side, baseline)[1]
        rule = f"not worse than {name}{by_margin}"
        sign = 1 if scale.lower_is_better else -1
        loss = margin or 0.0
        checks.append(check(baseline, rule, sign * loss, margin=loss, name=name))
    warnings = [*warnings_of(sides), *notes]
    if ask and next_items is not None:
        targets = [side for side in sides if not side.is_known]
        ask_next(targets, next_items, scores)
        warnings += [] if sequential else [ONE_LOOK]
    issue(warnings)
    verdicts = {check.verdict for check in checks}
    overall: Verdict = "pass" if verdicts == {"pass"} else "undecided"
    if "fail" in verdicts:
        overall = "fail"
    return Gate(
        target=side.name,
        scale=scale,
        average=scores.average,
        verdict=overall,
        checks=tuple(checks),
        level=level,
        fixed_items=fixed_items,
        checked_at=checked_at(side, fixed_items=fixed_items) if sequential else (),
        looks=looks,
        items_run=len(side.items),
        items_total=scores.n_items,
        items_open=0 if side.evaluation is None else len(side.evaluation.ask().get(side.name, ())),
        pairing=pairing(sides),
        is_limited=any(each.is_limited for each in sides),
        warnings=tuple(warnings),
    )


def _check(
    side: Operand,
    other: Operand,
    rule: str,
    bound: float,
    *,
    scores: Scores,
    level: float,
    sequential: bool,
    fixed_items: bool,
    margin: float = 0.0,
    is_score: bool = False,
    name: str = "",
) -> Check:
    """Check the target's lead over another operand.

    With `is_score`, the check shows the score itself and not the difference.
    """
    from scipy.special import ndtri

    made = contrast(side, other, level=level, sequential=sequential, fixed_items=fixed_items)
    scale = scores.scale
    by_power = scale.span * float(1 + ndtri(POWER) / ndtri(0.5 + level / 2))
    low, high = made.interval(level)
    least = -margin / scale.span
    verdict: Verdict = "undecided"
    if low >= least - ROUNDING:
        verdict = "pass"
    elif high < least - ROUNDING:
        verdict = "fail"
    to_decide = ToDecide()
    if verdict == "undecided":
        distance = made.difference - least
        to_decide = items_to_decide(made, (side, other), level, distance, scores.n_items)
    interval = Interval.between(scale.difference_from_unit((low, high)))
    value = float(scale.difference_from_unit(made.difference))
    if is_score:
        baseline = float(other.estimates[0])
        interval = Interval.between(scale.from_unit((low + baseline, high + baseline)))
        value = float(scale.from_unit(side.estimates[0]))
    return Check(
        rule=rule,
        baseline=name,
        is_score=is_score,
        is_paired=not side.is_known and not other.is_known,
        value=value,
        interval=interval,
        bound=bound,
        level=level,
        kind=made.kind,
        verdict=verdict,
        margin_decided=None if is_score or not (half := made.half(level)) else half * by_power,
        **dict(to_decide),
    )
