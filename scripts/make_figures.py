"""Draw a figure of each paper from the record of its results.

python scripts/make_figures.py

Reads benchmarks/results, and writes docs/assets/papers/PAPER.svg, which docs/reproduced.md shows.
Lines are fewbench's, with one standard error; circles are printed in the paper.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt

from fewbench.show.charts.theme import LIGHT, finished, looks

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks/results"
TO = ROOT / "docs/assets/papers"
NUMBER = re.compile(r"[-+]?\d*\.?\d+")
WIDTH, HEIGHT = 680, 320


@dataclass(frozen=True)
class Figure:
    """A figure of a paper: the table of the record that it shows, and the names of its lines."""

    section: str
    table: str
    """How the first cell of the table's head begins."""
    x: str
    y: str
    lines: Mapping[str, str]
    """First cell of a row, up to its label, to the name of its line."""


FIGURES = {
    "tailoredbench": Figure(
        "TailoredBench on GSM8K, the paper's sources and targets",
        "error (pp)",
        "items",
        "error on GSM8K (pp)",
        {
            "`tailored`": "TailoredBench",
            "`gp-irt-random`": "gp-IRT",
            "`random`": "random",
            "`anchor-points-correlation`": "AnchorPoints",
        },
    ),
    "collaborative": Figure(
        "Two-stage collaborative filtering on MATH-hard and MuSR",
        "error of a task (pp)",
        "share of the items (%)",
        "error of a task on MATH-hard and MuSR (pp)",
        {
            "`collaborative`": "collaborative filtering",
            "`stratified(minimum=20)+mean`": "random",
            "`clusters(minimum=20)+mean`": "clustering",
            "`gp-irt-anchor`": "tinyBenchmarks",
            "`sort-and-search`": "Sort & Search",
        },
    ),
    "bento": Figure(
        "The published lists, by number of tasks",
        "NRMSE",
        "tasks",
        "NRMSE of “sim” less that of “le” on MMLU",
        {
            "BenTo: sim less le (Figure 3)": "BenTo",
            "BM25: sim less le (Figure 3)": "BM25",
        },
    ),
    "disco": Figure(
        "DISCO by number of items on MMLU (Figure 5)",
        "error (pp), checkpoints held out",
        "items",
        "error on MMLU, checkpoints held out (pp)",
        {
            "`disco-pds-rf`": "DISCO, forest",
            "`disco-pds-knn`": "DISCO, neighbor",
            "`random`": "random",
            "`random-ridge`": "ridge on random items",
        },
    ),
}


def rows_of(name: str) -> list[dict[str, Any]]:
    """Return the points of a paper's figure: method, x, y, its standard error, and whose it is."""
    figure = FIGURES[name]
    text = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    table = list(_table(text.partition(f"\n## {figure.section}\n")[2], figure.table))
    at = [float(NUMBER.findall(cell)[0]) for cell in table[0] if NUMBER.search(cell)]
    found, line = [], None
    for first, *cells in table[2:]:
        line = next((x for x in figure.lines if first == x or first.startswith(f"{x} ")), line)
        if first and not any(first == x or first.startswith(f"{x} ") for x in figure.lines):
            line = None
        by = cells[0] if len(cells) > len(at) else "fewbench"
        if line is None or by == "difference" or by.startswith("z of"):
            continue
        for x, cell in zip(at, cells[-len(at) :], strict=True):
            values = [float(number) for number in NUMBER.findall(cell)]
            if values:
                found.append(
                    {"method": figure.lines[line], "x": x, "y": values[0]}
                    | {"se": values[1] if len(values) > 1 else 0.0, "by": by}
                )
    return found


def _table(text: str, head: str) -> Iterator[list[str]]:
    """Yield the cells of the rows of the first table whose head begins so."""
    inside = False
    for line in text.splitlines():
        inside = inside or line.startswith(f"| {head}")
        if inside and not line.startswith("|"):
            return
        if inside:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def chart(name: str) -> alt.LayerChart:
    """Return a paper's figure."""
    figure, rows = FIGURES[name], rows_of(name)
    names = list(figure.lines.values())
    seen = looks(names)
    color = alt.Color(
        "method:N",
        scale=alt.Scale(domain=names, range=[seen[one].hex for one in names]),
        legend=alt.Legend(title=None, labelFontSize=13, symbolOpacity=1),
    )
    x = alt.X("x:Q", title=figure.x, axis=alt.Axis(values=sorted({row["x"] for row in rows})))
    if name == "disco":
        x = x.scale(type="log")
    y = alt.Y("y:Q", title=figure.y)
    own = [row for row in rows if row["by"] == "fewbench"]
    ends = [row | {"low": row["y"] - row["se"], "high": row["y"] + row["se"]} for row in own]
    layers = [
        alt.Chart(alt.Data(values=ends))
        .mark_area(opacity=0.15)
        .encode(x, alt.Y("low:Q", title=figure.y), alt.Y2("high:Q"), color),
        alt.Chart(alt.Data(values=own)).mark_line(strokeWidth=2).encode(x, y, color),
        alt.Chart(alt.Data(values=[row for row in rows if row["by"] != "fewbench"]))
        .mark_point(size=55, filled=False, strokeWidth=1.6)
        .encode(x, y, color),
    ]
    if min(row["y"] for row in rows) < 0:
        zero = alt.Chart(alt.Data(values=[{"y": 0}]))
        layers.insert(0, zero.mark_rule(color=LIGHT["ref"]).encode(alt.Y("y:Q")))
    told = f"{figure.y} by {figure.x}: {', '.join(names)}"
    shown = finished(alt.layer(*layers), told, HEIGHT, WIDTH)
    return shown.configure_legend(disable=False)


def main() -> None:
    TO.mkdir(parents=True, exist_ok=True)
    for name in FIGURES:
        chart(name).save(TO / f"{name}.svg")


if __name__ == "__main__":
    main()
