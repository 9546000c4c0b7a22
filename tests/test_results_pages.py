"""Pages with measured numbers and the list of methods are as make_results.py writes them."""

import importlib.util
import sys
from html import escape
from pathlib import Path

import pytest

from fewbench.methods import CATALOGUE

ROOT = Path(__file__).parents[1]


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"scripts/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script():
    return loaded("make_results")


def test_pages_are_as_the_script_writes_them(script):
    for path, text in script.made().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run make_results.py"


def test_every_method_has_one_page_with_all_sections(script):
    found = [name for path in script.pages() for name in script.methods_of(path)]
    assert sorted(found) == sorted(CATALOGUE), "list it once: <!-- numbers: NAME NAME -->"
    for path in script.pages():
        text = path.read_text(encoding="utf-8")
        for section in ("What it does", "When to use it", "When not", "Settings", "Numbers"):
            assert f"\n## {section}\n" in text, f"{path.name} lacks {section}"


def test_a_page_is_filled_between_its_markers_and_nowhere_else(script):
    rows = script.load()
    page = "Prose.\n<!-- numbers: random aipw -->\nold\n<!-- end -->\nMore.\n"
    text = script.filled(page, rows, "here.md")
    assert text.startswith("Prose.\n<!-- numbers: random aipw -->\nError relative")
    assert text.endswith("<!-- end -->\nMore.\n")
    assert "| `aipw` | " in text
    assert "old" not in text
    with pytest.raises(ValueError, match=r"here\.md"):
        script.filled(page.replace("<!-- end -->", ""), rows, "here.md")
    with pytest.raises(ValueError, match="nobody"):
        script.filled(page.replace("aipw", "nobody"), rows, "here.md")


def test_a_table_of_a_file_is_found_by_its_heading_and_first_cell(script):
    heading = "Two-stage collaborative filtering on a single task"
    page = f"<!-- numbers: collaborative.md | {heading} | error (pp) -->\n<!-- end -->\n"
    table = script.filled(page, None, "here.md").splitlines()[1:-1]
    assert table[0] == "| error (pp) | | 30 | 132 | 396 |"
    assert len(table) == 7
    with pytest.raises(ValueError, match="'tau'"):
        script.table_of("collaborative.md", heading, "tau")


def test_each_paper_s_figure_is_of_the_record_and_on_its_page():
    figures = loaded("make_figures")
    page = (ROOT / "docs/reproduced.md").read_text(encoding="utf-8")
    for name, figure in figures.FIGURES.items():
        rows = figures.rows_of(name)
        assert {row["method"] for row in rows} == {*figure.lines.values()}
        assert f"(assets/papers/{name}.svg)" in page
        drawn = (figures.TO / f"{name}.svg").read_text(encoding="utf-8")
        assert all(escape(title) in drawn for title in figure.lines.values())
    printed = [
        row["y"] for row in figures.rows_of("tailoredbench")
        if (row["method"], row["by"]) == ("TailoredBench", "paper")
    ]  # fmt: skip
    assert printed == [3.5, 3.4, 3.3, 3.1, 2.9]
    forest = [row["y"] for row in figures.rows_of("disco") if row["method"] == "DISCO, forest"]
    assert len(forest) == 6
