"""Versus: which of two models is better."""

from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from fewbench._types import FloatArray
from fewbench.decide.contrast import Contrast
from fewbench.decide.further import MOST, further_items
from fewbench.decide.held_out import HeldOut
from fewbench.decide.paired import McNemar, Plain, items_needed, mcnemar, plain_sampling
from fewbench.decide.sides import Given, labels, scores_of, side
from fewbench.errors import EvaluationError
from fewbench.evaluation.estimate import Interval
from fewbench.evaluation.sampling import check_level
from fewbench.scores import Scores
from fewbench.study.inference import holm

if TYPE_CHECKING:
    import pandas as pd

Adjust = Literal["holm", "bh"]
ADJUSTS = {"holm": "Holm", "bh": "Benjamini-Hochberg"}
Verdict = Literal["better", "worse", "equivalent", "not worse", "undecided"]


class TaskDifference(BaseModel):
    """The difference on one task.

    Attributes
    ----------
    task : str
    difference, interval
        A minus B. The interval is of this task alone.
    p_value, p_adjusted : float
        Two-sided, by itself and adjusted for the number of tasks.
    verdict : str
        better or worse if the adjusted p value is at most 1 - level, else undecided.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    task: str
    difference: float
    interval: Interval
    p_value: float
    p_adjusted: float
    verdict: Literal["better", "worse", "undecided"]


class ItemDifference(BaseModel):
    """An item that A and B scored differently on, on the scale of the scores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: str
    task: str
    a: float
    b: float


class Versus(BaseModel):
    """The difference of two models' full scores, on the user's scale.

    Attributes
    ----------
    a, b : str
        The models; two targets of one name with their folders' names.
    score_a, score_b : float
        Their full scores, estimated or known.
    difference, interval, level
        A minus B, and its interval at the stated level.
    chance_a_better : float
        Probability that A is better.
    verdict : str
        better or worse (A than B) if the interval excludes 0. With a margin, also equivalent if
        the interval is within ±margin, and not worse if it is above -margin. Else undecided.
    margin : float or None
    not_worse, equivalent : bool or None
        Whether A is worse by less than the margin, and whether they differ by less; None without
        a margin.
    kind : str
        known, betting, cross-fitted, frontier or bounds.
    units : int or None
        Number of independent source models, or pairs of them, behind the interval.
    looks : tuple of int
        Numbers of answers at which the interval holds together, for one look at each or soon after;
        empty if it holds once.
    items_a, items_b, items_common, items_total : int
        Items answered by A, by B, by both, and all.
    plain : Plain or None
        What random sampling of as many items would give.
    mcnemar : McNemar or None
        If both ran the same random sample of right and wrong answers. For one look.
    items_needed : int or None
        About how many items of each would decide it, if the difference stays as it is.
    next_items : tuple of str
        Items that both run next to decide it, the most telling first: as many as `items_needed`
        says, at most 200. Targets only: a source model has run all.
    tasks : tuple of TaskDifference
        Empty with one task.
    adjust : str
        holm (no false verdict on any task) or bh (share of false ones among the verdicts).
    deciding : tuple of ItemDifference
        Items that both answered, with different scores.
    warnings : tuple of str
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    a: str
    b: str
    score_a: float
    score_b: float
    difference: float
    interval: Interval
    level: float
    chance_a_better: float
    verdict: Verdict
    margin: float | None = None
    not_worse: bool | None = None
    equivalent: bool | None = None
    kind: str
    units: int | None
    looks: tuple[int, ...] = ()
    items_a: int
    items_b: int
    items_common: int
    items_total: int
    plain: Plain | None
    mcnemar: McNemar | None = None
    items_needed: int | None = None
    next_items: tuple[str, ...] = ()
    tasks: tuple[TaskDifference, ...] = ()
    adjust: Adjust = "holm"
    deciding: tuple[ItemDifference, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The verdict in a sentence."""
        margin = 0.0 if self.margin is None else self.margin
        return {
            "better": f"{self.a} is better than {self.b}",
            "worse": f"{self.a} is worse than {self.b}",
            "equivalent": f"{self.a} and {self.b} differ by less than {margin:g}",
            "not worse": f"{self.a} is worse than {self.b} by less than {margin:g}, or better",
            "undecided": f"undecided between {self.a} and {self.b}",
        }[self.verdict]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for the full score and one per task: difference, interval, p values."""
        import pandas as pd

        rows = {
            "all": {
                "difference": self.difference,
                "low": self.interval.low,
                "high": self.interval.high,
                "verdict": self.verdict,
            }
        }
        frame = pd.DataFrame.from_dict(rows, orient="index")
        if self.tasks:
            of_tasks = pd.DataFrame(
                {
                    "difference": [one.difference for one in self.tasks],
                    "low": [one.interval.low for one in self.tasks],
                    "high": [one.interval.high for one in self.tasks],
                    "verdict": [one.verdict for one in self.tasks],
                    "p_value": [one.p_value for one in self.tasks],
                    "p_adjusted": [one.p_adjusted for one in self.tasks],
                },
                index=[one.task for one in self.tasks],
            )
            frame = pd.concat([frame, of_tasks])
        return frame.rename_axis("task")

    def items(self) -> "pd.DataFrame":
        """Return the items that both answered with different scores, largest difference first."""
        import pandas as pd

        rows = [one.model_dump() for one in self.deciding]
        return pd.DataFrame(rows, columns=list(ItemDifference.model_fields)).set_index("item")

    def to_json(self) -> str:
        """Return everything as indented JSON."""
        return self.model_dump_json(indent=2)

    def __repr__(self) -> str:
        """Return the verdict, the difference and its interval in a line."""
        ends = f"{self.interval.low:.4g} .. {self.interval.high:.4g}"
        return (
            f"Versus: {self.answer} (difference {self.difference:.4g}, {self.level:.0%} interval "
            f"{ends}, P({self.a} is better) = {self.chance_a_better:.2f})"
        )

    def __str__(self) -> str:
        """Return the same as `repr`."""
        return repr(self)

    def plot(self) -> Any:
        """Return an Altair chart of the differences, overall and by task."""
        from fewbench.charts.deciding import differences

        return differences(self)

    def _repr_html_(self) -> str:
        warned = "".join(f"<li>{escape(one)}</li>" for one in self.warnings)
        return f"<p>{escape(repr(self))}</p>{self.to_frame().to_html()}<ul>{warned}</ul>"


def versus(
    a: Given,
    b: Given,
    *,
    scores: Scores | None = None,
    level: float = 0.9,
    margin: float | None = None,
    adjust: Adjust = "holm",
    sequential: bool = False,
    next_items: int | None = None,
) -> Versus:
    """Compare the full scores of two models.

    Measures the errors of differences on the source models, which can take as long as 100 runs of
    the method. The folder of a saved evaluation keeps them.

    Parameters
    ----------
    a, b : Evaluation, (Evaluation, str) or str
        An evaluation of one target, an evaluation and one of its targets, or a name: of a target
        of the other's evaluation, or of a source model, whose full score is known.
    scores : Scores, optional
        The source models, if both are names.
    level : float
        Level of the interval, and 1 minus the share of wrong verdicts.
    margin : float, optional
        Largest difference that does not matter, on the scale of the scores.
    adjust : {"holm", "bh"}
        Adjustment of the tasks' p values for their number.
    sequential : bool
        Whether you look again after more answers and stop at a verdict. The interval is then wide
        enough for looks after 10, 20, 40, … answers together, up to the budget.
    next_items : int, optional
        How many items to choose that both run next (default: as many as decide it, at most 200).

    Raises
    ------
    EvaluationError
        If a name is unknown, a target has no answers, the two have different source scores, or
        the margin is out of range.

    Examples
    --------
    >>> from fewbench.testing import simulate
    >>> table = simulate(30, 200, seed=1)
    >>> found = versus("model-00", "model-01", scores=table, margin=0.1)
    >>> round(found.difference, 3), found.verdict, found.kind
    (0.06, 'better', 'known')
    """
    return compare_given(
        *(a, b, {}),
        level=level,
        margin=margin,
        adjust=adjust,
        sequential=sequential,
        scores=scores,
        next_items=next_items,
    )


def compare_given(
    a: Given,
    b: Given,
    held: dict[tuple[object, ...], HeldOut],
    *,
    level: float,
    margin: float | None,
    adjust: Adjust,
    sequential: bool,
    scores: Scores | None = None,
    next_items: int | None = None,
) -> Versus:
    """Compare as `versus` does; errors that are measured are added to `held`, or taken from it."""
    check_level(level)
    if adjust not in ADJUSTS:
        raise EvaluationError(f"unknown adjustment {adjust!r}", hint="use holm or bh")
    found = scores_of(a, b, scores=scores)
    check_margin(margin, found)
    one, other = side(a, found, (b,)), side(b, found, (a,))
    if (one.name, one.evaluation) == (other.name, other.evaluation):
        raise EvaluationError(f"{one.name!r} is compared with itself", hint="name two models")
    contrast = Contrast(one, other, found, sequential, held)
    return compare_sides(contrast, level, margin, adjust, next_items)


def check_margin(margin: float | None, scores: Scores) -> None:
    """Raise EvaluationError unless the margin is positive and below the range of the scores."""
    span = scores.scale.high - scores.scale.low
    if margin is not None and not 0 < margin < span:
        raise EvaluationError(
            f"the margin is {margin:g}, and the scores range over {span:g}",
            hint=f"give a number between 0 and {span:g}, on the scale of the scores",
        )


def compare_sides(
    contrast: Contrast,
    level: float,
    margin: float | None,
    adjust: Adjust,
    next_items: int | None = None,
) -> Versus:
    """Return the comparison of two sides."""
    one, other, scores = contrast.one, contrast.other, contrast.scores
    scale = scores.scale
    span = scale.high - scale.low
    sign = -span if scale.lower_is_better else span
    judged = contrast.interval(level)
    unit_margin = None if margin is None else margin / span
    not_worse = None if unit_margin is None else judged.low > -unit_margin
    equivalent = None if unit_margin is None else bool(not_worse) and judged.high < unit_margin
    verdict: Verdict = "undecided"
    if judged.low > 0:
        verdict = "better"
    elif judged.high < 0:
        verdict = "worse"
    elif equivalent:
        verdict = "equivalent"
    elif not_worse:
        verdict = "not worse"
    warnings = contrast.warnings(level)
    half = span * (judged.high - judged.low) / 2
    plain = plain_sampling(contrast, level, half / span)
    needed = _needed(contrast, verdict, judged.low, judged.high, unit_margin)
    if plain is not None and half > plain.paired and not contrast.keeps_pairs:
        warnings += (
            "random sampling of the same items for both would be more precise here: if you only "
            "need the difference, start both as targets of one evaluation with --for difference",
        )
    is_pair_of_answers = scores.is_binary and contrast.is_paired_sample
    a, b = labels(one, other)
    return Versus(
        a=a,
        b=b,
        score_a=float(scale.from_unit(one.estimates[0])),
        score_b=float(scale.from_unit(other.estimates[0])),
        difference=sign * contrast.difference,
        interval=_interval(sign, judged.low, judged.high),
        level=level,
        chance_a_better=contrast.chance_above(level),
        verdict=verdict,
        margin=margin,
        not_worse=not_worse,
        equivalent=equivalent,
        kind=judged.kind,
        units=judged.units,
        looks=contrast.looks,
        items_a=len(one.items),
        items_b=len(other.items),
        items_common=len(contrast.common[0]),
        items_total=scores.n_items,
        plain=plain,
        mcnemar=mcnemar(*contrast.common) if is_pair_of_answers else None,
        items_needed=needed,
        next_items=_next_items(contrast, needed, next_items),
        tasks=_tasks(contrast, level, adjust, sign) if len(scores.tasks) > 1 else (),
        adjust=adjust,
        deciding=_deciding(contrast),
        warnings=warnings,
    )


def _interval(sign: float, low: float, high: float) -> Interval:
    ends = sorted((sign * low, sign * high))
    return Interval(low=ends[0], high=ends[1])


def _next_items(contrast: Contrast, needed: int | None, wanted: int | None) -> tuple[str, ...]:
    """Return as many items as are wanted, or needed, for both to run next."""
    if not contrast.open or (needed is None and wanted is None):
        return ()
    n = min(len(side.items) for side in contrast.open)
    n = min(MOST, (needed or n) - n) if wanted is None else wanted
    chosen = further_items(contrast.open, n, contrast.scores)
    return tuple(contrast.scores.item_ids[chosen].tolist())


def _needed(
    contrast: Contrast, verdict: str, low: float, high: float, margin: float | None
) -> int | None:
    """Return about how many items would bring 0 (or -margin) out of the interval."""
    if verdict not in ("undecided", "not worse") or not contrast.open:
        return None
    edge = 0.0 if margin is None or verdict == "not worse" else -margin
    n = min(len(side.items) for side in contrast.open)
    distance = abs(contrast.difference - edge)
    return items_needed((high - low) / 2, distance, n, contrast.scores.n_items)


def _tasks(
    contrast: Contrast, level: float, adjust: Adjust, sign: float
) -> tuple[TaskDifference, ...]:
    names = contrast.scores.tasks
    halves, p_values = contrast.task_tests(level)
    adjusted = _adjusted(p_values, adjust)
    if adjust == "holm":
        rejected = holm(dict(zip(names, p_values.tolist(), strict=True)), 1 - level)
    else:
        limit = 1 - level + 1e-12
        rejected = frozenset(n for n, p in zip(names, adjusted, strict=True) if p <= limit)
    found = []
    for at, task in enumerate(names):
        apart, half = float(contrast.differences[1 + at]), float(halves[at])
        verdict: Literal["better", "worse", "undecided"] = "undecided"
        if task in rejected and apart != 0:
            verdict = "better" if apart > 0 else "worse"
        found.append(
            TaskDifference(
                task=task,
                difference=sign * apart,
                interval=_interval(sign, max(-1.0, apart - half), min(1.0, apart + half)),
                p_value=float(p_values[at]),
                p_adjusted=float(adjusted[at]),
                verdict=verdict,
            )
        )
    return tuple(found)


def _adjusted(p_values: FloatArray, adjust: Adjust) -> FloatArray:
    """Return adjusted p values, by Holm's or Benjamini and Hochberg's rule."""
    if adjust == "bh":
        from scipy.stats import false_discovery_control

        return np.asarray(false_discovery_control(p_values))
    order = np.argsort(p_values, kind="stable")
    left = len(p_values) - np.arange(len(p_values))
    raised = np.maximum.accumulate(np.minimum(1.0, left * p_values[order]))
    return np.asarray(raised[np.argsort(order, kind="stable")])


def _deciding(contrast: Contrast) -> tuple[ItemDifference, ...]:
    scores = contrast.scores
    items = np.intersect1d(contrast.one.items, contrast.other.items)
    first, second = contrast.common
    apart = np.abs(first - second)
    order = np.argsort(-apart, kind="stable")
    a, b = (scores.scale.from_unit(values) for values in (first, second))
    tasks = scores.items["task"]
    return tuple(
        ItemDifference(
            item=str(scores.item_ids[items[at]]),
            task=str(tasks.iloc[items[at]]),
            a=float(a[at]),
            b=float(b[at]),
        )
        for at in order[apart[order] > 0].tolist()
    )
