"""Verdicts by benchmark: groups of tasks in place of tasks, from the same joint estimate."""

import numpy as np
import pytest

import fewbench
from fewbench.evaluation import Evaluation
from fewbench.testing import simulate

TABLE = simulate(32, 240, 6, seed=4)
TASKS = TABLE.tasks
GROUP = {task: "big" if at < 4 else "small" if at == 4 else "" for at, task in enumerate(TASKS)}
GROUPED = TABLE.changed(items=TABLE.items.assign(group=TABLE.items["task"].map(GROUP)))
SOURCES = GROUPED.take(models=range(30))


def evaluated(scores, method):
    names = [str(TABLE.model_ids[row]) for row in (30, 31)]
    evaluation = Evaluation(scores, method, 80, names)
    for row, name in enumerate(names):
        right = dict(zip(TABLE.item_ids, TABLE.values[30 + row], strict=True))
        while asked := evaluation.ask().get(name):
            evaluation.tell(name, {item: right[item] for item in asked})
    return [(evaluation, name) for name in names]


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("case", ["table", "random", "aipw", "fewbench", "none"])
def test_a_row_for_each_benchmark(case, average):
    table = (SOURCES.take(models=[]) if case == "none" else SOURCES).averaged(average)
    if case == "table":
        scores = dict(zip(table.model_ids, table.task_scores(), strict=True))
        sides = first, other = list(table.model_ids[:2])
        weights = {name: table.benchmarks[name] for name in ("big", "small")}
        apart = {n: float(w @ (scores[first] - scores[other])) for n, w in weights.items()}
        found = fewbench.versus(*sides, scores=table)
    else:
        sides = evaluated(table, "random" if case == "none" else case)
        groups = [evaluation.estimate()[name].groups for evaluation, name in sides]
        apart = {name: groups[0][name].score - groups[1][name].score for name in groups[0]}
        found = fewbench.versus(*sides)
    assert [row.task for row in found.groups] == ["big", "small", TASKS[5]]
    tasks, (big, small, alone) = {row.task: row for row in found.tasks}, found.groups
    assert big.difference == pytest.approx(apart["big"])
    assert small.difference == pytest.approx(apart["small"])
    # What is of one task is as before, but for the number of tests.
    for row, task in ((small, TASKS[4]), (alone, TASKS[5])):
        same = tasks[task].model_copy(update={"task": row.task, "p_adjusted": row.p_adjusted})
        same = same.model_copy(update={"verdict": row.verdict})
        assert row == same
    # More items: narrower than its tasks, and hardly narrower than the whole.
    widths = [ends.high - ends.low for task in TASKS[:4] if (ends := tasks[task].interval)]
    if (ends := big.interval) is not None and widths:
        assert ends.high - ends.low < np.mean(widths)
        assert ends.high - ends.low > 0.9 * (found.interval.high - found.interval.low)


def test_one_group_of_all_tasks_is_replaced_by_its_parts():
    paths = {task: f"all/{GROUP[task] or 'other'}" for task in TASKS}
    table = TABLE.changed(items=TABLE.items.assign(group=TABLE.items["task"].map(paths)))
    assert [*table.benchmarks] == ["big", "small", "other"]
    assert [*TABLE.benchmarks] == TASKS
    one = TABLE.changed(items=TABLE.items.assign(group="all"))
    assert [*one.benchmarks] == TASKS
