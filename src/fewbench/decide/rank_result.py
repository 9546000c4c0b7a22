"""What `rank` returns: targets from the best to the worst, and how sure the order is."""

from pydantic import Field

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, probability, some
from fewbench._warned import in_cell
from fewbench.decide.history import Dated, history_section
from fewbench.decide.operands import Pairing
from fewbench.evaluation.interval import Interval
from fewbench.scores import Average, Scale, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.show.charts import deciding
from fewbench.show.page import Page, Section, Shown, Table


class Place(Frozen):
    """A target's place, in the order by full scores or by the scores on a task.

    Attributes
    ----------
    target : str
    score, interval
        The score on the user's scale, and the interval of this score by itself.
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
    interval: Interval
    rank: int
    rank_low: int
    rank_high: int
    chance_best: float
    may_be_best: bool
    items_run: int


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
        In order of their estimated scores.
    scale : Scale
        The scale of the scores.
    average : str
        What a full score is: the mean over items (micro) or over task scores (macro).
    level : float
    top : int
        How many best targets are wanted.
    is_settled : bool
        Whether it is sure, at this level, which targets are the best `top`.
    next_targets : tuple of str
        The targets to run more items of to settle the best `top`: the least sure one among them,
        and its closest challenger.
    next_items : dict of str to tuple of str
        The items that each target runs next to settle the best `top`, the most informative first.
        Given if `next_items` says how many. Targets that need none are left out.
    pairing : Pairing or None
        How to run targets on the same items if some share few.
    is_limited : bool
        Whether a limit on cost leaves no further items of a target that settles it.
    history : tuple of Dated
        The targets that have a date, the oldest first, with the change from one to the next.
    warnings : tuple of str
    """

    targets: tuple[Ranked, ...]
    scale: Scale
    average: Average
    level: float
    top: int
    is_settled: bool
    next_targets: tuple[str, ...]
    next_items: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    pairing: Pairing | None = None
    is_limited: bool = False
    history: tuple[Dated, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per target, the best first."""
        rows = [
            target.model_dump() | {"tied_with": ", ".join(target.tied_with)}
            for target in self.targets
        ]
        return pd.DataFrame(rows).set_index("target").assign(warnings=in_cell(self.warnings))

    def page(self) -> Page:
        """Return who ranks first, the ranks of all with their ranges, and what to run next."""
        unit = Unit(self.scale)
        head = [("Model", False), ("Rank", True), ("Range", True), ("Score", True)]
        head += [("P(best)", True), (f"P(top {self.top})", True), ("Items run", True)]
        head.append(("Not clearly different from", False))
        rows = [
            [
                *(target.target, str(target.rank), f"{target.rank_low} to {target.rank_high}"),
                *(
                    unit.score(target.score),
                    probability(target.chance_best),
                    probability(target.chance_top),
                ),
                *(f"{target.items_run:,}", some(target.tied_with, quotes=False)),
            ]
            for target in self.targets
        ]
        if self.top == 1:  # both columns say the same
            head, rows = head[:5] + head[6:], [row[:5] + row[6:] for row in rows]
        leading = [target.target for target in self.targets if target.rank <= self.top]
        best = ", ".join(leading)
        which = "model is" if self.top == 1 else f"{self.top} models are"
        settled = "settled" if self.is_settled else "not settled"
        lesser = [f"Which {which} the best of {len(rows)} is {settled} at {self.level:.0%}."]
        lesser += average_notes(self.average)
        answer = f"{best} ranks first" if len(leading) == 1 else f"First are {best}"
        among = "the best" if self.top == 1 else f"among the best {self.top}"
        ranks = Section(
            "ranks",
            "Ranks",
            [f"The level of {self.level:.0%} applies to all rank ranges jointly."],
            charts=[(f"Models that may be {among} are colored", lambda: deciding.ranks(self))],
            tables=[Table("Ranks", head, rows, "a model")],
        )
        items = {f"{name}, {counted(len(chosen), 'item')}": ", ".join(chosen)
                 for name, chosen in self.next_items.items()}  # fmt: skip
        targets = " and ".join(self.next_targets)
        how = "repeat the command with --next-items NUMBER --ask"
        if self.is_limited:
            how = "rerun the command of fewbench run with a larger --cost"
        more = [f"run more items of {targets}: {how}"] * bool(targets)
        return Page(
            "rank",
            f"{len(rows)} models",
            answer if self.is_settled else f"{answer} so far",
            lesser,
            self.warnings,
            [
                ranks,
                *([history_section(self.history, unit, self.level)] if self.history else []),
                *([Section("next", "Next items", facts=items)] if items else []),
            ],
            [*([self.pairing.command] if self.pairing else []), *more],
            first=self.pairing.note if self.pairing else "",
        )
