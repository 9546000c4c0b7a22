"""What `rank` returns: targets from the best to the worst, and how sure the order is."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

from pydantic import Field

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, probability, some
from fewbench._warned import in_cell
from fewbench.decide.history_result import Dated, history_section
from fewbench.decide.pairing import Pairing
from fewbench.decide.words import AS_MODELS, on_these
from fewbench.evaluation.interval import Interval
from fewbench.scores import Average, Scale, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.show.charts import deciding
from fewbench.show.charts.forms import MOST
from fewbench.show.page import Page, Section, Shown, Table

SHOWN_CONTENDERS = 6
"""Names of models in the finding."""
SHOWN_NAMES = 2
"""Names in a cell."""
MOST_COLUMNS = 8
"""Tasks that have a column each."""
SHOWN_ROWS = 40
"""Rows of a text; files have all."""


class Place(Frozen):
    """A target's place, in the order by full scores or by the scores on a task.

    Attributes
    ----------
    target : str
    score, interval
        The score on the user's scale, and the interval of this score by itself: None if too
        little is known about a task.
    rank : int
        1 is best.
    rank_low, rank_high : int
        Best and worst rank; the level applies to the ranges of all targets jointly.
    chance_best : float
        Probability of rank 1.
    may_be_best : bool
        Whether no other target is surely better; the level applies to all targets jointly.
    items_run : int
    """

    target: str
    score: float
    interval: Interval | None
    rank: int
    rank_low: int
    rank_high: int
    chance_best: float
    may_be_best: bool
    items_run: int


class Foremost(Frozen):
    """What is expected of a model that was chosen for its score, the highest of several.

    Attributes
    ----------
    target : str
    score, interval
        On the user's scale; drawn towards the others by as much as the score is high by luck.
    """

    target: str
    score: float
    interval: Interval

    @classmethod
    def of(cls, target: str, found: Sequence[float], scale: Scale) -> Self:
        """Return it from a score and the ends of its interval in [0, 1]."""
        score, *ends = found
        interval = Interval.between(scale.from_unit(tuple(ends)))
        return cls(target=target, score=float(scale.from_unit(score)), interval=interval)

    def sentence(self, score: float, number: int, unit: Unit, *, fixed_items: bool) -> str:
        """Return it in words, or nothing if it is the score that was seen, of so many models."""
        if unit.score(self.score) == unit.score(score):
            return ""
        return (
            f"As the highest of {number:,} scores, that of {self.target} is partly luck: expect "
            f"{unit.score(self.score)} ({unit.scores(self.interval)}) "
            f"{'on these items' if fixed_items else 'in general'}."
        )


class Ranked(Place):
    """A target's place in the order by full scores.

    Attributes
    ----------
    chance_top : float
        Probability of being among the best `top`.
    tied_with : tuple of str
        Targets that may be as good, worse or better.
    """

    chance_top: float
    tied_with: tuple[str, ...]


class TaskRanking(Frozen):
    """Targets from the best to the worst on a task.

    Attributes
    ----------
    task : str
    items : int
        Number of items of the task.
    targets : tuple of Place
        The level applies to each task by itself.
    """

    task: str
    items: int
    targets: tuple[Place, ...]


class Ranking(Shown, Frozen):
    """Targets from the best to the worst.

    Attributes
    ----------
    targets : tuple of Ranked
        In order of their scores.
    scale : Scale
        The scale of the scores.
    average : str
        What a full score is: the mean over items (micro) or over task scores (macro).
    level : float
    top : int
        How many best targets are wanted.
    chosen : Foremost
        What is expected of the first target, as the best of all.
    fixed_items : bool
        Whether intervals, ranges and probabilities are about exactly these items, of these runs. If
        not, they are about the models, on questions like these and if they run again.
    is_settled : bool
        Whether it is sure, at this level, which targets are the best `top`.
    is_decidable : bool
        Whether all items could settle it, if the differences stay.
    items_total : int
    items_by_task : dict of str to int
        Number of items of each task.
    date : str
        Day on which the models were ranked (UTC).
    tasks : tuple of TaskRanking
        The order on each task, if wanted.
    next_targets : tuple of str
        The targets to run more items of to settle the best `top`: the least sure one among them
        that more items can tell apart from its closest challenger, and this challenger.
    next_items : dict of str to tuple of str
        The items that each target runs next to settle the best `top`, the most informative first.
        Given if `next_items` says how many. Targets that need none are left out.
    own_ids : dict of str to str
        The ids that these items have as samples of Inspect.
    pairing : Pairing or None
        How to run targets on the same items if some share few.
    is_limited : bool
        Whether a limit on cost leaves no further items of a target that settles it.
    sequential : bool
        Whether the ranks hold at all looks at growing answers together.
    history : tuple of Dated
        The targets that have a date, the oldest first, with the change from one to the next and
        the best so far, if wanted.
    warnings : tuple of str
    """

    targets: tuple[Ranked, ...]
    scale: Scale
    average: Average
    level: float
    top: int
    chosen: Foremost
    fixed_items: bool = False
    is_settled: bool
    is_decidable: bool = True
    items_total: int
    items_by_task: dict[str, int] = Field(default_factory=dict)
    date: str = ""
    tasks: tuple[TaskRanking, ...] = ()
    next_targets: tuple[str, ...] = ()
    next_items: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    own_ids: dict[str, str] = Field(default_factory=dict)
    pairing: Pairing | None = None
    is_limited: bool = False
    sequential: bool = False
    history: tuple[Dated, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per target, the best first; with tasks, by task, the full score as all."""
        rows = [_row(target) for target in self.targets]
        if self.tasks:
            rows = [{"task": "all", **row} for row in rows]
            for ranking in self.tasks:
                rows += [{"task": ranking.task, **_row(place)} for place in ranking.targets]
        index = ["task", "target"] if self.tasks else "target"
        return pd.DataFrame(rows).set_index(index).assign(warnings=in_cell(self.warnings))

    @property
    def contenders(self) -> list[Ranked]:
        """The targets that may be the best, or among the best `top`."""
        if self.top > 1:
            return [target for target in self.targets if target.rank_low <= self.top]
        return [target for target in self.targets if target.may_be_best]

    def page(self, title: str | None = None) -> Page:
        """Return who ranks first, the ranks of all with their ranges, and what to run next.

        A page of a leaderboard may have a title.
        """
        unit, n = Unit(self.scale), len(self.targets)
        leading = [target.target for target in self.targets if target.rank <= self.top]
        is_estimated = any(target.items_run < self.items_total for target in self.targets)
        if len(leading) == 1:
            estimated = "an estimated " if self.targets[0].items_run < self.items_total else ""
            seen = f"{leading[0]} scores best, with {estimated}{unit.score(self.targets[0].score)}"
        else:
            seen = f"{some(leading, quotes=False)} score best"
        lesser, would = [self._finding()], "would not" if is_estimated else "do not"
        seen_score = self.targets[0].score
        if luck := self.chosen.sentence(seen_score, n, unit, fixed_items=self.fixed_items):
            lesser.append(luck)
        if not self.is_settled and not self.is_decidable:
            lesser.append(
                f"Even all {counted(self.items_total, 'item')} {would} decide it; more such "
                "questions, and repeated runs of the items, would."
            )
        about = Section("about", "About", facts=self._about(), detail=True)
        sections = [about, self._ranks(unit), self._of_charts()]
        sections += [self._tasks()] if self.tasks else []
        if self.history:
            sections.append(
                history_section(self.history, unit, self.level, fixed_items=self.fixed_items)
            )
        items = {
            f"{name}, {counted(len(chosen), 'item')}": ", ".join(
                self.own_ids.get(item, item) for item in chosen
            )
            for name, chosen in self.next_items.items()
        }
        sections += [Section("next", "Next items", facts=items)] if items else []
        targets = " and ".join(self.next_targets)
        how = "repeat the command with --next-items NUMBER --ask"
        how += "" if self.sequential else ", and with --sequential from now on"
        if self.is_limited:
            how = "rerun the command of fewbench run with a larger --cost, and repeat this command"
            how += "" if self.sequential else " with --sequential"
        more = [f"run more items of {targets}: {how}"] * bool(targets)
        return Page(
            "rank",
            title or counted(n, "model"),
            f"{on_these(self.items_total)}, {seen}",
            [*lesser, *average_notes(self.average)],
            self.warnings,
            sections,
            [*([self.pairing.command] if self.pairing else []), *more],
            first=self.pairing.note if self.pairing else "",
        )

    def _finding(self) -> str:
        """Return what holds for the models, or for exactly these items."""
        n, about = len(self.targets), f"In general, {AS_MODELS}"
        if self.fixed_items:
            about = "On exactly these items"
        which = "model is" if self.top == 1 else f"{self.top} models are"
        decided = "decided" if self.is_settled else "undecided"
        text = f"{about}: which {which} the best of {n} is {decided} at {self.level:.0%}."
        if self.is_settled:
            return text
        among = "the best" if self.top == 1 else f"among the best {self.top}"
        likely = sorted(self.contenders, key=lambda target: -target.chance_top)
        named = [f"{target.target} ({probability(target.chance_top)})" for target in likely]
        if len(named) == 1 and self.top == 1:
            return (
                f"{text} If only the best is asked for, it is {named[0]}; that holds at the level, "
                "but not with all pairs of models together."
            )
        text += f" {counted(len(named), 'model')} may be {among}, with these probabilities: "
        text += f"{some(named, SHOWN_CONTENDERS, quotes=False)}."
        if likely and likely[0].chance_top >= self.level:
            text += (
                f" A probability of {self.level:.0%} or more does not decide it: the decision must "
                "hold for all pairs of models together."
            )
        return text

    def _ranks(self, unit: Unit) -> Section:
        """Return the table of all targets."""
        contenders = {target.target for target in self.contenders}
        everyone = all(target.items_run == self.items_total for target in self.targets)
        among = "be best" if self.top == 1 else f"be in top {self.top}"
        of_tasks = self.tasks if 1 < len(self.tasks) <= MOST_COLUMNS else ()
        columns: list[tuple[str, bool, Callable[[Ranked], str]]] = [
            ("Model", False, lambda target: target.target),
            ("Rank", True, lambda target: str(target.rank)),
            ("Range", True, _range),
            ("Score", True, lambda target: unit.score(target.score)),
            (f"{self.level:.0%} interval", True, lambda target: _ends(target.interval, unit)),
            *((task.task, True, _score_on(task, unit)) for task in of_tasks),
            ("P(best)", True, lambda target: probability(target.chance_best)),
            (f"P(top {self.top})", True, lambda target: probability(target.chance_top)),
            (f"May {among}", False, lambda target: "yes" * (target.target in contenders)),
            ("Items run", True, lambda target: f"{target.items_run:,}"),
            ("Tied with", False, lambda target: _few(target.tied_with)),
        ]
        unneeded = {"P(top 1)"} | ({"Items run"} if everyone else set())
        columns = [column for column in columns if column[0] not in unneeded]
        rows = [[cell(target) for _, _, cell in columns] for target in self.targets]
        notes = [
            f"Range: the best and the worst rank. All ranges hold together at {self.level:.0%}.",
            f"{self.level:.0%} interval: of this score by itself"
            + ("." if self.fixed_items else f", as that of a model {AS_MODELS}."),
            f"May {among}: {self._contender_note}",
            "Tied with: models that are not clearly better or worse.",
        ]
        if of_tasks and not everyone:
            notes.append(f"±: half of the {self.level:.0%} interval, where only some items ran.")
        head = [(title, is_number) for title, is_number, _ in columns]
        table = Table("Ranks", head, rows, "a model", first=SHOWN_ROWS)
        return Section("places", "Ranks", notes, tables=[table])

    def _about(self) -> dict[str, str]:
        """Return what was ranked, on what, and when."""
        of_task = (f"{task} ({items:,})" for task, items in self.items_by_task.items())
        ran_all = sum(target.items_run == self.items_total for target in self.targets)
        models = f"{ran_all:,} ran all items"
        if n_partial := len(self.targets) - ran_all:
            models += f", {n_partial:,} a part: their scores are estimates"
        return {
            "Date": self.date,
            "Benchmark": f"{counted(self.items_total, 'item')}: {some(of_task, quotes=False)}",
            "Models": models,
        }

    @property
    def _contender_note(self) -> str:
        if self.top > 1:
            return f"the range begins at {self.top} or better."
        return f"no other model is surely better, at {self.level:.0%} for all models together."

    def _of_charts(self) -> Section:
        """Return the charts of scores and of ranks."""
        among = "the best" if self.top == 1 else f"among the best {self.top}"
        n = len(self.targets)
        first = f", of the first {MOST} of {n:,} models" if n > MOST else ""
        return Section(
            "ranks",
            "Ranges and intervals",
            legend=[f"Models that may be {among} are colored."],
            charts=[
                (f"Ranks, with their ranges{first}", lambda: deciding.ranks(self)),
                (f"Scores, with {self.level:.0%} intervals{first}", lambda: deciding.scores(self)),
            ],
        )

    def _tasks(self) -> Section:
        """Return the first models on each task."""
        unit = Unit(self.scale)
        head = [("Task", False), ("Items", True), ("First", False), ("Score", True)]
        head += [("P(best)", True), ("May be best", False)]
        rows = []
        for task in self.tasks:
            first = task.targets[0]
            may = [place.target for place in task.targets if place.may_be_best]
            rows.append(
                [
                    *(task.task, f"{task.items:,}", first.target, unit.score(first.score)),
                    *(probability(first.chance_best), _few(may)),
                ]
            )
        notes = [f"The level of {self.level:.0%} applies to each task by itself."]
        return Section("tasks", "Tasks", notes, tables=[Table("Tasks", head, rows, "a task")])


def _ends(interval: Interval | None, unit: Unit) -> str:
    return unit.scores(interval) if interval and interval.low < interval.high else "–"


def _range(place: Place) -> str:
    """Return the ranks that a model may have; one that is sure stands alone."""
    low, high = place.rank_low, place.rank_high
    return str(low) if low == high else f"{low} to {high}"


def _score_on(task: TaskRanking, unit: Unit) -> Callable[[Place], str]:
    """Return a function that prints a model's score on a task, with a half width if estimated."""
    places = {place.target: place for place in task.targets}

    def score(target: Place) -> str:
        place = places.get(target.target)
        if place is None:
            return "–"
        text = unit.score(place.score)
        if place.items_run < task.items:
            ends = place.interval
            text += f" ± {unit.points((ends.high - ends.low) / 2) if ends else '?'}"
        return text

    return score


def _few(names: Sequence[str]) -> str:
    """Return the names, or of many their number."""
    return ", ".join(names) if len(names) <= SHOWN_NAMES else f"{len(names):,} models"


def _row(place: Place) -> dict[str, Any]:
    """Return a row of a data frame."""
    row = place.model_dump(exclude={"interval"})
    ends = place.interval or Interval(low=math.nan, high=math.nan)
    row = {"target": row.pop("target"), "score": row.pop("score"), **dict(ends), **row}
    if isinstance(place, Ranked):
        row["tied_with"] = ", ".join(place.tied_with)
    return row
