"""Make docs/methods/README.md: a list of all methods, each with a link to its page.

python scripts/make_methods_page.py
"""

from pathlib import Path

from fewbench.methods import CATALOGUE

FOLDER = Path(__file__).parents[1] / "docs" / "methods"

HEAD = """# Methods

All methods that `fewbench methods` lists, each with a link to its page. A page says what the method
does, what it assumes, when to use it and when not. Some pages cover several close methods.
[baselines.md](../baselines.md) compares all methods on ten real tables.

Background: [adaptive methods](../adaptive.md), [item response models](../irt.md),
[choosing tasks](../tasks.md), [results of DISCO and random sampling](../results.md). You can
combine the parts of methods in other ways and change their settings.

This list is made by `python scripts/make_methods_page.py`.

| method | what it does | parts | source |
|---|---|---|---|
"""


def page() -> str:
    """Return the text of the list; KeyError if a method has no page."""
    pages = pages_of_methods()
    rows = []
    for name, entry in CATALOGUE.items():
        link = f"[`{name}`]({pages[name]})"
        rows.append(f"| {link} | {entry.summary} | `{entry.parts}` | {entry.citation} |")
    return HEAD + "\n".join(rows) + "\n"


def pages_of_methods() -> dict[str, str]:
    """Return the file name of each method's page: a page names its methods where numbers go."""
    return {
        method: path.name for path in sorted(FOLDER.glob("*.md")) for method in methods_of(path)
    }


def methods_of(path: Path) -> list[str]:
    """Return the methods that a page has a block of numbers for, in the page's order."""
    mark = "<!-- numbers: "
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(mark).split(" ")[0] for line in lines if line.startswith(mark)]


if __name__ == "__main__":
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")
