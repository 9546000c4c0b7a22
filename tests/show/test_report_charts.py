"""Charts: labels that never touch, stable looks, valid specifications, pictures."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import numpy as np
import pytest

import fewbench
from fewbench.checks import audit
from fewbench.scores import Scale, Unit
from fewbench.show.charts import comparison as charts
from fewbench.show.charts import estimating, theme
from fewbench.show.charts.labels import spread
from fewbench.show.html import Charts
from fewbench.study import compare
from fewbench.testing import simulate


def test_labels_never_touch_and_stay_inside():
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(1, 13))
        sizes = rng.choice([15.0, 28.0], n)
        low, high = 20.0, 20.0 + sizes.sum() + rng.uniform(0, 100)
        wanted = rng.uniform(low, high, n) ** rng.choice([0.5, 1])
        spots = np.array(spread(list(wanted), list(sizes), low, high))
        edges = sorted(zip(spots - sizes / 2, spots + sizes / 2, strict=True))
        assert edges[0][0] >= low - 1e-6
        assert edges[-1][1] <= high + 1e-6
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(edges))


def test_looks_are_distinct_and_do_not_depend_on_results():
    names = [f"m{i}" for i in range(11)]
    found = theme.looks(["random", *names], "random")
    assert len({(v.color, v.shape) for v in found.values()}) == 12
    assert found["random"].color == "ref"
    assert theme.looks(["random", "aipw", "fewbench"], "random")["fewbench"].color == "m0"
    one, other = theme.looks(["ssepy", "fewbench"]), theme.looks(["aipw", "fewbench", "ssepy"])
    assert [one[name] for name in one] == [other[name] for name in one]


def test_few_methods_all_keep_their_color_many_only_the_best_and_the_reference():
    order = [f"m{i}" for i in range(14)] + ["random"]
    assert theme.keys(order[:5], None) == set(order[:5])
    assert theme.keys(order, "random") == {"m0", "m1", "m2", "m3", "random"}


@pytest.fixture(scope="module")
def results():
    """One result of each kind that has a chart."""
    scores = simulate(40, 120, 4, seed=1)
    sources = scores.take(models=np.arange(36))
    evaluation = fewbench.Evaluation(sources, "random", 20, ["a", "b", "c"])
    for row, (name, items) in enumerate(evaluation.ask().items(), 36):
        known = scores.values[row, scores.positions(items)]
        evaluation.tell(name, dict(zip(items, known.tolist(), strict=True)))
    estimates = evaluation.estimate()
    kinds = ("error", "ratio", "coverage-90", "scores", "ranks")
    compared = compare(scores, ["random-ridge"], [10], repeats=2)
    found = {f"compare {kind}": compared.plot(kind) for kind in kinds}
    found |= {
        "evaluation": evaluation.plot("b"), "estimate": estimates["a"].plot(),
        "estimates": estimates.plot(), "audit items": audit(scores).plot(),
        "audit models": audit(scores).plot("models"),
        "versus": fewbench.versus((evaluation, "a"), (evaluation, "b")).plot(),
        "rank": fewbench.rank(evaluation).plot(),
        "gate": fewbench.gate((evaluation, "a"), at_least=0.5).plot(),
        "track": estimating.tracked(
            [{"step": s, "score": s / 9e3, "low": s / 1e4, "high": s / 8e3} for s in (1e3, 2e3)],
            Unit(Scale()),
        ),
    }  # fmt: skip
    return found


def test_a_chart_that_is_not_there_is_refused_with_the_list_of_those_that_are():
    scores = simulate(40, 120, 4, seed=1)
    evaluation = fewbench.Evaluation(scores, "random", 20, ["a", "b"])
    for name, items in evaluation.ask().items():
        evaluation.tell(name, dict(zip(items, [1.0, 0.0] * 10, strict=True)))
    estimates = evaluation.estimate()
    ran = fewbench.run(scores, "random", 10, lambda item: 1.0)
    results = {
        "targets": [estimates, estimates["a"], ran],
        "models": [audit(scores)],
        "error": [compare(scores, ["random"], [10], repeats=1, level=None)],
        "items": [fewbench.plan(scores, budget=20, methods="random", repeats=3, expect="like")],
        "ranks": [fewbench.rank(evaluation)],
        "difference": [fewbench.versus((evaluation, "a"), (evaluation, "b"))],
    }
    for there, several in results.items():
        for one in several:
            with pytest.raises(fewbench.FewbenchError, match="'nonsense'") as refused:
                one.plot("nonsense")
            assert there in refused.value.hint
            assert one.plot(there) is not None
    with pytest.raises(fewbench.FewbenchError, match=r"use one of targets\)"):
        ran.plot("tasks")  # these are drawn among source models only


def test_every_chart_is_valid_tells_itself_and_turns_dark(results):
    light = re.compile("|".join(theme.LIGHT.values()))
    for name, chart in results.items():
        spec = chart.to_dict()  # altair checks it against the schema
        assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/"), name
        assert len(spec["description"]) > 30, name
        assert "nan" not in spec["description"].lower(), name
        page = json.dumps(theme.page_spec(chart))
        assert light.search(json.dumps(spec)), name
        assert not light.search(page), name
        assert "var(--" in page, name


def test_pictures_and_what_cannot_be_drawn(results, tmp_path):
    results["estimate"].save(tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    results["estimate"].save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    scores = simulate(40, 120, 4, seed=1)
    with pytest.raises(fewbench.FewbenchError, match="'what'"):
        audit(scores).plot("what")
    assert charts.coverage(compare(scores, ["random"], [10], repeats=1, level=None).cells,
                           "random", 90) is None  # fmt: skip


def test_tables_of_charts_are_packed_and_safe_in_a_script():
    import altair as alt

    bad = "</script><!--"
    values = [{"name": bad, "value": i / 7} for i in range(30)]
    made = Charts()
    made.add(alt.Chart(theme.rows(values)).mark_point().encode(x="value:Q"))
    text = made.as_script()
    assert "<" not in text
    columns = json.loads(text)["specs"]["c0"]["data"]["columns"]
    assert columns[0] == {"name": "name", "words": [bad], "cells": [0] * 30}
    assert columns[1]["cells"] == [row["value"] for row in values]
