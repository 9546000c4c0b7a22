"""The data files of benchmarks/results: figures of all methods, and what the tables hold."""

from collections.abc import Iterator, Sequence

import pandas as pd

from _baselines.figures import AT, Cells, overall
from _baselines.over_tables import OverTables
from _baselines.tables import BUDGETS, SPLITS, Loaded, Table, facts
from fewbench.study import Split
from fewbench.study.inference import Figure

COLUMNS = [
    "table",
    "split",
    "budget",
    "method",
    "repeats",
    "error",
    "random",
    "ratio",
    "low",
    "high",
    "tau",
    "tau_gain",
    "best",
    "tables",
    "worst_table",
]


def methods_table(cells: Cells) -> pd.DataFrame:
    """Return the rows of methods.csv: means over tables (`all`), then every table."""
    rows = [*_over_tables(cells), *_of_tables(cells)]
    return pd.DataFrame(rows, columns=COLUMNS).round(4)


def _over_tables(cells: Cells) -> Iterator[dict[str, object]]:
    for split in SPLITS:
        for row in overall(cells, split).to_dict("records"):
            for budget in (budget for budget in BUDGETS if budget in row):
                found = {
                    "table": "all",
                    "split": split,
                    "budget": budget,
                    "method": row["method"],
                    **_ratio(row[budget]),
                    "best": int(budget in row["level"]),
                    "tables": row[budget].n_tables,
                }
                if budget == AT:
                    found |= {"tau_gain": row["tau_gain"], "worst_table": row["worst_table"]}
                yield found


def _of_tables(cells: Cells) -> Iterator[dict[str, object]]:
    for row in cells.rows.to_dict("records"):
        yield {
            **{name: row[name] for name in ("table", "split", "budget", "method", "repeats")},
            "error": 100 * row["mae"].value,
            "random": 100 * row["random"],
            **_ratio(row["ratio"]),
            "tau": row["tau"],
            "best": int(row["level"]),
        }


def _ratio(found: Figure | OverTables) -> dict[str, float]:
    return {"ratio": found.value, "low": found.low, "high": found.high}


def tables_table(
    tables: Sequence[Table],
    loaded: dict[str, Loaded],
    splits: dict[tuple[str, str], list[Split]],
) -> pd.DataFrame:
    """Return the rows of tables.csv: sizes of every table and split."""
    rows = []
    for table in tables:
        scores = loaded[table.name].scores
        for split in SPLITS:
            found, settings = splits[table.name, split], table.settings(split)
            sizes = {"models": scores.n_models, "items": scores.n_items}
            rows.append(
                {"table": table.name, "split": split}
                | {"kind": settings.kind}
                | sizes
                | {"tasks": len(scores.tasks)}
                | facts(scores, found if settings.is_drawn else found[:1])
                | {"repeats": len(found)}
            )
    return pd.DataFrame(rows)
