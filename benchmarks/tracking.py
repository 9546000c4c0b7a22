"""Changes that `track` finds on these items, against paired t tests on random items.

    python benchmarks/tracking.py [FOLDER_OF_TABLES] [--repeats 10] [--out rows.jsonl]

Runs with known truth: lineages of the bundled zoo (14 classifiers each; sources: 40 models of other
lineages), simulated runs (12 checkpoints that rise by 20 or by 4 points; 40 sources), and, with a
folder that holds it, series of llmub_mmlu (the sizes of a developer's models as steps, three
prompts each; sources: the other developers; 1,000 items). Every repeat draws a run of each kind,
sources and items anew.

Every fourth checkpoint runs all items, from the first one on ("whole"), or none does ("part"). The
changes are those of `track`, of .5 points or more, tested at 90 % together. "t": of the same
changes, paired t tests on the items of `random`, which both checkpoints run, adjusted by Holm, too.

`right`, `wrong`: share of the changes with the right and the wrong verdict, also of changes below
.5 points. `runs wrong`: share of runs with a wrong verdict. `covers`: share of the checkpoints'
90 % intervals with the true score; `error`: mean error in points. ± are standard errors over runs.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import stdtr

import fewbench
from fewbench.datasets import load_zoo
from fewbench.decide.multiple import adjusted_p_values
from fewbench.readers.npz import read_npz
from fewbench.testing import simulate_run

LEVEL, SMALL, EVERY = 0.9, 0.005, 4
CELLS = tuple(product(("aipw", "fewbench", "fewbench-static", "random"), (50, 100)))
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
    own = rng.choice(np.unique(family))
    others = np.sort(rng.permutation(np.flatnonzero(family != own))[:40])
    checkpoints = zoo.take(models=np.flatnonzero(family == own))
    steps = {name: int(name[-2:]) for name in checkpoints.model_ids}
    yield "zoo", zoo.take(models=others), checkpoints, steps
    for kind, rise in (("simulated, +20", 0.2), ("simulated, +4", 0.04)):
        table = simulate_run(12, 1000, rise=rise, seed=repeat)
        sources, checkpoints = table.take(models=range(40)), table.take(models=range(40, 52))
        yield kind, sources, checkpoints, {n: at for at, n in enumerate(checkpoints.model_ids)}
    if folder is None or not (folder / "llmub_mmlu.npz").exists():
        return
    table = read_npz(folder / "llmub_mmlu.npz").scores
    table = table.take(items=np.sort(rng.permutation(table.n_items)[:1000]))
    developer = rng.choice(list(SERIES))
    steps = {
        name: step
        for step, size in enumerate(SERIES[developer])
        for name in table.model_ids
        if name.startswith(f"{developer}-{size}") and "|base|" in name
    }
    others = [at for at, name in enumerate(table.model_ids) if developer not in name]
    checkpoints = table.take(models=[table.model_ids.index(name) for name in steps])
    yield "llmub_mmlu", table.take(models=others), checkpoints, steps


def evaluated(sources, checkpoints, names, method, n, seed):
    """Return an evaluation of checkpoints that has asked all it wants."""
    evaluation = fewbench.Evaluation(sources, method, n, names, seed)
    while any((asked := evaluation.ask()).values()):
        for name, items in asked.items():
            row = checkpoints.values[checkpoints.model_ids.index(name)]
            answers = row[checkpoints.positions(items)]
            evaluation.tell(name, dict(zip(items, answers, strict=True)))
    return evaluation


def student(changes, checkpoints, sample):
    """Return the signs of changes by paired t tests on a sample, adjusted by Holm."""
    n = len(sample)
    rows = dict(zip(checkpoints.model_ids, checkpoints.values[:, sample], strict=True))
    apart = np.array([rows[one.after] - rows[one.before] for one in changes])
    left = 1 / n - 1 / checkpoints.n_items
    error = np.sqrt(np.maximum(apart.var(axis=1, ddof=1), 1e-4) * left)
    p_values = adjusted_p_values(2 * stdtr(n - 1, -np.abs(apart.mean(axis=1)) / error))
    return np.sign(apart.mean(axis=1)) * (p_values <= 1 - LEVEL)


def counts(signs, real):
    """Return the numbers of right and wrong verdicts and of changes to find."""
    right, large = signs * np.sign(real) > 0, np.abs(real) >= SMALL
    wrong = (signs != 0) & ~right
    return {"right": int((right & large).sum()), "wrong": int(wrong.sum()), "all": int(large.sum())}


def measure(sources, checkpoints, steps, method, n, seed):
    """Return the rows of a run: with whole checkpoints, without, and of the t tests."""
    names = sorted(checkpoints.model_ids, key=lambda name: (steps[name], name))
    truth = dict(zip(checkpoints.model_ids, checkpoints.full_scores().tolist(), strict=True))
    sample = evaluated(sources, checkpoints, names[:1], "random", n, seed).record.asked(names[0])
    rows = []
    for how, whole in (("whole", names[::EVERY]), ("part", [])):
        rest = [name for name in names if name not in whole]
        given = [evaluated(sources, checkpoints, rest, method, n, seed)]
        if whole:
            full = sources.n_items
            given.append(evaluated(sources, checkpoints, whole, "random", full, seed))
        found = fewbench.track(given, steps=steps, level=LEVEL, fixed_items=True)
        changes = [one for one in found.changes if {one.before, one.after} & set(rest)]
        real = np.array([truth[one.after] - truth[one.before] for one in changes])
        sign = {"better": 1, "worse": -1, "undecided": 0}
        ends = [(found[name].interval, truth[name]) for name in rest]
        row = counts(np.array([sign[one.verdict] for one in changes]), real) | {"how": how}
        row["covers"] = float(np.mean([e.low - 1e-9 <= t <= e.high + 1e-9 for e, t in ends]))
        row["error"] = 100 * float(np.mean([abs(found[name].score - truth[name]) for name in rest]))
        plain = counts(student(changes, checkpoints, sample), real)
        rows += [row, plain | {"how": f"{how}, t"}]
    return rows


def summed(rows):
    """Return one line per kind, method, number of items and way."""
    made = []
    frame = pd.DataFrame(rows)
    for key, part in frame.groupby(["kind", "method", "n", "how"], sort=False):
        line = dict(zip(("kind", "method", "n", "how"), key, strict=True)) | {"runs": len(part)}
        line["changes"] = part["all"].sum()
        for name in ("right", "wrong"):
            line[name] = part[name].sum() / line["changes"]
            line[f"± {name}"] = (part[name] / part["all"]).std() / np.sqrt(len(part))
        line["runs wrong"] = (part["wrong"] > 0).mean()
        made.append(line | {name: part[name].mean() for name in ("covers", "error")})
    return pd.DataFrame(made)


def main():
    """Run what is not in the file yet, and print the table."""
    given = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    given.add_argument("folder", type=Path, nargs="?")
    given.add_argument("--repeats", type=int, default=10)
    given.add_argument("--out", type=Path, default=Path("tracking.jsonl"))
    wanted = given.parse_args()
    rows = [json.loads(line) for line in wanted.out.open()] if wanted.out.exists() else []
    done = {(row["repeat"], row["kind"], row["method"], row["n"]) for row in rows}
    for repeat in range(wanted.repeats):
        for (kind, *run), (method, n) in product(runs(wanted.folder, repeat), CELLS):
            if (repeat, kind, method, n) in done:
                continue
            started = time.process_time()
            made = {"repeat": repeat, "kind": kind, "method": method, "n": n}
            new = [made | row for row in measure(*run, method, n, repeat)]
            rows += new
            with wanted.out.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in new)
            spent = time.process_time() - started
            print(f"{kind} {method} {n}, repeat {repeat}: {spent:.0f} s", flush=True)
    with pd.option_context("display.width", 250, "display.max_columns", 40, "display.max_rows", 99):
        print(summed(rows).round(3).to_string(index=False, na_rep=""))


if __name__ == "__main__":
    main()
