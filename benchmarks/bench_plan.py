"""Processor seconds of what people wait for: plan, its first answer, pack, compare and a run.

    python benchmarks/bench_plan.py [--quick]

Each is printed as a ratio to its limit, and to one measurement of the method's errors on held-out
source models, which every interval of a run needs: the second ratio hardly depends on the machine.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fewbench import compare, plan
from fewbench._threads import one_thread
from fewbench.datasets import load_zoo
from fewbench.evaluation import Evaluation
from fewbench.methods import find_method
from fewbench.packs.making import pack
from fewbench.scores import Scores
from fewbench.testing import simulate
from fewbench.uncertainty.held_out import looks_of, measure

BUDGET = 100
PLAN = {"half_width": 0.05}
LIMITS = {
    "demo": {"first": 2.0, "plan": 8.0, "pack": 10.0, "compare": 30.0, "run": 8.0},
    "150 x 1,319": {"first": 2.0, "plan": 12.0, "pack": 10.0, "compare": 30.0, "run": 8.0},
}
"""Processor seconds."""


def seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def of_plan(table: Scores) -> dict[str, float]:
    """Return the seconds of a plan, and of its first answer."""
    started, first = time.process_time(), []
    plan(table, **PLAN, on_first=lambda made: first.append(time.process_time() - started))
    return {"first": first[0], "plan": time.process_time() - started}


def errors_of(table: Scores) -> None:
    """Measure the errors of the method fewbench on held-out source models."""
    with one_thread():
        measure(find_method("fewbench"), table, BUDGET, 0, looks_of(BUDGET))


def one_run(table: Scores) -> None:
    """Choose a method, run a target and estimate it, with its interval."""
    sources, target = table.take(models=np.arange(1, table.n_models)), table.take(models=[0])
    evaluation = Evaluation(sources, "auto", BUDGET, ["target"])
    truth = dict(zip(target.item_ids.tolist(), target.values[0].tolist(), strict=True))
    while asked := evaluation.ask().get("target"):
        evaluation.tell("target", {item: truth[item] for item in asked})
    evaluation.estimate(targets=["target"])


def main(words: list[str]) -> None:
    for name, table in {"demo": load_zoo(), "150 x 1,319": simulate(150, 1319, seed=1)}.items():
        works = {"pack": partial(pack, budget=BUDGET), "compare": partial(compare, budgets=BUDGET)}
        if "--quick" in words:
            works = {}
        # New tables: what one call learned of a table is not there for the next.
        yardstick = seconds(partial(errors_of, table.changed()))
        spent = of_plan(table.changed())
        for what, work in (works | {"run": one_run}).items():
            spent[what] = seconds(partial(work, table.changed()))
        for what, taken in spent.items():
            limit = LIMITS[name][what]
            print(
                f"{name}: {what} {taken:.1f} s, {taken / limit:.2f} of the limit {limit:g} s, "
                f"{taken / yardstick:.2f} times one measurement of errors ({yardstick:.1f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
