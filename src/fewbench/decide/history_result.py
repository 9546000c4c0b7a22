"""What `rank` shows of dates: scores in time, how they changed, and the best so far."""

from collections.abc import Sequence
from functools import partial

from fewbench._json import Frozen
from fewbench.decide.words import AS_MODELS
from fewbench.evaluation.interval import Interval
from fewbench.scores import Unit
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
    best : str
        The model with the highest score up to this date.
    best_score, best_interval
        What is expected of it: the highest of several scores is partly luck.
    """

    target: str
    date: str
    score: float
    interval: Interval
    change: float | None = None
    change_interval: Interval | None = None
    best: str
    best_score: float
    best_interval: Interval


def history_section(
    rows: Sequence[Dated], unit: Unit, level: float, *, fixed_items: bool
) -> Section:
    """Return the scores in time, as charts and tables."""
    head = [("Date", False), ("Model", False), ("Score", True)]
    of_score = (f"{level:.0%} interval", True)
    changes = [("Change", True), ("Interval of the change", True)]
    cells = [
        [
            *(row.date, row.target, unit.score(row.score)),
            unit.scores(row.interval) if row.interval.low < row.interval.high else "all items ran",
            "–" if row.change is None else unit.difference(row.change),
            unit.differences(row.change_interval),
        ]
        for row in rows
    ]
    records = [row for row in rows if row.best == row.target]
    best = [
        [
            *(row.date, row.target, unit.score(row.score)),
            unit.score(row.best_score),
            unit.scores(row.best_interval),
        ]
        for row in records
    ]
    points = [{"step": row.target, "score": row.score, **row.interval.model_dump()} for row in rows]
    by_date = [
        {"step": row.date, "score": row.best_score, **row.best_interval.model_dump()}
        for row in {row.date: row for row in records}.values()
    ]
    return Section(
        "history",
        "History",
        [
            "Expected: the highest of several scores is partly luck. The interval is of the "
            "expected score.",
            "A change is the difference from the model before. Intervals hold "
            + ("on exactly these items." if fixed_items else f"in general, {AS_MODELS}."),
        ],
        charts=[
            ("Scores, the oldest first", partial(estimating.in_time, points, unit)),
            ("Best so far, as expected", partial(estimating.best_so_far, by_date, unit)),
        ],
        tables=[
            Table("Best so far", [*head, ("Expected", True), of_score], best, "a model"),
            Table("History", [*head, of_score, *changes], cells, "a model", "All models by date"),
        ],
    )
