"""The documentation site builds without warnings, works without a network, and lacks nothing."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from urllib.parse import unquote

import pytest

from fewbench.cli.app import COMMANDS

pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("zensical", "mkdocstrings", "latex2mathml"))),
    reason="needs the extra docs",
)
ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^"]*"|@import[^;]*//'
)
LINKED = re.compile(
    r'<link\b(?=[^>]*rel="(?:stylesheet|preconnect|icon)")[^>]*href="(?:https?:)?//'
)


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts/make_site.py"
    spec = spec_from_file_location("make_site", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_import_only_public_modules(script):
    """The list is in docs/stability.md; contributors use internal modules, too."""
    listed = (ROOT / "docs/stability.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(fewbench[\w.]*)` \|", listed, re.M) == list(script.PUBLIC)
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb"), ROOT / "README.md"]
    pages.remove(ROOT / "docs/extend.md")  # packages use modules that programs do not need
    imported = {
        module
        for page in pages
        for match in re.findall(
            r"^[ \"]*(?:from (fewbench[\w.]*) import|import (fewbench[\w.]*))",
            page.read_text(encoding="utf-8"),
            re.M,
        )
        for module in match
        if module
    }
    assert imported <= set(script.PUBLIC)
    assert imported >= {"fewbench", "fewbench.datasets", "fewbench.methods"}


def test_links_to_pages_above_docs_hold_in_the_repository_and_on_the_site(script, tmp_path):
    link = r"\]\(([^)#]*CONTRIBUTING\.md)\)"
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    linking = {page: re.findall(link, page.read_text(encoding="utf-8")) for page in pages}
    linking = {page: links for page, links in linking.items() if links}
    assert ROOT / "docs/how-to/compare.md" in linking
    for page, links in linking.items():
        assert all((page.parent / one).resolve() == ROOT / "CONTRIBUTING.md" for one in links)
    script.write_pages(tmp_path / "docs")
    for page in linking:
        made = (tmp_path / page.relative_to(ROOT)).with_suffix(".md")
        links = re.findall(r"\[add a method\]\(([^)]*)\)", made.read_text(encoding="utf-8"))
        assert links
        for one in links:
            there = (made.parent / one).resolve()
            assert there == (tmp_path / "docs/how-to/contribute.md").resolve()


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
def test_site(site, script):
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
    headings = re.findall(r"<h2[^>]*>(?:<[^>]*>|\s)*(fewbench[\w.]+)", python)
    assert sorted(headings) == sorted(
        name for page in script.python_names().values() for name in page
    )
    assert 'title="A model with known results on all or some of the items.' in texts["start.html"]
    assert '<span class="kn">import</span>' in texts["notebooks/grows.html"]
    assert {"changelog.html", "how-to/contribute.html"} <= set(pages)
    method = texts["method.html"].partition("<article")[2].partition("</article>")[0]
    assert "<math" in method
    assert not re.search(r"\$|\\[a-z]|<merror", method)
