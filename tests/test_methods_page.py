"""docs/methods/README.md lists the catalogue as it is, and every page has its method."""

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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_are_of_methods_and_say_where_numbers_go(path):
    text = path.read_text(encoding="utf-8")
    assert path.stem in CATALOGUE
    assert f"<!-- numbers: {path.stem} -->" in text
    for section in ("What it does", "What it assumes", "When to use it", "When not"):
        assert f"\n## {section}" in text
