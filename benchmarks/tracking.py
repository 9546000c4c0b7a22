"""How well `track` follows a run, against estimating each checkpoint alone.

    python benchmarks/tracking.py FOLDER_OF_TABLES [--repeats 10] [--out rows.jsonl]

Runs with known truth: lineages of the bundled zoo (14 classifiers each; sources: 40 models of other
lineages), simulated runs (12 checkpoints that rise by 20 or by 4 points; 40 sources), and series of
llmub_mmlu (the sizes of a developer's models as steps, three prompts each; sources: the other
developers; 1,000 items). Every repeat draws a run of each kind, sources and items anew.

Columns, means over repeats: `alone`: mean absolute error of each checkpoint's own estimate;
`sources`: the same with two whole checkpoints (the first and the middle one) among the sources;
`curve`: with neighbors in time as well; both over `alone`, on the same checkpoints. `curve0`:
neighbors in time without whole checkpoints. `covers`, `width`: share of 90 % intervals of the curve
with the truth, and their mean half width. `right`, `wrong`: share of changes by .5 points or more
with the right and the wrong verdict; `random`: the same for paired t tests on as many random items,
adjusted alike. `runs wrong`: share of runs with any wrong verdict. Finished rows are kept in --out.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

import fewbench
from fewbench.datasets import load_zoo
from fewbench.evaluation import intervals
from fewbench.readers.npz import read_npz
from fewbench.study.multiple import adjusted_p_values
from fewbench.testing import simulate_run

LEVEL, SMALL = 0.9, 0.005
CELLS = (("fewbench-static", 100), ("fewbench", 100), ("fewbench-static", 50))
SERIES = {
    "Llama-2": ("7b", "13b", "70b"),
    "Qwen": ("1_8B", "7B", "14B", "72B"),
    "Yi": ("6B", "34B"),
    "deepseek-llm": ("7b", "67b"),
    "falcon": ("7b", "40b"),
}


def runs(folder, repeat):
    """Yield kind, sources, checkpoints and steps."""
    rng = np.random.default_rng([repeat, 1])
    zoo = load_zoo()
    family = zoo.models["family"].to_numpy()
    for own in rng.permutation(np.unique(family))[:1]:
        of = np.flatnonzero(family == own)
        others = np.sort(rng.permutation(np.flatnonzero(family != own))[:40])
        checkpoints = zoo.take(models=of)
        steps = {name: int(name[-2:]) for name in checkpoints.model_ids}
        yield "zoo", zoo.take(models=others), checkpoints, steps
    for kind, rise in (("simulated, +20", 0.2), ("simulated, +4", 0.04)):
        table = simulate_run(12, 1000, rise=rise, seed=repeat)
        sources, own = table.take(models=range(40)), table.take(models=range(40, 52))
        yield kind, sources, own, {name: at for at, name in enumerate(own.model_ids)}
    table = read_npz(folder / "llmub_mmlu.npz").scores
    table = table.take(items=np.sort(rng.permutation(table.n_items)[:1000]))
    for developer in rng.permutation(list(SERIES))[:1]:
        place = {}
        for step, size in enumerate(SERIES[developer]):
            start = f"{developer}-{size}"
            own = [name for name in table.model_ids if name.startswith(start)]
            place |= {name: step for name in own if "|base|" in name}
        of = [table.model_ids.index(name) for name in place]
        others = [at for at, name in enumerate(table.model_ids) if developer not in name]
        yield "llmub_mmlu", table.take(models=others), table.take(models=of), place


def evaluated(sources, checkpoints, names, method, n, seed):
    """Return an evaluation of checkpoints that has asked all it wants."""
    evaluation = fewbench.Evaluation(sources, method, n, names, seed)
    while asked := evaluation.ask():
        for name, items in asked.items():
            row = checkpoints.values[checkpoints.model_ids.index(name)]
            answers = row[checkpoints.positions(items)]
            evaluation.tell(name, dict(zip(items, answers, strict=True)))
    return evaluation


def followed(sources, checkpoints, steps, method, n, seed, whole):
    """Return the track of a run with some checkpoints evaluated wholly."""
    names = checkpoints.model_ids
    rest = [name for name in names if name not in whole]
    given = [evaluated(sources, checkpoints, rest, method, n, seed)]
    if whole:
        n_items = sources.n_items
        given.append(evaluated(sources, checkpoints, whole, "random", n_items, seed))
    return fewbench.track(given, steps=steps, level=LEVEL, neighbors=True)


def verdicts(found, truth):
    """Return the numbers of right and wrong verdicts and of changes, and any wrong one at all.

    Of changes between checkpoints of which not both are known.
    """
    known = {point.checkpoint for point in found.points if point.is_known}
    right = wrong = total = 0
    for one in found.changes:
        if {one.before, one.after} <= known:
            continue
        real = truth[one.after] - truth[one.before]
        sign = {"better": 1, "worse": -1, "undecided": 0}[one.verdict]
        wrong += sign * np.sign(real) < 0 or (sign != 0 and real == 0)
        if abs(real) >= SMALL:
            total += 1
            right += sign * np.sign(real) > 0
    return right, wrong, total


def by_random_items(found, checkpoints, truth, n, rng):
    """Return the same of paired t tests on random items, each pair's adjusted by Holm."""
    from scipy.stats import t

    sample = rng.permutation(checkpoints.n_items)[:n]
    rows = dict(zip(checkpoints.model_ids, checkpoints.values[:, sample], strict=True))
    apart = np.array([rows[one.after] - rows[one.before] for one in found.changes])
    left = 1 / n - 1 / checkpoints.n_items
    error = np.sqrt(np.maximum(apart.var(axis=1, ddof=1), 1e-4) * left)
    p_values = adjusted_p_values(2 * t.sf(np.abs(apart.mean(axis=1)) / error, n - 1))
    right = wrong = total = 0
    for one, mean, p_value in zip(found.changes, apart.mean(axis=1), p_values, strict=True):
        real = truth[one.after] - truth[one.before]
        sign = np.sign(mean) * (p_value <= 1 - LEVEL)
        wrong += sign * np.sign(real) < 0
        if abs(real) >= SMALL:
            total += 1
            right += sign * np.sign(real) > 0
    return right, wrong, total


def measure(kind, sources, checkpoints, steps, method, n, repeat):
    """Return one row."""
    names = sorted(checkpoints.model_ids, key=lambda name: (steps[name], name))
    truth = dict(zip(checkpoints.model_ids, checkpoints.full_scores().tolist(), strict=True))
    whole = [names[0], names[len(names) // 2]]
    without = followed(sources, checkpoints, steps, method, n, repeat, [])
    found = followed(sources, checkpoints, steps, method, n, repeat, whole)
    rest = [name for name in names if name not in whole]

    def error(made, column, of):
        return float(np.mean([abs(getattr(made[name], column) - truth[name]) for name in of]))

    def held(made, of):
        ends = [(made[name].interval, truth[name]) for name in of]
        return float(np.mean([end.low - 1e-9 <= true <= end.high + 1e-9 for end, true in ends]))

    def half(made, of):
        ends = [made[name].interval for name in of]
        return float(np.mean([(end.high - end.low) / 2 for end in ends]))

    row = {"kind": kind, "method": method, "n": n, "repeat": repeat}
    row |= {"alone0": error(without, "alone", names), "curve0": error(without, "score", names)}
    row |= {"alone": error(without, "alone", rest), "sources": error(found, "alone", rest)}
    row |= {"curve": error(found, "score", rest), "covers": held(found, rest)}
    row |= {"width": half(found, rest), "covers0": held(without, names)}
    row |= {"width0": half(without, names)}
    rng = np.random.default_rng([repeat, n, 2])
    for name, counts in (
        ("", verdicts(without, truth)),
        ("random ", by_random_items(without, checkpoints, truth, n, rng)),
        ("whole ", verdicts(found, truth)),
    ):
        right, wrong, total = (int(count) for count in counts)
        row |= {f"{name}right": right, f"{name}wrong": wrong, f"{name}total": total}
    return row


def summed(rows):
    """Return one line per kind, method and number of items."""
    made = []
    for key, part in pd.DataFrame(rows).groupby(["kind", "method", "n"], sort=False):
        line = dict(zip(("kind", "method", "n"), key, strict=True))
        line |= {"runs": len(part), "alone": part["alone"].mean()}
        line["sources"] = part["sources"].mean() / part["alone"].mean()
        line["curve"] = part["curve"].mean() / part["alone"].mean()
        ratios = part.groupby("repeat")[["curve", "alone"]].mean()
        line["se"] = (ratios["curve"] / ratios["alone"]).std() / np.sqrt(len(ratios))
        line["curve0"] = part["curve0"].mean() / part["alone0"].mean()
        for name in ("covers", "width", "covers0", "width0"):
            line[name] = part[name].mean()
        for name in ("", "random ", "whole "):
            total = part[f"{name}total"].sum()
            line[f"{name}right"] = part[f"{name}right"].sum() / total
            line[f"{name}wrong"] = part[f"{name}wrong"].sum() / total
            line[f"{name}runs wrong"] = (part[f"{name}wrong"] > 0).mean()
        made.append(line)
    return pd.DataFrame(made)


def main():
    """Run what is not in the file yet, and print the table."""
    intervals.DIVISIONS = 1  # of the sources, for their errors: a third of the time
    given = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    given.add_argument("folder", type=Path)
    given.add_argument("--repeats", type=int, default=10)
    given.add_argument("--out", type=Path, default=Path("tracking.jsonl"))
    wanted = given.parse_args()
    rows = [json.loads(line) for line in wanted.out.open()] if wanted.out.exists() else []
    done = {(row["repeat"], row["run"], row["method"], row["n"]) for row in rows}
    for (method, n), repeat in itertools.product(CELLS, range(wanted.repeats)):
        started = time.process_time()
        for number, (kind, *run) in enumerate(runs(wanted.folder, repeat)):
            if (repeat, number, method, n) in done:
                continue
            row = measure(kind, *run, method, n, repeat) | {"run": number}
            rows.append(row)
            with wanted.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        print(f"{method} {n}, repeat {repeat}: {time.process_time() - started:.0f} s", flush=True)
    with pd.option_context("display.width", 250, "display.max_columns", 40):
        print(summed(rows).round(3).T.to_string())


if __name__ == "__main__":
    main()
