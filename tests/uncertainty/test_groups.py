"""Groups of tasks: what they hold, and that their intervals hold."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbench import Benchmark, Evaluation
from fewbench.testing.simulation import simulate

PATHS = {"a": "top/left", "b": "top/left", "c": "top/right", "d": "other", "e": ""}
SIZES = {"a": 90, "b": 60, "c": 75, "d": 75, "e": 60}
TASKS = [task for task, size in SIZES.items() for _ in range(size)]


def in_groups(scores, paths=PATHS, **columns):
    """The scores with these tasks and groups."""
    items = scores.items.assign(task=TASKS, group=[paths[task] for task in TASKS])
    return scores.changed(items=items.assign(**columns))


@pytest.fixture(scope="module")
def table():
    return in_groups(simulate(60, len(TASKS), seed=3))


def estimated(scores, answers, budget, method="fewbench", seed=0):
    evaluation = Evaluation(scores, method, budget, targets=["new"], seed=seed)
    at = dict(zip(scores.item_ids, range(len(scores.item_ids)), strict=True))
    while asked := evaluation.ask():
        evaluation.tell("new", {item: answers[at[item]] for item in asked["new"]})
    return evaluation.estimate(warn=False)["new"]


def shares(benchmark):
    return {
        group.name: {
            task: round(float(weight), 4)
            for task, weight in zip(benchmark.tasks, group.weights, strict=True)
            if weight
        }
        for group in benchmark.groups
    }


def test_a_group_counts_its_tasks_by_their_items_or_all_the_same(table):
    by_size = {"a": 0.4, "b": 0.2667, "c": 0.3333}
    assert shares(table)["top"] == by_size
    assert shares(table)["left"] == {"a": 0.6, "b": 0.4}
    assert [group.parts for group in table.groups] == [
        ("left", "right"),
        ("a", "b"),
        ("c",),
        ("d",),
    ]
    assert shares(table.averaged("macro"))["left"] == {"a": 0.5, "b": 0.5}
    marks = ["left" if task in "ab" else "" for task in TASKS]
    equal = in_groups(table, equal_groups=marks, weight=np.linspace(1, 2, len(TASKS)))
    assert shares(equal)["left"] == {"a": 0.5, "b": 0.5}
    assert shares(equal)["top"] == by_size  # the weights of other groups are lm-eval's: by size
    weights = np.repeat([1.0, 3.0, 1.0, 1.0, 1.0], list(SIZES.values()))
    assert shares(in_groups(table, weight=weights))["left"] == {"a": 0.3333, "b": 0.6667}


@given(st.lists(st.sampled_from(["", "x", "y", "x/y", "y/x", "x/x", "t1", "x/t2"]), min_size=3))
@settings(max_examples=60, deadline=None)
def test_odd_groups_are_whole_tasks_and_never_hold_themselves(paths):
    """Whatever a column of groups says."""
    tasks = [f"t{at % 3}" for at in range(len(paths))]
    index = [f"q{at}" for at in range(len(paths))]
    benchmark = Benchmark(pd.DataFrame({"task": tasks, "group": paths}, index=index))
    groups = {group.name: group for group in benchmark.groups}
    assert not groups.keys() & set(benchmark.tasks)

    def held(name):
        return {name} if name not in groups else set().union(*map(held, groups[name].parts))

    for name, group in groups.items():
        assert group.weights.sum() == pytest.approx(1)
        assert held(name) == set(np.array(benchmark.tasks)[group.weights > 0])


def test_a_group_of_all_items_is_the_full_score_and_one_of_a_task_is_the_task(table):
    scores = in_groups(table, {task: f"all/only-{task}" for task in SIZES})
    sources, answers = scores.take(models=np.arange(50)), scores.cells[55]
    for given_ in (sources, sources.benchmark):
        found = estimated(given_, answers, 80)
        assert (found.groups["all"].score, found.groups["all"].interval) == (
            found.score,
            found.interval,
        )
        for task in SIZES:
            group = found.groups[f"only-{task}"]
            assert group.score == pytest.approx(found.tasks[task])
            assert (group.interval, group.items_run) == (
                found.task_intervals[task],
                found.task_items[task],
            )


@pytest.mark.parametrize("method", ["fewbench", "random", "greedy-ridge"])
def test_a_group_scores_the_mean_of_its_tasks_exactly_when_all_items_ran(table, method):
    sources, answers = table.take(models=np.arange(50)), table.cells[55]
    found = estimated(sources, answers, 80, method)
    for name, weights in shares(table).items():
        mean = sum(found.tasks[task] * weight for task, weight in weights.items())
        assert found.groups[name].score == pytest.approx(mean, abs=1e-4)
        interval = found.groups[name].interval
        assert interval.low <= found.groups[name].score <= interval.high
        assert found.groups[name].items_run == sum(found.task_items[task] for task in weights)
    whole = estimated(sources, answers, table.n_items, "random")
    for name, weights in shares(table).items():
        truth = sum(answers[np.array(TASKS) == task].mean() * w for task, w in weights.items())
        interval = whole.groups[name].interval
        assert interval.low == pytest.approx(interval.high) == pytest.approx(truth, abs=1e-4)


def test_a_group_whose_tasks_count_the_same_is_the_mean_of_their_rows(table):
    """Also without source models, where the mean of its answers counts large tasks for more."""
    marks = ["left" if task in "ab" else "" for task in TASKS]
    found = estimated(in_groups(table, equal_groups=marks).benchmark, table.cells[55], 40)
    left, mean = found.groups["left"], (found.tasks["a"] + found.tasks["b"]) / 2
    assert left.score == pytest.approx(mean)
    assert left.interval.low < mean < left.interval.high
    answered = found.groups["top"]  # by size: the mean of its answers
    assert answered.score == pytest.approx(
        sum(found.tasks[task] * found.task_items[task] for task in "abc") / answered.items_run
    )


def test_no_answers_in_a_group_say_nothing_of_it(table):
    evaluation = Evaluation(table.benchmark, "random", 40, targets=["new"])
    outside = [item for item in evaluation.ask()["new"] if table.items["task"][item] not in "ab"]
    evaluation.tell("new", dict.fromkeys(outside, 1.0))
    with pytest.warns(match="asked have no answer"):
        found = evaluation.estimate()["new"]
    assert (found.groups["left"].score, found.groups["left"].interval) == (None, None)
    assert found.to_frame().loc["left", ["score", "low"]].isna().all()
    (line,) = [line for line in str(found).splitlines() if line.strip().startswith("left")]
    assert line.split() == ["left", "–", "–", "0"]


def test_groups_stand_above_their_tasks(table):
    found = estimated(table.take(models=np.arange(50)), table.cells[55], 80)
    lines = str(found).partition("\nTask")[2].splitlines()[1:]
    names = [line.replace("\N{NO-BREAK SPACE}", ".").split()[0] for line in lines[:9]]
    assert names == [
        *("top", "..left", "....a", "....b", "..right", "....c", "other", "..d", "e"),
    ]
    frame = found.to_frame()
    assert frame.index.tolist() == ["all", "top", "left", "right", "other", *SIZES]
    assert 1 <= frame.loc["left", "rank"] <= 51


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "sources", "equal"),
    [("fewbench", 0, False), ("fewbench", 40, False), ("greedy-ridge", 40, True),
     ("random", 0, True), ("random-stratified", 0, False)],
)  # fmt: skip
def test_intervals_of_groups_cover(method, sources, equal):
    covered, widths = [], []
    for world in range(6):
        table = in_groups(simulate(sources + 10, len(TASKS), seed=100 + world))
        if equal:
            table = in_groups(table, equal_groups=["left" if t in "ab" else "" for t in TASKS])
        given_ = table.take(models=np.arange(sources)) if sources else table.benchmark
        for row in range(sources, sources + 10):
            found = estimated(given_, table.cells[row], 90, method, seed=world)
            of_tasks = table.task_scores()[row]
            for group in table.groups:
                interval, truth = found.groups[group.name].interval, of_tasks @ group.weights
                if interval is None:  # of one task, of which the method says nothing
                    assert len(group.parts) == 1
                    continue
                covered.append(interval.low - 1e-9 <= truth <= interval.high + 1e-9)
                widths.append(interval.high - interval.low)
    assert np.mean(covered) >= 0.87
    assert np.mean(widths) <= 0.45
