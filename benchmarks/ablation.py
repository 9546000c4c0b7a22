"""What each part of fewbench's own method is worth.

A cell is the error over the exact expected error of random sampling at 10, 30 and 100 items, a
geometric mean over tables, and in brackets the worst table. Each row leaves one part out.

    python benchmarks/ablation.py FOLDER [--repeats 2] [--targets 24]

FOLDER holds the tables of benchmarks/baselines.py.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from _baselines.tables import GAP, LIKE, SPLITS, STRONGER, TABLES, divisions, load
from fewbench.algorithms import abilities
from fewbench.algorithms.kriging import extrapolation, inside, posterior, sample
from fewbench.methods import find_method
from fewbench.study.inference import expected_random_mae
from fewbench.uncertainty.replay import replays

LIMITS = (10, 30, 100)
SHORT = {LIKE: "like the sources", STRONGER: "stronger", GAP: "far stronger"}


def weight_of(value: float) -> Callable[..., float]:
    return lambda *_: value


def plain_curves(*given):  # type: ignore[no-untyped-def]
    found = FIT(*given)
    return replace(found, covariance=np.zeros_like(found.covariance))


FIT = abilities.fit_curves
WITHOUT: dict[str, list[tuple[object, str, object]]] = {
    "**fewbench**": [],
    "inside only": [(posterior.KrigingRun, "_beyond", weight_of((0.0, 0.0)))],
    "beyond only": [(posterior.KrigingRun, "_beyond", weight_of((0.5, 0.5)))],
    "all sources count alike": [(inside, "BANDWIDTH", 1e9)],
    "no sample covariance inside": [(inside, "SHRINKAGE", 0.98)],
    "no curves inside": [(inside, "SHRINKAGE", 0.1)],
    "curves as fitted, not averaged": [(abilities, "fit_curves", plain_curves)],
    "no residual covariance beyond": [(extrapolation, "SAMPLE_SHARE", 0.001)],
    "weight: no lean": [(posterior, "LEAN", 0.0)],
    "never a sample": [(posterior.KrigingRun, "is_unlike", weight_of(False)), (sample, "FEW", 0)],
}


@contextmanager
def patched(what: list[tuple[object, str, object]]) -> Iterator[None]:
    with ExitStack() as stack:
        for place, name, value in what:
            stack.enter_context(patch.object(place, name, value))
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--targets", type=int, default=24)
    parser.add_argument("--rows", default="", help="rows whose name holds one of these, by commas")
    given = parser.parse_args()
    method = find_method("fewbench")
    print("| | " + " | ".join(SHORT[split] for split in SPLITS) + " |")
    print("|---" * (1 + len(SPLITS)) + "|")
    for name, what in WITHOUT.items():
        if given.rows and not any(word in name for word in given.rows.split(",")):
            continue
        row = []
        for split in SPLITS:
            ratios: dict[int, list[float]] = {n: [] for n in LIMITS}
            for table in TABLES[:8]:
                scores = load(given.folder.resolve(), table.name).scores
                truth = scores.full_scores()
                expected = {n: expected_random_mae(scores, n) for n in LIMITS}
                errors: dict[int, list[float]] = {n: [] for n in LIMITS}
                plain: dict[int, list[float]] = {n: [] for n in LIMITS}
                for repeat, found in enumerate(divisions(scores, table, split)[: given.repeats]):
                    rng = np.random.default_rng(repeat)
                    targets = rng.permutation(found.targets)[: given.targets]
                    sources = scores.take(models=found.sources)
                    tried = scores.take(models=targets)
                    with patched(what):
                        said = replays(method, sources, tried, max(LIMITS), repeat, LIMITS)
                    for n, one in zip(LIMITS, said, strict=True):
                        errors[n] += np.abs(one.scores - truth[targets]).tolist()
                        plain[n] += expected[n][targets].tolist()
                for n in LIMITS:
                    ratios[n].append(float(np.mean(errors[n]) / np.mean(plain[n])))
            row.append(
                " / ".join(
                    f"{np.exp(np.mean(np.log(ratios[n]))):.2f} ({max(ratios[n]):.2f})"
                    for n in LIMITS
                )
            )
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
