"""Time and memory of fewbench's own method, against limits.

    python benchmarks/bench_fewbench.py [--full]

Simulated answers: 400 sources on 14,042 items in 57 tasks (MMLU), 100 targets of 100 items each,
from the fit to the last calibrated interval, against a limit of 10 seconds on two cores. Then one
target that is asked item by item, against 0.1 seconds an item. With --full also 5,000 sources on
30,000 items and one target, without an interval.
"""

import argparse
import resource
import time

import numpy as np

from fewbench.evaluation import Evaluation
from fewbench.evaluation.replay import replay
from fewbench.methods import Answers, find_method
from fewbench.scores import Scores
from fewbench.testing import simulate

BUDGET = 100
LIMIT, STEP_LIMIT = 10.0, 0.1


def divided(n_sources: int, n_targets: int, n_items: int) -> tuple[Scores, Scores]:
    table = simulate(n_sources + n_targets, n_items, 57, seed=1)
    rows = np.arange(table.n_models)
    return table.take(models=rows[n_targets:]), table.take(models=rows[:n_targets])


def line(what: str, seconds: float, limit: float | None = None) -> None:
    against = "" if limit is None else f"   {seconds / limit:5.2f} of the limit of {limit:g} s"
    print(f"  {what:<46} {seconds:8.3f} s{against}", flush=True)


def evaluate(sources: Scores, targets: Scores, limit: float | None = None) -> None:
    """A whole evaluation, as `start`, `ask`, `tell` and `estimate` make it."""
    clock = [time.perf_counter()]
    evaluation = Evaluation(sources, "fewbench", BUDGET, targets.model_ids)
    asked = evaluation.ask()
    clock.append(time.perf_counter())
    while asked:
        for name, items in asked.items():
            row = targets.values[targets.model_ids.index(name)]
            evaluation.tell(name, dict(zip(items, row[targets.positions(items)], strict=True)))
        asked = evaluation.ask()
    clock.append(time.perf_counter())
    found = evaluation.estimate()
    clock.append(time.perf_counter())
    assert {one.items_run for one in found.values()} == {BUDGET}
    fit, rounds, estimate = np.diff(clock)
    line("fit, first round", fit)
    line("all other rounds", rounds)
    line("errors on held-out sources, estimates", estimate)
    line("all", clock[-1] - clock[0], limit)


def steps(sources: Scores, targets: Scores) -> None:
    """One target that is asked item by item."""
    session = find_method("fewbench(first=5,growth=1)").start(
        sources, BUDGET, 0, targets.model_ids[:1]
    )
    took = []
    started = time.perf_counter()
    while wanted := session.ask():
        took.append(time.perf_counter() - started)
        ((name, items),) = wanted.items()
        started = time.perf_counter()
        session.tell(name, Answers(items, targets.values[:1, items]))
    line(f"{len(took) - 1} items one by one: mean of an item", float(np.mean(took[1:])), STEP_LIMIT)
    line("slowest item", max(took[1:]), STEP_LIMIT)


def large() -> None:
    """Fit, 100 items and the estimate of one target, without its interval."""
    sources, targets = divided(5000, 1, 30_000)
    before = memory()
    print(f"1 target of {BUDGET} items; {sources.n_models:,} sources, {sources.n_items:,} items")
    started = time.perf_counter()
    replay(find_method("fewbench"), sources, targets, BUDGET, 0)
    line("fit, all rounds, estimate", time.perf_counter() - started)
    print(f"  most memory {memory():.1f} GB, {before:.1f} GB of it to simulate the answers")


def memory() -> float:
    """Most memory of the process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="5,000 sources on 30,000 items, too")
    full = parser.parse_args().full
    # A small one first, so that imports are not timed.
    find_method("fewbench").start(simulate(12, 60, seed=0), 5, 0, ["new"]).ask()
    sources, targets = divided(400, 100, 14_042)
    print(f"{targets.n_models} targets of {BUDGET} items; {sources.n_models} sources, "
          f"{sources.n_items:,} items")  # fmt: skip
    evaluate(sources, targets, LIMIT)
    steps(sources, targets)
    if full:
        del sources, targets
        large()


if __name__ == "__main__":
    main()
