"""Seconds and memory of one target's whole estimate with its interval, at the size of MMLU.

    python benchmarks/whole_estimate.py METHOD [--sizes mmlu]

400 simulated sources and one target on 14,042 items in 57 tasks, 100 items asked, in a process of
its own, on one thread: from a table in memory to the interval, which repeats the method on held-out
sources. Seconds are of the processor; memory is the most that the process had. With an earlier
revision's `src` in PYTHONPATH, the same line prints what it took before; the estimate must be
equal.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from fewbench._threads import one_thread
from fewbench.evaluation import Evaluation
from fewbench.scores import Scores
from fewbench.testing import simulate

MODELS, ITEMS, TASKS, BUDGET = 401, 14042, 57, 100


def table(n_models: int = MODELS, share: float = 1.0) -> Scores:
    """Tasks as large as those of MMLU: most near 100 items, some above 1,000."""
    sizes = 100 + 1434 * np.linspace(0, 1, TASKS) ** 8.9
    sizes = np.maximum(np.rint(sizes * share), 1).astype(int)
    whole = simulate(n_models, int(sizes.sum()), 1)
    tasks = np.repeat(np.arange(TASKS), sizes)
    return replace(whole, items=whole.items.assign(task=[f"task-{task:02}" for task in tasks]))


def peak() -> float:
    """Gibibytes of memory that this process had at most."""
    status = Path("/proc/self/status")
    if status.exists():  # of this process alone; getrusage begins with its parent's
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return float(line.split()[1]) / 2**20
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def estimate(method: str, scores: Scores, budget: int) -> dict[str, float]:
    """Estimate the first model from the others; return seconds, and the score and its interval."""
    rows = np.arange(scores.n_models)
    sources, name = scores.take(models=rows[1:]), scores.model_ids[0]
    answers = scores.cells[0].copy()
    del scores  # half of what the tables take
    started = time.process_time()
    evaluation = Evaluation(sources, method, budget, [name])
    while asked := evaluation.ask():
        items = asked[name]
        evaluation.tell(name, dict(zip(items, answers[sources.positions(items)], strict=True)))
    (result,) = evaluation.estimate().values()
    seconds = time.process_time() - started
    interval = result.interval
    assert interval is not None
    return {
        "seconds": seconds,
        "score": result.score,
        "low": interval.low,
        "high": interval.high,
    }


def measured(method: str, sizes: str = "equal") -> dict[str, float]:
    """Return what `estimate` does, and the memory, in a process of its own."""
    command = [sys.executable, __file__, method, "--sizes", sizes]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | threads
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def show(method: str, sizes: str, seconds: float, gib: float = np.inf) -> float:
    """Print what a whole estimate takes against limits, and its result; return the seconds."""
    result = measured(method, sizes)
    print(f"{method}, estimate and interval, {MODELS - 1} sources, {ITEMS:,} items, {BUDGET} asked")
    line = f"  {result['seconds']:.1f} s, {result['seconds'] / seconds:.2f} of the limit of "
    line += f"{seconds:g} s; {result['memory']:.2f} GiB"
    if np.isfinite(gib):
        line += f", {result['memory'] / gib:.2f} of the limit of {gib:g} GiB"
    print(line + "; {score:.12f} [{low:.12f}, {high:.12f}]".format(**result), flush=True)
    return result["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method")
    parser.add_argument("--sizes", choices=["equal", "mmlu"], default="equal", help="of tasks")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # that random sampling errs less on simulated answers
    estimate(arguments.method, simulate(31, 200, 3, seed=1), 20)  # so that imports are not timed
    result = estimate(
        arguments.method,
        table() if arguments.sizes == "mmlu" else simulate(MODELS, ITEMS, TASKS, seed=1),
        BUDGET,
    )
    print(json.dumps(result | {"memory": peak()}))


if __name__ == "__main__":
    with one_thread():
        main()
