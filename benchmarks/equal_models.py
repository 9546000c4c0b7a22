"""Models of exactly the same score on these items: how often `rank` and `track` tell them apart.

    python benchmarks/equal_models.py [--repeats 80]

A repeat draws a simulated table of 60 models and 1,000 items. Five or ten of the models become
equal: answers of each are changed, most where models differ, until all are right on as many items.
They run the same items, by 40 of the other models or without any. A ranking is wrong if it tells
any two apart, and so is a training run with a change: at 90%, in a tenth of the repeats.
"""

import argparse
import warnings
from itertools import product

import numpy as np

import fewbench
from fewbench import Evaluation
from fewbench.testing import simulate

SOURCES, SIZES = (0, 40), ((5, 160), (10, 100))
"""Numbers of source models; of equal models and of the items that each runs."""


def equal(answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the models' answers, changed until all are right on as many items."""
    wanted, answers = int(np.median(answers.sum(axis=1))), answers.copy()
    share = answers.mean(axis=0)
    for row in answers:
        surplus = int(row.sum()) - wanted
        at = np.flatnonzero(row == (surplus > 0))
        chance = share[at] * (1 - share[at]) + 0.01
        row[rng.choice(at, abs(surplus), replace=False, p=chance / chance.sum())] = surplus <= 0
    return answers


def repeat(n_sources: int, n_models: int, n_run: int, seed: int) -> tuple[bool, bool, float]:
    """Return whether `rank` and `track` are wrong, and the share of intervals that hold."""
    rng, table = np.random.default_rng(seed), simulate(60, 1000, seed=seed)
    order = rng.permutation(table.n_models)
    rows = equal(table.values[order[:n_models]], rng)
    known = order[n_models : n_models + n_sources]
    names = [f"step-{at}" for at in range(1, n_models + 1)]
    evaluation = Evaluation(
        table.take(models=known) if n_sources else table.benchmark,
        "fewbench", n_run, [names[0]], seed,
    )  # fmt: skip
    for name, row in zip(names, rows, strict=True):
        if name != names[0]:
            evaluation.follow(name)
        answers = dict(zip(table.item_ids, row, strict=True))
        while asked := evaluation.ask(targets=[name]).get(name):
            evaluation.tell(name, {item: answers[item] for item in asked})
    ranks = fewbench.rank(evaluation, fixed_items=True).targets
    changes = fewbench.track(evaluation, fixed_items=True).changes
    truth, estimates = rows[0].mean(), evaluation.estimate()
    ends = [estimates[name].interval for name in names]
    return (
        any(of.rank_low > 1 or of.rank_high < n_models for of in ranks),
        any(change.verdict in ("better", "worse") for change in changes),
        float(np.mean([of.low - 1e-9 <= truth <= of.high + 1e-9 for of in ends])),
    )


def main() -> None:
    """Print a row for each number of sources and models."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=80)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", fewbench.EstimateWarning)
    print("| source models | equal models | items | rank wrong | track wrong | intervals hold |")
    print("|---|---|---|---|---|---|")
    for n_sources, (n_models, n_run) in product(SOURCES, SIZES):
        rows = [repeat(n_sources, n_models, n_run, seed) for seed in range(repeats)]
        rank, track, holds = np.mean(rows, axis=0)
        print(f"| {n_sources} | {n_models} | {n_run} | {rank:.3f} | {track:.3f} | {holds:.3f} |")


if __name__ == "__main__":
    main()
