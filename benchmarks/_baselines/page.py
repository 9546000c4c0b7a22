"""docs/baselines.md: all methods over all tables."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from _baselines.cells import Record
from _baselines.figures import AT, Cells, overall
from _baselines.left_out import left_out
from _baselines.tables import BUDGETS, LIKE, SPLITS, TABLES, TITLES, Loaded, Table
from _baselines.words import MISSING, bare, bold, interval, points
from fewbench.study.inference import FEWEST_TARGETS, OverTables, too_few_repeats

COMMAND = (
    "python benchmarks/baselines.py FOLDER -o docs/baselines.md --pages docs/methods "
    "--readme README.md"
)
NO_CLAIMS = "*Not written yet.*\n"

HEAD = """# All methods on all tables

Every method of the catalogue on ten tables of scores, each with the settings of its paper, on the
same items drawn, models divided and seeds. The tables are not part of fewbench; with a folder that
holds them, the command at the end makes this page, all but the section on the papers' claims.

- **Error** (MAE): mean absolute error of the targets' full score, in percentage points. **tau**:
  Kendall's tau between the targets' estimates and their full scores, a mean over repeats.
- **Ratio**: the method's error over the **expected** error of plain random sampling of as many
  items for the same targets. The expectation is exact: no draws are simulated. Below 1 the method
  is better. The row `random` is one actual draw a repeat and a check: its ratio is 1 up to chance,
  and a little below, because the geometric mean of ratios that vary is below their mean.
- **Random split**: the targets are a quarter of the models, drawn at random, so they are like the
  sources; each repeat draws anew. On llmub_mmlu, whose runs of one checkpoint are all but the same,
  whole checkpoints are held out instead. **Performance split**: the targets are the strongest
  quarter of the models. **Gap split**: the sources are the weakest half, the targets the strongest
  30 %. Repeats of these two differ only in what methods draw.
- **Intervals** are at 90 %. Within a table both repeats and models are drawn with replacement (runs
  of one family, and duplicates, as one model), because the targets of a repeat share what was drawn
  and their errors move together. There is none with fewer than three repeats.
- **Over tables** the ratio is the geometric mean, and the interval is Student's t on logarithms: it
  says what to expect of another table like these. Tables that share models weigh as one: the four
  HELM tables, and the two GLUE tables. A table with fewer than 15 targets in a split is shown but
  does not count.
- **Bold: level with the best** on these very tables: the interval of the method's paired
  difference to the best, from the same drawing of repeats and models, contains no difference (90 %,
  by Holm's rule over the methods). Nothing is bold where there are no intervals.
- Methods that ran on fewer than half of the tables stand last.
- A method that learns from other models' answers can be far off where the targets are better than
  all of them; that is what the second and third tables are there to show.
"""


@dataclass(frozen=True)
class Outcome:
    """All that is shown: the cells, the tables they are of, and what was not run."""

    cells: Cells
    records: Sequence[Record]
    tables: Sequence[Table]
    loaded: dict[str, Loaded]
    facts: dict[tuple[str, str], dict[str, str]]
    unrun: int
    versions: str


def page(outcome: Outcome, claims: str | None) -> str:
    """Write the page, with the claims that were written by hand."""
    cells = outcome.cells
    parts = [HEAD]
    if len(outcome.tables) < len(TABLES):
        names = ", ".join(table.name for table in outcome.tables)
        parts.append(f"**These are not all tables, but {names} alone.**\n")
    for split in SPLITS:
        parts.append(f"## {TITLES[split]} ({split} split)\n")
        parts += [*summary(overall(cells, split)), ""]
        parts += [*few_targets(cells, split)]
    parts.append("## What holds of the papers' claims\n")
    parts.append(f"<!-- claims -->\n{NO_CLAIMS if claims is None else claims}<!-- end claims -->\n")
    parts.append("## The tables\n")
    parts += [*tables(outcome), ""]
    for table in outcome.tables:
        parts.append(f"## {table.name}\n")
        for split in SPLITS:
            mine = cells.of(table=table.name, split=split)
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
        ratios = " | ".join(
            bold(_over(row[budget], row["tables"]), budget in row["level"]) for budget in budgets
        )
        tau = MISSING if row["method"] == "random" else bare(row["tau_gain"], 3, "+")
        worst = f"{interval(row['worst'])} {row['worst_table']}".strip()
        yield f"| `{row['method']}` | {ratios} | {tau} | {worst} | {row['tables']} |"


def few_targets(cells: Cells, split: str) -> Iterator[str]:
    """Write which tables do not count."""
    small = [name for name in cells.of(split=split)["table"].unique()
             if not cells.counts(name, split)]  # fmt: skip
    if small:
        yield (
            f"Fewer than {FEWEST_TARGETS} targets in this split, so not counted above: "
            f"{', '.join(small)}.\n"
        )


def _over(found: OverTables, count: int) -> str:
    """Write a ratio, and of how many tables it is where that is not as at AT items."""
    several = 0 < found.n_tables != count
    return interval(found) + (f" ({found.n_tables} tables)" if several else "")


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
            kind = table.settings(split).kind if split == LIKE else split
            head = f"{table.name} | {scores.n_models} | {scores.n_items} | {len(scores.tasks)}"
            row = [head if split == LIKE else "| | |", kind, *said.values(), str(len(ran))]
            yield f"| {' | '.join(row)} |"


def one_table(cells: pd.DataFrame, table: Table, split: str) -> Iterator[str]:
    """Write a table's errors and rank correlations, folded, best first."""
    budgets = [budget for budget in BUDGETS if budget in set(cells["budget"])]
    at = AT if AT in budgets else budgets[-1]
    kind = table.settings(split).kind if split == LIKE else split
    name = f"{kind} split" + (", whole checkpoints held out" if kind == "group" else "")
    yield (
        f"<details><summary>{name}: error (pp), [90 % interval] of its ratio to random sampling's "
        "expected error, tau</summary>\n"
    )
    repeats = int(cells["repeats"].max())
    if why := too_few_repeats(repeats):
        yield f"{why}\n"
    yield "| method | " + " | ".join(f"{budget} items" for budget in budgets) + " |"
    yield "|---" * (len(budgets) + 1) + "|"
    expected = cells.loc[cells.groupby("budget")["repeats"].idxmax()].set_index("budget")["random"]
    said = " | ".join(points(expected[budget]) for budget in budgets)
    yield f"| *random sampling, expected* | {said} |"
    by_method = {method: rows.set_index("budget") for method, rows in cells.groupby("method")}

    def error(method: str) -> tuple[float, str]:
        rows = by_method[method]
        return (rows["mae"][at].value if at in rows.index else float("inf"), method)

    for method in sorted(by_method, key=error):
        rows = by_method[method]
        said = " | ".join(
            _figures(rows.loc[b], repeats) if b in rows.index else MISSING for b in budgets
        )
        yield f"| `{method}` | {said} |"
    yield "\n</details>"


def _figures(row: pd.Series, repeats: int) -> str:
    text = f"{points(row['mae'].value)}, {interval(row['ratio'])}, {bare(row['tau'])}"
    fewer = "" if row["repeats"] == repeats else f" ({row['repeats']} repeats)"
    return bold(text, row["level"]) + fewer


def costs(records: Sequence[Record], all_tables: Sequence[Table], workers: int) -> str:
    """Return seconds a cell of each method on each table, and what all repeats would take."""
    ran = pd.DataFrame([asdict(record) for record in records if not record.failed])
    names = [table.name for table in all_tables if table.name in set(ran["table"])]
    grid = ran.pivot_table(index="method", columns="table", values="seconds", aggfunc="mean")
    grid = grid.reindex(columns=names)
    slowest = grid.sum(axis=1).sort_values(ascending=False).index
    lines = ["processor seconds a cell (mean over budgets, splits and repeats)"]
    lines.append(f"{'':30s}" + "".join(f"{name[:12]:>13s}" for name in names))
    for method in slowest:
        said = "".join(f"{value:13.2f}" for value in grid.loc[method, names])
        lines.append(f"{method:30s}{said}")
    of_repeat = ran.groupby(["table", "split", "repeat"])["seconds"].sum()
    of_repeat = of_repeat.groupby(["table", "split"]).mean()
    of_table = of_repeat.groupby("table").sum()
    lines.append(f"{'a repeat of all splits':30s}" + "".join(f"{of_table[n]:13.1f}" for n in names))
    by_name = {table.name: table for table in all_tables}
    whole = sum(
        seconds * by_name[name].repeats_of(split) for (name, split), seconds in of_repeat.items()
    )
    lines.append(f"all repeats: {whole / 60 / workers:.1f} minutes on {workers} workers")
    return "\n".join(lines)
