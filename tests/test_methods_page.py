"""Every method has one page, and docs/methods/README.md links each method to its page."""

import importlib.util
from pathlib import Path

import pytest

from fewbench.methods import CATALOGUE

ROOT = Path(__file__).parents[1]
PAGES = sorted(set((ROOT / "docs" / "methods").glob("*.md")) - {ROOT / "docs/methods/README.md"})


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("page", ROOT / "scripts/make_methods_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_the_one_that_the_script_makes(script):
    assert (ROOT / "docs/methods/README.md").read_text(encoding="utf-8") == script.page(), (
        "run python scripts/make_methods_page.py"
    )


def test_every_method_has_one_page(script):
    found = [name for path in PAGES for name in script.methods_of(path)]
    assert sorted(found) == sorted(CATALOGUE), "mark where its numbers go: <!-- numbers: NAME -->"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_have_blocks_of_numbers_and_all_sections(path, script):
    text = path.read_text(encoding="utf-8")
    names = script.methods_of(path)
    assert names
    assert text.count("<!-- end -->") == len(names)
    for section in ("What it does", "What it assumes", "When to use it", "When not"):
        assert f"\n## {section}" in text
