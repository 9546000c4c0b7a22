"""Generated parts of pages that people write: filled between markers, the rest left alone."""

import re
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from _baselines.figures import AT, Cells, overall
from _baselines.tables import BUDGETS, LIKE, SPLITS, STRONGER
from _baselines.words import MISSING, bare, interval, points

NUMBERS = re.compile(r"(<!-- numbers: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
CLAIMS = re.compile(r"<!-- claims -->\n(.*?)<!-- end claims -->", re.DOTALL)
SHOWN = (10, 30, 100)
ADVISED = {
    LIKE: ("fewbench", "greedy-ridge", "fewbench-static"),
    STRONGER: ("fewbench", "fewbench-static", "aipw"),
}
"""Whom README advises, by regime: chosen by hand from the page, best first."""


class MarkerError(Exception):
    """Markers in a page that are not in pairs, or name what is not known."""


def fill(text: str, blocks: dict[str, str], where: str = "the page") -> str:
    """Put the blocks between `<!-- numbers: NAME -->` and `<!-- end -->`.

    A NAME without a block is an error, as is a marker without its end: neither may stay as it
    was, and be taken for new.
    """
    opened = re.findall(r"<!-- numbers:", text)
    closed = re.findall(r"<!-- end -->", text)
    pairs = NUMBERS.findall(text)
    if not len(opened) == len(closed) == len(pairs) or any("<!--" in pair[2] for pair in pairs):
        raise MarkerError(f"{where}: {len(opened)} opening and {len(closed)} closing markers")
    unknown = [name for _, name, _, _ in pairs if name not in blocks]
    if unknown:
        raise MarkerError(f"{where}: no figures of {unknown[0]!r}")
    return NUMBERS.sub(lambda m: f"{m[1]}{blocks[m[2]].rstrip()}\n{m[4]}", text)


def kept_claims(text: str) -> str | None:
    """Return what stands between the markers of the claims, or None if there are none."""
    if text.count("<!-- claims -->") != text.count("<!-- end claims -->"):
        raise MarkerError("<!-- claims --> and <!-- end claims --> are not a pair")
    found = CLAIMS.search(text)
    return None if found is None else found[1]


def check_pages(folder: Path, methods: Collection[str]) -> list[str]:
    """Return the methods that no page of a folder shows; MarkerError where one cannot be filled."""
    shown: set[str] = set()
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        fill(text, dict.fromkeys(methods, ""), path.name)
        shown |= {name for _, name, _, _ in NUMBERS.findall(text)}
    return [name for name in methods if name not in shown]


def fill_pages(folder: Path, cells: Cells, methods: Collection[str]) -> None:
    """Put every method's figures in the pages of a folder."""
    blocks = {method: block(cells, method) for method in methods}
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        filled = fill(text, blocks, path.name)
        if filled != text:
            path.write_text(filled, encoding="utf-8")


def advice(cells: Cells) -> str:
    """Return the advised methods of each regime, with their ratios and their worst table."""
    titles = {LIKE: "like the source models", STRONGER: "stronger than all source models"}
    budgets = [budget for budget in BUDGETS if budget in set(cells.rows["budget"])]
    shown = " / ".join(map(str, budgets))
    lines = [
        f"| your model is | method | error at {shown} items | worst table at {AT} items |",
        "|---" * 4 + "|",
    ]
    for split, names in ADVISED.items():
        table = overall(cells, split)
        known = {} if table.empty else table.set_index("method").to_dict("index")
        for name in names:
            if name in known:
                row = known[name]
                ratios = " / ".join(bare(row[budget].value) for budget in budgets)
                worst = f"{bare(row['worst'].value)} ({row['worst_table']})"
                lines.append(f"| {titles[split]} | `{name}` | {ratios} | {worst} |")
    return "\n".join(lines)


def block(cells: Cells, method: str) -> str:
    """Return a method's own table: at a few budgets its error, random sampling's, the ratio."""
    mine = cells.of(method=method)
    if mine.empty:
        return "It could run on none of the tables: [why](../baselines.md#left-out)."
    budgets = [budget for budget in SHOWN if budget in set(mine["budget"])]
    lines = [
        "Error in percentage points, (the expected error of random sampling), their ratio "
        "[90 % interval]; below 1 is better. "
        "[How it was measured, and all methods](../baselines.md).",
        "",
        "| table, split | " + " | ".join(f"{budget} items" for budget in budgets) + " |",
        "|---" * (len(budgets) + 1) + "|",
    ]
    small = []
    for split in SPLITS:
        of_split = mine[mine["split"] == split]
        for table, rows in of_split.groupby("table", sort=False):
            at = rows.set_index("budget")
            said = [_figures(at.loc[b]) if b in at.index else MISSING for b in budgets]
            lines.append(f"| {table}, {split} | {' | '.join(said)} |")
            if not cells.counts(table, split) and table not in small:
                small.append(table)
    for split in SPLITS:
        of_split = mine[mine["split"] == split]
        if sum(cells.counts(table, split) for table in of_split["table"].unique()) > 1:
            mean = [
                cells.over({row.table: row.ratio.value for row in rows.itertuples()}, split)
                for rows in (of_split[of_split["budget"] == b] for b in budgets)
            ]
            lines.append(f"| all, {split} | {' | '.join(interval(one) for one in mean)} |")
    if small:
        lines += ["", f"Too few targets to count in the means: {', '.join(small)}."]
    if LIKE in set(mine["split"]) and "llmub_mmlu" in set(mine["table"]):
        lines += ["", "`random` of llmub_mmlu: whole checkpoints are held out."]
    return "\n".join(lines)


def _figures(row: pd.Series) -> str:
    return f"{points(row['mae'].value)} ({points(row['random'])}) {interval(row['ratio'])}"
