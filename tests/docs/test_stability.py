"""The page on stability counts the names that are promised."""

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/stability.md").read_text(encoding="utf-8")


def test_the_names_are_counted():
    listed = re.findall(r"^\| `(fewbench[\w.]*)` \| (\d+) \|", PAGE, re.M)
    assert {name: int(n) for name, n in listed} == {
        name: len(import_module(name).__all__) for name, _ in listed
    }
    assert f"{sum(int(n) for _, n in listed)} names in ten modules" in PAGE
    assert len(listed) == 10
