"""PDS and JSD of a large tensor on disk, against reading it once.

python benchmarks/bench_disagreement.py          100 models × 20,000 items × 100 options
python benchmarks/bench_disagreement.py --full   400 models × 50,000 items × 100 options (4 GB)
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fewbench.algorithms.option_probabilities import jensen_shannon, predictive_diversity
from fewbench.scores import OptionProbabilities

OPTIONS = 100


def make(path: Path, models: int, items: int) -> OptionProbabilities:
    rng = np.random.default_rng(0)
    shape = (models, items, OPTIONS)
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
    row = rng.dirichlet(np.full(OPTIONS, 0.1), size=items)
    for model in range(models):
        array[model] = np.roll(row, model, axis=1)
    array.flush()
    return OptionProbabilities(np.load(path, mmap_mode="r"))


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the full size, 4 GB on disk")
    full = parser.parse_args().full
    models, items = (400, 50_000) if full else (100, 20_000)
    with tempfile.TemporaryDirectory() as folder:
        options = make(Path(folder) / "p.npy", models, items)
        n_options = np.full(items, OPTIONS)

        def read_bytes() -> None:
            for row in options.by_model():
                np.array(row)

        def read_numbers() -> None:
            for row in options.by_model():
                row.astype(np.float32)

        read_bytes()  # so that all of the following find the file as warm
        times = {
            "read once, as bytes": seconds(read_bytes),
            "read once, as numbers": seconds(read_numbers),
            "PDS": seconds(lambda: predictive_diversity(options.by_model(), n_options)),
            "JSD": seconds(lambda: jensen_shannon(options.by_model())),
        }
    print(f"disagreement, {models} models × {items:,} items × {OPTIONS} options, float16 on disk")
    for name, took in times.items():
        of_bytes = took / times["read once, as bytes"]
        of_numbers = took / times["read once, as numbers"]
        print(f"  {name:<24}{took:8.2f} s  {of_bytes:6.2f} × bytes  {of_numbers:6.2f} × numbers")
    one = items * OPTIONS * 4 / 1e6
    anonymous = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        f"  one model as float32: {one:.0f} MB; peak memory with mapped pages: {anonymous:.0f} MB"
    )


if __name__ == "__main__":
    main()
