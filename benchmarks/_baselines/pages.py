"""Generated parts of pages that people write: filled between markers, the rest left alone."""

import re
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from _baselines.figures import Interval, over_tables
from _baselines.tables import LIKE, SPLITS
from _baselines.words import MISSING, interval, points

NUMBERS = re.compile(r"(<!-- numbers: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
CLAIMS = re.compile(r"<!-- claims -->\n(.*?)<!-- end claims -->", re.DOTALL)
SHOWN = (10, 30, 100)


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


def fill_pages(folder: Path, cells: pd.DataFrame, methods: Collection[str]) -> None:
    """Put every method's figures in the pages of a folder."""
    blocks = {method: block(cells, method) for method in methods}
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        filled = fill(text, blocks, path.name)
        if filled != text:
            path.write_text(filled, encoding="utf-8")


def block(cells: pd.DataFrame, method: str) -> str:
    """Return a method's own table: at a few budgets its error, random sampling's, the ratio."""
    mine = cells[cells["method"] == method]
    if mine.empty:
        return "It could run on none of the tables: [why](../baselines.md#left-out)."
    budgets = [budget for budget in SHOWN if budget in set(mine["budget"])]
    lines = [
        "Error in percentage points, (that of random sampling), their ratio [95 % interval]; "
        "below 1 is better. [How it was measured, and all methods](../baselines.md).",
        "",
        "| table, split | " + " | ".join(f"{budget} items" for budget in budgets) + " |",
        "|---" * (len(budgets) + 1) + "|",
    ]
    for split in SPLITS:
        of_split = mine[mine["split"] == split]
        for table, rows in of_split.groupby("table", sort=False):
            at = rows.set_index("budget")
            said = [_figures(at.loc[b]) if b in at.index else MISSING for b in budgets]
            lines.append(f"| {table}, {split} | {' | '.join(said)} |")
    for split in SPLITS:
        of_split = mine[mine["split"] == split]
        if of_split["table"].nunique() > 1:
            mean = [over_tables(of_split.loc[of_split["budget"] == b, "ratio"]) for b in budgets]
            lines.append(f"| all, {split} | {' | '.join(interval(one) for one in mean)} |")
    if LIKE in set(mine["split"]) and "llmub_mmlu" in set(mine["table"]):
        lines += ["", "`random` of llmub_mmlu: whole checkpoints are held out."]
    return "\n".join(lines)


def _figures(row: pd.Series) -> str:
    against = Interval(row["ratio"], row["ratio_low"], row["ratio_high"])
    return f"{points(row['mae'])} ({points(row['random'])}) {interval(against)}"
