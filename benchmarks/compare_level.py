"""Level of compare's intervals: studies of models drawn from a population.

    python benchmarks/compare_level.py FOLDER [--studies 200] [--workers 2]

A study draws models from a population: 4,000 simulated models, or those of openllm2_math_musr.npz
in FOLDER. A quarter of them are targets, drawn again for each repeat or fixed, and two methods
estimate them from 50 random items: the share of right answers, and ridge regression on the other
models. Prints how many 90 % intervals contain the population's value (for the share of right
answers the exact one, else the mean over all studies), and the standard errors over the spread of
the studies.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np

from fewbench.algorithms.ridge_and_neighbors import fit_ridge
from fewbench.checks import audit, drop
from fewbench.methods.sources import source_groups
from fewbench.public import load_scores
from fewbench.study.inference import Figure, expected_random_mae, two_way
from fewbench.study.metrics import weighted_metrics
from fewbench.testing import simulate

ITEMS, RESAMPLES, SLOW = 50, 499, 199
EXACT = "error of random"


@cache
def population(path: Path | None):  # type: ignore[no-untyped-def]
    """Return a table, its models' groups and their expected errors by random sampling."""
    if path is None:
        table = simulate(4000, 400, seed=1)
    else:
        table = load_scores(path)
        table = drop(table, audit(table), ["duplicates"])[0]
    groups = dict(zip(table.model_ids, source_groups(table).tolist(), strict=True))
    return table, groups, expected_random_mae(table, ITEMS)


def study(path: Path | None, fixed: bool, n_models: int, repeats: int, seed: int):  # type: ignore[no-untyped-def]
    """Return the figures of a study by name."""
    table, groups, expected = population(path)
    full, values = table.full_scores(), table.filled_cells[:]
    rng = np.random.default_rng([seed, 77])
    models = rng.permutation(table.n_models)[:n_models]
    targets, plain, ridge, exact, pairs = [], [], [], [], []
    for _ in range(repeats):
        models = models if fixed else rng.permutation(models)
        own, known = models[: n_models // 4], models[n_models // 4 :]
        items = rng.permutation(table.n_items)[:ITEMS]
        fitted = fit_ridge(values[known][:, items], full[known][:, None])
        said = np.clip(fitted.predict(values[own][:, items])[:, 0], 0, 1)
        plain.append(np.abs(values[own][:, items].mean(axis=1) - full[own]))
        ridge.append(np.abs(said - full[own]))
        exact.append(expected[own])
        pairs.append((full[own], said, full[known]))
        targets.append([table.model_ids[at] for at in own])
    drawn = two_way(targets, groups, seed, RESAMPLES)
    few = drawn.first(SLOW)
    a, b, e = (drawn.parts(one) for one in (plain, ridge, exact))
    taus = [weighted_metrics(*one, few.weights(at))["kendall_tau"] for at, one in enumerate(pairs)]
    near = drawn.parts([(one < 0.02).astype(float) for one in ridge])
    return {
        EXACT: drawn.figure(drawn.mean(a), ratio=True, least=0),
        "error of random-ridge": drawn.figure(drawn.mean(b), ratio=True, least=0),
        "their difference": drawn.figure(drawn.difference(b, a)),
        "ratio to random": drawn.figure(drawn.ratio(b, e), ratio=True),
        "Kendall tau": few.figure(few.mean(np.array(taus)), least=-1, most=1),
        "share within 2 pp": drawn.figure(drawn.mean(near), least=0, most=1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    real = given.folder / "openllm2_math_musr.npz"
    print("| population | targets | models | repeats | statistic | level | ± / spread |")
    print("|---" * 7 + "|")
    with ProcessPoolExecutor(given.workers) as pool:
        for path, fixed, repeats in product((None, real), (False, True), (3, 10)):
            for n_models in (40, 100) if path is None else (60,):
                one = partial(study, path, fixed, n_models, repeats)
                found = list(pool.map(one, range(given.studies), chunksize=10))
                for name in found[0]:
                    level, ratio = judged([each[name] for each in found], name, path)
                    kind = "fixed" if fixed else "drawn"
                    where = "simulated" if path is None else path.stem
                    print(f"| {where} | {kind} | {n_models} | {repeats} | {name} | {level:.0%} "
                          f"| {ratio:.2f} |", flush=True)  # fmt: skip


def judged(figures: list[Figure], name: str, path: Path | None) -> tuple[float, float]:
    """Return the level of intervals, and the mean standard error over the spread of the values."""
    values = np.array([one.value for one in figures])
    truth = float(population(path)[2].mean()) if name == EXACT else float(values.mean())
    level = float(np.mean([one.low <= truth <= one.high for one in figures]))
    return level, float(np.mean([one.se for one in figures]) / values.std(ddof=1))


if __name__ == "__main__":
    main()
