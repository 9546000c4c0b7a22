"""Coverage of 90 % intervals on real tables, by kind of target: the tables of docs/intervals.md.

A cell shows coverage, and width and Winkler score over those of random sampling's exact interval.
Standard errors are two-way: over targets, and over draws of sources. In brackets: the least
coverage on a table, and the share of targets that the estimate warns of.

    python benchmarks/coverage.py FOLDER [--methods a,b] [--items 30] [--draws 4] [--kinds top,gap]

FOLDER holds the tables named below (see docs/results.md); the bundled zoo needs none.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fewbench import Evaluation, from_arrays
from fewbench._types import FloatArray
from fewbench.algorithms.soundness.likeness import duplicate_groups
from fewbench.datasets import load_zoo
from fewbench.readers import read
from fewbench.scores import Scores
from fewbench.study import SplitSettings, make_split

TABLES = ("gsm8k_150", "openllm2_math_musr", "helm_gsm", "helm_med_qa", "helm_math", "glue_sst2")
SPLITS = {
    "like": SplitSettings("random"),
    "top": SplitSettings("performance"),
    "gap": SplitSettings("performance", targets=0.3, gap=0.2),
    "new families": SplitSettings("group"),
}
FEW, MOST, LEVEL = (2, 3, 5, 10, 20, 22, 24, 40), 30, 0.9
UNLIKE = ("coin", "all right", "all wrong", "inverted", "half noise", "hard half")


def unlike(scores: Scores, rng: np.random.Generator) -> Scores:
    n, like = scores.n_items, scores.filled[rng.integers(scores.n_models)]
    coin, half = rng.integers(0, 2, n), scores.filled.mean(axis=0).argsort().argsort() < n // 2
    mixed = np.where(rng.random(n) < 0.5, like, coin)
    rows = np.array([coin, np.ones(n), np.zeros(n), 1 - like, mixed, half], dtype=float)
    return from_arrays(rows, models=UNLIKE, items=scores.item_ids, tasks=scores.items["task"])


def cells(scores: Scores, draw: int, kinds: list[str]) -> Iterator[tuple[str, Scores, Scores]]:
    rng = np.random.default_rng(draw)
    for kind, settings in SPLITS.items():
        if kind in kinds and (kind != "new families" or "family" in scores.models):
            at = make_split(scores, settings, 0, draw)
            targets = rng.permutation(at.targets)[:MOST]
            yield kind, scores.take(models=at.sources), scores.take(models=targets)
    if "few" in kinds:
        apart = np.unique(duplicate_groups(scores.filled), return_index=True)[1]
        for n in FEW:
            at = rng.permutation(apart)[: n + MOST]
            yield f"{n} sources", scores.take(models=at[:n]), scores.take(models=at[n:])
    if "unlike" in kinds:
        for kind, at in zip(UNLIKE, range(6), strict=True):
            yield kind, scores, unlike(scores, rng).take(models=[at])


def judge(method: str, sources: Scores, targets: Scores, items: int, seed: int) -> FloatArray:
    """Return for each target: whether covered, width, Winkler score, whether warned of."""
    evaluation = Evaluation(sources, method, items, targets.model_ids, seed)
    while any(map(len, evaluation.ask().values())):
        evaluation.tell_table(targets)
    rows = []
    for one, truth in zip(
        evaluation.estimate(LEVEL, warn=False).values(), targets.full_scores(), strict=True
    ):
        low, high = one.interval.low, one.interval.high
        missed, width = max(low - truth, truth - high, 0.0), high - low
        warned = any("errors on them may not hold" in said for said in one.warnings)
        rows.append([missed < 1e-9, width, width + 2 / (1 - LEVEL) * missed, warned])
    return np.array(rows)


def error(values: FloatArray, *labels: list[str]) -> float:
    """Return the two-way standard error of a mean (Cameron, Gelbach & Miller 2011)."""
    about, found = (values - values.mean()) / len(values), []
    for names in (*labels, list(map("/".join, zip(*labels, strict=True)))):
        found.append((np.bincount(np.unique(names, return_inverse=True)[1], about) ** 2).sum())
    return float(max(found[0] + found[1] - found[2], found[2]) ** 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", default="fewbench,fewbench-static,greedy-ridge")
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--kinds", default=",".join([*SPLITS, "few", "unlike"]))
    given = parser.parse_args()
    names, kept = ["random", *given.methods.split(",")], {}
    for table in (*TABLES, "zoo"):
        scores = load_zoo() if table == "zoo" else read(given.folder / f"{table}.npz").scores
        for draw in range(given.draws):
            for kind, *both in cells(scores.complete(), draw, given.kinds.split(",")):
                found = [judge(name, *both, given.items, draw) for name in names]
                models = [f"{table} {name}" for name in both[1].model_ids]
                kept.setdefault(kind, []).append((table, models, draw, np.stack(found, axis=1)))
    print("| | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for kind, parts in kept.items():
        every = np.concatenate([part[-1] for part in parts])
        models = [name for part in parts for name in part[1]]
        draws = [f"{part[0]} {part[2]}" for part in parts for _ in part[1]]
        plain, said = every[:, 0].mean(axis=0), []
        for at in range(len(names)):
            covered, width, winkler, warned = every[:, at].mean(axis=0)
            worst = min(
                np.mean(np.concatenate([p[-1][:, at, 0] for p in parts if p[0] == table]))
                for table in {part[0] for part in parts}
            )
            ratio = every[:, at, 2] / plain[2] - winkler / plain[2] * every[:, 0, 2] / plain[2]
            said.append(
                f"{covered:.2f} ± {error(every[:, at, 0], models, draws):.2f} "
                f"× {width / plain[1]:.2f}, {winkler / plain[2]:.2f} "
                f"± {error(ratio, models, draws):.2f} ({worst:.2f}, {warned:.2f})"
            )
        print(f"| {kind} | " + " | ".join(said) + " |", flush=True)


if __name__ == "__main__":
    main()
