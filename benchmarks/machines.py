"""Whether every method gives the same answer on every processor.

    python benchmarks/machines.py
    python benchmarks/machines.py --methods fewbench clustering --tables mine.parquet --show

The last bits of a sum depend on the order in which it is added, and that order suits a processor.
OpenBLAS computes like a different processor if OPENBLAS_CORETYPE names it; settings of NumPy and
the C library turn newer instructions off. In one process for each setting, every method of the
catalogue evaluates held-out targets of every table, and the README's estimate of chosen items is
printed. Each setting is compared with the first: items and printed text must be equal, estimates
and ends of intervals to 1e-5 (held-out errors are kept in single precision). The exit status is 1
if they are not.

A setting that this processor cannot run is left out, with a sentence. ARM processors and Apple's
Accelerate library cannot be tried on an x86 processor.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

BUDGET, TARGETS, LEVEL = 30, 2, 0.9
CLOSE = 1e-5
KERNELS = ("Haswell", "SkylakeX", "Sandybridge", "Nehalem", "Prescott")
"""One for each instruction set that OpenBLAS has kernels for: AVX2 (Zen too), AVX-512 (Cooperlake
too), AVX, SSE4 and SSE3."""
OLD = "no AVX in NumPy and libc"
THREADS = (1, 2)


def tables(paths: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield names and tables: right and wrong, options, fractions with holes, many equal items."""
    from fewbench.datasets import load_zoo
    from fewbench.public import load_scores
    from fewbench.scores import from_arrays
    from fewbench.testing import simulate

    if paths:
        yield from ((Path(path).stem, load_scores(path)) for path in paths)
        return
    yield "zoo", load_zoo().take(models=range(0, 280, 6), items=range(0, 1000, 4))
    yield "options", simulate(50, 240, 4, seed=3, options=4)
    yield "fractions", simulate(46, 160, 5, seed=4, continuous=True, missing=0.02)
    once = simulate(60, 100, 3, seed=5)
    twice = np.repeat(np.arange(100), 2)
    tasks = once.items["task"].iloc[twice]
    yield "twins", from_arrays(once.values[:, twice], models=once.model_ids, tasks=tasks)


def settings() -> dict[str, dict[str, str]]:
    """Return the environment variables of each kernel and number of threads."""
    from numpy._core import _multiarray_umath as umath

    newer = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    every = {}
    for kernel in KERNELS:
        for n in THREADS:
            threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(n))
            every[f"{kernel}, threads: {n}"] = threads | {"OPENBLAS_CORETYPE": kernel}
    every[OLD] = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(newer),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4,-AVX",
    }
    return every


def evaluate(paths: Sequence[str], methods: Sequence[str]) -> dict[str, Any]:
    """Return the kernels in use, and what every method asks, estimates and prints of each table."""
    from threadpoolctl import threadpool_info

    from fewbench.errors import FewbenchError

    cells: dict[str, Any] = {}
    for name, table in tables(paths):
        rows = np.arange(table.n_models)
        is_target = rows % (table.n_models // TARGETS) == 1
        sources, targets = table.take(models=rows[~is_target]), table.take(models=rows[is_target])
        for method in methods:
            try:
                cells[f"{name}, {method}"] = of_method(method, sources, targets)
            except FewbenchError as error:  # the table lacks what the method needs
                cells[f"{name}, {method}"] = {"text": str(error)}
    kernels = sorted({info.get("architecture", "none") for info in threadpool_info()})
    return {"kernels": kernels, "cells": cells}


def of_method(method: str, sources: Any, targets: Any) -> dict[str, Any]:
    from fewbench.evaluation import Evaluation

    evaluation = Evaluation(sources, method, BUDGET, targets.model_ids)
    while asked := evaluation.ask():
        for name, items in asked.items():
            row, at = targets.model_ids.index(name), targets.positions(items)
            is_run = np.isfinite(targets.values[row, at])
            if is_run.any():
                evaluation.tell_table(targets.take(models=[row], items=at[is_run]), name)
            evaluation.skip(
                name, [item for item, has in zip(items, is_run, strict=True) if not has]
            )
    items, numbers, text = [], [], []
    for name, estimate in evaluation.estimate(warn=False).items():
        items += evaluation.record.asked(name).tolist()
        numbers += [estimate.score, estimate.interval.low, estimate.interval.high]
        text.append(str(estimate))
    return {"items": items, "numbers": numbers, "text": "\n".join(text)}


def in_process(
    environment: dict[str, str], paths: Sequence[str], methods: Sequence[str]
) -> dict[str, Any] | None:
    """Return what `evaluate` does in a process of this setting, or None where it cannot run."""
    words = [sys.executable, __file__, "--here", "--methods", *methods, "--tables", *paths]
    with TemporaryDirectory() as cache:
        environment = os.environ | {"XDG_CACHE_HOME": cache} | environment
        ended = subprocess.run(words, env=environment, capture_output=True, text=True)
    if ended.returncode < 0:  # an instruction that the processor does not have
        return None
    if ended.returncode:
        raise SystemExit(ended.stderr)
    return dict(json.loads(ended.stdout))


def differences(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return a line for every cell that differs."""
    from fewbench.testing.printed import same_printed

    lines = []
    for name, cell in first["cells"].items():
        same, what = other["cells"][name], []
        if cell.get("items") != same.get("items"):
            n = len(set(enumerate(cell["items"])) - set(enumerate(same["items"])))
            what.append(f"{n} of {len(cell['items'])} items")
        if "numbers" in cell:
            apart = float(np.abs(np.subtract(cell["numbers"], same["numbers"])).max())
            what += [f"numbers by {apart:.1e}"] if apart > CLOSE else []
        what += [] if same_printed(cell["text"], same["text"]) else ["text"]
        lines += [f"  {name}: {', '.join(what)}"] if what else []
    return lines


def main() -> None:
    from fewbench.methods import CATALOGUE

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=[], help="files in place of the four tables")
    parser.add_argument("--methods", nargs="*", default=list(CATALOGUE))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        with contextlib.redirect_stdout(io.StringIO()):
            result = evaluate(given.tables, given.methods)
        print(json.dumps(result))
        return
    first, differ = None, False
    for name, environment in settings().items():
        started = time.perf_counter()
        other = in_process(environment, given.tables, given.methods)
        if other is None:
            print(f"{name}: this processor cannot run it", flush=True)
            continue
        first = first or other
        lines = differences(first, other)
        differ = differ or bool(lines)
        took = f"{time.perf_counter() - started:.0f} s"
        print(f"{name} (runs {', '.join(other['kernels'])}): {len(lines)} of "
              f"{len(other['cells'])} differ, {took}", *lines, sep="\n", flush=True)  # fmt: skip
    raise SystemExit(differ)


if __name__ == "__main__":
    main()
