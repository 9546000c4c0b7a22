"""docs/baselines.md: all methods over all tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from _baselines.cells import Record
from _baselines.figures import AT, NONE, Interval, by_cell, frame, overall
from _baselines.left_out import left_out
from _baselines.tables import BUDGETS, LIKE, SPLITS, STRONGER, TABLES, Loaded, Table
from _baselines.words import MISSING, bare, give_or_take, interval, points

COMMAND = "python benchmarks/baselines.py FOLDER -o docs/baselines.md --pages docs/methods"
NO_CLAIMS = "*Not written yet.*\n"

HEAD = """# All methods on all tables

Every method of the catalogue on ten tables of scores, each with the settings of its paper, on the
same items drawn, models divided and seeds. The tables are not part of fewbench; with a folder that
holds them, the command at the end makes this page, all but the section on the papers' claims.

- **Error** (MAE): mean absolute error of the targets' full score, in percentage points. **tau**:
  Kendall's tau between the targets' estimates and their full scores. ± is one standard error over
  repeats; there is none where nothing varies.
- **Ratio**: the method's error over that of plain random sampling (`random`) with as many items, on
  the same divisions of the models. Below 1 the method is better. In brackets the 95 % interval.
- **Random split**: the targets are a quarter of the models, drawn at random, so they are like the
  sources; each repeat draws anew. On llmub_mmlu, whose runs of one checkpoint are all but the same,
  whole checkpoints are held out instead. **Performance split**: the targets are the strongest
  quarter of the models; repeats differ only in what methods draw.
- Over tables the ratio is the geometric mean, and the interval is taken **over tables** (Student's
  t on the logarithms): it says what to expect of another table like these. The four HELM tables
  are of the same 83 models, and the two GLUE tables of the same 87, so it is rather too narrow.
  Within a table the interval is over repeats, and says nothing of other models or items. There is
  none of fewer than three tables or repeats. Methods that ran on fewer than half of the tables
  stand last.
- A method that learns from other models' answers can be far off where the targets are better than
  all of them; that is what the second table is there to show.
"""


@dataclass(frozen=True)
class Outcome:
    """All that is shown: the cells, the tables they are of, and what was not run."""

    records: Sequence[Record]
    tables: Sequence[Table]
    loaded: dict[str, Loaded]
    facts: dict[tuple[str, str], dict[str, str]]
    unrun: int
    versions: str


def page(outcome: Outcome, claims: str | None) -> str:
    """Write the page, with the claims that were written by hand."""
    cells = by_cell(frame(outcome.records))
    parts = [HEAD]
    if len(outcome.tables) < len(TABLES):
        names = ", ".join(table.name for table in outcome.tables)
        parts.append(f"**These are not all tables, but {names} alone.**\n")
    titles = {LIKE: "Targets like the sources", STRONGER: "Targets stronger than the sources"}
    for split in SPLITS:
        parts.append(f"## {titles[split]} ({split} split)\n")
        parts += [*summary(overall(cells, split)), ""]
    parts.append("## What holds of the papers' claims\n")
    parts.append(f"<!-- claims -->\n{NO_CLAIMS if claims is None else claims}<!-- end claims -->\n")
    parts.append("## The tables\n")
    parts += [*tables(outcome), ""]
    for table in outcome.tables:
        parts.append(f"## {table.name}\n")
        for split in SPLITS:
            mine = cells[(cells["table"] == table.name) & (cells["split"] == split)]
            if not mine.empty:
                parts += [*one_table(mine, table, split), ""]
    parts.append("## Left out\n")
    parts += [*left_out(outcome.records, outcome.loaded, outcome.unrun), ""]
    parts.append(f"## How this page is made\n\n```\n{COMMAND}\n```\n\n{outcome.versions}.")
    return "\n".join(parts) + "\n"


def summary(table: pd.DataFrame) -> Iterator[str]:
    """Write the methods over all tables, in the order given."""
    if table.empty:
        yield "No table was run."
        return
    budgets = [budget for budget in BUDGETS if budget in table.columns]
    at = AT if AT in budgets else budgets[-1]
    yield (
        "| method | "
        + " | ".join(f"ratio at {budget}" for budget in budgets)
        + f" | tau at {at}, less random's | worst table at {at} | tables |"
    )
    yield "|---" * (len(budgets) + 4) + "|"
    for row in table.to_dict("records"):
        ratios = " | ".join(_over(row[budget], row["tables"]) for budget in budgets)
        tau = give_or_take(bare(row["tau_gain"], 3, "+"), bare(row["tau_gain_se"], 3))
        worst = f"{bare(row['worst'])} {row['worst_table']}".strip()
        if row["method"] == "random":
            ratios, tau, worst = " | ".join("1" for _ in budgets), MISSING, MISSING
        yield f"| `{row['method']}` | {ratios} | {tau} | {worst} | {row['tables']} |"


def _over(found: Interval, count: int) -> str:
    """Write a ratio, and of how many tables it is where that is not as at AT items."""
    return interval(found) + (f" ({found.count} tables)" if 0 < found.count != count else "")


def tables(outcome: Outcome) -> Iterator[str]:
    """Write what the tables are, and how the targets are to the sources."""
    yield (
        "Identical models are left out, as `fewbench audit FILE --drop duplicates` does. "
        "*Near-twin*: the share of targets whose answers correlate at .95 or more with those of a "
        "source. *Above*: the share that score above every source. The benchmarks of `bento/` are "
        "not here: they hold answers to single questions of five models only."
    )
    yield ""
    sides = "split | sources | targets | near-twin | above | repeats"
    yield f"| table | models | items | tasks | {sides} |"
    yield "|---" * 10 + "|"
    for table in outcome.tables:
        scores = outcome.loaded[table.name].scores
        for split in SPLITS:
            said = outcome.facts[table.name, split]
            ran = {r.repeat for r in outcome.records if (r.table, r.split) == (table.name, split)}
            kind = table.settings(split).kind
            head = f"{table.name} | {scores.n_models} | {scores.n_items} | {len(scores.tasks)}"
            row = [head if split == LIKE else "| | |", kind, *said.values(), str(len(ran))]
            yield f"| {' | '.join(row)} |"


def one_table(cells: pd.DataFrame, table: Table, split: str) -> Iterator[str]:
    """Write a table's errors and rank correlations, folded, best first."""
    budgets = [budget for budget in BUDGETS if budget in set(cells["budget"])]
    at = AT if AT in budgets else budgets[-1]
    kind = table.settings(split).kind
    name = f"{kind} split" + (", whole checkpoints held out" if kind == "group" else "")
    yield f"<details><summary>{name}: error (pp) ± standard error, tau</summary>\n"
    yield "| method | " + " | ".join(f"{budget} items" for budget in budgets) + " |"
    yield "|---" * (len(budgets) + 1) + "|"
    by_method = {method: rows.set_index("budget") for method, rows in cells.groupby("method")}
    nowhere = float("inf")
    order = sorted(
        by_method,
        key=lambda m: (by_method[m]["mae"].get(at, nowhere), m),
    )
    for method in order:
        rows = by_method[method]
        said = [_figures(rows.loc[b]) if b in rows.index else MISSING for b in budgets]
        yield f"| `{method}` | {' | '.join(said)} |"
    yield "\n</details>"


def _figures(row: pd.Series) -> str:
    error = give_or_take(points(row["mae"]), bare(100 * row["mae_se"]))
    return f"{error}, {bare(row['tau'])}"


def costs(records: Sequence[Record], all_tables: Sequence[Table], workers: int) -> str:
    """Return seconds a cell of each method on each table, and what all repeats would take."""
    ran = frame(records)
    names = [table.name for table in all_tables if table.name in set(ran["table"])]
    grid = ran.pivot_table(index="method", columns="table", values="seconds", aggfunc="mean")
    grid = grid.reindex(columns=names)
    slowest = grid.sum(axis=1).sort_values(ascending=False).index
    lines = ["processor seconds a cell (mean over budgets, splits and repeats)"]
    lines.append(f"{'':30s}" + "".join(f"{name[:12]:>13s}" for name in names))
    for method in slowest:
        said = "".join(f"{value:13.2f}" for value in grid.loc[method, names])
        lines.append(f"{method:30s}{said}")
    groups = ran.groupby(["table", "split", "repeat"])["seconds"].sum()
    of_repeat = groups.groupby(["table", "split"]).mean().groupby("table").sum()
    lines.append(
        f"{'a repeat of both splits':30s}" + "".join(f"{of_repeat[n]:13.1f}" for n in names)
    )
    repeats = {table.name: table.repeats for table in all_tables}
    lines.append(f"{'repeats':30s}" + "".join(f"{repeats[n]:13d}" for n in names))
    whole = sum(of_repeat.get(name, NONE) * repeats[name] for name in names)
    lines.append(f"all repeats of these: {whole / 60 / workers:.1f} minutes on {workers} workers")
    return "\n".join(lines)
