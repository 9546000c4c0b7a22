"""Whole stories with known truth, run through the command line: what to expect of fewbench.

    python benchmarks/field.py FOLDER [--stories training reruns …] [--worlds 20]

Models are trained here, so what each answers to every question is known. A story writes results as
people have them, runs the commands that people run, and compares what they print with the truth;
stories/ has a file for each. What a story finds is kept in FOLDER, and it is not run again. Prints
benchmarks/results/field.md.

- *coverage*: 90% intervals that hold the truth. *Wrong verdicts*: a side taken that is not so; at
  most 10% of those between runs of one model or on all pairs of a table, 5% between two models.
- *Items saved*: of all items. *Silently wrong*: a number that is not right, without a word from any
  command; *said elsewhere only*: a word, but not beside the number.
- *False alarms*: runs with a warning and nothing wrong. *Paid twice or lost*: share of the answers;
  for agents, runs that spent more than the limit or printed another sum.

Means are printed with standard errors over worlds, and the number of what was counted. The models
of a world run the same items, so a world counts once.
"""

import argparse
import sys
import time
from pathlib import Path

import pandas as pd

from stories import STORIES
from stories.found import Found, summary, table

KEPT = ("case", "measure", "value", "world")


def kept(folder: Path, name: str, worlds: int | None) -> tuple[list[Found], float]:
    """Return what a story finds, and its processor time; run it unless the folder has it."""
    path = folder / f"{name}.csv"
    if not path.exists():
        story, usual = STORIES[name]
        started = time.process_time()
        rows = pd.DataFrame(story(worlds or usual), columns=list(KEPT))
        rows.assign(seconds=time.process_time() - started).to_csv(path, index=False)
    rows = pd.read_csv(path)
    found = [Found(*row) for row in rows[list(KEPT)].itertuples(index=False, name=None)]
    return found, float(rows["seconds"].iloc[0])


def record(found: dict[str, tuple[list[Found], float]]) -> str:
    """Return the text of the record."""
    what = __doc__.split("\n\n", 3)[3]
    parts = ["# The field study", "Made by `python benchmarks/field.py FOLDER`.", what.strip()]
    of_stories = {name: rows for name, (rows, _) in found.items() if name != "seams"}
    parts += ["## What to expect", summary(of_stories)] if of_stories else []
    for name, (rows, seconds) in found.items():
        module = sys.modules[STORIES[name][0].__module__]
        own = getattr(module, "table", table)
        about = module.__doc__.strip()
        parts += [f"## {name}", f"{about} {seconds:.0f} s of processor time.", own(rows)]
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stories", nargs="+", choices=STORIES, default=list(STORIES))
    parser.add_argument("--worlds", type=int, help="of each story (default: its own number)")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(record({name: kept(given.folder, name, given.worlds) for name in given.stories}))


if __name__ == "__main__":
    main()
