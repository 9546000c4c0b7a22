"""Write the pages and numbers that come from benchmarks/results and from the catalogue.

python scripts/make_results.py

Writes docs/results.md and docs/methods/README.md, and fills the tables of README.md and
docs/methods/*.md: the numbers of methods between `<!-- numbers: METHOD METHOD … -->` and
`<!-- end -->`, and a table of a file by `<!-- numbers: FILE | HEADING | FIRST CELL -->`.
"""

import re
from pathlib import Path

import pandas as pd

from fewbench.methods import CATALOGUE
from fewbench.methods.catalogue import ADVICE, WITH_FILE

ALL = {**CATALOGUE, **WITH_FILE}
ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/methods"
DATA = ROOT / "benchmarks/results"
AT = 50
REGIMES = {
    "random": "like the source models",
    "performance": "stronger than all source models",
    "gap": "far stronger",
    "weakest": "weaker than all source models",
    "gap below": "far weaker",
}
"""Splits of the study, and how their targets compare to the source models."""
BLOCK = re.compile(r"(<!-- numbers: ([^>]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
ADVISED = "advice"

METHODS_HEAD = """# Methods

Start with [`fewbench`](fewbench.md), and compare it with other methods on your table: `fewbench
compare scores.parquet`. [Results](../results.md) compares all methods on ten real tables. `fewbench
methods NAME` prints a method's parts, settings and source. The pages below also cover variants: to
choose items at random, to compare with a paper, or to combine parts. `fewbench methods --all` lists
them.

"""

RESULTS_HEAD = """# Results

This page compares methods on ten real tables of scores, with the same models, items and random
seeds. The pages of the [methods](methods/README.md) have the numbers of their variants.

- Each number is a method's mean absolute error of the full score at **50 items**, divided by the
  **expected error of random sampling** with the same number of items. Below 1, the method is
  better.
- The numbers are geometric means over nine tables, with the 90% interval to expect on a further
  table of this kind. Tables that share models (the four HELM tables, the two GLUE tables) count as
  one. A single table may be much worse: the methods' pages name the worst one. For your own
  table, run `fewbench compare`.
- **Like the source models**: the targets are a random quarter of the models (on llmub_mmlu, whole
  checkpoints). **Stronger**: the targets are the strongest quarter. **Far stronger**: the targets
  are the strongest 30%, and the source models are the weakest half. **Weaker** and **far weaker**
  are the same at the other end, measured for the recommended methods.
- `random` differs from 1 by chance; one in ten of its intervals excludes 1.

Most methods learn from source models. They beat random sampling for targets like the source
models, but not for stronger or weaker targets.

"""

RESULTS_END = """
`fewbench` and `fewbench-static` were measured later than the other methods, on the same splits.
Methods that use texts were not measured: the tables have none. [fewbench beside
others](beside-others.md) compares newer methods.

## The tables

Duplicate models are left out. `mmlu_pro_32` has fewer than 15 targets and is not included in the
means. `benchmarks/results/tables.csv` in the repository counts targets, near copies among the
source models, and targets above all source models.

"""

FILES = """
## All numbers

`benchmarks/results/methods.csv` in the repository has the numbers of every table, split, budget
(10, 20, 30, 50, 100 items) and method, also of methods outside the package: `error` and `random`
(the expected error of random sampling) in percentage points; `ratio` with its 90% interval;
Kendall's `tau` between estimates and full scores; and `best`, which is 1 if the error cannot be
distinguished from the lowest error.

`python benchmarks/baselines.py FOLDER` measures all methods again from a folder with the tables,
and `python scripts/make_results.py` writes this page.
"""


def load() -> pd.DataFrame:
    """Return the numbers, indexed by table, split, budget and method."""
    rows = pd.read_csv(DATA / "methods.csv", keep_default_na=True)
    return rows.set_index(["table", "split", "budget", "method"]).sort_index()


def bare(value: float) -> str:
    """Write a ratio without the zero before its point."""
    return f"{value:.2f}".replace("0.", ".", 1) if value < 1 else f"{value:.2f}"


def mean(rows: pd.DataFrame, split: str, method: str, budgets: tuple[int, ...]) -> str:
    """Write the means over tables at several budgets."""
    return " / ".join(bare(rows.loc["all", split, b, method]["ratio"]) for b in budgets)


def worst(rows: pd.DataFrame, split: str, method: str) -> str:
    """Write the largest ratio at 50 items, with its table."""
    table = rows.loc["all", split, AT, method]["worst_table"]
    return f"{bare(rows.loc[table, split, AT, method]['ratio'])} ({table})"


def results_page(rows: pd.DataFrame) -> str:
    """Return the page with a row for each method to choose from."""
    lines = [f"| method | {' | '.join(REGIMES.values())} |", "|---" * (1 + len(REGIMES)) + "|"]
    pages = pages_of_methods()
    for method in rows.loc["all", "random", AT].sort_values("ratio", kind="stable").index:
        if method not in ALL or not ALL[method].is_main:
            continue
        cells = [f"[`{method}`](methods/{pages[method]})"]
        for split in REGIMES:
            if (key := ("all", split, AT, method)) not in rows.index:
                cells.append("–")
                continue
            row = rows.loc[key]
            interval = f"[{bare(row['low'])}, {bare(row['high'])}]"
            cells.append(f"{bare(row['ratio'])} {interval}")
        lines.append(f"| {' | '.join(cells)} |")
    return RESULTS_HEAD + "\n".join(lines) + "\n" + RESULTS_END + tables() + FILES


def tables() -> str:
    """Return the size of each table, one line a table."""
    rows = pd.read_csv(DATA / "tables.csv").drop_duplicates("table")
    lines = ["| table | models | items | tasks |", "|---" * 4 + "|"]
    for row in rows.itertuples():
        lines.append(f"| {row.table} | {row.models} | {row.items:,} | {row.tasks} |")
    return "\n".join(lines) + "\n"


def block(rows: pd.DataFrame, methods: list[str]) -> str:
    """Return the table of a page's methods."""
    known = [name for name in methods if name in rows.loc["all", "random", AT].index]
    lines = [
        "Error relative to random sampling at 10 / 50 / 100 items ([details](../results.md)).",
        "",
        "| method | like the source models | stronger than all source models |",
        "|---" * 3 + "|",
    ]
    for name in known:
        cells = [
            f"{mean(rows, split, name, (10, AT, 100))}<br>worst {worst(rows, split, name)}"
            for split in ("random", "performance")
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    if len(known) < len(methods):
        names = ", ".join(f"`{name}`" for name in methods if name not in known)
        lines += ["", f"Not measured: {names}. [Results](../results.md) gives the reason."]
    return "\n".join(lines if known else lines[-1:]) + "\n"


def advice(rows: pd.DataFrame) -> str:
    """Return the recommended methods for targets like the source models, and beyond them."""
    budgets = (10, 20, 30, AT, 100)
    lines = [
        f"| your model is | method | error at {' / '.join(map(str, budgets))} items "
        f"| worst table at {AT} items |",
        "|---" * 4 + "|",
    ]
    ends = zip(("random", "performance", "weakest"), (*ADVICE[:2], ADVICE[1]), strict=True)
    for split, one in ends:
        for name in one.methods:
            ratios = mean(rows, split, name, budgets)
            lines.append(f"| {REGIMES[split]} | `{name}` | {ratios} | {worst(rows, split, name)} |")
    return "\n".join(lines) + "\n"


def table_of(file: str, heading: str, first: str) -> str:
    """Return the table below a heading whose first cell is given; ValueError if there is none."""
    text = (DATA / file).read_text(encoding="utf-8")
    _, _, section = text.partition(f"## {heading}\n")
    for part in section.partition("\n## ")[0].split("\n\n"):
        if part.strip().startswith(f"| {first} |"):
            return part.strip() + "\n"
    raise ValueError(f"{file} has no table {first!r} below {heading!r}")


def filled(text: str, rows: pd.DataFrame, where: str) -> str:
    """Fill the blocks of a page; ValueError for unpaired markers or unknown methods."""
    if not text.count("<!-- numbers:") == text.count("<!-- end -->") == len(BLOCK.findall(text)):
        raise ValueError(f"{where}: markers <!-- numbers: … --> and <!-- end --> are not in pairs")

    def fill(match: re.Match[str]) -> str:
        if "|" in match[2]:
            return match[1] + table_of(*match[2].split(" | ")) + match[4]
        names = match[2].split()
        unknown = sorted(set(names) - {ADVISED, *CATALOGUE})
        if unknown:
            raise ValueError(f"{where}: {unknown[0]!r} is not in the catalogue")
        return match[1] + (advice(rows) if names == [ADVISED] else block(rows, names)) + match[4]

    return BLOCK.sub(fill, text)


def methods_page() -> str:
    """Return the list of methods to choose from."""
    at = pages_of_methods() | dict.fromkeys(WITH_FILE, "tasks.md")
    lines = ["| method | what it does |", "|---|---|"]
    for name in [name for name in ALL if ALL[name].is_main]:
        typed = WITH_FILE[name].parts if name in WITH_FILE else name
        lines.append(f"| [`{typed}`]({at[name]}) | {ALL[name].summary} |")
    return METHODS_HEAD + "\n".join(lines) + "\n"


def pages() -> list[Path]:
    """Return the pages of methods."""
    found = sorted(FOLDER.glob("*.md"), key=lambda path: (path.stem != "fewbench", path.stem))
    return [path for path in found if path.name != "README.md"]


def pages_of_methods() -> dict[str, str]:
    """Return the file name of each method's page."""
    return {method: path.name for path in pages() for method in methods_of(path)}


def methods_of(path: Path) -> list[str]:
    """Return the methods whose numbers a page shows, in the page's order."""
    found = BLOCK.findall(path.read_text(encoding="utf-8"))
    return [name for _, names, _, _ in found if "|" not in names for name in names.split()]


def made() -> dict[Path, str]:
    """Return the text of every page that this script writes or fills."""
    rows = load()
    found = {ROOT / "docs/results.md": results_page(rows), FOLDER / "README.md": methods_page()}
    for path in [*pages(), ROOT / "README.md"]:
        found[path] = filled(path.read_text(encoding="utf-8"), rows, path.name)
    return found


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
