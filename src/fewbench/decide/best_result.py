"""What `best` returns: which of several models is the best, how sure that is, and its score."""

from typing import Literal

from pydantic import Field

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import counted, probability, some
from fewbench._warned import in_cell
from fewbench.decide.words import AS_MODELS
from fewbench.evaluation.interval import Interval
from fewbench.scores import Scale, Unit
from fewbench.scores.costs import amount
from fewbench.show.page import Page, Section, Shown, Table

Ending = Literal["settled", "answers", "cost", "all items", "stopped"]


class Candidate(Frozen):
    """One of the models among which the best is looked for.

    Attributes
    ----------
    target : str
    score, interval
        What is expected of it, on the user's scale: the highest scores are partly luck, and are
        drawn towards the others.
    chance_top : float
        Probability of being among the best `top`; equal scores share it.
    items_run : int
    dropped_after : int, optional
        For a model that is surely none of the best: the number of answers of all models after which
        it ran no further item.
    cost : float, optional
        If costs are known.
    """

    target: str
    score: float
    interval: Interval
    chance_top: float
    items_run: int
    dropped_after: int | None = None
    cost: float | None = None


class BestResult(Shown, Frozen):
    """The best of several models.

    Attributes
    ----------
    targets : tuple of Candidate
        In the order of their scores.
    top : int
        How many best models are wanted: the first of the targets.
    tied : tuple of str
        Further models that surely have the same score as the last of these.
    margin : float
        On the user's scale; by how much another model may be better.
    chance : float
        Probability that no other model is better than the first `top` by more than the margin.
        Errors count 1.3 times, as the run was looked at after every round.
    chance_alike : float
        Probability that no two of all models differ by more than the margin.
    level : float
        The probability at which the run ends.
    is_settled : bool
    ended : {"settled", "answers", "cost", "all items", "stopped"}
        Why the run ended: it is settled, the limit on answers or on cost is reached, all items ran,
        or the run was stopped.
    in_general : bool
        Whether it is about the models, on questions like these and if they run again, or about
        exactly these items.
    answers, answers_total : int
        Number of answers of all models so far, and on all items.
    items_total : int
    interval_level : float
        Level of the candidates' intervals.
    scale : Scale
    cost : float, optional
        Cost of all models, if known.
    unit : str
        Unit of the cost.
    stopped : str, optional
        Why the run was stopped, in words.
    is_failed : bool
        Whether that was a failure of a model or its runner.
    warnings, notes : tuple of str
    """

    targets: tuple[Candidate, ...]
    top: int
    tied: tuple[str, ...] = ()
    margin: float
    chance: float
    chance_alike: float
    level: float
    is_settled: bool
    ended: Ending
    in_general: bool
    answers: int
    answers_total: int
    items_total: int
    interval_level: float
    scale: Scale
    cost: float | None = None
    unit: str = ""
    stopped: str | None = None
    is_failed: bool = False
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = Field(default=(), repr=False)

    @property
    def winners(self) -> tuple[str, ...]:
        """The names of the best models, as far as they are known."""
        return tuple(candidate.target for candidate in self.targets[: self.top])

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per model, the best first."""
        rows = [
            {
                "target": candidate.target,
                "score": candidate.score,
                "low": candidate.interval.low,
                "high": candidate.interval.high,
                **candidate.model_dump(exclude={"target", "score", "interval"}),
            }
            for candidate in self.targets
        ]
        return pd.DataFrame(rows).set_index("target").assign(warnings=in_cell(self.warnings))

    def page(self) -> Page:
        """Return which model is the best, how sure that is, and how far each model ran."""
        return Page(
            "best",
            f"the best of {counted(len(self.targets), 'model')}",
            self._finding(),
            [text for text in (self._score(), self._alike(), self._limit()) if text],
            self.warnings,
            [self._candidates()],
            self._next(),
        )

    def _finding(self) -> str:
        """Return which is the best, of how many, how sure, and after how many answers."""
        n, unit = len(self.targets), Unit(self.scale)
        names, others = some(self.winners, quotes=False), some(self.tied, quotes=False)
        if self.top > 1:
            which = f"{names} are the best {self.top} of {n:,}"
            which += f" ({self.winners[-1]} scores the same as {others})" if others else ""
        elif others:
            which = f"{names}, {others} share the best score of {n:,}"
        else:
            which = f"{names} is the best of {n:,}"
        within = ""
        if self.margin:
            it = "it" if self.top == 1 else "them"
            within = f", or within {unit.points(self.margin, exact=True)} of {it},"
        about = f"in general, {AS_MODELS}" if self.in_general else "on these items"
        share = self.answers / self.answers_total
        spent = "" if self.cost is None else f", at a cost of {amount(self.cost, self.unit)}"
        after = f"after {self.answers:,} of {self.answers_total:,} answers ({share:.1%}{spent})"
        text = f"{which}{within} {about} with probability {probability(self.chance)}, {after}"
        return text if self.is_settled else f"undecided: {text}"

    def _score(self) -> str:
        """Return what is expected of the best models' scores."""
        unit = Unit(self.scale)
        scores = [
            f"{unit.score(one.score)} ({unit.scores(one.interval)})"
            for one in self.targets[: self.top]
        ]
        if self.top == 1:
            who = "Each" if self.tied else "It"
            return f"{who} scores {scores[0]}; the interval is at {self.interval_level:.0%}."
        of_each = some(
            (f"{name} {score}" for name, score in zip(self.winners, scores, strict=True)),
            quotes=False,
        )
        return f"Scores, with {self.interval_level:.0%} intervals: {of_each}."

    def _alike(self) -> str:
        if self.chance_alike < self.level:
            return ""
        margin = Unit(self.scale).points(self.margin, exact=True)
        return (
            f"The {len(self.targets):,} models do not differ by more than {margin}, with "
            f"probability {probability(self.chance_alike)}."
        )

    def _limit(self) -> str:
        """Return why it is not settled."""
        if self.is_settled or self.ended != "all items":
            return ""
        return (
            f"Even all {counted(self.items_total, 'item')} do not decide it; more such questions, "
            "and repeated runs of the items, would. A margin (--margin) settles it sooner."
        )

    def _next(self) -> list[str]:
        limit = {"answers": "-n", "cost": "--cost"}.get(self.ended)
        if limit is None:
            return []
        return [
            f"rerun the command with a larger {limit} to go on, or with a --margin: all answers "
            "are kept"
        ]

    def _candidates(self) -> Section:
        """Return the table of all models."""
        unit, has_costs = Unit(self.scale), any(one.cost is not None for one in self.targets)
        head = [("Model", False), ("Items run", True), ("Score", True)]
        head += [(f"{self.interval_level:.0%} interval", True)]
        head += [("P(best)" if self.top == 1 else f"P(top {self.top})", True)]
        head += [("Dropped after", True)] + [("Cost", True)] * has_costs
        rows = [
            [
                *(one.target, f"{one.items_run:,}", unit.score(one.score)),
                *(unit.scores(one.interval), probability(one.chance_top)),
                "" if one.dropped_after is None else f"{one.dropped_after:,} answers",
                *[amount(one.cost or 0.0, self.unit)] * has_costs,
            ]
            for one in self.targets
        ]
        shared = "equal scores share it."
        alone = (
            "at this point alone. The probability in the first line is lower, as the run was "
            "looked at after every round."
        )
        notes = [
            "Score: what is expected of the model. The highest scores are partly luck, and are "
            "drawn towards the others.",
            f"{head[4][0]}: {shared if self.tied else alone}",
            "Dropped after: the answers of all models after which it ran no further item.",
        ]
        return Section("models", "Models", notes, tables=[Table("Models", head, rows, "a model")])
