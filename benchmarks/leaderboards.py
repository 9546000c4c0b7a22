"""Leaderboards: how sure the order of a whole table is, and what it takes to compute it.

    python benchmarks/leaderboards.py FOLDER_OF_TABLES [--part tables halves null time]

"tables": models tied with the first, models that may be the best, and pairs told apart, at 90%, of
the models and on exactly these items. "halves": a table is split into two halves of its items at
random. How many pairs that one half distinguishes have the opposite sign on the other half, and
does the best model on all items count among those that may be the best? "null": equal models, each
item with its own chance of a right answer, in five shapes; the share of tables in which any pair is
distinguished, and in which the first model may not be the best. "time": processor time of `rank`
for 500 models and 15,000 items.
"""

import argparse
import math
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import fewbench
from fewbench.decide.joint_estimate import JointEstimate
from fewbench.decide.leaderboard import table_operands
from fewbench.decide.standings import Standings
from fewbench.public import load_scores

LEVEL = 0.9
TABLES = (
    "helm_math", "helm_med_qa", "helm_commonsense", "helm_gsm", "gsm8k_150", "openllm2_math_musr",
    "llmub_mmlu",
)  # fmt: skip
SPLITS, REPEATS = 30, 400
SHAPES = {
    "Beta(.3, .3)": lambda rng, n: rng.beta(0.3, 0.3, n),
    "uniform": lambda rng, n: rng.random(n),
    "all .5": lambda rng, n: np.full(n, 0.5),
    "all .95": lambda rng, n: np.full(n, 0.95),
    "one in five open": lambda rng, n: np.where(rng.random(n) < 0.8, 1.0, 0.5),
}
SIZES = ((5, 50, 0.0), (5, 200, 0.1), (20, 100, 0.0))


def standings(scores, *, fixed_items=False):
    sides, _ = table_operands(scores, ())
    return Standings.of(JointEstimate(sides, fixed_items=fixed_items), LEVEL)


def tables(folder):
    print("| table | models | items | tied with #1 | may be the best | P(best) of the first three "
          "| pairs told apart | on exactly these items |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for name in TABLES:
        scores = load_scores(folder / f"{name}.npz")
        found = fewbench.rank(scores)
        pairs = scores.n_models * (scores.n_models - 1) / 2
        apart = [standings(scores, fixed_items=fixed).surely_above.sum() / pairs
                 for fixed in (False, True)]  # fmt: skip
        chances = " ".join(f"{place.chance_best:.2f}" for place in found.targets[:3])
        print(f"| {name} | {scores.n_models} | {scores.n_items:,} | "
              f"{len(found.targets[0].tied_with)} | {len(found.contenders)} | {chances} | "
              f"{apart[0]:.2f} | {apart[1]:.2f} |", flush=True)  # fmt: skip


def halves(folder):
    print("| table | pairs told apart | other sign on the other half | of all pairs, by score "
          "alone | the best may be the best |")  # fmt: skip
    print("|---|---|---|---|---|")
    for name in TABLES:
        scores = load_scores(folder / f"{name}.npz")
        scores = fewbench.Scores(scores.values, scores.models, scores.items)
        best = scores.model_ids[int(np.argmax(scores.full_scores()))]
        rng = np.random.default_rng(0)
        share, turned, plain, kept = 0, 0, [], 0
        for _ in range(SPLITS):
            order = rng.permutation(scores.n_items)
            one, other = (scores.take(items=np.sort(part)) for part in np.array_split(order, 2))
            found = standings(one)
            rows = one.model_positions(found.names)
            ours, theirs = one.full_scores()[rows], other.full_scores()[rows]
            apart, there = found.surely_above, np.subtract.outer(theirs, theirs)
            share += int(apart.sum())
            turned += int((apart & (there < 0)).sum())
            above = np.subtract.outer(ours, ours) > 0
            plain.append(float((there[above] < 0).mean()))
            kept += bool(not found.surely_above[:, found.names.index(best)].any())
        pairs = SPLITS * scores.n_models * (scores.n_models - 1) / 2
        print(f"| {name} | {share / pairs:.2f} | {turned / share:.5f} | {np.mean(plain):.3f} | "
              f"{kept} of {SPLITS} |", flush=True)  # fmt: skip


def null(_):
    print("| models | items | missing | shape | any pair told apart | the first is not the best |")
    print("|---|---|---|---|---|---|")
    rng, bound = np.random.default_rng(0), 0.0
    for n_models, n_items, missing in SIZES:
        for name, chances in SHAPES.items():
            apart = not_best = 0
            for _ in range(REPEATS):
                cells = (rng.random((n_models, n_items)) < chances(rng, n_items)).astype(float)
                cells[rng.random(cells.shape) < missing] = np.nan
                names = [f"m{at}" for at in range(n_models)]
                found = standings(fewbench.from_arrays(cells, models=names))
                apart += bool(found.surely_above.any())
                not_best += found.surely_above[:, found.names.index("m0")].any()
            bound = max(bound, apart / REPEATS)
            print(f"| {n_models} | {n_items} | {missing:.0%} | {name} | {apart / REPEATS:.3f} | "
                  f"{not_best / REPEATS:.3f} |", flush=True)  # fmt: skip
    limit = 1 - LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / REPEATS)
    print(f"\nLargest share: {bound:.3f}; 10% plus two standard errors: {limit:.3f}.")


def timed(_):
    rng = np.random.default_rng(0)
    print("| models | items | missing | seconds of processor time | in products of the table |")
    print("|---|---|---|---|---|")
    for n_models, n_items, missing in ((100, 1000, 0), (500, 15_000, 0), (500, 15_000, 0.02)):
        ability, difficulty = rng.normal(0, 0.6, n_models), rng.normal(0, 1.5, n_items)
        chances = 1 / (1 + np.exp(difficulty - ability[:, None]))
        cells = (rng.random(chances.shape) < chances).astype(float)
        begin = time.process_time()
        cells @ cells.T
        product = time.process_time() - begin
        cells[rng.random(cells.shape) < missing] = np.nan
        scores = fewbench.from_arrays(cells, models=[f"m{at}" for at in range(n_models)])
        begin = time.process_time()
        fewbench.rank(scores)
        seconds = time.process_time() - begin
        print(f"| {n_models} | {n_items:,} | {missing:.0%} | {seconds:.1f} | "
              f"{seconds / product:.0f} |", flush=True)  # fmt: skip


PARTS = {"tables": tables, "halves": halves, "null": null, "time": timed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in options.part:
        print(f"\n## {part}\n")
        PARTS[part](options.folder)


if __name__ == "__main__":
    main()
