"""What papers print and what fewbench gets on the same data: writes results/PAPER.md.

    python benchmarks/reproduce.py FOLDER [--paper bento] [--only WORD] [--workers 2]
    python scripts/make_results.py

FOLDER holds the tables of scores (gsm8k_150.npz, openllm2_math_musr.npz, llmub_mmlu.npz, bento/).
Each section is written when it is done; sections that are not run stay as they are. The command
below a table gives the same numbers. The second command fills the tables of docs/papers.md.
"""

import argparse
from pathlib import Path

from papers import PAPERS
from papers.record import Context

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
    given = parser.parse_args()
    papers = [PAPERS[name] for name in given.paper or PAPERS]
    if not any(given.only in section.title for paper in papers for section in paper.sections):
        parser.error(f"no section has {given.only!r} in its title")
    context = Context(given.folder, given.workers, given.cache)
    for paper in papers:
        for line in paper.write(context, given.output, given.only):
            print(line, flush=True)


if __name__ == "__main__":
    main()
