"""Share of right and wrong verdicts of `versus`, against paired random sampling.

    python benchmarks/decisions.py FOLDER_OF_TABLES [TABLE …]

Every repeat draws at most 150 models of a table and takes target models out of them: at random
("like"), of the strongest quarter with the others as sources ("stronger"), or of the strongest 30 %
with the weakest half as sources ("gap"). Pairs of targets with full scores .5 to 5 points apart are
compared at 90 %. Paired sampling runs both on
the same random items: McNemar's exact test, and the interval of the paired difference.

Columns: `right`, `wrong`: share of verdicts; `covers`: share of intervals with the true difference
(all pairs); `width`: mean width over that of paired sampling's interval. Sequential rows look after
10, 20, 40, … items and stop at a verdict; `items` is the mean number run, `ratio` that over
McNemar's, with its level divided among the looks.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from fewbench.decide.contrast import Contrast
from fewbench.decide.held_out import looks
from fewbench.decide.paired import mcnemar
from fewbench.decide.sides import side
from fewbench.evaluation import Evaluation
from fewbench.readers.npz import read_npz

LEVEL, NEAR, FAR = 0.9, 0.005, 0.05
TARGETS, MODELS = 16, 150
REGIMES = ("like", "stronger", "gap")
TABLES = ("gsm8k_150", "helm_gsm", "openllm2_math_musr")


def split(scores, regime, repeat):
    """Return positions of sources and targets."""
    rng = np.random.default_rng([repeat, REGIMES.index(regime)])
    order = np.argsort(scores.full_scores(), kind="stable")
    n = len(order)
    if regime == "like":
        mixed = rng.permutation(n)
        return np.sort(mixed[TARGETS:]), mixed[:TARGETS]
    below, above = {"stronger": (0.75, 0.75), "gap": (0.5, 0.7)}[regime]
    targets = rng.permutation(order[round(above * n) :])[:TARGETS]
    return np.sort(order[: round(below * n)]), targets


def close_pairs(truth):
    """Return pairs of targets that differ by little, and all pairs."""
    every = [(i, j) for i in range(len(truth)) for j in range(i)]
    return [(i, j) for i, j in every if NEAR <= abs(truth[i] - truth[j]) <= FAR], every


def play(evaluation, targets, upto):
    """Answer what is asked until every target has `upto` answers."""
    while True:
        asked = {
            name: items[: upto - len(evaluation.record.answered(name))]
            for name, items in evaluation.ask().items()
        }
        asked = {name: items for name, items in asked.items() if items}
        if not asked:
            return
        for name, items in asked.items():
            row = targets.values[targets.model_ids.index(name)]
            evaluation.tell(name, dict(zip(items, row[targets.positions(items)], strict=True)))


def verdict(low, high):
    """Return 1, -1 or 0 for undecided."""
    return int(low > 0) - int(high < 0)


def paired(values, i, j, sample):
    """Return McNemar's p value, and the interval of the paired difference."""
    from scipy.stats import t

    a, b = values[i, sample], values[j, sample]
    apart, n, n_items = a - b, len(sample), values.shape[1]
    error = np.sqrt(max(apart.var(ddof=1), 1e-9) * (1 / n - 1 / n_items))
    half = t.ppf(0.5 + LEVEL / 2, n - 1) * error
    return mcnemar(a, b).p_value, apart.mean() - half, apart.mean() + half, np.sign(apart.mean())


def once(name, sources, targets, regime, repeat, budget, rows):
    """Compare all close pairs after a budget that was fixed beforehand."""
    truth = targets.full_scores()
    near, every = close_pairs(truth)
    with tempfile.TemporaryDirectory() as folder:
        evaluation = Evaluation(sources, "fewbench", budget, targets.model_ids, repeat)
        evaluation.save(Path(folder) / "run")
        play(evaluation, targets, budget)
        sides = [side((evaluation, model), sources) for model in targets.model_ids]
        rng = np.random.default_rng([repeat, budget])
        for i, j in every:
            found = Contrast(sides[i], sides[j], sources, sequential=False).interval(LEVEL)
            sample = rng.choice(targets.n_items, budget, replace=False)
            p, low, high, sign = paired(targets.values, i, j, sample)
            apart = truth[i] - truth[j]
            one = {"table": name, "regime": regime, "n": budget, "near": (i, j) in near}
            one |= {"covers": found.low <= apart <= found.high, "width": found.high - found.low}
            one |= {"verdict": verdict(found.low, found.high) * np.sign(apart)}
            one |= {"m_verdict": (p <= 1 - LEVEL) * sign * np.sign(apart)}
            one |= {"p_covers": low <= apart <= high, "p_width": high - low}
            one |= {"p_verdict": verdict(low, high) * np.sign(apart)}
            one |= {"error": abs(found_error(sides, i, j, apart))}
            one |= {"p_error": abs((low + high) / 2 - apart)}
            rows.append(one)


def found_error(sides, i, j, apart):
    """Return the error of the estimated difference."""
    return float(sides[i].estimates[0] - sides[j].estimates[0] - apart)


def sequential(name, sources, targets, regime, repeat, most, rows):
    """Look again and again, and stop at a verdict."""
    truth = targets.full_scores()
    near, _ = close_pairs(truth)
    at = looks(most)
    with tempfile.TemporaryDirectory() as folder:
        evaluation = Evaluation(sources, "fewbench", most, targets.model_ids, repeat)
        evaluation.save(Path(folder) / "run")
        open_, plain = set(near), set(near)
        rng = np.random.default_rng([repeat, 1])
        orders = {pair: rng.permutation(targets.n_items) for pair in near}
        stopped, p_stopped = {}, {}
        for n in at:
            play(evaluation, targets, n)
            sides = [side((evaluation, model), sources) for model in targets.model_ids]
            for i, j in sorted(open_):
                found = Contrast(sides[i], sides[j], sources, sequential=True).interval(LEVEL)
                if said := verdict(found.low, found.high):
                    stopped[i, j] = n, said * np.sign(truth[i] - truth[j])
                    open_.discard((i, j))
            for i, j in sorted(plain):
                p, _, _, sign = paired(targets.values, i, j, orders[i, j][:n])
                if p <= (1 - LEVEL) / len(at):
                    p_stopped[i, j] = n, sign * np.sign(truth[i] - truth[j])
                    plain.discard((i, j))
        for pair in near:
            n, said = stopped.get(pair, (most, 0))
            p_n, p_said = p_stopped.get(pair, (most, 0))
            one = {"table": name, "regime": regime, "items": n, "verdict": said}
            rows.append(one | {"m_items": p_n, "m_verdict": p_said})


def summed(rows):
    """Return one row per table, regime and budget of the one-shot comparisons."""
    frame = pd.DataFrame(rows)
    found = []
    for key, part in frame.groupby(["table", "regime", "n"], sort=False):
        near = part[part["near"]]
        row = dict(zip(("table", "regime", "n"), key, strict=True)) | {"pairs": len(near)}
        for name, column in (("", "verdict"), ("mcnemar ", "m_verdict"), ("paired ", "p_verdict")):
            row[f"{name}right"] = (near[column] > 0).mean()
            row[f"{name}wrong"] = (near[column] < 0).mean()
        row |= {"covers": part["covers"].mean(), "covers near": near["covers"].mean()}
        row |= {"width": part["width"].mean() / part["p_width"].mean()}
        row |= {"width near": near["width"].mean() / near["p_width"].mean()}
        row |= {"error": near["error"].mean() / near["p_error"].mean()}
        found.append(row)
    return pd.DataFrame(found)


def summed_looks(rows):
    """Return one row per table and regime of the sequential comparisons."""
    found = []
    for key, part in pd.DataFrame(rows).groupby(["table", "regime"], sort=False):
        row = dict(zip(("table", "regime"), key, strict=True)) | {"pairs": len(part)}
        for name, prefix in (("", ""), ("mcnemar ", "m_")):
            row[f"{name}right"] = (part[f"{prefix}verdict"] > 0).mean()
            row[f"{name}wrong"] = (part[f"{prefix}verdict"] < 0).mean()
            row[f"{name}items"] = part[f"{prefix}items"].mean()
        found.append(row | {"ratio": row["items"] / row["mcnemar items"]})
    return pd.DataFrame(found)


def main():
    """Run and print both tables."""
    given = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    given.add_argument("folder", type=Path)
    given.add_argument("tables", nargs="*", default=list(TABLES))
    given.add_argument("--repeats", type=int, default=2)
    given.add_argument("--budgets", type=int, nargs="*", default=[50, 100])
    given.add_argument("--most", type=int, default=160)
    wanted = given.parse_args()
    rows, in_looks = [], []
    for name in wanted.tables:
        scores = read_npz(wanted.folder / f"{name}.npz").scores.complete()
        for regime in REGIMES:
            started = time.process_time()
            for repeat in range(wanted.repeats):
                drawn = np.random.default_rng([repeat, 9]).permutation(scores.n_models)[:MODELS]
                table = scores.take(models=np.sort(drawn))
                rest, held = split(table, regime, repeat)
                sources, targets = table.take(models=rest), table.take(models=held)
                for budget in wanted.budgets:
                    once(name, sources, targets, regime, repeat, budget, rows)
                sequential(name, sources, targets, regime, repeat, wanted.most, in_looks)
            print(f"{name} {regime}: {time.process_time() - started:.0f} s", flush=True)
    with pd.option_context("display.width", 250, "display.max_columns", 30):
        print(summed(rows).round(2).to_string(index=False))
        print(summed_looks(in_looks).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
