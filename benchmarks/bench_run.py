"""fewbench's own time in a run: seconds per round at 400 models × 14,042 items.

    python benchmarks/bench_run.py [--half-width] [METHOD…]

Goals: under 0.1 s for a round of `fewbench`, under 0.3 s for one of `fluid`. With --half-width the
interval is measured after each round, on the source models; most rounds reuse earlier results.
"""

import sys
import time
from tempfile import TemporaryDirectory

import numpy as np

from fewbench.evaluation import Stop
from fewbench.runners.run import Run
from fewbench.testing import simulate

MODELS, ITEMS, TASKS, BUDGET, ROUNDS = 400, 14_042, 57, 100, 25
GOALS = {"fewbench": 0.1, "fluid": 0.3}


def rounds_of(method, sources, truth, folder, stop):
    """Return the seconds to open a run, and of each of its rounds: next and take."""
    started = time.perf_counter()
    run = Run.open(sources, method, stop, folder)
    run.next("target")
    opened = time.perf_counter() - started
    seconds = []
    with run:
        while items := run.next("target"):
            before = time.perf_counter()
            run.take("target", {item: truth[item] for item in items})
            run.next("target")
            seconds.append(time.perf_counter() - before)
            if len(seconds) == ROUNDS:
                break
    return opened, np.array(seconds)


def main(words):
    names = [word for word in words if not word.startswith("-")] or list(GOALS)
    half_width = 0.001 if "--half-width" in words else None  # never reached
    stop = Stop(items=BUDGET, half_width=half_width)
    table = simulate(MODELS + 1, ITEMS, TASKS, seed=0)
    sources, new = table.take(models=range(MODELS)), table.take(models=[MODELS])
    truth = dict(zip(new.item_ids.tolist(), new.values[0].tolist(), strict=True))
    for name in names:
        with TemporaryDirectory() as folder:
            opened, seconds = rounds_of(name, sources, truth, f"{folder}/run", stop)
        later = np.sort(seconds)
        print(
            f"{name}: opened in {opened:.1f} s; {len(seconds)} rounds, median "
            f"{np.median(later):.3f} s, longest {later[-1]:.3f} s (goal {GOALS.get(name, 0.1)} s)",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
