"""The page of a pack."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from fewbench._names import counted, fixed, score_digits
from fewbench._page import Page, Section, Table
from fewbench.charts import deciding
from fewbench.packs import Pack
from fewbench.report.words import percent

MOST_ITEMS = 2000
TARGETS = {
    "like": "Like the source models",
    "family": "Of a new family",
    "stronger": "Stronger than all source models",
}
HEAD = [
    ("Target", False), ("Error", True), ("90% interval", True), ("Random sampling errs", True),
    ("Interval of an estimate", True), ("Holds in", True), ("Targets", True), ("Sources", True),
]  # fmt: skip


def page(pack: Pack) -> Page:
    """What a pack shows: what it holds, how good it is, and how to use it."""
    made = pack.to_dict()
    sections = [_benchmark(at, one, pack) for at, one in enumerate(made["benchmarks"])]
    path = quote(str(pack.source if pack.source.suffix else f"{pack.source}.few"))
    about = {
        key.capitalize(): str(made[key]) for key in ("name", "license", "cite") if made.get(key)
    }
    use = [f"fewbench start {path} -o run", f"fewbench run command {path} -o run -- PROGRAM"]
    sections.append(Section("use", "Use it", facts=about, commands=use))
    first = made["benchmarks"][0]
    answer = f"{first['items']:,} of {counted(first['of_items'], 'item')} stand for all"
    if len(made["benchmarks"]) > 1:
        answer = counted(len(made["benchmarks"]), "benchmark") + ", a few items of each"
    return Page("pack", f"Pack {made['name']}", answer, sections=sections)


def _benchmark(at: int, one: Mapping[str, Any], pack: Pack) -> Section:
    rows = one["backtest"]
    span = pack.scores(one["benchmark"]).scale
    bars = [
        {"name": TARGETS.get(row["target"], row["target"]), "value": row["error"],
         "low": row.get("error_low"), "high": row.get("error_high"), "color": "m0"}
        for row in rows
    ]  # fmt: skip
    tables = []
    if rows:
        tables.append(Table("Backtest", HEAD, [_words(row) for row in rows]))
    if one["chosen_items"]:
        items = [[str(item)] for item in one["chosen_items"][:MOST_ITEMS]]
        title = f"The {len(one['chosen_items']):,} items"
        tables.append(Table(title, [("Item", False)], items, "an item", folded=title))
    facts = {
        "Method": one["method"], "Items": f"{one['items']:,} of {one['of_items']:,}",
        "Asks": one["asks"], "Tasks": str(one["tasks"]),
        "Source models": f"{one['source_models']:,}, full scores from "
        f"{one['source_scores_low']:.4g} to {one['source_scores_high']:.4g}",
        "Seed": str(one["seed"]), "Fingerprint": one["fingerprint"], "fewbench": one["version"],
    }  # fmt: skip
    notes = ["It was not backtested."]
    if rows:
        stated = f"; intervals are stated at {rows[0]['level']:.0%}" if rows[0].get("level") else ""
        notes = [
            "Mean error of the method on held-out source models, for three kinds of target. Read "
            "the line that your model is like.",
            f"Means over {rows[0]['repeats']} repeats{stated}.",
        ]
    notes += [f"{said[:1].upper()}{said[1:]}." for said in one["notes"]]
    return Section(
        f"benchmark-{at}", one["benchmark"], notes,
        charts=[("", lambda: deciding.errors(bars, span.high - span.low))] if bars else [],
        tables=tables, facts=facts,
    )  # fmt: skip


def _words(row: Mapping[str, Any]) -> list[str]:
    digits = score_digits(row["error"])
    low, high = row.get("error_low"), row.get("error_high")
    half, holds = row.get("half_width"), row.get("coverage")
    return [
        TARGETS.get(row["target"], row["target"]), fixed(row["error"], digits),
        "–" if low is None or high is None
        else f"{fixed(low, digits)} to {fixed(high, digits)}",
        fixed(row["random_error"], digits),
        "–" if half is None or half != half else f"±{fixed(half, digits)}",
        "–" if holds is None else percent(holds),
        f"{row['targets']:,.0f}", f"{row['sources']:,.0f}",
    ]  # fmt: skip
