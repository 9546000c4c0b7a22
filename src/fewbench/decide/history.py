"""The history of a benchmark: ranked models in the order of their dates, and how scores changed."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from fewbench._json import Frozen
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.operands import Operand
from fewbench.decide.words import AS_MODELS
from fewbench.evaluation.interval import Interval
from fewbench.evaluation.journal import HEADER
from fewbench.scores import Scores, Unit
from fewbench.show.charts import estimating
from fewbench.show.page import Section, Table


class Dated(Frozen):
    """A model's score at its date, and how it differs from the model before it.

    Attributes
    ----------
    target : str
    date : str
        When its evaluation was started (UTC), or a source model's date.
    score, interval
        On the scale of the scores; the interval is of this score alone, and answers the same
        question as the ranks.
    change, change_interval
        The difference from the model before (None for the first).
    """

    target: str
    date: str
    score: float
    interval: Interval
    change: float | None = None
    change_interval: Interval | None = None


def history_of(
    sides: Sequence[Operand], scores: Scores, level: float, *, fixed_items: bool = False
) -> tuple[Dated, ...]:
    """Return the models that have a date, the oldest first (empty if all dates are equal).

    Models of the same date, such as the targets of one evaluation, stay in the order of `sides`.
    """
    dated = sorted(
        ((date, side) for side in sides if (date := _date(side, scores))), key=lambda pair: pair[0]
    )
    joint = JointEstimate([side for _, side in dated], level, fixed_items)
    scale = scores.scale
    rows: list[Dated] = []
    for at, (date, side) in enumerate(dated if len({date[:16] for date, _ in dated}) > 1 else ()):
        change, of_change = None, None
        if at:
            difference = joint.full_difference(at, at - 1)
            change = float(scale.difference_from_unit(difference.difference))
            of_change = Interval.between(scale.difference_from_unit(difference.interval(level)))
        rows.append(
            Dated(
                target=side.name,
                date=date[:16],
                score=float(scale.from_unit(side.estimates[0])),
                interval=Interval.between(scale.from_unit(joint.full_interval(at, level))),
                change=change,
                change_interval=of_change,
            )
        )
    return tuple(rows)


def _date(side: Operand, scores: Scores) -> str:
    evaluation = side.evaluation
    if evaluation is not None:
        path = None if evaluation.folder is None else evaluation.folder / HEADER
        if path is None or not path.exists():
            return ""
        return f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M:%S.%f}"
    models = scores.models
    if "date" not in models:
        return ""
    dates = models["date"].dropna().astype(str)
    return str(dates.get(side.name, ""))


def history_section(
    rows: Sequence[Dated], unit: Unit, level: float, *, fixed_items: bool
) -> Section:
    """Return the scores in time, as a chart and a table."""
    head = [("Date", False), ("Model", False), ("Score", True)]
    head += [(f"{level:.0%} interval", True), ("Change", True), ("Interval of the change", True)]
    cells = [
        [
            *(row.date, row.target, unit.score(row.score)),
            unit.scores(row.interval) if row.interval.low < row.interval.high else "all items ran",
            "–" if row.change is None else unit.difference(row.change),
            unit.differences(row.change_interval),
        ]
        for row in rows
    ]
    points = [{"step": row.target, "score": row.score, **row.interval.model_dump()} for row in rows]
    return Section(
        "history",
        "History",
        [
            "The oldest run first. A change is the difference from the run before. Intervals hold "
            + ("on exactly these items." if fixed_items else f"in general, {AS_MODELS}.")
        ],
        charts=[("", partial(estimating.in_time, points, unit))],
        tables=[Table("History", head, cells, "a model")],
        detail=True,
    )
