"""The page of a study of native sources."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from fewbench.scores import save_scores
from fewbench.show import html as sections
from fewbench.show.html import body_of, charts_of
from fewbench.study import SplitSettings
from fewbench.testing import simulate
from native_sources import main
from tailoredbench import page as pages
from tailoredbench.analysis import analyze


def render(found, source=""):
    return sections.render(pages.page(found, source))


def study(families=("a", "b", "c"), **kind):
    scores = simulate(48, 70, seed=3)
    if families:
        names = [families[m % len(families)] for m in range(48)]
        scores = replace(scores, models=scores.models.assign(family=names))
    else:
        scores = replace(scores, models=scores.models.drop(columns="family"))
    settings = {"budget": 14, "repeats": 1, "split": SplitSettings(targets=0.4)}
    settings |= {"others": ["random"], "budgets": [8, 14], **kind}
    return analyze(scores, **settings)


@pytest.fixture(scope="module")
def found():
    return study()


@pytest.fixture(scope="module")
def page(found):
    return render(found.to_dict(), "my.parquet")


def test_it_is_whole_and_says_the_findings(found, page):
    text = body_of(page)
    assert "Native sources on my.parquet" in text
    plain = text.replace("&#39;", "'")
    for said in found.findings.values():
        assert said in plain
    assert not re.search(r"\b(nan|None|inf)\b", text)


def test_every_question_has_charts_or_a_table(page):
    text = page
    parts = dict(re.findall(r'<section id="(\w+)">(.*?)</section>', body_of(text), re.S))
    assert list(parts) == [
        "nearness", "shares", "counts", "items", "spread", "affinity", "absence", "trials", "run"
    ]  # fmt: skip
    for key, part in parts.items():
        assert part.count('class="chart"') == (0 if key in {"affinity", "run"} else 2), key
        assert ("<details" in part) == (key != "run"), key
    assert "as found: " in parts["counts"]
    assert charts_of(text).count('"stands for"') > 2


def test_the_same_analysis_gives_the_same_page(found):
    one, other = (render(found.to_dict()) for _ in range(2))
    assert one == other
    assert json.dumps(found.to_dict()) == json.dumps(found.to_dict())


def test_names_are_escaped():
    text = render(study(("<b>x", "a & b", 'c"d')).to_dict())
    assert "<b>x" not in text
    assert "&lt;b&gt;x" in text


def test_without_families_those_sections_say_so():
    text = body_of(render(study(None).to_dict()))
    assert text.count("families of the models are not known") == 2


def test_one_target_and_few_sources():
    few = analyze(simulate(9, 30), budget=12, repeats=1, split=SplitSettings(targets=0.01))
    text = body_of(render(few.to_dict()))
    assert "too few for a map" in text
    assert "cannot be divided by nearness" in text


def test_the_script_writes_the_page_and_the_findings(tmp_path, capsys):
    path = save_scores(simulate(40, 60, seed=2), tmp_path / "s.parquet")
    words = [str(path), "--budget", "14", "--repeats", "1", "--split", "every", "--budgets", ""]
    parts = ["--parts", "nearness,affinity", "--families", "model-00+model-02,model-01+model-03"]
    main([*words, *parts, "-o", str(tmp_path / "out.html")])
    said = capsys.readouterr().out
    assert "nearness: From the nearest to the farthest fifth" in said
    assert "affinity: A target has" in said
    assert "absence: not asked for" in said
    assert "Native sources on s.parquet" in (tmp_path / "out.html").read_text("utf-8")
