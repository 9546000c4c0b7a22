"""The history of a benchmark: models by their dates, how scores changed, and the best so far."""

from collections.abc import Sequence
from datetime import UTC, datetime

from fewbench.decide.history_result import Dated
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.operands import Operand
from fewbench.decide.standings import Standings
from fewbench.evaluation.interval import Interval
from fewbench.evaluation.journal import HEADER
from fewbench.scores import Scores


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
    highest = -1.0
    for at, (date, side) in enumerate(dated if len({date[:16] for date, _ in dated}) > 1 else ()):
        change, of_change = None, None
        if at:
            difference = joint.full_difference(at, at - 1)
            change = float(scale.difference_from_unit(difference.difference))
            of_change = Interval.between(scale.difference_from_unit(difference.interval(level)))
        if side.estimates[0] > highest:
            highest = float(side.estimates[0])
            best = Standings.of(joint.among(range(at + 1)), level).chosen(scale)
        rows.append(
            Dated(
                target=side.name,
                date=date[:16],
                score=float(scale.from_unit(side.estimates[0])),
                interval=Interval.between(scale.from_unit(joint.full_interval(at, level))),
                change=change,
                change_interval=of_change,
                best=best.target,
                best_score=best.score,
                best_interval=best.interval,
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
