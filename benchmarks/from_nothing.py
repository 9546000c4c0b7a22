"""Models evaluated one after the other on a benchmark that nobody has run, and what `--limit` does.

    python benchmarks/from_nothing.py FOLDER [--repeats 4] [--half-width 0.06]

A repeat draws up to 80 models of a table (at most 3,000 items). The first is evaluated without
sources; each run of 100 items then is a sparse row of the sources of the next. In random order, and
in rising order: each model about the best so far. All of them are also evaluated without sources.
Rows of the table: how many runs there were before; coverage of 90 % intervals; their width, their
Winkler score and the estimate's error over those of exact intervals of the same number of random
items. ± are standard errors over repeats of a table.

With `--half-width`, runs stop at that width instead. Then `items` are the mean number of items, and
`items / random` is that over what random items need, at the true score, for as narrow an exact
interval.

`--limit`: the first items of each task in document order, 50, 100 and 200 in all, beside as many
random ones: mean error, and how often the binomial intervals of Wald and Wilson hold.

FOLDER holds the tables named below (see docs/results.md).
"""

import argparse
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd

from fewbench import Evaluation, Scores, Stop
from fewbench.readers import import_results
from fewbench.scores import Benchmark
from fewbench.scores.build import from_arrays
from fewbench.scores.roles import as_scores
from fewbench.uncertainty.sampling import exact_interval, expected_random_error, hypergeometric
from intervals import LEVEL, random_widths, winkler

TABLES = (
    "gsm8k_150", "helm_math", "openllm2_math_musr", "glue_rte", "helm_med_qa", "llmub_mmlu",
)  # fmt: skip
MOST_ITEMS, MOST_MODELS, BUDGET = 3000, 80, 100
RUNS = (0, 1, 3, 5, 10, 20, 40, 60, 80)
"""Edges of the strata, by the number of sparse runs."""
JITTER = 0.03
"""Standard deviation of what disturbs the rising order."""
FIRST = (50, 100, 200)
DRAWS, Z = 20, 1.645
EPSILON = 1e-9


def load(path: Path) -> tuple[Scores, np.ndarray]:
    """Return a table without identical rows, at most 3,000 items of it, and its values."""
    scores = import_results(path).scores
    _, rows = np.unique(scores.values, axis=0, return_index=True)
    items = np.random.default_rng(0).permutation(scores.n_items)[:MOST_ITEMS]
    scores = scores.take(models=np.sort(rows), items=np.sort(items))
    return scores, scores.values


def in_order(truth: np.ndarray, order: str, rng: np.random.Generator) -> np.ndarray:
    """Return models in the order in which they are evaluated."""
    models = rng.permutation(len(truth))[:MOST_MODELS]
    if order == "random":
        return models
    return models[np.argsort(truth[models] + rng.normal(0, JITTER, len(models)))]


def sources(rows: np.ndarray, names: list[str], table: Scores) -> Scores:
    """Return the sparse rows of the models that were run; no table if there are none."""
    if not names:
        return as_scores(Benchmark(table.items))
    ids, tasks = list(table.item_ids), list(table.items["task"])
    return from_arrays(rows, models=names, items=ids, tasks=tasks)


def random_items(truth: float, width: float, n_items: int) -> int:
    """Return how many random items have as narrow an exact interval, at the true score."""
    low, high = 1, n_items
    while low < high:
        n = (low + high) // 2
        ends = exact_interval(round(truth * n), n, n_items, LEVEL)
        low, high = (low, n) if ends[1] - ends[0] <= width else (n + 1, high)
    return low


def evaluate(
    table: Scores, values: np.ndarray, order: str, seed: int, half_width: float | None
) -> Iterator[dict[str, float]]:
    """Yield a row for each model of a repeat, and one for each model without sources."""
    stop = Stop(items=BUDGET) if half_width is None else Stop(half_width=half_width)
    rows = np.empty((0, table.n_items))
    names: list[str] = []
    for at in in_order(values.mean(axis=1), order, np.random.default_rng([seed, 1])):
        name, own = table.model_ids[at], values[at]
        if names:
            yield run(sources(rows[:0], [], table), name, own, stop, seed)[0]
        found, items = run(sources(rows, names, table), name, own, stop, seed)
        yield found
        row = np.full((1, table.n_items), np.nan)
        row[0, items] = own[items]
        rows, names = np.vstack([rows, row]), [*names, name]


def run(
    table: Scores, name: str, own: np.ndarray, stop: Stop, seed: int
) -> tuple[dict[str, float], np.ndarray]:
    """Evaluate a model by what others ran; return a row, and the items that it ran."""
    truth, n_items = float(own.mean()), table.n_items
    known = dict(zip(table.item_ids, own.tolist(), strict=True))
    evaluation = Evaluation(table, "auto", targets=[name], seed=seed, stop=stop)
    while asked := evaluation.ask():
        evaluation.tell(name, {item: known[item] for item in asked[name]})
    found = evaluation.estimate()[name]
    items = evaluation.record.answered(name)
    n, (low, high) = len(items), (found.interval.low, found.interval.high)
    ends = random_widths(n, n_items)
    chance = hypergeometric(np.arange(n + 1), n_items, np.array(round(truth * n_items)), n)
    row = {
        "runs": table.n_models,
        "covered": low - EPSILON <= truth <= high + EPSILON,
        "width": high - low,
        "winkler": winkler(np.array(low), np.array(truth), np.array(high)),
        "error": abs(found.score - truth),
        "items": n,
        "random_width": chance @ (ends[:, 1] - ends[:, 0]),
        "random_winkler": chance @ winkler(ends[:, 0], np.array(truth), ends[:, 1]),
        "random_error": expected_random_error(truth, n, n_items),
        "random_items": random_items(truth, high - low, n_items) if stop.half_width else 0,
    }
    return row, items


def show(frame: pd.DataFrame, order: str, name: str, what: list[str]) -> Iterator[str]:
    """Yield a line for each number of runs."""
    for first, beyond in pairwise(RUNS):
        part = frame[(frame["runs"] >= first) & (frame["runs"] < beyond)]
        if part.empty:
            continue
        repeats = [one for _, one in part.groupby("repeat")]
        cells = [order, name, f"{first}-{beyond - 1}" if beyond - first > 1 else str(first)]
        cells.append(str(len(part)))
        cells.append(_with_error(part["covered"].mean(), [r["covered"].mean() for r in repeats]))
        for one in what:
            shares = [r[one].sum() / max(r[f"random_{one}"].sum(), EPSILON) for r in repeats]
            mean = part[one].sum() / max(part[f"random_{one}"].sum(), EPSILON)
            cells.append(_with_error(mean, shares))
        if "items" in what:
            cells.append(f"{part['items'].mean():.0f}")
        yield f"| {' | '.join(cells)} |"


def _with_error(mean: float, every: list[float]) -> str:
    if len(every) < 2:
        return f"{mean:.2f}"
    return f"{mean:.2f} ± {np.std(every, ddof=1) / len(every) ** 0.5:.2f}"


def limits(values: np.ndarray, task_of: np.ndarray, n: int) -> list[str]:
    """Return mean error and coverage of Wald and Wilson for the first items and for random ones."""
    share = -(-n // (task_of.max() + 1))
    first = np.concatenate([np.flatnonzero(task_of == t)[:share] for t in np.unique(task_of)])
    rng = np.random.default_rng(n)
    drawn = [rng.permutation(values.shape[1])[: len(first)] for _ in range(DRAWS)]
    cells = [str(len(first))]
    for samples in ([first], drawn):
        found = np.array([_naive(values, items) for items in samples]).mean(axis=(0, 2))
        cells += [f"{found[0]:.3f}", *(f"{one:.2f}" for one in found[1:])]
    return cells


def _naive(values: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return errors and whether Wald's and Wilson's intervals hold, shape (3, models)."""
    p, truth, n = values[:, items].mean(axis=1), values.mean(axis=1), len(items)
    wald = np.abs(p - truth) <= Z * np.sqrt(p * (1 - p) / n) + EPSILON
    wilson = np.abs(p - truth) <= Z * np.sqrt(truth * (1 - truth) / n) + EPSILON
    return np.array([np.abs(p - truth), wald, wilson])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", default=",".join(TABLES), help="by commas")
    parser.add_argument("--orders", default="random,rising", help="by commas")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--half-width", type=float)
    parser.add_argument("--limit", action="store_true", help="only what --limit does")
    parser.add_argument("--out", type=Path, help="CSV of all rows")
    given = parser.parse_args()
    names = given.tables.split(",")
    if given.limit:
        print("| table | items | first: error | Wald | Wilson | random: error | Wald | Wilson |")
        print("|---" * 8 + "|")
        for name, n in product(names, FIRST):
            scores = import_results(given.folder / f"{name}.npz").scores
            print(f"| {' | '.join([name, *limits(scores.values, scores.task_of, n)])} |")
        return
    what = ["width", "winkler", "error"] if given.half_width is None else ["items", "error"]
    head = ["order", "table", "runs", "models", "coverage", *(f"{one} / random" for one in what)]
    head += ["items"] if "items" in what else []
    print(f"| {' | '.join(head)} |")
    print("|---" * len(head) + "|")
    every: dict[str, list[pd.DataFrame]] = {}
    for name, order in product(names, given.orders.split(",")):
        table, values = load(given.folder / f"{name}.npz")
        parts = [
            pd.DataFrame(evaluate(table, values, order, seed, given.half_width)).assign(repeat=seed)
            for seed in range(given.repeats)
        ]
        frame = pd.concat(parts).assign(table=name, order=order)
        every.setdefault(order, []).append(frame)
        print("\n".join(show(frame, order, name, what)), flush=True)
    for order, frames in every.items():
        print("\n".join(show(pd.concat(frames), order, "all", what)))
    if given.out:
        pd.concat([frame for frames in every.values() for frame in frames]).to_csv(given.out)


if __name__ == "__main__":
    main()
