"""The outcome of a plan: what to run, what to expect, and how sure that is."""

import math
from dataclasses import asdict, dataclass, field
from functools import partial
from shlex import quote
from typing import Any, Literal

from fewbench._lazy import pandas as pd
from fewbench._names import counted, fixed, rough
from fewbench.scores import Scale, Unit
from fewbench.scores.costs import amount
from fewbench.show.charts import planning as figures
from fewbench.show.charts import theme
from fewbench.show.page import Page, Section, Shown, Table, plain
from fewbench.study.learning_curve import LearningCurve
from fewbench.study.splits import SplitSettings

Target = Literal["like", "family", "stronger", "weaker"]
TARGETS: dict[Target, tuple[SplitSettings, str]] = {
    "like": (SplitSettings("random"), "like the source models"),
    "family": (SplitSettings("group"), "of a new family"),
    "stronger": (SplitSettings("performance"), "stronger than all source models"),
    "weaker": (SplitSettings("weakest"), "weaker than all source models"),
}
"""Relations of the target to the sources: the split that imitates it, and words for it."""


ITEMS = "items"
WIDE = 5.0  # half widths per expected error from which the interval hides the error
"""Unit of the costs where every item costs 1."""


@dataclass(frozen=True)
class Forecast:
    """What to expect for targets in one relation to the sources; errors on the scores' scale.

    Attributes
    ----------
    target : {"like", "family", "stronger", "weaker"}
    method, items
        What to run.
    reason : str
        Why this method.
    is_better : bool
        Whether the method is clearly better than plain random sampling.
    error, error_low, error_high : float
        Expected absolute error at `items`, and its 90% interval.
    items_low, items_high : int or None
        The numbers of items at which the ends of that interval reach what is wanted.
    half_width, coverage : float
        Mean half width of the estimates' intervals, and the share of them that contained the truth.
    random_items : int
        What plain random sampling needs for the same.
    random_error : float
        Exact expected error of plain random sampling with `items`.
    ratio, ratio_low, ratio_high : float
        Error over random sampling's; for `difference`, squared errors of differences.
    margin : float or None
        For `difference`: the smallest difference that `items` distinguish.
    margin_of_all : float or None
        The smallest one that all items distinguish; 0 on exactly these items.
    n_targets, n_sources : int
        Numbers in a repeat of the backtest.
    is_extrapolated : bool
        Whether `items` is above all budgets that were run.
    cost, random_cost, full_cost : float
        Costs of a run on `items`, on `random_items` and on all items, in the unit of the costs, or
        of the price.
    breakeven, breakeven_random : int or None
        New models after which the full runs of all sources have paid, in place of full runs and
        in place of random sampling.
    """

    target: Target
    method: str
    items: int
    reason: str
    is_better: bool
    error: float
    error_low: float
    error_high: float
    items_low: int | None
    items_high: int | None
    half_width: float
    coverage: float
    random_items: int
    random_error: float
    ratio: float
    ratio_low: float
    ratio_high: float
    margin: float | None
    margin_of_all: float | None
    n_targets: int
    n_sources: int
    is_extrapolated: bool
    cost: float
    random_cost: float
    full_cost: float
    breakeven: int | None
    breakeven_random: int | None

    @property
    def is_random(self) -> bool:
        """Whether plain random sampling is to be run."""
        return self.method == figures.RANDOM

    @property
    def why(self) -> str:
        """Why this method, and whether the splits that judge it confirm that."""
        if self.is_better and not self.ratio_high < 1:
            ends = f"[{self.ratio_low:.2f}, {self.ratio_high:.2f}]"
            return (
                f"{self.reason} on the splits that choose the method; on those that judge it, this "
                f"is not shown: {self.ratio:.2f} {ends} times the error"
            )
        return self.reason


@dataclass(frozen=True)
class Expected:
    """What to expect of a random sample for a model with this score, on the scores' scale.

    Attributes
    ----------
    score : float
    items : int
    half_width, error : float
        Half width of the interval, and expected absolute error.
    random_half_width : float
        Half width of the interval of as many items of plain random sampling.
    cost : float
        Cost of a run if all its items cost the mean.
    pays_after : int or None
        New models after which it has paid to run models in full until there are 20.
    """

    score: float
    items: int
    half_width: float
    error: float
    random_half_width: float
    cost: float
    pays_after: int | None


@dataclass(frozen=True)
class Apart:
    """What two models need that answer a share of the items differently.

    Attributes
    ----------
    share : float
        Share of the items on which one model scores 1 and the other 0.
    items : int
        Items that both run; it may be above the number of items of the benchmark.
    cost : float
        Cost of the runs of both if all items cost the mean.
    """

    share: float
    items: int
    cost: float


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """How many items to run, with which method.

    A plan rests on a backtest, with `forecasts`; or, where too few models ran the whole benchmark,
    on a random sample, with what is `expected` of it.

    Attributes
    ----------
    goal, wanted : str, float
        "error", "half_width", "budget" or "difference", and its value.
    level : float
        Level of the intervals.
    power : float
        For `difference`: share of such pairs that are distinguished.
    fixed_items : bool
        For `difference`: whether the difference is on exactly these items, and not on questions
        like these in a new run.
    n_items, n_models : int
        Size of the table.
    price : float or None
        Price of a unit of the costs.
    unit : str
        Unit of the costs: the name of their column, or as given with `cost`.
    cost : str
        The limit of cost that the number of items is for.
    scale : Scale
        The scale of the scores, on which errors are given.
    facts : dict of str
    notes : tuple of str
        Remarks on these numbers.
    forecasts : tuple of Forecast
        One for each relation of the target to the sources; the first is the one of `answer`.
    curves : DataFrame
        One row per relation, method, backtest (the splits that choose, or those that judge) and
        number of items: error with its 90% interval, and plain random sampling's.
    learning : LearningCurve or None
        Error by number of sources, or None if random sampling is recommended.
    expected : Expected or None
        For the score of the answer: that of the models that ran a part, or the worst case. None
        after a backtest.
    apart : tuple of Apart
        For `difference`, where too few models ran the whole benchmark: first for a usual pair of
        models.
    scores : tuple of Expected
        For other scores.
    """

    goal: str
    wanted: float
    level: float
    power: float
    n_items: int
    n_models: int
    price: float | None
    unit: str
    cost: str
    scale: Scale
    facts: dict[str, str]
    notes: tuple[str, ...]
    forecasts: tuple[Forecast, ...] = ()
    curves: "pd.DataFrame" = field(default_factory=lambda: pd.DataFrame())
    learning: LearningCurve | None = None
    expected: Expected | None = None
    apart: "tuple[Apart, ...]" = ()
    scores: tuple[Expected, ...] = ()
    fixed_items: bool = False

    @property
    def answer(self) -> str:
        """What to run, in a sentence; `forecasts` have the other relations of the target."""
        if self.apart:
            return self._pair_answer(self.apart[0])
        if self.expected is not None:
            return self._sample_answer(self.expected)
        first = self.forecasts[0]
        if self.questions_needed is not None:
            return self._beyond(first, self.questions_needed)
        return f"Run {self._said(first)}"

    @property
    def questions_needed(self) -> int | None:
        """If all items do not distinguish such models: about how many questions like these do."""
        least = self.forecasts[0].margin_of_all if self.forecasts else None
        if self.goal != "difference" or least is None or least <= self.wanted * (1 + 1e-9):
            return None
        return math.ceil(self.n_items * (least / self.wanted) ** 2)

    def _beyond(self, forecast: Forecast, questions: int) -> str:
        unit = Unit(self.scale)
        wanted = unit.points(self.wanted, exact=True)
        return (
            f"Even all {self.n_items:,} items do not distinguish models that differ by {wanted}. "
            f"{self._least(forecast)} {wanted} needs about {rough(questions)} such questions."
        )

    def _least(self, forecast: Forecast) -> str:
        """Say which models all items tell apart."""
        points = Unit(self.scale).points(forecast.margin_of_all)
        return (
            f"All {self.n_items:,} items tell models apart that differ by {points} or more "
            f"({self.power:.0%} of cases)."
        )

    def _pair_answer(self, apart: "Apart") -> str:
        wanted = Unit(self.scale).points(self.wanted, exact=True)
        told = f"told apart in {self.power:.0%} of cases, if their answers differ on"
        if apart.items > self.n_items:
            return (
                f"All {self.n_items:,} items are too few: models that differ by {wanted} need "
                f"about {apart.items:,} such items to be {told} {apart.share:.0%} of them."
            )
        return (
            f"Run {counted(apart.items, 'item')} of {self.n_items:,}, the same with both models: "
            f"models that differ by {wanted} are {told} {apart.share:.0%} of the items."
        )

    def _sample_answer(self, expected: Expected) -> str:
        unit = Unit(self.scale)
        run = f"Run {counted(expected.items, 'item')} of {self.n_items:,}"
        if expected.items >= self.n_items:
            run = f"Run all {self.n_items:,} items: no part of them is enough"
        whose = "as good as those of the table" if self.n_models else "at the worst score"
        width = f"half width {unit.points(expected.half_width)} at {self.level:.0%}"
        width += f", expected error {unit.points(expected.error)}"
        return f"{run}: {width}, for a model {whose} ({unit.score(expected.score)})."

    def _said(self, forecast: Forecast) -> str:
        unit, run = Unit(self.scale), f"{counted(forecast.items, 'item')} with {forecast.method}"
        if forecast.items >= self.n_items:
            run = f"all {self.n_items:,} items: no part of them is enough"
        elif forecast.items > self.n_items / 2:
            run = f"{forecast.items:,} of {self.n_items:,} items with {forecast.method}"
        expected = f"expected error {unit.points(forecast.error)}"
        width = (
            ""
            if math.isnan(forecast.half_width)
            else f"half width {unit.points(forecast.half_width)}"
        )
        if self.goal == "difference":
            apart = (
                f"{self.power:.0%} of pairs that differ by {unit.points(self.wanted, exact=True)}"
            )
            return f"{run}: {apart} are distinguished ({expected} per model)."
        if self.goal == "half_width":
            return f"{run}: {width} at {self.level:.0%}, {expected}."
        text = f"{run}: {expected}{f' ({width} at {self.level:.0%})' if width else ''}."
        if self.goal == "error" and not forecast.half_width <= WIDE * self.wanted:  # or unknown
            text += (
                " The interval is too wide to show an error that small: plan with a half width "
                "(--half-width) instead."
            )
        return text

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per relation of the target to the sources, or per score of the target."""
        rows = [asdict(row) for row in self.forecasts or self.scores or self.apart]
        index = "target" if self.forecasts else "score" if self.scores else "share"
        return pd.DataFrame(rows).set_index(index)

    def page(self, source: str = "") -> Page:
        """Return what to run, how sure that is, and the errors it rests on.

        `source` is the path of the scores or items.
        """
        lesser: list[str] = []
        if self.apart:
            sections = [self._pair_section(source)]
        elif self.expected is None:
            sections, lesser = self._backtest_sections(source), self._sure(self.forecasts[0])
        else:
            sections = [self._sample_section(self.expected, source)]
        is_backtest = bool(self.forecasts)
        notes = [f"{note[0].upper()}{note[1:]}." for note in self.notes]
        facts = {key.capitalize(): value for key, value in self.facts.items()}
        sections.append(Section("notes", "What to know", lines=notes, detail=is_backtest))
        sections.append(Section("facts", "What it rests on", facts=facts, detail=True))
        names = list(dict.fromkeys(self.curves.get("method", ())))
        look = theme.looks(names, figures.RANDOM if figures.RANDOM in names else None)
        return Page(
            "plan",
            f"Plan for {source}" if source else "Plan of an evaluation",
            self.answer,
            lesser,
            sections=sections,
            methods=list(look.values()),
            hint=f"With --details: the reasons, costs and {counted(len(notes), 'remark')}."
            * is_backtest,
        )

    def _start(self, source: str, items: int, method: str = "") -> list[str]:
        """Return the command that starts a run, if this runs a part of the items."""
        table = source or ("SCORES" if self.n_models else "ITEMS")
        size = f"--cost {quote(self.cost)}" if self.cost else f"--budget {items}"
        average = " --average macro" if self.facts["average"] == "macro" else ""
        start = f"fewbench start {quote(table)} {method}{size}{average} -o DIR"
        return [start] if items < self.n_items else []

    def _pair_section(self, source: str) -> Section:
        """Return what two models need, by the share of the items on which they differ."""
        has_costs = self.unit != ITEMS or self.price is not None
        head = [("Items that differ", True), ("Items for both", True)]
        head += [("Cost", True)] * has_costs
        rows = [
            [f"{at.share:.0%}", f"{at.items:,}", f"{at.cost:,.6g}"][: len(head)]
            for at in sorted(self.apart, key=lambda at: at.share)
        ]
        first = self.apart[0]
        return Section(
            "run",
            "By the share of items that differ",
            tables=[Table("Pairs", head, rows)],
            commands=self._start(source, first.items),
        )

    def _sample_section(self, expected: Expected, source: str) -> Section:
        """Return what to expect at every score."""
        shown, has_costs = Unit(self.scale), self.unit != ITEMS or self.price is not None
        priced = self.unit if self.price is None else "at the price"
        head = [("Score", True), ("Items", True), (f"Interval {self.level:.0%}", True)]
        head += [("Error", True)] + [("Random sampling", True)] * bool(self.n_models)
        rows = [
            [
                shown.score(at.score, exact=True),
                f"{at.items:,}",
                f"±{shown.points(at.half_width)}",
                shown.points(at.error),
                f"±{shown.points(at.random_half_width)}",
            ][: len(head)]
            for at in self.scores
        ]
        return Section(
            "run",
            "By the model’s score",
            tables=[Table("Scores", head, rows)],
            facts={"Cost of a run": f"{expected.cost:,.6g} {priced}"} if has_costs else {},
            commands=self._start(source, expected.items),
        )

    def _backtest_sections(self, source: str) -> list[Section]:
        """Return what to run, its costs, and its errors by items and by sources."""
        values, first = self.to_dict(), self.forecasts[0]
        curves, learning = values["curves"], values["learning"]
        targets = dict.fromkeys(row["target"] for row in curves)
        sections = [
            Section(
                "run",
                "What to run",
                tables=[Table("What to run", *self._table())],
                commands=self._start(source, first.items, f"--method {quote(first.method)} "),
            ),
            Section(
                "why",
                "Why these methods",
                [
                    "By the relation of the target to the source models. Brackets are 90% "
                    "intervals over repeats and models of the backtest."
                ],
                lines=[
                    f"{title_of(forecast.target)}: {forecast.why}." for forecast in self.forecasts
                ],
                detail=True,
            ),
            _cost_section(self),
        ]
        if targets:
            sections.append(
                Section(
                    "items",
                    "Error and items",
                    [
                        "Solid lines, with 90% intervals: the splits that judge the chosen "
                        "method. Dashed lines: the splits by which it was chosen. Dotted: random "
                        "sampling, exact."
                    ],
                    charts=[
                        (
                            title_of(target),
                            partial(figures.error_by_items, curves, target, Unit(self.scale)),
                        )
                        for target in targets
                    ],
                    detail=True,
                )
            )
        if learning is not None:
            rows = [
                [f"{point['sources']:,}", *self._words(point["error"], point["low"], point["high"])]
                for point in learning["sources"]
            ]
            head = [("Source models", False), ("Error", True), ("90% interval", True)]
            title = "Number of source models"
            between = ", run with these; the expected error above is interpolated"
            between = between if self.goal == "error" else ""
            sections.append(
                Section(
                    "sources",
                    title,
                    [f"Error of {learning['method']} with {learning['items']} items{between}."],
                    learning["says"],
                    charts=[("", partial(figures.error_by_sources, learning, Unit(self.scale)))],
                    tables=[Table(title, head, rows)],
                    detail=True,
                )
            )
        return sections

    def _words(self, value: float, low: float | None, high: float | None) -> tuple[str, str]:
        """Return an error and its interval in words."""
        unit = Unit(self.scale)
        if low is None or high is None or low == high:
            return unit.points(value), "–"
        return unit.points(value), f"{unit.points(low)} to {unit.points(high)}"

    def _sure(self, forecast: Forecast) -> list[str]:
        """Say how sure the answer is, and what random sampling would need."""
        unit, lines = Unit(self.scale), [f"Use random sampling: {forecast.reason}."]
        if not forecast.is_random:
            ends = (
                f"between {unit.points(forecast.error_low)} and {unit.points(forecast.error_high)}"
            )
            lines = [f"How sure: the error is {ends} (90% interval)"]
            low, high = forecast.items_low, forecast.items_high
            if low is not None and high is not None and low < high:
                lines[-1] += f"; {low:,} to {high:,} items may be needed"
            every = "all " if forecast.random_items >= self.n_items else ""
            needs = f"{every}{min(forecast.random_items, self.n_items):,} items"
            how = " if both models run the same items" if self.goal == "difference" else ""
            lines[-1] += "."
            lines.append(f"Random sampling needs {needs} for the same{how}.")
        if forecast.margin_of_all and self.questions_needed is None:
            lines.append(self._least(forecast))
        if self.goal == "budget":
            lines[-1] += (
                f" With {forecast.items:,} items its error is {unit.points(forecast.random_error)}."
            )
        return lines

    def _table(self) -> tuple[list[tuple[str, bool]], list[list[str]]]:
        squared = "vs random, squared" if self.goal == "difference" else "vs random"
        head = [("Target model", False), ("Method", False), ("Items", True)]
        head += [("Expected error [90%]", True), ("Half width", True)]
        head += [(f"{squared} [90%]", True), ("Random items", True)]
        rows = []
        for forecast in self.forecasts:
            unit = Unit(self.scale)
            error, ratio = unit.points(forecast.error), fixed(forecast.ratio)
            if forecast.error_low < forecast.error_high:
                error += f" [{unit.points(forecast.error_low)}, {unit.points(forecast.error_high)}]"
                ratio += f" [{fixed(forecast.ratio_low)}, {fixed(forecast.ratio_high)}]"
            width = (
                "–" if math.isnan(forecast.half_width) else f"± {unit.points(forecast.half_width)}"
            )
            row = [
                title_of(forecast.target),
                forecast.method,
                f"{forecast.items:,}",
                error,
                width,
                ratio,
            ]
            rows.append([*row, f"{forecast.random_items:,}"])
        return head, rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; undefined numbers are None."""
        learning = None
        if self.learning is not None:
            learning = {
                "method": self.learning.method,
                "items": self.learning.items,
                "says": self.learning.says,
                "sources": [
                    {"sources": n, "error": e.value * self.scale.span}
                    | {"low": e.low * self.scale.span, "high": e.high * self.scale.span}
                    for n, e in zip(self.learning.sources, self.learning.errors, strict=True)
                ],
            }
        names = ("answer", "goal", "wanted", "level", "power", "fixed_items", "forecasts")
        return plain(
            {name: getattr(self, name) for name in names}
            | {"curves": self.curves.to_dict("records"), "learning": learning}
            | {name: getattr(self, name) for name in ("expected", "apart", "scores")}
            | {name: getattr(self, name) for name in ("questions_needed", "price", "notes")}
            | {"facts": self.facts}
        )


def title_of(target: str) -> str:
    """Return a relation of targets to the source models as a title."""
    words = {str(name): title for name, (_, title) in TARGETS.items()}.get(target, target)
    return f"{words[0].upper()}{words[1:]}"


def _cost_section(plan: Plan) -> Section:
    """Return what models cost, and after how many new models the sources have paid.

    Costs are in their unit, or in that of the price if the plan has one.
    """
    forecast, unit = plan.forecasts[0], plan.unit
    cost_unit = unit.capitalize() if plan.price is None else "At the price"
    head = [("Cost", False), (cost_unit, True), ("Cost of a full run", True)]
    models = {
        f"all {plan.n_items:,} items": forecast.full_cost,
        f"{forecast.items:,} items with {forecast.method}": forecast.cost,
    }
    if not forecast.is_random:
        models[f"{forecast.random_items:,} random items for the same"] = forecast.random_cost
    rows = [
        [f"A new model, {items}", amount(cost, ""), f"{cost / forecast.full_cost:.1%}"]
        for items, cost in models.items()
    ]
    lines = []
    if not forecast.is_random:
        sources = f"The {plan.n_models:,} source models, if you run them"
        rows.append([sources, amount(plan.n_models * forecast.full_cost, ""), "–"])
        if forecast.breakeven is not None:
            text = f"Running the source models pays after {forecast.breakeven:,} new models "
            text += "if these would run all items otherwise"
            if forecast.breakeven_random is not None:
                text += f", and after {forecast.breakeven_random:,} if they would run random items"
            lines.append(f"{text}.")
        if unit != ITEMS:
            lines.append(
                f"The cost of {forecast.items:,} items with {forecast.method} is the mean over the "
                "held-out models of the backtest; a run can cost more or less."
            )
    if plan.price is not None:
        lines.append(f"The price is {plan.price:g} for a unit of the costs ({unit}).")
    return Section("cost", "Cost", tables=[Table("Cost", head, rows)], lines=lines, detail=True)
