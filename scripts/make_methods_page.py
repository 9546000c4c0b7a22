"""Make docs/methods/README.md: every method of the catalogue, with its page where it has one.

python scripts/make_methods_page.py
"""

from pathlib import Path

from fewbench.methods import CATALOGUE

FOLDER = Path(__file__).parents[1] / "docs" / "methods"

HEAD = """# Methods

Every method that `fewbench methods` lists, made by `python scripts/make_methods_page.py`. Their
numbers on ten real tables stand in [baselines.md](../baselines.md). What is adaptive is described
in [adaptive.md](../adaptive.md), item response models in [irt.md](../irt.md), what chooses tasks in
[tasks.md](../tasks.md), DISCO and random sampling in [results.md](../results.md). The parts can be
combined and set otherwise.

| method | what it does | parts | source |
|---|---|---|---|
"""


def page() -> str:
    """Return the page."""
    described = _described()
    rows = []
    for name, entry in CATALOGUE.items():
        where = described.get(name)
        linked = f"[`{name}`]({where})" if where else f"`{name}`"
        rows.append(f"| {linked} | {entry.summary} | `{entry.parts}` | {entry.citation} |")
    return HEAD + "\n".join(rows) + "\n"


def _described() -> dict[str, str]:
    """Return the page of each method that has one: pages name their methods where numbers go."""
    mark = "<!-- numbers: "
    return {
        line.removeprefix(mark).split(" ")[0]: path.name
        for path in sorted(FOLDER.glob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith(mark)
    }


if __name__ == "__main__":
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")
