"""The page of a plan: whole, and with what the plan says."""

import re
from dataclasses import replace
from html import unescape

import numpy as np

import fewbench
from fewbench.scores import Scale
from fewbench.show.html import render
from fewbench.testing import simulate


def test_everything_that_the_plan_says(balanced, body):
    rng = np.random.default_rng(0)
    right = rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 120)) > rng.normal(size=120)
    table = replace(simulate(60, 120, seed=0), values=right.astype(float), scale=Scale(0, 100))
    made = fewbench.plan(table, budget=15, methods=["greedy-ridge"], repeats=3)
    text = body(render(made.page("a <table>")))
    balanced(text)
    plain = " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())
    assert "Plan for a <table>" in plain
    assert made.answer in plain
    assert made.learning.says in plain
    for note in made.notes:
        assert note[1:] in plain
    for words in ("Like the source models", "Of a new family", "Stronger than all source models"):
        assert plain.count(words) == 3  # a row, its reason and a picture
    chart = made.plot()
    spec = str(chart.to_dict())
    assert "number of items (log scale)" in spec
    values = next(iter(chart.to_dict()["datasets"].values()), None) if "datasets" in spec else None
    rows = values or chart.to_dict()["layer"][1]["data"]["values"]
    assert {row["backtest"] for row in rows} == {"judging", "choosing"}
    assert chart.to_dict()["layer"][1]["encoding"]["detail"][1]["field"] == "backtest"
    assert "NaN" not in text
    assert "None" not in text
