"""Scores between right and wrong, told where the sources have none."""

import numpy as np
import pytest

from fewbench import Evaluation, Scale, from_arrays
from fewbench.errors import AnswersError


def table(scale=None, graded=()):
    """12 models, 60 items in tasks a and b: right or wrong, but for the graded tasks."""
    drawn = np.random.default_rng(0).random((12, 60))
    values = (drawn < 0.6).astype(float)
    tasks = np.repeat(["a", "b"], 30)
    for task in graded:
        values[:, tasks == task] = drawn[:, tasks == task]
    if scale is not None:
        values = scale.low + values * (scale.high - scale.low)
    return from_arrays(values, models=[f"m{i}" for i in range(12)], tasks=list(tasks), scale=scale)


def test_a_fraction_is_refused_with_item_and_value():
    evaluation = Evaluation(table(Scale(0, 100)), "random", 6, ["new"])
    first, *others = evaluation.ask()["new"]
    with pytest.raises(AnswersError, match=r"score 50.*100") as caught:
        evaluation.tell("new", {first: 50} | dict.fromkeys(others, 100))
    assert repr(first) in str(caught.value)
    assert "--accept-fractions" in str(caught.value)
    assert evaluation.ask()["new"] == [first, *others]


@pytest.mark.parametrize("method", ["random", "p-irt"])
def test_an_accepted_fraction_is_warned_of_whenever_it_is_estimated(tmp_path, method):
    scores = table()
    evaluation = Evaluation(scores, method, 12, ["new"])
    evaluation.save(tmp_path / "run")
    items = evaluation.ask()["new"]
    evaluation.tell("new", {item: 0.5 if item == items[3] else 1.0 for item in items},
                    accept_fractions=True)  # fmt: skip
    for one in (evaluation, Evaluation.open(tmp_path / "run", scores)):
        (warning,) = [w for w in one.estimate()["new"].warnings if "fractions" in w]
        assert f"1 of 12 answers are fractions, first {items[3]!r}" in warning


def test_it_is_judged_task_by_task():
    scores = table(graded=["b"])
    evaluation = Evaluation(scores, "random", 60, ["new"])
    task = dict(zip(scores.item_ids, scores.items["task"], strict=True))
    asked = evaluation.ask()["new"]
    evaluation.tell("new", {item: 0.5 for item in asked if task[item] == "b"})
    with pytest.raises(AnswersError, check=lambda error: error.kind == "scale"):
        evaluation.tell("new", {item: 0.5 for item in asked if task[item] == "a"})


def test_answers_of_graded_sources_bring_no_warning():
    evaluation = Evaluation(table(graded="ab"), "random", 6, ["new"])
    evaluation.tell("new", dict.fromkeys(evaluation.ask()["new"], 0.5))
    assert not any("fractions" in w for w in evaluation.estimate()["new"].warnings)
