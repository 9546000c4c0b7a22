"""The page of a study of native sources."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from fewbench.errors import StudyError
from fewbench.report import write_native
from fewbench.report.frame import charts_of
from fewbench.report.native_page import family_grid
from fewbench.study import SplitSettings
from fewbench.study.tailoredbench import analyze
from fewbench.testing import simulate


def study(families=("a", "b", "c"), **kind):
    scores = simulate(48, 70, seed=3)
    if families:
        names = [families[m % len(families)] for m in range(48)]
        scores = replace(scores, models=scores.models.assign(family=names))
    else:
        scores = replace(scores, models=scores.models.drop(columns="family"))
    settings = {"budget": 14, "repeats": 1, "split": SplitSettings(targets=0.4), **kind}
    return analyze(scores, **settings)


@pytest.fixture(scope="module")
def found():
    return study()


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    return write_native(found, tmp_path_factory.mktemp("page") / "natives.html", "my.parquet")


def test_it_is_whole_and_says_the_findings(found, page, balanced, body):
    text = body(page.read_text("utf-8"))
    balanced(text)
    assert "Native sources on my.parquet" in text
    plain = text.replace("&#39;", "'")
    for said in found.findings.values():
        assert said in plain
    assert not re.search(r"\b(nan|None|inf)\b", text)


def test_distances_are_drawn_or_said_to_be_missing(found):
    assert found.plot().to_dict()["layer"]
    with pytest.raises(StudyError, match="no distances"):
        replace(found, spread=None).plot()


def test_every_question_has_charts_or_a_table(page, body):
    text = page.read_text("utf-8")
    sections = dict(re.findall(r'<section id="(\w+)">(.*?)</section>', body(text), re.S))
    assert list(sections) == [
        "nearness", "shares", "counts", "items", "spread", "affinity", "absence", "run"
    ]  # fmt: skip
    for key, part in sections.items():
        assert part.count('class="chart"') == (0 if key in {"affinity", "run"} else 2), key
        assert ("<details" in part) == (key != "run"), key
    assert sections["affinity"].count('shade own"') == 3
    assert "as found: " in sections["counts"]
    assert charts_of(text).count('"stands for"') > 2


def test_the_same_analysis_gives_the_same_bytes(found, tmp_path):
    one, other = (write_native(found, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert one == other
    assert json.dumps(found.to_dict()) == json.dumps(found.to_dict())


def test_names_are_escaped(tmp_path, balanced, body):
    text = write_native(study(("<b>x", "a & b", 'c"d')), tmp_path / "p").read_text("utf-8")
    balanced(body(text))
    assert "<b>x" not in text
    assert "&lt;b&gt;x" in text


def test_without_families_those_sections_say_so(tmp_path, balanced, body):
    text = body(write_native(study(None), tmp_path / "p").read_text("utf-8"))
    balanced(text)
    assert text.count("families of the models are not known") == 2


def test_one_target_and_few_sources(tmp_path, balanced, body):
    few = analyze(simulate(9, 30), budget=12, repeats=1, split=SplitSettings(targets=0.01))
    text = body(write_native(few, tmp_path / "p").read_text("utf-8"))
    balanced(text)
    assert "too few for a map" in text
    assert "cannot be divided by nearness" in text


def test_a_grid_shows_the_larger_families_first():
    pairs = [
        {"family": f, "source_family": s, "targets": n, "sources": m, "natives": 2.0 * (f == s),
         "chance": 1.0}
        for f, n in (("a", 2), ("b", 9), ("c", 5)) for s, m in (("a", 9), ("b", 8), ("d", 7))
    ]  # fmt: skip
    made = family_grid({"pairs": pairs})
    assert made.columns == [("b", 8), ("a", 9)]
    assert made.more == 2
    assert made.rows[0][:2] == ("b", 9)
    assert made.rows[0][2] == [("2.0", "1.0", 1.0, True), ("0.0", "1.0", 0.0, False)]
