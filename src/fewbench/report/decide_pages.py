"""The pages of decisions: two models, several targets, a gate, a training run."""

from __future__ import annotations

from fewbench.charts import deciding as figures
from fewbench.charts import estimating
from fewbench.decide import Gate, Ranking, Track, Versus
from fewbench.report.frame import Charts
from fewbench.report.sections import Section, Table, placed, render_sections

Head = list[tuple[str, bool]]


def render_versus(found: Versus) -> str:
    """The page of a comparison of two models."""
    charts = Charts()
    ends = f"{found.interval.low:.4g} to {found.interval.high:.4g}"
    head: Head = [("Task", False), ("Difference", True), ("Interval", True), ("p", True),
                  ("adjusted p", True), ("Verdict", False)]  # fmt: skip
    tasks = [
        [one.task, f"{one.difference:.4g}", f"{one.interval.low:.4g} to {one.interval.high:.4g}",
         f"{one.p_value:.3g}", f"{one.p_adjusted:.3g}", one.verdict] for one in found.tasks
    ]  # fmt: skip
    items = [[one.item, one.task, f"{one.a:.4g}", f"{one.b:.4g}"] for one in found.deciding]
    sections = [
        Section(
            "difference", "Difference",
            [f"{found.a} minus {found.b}. An interval that excludes 0 decides."]
            + ([f"Tasks are judged by p values adjusted for their number ({found.adjust})."]
               if tasks else []),
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
    facts = {
        f"Score of {found.a}": f"{found.score_a:.4g}",
        f"Score of {found.b}": f"{found.score_b:.4g}",
        "Interval": f"{found.level:.0%}, {found.kind}",
        "Items": f"{found.items_a:,} and {found.items_b:,}, {found.items_common:,} by both, of "
        f"{found.items_total:,}",
    }
    if found.units is not None:
        facts["Independent source models or pairs"] = str(found.units)
    if found.margin is not None:
        facts["Margin"] = f"{found.margin:g}"
    if found.items_needed is not None:
        facts["Items needed to decide"] = f"about {found.items_needed:,} of each"
    sections.append(Section("basis", "What it rests on", facts=facts))
    return render_sections(
        charts,
        over="versus",
        title=f"{found.a} against {found.b}",
        answer=found.answer,
        lesser=[
            f"The difference is {found.difference:.4g} ({found.level:.0%} interval {ends}); "
            f"{found.a} is better with probability {found.chance_a_better:.2f}."
        ],
        warnings=found.warnings,
        sections=sections,
    )


def render_ranking(found: Ranking) -> str:
    """The page of a ranking."""
    charts = Charts()
    head: Head = [("Target", False), ("Rank", True), ("Range", True), ("Score", True),
                  ("P(best)", True), (f"P(top {found.top})", True), ("Items run", True),
                  ("May be level with", False)]  # fmt: skip
    rows = [
        [one.target, str(one.rank), f"{one.rank_low} to {one.rank_high}", f"{one.score:.4g}",
         f"{one.chance_best:.2f}", f"{one.chance_top:.2f}", f"{one.items_run:,}",
         ", ".join(one.level_with)] for one in found.targets
    ]  # fmt: skip
    best = ", ".join(one.target for one in found.targets[: found.top])
    settled = "It is settled" if found.is_settled else "It is not settled"
    lesser = [f"{settled} at {found.level:.0%} which {found.top} of {len(rows)} targets are best."]
    if found.next_targets:
        lesser.append(f"Run more items of {' and '.join(found.next_targets)} next.")
    section = Section(
        "ranks", "Ranks",
        [f"The ranges of all ranks hold together at {found.level:.0%}. Targets that may be among "
         f"the best {found.top} are colored."],
        charts=placed(charts, ("", figures.ranks(found))),
        tables=[Table("targets", "Ranks", head, rows, "a target")],
    )  # fmt: skip
    return render_sections(
        charts, over="rank", title=f"{len(rows)} targets", answer=f"{best} ranks first"
        if found.top == 1 else f"First are {best}", lesser=lesser, warnings=found.warnings,
        sections=[section],
    )  # fmt: skip


def render_gate(found: Gate) -> str:
    """The page of a gate."""
    charts = Charts()
    head: Head = [("Condition", False), ("Value", True), ("Interval", True), ("Bound", True),
                  ("Verdict", False)]  # fmt: skip
    rows = [
        [one.rule, f"{one.value:.4g}", f"{one.interval.low:.4g} to {one.interval.high:.4g}",
         f"{one.bound:.4g}", one.verdict] for one in found.checks
    ]  # fmt: skip
    verdict = {"pass": "passes", "fail": "fails", "undecided": "is undecided"}[found.verdict]
    section = Section(
        "checks", "Checks", ["Each value minus its bound. All of the interval above 0 passes."],
        charts=placed(charts, ("", figures.checks(found))),
        tables=[Table("conditions", "Checks", head, rows)],
    )  # fmt: skip
    return render_sections(
        charts, over="gate", title=found.target, answer=f"{found.target} {verdict}",
        lesser=[f"{found.items_run:,} of {found.items_total:,} items run; wrong verdicts are at "
                f"most {1 - found.level:.0%}."],
        warnings=found.warnings, sections=[section],
    )  # fmt: skip


def render_track(found: Track) -> str:
    """The page of a training run: its score by step, and what changed."""
    charts = Charts()
    best, last = found[found.best], found.points[-1]
    head: Head = [("Checkpoint", False), ("Step", True), ("Score", True), ("Interval", True),
                  ("Items run", True), ("P(best)", True)]  # fmt: skip
    rows = [
        [one.checkpoint, f"{one.step:,.10g}", f"{one.score:.4g}",
         "known" if one.is_known else f"{one.interval.low:.4g} to {one.interval.high:.4g}",
         f"{one.items_run:,}", f"{one.chance_best:.2f}"]
        for one in found.points
    ]  # fmt: skip
    notes = [
        f"The line is the estimate. The band is its {found.level:.0%} interval, which holds for "
        "each checkpoint by itself."
    ]
    if any(one.is_known for one in found.points):
        notes.append("Diamonds are checkpoints that ran all items: their scores are known.")
    if found.is_smoothed:
        notes.append("Neighbors in time move the estimates.")
    sections = [
        Section(
            "course", "Score by step", notes,
            charts=placed(charts, ("", estimating.tracked(found.curve()))),
            tables=[Table("steps", "Checkpoints", head, rows, "a checkpoint")],
        )
    ]  # fmt: skip
    if found.changes:
        sections.append(_changes(found))
    facts = {
        "Source models": f"{found.sources:,}, with the checkpoints that ran all items",
        "Items of the benchmark": f"{found.items_total:,}",
    }
    if found.items_needed is not None:
        facts["Items that the next checkpoint needs"] = f"about {found.items_needed:,}"
    sections.append(Section("basis", "What it rests on", facts=facts))
    lesser = []
    if last is not best:
        ends = f"{found.level:.0%} interval {last.interval.low:.4g} to {last.interval.high:.4g}"
        lesser.append(
            f"The last one, {last.checkpoint}, scores {last.score:.4g} "
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
        f"it scores {best.score:.4g}",
        lesser=lesser, warnings=found.warnings, sections=sections,
    )  # fmt: skip


def _changes(found: Track) -> Section:
    head: Head = [("From", False), ("To", False), ("Difference", True), ("Interval", True),
                  ("adjusted p", True), ("Verdict", False)]  # fmt: skip
    rows = [
        [one.before, one.after, f"{one.difference:+.4g}",
         f"{one.interval.low:.4g} to {one.interval.high:.4g}", f"{one.p_adjusted:.3g}",
         one.verdict] for one in found.changes
    ]  # fmt: skip
    return Section(
        "changes", "Changes",
        ["Each checkpoint against the one before, and the last one against the first and against "
         "the best before it. p values are adjusted by Holm for the number of changes."],
        tables=[Table("changes-table", "Changes", head, rows, "a checkpoint or verdict")],
    )  # fmt: skip
