"""A comparison as JSON: its schema, its numbers, and that it is written whole."""

import json
from dataclasses import replace

import pytest

from fewbench.scores import Scale
from fewbench.study import SplitSettings, compare
from fewbench.study.metrics import find_metric

TIMES = ["seconds_fit", "seconds_predict"]


def test_json_has_the_promised_schema(outcome):
    found = json.loads(outcome.to_json(), parse_constant=pytest.fail)
    assert found["seed"] == 0
    assert found["fingerprint"] == outcome.facts["fingerprint"]
    assert "fewbench" in found["versions"]
    assert len(found["cells"]) == len(outcome.cells)
    for cell, row in zip(found["cells"], outcome.cells.to_dict("records"), strict=True):
        own = {"method", "budget", "split", "n_sources", "n_targets", "n_repeats"}
        own |= {"expected_random_mae"}
        assert set(cell) == own | {"tied_with_best", "failed", "metrics"}
        for key in (*own, "tied_with_best"):
            value = row[key]  # numbers have 12 digits
            assert cell[key] == (float(f"{value:.12g}") if isinstance(value, float) else value)
        metrics = cell["metrics"]
        for name in (
            "mae",
            "kendall_tau",
            "spearman",
            "ratio_to_random",
            "coverage90",
            "half_width90",
        ):
            assert {"mean", "se"} <= set(metrics[name])
            assert metrics[name]["mean"] == pytest.approx(row[name])
            assert metrics[name]["se"] == pytest.approx(row[f"{name}_se"])
        ends = {"mean", "se", "low", "high"}
        assert all(ends <= set(m) for name, m in metrics.items() if name not in TIMES)
        assert metrics["mae"]["low"] < metrics["mae"]["mean"] < metrics["mae"]["high"]
        for name in TIMES:
            assert isinstance(metrics[name], float)


def test_json_has_null_where_nothing_is_defined(scores):
    found = compare(scores, [], [5], SplitSettings(targets=0.01), repeats=1)
    metrics = json.loads(found.to_json(), parse_constant=pytest.fail)["cells"][0]["metrics"]
    nothing = dict.fromkeys(("mean", "se", "low", "high"))
    assert metrics["kendall_tau"] == nothing | {"n_repeats": 0}
    assert metrics["mae"]["se"] is None
    assert metrics["mae"]["mean"] >= 0


@pytest.mark.parametrize("scale", [Scale(-1, 1), Scale(0, 100, True)])
def test_json_gives_errors_on_the_users_scale(scores, scale):
    span = scale.high - scale.low
    unit = replace(scores, scale=Scale())
    plain, scaled = (
        json.loads(compare(table, [], [5], repeats=3).to_json())["cells"][0]["metrics"]
        for table in (unit, replace(scores, scale=scale))
    )
    errors = {name for name in plain if name not in TIMES and find_metric(name).unit == "score"}
    assert {"mae", "task_mae", "half_width90"} < errors
    for name in set(plain) - set(TIMES):
        factor = span if name in errors else 1
        for part, value in plain[name].items():
            assert scaled[name][part] == pytest.approx(value * factor), (name, part)
