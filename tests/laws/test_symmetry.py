"""Law 6: a table with right and wrong exchanged gives the same statements, exchanged."""

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import fewbench
from fewbench import Evaluation
from fewbench.evaluation.estimate import Estimate
from fewbench.scores import Benchmark, from_arrays
from fewbench.testing import simulate

N_ITEMS = 90
WORLDS = {
    "many sources": {"n_sources": 40},
    "over a hundred sources": {"n_sources": 111, "n": 20},
    "fractions": {"n_sources": 40, "continuous": True},
    "few sources": {"n_sources": 8},
    "no sources": {"n_sources": 0},
    "one task": {"n_sources": 40, "n_tasks": 1},
    "many items": {"n_sources": 40, "n": 55},
    "static": {"n_sources": 40, "method": "fewbench-static"},
    "static, few sources": {"n_sources": 8, "method": "fewbench-static"},
    "pairs": {"n_sources": 40, "method": "fewbench(together=2)"},
    "macro": {"n_sources": 40, "average": "macro"},
    "random": {"n_sources": 40, "method": "random"},
}


@cache
def run(
    n_sources: int, *, flip: bool, n: int = 30, n_tasks: int = 3,
    method: str = "fewbench", continuous: bool = False, average: str = "micro",
) -> Evaluation:  # fmt: skip
    """Answer an evaluation of six targets: two far above the sources, two far below, two like them.

    With `flip`, right and wrong are exchanged.
    """
    whole = simulate(n_sources + 40, N_ITEMS, n_tasks, continuous=continuous)
    order = np.argsort(whole.full_scores(), kind="stable")
    targets = order[[0, 1, n_sources // 2 + 18, n_sources // 2 + 22, -2, -1]]
    sources = np.setdiff1d(order[15:-15], targets)[:n_sources]
    values = 1 - whole.values if flip else whole.values
    items, tasks = list(whole.items.index), list(whole.items["task"])
    known = Benchmark(whole.items[["task"]], average=average)
    if n_sources:
        models = [f"s{row}" for row in range(len(sources))]
        known = from_arrays(values[sources], models=models, items=items, tasks=tasks)
        known = known.averaged(average)
    names = [f"t{row}" for row in range(len(targets))]
    evaluation = Evaluation(known, method, budget=n, targets=names)
    while asked := evaluation.ask():
        for name, wanted in asked.items():
            row = values[targets[names.index(name)]]
            evaluation.tell(name, {item: float(row[items.index(item)]) for item in wanted})
    return evaluation


def numbers(estimate: Estimate, *, flip: bool) -> list[float]:
    """Return an estimate's scores and ends, of the full score and of the tasks."""
    parts = [(estimate.score, estimate.interval), (estimate.score, estimate.as_model)]
    parts += [(estimate.tasks[task], ends) for task, ends in estimate.task_intervals.items()]
    rows = [(score, *((ends.low, ends.high) if ends else (0.5, 0.5))) for score, ends in parts]
    every = [
        1 - np.array([s, high, low]) if flip else np.array([s, low, high]) for s, low, high in rows
    ]
    return np.concatenate(every).tolist()


def exchanged(warnings: Sequence[str]) -> list[str]:
    """Return warnings as they are about the other end."""
    swaps = {"does better": "does worse", "answers are right": "answers are wrong"}
    swaps |= {new: old for old, new in swaps.items()}
    pattern = re.compile("|".join(swaps))
    return [pattern.sub(lambda found: swaps[found[0]], text) for text in warnings]


@pytest.mark.parametrize("world", WORLDS)
def test_of_estimates(world):
    one, other = (run(**WORLDS[world], flip=flip) for flip in (False, True))
    plain, flipped = one.estimate(warn=False), other.estimate(warn=False)
    for name in plain:
        assert numbers(plain[name], flip=False) == pytest.approx(
            numbers(flipped[name], flip=True), abs=1e-6
        ), name
        assert list(plain[name].warnings) == exchanged(flipped[name].warnings)


@pytest.mark.parametrize("fixed_items", [False, True])
@pytest.mark.parametrize("world", ["many sources", "few sources", "no sources", "pairs", "static"])
def test_of_decisions(world, fixed_items):
    one, other = (run(**WORLDS[world], flip=flip) for flip in (False, True))
    for a, b in (("t0", "t1"), ("t2", "t3"), ("t1", "t4")):
        plain = fewbench.versus((one, a), (one, b), fixed_items=fixed_items, warn=False)
        flipped = fewbench.versus((other, b), (other, a), fixed_items=fixed_items, warn=False)
        assert [plain.difference, plain.interval.low, plain.interval.high] == pytest.approx(
            [flipped.difference, flipped.interval.low, flipped.interval.high], abs=1e-6
        )
    for name, bound in (("t0", 0.2), ("t2", 0.5), ("t5", 0.9)):
        plain = fewbench.gate((one, name), at_least=bound, fixed_items=fixed_items)
        flipped = fewbench.gate((other, name), at_least=1 - bound, fixed_items=fixed_items)
        assert {plain.verdict, flipped.verdict} in (
            {"pass", "fail"},
            {"undecided"},
        )
