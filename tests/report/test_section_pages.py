"""Pages of decisions, packs and training runs: what they say, whole, and safe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest

import fewbench
from fewbench.report.writing import render_report
from fewbench.testing import simulate

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
        whole = render_report(result)
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
    assert found.answer in plain
    assert f"The difference is {found.difference:.4g}" in plain
    for one in found.tasks:
        assert f"{one.task} {one.difference:.4g}" in plain
    for one in found.deciding:
        assert f"{one.item} {one.task} {one.a:.4g} {one.b:.4g}" in plain
    for warning in found.warnings:
        assert warning in plain


def test_several_targets(evaluation, said):
    found = fewbench.rank(evaluation, top=2)
    plain = said(found, 1)
    assert "First are " in plain
    for one in found.targets:
        assert f"{one.target} {one.rank} {one.rank_low} to {one.rank_high}" in plain


def test_a_gate(evaluation, said):
    found = fewbench.gate((evaluation, ODD), at_least=0.01)
    plain = said(found, 1)
    assert f"{ODD} passes" in plain
    assert found.checks[0].rule in plain


def test_a_pack(said):
    made = fewbench.pack(simulate(30, 80, 3, seed=1), "greedy-ridge", 10, name=ODD)
    plain = said(made, 1)
    assert "10 of 80 items stand for all" in plain
    for row in made.to_dict()["benchmarks"][0]["backtest"]:
        assert f"{row['error']:.4g}" in plain
    for item in made.scores().origin.subset["items"]:
        assert item in plain


@dataclass
class Track:
    """The values of a training run that its page reads."""

    run = ODD
    level = 0.9
    best = "step-2"
    items_total = 100
    warnings = ("a warning",)

    def __post_init__(self):
        self.points = [
            SimpleNamespace(
                checkpoint=f"step-{s}", step=1000 * s, score=0.1 * s, items_run=20,
                interval=SimpleNamespace(low=0.1 * s - 0.05, high=0.1 * s + 0.05),
            )
            for s in (1, 2)
        ]  # fmt: skip
        self.changes = [
            SimpleNamespace(
                before="step-1", after="step-2", difference=0.1, p_adjusted=0.03, verdict="better",
                interval=SimpleNamespace(low=0.01, high=0.2),
            )
        ]  # fmt: skip


def test_a_training_run(said):
    plain = said(Track(), 1)
    assert "step-2 scores 0.2 (90% interval 0.15 to 0.25)" in plain
    assert "step-1 step-2 0.1 0.01 to 0.2 0.03 better" in plain
    assert "a warning" in plain
