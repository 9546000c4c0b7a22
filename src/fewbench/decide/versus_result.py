"""What `versus` returns: the difference of two models, its tasks and the items that decide it."""

from typing import Literal

from pydantic import ConfigDict, Field

from fewbench._json import Frozen
from fewbench._lazy import pandas as pd
from fewbench._names import p_value, probability
from fewbench.decide.differences import frame_of
from fewbench.decide.multiple import ADJUSTS, Adjust
from fewbench.decide.pairing import Pairing
from fewbench.decide.random_pairs import RandomPairs
from fewbench.decide.words import AS_MODELS, beyond, looks, more_items, needed, on_these, seen
from fewbench.evaluation.interval import Interval
from fewbench.scores import Average, Scale, Unit
from fewbench.scores.benchmark import average_notes
from fewbench.show.charts import deciding
from fewbench.show.page import Page, Section, Shown, Table
from fewbench.uncertainty.intervals import basis
from fewbench.uncertainty.reruns import RunNoise

SHOWN_NEXT = 5
EQUAL = 1e-9
"""Share of the scale up to which scores and differences are equal."""
BESIDE = "; widened for other questions and another run"
"""What the interval of a verdict on models rests on as well."""
Verdict = Literal["better", "worse", "equivalent", "not worse", "undecided"]


class TaskDifference(Frozen):
    """The difference on one task.

    Attributes
    ----------
    task : str
    difference, interval
        A minus B. The interval is of this task alone, or None if too little is known.
    p_value, p_adjusted : float or None
        Two-sided, by itself and adjusted for the number of tasks, or None without an interval, or
        if both ran all of exactly these items.
    verdict : str
        better or worse if the adjusted p value is at most 1 - level, else undecided.
    """

    model_config = ConfigDict(ser_json_inf_nan="constants")

    task: str
    difference: float
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None
    verdict: Literal["better", "worse", "undecided"]


class ItemDifference(Frozen):
    """An item that A and B scored differently on, on the scale of the scores."""

    item: str
    task: str
    a: float
    b: float


class Versus(Shown, Frozen):
    """The difference of two models' full scores, on the user's scale.

    Attributes
    ----------
    a, b : str
        The models; two targets of one name with their folders' names.
    scale : Scale
        The scale of the scores.
    average : str
        What a full score is: the mean over items (micro) or over task scores (macro).
    score_a, score_b : float
        Their full scores on these items, estimated if they did not run all.
    difference, interval, level
        A minus B, and its interval at the stated level. If one ran all items and the other one a
        random sample, the difference is by regression, and not that of the two scores.
    fixed_items : bool
        Whether interval, probability and verdicts are about exactly these items, of these runs. If
        not, they are about the models, on questions like these and if they run again.
    chance_a_better : float
        Probability that A is better.
    verdict : str
        better or worse (A than B) if the interval excludes 0. With a margin, also equivalent if
        the interval is within ±margin, and not worse if it is above -margin. Else undecided.
    margin : float or None
    not_worse, equivalent : bool or None
        Whether A is worse by less than the margin, and whether they differ by less, or None without
        a margin.
    kind, sources
        What the interval rests on, of the less sure side (see `Estimate.interval_kind`); answers if
        both ran all items, or known for exactly these items; and the number of independent source
        models behind it if there are any.
    checked_at : tuple of int
        Numbers of answers after which you may check the verdict; the level applies to all of these
        checks together. Empty for a single check.
    items_a, items_b, items_common, items_total : int
        Items answered by A, by B, by both, and all.
    random : RandomPairs or None
        What random sampling of as many items would give.
    items_needed : int or None
        About how many items, the same ones for both, would decide it if the difference stays as it
        is.
    items_if_known : int or None
        About how many items of A would decide it if B ran all items once. None if one of the two
        did, or if that does not decide sooner.
    is_decidable : bool
        Whether all items, run by both, would decide it if the difference stays as it is.
    questions_needed : int or None
        If not: about how many questions like these would, or None if more than 100 times as many.
    next_items : tuple of str
        Items that both run next to decide it, the most informative first: as many as `items_needed`
        says, at most 200. Targets only: a source model has run all.
    tasks : tuple of TaskDifference
        Empty with one task.
    groups : tuple of TaskDifference
        Benchmarks: the outermost groups of tasks, and tasks of no group. Empty without groups.
    adjust : str
        holm (a false verdict on any task in at most 1 - level of comparisons) or bh (at most 1 -
        level of the verdicts are false, on average).
    deciding : tuple of ItemDifference
        Items that both answered, with different scores.
    own_ids : dict of str to str
        The ids that these items and the next ones have as samples of Inspect.
    pairing : Pairing or None
        How to run both on the same items if they share few.
    is_limited : bool
        Whether a limit on cost leaves no further items.
    repeats : RunNoise or None
        How far the difference on the common items varies from run to run, or None unless both
        answered items several times.
    warnings : tuple of str
    """

    model_config = ConfigDict(ser_json_inf_nan="constants")

    a: str
    b: str
    scale: Scale
    average: Average
    score_a: float
    score_b: float
    difference: float
    interval: Interval
    level: float
    fixed_items: bool = False
    chance_a_better: float
    verdict: Verdict
    margin: float | None = None
    not_worse: bool | None = None
    equivalent: bool | None = None
    kind: str
    sources: int | None
    checked_at: tuple[int, ...] = ()
    items_a: int
    items_b: int
    items_common: int
    items_total: int
    random: RandomPairs | None
    items_needed: int | None = None
    items_if_known: int | None = None
    is_decidable: bool = True
    questions_needed: int | None = None
    next_items: tuple[str, ...] = ()
    tasks: tuple[TaskDifference, ...] = ()
    groups: tuple[TaskDifference, ...] = ()
    adjust: Adjust = "holm"
    deciding: tuple[ItemDifference, ...] = ()
    own_ids: dict[str, str] = Field(default_factory=dict)
    pairing: Pairing | None = None
    is_limited: bool = False
    repeats: RunNoise | None = None
    warnings: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The verdict in a sentence."""
        margin = Unit(self.scale).points(self.margin or 0.0, exact=True)
        return {
            "better": f"{self.a} is better than {self.b}",
            "worse": f"{self.a} is worse than {self.b}",
            "equivalent": f"{self.a} and {self.b} differ by less than {margin}",
            "not worse": f"{self.a} is not worse than {self.b} by {margin} or more",
            "undecided": "undecided",
        }[self.verdict]

    @property
    def _is_whole(self) -> bool:
        """Whether both ran all items, or as good as all."""
        return self.kind in ("known", "answers")

    @property
    def finding(self) -> str:
        """What was seen on these items, and then what holds for the models."""
        unit, difference = Unit(self.scale), self.difference
        text = seen(self.a, self.b, difference, unit, is_estimated=not self._is_whole)
        text = f"{on_these(self.items_total, fixed_items=self.fixed_items)}, {text}"
        ends = f"{self.level:.0%} interval {unit.differences(self.interval)}"
        if self.kind == "known":  # nothing is left to infer
            return f"{text}: all items ran, and only these answers are compared."
        if self.fixed_items:
            return f"{text} ({ends}): {self.answer}."
        found = f"{unit.difference(difference)} ({ends}): {self.answer}."
        return f"{text}. In general, {AS_MODELS}: {found}"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for the full score, one per group and one per task.

        Difference, interval, verdict, p values.
        """
        columns = ["difference", "low", "high", "verdict"]
        columns += ["p_value", "p_adjusted"] * bool(self.tasks)
        names = {part.task for part in self.tasks}
        parts = [*(group for group in self.groups if group.task not in names), *self.tasks]
        frame = frame_of([self, *parts], columns, self.warnings)
        return frame.set_axis(["all", *(part.task for part in parts)]).rename_axis("task")

    def items(self) -> "pd.DataFrame":
        """Return the items that both answered with different scores, largest difference first."""
        rows = [item.model_dump() for item in self.deciding]
        return pd.DataFrame(rows, columns=list(ItemDifference.model_fields)).set_index("item")

    def page(self) -> Page:
        """Return the finding, the differences, the items that differ and what they rest on."""
        unit = Unit(self.scale)

        def table(title: str, parts: tuple[TaskDifference, ...], folded: str = "") -> Table:
            head = [(title.removesuffix("s"), False), ("Difference", True), ("Interval", True)]
            head += [("Verdict", False), ("p", True), ("adjusted p", True)]
            rows = [
                [
                    *(part.task, unit.difference(part.difference), unit.differences(part.interval)),
                    *(part.verdict, p_value(part.p_value), p_value(part.p_adjusted)),
                ]
                for part in parts
            ]
            return Table(title, head, rows, "a task", folded)

        tables = [table("Benchmarks", self.groups)] if self.groups else []
        if self.tasks:  # a text leaves out tasks that are parts of benchmarks
            tables.append(table("Tasks", self.tasks, "All tasks" if self.groups else ""))
        notes = [
            f"{self.a} minus {self.b}. For the full score, an interval that excludes 0 decides."
        ]
        if self.tasks:
            what = "benchmarks" if self.groups else "tasks"
            notes.append(
                f"The verdicts on {what} use p values adjusted for the number of {what} "
                f"({ADJUSTS[self.adjust]})."
            )
        sections = [
            Section(
                "difference",
                "Difference",
                notes,
                charts=[("", lambda: deciding.differences(self))],
                tables=tables,
            ),
            Section("basis", "What it rests on", facts=self._facts(unit)),
        ]
        if self.deciding:
            head = [("Item", False), (self.a, True), (self.b, True), ("Task", False)]
            rows = [
                [self._named(item.item), f"{item.a:.4g}", f"{item.b:.4g}", item.task]
                for item in self.deciding
            ]
            of_items = Table("Items that differ", head, rows, "an item or task")
            note = "Items that both answered with different scores."
            sections.append(
                Section("items", "Items that differ", [note], tables=[of_items], detail=True)
            )
        if self.next_items:
            listed = [", ".join(map(self._named, self.next_items))]
            sections.append(Section("next", self._next_for, lines=listed, detail=True))
        more = []
        if self.verdict == "undecided" and self.items_needed is not None:
            n = self.items_needed - min(self.items_a, self.items_b)
            more = [more_items(n, limited=self.is_limited, sequential=bool(self.checked_at))]
        if self._is_chosen and more and not self.is_limited:
            more = [
                f"run {self.b} on all items once, or both on a random sample (-m random): chosen "
                "items do not tell close models apart sooner"
            ]
        chance = probability(self.chance_a_better)
        lesser = [f"{self.a} is better with probability {chance}."] * (self.kind != "known")
        if not self.is_decidable:
            lesser.append(beyond(self.items_total, self.questions_needed, all_ran=self._is_whole))
        if (noise := self.repeats) is not None:
            half = unit.points(noise.half_width)
            lesser.append(noise.sentence("their difference", half, self.level))
        return Page(
            "versus",
            f"{self.a} against {self.b}",
            self.finding,
            [*lesser, *average_notes(self.average)],
            self.warnings,
            sections,
            [self.pairing.command] if self.pairing else more,
            first=self.pairing.note if self.pairing else "",
        )

    @property
    def _is_chosen(self) -> bool:
        """Whether both are estimated, and by items that a method chose."""
        is_partial = max(self.items_a, self.items_b) < self.items_total
        return is_partial and self.kind in ("held-out", "random") and not self.fixed_items

    def _facts(self, unit: Unit) -> dict[str, str]:
        """Return what the difference rests on."""
        facts = {
            f"Score of {self.a}": unit.score(self.score_a),
            f"Score of {self.b}": unit.score(self.score_b),
            "Items": f"{self.a} {self.items_a:,}, {self.b} {self.items_b:,}, both "
            f"{self.items_common:,}, of {self.items_total:,}",
            f"{self.level:.0%} interval": basis(self.kind, self.sources)
            + BESIDE * (not self.fixed_items and self.kind != "answers"),
        }
        if abs(self.score_a - self.score_b - self.difference) > EQUAL * self.scale.span:
            whole = self.b if self.items_b == self.items_total else self.a
            facts["Difference"] = (
                f"{unit.difference(self.difference)}, which is not that of the two scores: it also "
                f"counts how {whole} does on the items that only {whole} ran"
            )
        if self.checked_at:
            run = (n for n in (self.items_a, self.items_b) if n < self.items_total)
            facts["Tests (valid together) after"] = looks(self.checked_at, max(run, default=0))
        if self.margin is not None:
            within = {True: "yes", False: "not sure", None: "not sure"}
            margin = unit.points(self.margin, exact=True)
            facts[f"{self.a} is not worse by {margin} or more"] = within[self.not_worse]
            facts[f"The two differ by less than {margin}"] = within[self.equivalent]
        if (plain := self.random) is not None:
            facts[f"Random sampling of {plain.items:,} items, the same for both, would give"] = (
                f"±{unit.points(plain.half_width)}"
            )
        if self.items_needed is not None:
            both = self.items_a < self.items_total and self.items_b < self.items_total
            text = needed(self.items_needed, self.items_total, is_paired=both)
            if self.items_if_known is not None:
                text += f"; or {self.items_if_known:,} of {self.a} after {self.b} ran all items"
            facts["If the difference stays"] = text
        n = len(self.deciding)
        if self.items_common:
            for_a = sum(item.a > item.b for item in self.deciding)
            who = f": {self.a} scores higher on {for_a:,}, {self.b} on {n - for_a:,}" if n else ""
            facts["Items that differ"] = f"{n:,} of {self.items_common:,}{who}"
        if self.next_items:
            shown = [*map(self._named, self.next_items[:SHOWN_NEXT])]
            more = len(self.next_items) - len(shown)
            text = f" and {more:,} more" if more else ""
            facts[self._next_for] = f"{', '.join(shown)}{text}"
        return facts

    def _named(self, item: str) -> str:
        return self.own_ids.get(item, item)

    @property
    def _next_for(self) -> str:
        counts = {self.a: self.items_a, self.b: self.items_b}
        open_ = [name for name, n_items in counts.items() if n_items < self.items_total]
        return f"Next items for {'both' if len(open_) == 2 else open_[0]}"
