"""Build the documentation site from docs/, the root pages, the notebooks and the program.

python scripts/make_site.py [FOLDER]

The site replaces FOLDER (default: site/). Zensical builds it, with mkdocs.yml as settings, from
pages that this script writes into a temporary folder. The reference is made from the program:
commands and options from the command line's own help, functions and classes from
`__all__` of the public modules. Needs the extra `docs`.
"""

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import yaml
from latex2mathml.converter import convert
from nbconvert import MarkdownExporter
from typer.main import get_command

import fewbench
from fewbench.cli.app import COMMANDS, app, load_command

ROOT = Path(__file__).parents[1]
REPOSITORY_PAGES = {"how-to/contribute.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
# Public modules. Users import what `__all__` of these names; all others are internal.
PUBLIC = (
    "fewbench",
    "fewbench.datasets",
    "fewbench.errors",
    "fewbench.inspect",
    "fewbench.methods",
    "fewbench.testing",
    "fewbench.testing.conformance",
    "fewbench.testing.reader_conformance",
    "fewbench_papers.bento",
    "fewbench_papers.bento.measurement",
)
# Titles of the pages of the Python reference, by the package that a name comes from.
TITLES = {
    "bento": "Choose tasks",
    "checks": "Check source results",
    "datasets": "The bundled results",
    "decide": "Decide",
    "errors": "Errors",
    "evaluation": "Evaluate",
    "inspect": "Inspect tasks",
    "methods": "Methods",
    "packs": "Packs",
    "public": "Public results",
    "readers": "Import results",
    "show": "Reports",
    "runners": "Run a model",
    "scores": "Scores",
    "study": "Compare and plan",
    "testing": "Test a method",
}


def main() -> None:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site").resolve()
    if site.exists() and any(site.iterdir()) and not (site / "sitemap.xml").exists():
        sys.exit(f"{site} holds other files than a site. Name an empty or a new folder.")
    with tempfile.TemporaryDirectory() as folder:
        write_pages(Path(folder) / "docs")
        write_settings(Path(folder) / "mkdocs.yml")
        words = [sys.executable, "-m", "zensical", "build", "--strict"]
        if code := subprocess.run(words, cwd=folder).returncode:
            sys.exit(code)
        for path in Path(folder).rglob("*.html"):
            html = path.read_text(encoding="utf-8")
            path.write_text(explain_once(html), encoding="utf-8")
        shutil.rmtree(site, ignore_errors=True)
        shutil.move(Path(folder) / "site", site)


def write_pages(docs: Path) -> None:
    """Write all pages as Markdown: those of docs/, notebooks, root pages and the reference."""
    shutil.copytree(ROOT / "docs", docs)
    made = {"reference/commands.md": commands_page()}
    for name, members in python_names().items():
        made[f"reference/python/{name}.md"] = python_page(name, members)
    for page, source in REPOSITORY_PAGES.items():
        made[page] = repository_page(source, page)
    for path, text in made.items():
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text(text, encoding="utf-8")
    for path in list(docs.rglob("*.ipynb")):
        write_notebook(path)
    words = "\n".join(f"*[{word}]: {meaning}" for word, meaning in glossary().items())
    for path in docs.rglob("*.md"):
        text = with_formulas(path.read_text(encoding="utf-8").replace(".ipynb)", ".md)"))
        for page, source in REPOSITORY_PAGES.items():  # which is above docs/ in the repository
            text = text.replace(
                f"]({relative(docs.parent / source, path)}", f"]({relative(docs / page, path)}"
            )
        if path != docs / "glossary.md":
            to = relative(docs / "glossary.md", path)
            text += f'\n\n<div class="glossary-link" markdown>Terms: [glossary]({to})</div>\n'
            text += "" if docs / "reference" in path.parents else f"\n{words}\n"
        path.write_text(text, encoding="utf-8")


def relative(target: Path, page: Path) -> str:
    """Return the link from a page to a file."""
    return os.path.relpath(target, page.parent).replace(os.sep, "/")


def with_formulas(text: str) -> str:
    """Return a page with LaTeX formulas, as GitHub shows them, in MathML: browsers need no script.

    Dollar signs mean formulas on pages that have blocks of them.
    """

    if "\n```math\n" not in text:
        return text

    def block(match: re.Match[str]) -> str:
        return f'<div class="formula">{convert(match[1], display="block")}</div>'

    def inline(match: re.Match[str]) -> str:
        return f'<span class="formula">{convert(match[1])}</span>'

    text = re.sub(r"^```math\n(.*?)^```$", block, text, flags=re.M | re.S)
    return re.sub(r"\$([^$\n]+)\$", inline, text)


def write_notebook(path: Path) -> None:
    """Replace a notebook by a page with its saved outputs; charts are files beside the page."""
    book = nbformat.read(path, as_version=4)
    book.metadata["language_info"] = {"name": "python"}
    where = {"output_files_dir": f"{path.stem}_files"}
    text, resources = MarkdownExporter().from_notebook_node(book, where)
    for name, content in resources["outputs"].items():
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).write_bytes(content)
    text = re.sub(r' border="1" class="dataframe"|<style scoped>.*?</style>', "", text, flags=re.S)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    path.unlink()


def write_settings(target: Path) -> None:
    """Write mkdocs.yml with the pages of methods and of the reference in the navigation."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    sections = {name: pages for section in settings["nav"] for name, pages in section.items()}
    methods = (ROOT / "docs/methods").glob("*.md")
    for path in sorted(methods, key=lambda path: (path.stem != "fewbench", path.stem)):
        if path.name != "README.md":
            sections["Methods"].append(f"methods/{path.name}")
    python = [{title(name): f"reference/python/{name}.md"} for name in python_names()]
    sections["Reference"][:0] = [{"Commands": "reference/commands.md"}, {"Python": python}]
    target.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")


def explain_once(html: str) -> str:
    """Explain a word where it stands first on the page, not wherever it stands."""
    seen = set()

    def once(match: re.Match[str]) -> str:
        word = match[2].lower().removesuffix("s")
        if word in seen:
            return match[2]
        seen.add(word)
        return match[0]

    return re.sub(r"(<abbr title=[^>]*>)(.*?)</abbr>", once, html)


def glossary() -> dict[str, str]:
    """Return the glossary's text for each term of several words, in all its forms."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    found = {}
    for term, said in re.findall(r"^([A-Z][^\n]+)\n:   (.+?)(?=\n\n|\Z)", text, re.M | re.S):
        said = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`]", r"\1", " ".join(said.split()))
        first = re.split(r"(?<=[.)]) (?=[A-Z])", said)[0]
        if " " in term:
            lower = term[0].lower() + term[1:]
            found |= dict.fromkeys((term, lower, f"{term}s", f"{lower}s"), first)
    return found


def repository_page(source: str, page: str) -> str:
    """Return a page of the repository's root, with links that hold on the site."""
    text = (ROOT / source).read_text(encoding="utf-8")
    up = "../" * page.count("/")
    return re.sub(r"\]\((?:\./)?docs/", f"]({up}", text)


def python_names() -> dict[str, dict[str, Any]]:
    """Return the public names with their values, by the package that defines them.

    What the top level has is known by its name there.
    """
    by_package: dict[str, dict[str, Any]] = {}
    for module in PUBLIC:
        for name in import_module(module).__all__:
            value = getattr(import_module(module), name)
            at_top = module != "fewbench" and getattr(fewbench, name, None) is value
            if name == "__version__" or at_top:
                continue
            # The catalogue is a mapping, which does not say where it is defined.
            top = getattr(value, "__module__", "fewbench.methods")
            package = (top if module == "fewbench" else module).split(".")[1]
            by_package.setdefault(package, {})[f"{module}.{name}"] = value
    return {name: by_package[name] for name in sorted(by_package, key=title)}


def title(package: str) -> str:
    """Return the title of a package's page."""
    return TITLES.get(package, package.capitalize())


def python_page(package: str, names: dict[str, Any]) -> str:
    """Return a page of the Python reference: the top level first, and functions before classes."""
    lines = [f"# {title(package)}", ""]
    for known in sorted(names, key=lambda name: (name.count("."), inspect.isclass(names[name]))):
        value, name = names[known], known.rpartition(".")[2]
        if known == "fewbench.CATALOGUE":
            said = "All methods by name: see [the list](../../methods/README.md)."
            lines += [f"## `{known}`", "", said, ""]
        elif hasattr(value, "__qualname__"):
            place = f"{value.__module__}.{value.__qualname__}"
            lines += [f"::: {place}", "    options:", f"      heading: {known}"]
            lines += [f"      toc_label: {name}", "      heading_level: 2", ""]
        else:  # a table of things by name, or a type
            said = ", ".join(f"`{key}`" for key in value) if isinstance(value, dict) else ""
            lines += [f"## `{known}`", "", said or f"`{value}`", ""]
    return "\n".join(lines)


def commands_page() -> str:
    """Return the reference of the command line."""
    summary, _, examples = help_of(get_command(app))
    lines = ["# Commands", "", summary, "", f"```\n{examples}\n```", ""]
    lines += ["`fewbench COMMAND --help` prints what stands here.", ""]
    lines += ["| command | |", "|---|---|"]
    for name, listed in COMMANDS.items():
        lines.append(f"| [`{name}`](#{anchor(name)}) | {listed.summary} |")
    for name in COMMANDS:
        for words, command in walk(name, load_command(name)):
            lines += ["", *command_lines(words, command)]
    return "\n".join(lines) + "\n"


def walk(words: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Give a command and the commands below it, each with the words that call it."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(f"{words} {name}", below)


def command_lines(words: str, command: Any) -> Iterator[str]:
    """Give the reference of a command as lines of Markdown."""
    depth = "##" if " " not in words else "###"
    yield from (f"{depth} `fewbench {words}` {{ #{anchor(words)} }}", "")
    summary, rest, examples = help_of(command)
    yield from (summary, "")
    if rest:
        yield from (rest, "")
    if examples:
        yield from ("```", examples, "```", "")
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    shown = [one for one in shown if one.name != "help"]
    if shown:
        yield from ("| argument or option | |", "|---|---|")
        yield from (parameter_line(one) for one in shown)


def parameter_line(parameter: Any) -> str:
    """Return a row of the table of arguments and options."""
    if parameter.param_type_name == "argument":
        names = [parameter.metavar or parameter.name.upper()]
    else:
        names = [*parameter.opts, *parameter.secondary_opts]
    said = getattr(parameter, "help", None) or ""
    notes = []
    if parameter.required:
        notes.append("required")
    default = parameter.default
    if isinstance(default, str | int | float) and not isinstance(default, bool):
        notes.append(f"default: {default}")
    more = f" *({'; '.join(notes)})*" if notes else ""
    code = ", ".join(f"`{name}`" for name in names)
    return f"| {code} | {cell(said)}{more} |"


def cell(text: str) -> str:
    """Return text for a cell of a table; what stands in backquotes stays as it is."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"([*_])", r"\\\1", escape(parts[at], quote=False))
    return "`".join(parts)


def help_of(command: Any) -> tuple[str, str, str]:
    """Return the first paragraph of a help text, the other paragraphs, and the examples."""
    text = inspect.cleandoc(command.help or "")
    text, _, examples = text.partition("\b\n")
    examples, _, after = examples.partition("\n\n")
    summary, _, rest = text.partition("\n\n")
    paragraphs = [
        # Lists keep their lines.
        f"```\n{one[2:].rstrip()}\n```" if one.startswith("\b\n") else escape(one, quote=False)
        for one in (*rest.split("\n\n"), *after.split("\n\n"))
        if one.strip()
    ]
    return summary.strip(), "\n\n".join(paragraphs), examples.strip()


def anchor(words: str) -> str:
    """Return the anchor of a command: fewbench-run-lm-eval."""
    return f"fewbench-{words.replace(' ', '-')}"


if __name__ == "__main__":
    main()
