"""The page of an audit: whole, self-contained, all names in it, nothing cut off."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from fewbench.checks import audit
from fewbench.scores import Scale, from_arrays
from fewbench.show.html import render, write_report
from fewbench.show.page import as_text
from fewbench.testing import simulate


@pytest.fixture
def dirty():
    """Something to say in every section."""
    scores = simulate(40, 300, 12, seed=5, options=5)
    values = scores.values.copy()
    values[1], values[:, :4] = values[0], 0.0
    other = np.random.default_rng(0).random(300) < 0.05
    values[11] = np.where(other, 1 - values[10], values[10])
    order = np.argsort(np.argsort(scores.full_scores()))
    values[:, 100:103] = (order < 20)[:, None]
    values[6, :70] = np.nan
    values[7, 250:] = np.nan
    models = scores.models.rename(index={"model-01": "MODEL-00#2"})
    return replace(scores, values=values, models=models)


@pytest.fixture
def page(balanced, body):
    def written(scores, source="table"):
        text = body(render(audit(scores).page(source)))
        balanced(text)
        assert "NaN" not in text
        assert "None" not in text
        return text

    return written


def test_every_finding_with_every_name(page, dirty):
    text = page(dirty)
    plain = unescape(re.sub(r"<[^>]+>", "", text))
    found = audit(dirty)
    assert {"same-name", "near-duplicates", "wrong-way", "missing"} <= {
        f.kind for f in found.findings
    }
    for finding in found.findings:
        assert finding.what in plain
        assert finding.advice.replace("SCORES", "table") in plain
        for name in finding.ids:
            assert name in plain
    for fit in found.methods:
        assert fit.method in plain
    assert "Missing cells" in text
    assert "How many models score how much" in text
    assert f"{len(found.of_kind('wrong-way').ids)} go the wrong way" in text


def test_a_table_of_many_tasks_fits_a_terminal():
    """Further columns follow below, each beside the models."""
    table = simulate(6, 300, 40, seed=1)
    values = table.values.copy()
    values[0, ::3] = np.nan
    page = audit(replace(table, values=values)).page("t")
    lines = as_text(page, *(section.id for section in page.sections)).splitlines()
    assert max(map(len, lines)) <= 200
    heads = [line.split() for line in lines if line.startswith("Model  ")]
    shown = [name for head in heads for name in head if name.startswith("task-")]
    (wide,) = (t for section in page.sections for t in section.tables if len(t.head) > 20)
    assert shown == [name for name, _ in wide.head[2:]]
    assert sum(line.startswith("model-00  ") for line in lines) == len(heads) > 1


def test_names_are_escaped(page):
    bad = "<script>alert('x')</script>&"
    values = (np.random.default_rng(0).random((12, 60)) < 0.5).astype(float)
    values[1] = values[0]
    table = from_arrays(
        values,
        models=[f"{bad}{i}" for i in range(12)],
        items=[f"{bad}{i}" for i in range(60)],
        tasks=[f"{bad}{i % 3}" for i in range(60)],
    )
    assert "<script" not in page(table, bad)


@pytest.mark.parametrize(
    "values", [[[1.0]], [[1.0], [0.0]], [[0.5, np.nan], [0.5, 1.0]], [[1.0, 1.0]] * 3]
)
def test_tiny_tables(page, values):
    assert "Methods" in page(from_arrays(values, models=[f"m{i}" for i in range(len(values))]))


def test_another_scale():
    values = 10 + 90 * np.random.default_rng(0).random((20, 30))
    names = [f"m{i}" for i in range(20)]
    found = audit(from_arrays(values, models=names, scale=Scale(0, 100, lower_is_better=True)))
    assert "full score, lower is better" in found.plot("models").to_json()


def test_many_items_make_no_heavy_page(tmp_path):
    rng = np.random.default_rng(1)
    values = (rng.random((15, 20_000)) < rng.random(20_000)).astype(float)
    found = audit(from_arrays(values, models=[f"m{i}" for i in range(15)]))
    assert write_report(found, tmp_path / "audit.html").stat().st_size < 2_000_000
