"""Intervals and errors in every kind of setting: the tables of benchmarks/results/intervals.md.

One row per stratum: coverage of 90 % intervals, their width, their Winkler score (width plus 20
times what a miss lacks) and the estimate's error, the last three over those of exact random
sampling of as many items. ± is a standard error clustered both by draw and by target (Cameron,
Gelbach & Miller 2011). "worst" is the table with the least coverage, and the one with the greatest
Winkler score.

    python benchmarks/intervals.py FOLDER [--method fewbench] [--budgets 30,100] [--draws 3]
    python benchmarks/intervals.py FOLDER --weighted --draws 2

With --weighted the rows are fractional scores, macro averages and the scores of their tasks. The
Winkler scores are over those of `random` on the same split, tasks over those of its intervals of
tasks.

FOLDER holds the tables named below (see docs/results.md); the bundled zoo needs none, nor do the
simulated leaderboards of the strata "… board".
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from fewbench._seeds import child_seed
from fewbench._threads import one_thread
from fewbench.datasets import load_zoo
from fewbench.methods import find_method
from fewbench.methods.sources import known_scores
from fewbench.readers import import_results
from fewbench.scores import Scores
from fewbench.scores.build import from_arrays
from fewbench.study.cell import Cell, run_cell
from fewbench.study.splits import Split, SplitSettings, make_split
from fewbench.uncertainty.held_out import measure_for
from fewbench.uncertainty.judge import Judge
from fewbench.uncertainty.replay import replay
from fewbench.uncertainty.sampling import exact_interval, expected_random_error, hypergeometric

LEVEL = 0.9
TABLES = (
    "gsm8k_150", "helm_gsm", "helm_med_qa", "openllm2_math_musr", "glue_sst2", "helm_math",
    "helm_commonsense", "glue_rte",
)  # fmt: skip
SPLITS = {
    "like": SplitSettings("random"),
    "top": SplitSettings("performance"),
    "gap": SplitSettings("performance", targets=0.3, gap=0.2),
    "bottom": SplitSettings("weakest"),
    "below": SplitSettings("weakest", targets=0.3, gap=0.2),
}
FEW = (2, 3, 5, 10, 20, 22, 24, 40)
UNLIKE = ("right", "wrong", "coin", "inverted", "half noise", "hard half", "one block")
WEIGHTED = (
    ("alpaca_eval_58", "micro"), ("llmub_mmlu", "macro"), ("helm_math", "macro"),
    ("openllm2_math_musr", "micro"), ("openllm2_math_musr", "macro"),
)  # fmt: skip
BOARDS = {"strong board": 1.0, "middle board": 0.0, "weak board": -1.0}
"""Abilities of the targets of a simulated leaderboard, whose source models have a mean of 0."""
MADE = 25
"""Targets unlike the sources, or of one ability, in each draw."""


def unlike(kind: str, sources: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return answers of targets unlike all sources, shape (targets, items)."""
    shape = MADE, sources.shape[1]
    if kind in ("right", "wrong"):
        return np.full(shape, float(kind == "right"))
    theirs = sources[rng.integers(len(sources), size=MADE)]
    noise = (rng.random(shape) < rng.uniform(0.2, 0.8, (MADE, 1))).astype(float)
    if kind == "coin":
        return noise
    if kind == "inverted":
        return 1 - theirs
    if kind == "half noise":
        return np.where(rng.random(shape) < 0.5, theirs, noise)
    ease = sources.mean(axis=0)
    if kind == "hard half":
        return np.tile((ease < np.median(ease)).astype(float), (MADE, 1))
    start = rng.integers(shape[1], size=(MADE, 1))  # right on a third of the items, in a block
    return ((np.arange(shape[1]) - start) % shape[1] < shape[1] // 3).astype(float)


def board(ability: float, rng: np.random.Generator) -> tuple[Scores, Split]:
    """Return 48 models of many abilities and targets of one, on 450 items of three tasks."""
    tasks, n = np.repeat(["a", "b", "c"], 150), 48 + MADE
    abilities = np.append(rng.normal(np.linspace(-0.8, 0.8, 48), 0.5), np.full(MADE, ability))
    by_task = np.repeat(abilities[:, None] + rng.normal(0, 0.2, (n, 3)), 150, axis=1)
    logits = rng.lognormal(0.3, 0.3, 450) * (by_task - rng.normal(0, 1, 450))
    right = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))) * 1.0
    table = from_arrays(right, models=[f"model-{at}" for at in range(n)], tasks=list(tasks))
    return table, Split(np.arange(48), np.arange(48, 48 + MADE))


def draw(scores: Scores, stratum: str, at: int) -> tuple[Scores, Split]:
    """Return a table and a split of its models."""
    rng = np.random.default_rng([at, *stratum.encode()])
    if stratum in BOARDS:
        return board(BOARDS[stratum], rng)
    if stratum in SPLITS:
        return scores, make_split(scores, SPLITS[stratum], 0, at)
    if stratum == "families":
        return scores, make_split(scores, SplitSettings("group", targets=0.4), 0, at)
    if stratum.startswith("sources="):
        count = int(stratum.removeprefix("sources="))
        order = rng.permutation(scores.n_models)
        return scores, Split(np.sort(order[:count]), np.sort(order[-MADE:]))
    split = make_split(scores, SPLITS["like"], 0, at)
    values = scores.cells[split.sources]
    table = from_arrays(  # models need names
        np.concatenate([values, unlike(stratum, values, rng)]),
        models=[*scores.models.index[split.sources], *(f"unlike {i}" for i in range(MADE))],
        items=list(scores.items.index),
        tasks=list(scores.items["task"]),
    )
    first = len(split.sources)
    return table, Split(np.arange(first), np.arange(first, first + MADE))


@lru_cache
def random_widths(n: int, n_items: int) -> np.ndarray:
    return np.array([exact_interval(hits, n, n_items, LEVEL) for hits in range(n + 1)])


def winkler(low: np.ndarray, truth: np.ndarray, high: np.ndarray) -> np.ndarray:
    lacks = np.maximum(low - truth, 0) + np.maximum(truth - high, 0)
    return high - low + 2 / (1 - LEVEL) * lacks


def measure(
    scores: Scores, name: str, stratum: str, method: str, budget: int, at: int
) -> pd.DataFrame:
    """Return a row per target."""
    table, split = draw(scores, stratum, at)
    cell = Cell(method, find_method(method), budget, stratum, split, at, 0, LEVEL, False)
    with one_thread():
        found = run_cell(table, cell, "")
    low, high, truth = (np.array(one) for one in (found.low, found.high, found.truth))
    n_items = table.n_items
    ends = random_widths(budget, n_items)
    chances = [
        hypergeometric(np.arange(budget + 1), n_items, np.array(round(t * n_items)), budget)
        for t in truth
    ]
    rows = {
        "covered": (low <= truth + 1e-9) & (truth <= high + 1e-9),
        "width": high - low,
        "winkler": winkler(low, truth, high),
        "error": np.abs(np.array(found.estimate) - truth),
        "random_width": [c @ (ends[:, 1] - ends[:, 0]) for c in chances],
        "random_winkler": [
            c @ winkler(ends[:, 0], t, ends[:, 1]) for c, t in zip(chances, truth, strict=True)
        ],
        "random_error": [expected_random_error(t, budget, n_items) for t in truth],
    }
    targets = [f"{name} {target}" for target in found.targets]
    return pd.DataFrame(rows).assign(table=name, target=targets, draw=f"{name} {at}")


def two_way(frame: pd.DataFrame, residuals: np.ndarray) -> float:
    """Standard error of a weighted mean of residuals of mean 0, clustered by draw and by target."""
    of = frame.assign(r=residuals * frame["weight"])
    by_draw, by_target, by_both = (
        float((of.groupby(by)["r"].sum() ** 2).sum())
        for by in ("draw", "target", ["draw", "target"])
    )
    # With few draws the difference may be too small by chance.
    return max(by_draw + by_target - by_both, by_draw, by_target) ** 0.5


def ratio(frame: pd.DataFrame, what: str) -> tuple[float, float]:
    own, random = frame[what], frame[f"random_{what}"]
    base = float(random @ frame["weight"])
    if not base:
        return float("nan"), float("nan")
    r = float(own @ frame["weight"]) / base
    return r, two_way(frame, np.asarray(own - r * random)) / base


def with_tasks(
    scores: Scores, split: Split, method: str, budget: int, at: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return coverage and Winkler scores of the full score and of each task, (targets, 1 + tasks).

    NaN for a task without an interval.
    """
    sources, targets = scores.take(models=split.sources), scores.take(models=split.targets)
    seed, fitted = child_seed(0, 3, at), find_method(method).for_sources(sources)
    judge = Judge(fitted, sources, budget, partial(measure_for, fitted, sources, budget, seed))
    truth = np.column_stack(known_scores(scores, split.targets))
    ends = np.full((*truth.shape, 2), np.nan)
    with one_thread():
        scored = replay(find_method(method), sources, targets, budget, seed, tasks=True).scored
        for row, score in zip(ends, scored, strict=True):
            full = judge.uncertainty(score)
            for place, interval in enumerate([full, *judge.task_uncertainties(score, full)]):
                if interval is not None:
                    row[place] = interval.interval(LEVEL)
    low, high = ends[..., 0], ends[..., 1]
    covered = (low <= truth + 1e-9) & (truth <= high + 1e-9)
    return np.where(np.isnan(low), np.nan, covered), winkler(low, truth, high)


def show_weighted(folder: Path, name: str, average: str, budgets: list[int], draws: int) -> str:
    """Return coverage and Winkler scores by stratum: a row of the full score, one of its tasks.

    In brackets is the coverage of the task that is covered least.
    """
    micro = import_results(folder / f"{name}.npz").scores
    full, of_tasks = [f"{name}, {average}"], ["its tasks"]
    for stratum in SPLITS:
        each: list[tuple[float, ...]] = []
        for budget in budgets:
            parts, plain, plain_tasks = [], [], []
            for at in range(draws):
                _, split = draw(micro, stratum, at)
                rng = np.random.default_rng([at, budget])
                split = Split(split.sources, np.sort(rng.permutation(split.targets)[:MADE]))
                weighted = micro.averaged(average)
                parts.append(with_tasks(weighted, split, "fewbench", budget, at))
                plain.append(with_tasks(weighted, split, "random", budget, at)[1][:, 0])
                # It has task intervals under a micro average alone.
                plain_tasks.append(with_tasks(micro, split, "random", budget, at)[1][:, 1:])
            covered, own = (np.concatenate(part) for part in zip(*parts, strict=True))
            theirs = np.concatenate(plain_tasks)
            both = np.isfinite(own[:, 1:] + theirs)
            by_task = covered[:, 1:][:, np.isfinite(covered[:, 1:]).any(axis=0)]
            each.append(
                (
                    covered[:, 0].mean(),
                    own[:, 0].mean() / np.concatenate(plain).mean(),
                    np.nanmean(by_task) if by_task.size else np.nan,
                    np.nanmean(by_task, axis=0).min(initial=1.0),
                    own[:, 1:][both].mean() / theirs[both].mean() if both.any() else np.nan,
                )
            )
        columns = [" / ".join(f"{value:.2f}" for value in of) for of in zip(*each, strict=True)]
        full.append(", ".join(columns[:2]))
        of_tasks.append("{} ({}), {}".format(*columns[2:]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (full, of_tasks))


def show(stratum: str, budget: int, frame: pd.DataFrame) -> str:
    parts = dict(list(frame.groupby("table")))
    # All tables weigh the same.
    frame = frame.assign(weight=1 / frame.groupby("table")["error"].transform("size") / len(parts))
    covered = float(frame["covered"] @ frame["weight"])
    error = two_way(frame, np.asarray(frame["covered"] - covered))
    cells = [f"{stratum}, {budget} items", f"{covered:.3f} ± {error:.3f}"]
    for what in ("width", "winkler", "error"):
        mean, its = ratio(frame, what)
        cells.append(f"{mean:.2f} ± {its:.2f}" if np.isfinite(mean) else "random has none")
    if len(parts) > 1:
        shares = {name: part["covered"].mean() for name, part in parts.items()}
        scores = {
            name: part["winkler"].mean() / part["random_winkler"].mean()
            for name, part in parts.items()
        }
        least, most = min(shares, key=shares.__getitem__), max(scores, key=scores.__getitem__)
        cells.append(f"{least} {shares[least]:.2f}, {most} {scores[most]:.2f}")
    return f"| {' | '.join(cells)} |"


def tables(folder: Path, stratum: str) -> Iterator[tuple[str, Scores]]:
    if stratum in BOARDS:  # made for each draw
        yield stratum, load_zoo()
        return
    if stratum in ("families", "like"):
        yield "zoo", load_zoo()
    for name in TABLES if stratum != "families" else ("llmub_mmlu",):
        yield name, import_results(folder / f"{name}.npz").scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--method", default="fewbench")
    parser.add_argument("--strata", help="by commas")
    parser.add_argument("--budgets", default="30,100", help="by commas")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--weighted", action="store_true", help="macro averages and tasks")
    parser.add_argument("--by-table", action="store_true", help="a row per table as well")
    given = parser.parse_args()
    if given.weighted:
        budgets = [int(budget) for budget in given.budgets.split(",")]
        print("| scores | like | top | gap |\n" + "|---" * 4 + "|")
        for name, average in WEIGHTED:
            print(show_weighted(given.folder, name, average, budgets, given.draws), flush=True)
        return
    few = [f"sources={count}" for count in FEW]
    strata = (
        given.strata.split(",") if given.strata else [*SPLITS, "families", *few, *UNLIKE, *BOARDS]
    )
    print("| stratum | coverage | width / random | Winkler / random | error / random | worst |")
    print("|---" * 6 + "|")
    with ProcessPoolExecutor(given.workers) as pool:
        for stratum, budget in product(strata, map(int, given.budgets.split(","))):
            jobs = [
                pool.submit(measure, scores, name, stratum, given.method, budget, at)
                for name, scores in tables(given.folder, stratum)
                if budget < scores.n_items
                for at in range(given.draws)
            ]
            frame = pd.concat([job.result() for job in jobs], ignore_index=True)
            print(show(stratum, budget, frame), flush=True)
            if given.by_table:
                for name, part in frame.groupby("table"):
                    print(show(f"{stratum}, {name}", budget, part), flush=True)


if __name__ == "__main__":
    main()
