"""Every method of the catalogue on every table: writes benchmarks/results.

    python benchmarks/baselines.py FOLDER
    python scripts/make_results.py

The first command measures, the second writes docs/results.md and the numbers of other pages. FOLDER
holds the tables (see _baselines/tables.py). With --cache FOLDER finished cells are kept, and the
same command resumes a run that was stopped. A method that fails unexpectedly makes the exit status
1.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from _baselines.cells import Done, Plan, Record, run_all
from _baselines.data import methods_table, tables_table
from _baselines.figures import Cells, cells_of
from _baselines.over_tables import table_groups
from _baselines.tables import SPLITS, TABLES, Loaded, divisions, load
from fewbench.methods import CATALOGUE
from fewbench.study import Split
from papers.methods import MEASURED

RESULTS = Path(__file__).parent / "results"
METHODS = (*CATALOGUE, *MEASURED)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, help="folder of the data files")
    parser.add_argument(
        "--only", default="", help="tables whose name holds one of these, by commas"
    )
    parser.add_argument("--methods", default="", help="these methods only, by commas")
    parser.add_argument("--repeats", type=int, help="at most so many, by default a table's own")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then start no cell")
    parser.add_argument("--cache", type=Path, help="folder of finished cells")
    parser.add_argument(
        "--changed",
        help="methods to run again, by commas: others' finished cells are taken from the cache "
        "though fewbench's code has changed since",
    )
    return parser


def words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def main() -> int:
    parser = options()
    given = parser.parse_args()
    only, chosen = words(given.only), words(given.methods)
    tables = [t for t in TABLES if not only or any(word in t.name for word in only)]
    if not tables:
        parser.error(f"no table has {given.only!r} in its name")
    unknown = [name for name in (*chosen, *words(given.changed or "")) if name not in METHODS]
    if unknown:
        parser.error(f"{unknown[0]!r} is not in the catalogue")
    part = only or chosen or given.repeats or given.minutes < float("inf")
    if given.output is None and part:
        parser.error("a part of the study needs -o FOLDER: it would replace the whole results")
    if given.repeats is not None:
        tables = [t.at_most(given.repeats) for t in tables]
    methods = METHODS if not chosen else tuple(dict.fromkeys(("random", *chosen)))
    with tempfile.TemporaryDirectory() as temporary:
        plan = Plan(
            given.folder.resolve(),
            given.cache or Path(temporary),
            methods,
            time.time() + 60 * given.minutes,
            None if given.changed is None else frozenset(words(given.changed)),
        )
        done = finish(plan, tables, given.workers)
    records = [record for job in done for record in job.records]
    # In the order of tables, methods and repeats, whichever job was finished first.
    place = {name: at for at, name in enumerate((*(t.name for t in tables), *methods))}
    records.sort(key=lambda r: (place[r.table], SPLITS.index(r.split), place[r.method], r.repeat))
    loaded = {table.name: load(plan.folder, table.name) for table in tables}
    splits = {
        (table.name, split): divisions(loaded[table.name].scores, table, split)
        for table in tables
        for split in SPLITS
    }
    output = given.output or RESULTS
    output.mkdir(parents=True, exist_ok=True)
    figures = methods_table(made_of(records, loaded, splits))
    figures.to_csv(output / "methods.csv", index=False)
    tables_table(tables, loaded, splits).to_csv(output / "tables.csv", index=False)
    broken = {(r.method, r.table, r.failed) for r in records if r.broken}
    for method, table, what in sorted(broken):
        print(f"{method} on {table} broke: {what}", file=sys.stderr)
    return 1 if broken else 0


def made_of(
    records: Sequence[Record],
    loaded: Mapping[str, Loaded],
    splits: Mapping[tuple[str, str], Sequence[Split]],
) -> Cells:
    """Return the figures of all tables and splits."""
    rows, resampled = [], {}
    for seed, (of, found) in enumerate(splits.items()):
        mine = [record for record in records if (record.table, record.split) == of]
        made, drawn = cells_of(mine, loaded[of[0]].scores, found, seed)
        if drawn is not None:
            rows += made
            resampled[of] = drawn
    return Cells(
        pd.DataFrame(rows),
        resampled,
        {of: float(np.mean([len(one.targets) for one in found])) for of, found in splits.items()},
        table_groups({name: one.scores.model_ids for name, one in loaded.items()}),
    )


def finish(plan: Plan, tables: list, workers: int) -> list[Done]:  # type: ignore[type-arg]
    done: list[Done] = []
    began = time.monotonic()
    for job in run_all(plan, tables, workers):
        done.append(job)
        failed = sum(bool(record.failed) for record in job.records)
        print(
            f"{(time.monotonic() - began) / 60:5.1f} min  {job.job.name}: "
            f"{len(job.records)} cells, {job.fresh} run now in {job.seconds:.0f} s"
            + (f", {failed} could not be run" if failed else "")
            + (f", {job.unrun} left for lack of time" if job.unrun else ""),
            file=sys.stderr,
            flush=True,
        )
    return done


if __name__ == "__main__":
    sys.exit(main())
