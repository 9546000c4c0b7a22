"""Everything printed or drawn is in percent and points on the scale 0 to 1, else in scores."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import fewbench
from fewbench.scores import Scale
from fewbench.show.charts.theme import page_spec, unchecked
from fewbench.show.page import as_text
from fewbench.testing import simulate

UNITS = re.compile(r"\bpp\b|percentage points")


def shown(scale):
    """The text and the axis titles of every result, by its name."""
    scores = replace(simulate(40, 120, 4, seed=1), scale=scale)
    sources = scores.take(models=np.arange(36))
    evaluation = fewbench.Evaluation(sources, "random", 20, ["a", "b"])
    for row, (name, items) in enumerate(evaluation.ask().items(), 36):
        known = scale.from_unit(scores.values[row, scores.positions(items)])
        evaluation.tell(name, dict(zip(items, known.tolist(), strict=True)))
    middle = float(scale.from_unit(0.5))
    compared = fewbench.compare(scores, ["random-ridge"], [10], repeats=3)
    found = {
        "compare": compared,
        "estimate": evaluation.estimate()["a"],
        "estimates": evaluation.estimate(),
        "audit": fewbench.audit(scores),
        "versus": fewbench.versus((evaluation, "a"), (evaluation, "b")),
        "gate": fewbench.gate((evaluation, "a"), at_least=middle),
        "plan": fewbench.plan(fewbench.Benchmark(scores.items, scale=scale), budget=20),
    }
    made = {}
    for name, one in found.items():
        page = one.page()
        drawn = [unchecked(make) for section in page.sections for _, make in section.charts]
        titles = re.findall(r'"title": "([^"]+)"', json.dumps([page_spec(c) for c in drawn if c]))
        made[name] = (as_text(page, *(one.id for one in page.sections)), titles)
    return made, compared


@pytest.fixture(scope="module")
def both():
    return shown(Scale()), shown(Scale(0, 10))


def test_only_shares_have_percentage_points(both):
    (shares, _), (tens, _) = both
    for name, (text, titles) in shares.items():
        assert UNITS.search(text) or name in ("audit", "gate"), name
        drawn = " ".join(titles)
        assert not titles or "(%)" in drawn or "(pp)" in drawn, name
    for name, (text, titles) in tens.items():
        assert not UNITS.search(text), (name, UNITS.findall(text))
        assert not re.search(r"\(pp\)|\(%\)", " ".join(titles)), name


def test_a_comparison_is_on_the_scale_of_the_scores(both):
    (_, plain), (_, tens) = both
    for table in ("cells", "repeats", "task_errors"):
        mine, theirs = (getattr(one, table)["mae"] for one in (plain, tens))
        np.testing.assert_allclose(theirs, 10 * mine)
    for column in ("truth", "estimate", "low", "high"):
        np.testing.assert_allclose(tens.estimates[column], 10 * plain.estimates[column])
    np.testing.assert_allclose(tens.cells["ratio_to_random"], plain.cells["ratio_to_random"])
    first = re.search(r"^(?:compare.*\n)?.*random-ridge +([\d.]+) ±", str(tens), re.MULTILINE)
    assert first is not None
    ordered = tens.cells[tens.cells["method"] == "random-ridge"]["mae"]
    assert any(abs(float(first[1]) - value) < 0.006 for value in ordered)
