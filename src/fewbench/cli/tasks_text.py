"""A selection of tasks as text for a terminal."""

from collections.abc import Callable
from typing import Any

from fewbench._text import table, wrapped
from fewbench.cli.text import number

MEANINGS = {
    "gain": "increase in the coverage of all tasks",
    "stands for": "number of tasks nearest to this chosen task",
    "cluster": "group of tasks that transfer alike",
    "chosen again": "share of bootstrap selections with the task",
}
LONGEST = 20  # characters of a method in a column header


def describe(found: dict[str, Any]) -> str:
    """Return the values of a `TaskAnalysis` as text."""
    facts = found["facts"]
    of = ""
    if facts["questions"] is not None:
        share = facts["chosen questions"] / facts["questions"]
        of = f", {facts['chosen questions']:,} of {facts['questions']:,} questions ({share:.1%})"
    blocks = [
        f"{facts['method']}: {facts['k']} of {facts['tasks']} tasks{of}",
        _chosen(found["chosen"]),
    ]
    if found["plan"]:
        blocks.append(_plan(found["plan"], facts["k"]))
    if found["judgement"]:
        blocks.append(_judgement(found["judgement"], facts, whole=bool(found["plan"])))
    if found["judgement"] and found["judgement"]["estimator"] == "ridge":
        blocks.append(wrapped(_formula(found["formula"])))
    for part in (
        _difficulty(found["difficulty"], facts),
        _stability(found["stability"]),
        _noise(found["noise"]),
    ):
        blocks += [wrapped(part)] if part else []
    if found["curves"] and len(found["curves"]["k"]) > 1:
        blocks.append(_curves(found["curves"]))
    blocks += [wrapped(f"warning: {warning}") for warning in found["warnings"]]
    return "\n\n".join(blocks)


def _chosen(chosen: list[dict[str, Any]]) -> str:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "questions": lambda row: "" if row["questions"] is None else f"{row['questions']:,}",
        "gain": lambda row: _known(row["gain"]),
        "stands for": lambda row: _known(row["stands_for"], 0),
        "cluster": lambda row: _known(row["cluster"], 0),
        "chosen again": lambda row: "" if row["stability"] is None else f"{row['stability']:.0%}",
    }
    shown = {name: [read(row) for row in chosen] for name, read in columns.items()}
    shown = {name: cells for name, cells in shown.items() if any(cells)}
    rows = [
        [row["task"], *(cells[at] for cells in shown.values())] for at, row in enumerate(chosen)
    ]
    means = [f"{name}: {what}" for name, what in MEANINGS.items() if name in shown]
    return table(["task", *shown], rows) + "\n" + wrapped("; ".join(means))


def _plan(plan: dict[str, Any], k: int) -> str:
    rows = [
        [f"{tasks}{' (chosen)' if tasks == k else ''}", number(100 * error, 2)]
        for tasks, error in plan["errors"].items()
    ]
    head = (
        f"budget {plan['budget']:g} questions, cost per task {plan['task_cost']:g}: run "
        f"{plan['questions']} questions of these {k} tasks in total"
    )
    error = "mean error, points (source models held out)"
    return "\n".join([wrapped(head), table(["tasks", error], rows)])


def _judgement(judgement: dict[str, Any], facts: dict[str, Any], *, whole: bool) -> str:
    tasks, questions = judgement["random_tasks"], judgement["random_questions"]
    by_ridge = " by ridge" if judgement["estimator"] == "ridge" else ""
    rows = [
        [
            f"all of these tasks{by_ridge}" if whole else f"these tasks{by_ridge}",
            number(judgement["nrmse"]),
            _between(judgement),
        ]
    ]
    if ratio := judgement["anchor_ratio"]:
        rows.append([f"corrected by {ratio['anchor']}", number(ratio["nrmse"]), ""])
    if ridge := judgement["ridge"]:
        rows.append(["by ridge on source scores", number(ridge["nrmse"]), ""])
    held_out = judgement["held_out"]
    # Only source scores can fit ridge regression on random tasks.
    by_ridge = by_ridge if held_out else ""
    rows.append(
        [f"random sets of {facts['k']} tasks{by_ridge}", number(tasks["mean"]), _between(tasks)]
    )
    if questions:
        rows.append(
            [
                f"{questions['questions']} random questions",
                number(questions["mean"]),
                _between(questions),
            ]
        )
    lines = [
        table([f"on {len(judgement['models'])} models", "NRMSE", "5% .. 95%"], rows),
    ]
    if held_out:
        lines.append(
            wrapped(
                f"held out: each model is estimated from tasks chosen without it, in {held_out} "
                "folds; models of one family are in the same fold",
            )
        )
    lines += [
        f"{tasks['percentile']:.0%} of random task sets are at least as good",
        wrapped(
            "NRMSE: root mean square error over the root mean square of the full scores; with the "
            f"paper's Eq. 7 as printed (without a square): {judgement['nrmse_printed']:.3f}",
        ),
    ]
    return "\n".join(lines)


def _difficulty(difficulty: dict[str, Any] | None, facts: dict[str, Any]) -> str | None:
    if difficulty is None:
        return None
    chosen, whole = difficulty["chosen"], difficulty["all"]
    past = "past" in facts["rows"]
    who = "source models" if past else "the measured model"
    return (
        f"difficulty: mean score of {who} {chosen:.3f} on these tasks, {whole:.3f} on all; "
        f"{difficulty['percentile']:.0%} of random task sets are as close"
    )


def _stability(stability: dict[str, Any] | None) -> str | None:
    if stability is None:
        return None
    said = (
        f"stability: {stability['bootstraps']} bootstrap selections ({stability['seeds']} seeds) "
        f"contain {stability['shared']:.0%} of these tasks on average; two of them share "
        f"{stability['pairs']:.0%}"
    )
    if stability["noise"] is None:
        return said
    return (
        f"{said}. Chance level: {stability['noise']:.0%} if source tasks do not differ (shuffled "
        f"within each seed), {stability['chance']:.0%} for random tasks"
    )


def _noise(noise: dict[str, Any] | None) -> str | None:
    if noise is None:
        return None
    ratio = "no noise" if noise["ratio"] is None else f"{noise['ratio']:.1f}"
    return (
        f"signal-to-noise ratio of the matrix: {ratio} (variance between source tasks over "
        f"variance between seeds; p = {noise['p_value']:.3f} for no difference)"
    )


def _formula(formula: dict[str, Any]) -> str:
    terms = [f"{weight:+.3f} × {task}" for task, weight in formula["coefficients"].items()]
    return f"estimate: {formula['intercept']:.3f} {' '.join(terms)} (ridge on all source models)"


def _curves(curves: dict[str, Any]) -> str:
    names = list(curves["methods"])
    rows = [
        [
            str(k),
            *(_known(curves["methods"][name][at]) for name in names),
            number(curves["random_mean"][at]),
            _known(curves["random_questions"][at]),
        ]
        for at, k in enumerate(curves["k"])
    ]
    shown = ["this method" if len(name) > LONGEST else name for name in names]
    header = ["tasks", *shown, "random tasks", "random questions"]
    return "NRMSE by number of tasks:\n" + table(header, rows)


def _between(spread: dict[str, Any]) -> str:
    return f"{number(spread['low'])} .. {number(spread['high'])}"


def _known(value: float | None, digits: int = 3) -> str:
    return "" if value is None else number(value, digits)
