"""Sections of the record that take seconds, made anew: the committed text and numbers."""

from pathlib import Path

import pytest

from fewbench.testing.printed import same_printed

from .conftest import DATA, RESULTS

pytestmark = pytest.mark.slow
SECTIONS = {
    "bento": (
        *("BenTo's seven released models", "102 other models", "BenTo-sim or BenTo-le"),
        *("BenTo-sim and other choices, over models", "FLAN", "What foretells the error"),
        *("How much hangs on the seeds", "Cheaper measurements", "Few questions of few tasks"),
    ),
    "collaborative": (
        "Models that are alike on a task and on the other tasks (Figure 6)",
        "Transport where tasks are alike: HELM MATH",
        "Transport where tasks are alike: HELM MATH, over models",
        "Two-stage collaborative filtering and others where the targets are stronger, over models",
    ),
    "disco": ("DISCO and others on MMLU, the strongest tenth, over models",),
}


@pytest.mark.parametrize(
    ("paper", "title"), [(paper, title) for paper in SECTIONS for title in SECTIONS[paper]]
)
def test_a_section_is_as_recorded(paper, title, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from papers import PAPERS
    from papers.record import Context, sections_of

    (section,) = (section for section in PAPERS[paper].sections if section.title == title)
    missing = [file for file in section.data if not (DATA / file).exists()]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} in ../shared/data")
    recorded = sections_of((RESULTS / f"{paper}.md").read_text(encoding="utf-8"))[title]
    text = section.text(Context(DATA))
    assert same_printed(text, recorded), text
