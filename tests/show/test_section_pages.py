"""Pages of decisions, packs and training runs: what they say, whole, and safe."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest

import fewbench
from fewbench._names import signed
from fewbench.show.html import render
from fewbench.testing import simulate

from .test_chart_numbers import tracked

ODD = "<b>new & odd"


@pytest.fixture(scope="module")
def evaluation():
    scores = simulate(40, 120, 4, seed=1)
    made = fewbench.Evaluation(scores.take(models=np.arange(37)), "random", 30, [ODD, "b", "c"])
    for row, (name, items) in enumerate(made.ask().items(), 37):
        known = scores.values[row, scores.positions(items)]
        made.tell(name, dict(zip(items, known.tolist(), strict=True)))
    return made


@pytest.fixture
def said(body, balanced):
    def read(result, charts):
        whole = render(result.page())
        text = body(whole)
        balanced(text)
        assert text.count('class="chart"') == charts
        assert "<b>new" not in whole
        plain = " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())
        assert not {"nan", "None", "inf"} & set(plain.split())
        return plain

    return read


def test_two_models(evaluation, said):
    found = fewbench.versus((evaluation, ODD), (evaluation, "b"), margin=0.01)
    plain = said(found, 1)
    assert found.verdict == "undecided" or found.answer in plain
    assert f"{signed(100 * found.difference, 1)} pp (90% interval" in plain
    for one in found.tasks:
        assert f"{one.task} {signed(100 * one.difference, 1)} pp" in plain
    for one in found.deciding:
        assert f"{one.item} {one.a:.4g} {one.b:.4g} {one.task}" in plain
    for warning in found.warnings:
        assert warning in plain


def test_several_targets(evaluation, said):
    found = fewbench.rank(evaluation, top=2)
    plain = said(found, 2)
    assert f"On these 120 items, {found.targets[0].target}, " in plain
    for one in found.targets:
        assert f"{one.target} {one.rank} {one.rank_low} to {one.rank_high}" in plain
    even = tuple(one.model_copy(update={"rank": 1}) for one in found.targets[:2])
    alike = found.model_copy(update={"top": 1, "targets": even})
    assert alike.page().answer.endswith(f"{even[0].target}, {even[1].target} score best")


def test_a_gate(evaluation, said):
    found = fewbench.gate((evaluation, ODD), at_least=0.01)
    plain = said(found, 1)
    assert f"{ODD} passes" in plain
    assert found.checks[0].rule in plain


def test_a_pack(said):
    made = fewbench.pack(simulate(30, 80, 3, seed=1), "greedy-ridge", 10, name=ODD)
    plain = said(made, 1)
    assert "10 of 80 items in place of all" in plain
    for row in made.to_dict()["benchmarks"][0]["backtest"]:
        assert f"{100 * row['error']:.1f} pp" in plain
    for item in made.scores().origin.subset["items"]:
        assert item in plain


def test_a_training_run(said):
    run = tracked()
    points = (run.points[0].model_copy(update={"is_known": True}), run.points[1])
    changed = {"run": ODD, "points": points, "warnings": ("a warning",)}
    found = run.model_copy(update=changed)
    plain = said(found, 1)
    assert "On these 100 items, step-2 scores an estimated 20.0%. In general, " in plain
    assert "it is the best with probability 0.67 2 checkpoints: rising, +10.0 pp in all." in plain
    even = [point.model_copy(update={"score": 0.2, "chance_best": 0.5}) for point in points]
    answer = found.model_copy(update={"points": tuple(even)}).page().answer
    assert "step-1, step-2 score" in answer
    assert answer.endswith("they are the best with probability 0.50 each")
    assert (
        "step-1 1,000 10.0% all items ran – 20 0.33 step-2 2,000 20.0% 15.0% to 27.0% – 20 0.67"
        in plain
    )
    assert "step-1 step-2 +10.0 pp +1.0 to +20.0 pp better 0.030" in plain
    assert "a warning" in plain
    drawn = json.dumps(found.plot().to_dict())
    assert "diamond" in drawn
    assert '"step-1"' in drawn
    assert '"step-2"' not in drawn
    with pytest.raises(fewbench.FewbenchError, match="no chart"):
        found.model_copy(update={"points": found.points[:1], "best": "step-1"}).plot()


def test_a_task_of_which_too_little_is_known_is_drawn_without_an_interval():
    scores = simulate(30, 120, 4, seed=1)
    made = fewbench.Evaluation(scores, "random", 5, ["a", "b"])
    for name, items in made.ask().items():
        made.tell(name, dict.fromkeys(items, float(name == "a")))
    found = fewbench.versus((made, "a"), (made, "b"), warn=False)
    bare = next(task for task in found.tasks if task.interval is None)
    assert bare.p_value is bare.p_adjusted is None
    row = next(row for row in found.page().sections[0].tables[0].rows if row[0] == bare.task)
    assert row[2:] == ["–", "undecided", "–", "–"]
    assert f"{bare.task}: {row[1]} (–)" in render(found.page())
    assert found.plot() is not None


def test_a_score_over_tasks_is_called_so_and_looks_beyond_the_budget_are_named():
    scores = simulate(30, 120, 4, seed=1)
    texts = {}
    for average in ("micro", "macro"):
        made = fewbench.Evaluation(scores.averaged(average), "random", 40, ["step-1", "step-2"])
        made.ask_more({"step-2": scores.item_ids[:60].tolist()})
        for name, items in made.ask().items():
            made.tell(name, dict.fromkeys(items, float(name == "step-2")))
        sides = (made, "step-2"), (made, "step-1")
        decisions = [
            fewbench.versus(*sides, sequential=True, warn=False),
            fewbench.gate(sides[0], at_least=0.5, sequential=True),
            fewbench.rank(made),
            fewbench.track(made),
        ]
        assert {found.average for found in decisions} == {average}
        texts[average] = [str(found) for found in (*decisions, made.estimate())]
    said = "A full score is the mean over task scores (macro)."
    assert all(said in text for text in texts["macro"])
    assert not any("macro" in text for text in texts["micro"])
    beyond = "10, 20, 40 answers, and after every doubling beyond"
    assert all(beyond in " ".join(text.split()) for text in texts["micro"][:2])
