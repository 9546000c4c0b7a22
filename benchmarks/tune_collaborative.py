"""Settings of two-stage collaborative filtering, by cross-validation over sources only.

    python benchmarks/tune_collaborative.py FOLDER [--draws 40] [--targets 6]
                                            [--tables math mmlu ...]

FOLDER holds the tables named below. Three quarters of each table's models (drawn with a seed,
near-copies and checkpoints kept together) are the sources; the others are never looked at. Sources
take turns as targets. A random search over the settings and then one setting at a time around the
defaults, both judged by the error of task scores relative to the defaults', one number a table and
ratio, averaged: below 1 is better than the defaults.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from fewbench.readers import import_results
from fewbench.scores import Scores
from fewbench.uncertainty.replay import replay
from fewbench_papers.collaborative.collaborative import Collaborative

RATIOS = (0.1, 0.3)
CHOICES = {
    "similar_sources": (3, 5, 10, 20, 40, 80),
    "alpha": (0.0, 0.25, 0.5, 0.75, 1.0),
    "rounds": (1, 2, 5, 10),
    "similar_tasks": (0.9, 0.95, 0.98, 0.99, 0.995, 1.0),
    "most_items": (0, 100, 200, 400, 100_000),
    "low_importance": (1.5, 2.0, 3.0, 5.0, 10.0),
    "least_similarity": (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9),
    "quantile": (0.0, 0.25, 0.5, 0.75, 0.9),
}


def one_of_each(scores: Scores) -> Scores:
    """Leave out models that appear twice: named '…#2', or with the answers of another."""
    _, first = np.unique(scores.filled, axis=0, return_index=True)
    named = {m for m, name in enumerate(scores.model_ids) if not name.endswith("#2")}
    return scores.take(models=sorted(named & set(first.tolist())))


def some_items(scores: Scores, tasks: int, rng: np.random.Generator) -> Scores:
    kept = rng.permutation(len(scores.tasks))[:tasks]
    return scores.take(items=np.flatnonzero(np.isin(scores.task_of, kept)))


def load(folder: Path) -> dict[str, Scores]:
    rng = np.random.default_rng(0)
    pro = import_results(folder / "mmlu_pro_32.npz").scores
    pro = replace(pro, values=np.rint(pro.filled))  # its few missing cells: right or wrong
    pro = pro.take(items=np.sort(rng.permutation(pro.n_items)[:2000]))
    return {
        "math": one_of_each(import_results(folder / "openllm2_math_musr.npz").scores),
        "helm": one_of_each(import_results(folder / "helm_math.npz").scores),
        "pro": pro,
        "mmlu": some_items(import_results(folder / "llmub_mmlu.npz").scores, 10, rng),
    }


def groups(scores: Scores) -> np.ndarray:
    if "family" not in scores.models:
        return np.arange(scores.n_models)
    return np.unique(scores.models["family"], return_inverse=True)[1]


def sources_of(scores: Scores, seed: int) -> Scores:
    """Three quarters of the groups of models."""
    of = groups(scores)
    n = of.max() + 1
    kept = np.random.default_rng(seed).permutation(n)[: (3 * n) // 4]
    return scores.take(models=np.flatnonzero(np.isin(of, kept)))


def folds(scores: Scores, targets: int) -> list[tuple[Scores, Scores]]:
    """Sources in five folds of groups, two of them used, with so many targets at most."""
    of = groups(scores)
    fold_of = np.random.default_rng(1).permutation(of.max() + 1) % 5
    parts = []
    for fold in range(2):
        held = np.flatnonzero(fold_of[of] == fold)
        rest = np.flatnonzero(fold_of[of] != fold)
        held = np.random.default_rng(fold).permutation(held)[:targets]
        parts.append((scores.take(models=rest), scores.take(models=held)))
    return parts


def errors(method: Collaborative, parts: list[tuple[Scores, Scores]]) -> np.ndarray:
    """Mean absolute error of task scores, one a ratio."""
    found = []
    for ratio in RATIOS:
        each = []
        for fold, (sources, targets) in enumerate(parts):
            n = round(ratio * sources.n_items)
            out = replay(method, sources, targets, n, fold, tasks=True)
            each.append(np.abs(out.tasks - targets.task_scores()).mean())
        found.append(np.mean(each))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--targets", type=int, default=6)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--only-around", action="store_true")
    parser.add_argument("--only-draws", action="store_true")
    given = parser.parse_args()
    tables = load(given.folder)
    parts = {
        name: folds(sources_of(tables[name], 0), given.targets) for name in given.tables or tables
    }
    default = Collaborative()
    base = {name: errors(default, of) for name, of in parts.items()}
    for name, error in base.items():
        print(f"defaults  {name:<6}" + " ".join(f"{100 * e:6.2f}" for e in error), flush=True)

    def show(label: str, method: Collaborative) -> float:
        ratios = {name: (errors(method, of) / base[name]) for name, of in parts.items()}
        mean = float(np.mean([r.mean() for r in ratios.values()]))
        each = " ".join(f"{name} {r.mean():.3f}" for name, r in ratios.items())
        print(f"{mean:.3f}  {each}  {label}", flush=True)
        return mean

    if not given.only_around:
        rng = np.random.default_rng(2)
        drawn = []
        for _ in range(given.draws):
            chosen = {key: of[int(rng.integers(len(of)))] for key, of in CHOICES.items()}
            method = replace(default, **chosen)
            drawn.append((show(method.describe(), method), chosen))
        print("\nmean over the draws with each value")
        for key, of in CHOICES.items():
            means = [[mean for mean, chosen in drawn if chosen[key] == value] for value in of]
            row = " ".join(f"{v}: {np.mean(m):.3f}" for v, m in zip(of, means, strict=True) if m)
            print(f"  {key:<18}{row}")
    if given.only_draws:
        return
    print("\none setting changed")
    for key, of in CHOICES.items():
        for value in of:
            if value != getattr(default, key):
                show(f"{key}={value}", replace(default, **{key: value}))
    show("transport=false", replace(default, transport=False))
    show("minimum=0", replace(default, minimum=0))


if __name__ == "__main__":
    main()
