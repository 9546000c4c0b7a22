"""Many source models, against limits: a run, `rank` and `audit`.

    python benchmarks/bench_models.py [--quick]

Simulated right and wrong answers (as of `bench_large.py`), each step in a process of its own with
one thread. A run has 100 items by `fewbench`, of a target that is like the sources, so that errors
on held-out sources are measured: 8,000 models × 5,000 items within 25 s of processor time and 800
MB, and time that grows with the models to the power of 1.1 at most, from 2,000 of them on. Then
`rank` of 2,000 × 15,000 within 8 s, and `audit` within 6 s. With --quick, runs of 1,000 and 2,000
models, and decisions on 1,000 × 5,000, without limits on them.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from bench_large import import_, simulate
from fewbench import Evaluation, audit, load_scores, rank

RUN_LIMITS, EXPONENT = {8000: (25.0, 800.0)}, 1.1  # seconds of processor time and MB
LIMITS = {"rank": 8.0, "audit": 6.0}


def run_like_sources(path: Path) -> float:
    """Run a model near the middle, and estimate its score; return the seconds that it took.

    A run in which chance makes the target look unlike the sources is made again, of the next model.
    """
    scores = load_scores(path)
    for row in np.argsort(scores.full_scores())[scores.n_models // 2 :].tolist():
        started, answers = time.process_time(), scores.cells[row]
        sources = scores.take(models=np.delete(np.arange(scores.n_models), row))
        evaluation = Evaluation(sources, "fewbench", 100, ["new"])
        while asked := evaluation.ask():
            own = answers[sources.positions(asked["new"])]
            evaluation.tell("new", dict(zip(asked["new"], own, strict=True)))
        with warnings.catch_warnings(record=True) as unlike:
            warnings.simplefilter("always")
            evaluation.estimate()
        if not unlike:
            return time.process_time() - started
    raise SystemExit("no target is like the sources")


def step(name: str, folder: Path, n_models: int, n_items: int) -> None:
    """Take one step here, and print its processor time and most memory."""
    path, started = folder / "scores.parquet", time.process_time()
    if name == "make":
        simulate(folder, n_models, n_items)
        import_(folder)
    elif name == "run":
        started = time.process_time() - run_like_sources(path)
    elif name == "rank":
        assert rank(load_scores(path)).targets
    else:
        assert audit(load_scores(path)).findings
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(json.dumps([time.process_time() - started, most]))


def measure(n_models: int, n_items: int, *steps: str) -> list[tuple[float, float]]:
    """Return seconds and MB of steps on a table of its own."""
    with tempfile.TemporaryDirectory() as folder:
        how = ["--folder", folder, "--models", str(n_models), "--items", str(n_items), "--step"]
        printed = [
            subprocess.run(
                [sys.executable, __file__, *how, name],
                check=True,
                stdout=subprocess.PIPE,
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            ).stdout
            for name in ("make", *steps)
        ]
    return [tuple(json.loads(text)) for text in printed[1:]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    for hidden in ("--step", "--folder", "--models", "--items"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        step(given.step, Path(given.folder), int(given.models), int(given.items))
        return
    took = {}
    for n_models in (1000, 2000) if given.quick else (2000, 8000):
        ((took[n_models], most),) = measure(n_models, 5000, "run")
        text = f"run, {n_models:,} models × 5,000: {took[n_models]:.1f} s, {most:.0f} MB"
        if n_models in RUN_LIMITS:
            seconds, memory = RUN_LIMITS[n_models]
            text += f"; {took[n_models] / seconds:.2f} and {most / memory:.2f} of the limits"
        print(text, flush=True)
    (fewer, before), (more, after) = took.items()
    grown = math.log(after / before) / math.log(more / fewer)
    print(f"time grows with the models to the power of {grown:.2f} (limit {EXPONENT:g})")
    size = (1000, 5000) if given.quick else (2000, 15_000)
    for name, (seconds, most) in zip(LIMITS, measure(*size, *LIMITS), strict=True):
        text = f"{name}, {size[0]:,} × {size[1]:,}: {seconds:.1f} s, {most:.0f} MB"
        if not given.quick:
            text += f"; {seconds / LIMITS[name]:.2f} of the limit of {LIMITS[name]:g} s"
        print(text, flush=True)


if __name__ == "__main__":
    main()
