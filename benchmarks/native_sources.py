"""TailoredBench's native sources on a table: the paper's analyses, as a page.

    python benchmarks/native_sources.py scores.parquet --budget 30 -o native-sources.html

Error and ranking by how near and how many the native sources are (Figures 3 and 4), maps of the
items and how well medoids stand for them (Figure 1), which families native sources are of (Table
11), and what is lost without the target's own (Table 12).
"""

import argparse
from pathlib import Path

import fewbench
from fewbench.report.frame import write_page
from fewbench.report.sections import render
from fewbench.study import KINDS, SplitSettings
from tailoredbench.analysis import analyze
from tailoredbench.page import page


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scores", type=Path)
    parser.add_argument("--budget", type=int, default=30, help="items per target")
    parser.add_argument("--method", default="tailored", help='such as "tailored(metric=cosine)"')
    parser.add_argument("--split", choices=KINDS, help="default: given if models have roles")
    parser.add_argument("--targets", type=float, default=0.25, help="share of the models")
    parser.add_argument("--repeats", type=int, default=5, help="splits and seeds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="HTML page to write")
    given = parser.parse_args(words)
    scores = fewbench.load_scores(given.scores)
    kind = given.split or ("given" if "role" in scores.models else "random")
    settings = SplitSettings(kind, given.targets)
    found = analyze(scores, given.method, given.budget, settings, given.repeats, given.seed)
    for warning in found.warnings:
        print(f"warning: {warning}")
    for name, said in {**found.findings, **found.absent}.items():
        print(f"{name}: {said}")
    if given.output is not None:
        write_page(render(page(found.to_dict(), given.scores.name)), given.output)


if __name__ == "__main__":
    main()
