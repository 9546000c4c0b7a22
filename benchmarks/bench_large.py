"""Time and memory of large tables, against limits.

    python benchmarks/bench_large.py [--growth] [--options] [--models 5000] [--items 30000]

Simulated right and wrong answers, written as an .npz file. Then each step in a process of its own:
import, audit, and an evaluation of one target (100 items, estimate and 90 % interval) by `fewbench`
and by `greedy-ridge`. The limit is on each step's most memory: 1 GB for the process and its work,
and 3 times the table as float64 (4.4 GB for 5,000 models × 30,000 items); for `fewbench` also on
its processor time: 15 seconds and 0.7 for each million cells (120 for 5,000 × 30,000). With
--growth also at four smaller sizes: exponents of time in models and items, and what they give for
10,000 models × 1 million items. With --options also option probabilities, 40 models × 5,000 items ×
1,000 options as half floats (400 MB): imported, saved and used by a process that may take no more
than that of memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

BUDGET = 100
BASE_GB, TABLES = 1.0, 3.0
BASE_S, PER_MILLION = 15.0, 0.7
STEPS = ("simulate", "import", "audit", "fewbench", "greedy-ridge")
SIZES = ((1250, 7500), (1250, 30_000), (5000, 7500), (2500, 15_000))
AIM = (10_000, 1_000_000)
OPTIONS = (40, 5000, 1000)


def simulate(folder: Path, n_models: int, n_items: int) -> None:
    """Write answers by the two-parameter logistic model, a byte each, models in families of two."""
    rng = np.random.default_rng(1)
    n_models += 1  # the target
    family = np.arange(n_models) // 2
    ability = rng.normal(0.3, 1.0, family.max() + 1)[family] + rng.normal(0.0, 0.3, n_models)
    tasks = np.sort(rng.integers(57, size=n_items))
    difficulty = rng.normal(0.0, 1.0, n_items) + rng.normal(0.0, 0.5, 57)[tasks]
    slope = rng.lognormal(0.2, 0.3, n_items)
    right = np.empty((n_models, n_items), dtype=np.uint8)
    for row in range(n_models):
        chance = 1.0 / (1.0 + np.exp(-slope * (ability[row] - difficulty)))
        right[row] = rng.random(n_items) < chance
    np.savez(
        folder / "answers.npz",
        scores=right,
        models=np.array([f"model-{m}" for m in range(n_models)]),
        items=np.array([f"item-{i}" for i in range(n_items)]),
        tasks=np.array([f"task-{t}" for t in tasks]),
        families=np.array([f"family-{f}" for f in family]),
    )


def import_(folder: Path) -> None:
    from fewbench import import_results
    from fewbench.scores import save_scores

    save_scores(import_results(folder / "answers.npz").scores, folder / "scores.parquet")


def audit(folder: Path) -> None:
    from fewbench import load_scores
    from fewbench.checks import audit

    assert audit(load_scores(folder / "scores.parquet")).findings


def evaluate(folder: Path, method: str) -> None:
    from fewbench import load_scores
    from fewbench.evaluation import Evaluation

    scores = load_scores(folder / "scores.parquet")
    sources, target = scores.take(models=np.arange(scores.n_models - 1)), scores.model_ids[-1]
    answers = scores.cells[-1]
    del scores
    clock = [time.perf_counter()]
    evaluation = Evaluation(sources, method, BUDGET, [target])
    while asked := evaluation.ask():
        clock += [time.perf_counter()] if len(clock) == 1 else []
        items = asked[target]
        own = answers[sources.positions(items)]
        evaluation.tell(target, dict(zip(items, own, strict=True)))
    clock.append(time.perf_counter())
    (found,) = evaluation.estimate().values()
    clock.append(time.perf_counter())
    fit, rounds, estimate = np.diff(clock)
    truth = float(answers.mean())
    print(
        f"    fit {fit:.1f} s, {found.items_run} items {rounds:.1f} s, estimate and interval "
        f"{estimate:.1f} s: {found.score:.4f} [{found.interval.low:.4f}, "
        f"{found.interval.high:.4f}], true {truth:.4f}",
        file=sys.stderr,
    )


def write_options(folder: Path) -> None:
    """Write option probabilities model by model, into an .npz file that is not compressed."""
    n_models, n_items, n_options = OPTIONS
    rng = np.random.default_rng(2)
    right = rng.random((n_models, n_items)) < 0.6
    np.savez(
        folder / "options.npz",
        scores=right,
        models=np.array([f"model-{m}" for m in range(n_models)]),
    )
    header = {"descr": "<f2", "fortran_order": False, "shape": OPTIONS}
    with (
        zipfile.ZipFile(folder / "options.npz", "a") as archive,
        archive.open("probabilities.npy", "w", force_zip64=True) as file,
    ):
        np.lib.format.write_array_header_1_0(file, header)
        for row in right:
            share = rng.random((n_items, n_options), dtype=np.float32)
            share[:, 0] += np.where(row, n_options, 0)
            file.write((share / share.sum(axis=1, keepdims=True)).astype(np.float16).tobytes())


def use_options(folder: Path) -> None:
    """Import, save and use them with less memory than they take."""
    from fewbench import import_results, load_scores
    from fewbench.methods import find_method
    from fewbench.methods.difficulty import difficulty_index
    from fewbench.scores import save_scores

    find_method("jsd+mean")  # with all imports
    most = int(np.prod(OPTIONS)) * 2
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    save_scores(import_results(folder / "options.npz").scores, folder / "options.parquet")
    scores = load_scores(folder / "options.parquet")
    for name in ("pds+mean", "jsd+mean"):
        find_method(name).start(scores, BUDGET, 0, ["new"]).ask()
    assert difficulty_index(scores, "probabilities").shape == (scores.n_items,)
    assert scores.probabilities is not None
    few = scores.probabilities.of_items(np.arange(0, scores.n_items, scores.n_items // BUDGET))
    assert few.shape == (OPTIONS[0], BUDGET, OPTIONS[2])


def step(name: str, folder: Path, n_models: int, n_items: int) -> None:
    """Run a step here, and print its seconds and most memory."""
    started = time.perf_counter()
    if name == "simulate":
        simulate(folder, n_models, n_items)
    elif name == "import":
        import_(folder)
    elif name == "audit":
        audit(folder)
    elif name == "write options":
        write_options(folder)
    elif name == "use options":
        use_options(folder)
    else:
        evaluate(folder, name)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([time.perf_counter() - started, used.ru_utime + used.ru_stime,
                      used.ru_maxrss / 2**20]))  # fmt: skip


def run_step(name: str, folder: Path, *more: object) -> list[float]:
    """Run a step in a process of its own; return seconds, processor seconds and GB."""
    run = [sys.executable, __file__, "--step", name, "--folder", str(folder), *map(str, more)]
    found: list[float] = json.loads(subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout)
    return found


def measure(folder: Path, n_models: int, n_items: int) -> tuple[dict[str, list[float]], bool]:
    """Run all steps; return seconds, processor seconds and GB of each, and whether all fit."""
    limit = BASE_GB + TABLES * 8 * n_models * n_items / 2**30
    print(f"{n_models:,} models × {n_items:,} items; limit {limit:.1f} GB")
    found, fits = {}, True
    for name in STEPS:
        size = ("--models", n_models, "--items", n_items)
        seconds, cpu, gb = found[name] = run_step(name, folder, *size)
        against = f"{gb / limit:5.2f} of the limit"
        fits &= gb <= limit
        if name == "fewbench":
            most = BASE_S + PER_MILLION * n_models * n_items / 1e6
            against += f", time {cpu / most:.2f} of the limit"
            fits &= cpu <= most
        print(f"  {name:<13} {seconds:8.1f} s ({cpu:8.1f} s of processor) {gb:6.2f} GB {against}",
              flush=True)  # fmt: skip
    sizes = [(folder / name).stat().st_size / 2**20 for name in ("answers.npz", "scores.parquet")]
    print(f"  files: {sizes[0]:.1f} MB of .npz, {sizes[1]:.1f} MB of scores")
    return found, fits


def growth(found: dict[tuple[int, int], dict[str, list[float]]]) -> None:
    """Print exponents of processor time and memory in models and items."""
    logs = np.log(np.array(list(found), dtype=float))
    design = np.column_stack([np.ones(len(logs)), logs])
    aim = np.concatenate([[1.0], np.log(AIM)])
    print(f"growth: time and memory as models^a × items^b; then at {AIM[0]:,} × {AIM[1]:,}")
    for name in STEPS[1:]:
        line = f"  {name:<13}"
        for column, unit in ((1, "s"), (2, "GB")):
            least = 0.0 if unit == "s" else 0.2  # GB of the program itself
            y = np.log([max(one[name][column] - least, 1e-3) for one in found.values()])
            fitted, *_ = np.linalg.lstsq(design, y, rcond=None)
            off = float(np.exp(np.abs(design @ fitted - y).max()))
            reached = float(np.exp(aim @ fitted)) + least
            line += f"  {unit}: a {fitted[1]:.2f}, b {fitted[2]:.2f} (within {off:.2f}×), "
            line += f"{reached:,.0f} {unit}"
        print(line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true", help="four smaller sizes, too")
    parser.add_argument("--options", action="store_true", help="option probabilities, too")
    parser.add_argument("--models", type=int, default=5000)
    parser.add_argument("--items", type=int, default=30_000)
    parser.add_argument("--folder", type=Path, help="for the files; a temporary one by default")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        step(given.step, given.folder, given.models, given.items)
        return 0
    found, fits = {}, True
    for size in [*(SIZES if given.growth else ()), (given.models, given.items)]:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            found[size], fit = measure(Path(folder), *size)
            fits &= fit
    if given.growth:
        growth(found)
    if given.options:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            run_step("write options", Path(folder))
            seconds, cpu, _ = run_step("use options", Path(folder))
        print(f"option probabilities of {np.prod(OPTIONS) * 2 / 1e6:.0f} MB: imported, saved and "
              f"used in {seconds:.1f} s ({cpu:.1f} s of processor), in less memory")  # fmt: skip
    print("all within the limits" if fits else "over a limit")
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main())
