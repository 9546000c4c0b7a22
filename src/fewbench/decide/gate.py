"""Gate: whether a model passes a threshold or holds up to a baseline."""

from html import escape
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from fewbench._names import counted
from fewbench.decide.contrast import Contrast, Judged
from fewbench.decide.paired import items_needed
from fewbench.decide.residuals import HeldOut
from fewbench.decide.sides import Given, Side, fixed, labels, scores_of, side
from fewbench.decide.versus import check_margin
from fewbench.errors import EvaluationError
from fewbench.evaluation.estimate import Interval
from fewbench.evaluation.evaluation import Evaluation
from fewbench.evaluation.sampling import check_level

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["pass", "fail", "undecided"]
CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "undecided": 3}
"""Exit codes; 2 is an error."""
ROUNDING = 1e-9


class Check(BaseModel):
    """One condition of a gate.

    Attributes
    ----------
    rule : str
        The condition in words.
    value, interval
        What is compared: the full score (`at_least`), or the difference to the baseline, on the
        scale of the scores.
    bound : float
        What the value must not fall behind.
    level : float
        Level of the interval.
    kind : str
        known, betting, cross-fitted, frontier or bounds.
    verdict : str
        pass if all of the interval meets the condition, fail if none of it does.
    items_needed : int or None
        About how many items would decide it, if the value stays as it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    rule: str
    value: float
    interval: Interval
    bound: float
    level: float
    kind: str
    verdict: Verdict
    items_needed: int | None = None


class Gate(BaseModel):
    """Whether a target passes.

    Attributes
    ----------
    target : str
    verdict : str
        pass if all checks pass, fail if one fails, else undecided.
    checks : tuple of Check
    level : float
        1 minus the largest share of wrong verdicts.
    looks : tuple of int
        Numbers of answers that errors were measured at. The level holds however often you look from
        the first to the last; empty if it holds once.
    items_run, items_total, items_open : int
        Items answered, all items, and items asked without an answer.
    warnings : tuple of str
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    verdict: Verdict
    checks: tuple[Check, ...]
    level: float
    looks: tuple[int, ...] = ()
    items_run: int
    items_total: int
    items_open: int
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail, 3 for undecided."""
        return CODES[self.verdict]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per check: value, interval, bound and verdict."""
        import pandas as pd

        rows = [
            {
                "rule": one.rule,
                "value": one.value,
                "low": one.interval.low,
                "high": one.interval.high,
                "bound": one.bound,
                "verdict": one.verdict,
            }
            for one in self.checks
        ]
        return pd.DataFrame(rows).set_index("rule")

    def to_json(self) -> str:
        """Return everything as indented JSON."""
        return self.model_dump_json(indent=2)

    def to_markdown(self) -> str:
        """Return a summary for the page of a CI run."""
        rows = [
            f"| {_cell(one.rule)} | {one.value:.4g} | {one.interval.low:.4g} .. "
            f"{one.interval.high:.4g} | {one.verdict} |"
            for one in self.checks
        ]
        lines = [
            f"### fewbench gate: {self.verdict}",
            "",
            f"{_cell(self.target)}: {self.items_run:,} of {counted(self.items_total, 'item')} run",
            "",
            f"| condition | value | {self.checks[0].level:.0%} interval | verdict |",
            "|---|---|---|---|",
            *rows,
        ]
        if self.warnings:
            lines += ["", *(f"- warning: {_cell(one)}" for one in self.warnings)]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        """Return the verdict and each check in a line."""
        said = "; ".join(
            f"{one.rule}: {one.value:.4g} ({one.interval.low:.4g} .. {one.interval.high:.4g})"
            for one in self.checks
        )
        return f"Gate: {self.target}: {self.verdict} ({said})"

    def __str__(self) -> str:
        """Return the same as `repr`."""
        return repr(self)

    def plot(self) -> Any:
        """Return an Altair chart of the checks."""
        from fewbench.charts.deciding import checks

        return checks(self)

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.to_frame().to_html()}"


def gate(
    target: Evaluation | tuple[Evaluation, str],
    *,
    at_least: float | None = None,
    not_below: Given | None = None,
    margin: float | None = None,
    level: float = 0.9,
    once: bool = False,
) -> Gate:
    """Decide whether a target passes.

    By default the level holds however often you look, from 10 answers up to the budget: call `gate`
    after every round of answers and stop at pass or fail.

    Parameters
    ----------
    target : Evaluation or (Evaluation, str)
        An evaluation of one target, or an evaluation and one of its targets.
    at_least : float, optional
        Pass if the full score is at least this.
    not_below : Evaluation, (Evaluation, str) or str, optional
        Pass if the target is not worse than this baseline by more than the margin: another
        evaluation or target, or a source model.
    margin : float, optional
        For `not_below`, on the scale of the scores (default: 0).
    level : float
        At most 1 - level of the verdicts are wrong. With two conditions, each is checked at half
        of that share.
    once : bool
        Whether you look only once, at a number of answers fixed beforehand. The interval is then
        narrower.

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
    if at_least is None and not_below is None:
        raise EvaluationError(
            "nothing to check", hint="give a threshold (--at-least) or a baseline (--not-below)"
        )
    if margin is not None and not_below is None:
        raise EvaluationError(
            "a margin without a baseline", hint="give a baseline (--not-below), or omit the margin"
        )
    given = (target,) if not_below is None else (target, not_below)
    scores = scores_of(*given)
    scale = scores.scale
    if margin != 0:
        check_margin(margin, scores)
    if at_least is not None and not scale.low <= at_least <= scale.high:
        raise EvaluationError(
            f"the threshold is {at_least:g}, and the scores are from {scale.low:g} to "
            f"{scale.high:g}",
            hint="give the threshold on the scale of the scores",
        )
    own = side(target, scores)
    n_checks = (at_least is not None) + (not_below is not None)
    each = 1 - (1 - level) / n_checks
    contrasts, checks = [], []
    held: dict[tuple[object, ...], HeldOut] = {}
    if at_least is not None:
        bound = fixed(float(scale.to_unit(at_least)), scores)
        contrasts.append(Contrast(own, bound, scores, not once, held, often=True))
        checks.append(_threshold(contrasts[-1], at_least, each))
    if not_below is not None:
        baseline = side(not_below, scores, (target,))
        if (baseline.name, baseline.evaluation) == (own.name, own.evaluation):
            raise EvaluationError(
                f"{own.name!r} is its own baseline", hint="name another model with --not-below"
            )
        contrasts.append(Contrast(own, baseline, scores, not once, held, often=True))
        checks.append(_baseline(contrasts[-1], margin or 0.0, each))
    warnings = [said for contrast in contrasts for said in contrast.warnings(each)]
    verdicts = {one.verdict for one in checks}
    overall: Verdict = "pass" if verdicts == {"pass"} else "undecided"
    return Gate(
        target=own.name,
        verdict="fail" if "fail" in verdicts else overall,
        checks=tuple(checks),
        level=level,
        looks=contrasts[0].looks,
        items_run=len(own.items),
        items_total=scores.n_items,
        items_open=_open(own),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _threshold(contrast: Contrast, at_least: float, level: float) -> Check:
    judged, scale = contrast.interval(level), contrast.scores.scale
    bound = float(contrast.other.estimates[0])
    low, high = scale.interval_from_unit(judged.low + bound, judged.high + bound)
    words = "at most" if scale.lower_is_better else "at least"
    return Check(
        rule=f"score {words} {at_least:g}",
        value=float(scale.from_unit(contrast.one.estimates[0])),
        interval=Interval(low=low, high=high),
        bound=at_least,
        level=level,
        kind=judged.kind,
        verdict=_verdict(judged, 0.0),
        items_needed=_needed(contrast, judged, 0.0),
    )


def _baseline(contrast: Contrast, margin: float, level: float) -> Check:
    judged, scale = contrast.interval(level), contrast.scores.scale
    span = scale.high - scale.low
    sign = -span if scale.lower_is_better else span
    low, high = sorted((sign * judged.low, sign * judged.high))
    said = f" by more than {margin:g}" if margin else ""
    return Check(
        rule=f"not worse than {labels(contrast.one, contrast.other)[1]}{said}",
        value=sign * contrast.difference,
        interval=Interval(low=low, high=high),
        bound=-sign / span * margin,
        level=level,
        kind=judged.kind,
        verdict=_verdict(judged, -margin / span),
        items_needed=_needed(contrast, judged, -margin / span),
    )


def _verdict(judged: Judged, bound: float) -> Verdict:
    if judged.low >= bound - ROUNDING:
        return "pass"
    return "fail" if judged.high < bound - ROUNDING else "undecided"


def _needed(contrast: Contrast, judged: Judged, bound: float) -> int | None:
    if _verdict(judged, bound) != "undecided" or not contrast.open:
        return None
    n = min(len(one.items) for one in contrast.open)
    half, n_items = (judged.high - judged.low) / 2, contrast.scores.n_items
    return items_needed(half, abs(contrast.difference - bound), n, n_items)


def _open(own: Side) -> int:
    return 0 if own.evaluation is None else len(own.evaluation.ask().get(own.name, ()))


def _cell(text: str) -> str:
    """Return a text that is safe in a cell of a Markdown table."""
    return escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("`", "'")
