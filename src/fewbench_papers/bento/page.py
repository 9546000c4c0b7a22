"""What an analysis of chosen tasks shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from fewbench.scores import Scale, Unit
from fewbench.show.page import Page, Section, Table, page_of
from fewbench.support import counted, fixed, p_value
from fewbench_papers.bento.analysis import TaskAnalysis
from fewbench_papers.bento.charts import task_sets
from fewbench_papers.bento.matrix import SOURCE_SCORES

UNIT = Unit(Scale())  # task scores are in [0, 1]
MEANINGS = {
    "gain": ("Gain", "increase in the coverage of all tasks"),
    "stands_for": ("Nearest tasks", "number of tasks that are nearest to this chosen task"),
    "cluster": ("Cluster", "group of tasks that transfer alike"),
    "stability": ("Chosen again", "share of bootstrap selections with the task"),
}
NRMSE = "Errors are root mean square errors over models, in % of the models' root mean square "
NRMSE += "full score (NRMSE)."
HELD_OUT = "Held out: each model is estimated from tasks chosen without it, in {} folds; models of "
HELD_OUT += "one family are in the same fold."


@page_of.register
def _(analysis: TaskAnalysis) -> Page:
    return tasks_page(analysis.to_dict())


def tasks_page(found: Mapping[str, Any]) -> Page:
    """Return the page of the values of a `TaskAnalysis`."""
    facts, names = found["facts"], [task["task"] for task in found["chosen"]]
    judged = found["judgement"]
    size = f"{facts['k']} of {counted(facts['tasks'], 'task')}"
    if facts["questions"] is not None:
        share = _percent(facts["chosen questions"] / facts["questions"])
        size += f", {facts['chosen questions']:,} of {counted(facts['questions'], 'question')} "
        size += f"({share})"
    sections = [
        _chosen(found["chosen"]),
        *([_plan(found["plan"], facts["k"])] if found["plan"] else []),
        *([_judgement(found)] if judged else []),
        *([_stability(found, names)] if found["stability"] or found["noise"] else []),
        *([_clusters(found["clusters"])] if found["clusters"] else []),
        Section("run", "What was run", facts={k: _fact(v) for k, v in facts.items()}, detail=True),
    ]
    return Page(
        "tasks",
        f"Tasks chosen from {facts['file']}" if facts.get("file") else "A selection of tasks",
        _answer(judged, facts["k"]),
        [
            *([NRMSE] if judged else []),
            f"{size}, chosen by {facts['method']}.",
            *_difficulty(found["difficulty"], facts),
        ],
        found["warnings"],
        sections,
        () if judged else ["fewbench tasks judge SELECTION RESULTS"],
    )


def _answer(judged: Mapping[str, Any] | None, k: int) -> str:
    """Return the error of the selection beside that of random ones."""
    if judged is None:
        return f"No results to judge {counted(k, 'chosen task')}"
    chance = judged["random_tasks"]
    sentence = "This task estimates" if k == 1 else f"These {k:,} tasks estimate"
    sentence += f" full scores with an error of {_percent(judged['nrmse'])}; "
    sentence += f"{counted(k, 'random task')}: {_percent(chance['mean'])}"
    if part := judged["random_questions"]:
        sentence += f", {counted(part['questions'], 'random question')}: {_percent(part['mean'])}"
    return sentence


def _chosen(chosen: Sequence[Mapping[str, Any]]) -> Section:
    shown = [key for key in MEANINGS if any(task[key] is not None for task in chosen)]
    form = {"gain": ".3f", "stability": ".0%"}
    rows = [
        [
            task["task"],
            "–" if task["questions"] is None else f"{task['questions']:,}",
            *("–" if task[key] is None else format(task[key], form.get(key, ",")) for key in shown),
        ]
        for task in chosen
    ]
    head = [("Task", False), ("Questions", True), *((MEANINGS[key][0], True) for key in shown)]
    meanings = [f"{MEANINGS[key][0]}: {MEANINGS[key][1]}." for key in shown]
    table = Table("Chosen tasks", head, rows)
    return Section("chosen", "Chosen tasks", meanings, tables=[table])


def _plan(plan: Mapping[str, Any], k: int) -> Section:
    rows = [
        [f"{tasks}{' (chosen)' if int(tasks) == k else ''}", UNIT.number(error, 1)]
        for tasks, error in plan["errors"].items()
    ]
    sentence = f"Budget {plan['budget']:g} questions, cost per task {plan['task_cost']:g}: run "
    sentence += f"{counted(plan['questions'], 'question')} of {counted(k, 'task')} in total."
    notes = ["Mean error on source models that are held out."]
    table = Table(
        "Tasks for the budget", [("Tasks", False), (UNIT.points_title("Error"), True)], rows
    )
    return Section("plan", "How many tasks", notes, sentence, tables=[table])


def _judgement(analysis: Mapping[str, Any]) -> Section:
    part, k = analysis["judgement"], analysis["facts"]["k"]
    tasks, questions, held_out = part["random_tasks"], part["random_questions"], part["held_out"]
    ridge = " by ridge" if part["estimator"] == "ridge" else ""
    these = f"all of these tasks{ridge}" if analysis["plan"] else f"these tasks{ridge}"
    rows = [[these, _percent(part["nrmse"]), _between(part)]]
    if ratio := part["anchor_ratio"]:
        rows.append([f"corrected by {ratio['anchor']}", _percent(ratio["nrmse"]), "–"])
    if other := part["ridge"]:
        rows.append(["by ridge on source scores", _percent(other["nrmse"]), "–"])
    # Only source scores can fit ridge regression on random tasks.
    by_chance = f"random sets of {counted(k, 'task')}{ridge if held_out else ''}"
    rows.append([by_chance, _percent(tasks["mean"]), _between(tasks)])
    if questions:
        name = counted(questions["questions"], "random question")
        rows.append([name, _percent(questions["mean"]), _between(questions)])
    lines = [f"{tasks['percentile']:.0%} of random task sets are at least as good."]
    if held_out:
        lines.append(HELD_OUT.format(held_out))
    if ridge:
        lines.append(_formula(analysis["formula"]))
    left = len(part["models"]) - task_sets.MOST_MODELS
    models = f"On {counted(len(part['models']), 'model')}"
    return Section(
        "judgement",
        "Error of the chosen tasks",
        legend=[f"Not drawn: {left} more models, evenly from the best to the worst."] * (left > 0),
        charts=[
            ("Error, and that of random selections", lambda: task_sets.errors(part)),
            ("Full score, and score on these tasks", lambda: task_sets.models(part)),
        ],
        tables=[Table("Errors", [(models, False), ("NRMSE", True), ("5% to 95%", True)], rows)],
        lines=lines,
    )


def _formula(formula: Mapping[str, Any]) -> str:
    terms = [f"{weight:+.3f} × {task}" for task, weight in formula["coefficients"].items()]
    equation = f"Estimate: {formula['intercept']:.3f} {' '.join(terms)}"
    return f"{equation} (ridge on all source models)."


def _difficulty(part: Mapping[str, Any] | None, facts: Mapping[str, Any]) -> list[str]:
    if part is None:
        return []
    is_source = facts.get("rows") == SOURCE_SCORES
    who = "source models" if is_source else facts.get("model") or "the measured model"
    chosen, every = UNIT.score(part["chosen"]), UNIT.score(part["all"])
    return [
        f"Mean score of {who}: {chosen} on these tasks, {every} on all; "
        f"{part['percentile']:.0%} of random task sets are as close."
    ]


def _stability(analysis: Mapping[str, Any], names: Sequence[str]) -> Section:
    part, noise = analysis["stability"], analysis["noise"]
    lines, charts = [], []
    if part:
        drawn = lambda: task_sets.stability(part["tasks"], names)  # noqa: E731
        charts.append(("Share of resamples that choose a task", drawn))
        lines.append(
            f"{counted(part['bootstraps'], 'bootstrap selection')} contain {part['shared']:.0%} of "
            f"these tasks on average; two of them share {part['pairs']:.0%}."
        )
    if part and part["noise"] is not None:
        lines.append(
            f"Chance level: {part['noise']:.0%} if source tasks do not differ (shuffled within "
            f"each seed), {part['chance']:.0%} for random tasks."
        )
    if noise:
        ratio = "no noise" if noise["ratio"] is None else fixed(noise["ratio"], 1)
        lines.append(
            f"Signal-to-noise ratio of the matrix: {ratio} (variance between source tasks over "
            f"variance between seeds; p = {p_value(noise['p_value'])} for no difference)."
        )
    notes = ["Seeds of the matrix are drawn with replacement, and the tasks chosen as before."]
    return Section("stability", "Stability of the choice", notes, charts=charts, lines=lines)


def _clusters(clusters: Sequence[Mapping[str, Any]]) -> Section:
    head = [("Cluster", True), ("Tasks", True), ("Chosen", False), ("Others", False)]
    rows = [
        [
            *(str(group["cluster"]), str(len(group["tasks"])), ", ".join(group["chosen"]) or "–"),
            ", ".join(task for task in group["tasks"] if task not in group["chosen"]) or "–",
        ]
        for group in clusters
    ]
    notes = ["Groups of tasks that transfer alike."]
    tables = [Table("Clusters", head, rows, "a task")]
    return Section("clusters", "Clusters", notes, tables=tables, detail=True)


def _between(part: Mapping[str, Any]) -> str:
    has_interval = part["low"] is not None and part["high"] is not None
    return f"{_percent(part['low'])} to {_percent(part['high'])}" if has_interval else "–"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{fixed(100 * share, 1)}%".replace("–%", "–")


def _fact(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_fact, value))
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
