"""Fewer tasks as a part of any method: which items, from which tasks, and through the protocol."""

from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.evaluation import Evaluation
from fewbench.methods import find_method
from fewbench.methods.needs import needs_of
from fewbench.testing import simulate
from fewbench.testing.conformance import play
from fewbench_papers.bento import TaskMatrix, Transferability, read_chooser


@pytest.fixture(scope="module")
def scores():
    """Six tasks of 4, 9, 13, 17, 21, 26 items or about so."""
    return simulate(14, 90, 6, seed=3)


def subset(text, scores, budget, seed=0):
    return find_method(text).selector.select(scores, budget, seed)


def tasks_of(scores, items):
    """The tasks of items in the order of appearance."""
    at = scores.task_of[scores.positions(items)]
    return [scores.tasks[task] for task in dict.fromkeys(at.tolist())]


def size(scores, *tasks):
    return int(scores.items["task"].isin(tasks).sum())


def matrix_file(path, names, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.random((2, len(names), len(names)))
    sizes = np.full(len(names), 10)
    return Transferability(values, tuple(names), tuple(names), sizes).save(path)


def by_scores(chooser):
    """The same, told that past scores are what tasks are compared by."""
    return f"{chooser[:-1]},matrix=scores)" if "(" in chooser else f"{chooser}(matrix=scores)"


# -- which items ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bento-sim", "bento-le(components=3)", "tasks-random"])
@pytest.mark.parametrize("budget", [1, 20, 47, 90])
def test_whole_tasks_in_their_order_and_a_part_of_the_last(scores, name, budget):
    items = subset(f"{by_scores(name)}+mean", scores, budget).items
    assert len(set(items)) == budget
    found = tasks_of(scores, items)
    matrix = TaskMatrix.of_scores(scores)
    order = read_chooser(name).order(matrix, 6, 0).tasks
    assert found == [scores.tasks[task] for task in order[: len(found)]]
    *whole, last = found
    assert budget - size(scores, *whole) <= size(scores, last)
    for task in whole:
        assert sum(scores.items["task"][item] == task for item in items) == size(scores, task)


def test_the_part_of_the_last_task_is_drawn(scores):
    text = "tasks-listed(names=task-5|task-1,tasks=2)+mean"
    budget = size(scores, "task-5") + 2
    drawn = {subset(text, scores, budget, seed).items[-2:] for seed in range(8)}
    assert len(drawn) > 1
    assert {scores.items["task"][item] for pair in drawn for item in pair} == {"task-1"}


@pytest.mark.parametrize("k", [1, 3, 6])
def test_tasks_says_how_many(scores, k):
    names = scores.tasks[:k]
    whole = size(scores, *names)
    text = f"tasks-listed(names={'|'.join(scores.tasks)},tasks={k})+mean"
    assert tasks_of(scores, subset(text, scores, whole).items) == names
    if k < 6:
        said = f"the {k} tasks have {whole} items, and the budget is {whole + 1}"
        with pytest.raises(MethodError, match=f"{said}.*take more tasks"):
            subset(text, scores, whole + 1)


def test_more_tasks_than_there_are(scores):
    with pytest.raises(MethodError, match=r"tasks=7.*6"):
        subset("bento-sim(tasks=7,matrix=scores)+mean", scores, 5)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
def test_share_is_the_part_of_the_tasks_that_is_enough(scores, share):
    """Random + BenTo: as few tasks as hold the budget in a share of their items."""
    budget = 15
    items = subset(f"tasks-random(share={share})+random+mean", scores, budget).items
    matrix = TaskMatrix.of_scores(scores)
    order = [scores.tasks[t] for t in read_chooser("tasks-random").order(matrix, 6, 0).tasks]
    k = next(k for k in range(1, 7) if size(scores, *order[:k]) >= min(budget / share, 90))
    assert set(tasks_of(scores, items)) <= set(order[:k])
    if share < 1:
        assert len(tasks_of(scores, items)) == k, "15 items that miss one of these tasks: seed"


@pytest.mark.parametrize("inside", ["random+mean", "stratified+mean", "greedy+answers+ridge"])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_selectors_inside_tasks(scores, inside, average):
    table = scores.averaged(average)
    chosen = ["task-4", "task-2"]
    text = f"tasks-listed(names={'|'.join(chosen)},tasks=2)+{inside}"
    found = subset(text, table, 12)
    assert len(set(found.items)) == 12
    assert set(tasks_of(table, found.items)) <= set(chosen)
    played = play(find_method(text), table.take(models=range(10)), table.take(models=[11, 12]), 12)
    assert ((played.prediction.scores >= 0) & (played.prediction.scores <= 1)).all()


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_with_all_items_scores_are_exact(scores, average):
    table = scores.averaged(average)
    sources, targets = table.take(models=range(10)), table.take(models=range(10, 14))
    for text in ("bento-sim(matrix=scores)+mean", "tasks-random+stratified+mean", "fitted-tasks"):
        played = play(find_method(text), sources, targets, 90, tasks=True)
        np.testing.assert_allclose(played.prediction.scores, targets.full_scores(), atol=1e-12)
        np.testing.assert_allclose(played.prediction.tasks, targets.task_scores(), atol=1e-12)


def test_the_score_of_whole_tasks_is_their_mean_over_items_or_tasks(scores):
    text = "tasks-listed(names=task-1|task-4,tasks=2)+mean"
    whole = size(scores, "task-1", "task-4")
    for average in ("micro", "macro"):
        table = scores.averaged(average)
        targets = table.take(models=[12, 13])
        said = play(find_method(text), table.take(models=range(10)), targets, whole).prediction
        each = targets.task_scores()[:, [1, 4]]
        weights = [size(scores, "task-1"), size(scores, "task-4")]
        expected = np.average(each, axis=1, weights=weights if average == "micro" else None)
        np.testing.assert_allclose(said.scores, expected)


def test_a_single_task_leaves_nothing_to_choose():
    table = simulate(8, 30, 1)
    for text in ("bento-sim(matrix=scores)+mean", "tasks-listed(names=no such)+random+mean"):
        assert len(set(subset(text, table, 12).items)) == 12


def test_exchanged_tasks_are_kept_together(scores):
    """Of a choice that is not nested no part is one."""
    for chooser in ("tasks-fit",):
        for budget in range(5, 90, 9):
            found = set(
                tasks_of(
                    scores, subset(f"{by_scores(chooser)}+stratified+mean", scores, budget).items
                )
            )
            matrix = TaskMatrix.of_scores(scores)
            choices = [set(read_chooser(chooser).order(matrix, k, 0).tasks) for k in range(1, 7)]
            named = [{scores.tasks[task] for task in choice} for choice in choices]
            assert any(found <= choice for choice in named if size(scores, *choice) >= budget)


# -- what tasks are compared by ------------------------------------------------------------------


@pytest.mark.parametrize("chooser", ["bento-sim", "bento-le(components=3)"])
def test_what_tasks_are_compared_by_is_said(chooser):
    with pytest.raises(MethodError, match=r"matrix=FILE.*matrix=scores"):
        find_method(f"{chooser}+mean")


def test_texts(scores):
    one, other = (subset(f"bento-sim(matrix={m})+mean", scores, 60) for m in ("text", "scores"))
    assert one.items != other.items
    assert not one.notes
    bare = replace(scores, items=scores.items.drop(columns="text"))
    with pytest.raises(MethodError, check=lambda error: error.kind == "missing"):
        subset("bento-sim(matrix=text)+mean", bare, 20)
    assert len(subset("tasks-random(matrix=text)+mean", bare, 20).items) == 20


def test_a_file_of_transferability_by_the_tasks_names(scores, tmp_path):
    """Rows are taken by name: the file has them in another order, and one task more."""
    names = ["more", *scores.tasks[::-1]]
    path = matrix_file(tmp_path / "ict.npz", names)
    found = tasks_of(scores, subset(f"bento-sim(matrix={path},tasks=3)+mean", scores, 20).items)
    rows = Transferability.load(path).mean[[names.index(task) for task in scores.tasks]]
    matrix = TaskMatrix(rows, tuple(scores.tasks), np.ones(6, dtype=int), None, "x")
    expected = [scores.tasks[t] for t in read_chooser("bento-sim").order(matrix, 3, 0).tasks]
    assert found == expected[: len(found)]
    folder = tmp_path / "ict"
    folder.mkdir()
    matrix_file(folder / "matrix.npz", names)
    again = subset(f"bento-sim(matrix={folder},tasks=3)+mean", scores, 20)
    assert tasks_of(scores, again.items) == found


def test_tasks_of_a_file_have_the_weights_of_the_full_score(scores, tmp_path):
    path = matrix_file(tmp_path / "ict.npz", scores.tasks)
    text = f"bento-sim(matrix={path},tasks=2)+mean"
    ease = Transferability.load(path).difficulty
    chosen = {}
    for average in ("micro", "macro"):
        table = scores.averaged(average)
        found = subset(text, table, 1).items
        chosen[average] = find_method(text).selector
        matrix = chosen[average]._matrix(table, np.bincount(table.task_of))
        weights = table.item_weights @ np.equal.outer(table.task_of, np.arange(6))
        np.testing.assert_allclose(matrix.weights, weights)
        np.testing.assert_allclose(matrix.ease, ease)
        assert len(found) == 1


def test_a_file_of_other_tasks_or_none(scores, tmp_path):
    path = matrix_file(tmp_path / "ict.npz", [*scores.tasks[:4], "other", "names"])
    with pytest.raises(MethodError, match=r"2 of 6 tasks.*'task-4'.*'task-5'"):
        subset(f"bento-sim(matrix={path})+mean", scores, 20)
    with pytest.raises(MethodError, match=r"nope\.npz"):
        subset("bento-sim(matrix=nope.npz)+mean", scores, 20)


def test_a_file_of_other_content_is_refused(scores, tmp_path):
    path = matrix_file(tmp_path / "ict.npz", scores.tasks)
    method = find_method(f"bento-le(components=3,matrix={path})+mean")
    said = method.describe()
    assert f"bento-le(components=3,matrix={path},hash=" in said
    assert find_method(said).describe() == said
    assert len(subset(said, scores, 20).items) == 20
    matrix_file(path, scores.tasks, seed=1)
    with pytest.raises(MethodError, check=lambda error: error.kind == "changed"):
        subset(said, scores, 20)
    assert len(subset(f"bento-le(components=3,matrix={path})+mean", scores, 20).items) == 20


# -- as a method is written ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "bento-sim(matrix=scores)+mean",
        "bento-le(components=3,tasks=2,matrix=scores)+mean",
        "tasks-listed(names=a, b|c%2Cd %28e%29|f%2Bg)+stratified+answers+ridge",
        "tasks-random(tasks=3)+anchor-ratio",
        "tasks-fit(tasks=2)+mean",
        "bento-le(printed=true,t=1.05,matrix=text)+mean",
    ],
)
def test_descriptions_are_read_back(text):
    text = text.replace("a, b", "a%2C b")
    method = find_method(text)
    assert method.describe() == text
    assert find_method(method.describe()) == method


def test_needs_follow_from_the_parts():
    def needs(text):
        return {need.what for need in needs_of(find_method(text))}

    assert needs("bento-sim(matrix=scores)+mean") == {"tasks", "sources"}
    assert needs("tasks-random+mean") == {"tasks"}
    assert needs("bento-sim(matrix=text)+mean") == {"tasks", "task text"}
    assert needs("tasks-random(matrix=text)+mean") == {"tasks"}
    assert needs("bento-sim(matrix=a.npz)+mean") == {"tasks"}
    assert "sources" in needs("tasks-random+greedy+answers+ridge")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bento-sim(tasks=-1,matrix=scores)+mean", "tasks is -1"),
        ("bento-sim(share=0,matrix=scores)+mean", "share is 0"),
        ("bento-sim(share=1.5,matrix=scores)+mean", "share is 1.5"),
        ("bento-sim(tasks=two,matrix=scores)+mean", "tasks=two"),
        ("bento-sim(colour=1,matrix=scores)+mean", "has no setting 'colour'"),
        ("random+bento-sim(matrix=scores)+mean", "'bento-sim' is out of place"),
        ("bento-sim(matrix=scores)+bento-le(matrix=scores)+mean", "'bento-le' is out of place"),
        ("bento-sim", "'bento-sim' is a"),
        ("bento-sim(matrix=scores)+random", "has no predictor"),
        ("tasks-odd+mean", "'tasks-odd'"),
    ],
)
def test_what_cannot_be_read(text, said):
    with pytest.raises(MethodError, match=said):
        find_method(text)


# -- through the protocol ------------------------------------------------------------------------


def test_an_evaluation_is_saved_and_resumed(scores, tmp_path):
    path = matrix_file(tmp_path / "ict.npz", scores.tasks)
    sources = scores.take(models=range(13))
    text = f"bento-sim(matrix={path},tasks=2)+random+mean"
    evaluation = Evaluation(sources, text, 10)
    ((target, items),) = evaluation.ask().items()
    evaluation.save(tmp_path / "run")
    again = Evaluation.open(tmp_path / "run", sources)
    (asked,) = again.ask().values()
    assert list(asked) == list(items)
    row = scores.values[13]
    again.tell(target, {item: row[scores.positions([item])[0]] for item in items})
    expected = row[scores.positions(items)].mean()
    assert again.estimate()[target].score == pytest.approx(expected)
    matrix_file(path, scores.tasks, seed=1)
    changed = Evaluation.open(tmp_path / "run", sources)
    assert changed.ask() == {}
    assert "hash=" in changed.notes[0]
