"""The pages of decisions: two models, several targets, a gate, a training run."""

from __future__ import annotations

from fewbench._names import score_digits
from fewbench.charts import deciding as figures
from fewbench.charts import estimating
from fewbench.decide import Gate, Ranking, Track, Versus
from fewbench.evaluation.estimate import Interval
from fewbench.evaluation.intervals import basis
from fewbench.report.frame import Charts
from fewbench.report.sections import Section, Table, placed, render_sections
from fewbench.report.words import fixed, p_value, signed
from fewbench.study.multiple import ADJUSTS

Head = list[tuple[str, bool]]
MOST_NEXT = 10


def render_versus(found: Versus) -> str:
    """The page of a comparison of two models."""
    charts = Charts()
    digits = score_digits(found.score_a, found.score_b)
    head: Head = [("Task", False), ("Difference", True), ("Interval", True), ("p", True),
                  ("adjusted p", True), ("Verdict", False)]  # fmt: skip
    tasks = [
        [one.task, signed(one.difference, digits), _ends(one.interval, digits),
         p_value(one.p_value), p_value(one.p_adjusted), one.verdict] for one in found.tasks
    ]  # fmt: skip
    items = [[one.item, one.task, f"{one.a:.4g}", f"{one.b:.4g}"] for one in found.deciding]
    sections = [
        Section(
            "difference", "Difference",
            [f"{found.a} minus {found.b}. An interval that excludes 0 decides."]
            + (["The verdicts on tasks use p values that are adjusted for their number "
                f"({ADJUSTS[found.adjust]})."] if tasks else []),
            charts=placed(charts, ("", figures.differences(found))),
            tables=[Table("tasks", "Tasks", head, tasks, "a task")] if tasks else [],
        )
    ]  # fmt: skip
    if items:
        head = [("Item", False), ("Task", False), (found.a, True), (found.b, True)]
        sections.append(
            Section(
                "items", "Items that differ", ["Items that both answered with different scores."],
                tables=[Table("deciding", "Items that differ", head, items, "an item or task")],
            )
        )  # fmt: skip
    sections.append(Section("basis", "What it rests on", facts=_basis(found, digits)))
    answer = found.answer
    if found.verdict == "undecided":
        answer = f"It is undecided whether {found.a} or {found.b} is better"
    return render_sections(
        charts,
        over="versus",
        title=f"{found.a} against {found.b}",
        answer=answer,
        lesser=[
            f"The difference is {signed(found.difference, digits)} ({found.level:.0%} interval "
            f"{_ends(found.interval, digits)}); {found.a} is better with probability "
            f"{found.chance_a_better:.2f}."
        ],
        warnings=found.warnings,
        sections=sections,
    )


def _basis(found: Versus, digits: int) -> dict[str, str]:
    facts = {
        f"Score of {found.a}": fixed(found.score_a, digits),
        f"Score of {found.b}": fixed(found.score_b, digits),
        "Items": f"{found.a} {found.items_a:,}, {found.b} {found.items_b:,}, both "
        f"{found.items_common:,}, of {found.items_total:,}",
        f"{found.level:.0%} interval": basis(found.kind, found.sources),
    }
    if found.looks:
        facts["Holds at all looks together"] = f"{', '.join(map(str, found.looks))} answers"
    if found.margin is not None:
        facts["Margin"] = f"{found.margin:g}"
    if (plain := found.random) is not None:
        facts[f"Random sampling of the same {plain.items:,} items would give"] = (
            f"±{fixed(plain.half_width, digits)}"
        )
    if found.items_needed is not None:
        facts["Items that decide, if the difference stays"] = (
            f"about {found.items_needed:,} of each"
            if found.items_needed < found.items_total
            else f"only all {found.items_total:,}"
        )
    if found.next_items:
        facts["Next items for both"] = ", ".join(found.next_items[:MOST_NEXT])
    return facts


def _ends(interval: Interval | None, digits: int) -> str:
    if interval is None:
        return "–"
    return f"{fixed(interval.low, digits)} to {fixed(interval.high, digits)}"


def render_ranking(found: Ranking) -> str:
    """The page of a ranking."""
    charts = Charts()
    digits = score_digits(*(one.score for one in found.targets))
    head: Head = [("Target", False), ("Rank", True), ("Range", True), ("Score", True),
                  ("P(best)", True), (f"P(top {found.top})", True), ("Items run", True),
                  ("May be level with", False)]  # fmt: skip
    rows = [
        [one.target, str(one.rank), f"{one.rank_low} to {one.rank_high}",
         fixed(one.score, digits), f"{one.chance_best:.2f}", f"{one.chance_top:.2f}",
         f"{one.items_run:,}", ", ".join(one.level_with)] for one in found.targets
    ]  # fmt: skip
    if found.top == 1:  # both columns say the same
        head, rows = head[:5] + head[6:], [row[:5] + row[6:] for row in rows]
    best = ", ".join(one.target for one in found.targets[: found.top])
    which = "target is" if found.top == 1 else f"{found.top} targets are"
    lesser = [
        f"Which {which} the best of {len(rows)} is "
        f"{'settled' if found.is_settled else 'not settled'} at {found.level:.0%}."
    ]
    if found.next_targets:
        lesser.append(f"Run more items of {' and '.join(found.next_targets)} next.")
    answer = f"{best} ranks first" if found.top == 1 else f"First are {best}"
    if not found.is_settled:
        answer += " so far"
    among = "the best" if found.top == 1 else f"among the best {found.top}"
    section = Section(
        "ranks", "Ranks",
        [f"The ranges of all ranks hold together at {found.level:.0%}. Targets that may be "
         f"{among} are colored."],
        charts=placed(charts, ("", figures.ranks(found))),
        tables=[Table("targets", "Ranks", head, rows, "a target")],
    )  # fmt: skip
    return render_sections(
        charts, over="rank", title=f"{len(rows)} targets", answer=answer, lesser=lesser,
        warnings=found.warnings, sections=[section],
    )  # fmt: skip


def render_gate(found: Gate) -> str:
    """The page of a gate."""
    charts = Charts()
    digits = score_digits(*(one.value for one in found.checks))
    head: Head = [("Condition", False), ("Value", True), ("Interval", True), ("Bound", True),
                  ("Verdict", False)]  # fmt: skip
    rows = [
        [one.rule, fixed(one.value, digits), _ends(one.interval, digits),
         fixed(one.bound, digits), one.verdict] for one in found.checks
    ]  # fmt: skip
    answer = {
        "pass": f"{found.target} passes",
        "fail": f"{found.target} fails",
        "undecided": f"It is undecided whether {found.target} passes",
    }[found.verdict]
    lesser = [
        f"{found.items_run:,} of {found.items_total:,} items run. At most "
        f"{(1 - found.level) / 2:.0%} of the models that should not pass do"
        + (f", over all looks together ({', '.join(map(str, found.looks))} answers)."
           if found.looks else ".")
    ]  # fmt: skip
    section = Section(
        "checks", "Checks",
        ["Each value minus its bound. A check passes if the whole interval is above 0, and fails "
         "if it is below 0."],
        charts=placed(charts, ("", figures.checks(found))),
        tables=[Table("conditions", "Checks", head, rows)],
    )  # fmt: skip
    return render_sections(
        charts, over="gate", title=found.target, answer=answer, lesser=lesser,
        warnings=found.warnings, sections=[section],
    )  # fmt: skip


def render_track(found: Track) -> str:
    """The page of a training run: its score by step, and what changed."""
    charts = Charts()
    best, last = found[found.best], found.points[-1]
    digits = score_digits(*(one.score for one in found.points))
    head: Head = [("Checkpoint", False), ("Step", True), ("Score", True), ("Interval", True),
                  ("Items run", True), ("P(best)", True)]  # fmt: skip
    rows = [
        [one.checkpoint, f"{one.step:,.10g}", fixed(one.score, digits),
         "known" if one.is_known else _ends(one.interval, digits),
         f"{one.items_run:,}", f"{one.chance_best:.2f}"]
        for one in found.points
    ]  # fmt: skip
    notes = [
        f"The line is the estimate. The band is its {found.level:.0%} interval, which holds for "
        "each checkpoint by itself."
    ]
    if any(one.is_known for one in found.points):
        notes.append("Diamonds are checkpoints that ran all items: their scores are known.")
    sections = [
        Section(
            "course", "Score by step", notes,
            charts=placed(charts, ("", estimating.tracked(found.curve()))),
            tables=[Table("steps", "Checkpoints", head, rows, "a checkpoint")],
        )
    ]  # fmt: skip
    if found.changes:
        sections.append(_changes(found, digits))
    facts = {
        "Source models": f"{found.sources:,}, with the checkpoints that ran all items",
        "Items of the benchmark": f"{found.items_total:,}",
    }
    if found.items_needed is not None:
        facts["Items that the next checkpoint needs"] = f"about {found.items_needed:,}"
    sections.append(Section("basis", "What it rests on", facts=facts))
    lesser = []
    if last is not best:
        ends = f"{found.level:.0%} interval {_ends(last.interval, digits)}"
        lesser.append(
            f"The last one, {last.checkpoint}, scores {fixed(last.score, digits)} "
            f"({'known' if last.is_known else ends})."
        )
    real = len(found.real_changes)
    lesser.append(
        f"{real} of {len(found.changes)} tested changes {'is' if real == 1 else 'are'} real "
        f"(at {found.level:.0%}, all together)."
        if found.changes
        else "One checkpoint has no change to test."
    )
    return render_sections(
        charts, over="track", title=found.run or "A training run",
        answer=f"{best.checkpoint} is the best with probability {best.chance_best:.2f}: "
        f"it scores {fixed(best.score, digits)}",
        lesser=lesser, warnings=found.warnings, sections=sections,
    )  # fmt: skip


def _changes(found: Track, digits: int) -> Section:
    head: Head = [("From", False), ("To", False), ("Difference", True), ("Interval", True),
                  ("adjusted p", True), ("Verdict", False)]  # fmt: skip
    rows = [
        [one.before, one.after, signed(one.difference, digits), _ends(one.interval, digits),
         p_value(one.p_adjusted), one.verdict] for one in found.changes
    ]  # fmt: skip
    return Section(
        "changes", "Changes",
        ["Each checkpoint against the last one before it that ran all items, or else against the "
         "one before; the last one also against the first and against the best before it. p values "
         "are adjusted by Holm for the number of changes."],
        tables=[Table("changes-table", "Changes", head, rows, "a checkpoint or verdict")],
    )  # fmt: skip
