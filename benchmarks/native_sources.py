"""TailoredBench's native sources on a table: the paper's analyses, in sentences and numbers.

    python benchmarks/native_sources.py scores.parquet --budget 30 -o native-sources.json

Error and ranking by how near and how many the native sources are (Figures 3 and 4), maps of the
items and how well medoids stand for them (Figure 1), which families native sources are of (Table
11), what is lost without the target's own, by this method and by others (Table 12), and how much
trials of each method differ (Figures 5 to 9).
"""

import argparse
import json
from pathlib import Path

import fewbench
from fewbench.study import KINDS, SplitSettings
from papers.methods import find
from tailoredbench.analysis import PARTS, analyze
from tailoredbench.methods import FEW, with_families


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
    parser.add_argument(
        "--families",
        metavar="WORDS",
        help="families by words in the models' names, as llama,qwen,mistral+mixtral",
    )
    parser.add_argument(
        "--others",
        default="anchor-points,gp-irt-anchor,kmedoids-ridge,random",
        help="comma-separated names of methods to compare with",
    )
    parser.add_argument(
        "--budgets",
        default=",".join(map(str, FEW)),
        help="numbers of items at which the spread of trials is measured",
    )
    parser.add_argument(
        "--parts", default=",".join(PARTS), help="the analyses to make, of these (default: all)"
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="JSON file of all numbers to write")
    given = parser.parse_args(words)
    scores = fewbench.load_scores(given.scores)
    if given.families:
        scores = with_families(scores, given.families)
    kind = given.split or ("given" if "role" in scores.models else "random")
    settings = SplitSettings(kind, given.targets)
    found = analyze(
        scores,
        find(given.method),
        given.budget,
        settings,
        given.repeats,
        given.seed,
        others=[name for name in given.others.split(",") if name],
        budgets=[int(budget) for budget in given.budgets.split(",") if budget],
        parts=given.parts.split(","),
        workers=given.workers,
    )
    for warning in found.warnings:
        print(f"warning: {warning}")
    for name, said in {**found.findings, **found.absent}.items():
        print(f"{name}: {said}")
    if given.output is not None:
        given.output.write_text(json.dumps(found.to_dict(), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
