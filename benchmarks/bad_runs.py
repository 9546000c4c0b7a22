"""How often a gate stops a training run beside a sister run: good ones, slow ones and bad ones.

python benchmarks/bad_runs.py --worlds 60
"""

import argparse
import statistics
import warnings

import numpy as np
import pandas as pd

import fewbench

STEPS = range(1000, 11000, 1000)
RUNS = {"sister": 1.6, "equally good": 1.6, "slow": 1.2, "bad": 0.5}
"""Ability that a run approaches."""
ITEMS, BUDGET, MARGIN = 1200, 200, 0.03


def evaluated(world: int) -> fewbench.Evaluation:
    """Return an evaluation of all checkpoints of all runs."""
    rng = np.random.default_rng([5, world])
    difficulty = rng.normal(size=ITEMS)
    items = pd.DataFrame({"task": "all"}, index=[f"q{n}" for n in range(ITEMS)])
    right = {}
    for run, top in RUNS.items():
        own = rng.normal(size=ITEMS)
        for step in STEPS:
            ability = top * (1 - np.exp(-step / 4000)) - 0.8
            apart = ability - difficulty + 0.7 * own + 0.3 * rng.normal(size=ITEMS)
            right[f"{run}/step-{step}"] = (apart > 0).astype(float)
    evaluation = fewbench.Evaluation(
        fewbench.Benchmark(items), "auto", BUDGET, [*right], seed=world
    )
    for name, asked in evaluation.ask().items():
        at = items.index.get_indexer(asked)
        evaluation.tell(name, dict(zip(asked, right[name][at], strict=True)))
    return evaluation


def stopped_at(evaluation: fewbench.Evaluation, run: str, looks: int) -> int | None:
    """Return the step at which the gate fails first, or None."""
    for step in STEPS:
        target, sister = (evaluation, f"{run}/step-{step}"), (evaluation, f"sister/step-{step}")
        if fewbench.gate(target, not_below=sister, margin=MARGIN, looks=looks).verdict == "fail":
            return step
    return None


def main() -> None:
    """Print a row for each kind of run, with and without --looks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=60)
    worlds = parser.parse_args().worlds
    warnings.simplefilter("ignore")
    stops: dict[tuple[str, int], list[int | None]] = {}
    for world in range(worlds):
        evaluation = evaluated(world)
        for run in [*RUNS][1:]:
            for looks in (1, len(STEPS)):
                stops.setdefault((run, looks), []).append(stopped_at(evaluation, run, looks))
    for (run, looks), steps in stops.items():
        stopped = [step for step in steps if step is not None]
        median = f", at step {statistics.median(stopped):,g} (median)" if stopped else ""
        print(f"{run}, --looks {looks}: {len(stopped) / worlds:.0%} stopped{median}")


if __name__ == "__main__":
    main()
