"""Time of fewbench's own method, against limits, and the shares of its parts.

    python benchmarks/bench_fewbench.py

Simulated answers: 400 sources on 14,042 items in 57 tasks (MMLU). One target of 100 items, from
reading the scores to the calibrated interval, on one core: 6 seconds of processor time, and 2 where
sources of ten families cannot carry a model, so that all items are a sample. A round by command
line costs hardly more than on 40 sources and 60 items: the fit is in the evaluation's folder. Then
100 targets, against 10 seconds on two cores, and one that runs item by item, against 0.1 seconds an
item.
"""

import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fewbench._threads import one_thread
from fewbench.algorithms.kriging import KrigingRun, model
from fewbench.evaluation import Evaluation, estimating
from fewbench.methods import Answers, find_method, kriging
from fewbench.methods.adaptive import fewbench as method
from fewbench.public import load_scores
from fewbench.scores import Scores, save_scores
from fewbench.testing import simulate

BUDGET = 100
MODEL_LIMIT, SAMPLE_LIMIT, LIMIT, STEP_LIMIT = 6.0, 2.0, 10.0, 0.1
ROUND_LIMITS = {"ask": 1.5, "tell": 1.5, "estimate": 3.0}
"""For the same command on a tiny table."""


def divided(n_sources: int, n_targets: int, n_items: int, n_tasks: int) -> tuple[Scores, Scores]:
    table = simulate(n_sources + n_targets, n_items, n_tasks, seed=1)
    rows = np.arange(table.n_models)
    return table.take(models=rows[n_targets:]), table.take(models=rows[:n_targets])


def line(what: str, seconds: float, limit: float | None = None) -> None:
    against = "" if limit is None else f"   {seconds / limit:5.2f} of the limit of {limit:g} s"
    print(f"  {what:<46} {seconds:8.3f} s{against}", flush=True)


class Parts:
    """Processor seconds of functions, without those of further ones that they call."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inner = [0.0]

    def timed(self, name: str, of: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            started = time.process_time()
            self._inner.append(0.0)
            try:
                return of(*given, **named)
            finally:
                took = time.process_time() - started
                self.seconds[name] += took - self._inner.pop()
                self._inner[-1] += took

        return call

    def watch(self) -> None:
        """Time the parts of an evaluation from now on."""
        kriging.models_per_group = self.timed("groups of alike sources", kriging.models_per_group)
        model.fit_abilities = self.timed("fits: curves", model.fit_abilities)
        model.Inside.fit = self.timed("fits: kriging inside", model.Inside.fit)  # type: ignore[method-assign]
        model.Beyond.fit = self.timed("fits: curves beyond", model.Beyond.fit)  # type: ignore[method-assign]
        run: Any = KrigingRun
        run.hear = self._method("hearing answers", run.hear)
        run.estimate = self._method("estimates of runs", run.estimate)
        method.next_together = self.timed("choosing", method.next_together)
        method.settle = self.timed("deciding on a sample", method.settle)
        measure = estimating.measure_for
        estimating.measure_for = self.timed("held-out errors: the rest", measure)

    def _method(self, name: str, of: Callable[..., Any]) -> Any:
        call = self.timed(name, of)
        return lambda own, *given: call(own, *given)


def parts(path: Path, target: Scores, limit: float) -> None:
    """One target on one core, and the share of each part."""
    watched = Parts()
    read = watched.timed("reading the scores", load_scores)
    watched.watch()
    started = time.process_time()
    with one_thread():
        whole = watched.timed("all else", lambda: evaluate(read(path), target))
        (found,) = whole().values()
    took = time.process_time() - started
    line(f"one target, interval {found.interval_kind}: processor time", took, limit)
    for name, seconds in sorted(watched.seconds.items(), key=lambda one: -one[1]):
        print(f"    {name:<28} {seconds / took:6.1%}")


def evaluate(sources: Scores, targets: Scores) -> Any:
    """A whole evaluation, as `start`, `ask`, `tell` and `estimate` make it."""
    evaluation = Evaluation(sources, "fewbench", BUDGET, targets.model_ids)
    while asked := evaluation.ask():
        for name, items in asked.items():
            row = targets.values[targets.model_ids.index(name)]
            evaluation.tell(name, dict(zip(items, row[targets.positions(items)], strict=True)))
    return evaluation.estimate(warn=False)


def rounds(path: Path, target: Scores) -> dict[str, float]:
    """Processor seconds of each command, the last of two rounds, after `start` kept the fit."""
    folder, csv = path.parent / f"run-{path.stem}", path.parent / "answers.csv"
    seconds = {}

    def run(command: str, *more: str) -> str:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = [sys.executable, "-m", "fewbench", command, *more]
        said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[command] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return said

    run("start", str(path), "-m", "fewbench", "-n", "10", "--no-check", "-o", str(folder))
    for _ in range(2):
        ids = run("ask", str(folder)).split()
        row = target.values[0, target.positions(ids)]
        csv.write_text("id,right\n" + "\n".join(map("{},{:g}".format, ids, row)))
        run("tell", str(folder), str(csv), "--item", "id", "--score", "right")
        run("estimate", str(folder))
        run("estimate", str(folder))  # the held-out errors are kept, too
    return seconds


def steps(sources: Scores, targets: Scores) -> None:
    """One target that runs item by item."""
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


def main() -> None:
    sources, targets = divided(400, 100, 14_042, 57)
    print(f"{sources.n_models} sources, {sources.n_items:,} items, {BUDGET} items a target")
    evaluate(*divided(40, 2, 200, 3))  # so that imports are not timed
    started = time.perf_counter()
    evaluate(sources, targets)
    line(f"{targets.n_models} targets", time.perf_counter() - started, LIMIT)
    steps(sources, targets)
    one = targets.take(models=[0])
    few = [f"family {row % 10}" for row in range(sources.n_models)]
    few_families = sources.changed(models=sources.models.assign(family=few))
    with TemporaryDirectory() as name:
        large, tiny = Path(name, "large.parquet"), Path(name, "tiny.parquet")
        save_scores(sources, large)
        parts(large, one, MODEL_LIMIT)
        parts(save_scores(few_families, Path(name, "few.parquet")), one, SAMPLE_LIMIT)
        small, target = divided(40, 1, 60, 3)
        save_scores(small, tiny)
        here, there = rounds(large, one), rounds(tiny, target)
    for command, limit in ROUND_LIMITS.items():
        ratio = here[command] / there[command]
        print(f"  {command:<9} {here[command]:6.2f} s of processor time, {ratio:.2f} times that on "
              f"40 × 60   {ratio / limit:5.2f} of the limit of {limit:g}")  # fmt: skip


if __name__ == "__main__":
    main()
