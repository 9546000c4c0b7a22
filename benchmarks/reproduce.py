"""What papers print and what fewbench gets on the same data: writes results/PAPER.md.

    python benchmarks/reproduce.py FOLDER [--paper bento] [--only WORD] [--workers 2]
    python scripts/make_results.py

FOLDER holds the tables of scores (gsm8k_150.npz, openllm2_math_musr.npz, llmub_mmlu.npz, bento/).
--get fetches public ones that are missing there; --dry-run lists what it would fetch. Each section
is written when it is done; sections that are not run stay as they are. The command below a table
gives the same numbers. The second command fills the tables of docs/methods.
"""

import argparse
import sys
from pathlib import Path

from papers import PAPERS
from papers.public import Tables
from papers.record import NOT_RUN, Context

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--paper", choices=PAPERS, action="append", help="default: all")
    parser.add_argument("--only", default="", help="sections whose title holds this")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="file of finished cells, to go on after a stop")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--get", action="store_true", help="fetch public tables that are missing")
    parser.add_argument("--dry-run", action="store_true", help="list what --get would fetch")
    given = parser.parse_args()
    papers = [PAPERS[name] for name in given.paper or PAPERS]
    chosen = [one for paper in papers for one in paper.sections if given.only in one.title]
    if not chosen:
        parser.error(f"no section has {given.only!r} in its title")
    tables = Tables(given.folder, given.workers)
    if given.get or given.dry_run:
        files = dict.fromkeys(file for section in chosen for file in section.data)
        listed = 0
        for line in tables.fetch(files, dry_run=given.dry_run):
            print(line, flush=True)
            listed += 1
        if given.dry_run:
            for file, reason in tables.reasons.items():
                print(f"{file}: {reason}", flush=True)
            sys.exit(0 if listed or not tables.reasons else 1)
    context = Context(given.folder, given.workers, given.cache, tables.reasons)
    ran = list[bool]()
    for paper in papers:
        for line in paper.write(context, given.output, given.only):
            print(line, flush=True)
            ran.append(NOT_RUN not in line)
    of_tables = [done for done, one in zip(ran, chosen, strict=True) if one.data]
    sys.exit(0 if any(of_tables or ran) else 1)  # some sections need no table


if __name__ == "__main__":
    main()
