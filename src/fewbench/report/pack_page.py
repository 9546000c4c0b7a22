"""The page of a pack."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from fewbench._names import counted
from fewbench.charts import deciding
from fewbench.packs import Pack
from fewbench.report.frame import Charts
from fewbench.report.plan_page import TARGETS
from fewbench.report.sections import Section, Table, placed, render_sections

MOST_ITEMS = 2000


def render_pack(pack: Pack) -> str:
    """The page of a pack: what it holds, how good it is, and how to use it."""
    made, charts = pack.to_dict(), Charts()
    sections = [_benchmark(at, one, pack, charts) for at, one in enumerate(made["benchmarks"])]
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
    return render_sections(
        charts, over="pack", title=f"Pack {made['name']}", answer=answer, sections=sections
    )


def _benchmark(at: int, one: Mapping[str, Any], pack: Pack, charts: Charts) -> Section:
    rows = one["backtest"]
    span = pack.scores(one["benchmark"]).scale
    bars = [
        {"name": TARGETS.get(row["target"], row["target"]), "value": row["error"],
         "low": row.get("error_low"), "high": row.get("error_high"), "color": "m0"}
        for row in rows
    ]  # fmt: skip
    keys = list(dict.fromkeys(key for row in rows for key in row))
    tables = []
    if rows:
        head = [(key.replace("_", " "), key != "target") for key in keys]
        words = [[_word(row.get(key)) for key in keys] for row in rows]
        tables.append(Table(f"backtest-{at}", "Backtest", head, words))
    if one["chosen_items"]:
        items = [[str(item)] for item in one["chosen_items"][:MOST_ITEMS]]
        title = f"The {len(one['chosen_items']):,} items"
        tables.append(
            Table(f"items-{at}", title, [("Item", False)], items, "an item", folded=title)
        )
    facts = {
        "Method": one["method"], "Items": f"{one['items']:,} of {one['of_items']:,}",
        "Asks": one["asks"], "Tasks": str(one["tasks"]),
        "Source models": f"{one['source_models']:,}, full scores from "
        f"{one['source_scores_low']:.4g} to {one['source_scores_high']:.4g}",
        "Seed": str(one["seed"]), "Fingerprint": one["fingerprint"], "fewbench": one["version"],
    }  # fmt: skip
    notes = ["Errors of the method on held-out source models, by how the target stands to them."]
    return Section(
        f"benchmark-{at}", one["benchmark"], notes if rows else ["It was not backtested."],
        charts=placed(charts, ("", deciding.errors(bars, span.high - span.low))) if bars else [],
        tables=tables, lines=list(one["notes"]), facts=facts,
    )  # fmt: skip


def _word(value: Any) -> str:
    if value is None or value != value:
        return "–"
    if isinstance(value, str):
        return TARGETS.get(value, value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
