"""The documentation site builds without warnings, works without a network, and lacks nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import fewbench
from fewbench.cli.app import COMMANDS

pytest.importorskip("zensical")
pytest.importorskip("mkdocstrings")
ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^"]*"|@import[^;]*//'
)
LINKED = re.compile(
    r'<link\b(?=[^>]*rel="(?:stylesheet|preconnect|icon)")[^>]*href="(?:https?:)?//'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, ROOT / "scripts" / "make_site.py", folder]
    environment = {**os.environ, "PYTHONPATH": paths}
    found = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return folder


@pytest.mark.slow
def test_site(site):
    pages = {path.relative_to(site).as_posix(): path for path in site.rglob("*.html")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items()}
    for name, text in texts.items():
        found = FETCHED.search(text) or LINKED.search(text)
        assert not found, f"{name} needs a network: {found}"
        for link in re.findall(r'<[a-z][^>]*\s(?:href|src)="(?![a-z]+:|/)([^"#]+)', text):
            assert (pages[name].parent / unquote(link)).exists(), f"{name} links {link}"
        if name not in {"404.html", "glossary.html"}:
            assert "glossary.html" in text, f"{name} does not link the glossary"
            assert "md-nav__link--active" in text, f"{name} is not in the navigation"
    commands = texts["reference/commands.html"]
    for name in COMMANDS:
        assert f'id="fewbench-{name}"' in commands
    assert "--half-width" in commands
    python = "".join(text for name, text in texts.items() if name.startswith("reference/python"))
    for name in set(fewbench.__all__) - {"__version__"}:
        assert f"fewbench.{name}" in python
    assert 'title="A model with known per-item results.' in texts["start.html"]
    assert '<span class="kn">import</span>' in texts["notebooks/grows.html"]
    assert {"changelog.html", "how-to/contribute.html"} <= set(pages)
