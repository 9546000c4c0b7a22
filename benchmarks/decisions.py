"""Verdicts of `versus`, against a paired t test on as many random items.

    python benchmarks/decisions.py FOLDER_OF_TABLES [TABLE …] [--repeats 10] [--out rows.jsonl]

Every repeat draws at most 150 models of a table and takes 16 targets out of them: at random
("like"), of the strongest quarter with the others as sources ("stronger"), or of the strongest 30 %
with the weakest half as sources ("gap"). Pairs of targets with full scores .5 to 5 points apart are
compared at 90 %: "estimated", both by items chosen for the difference; "known", one by its own
items against the full score of the other; "t", both by the same random items, with Student's t.
"looks": after 10, 20, 40, 80 and 160 items, until a verdict, all with the bounds of Wang & Tsiatis
(the t test from 5 different answers on).

`right` and `wrong` are shares of all pairs, `covers` is that of intervals with the true difference;
`more` is the share of right verdicts less that of the t test, `times` their ratio. ± are standard
errors over cells (table and repeat), whose pairs share sources and targets. Finished cells are kept
in --out; the same command goes on.
"""

import argparse
import json
import time
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtr, stdtrit

from fewbench.decide.operands import contrast, fixed, operand
from fewbench.evaluation import Evaluation
from fewbench.evaluation.contrast import look_bounds
from fewbench.evaluation.errors import looks_of
from fewbench.readers.npz import read_npz

LEVEL, NEAR, FAR = 0.9, 0.005, 0.05
TARGETS, MODELS, PAIRS = 16, 150, 12
REGIMES = ("like", "stronger", "gap")
TABLES = ("gsm8k_150", "helm_gsm", "openllm2_math_musr", "helm_med_qa")
MOST, ONCE, DISCORDANT = 160, (40, 80, 160), 5
LOOKS = looks_of(MOST)


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


def play(evaluation, targets, upto):
    """Answer what is asked until every target has `upto` answers."""
    while True:
        asked = {
            name: items[: upto - len(evaluation.record.answered(name))]
            for name, items in evaluation.ask().items()
        }
        if not any(asked.values()):
            return
        for name, items in asked.items():
            row = targets.values[targets.model_ids.index(name)]
            evaluation.tell(name, dict(zip(items, row[targets.positions(items)], strict=True)))


def student(apart, n_items, bound):
    """Return the t test's interval, for a bound on the normal scale."""
    n = len(apart)
    error = np.sqrt(max(apart.var(ddof=1), 1e-9) * (1 / n - 1 / n_items))
    half = stdtrit(n - 1, 1 - stdtr(np.inf, -bound)) * error
    return apart.mean() - half, apart.mean() + half


def rows_of(apart, at, intervals):
    """Return the rows of a pair: of one look, or of a sequence until its first verdict."""
    found = []
    for who, (low, high) in intervals.items():
        sign = (int(low > 0) - int(high < 0)) * np.sign(apart)
        covers, width = low <= apart <= high, high - low
        found.append({"at": at, "who": who, "sign": int(sign), "covers": bool(covers)})
        found[-1] |= {"width": float(width), "off": float(abs((low + high) / 2 - apart))}
    return found


def cell(table, regime, repeat):
    """Return the rows of a table, regime and repeat."""
    rest, drawn = split(table, regime, repeat)
    sources, targets = table.take(models=rest), table.take(models=drawn)
    truth, n_items, names = targets.full_scores(), targets.n_items, targets.model_ids
    rng = np.random.default_rng([repeat, 1])
    near = [
        pair
        for pair in combinations(range(len(truth)), 2)
        if NEAR <= abs(truth[pair[0]] - truth[pair[1]]) <= FAR
    ]
    near = [near[at] for at in rng.permutation(len(near))[:PAIRS]]
    pairs = [
        Evaluation(sources, "fewbench(together=2)", MOST, [names[i], names[j]], repeat)
        for i, j in near
    ]
    own = Evaluation(sources, "fewbench", MOST, names, repeat)
    samples = [rng.permutation(n_items) for _ in near]
    rows, stopped = [], {}
    for n, factor in zip(LOOKS, look_bounds(LOOKS, LEVEL), strict=True):
        play(own, targets, n)
        for at, (i, j) in enumerate(near):
            play(pairs[at], targets, n)
            apart = float(truth[i] - truth[j])
            both = [operand((pairs[at], names[k]), sources) for k in (i, j)]
            known = operand((own, names[i]), sources), fixed(float(truth[j]), sources)
            sampled = targets.values[[i, j]][:, samples[at][:n]]
            plain = sampled[0] - sampled[1]
            for is_last in (True, False):
                if is_last and n not in ONCE:
                    continue
                bound = ndtri(0.5 + LEVEL / 2) * (1 if is_last else factor)
                made = {
                    who: contrast(*sides, sequential=not is_last).interval(LEVEL)
                    for who, sides in (("estimated", both), ("known", known))
                }
                made["t"] = student(plain, n_items, bound)
                if is_last:
                    rows += [{"pair": at} | row for row in rows_of(apart, str(n), made)]
                    continue
                if np.count_nonzero(plain) < DISCORDANT:
                    made["t"] = (-1.0, 1.0)
                for row in rows_of(apart, "looks", made):
                    before = stopped.get((at, row["who"]))
                    if before is None or not before["sign"]:
                        stopped[at, row["who"]] = {"pair": at, "items": n} | row
    return rows + list(stopped.values())


def summed(frame, by):
    """Return one line per group, look and test."""
    found = []
    for key, part in frame.groupby([*by, "at"], sort=False):
        wide = part.assign(right=part["sign"] > 0).pivot_table(
            index=["table", "repeat"], columns="who", values="right", aggfunc="mean"
        )
        for who in ("estimated", "known", "t"):
            own = part[part["who"] == who]
            line = dict(zip([*by, "at"], key, strict=True)) | {"who": who, "pairs": len(own)}
            line |= {"right": (own["sign"] > 0).mean(), "wrong": (own["sign"] < 0).mean()}
            line["covers"] = own["covers"].mean()
            cells = own.groupby(["table", "repeat"])["covers"].mean()
            line["± covers"] = cells.std() / np.sqrt(len(cells))
            if who != "t":
                more = (wide[who] - wide["t"]).dropna()
                plain = part[part["who"] == "t"]
                line |= {"more": more.mean(), "±": more.std() / np.sqrt(len(more))}
                line["times"] = line["right"] / ((plain["sign"] > 0).mean() or np.nan)
                line["width"] = own["width"].mean() / plain["width"].mean()
                line["error"] = own["off"].mean() / plain["off"].mean()
            if key[-1] == "looks":
                line["items"] = own["items"].mean()
            found.append(line)
    return pd.DataFrame(found)


def main():
    """Run the cells that are not in the file yet and print the tables."""
    given = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    given.add_argument("folder", type=Path)
    given.add_argument("tables", nargs="*", default=list(TABLES))
    given.add_argument("--repeats", type=int, default=10)
    given.add_argument("--out", type=Path, default=Path("decisions.jsonl"))
    wanted = given.parse_args()
    rows = [json.loads(line) for line in wanted.out.open()] if wanted.out.exists() else []
    done = {(row["table"], row["regime"], row["repeat"]) for row in rows}
    for repeat, name, regime in product(range(wanted.repeats), wanted.tables, REGIMES):
        if (name, regime, repeat) in done:
            continue
        started = time.process_time()
        scores = read_npz(wanted.folder / f"{name}.npz").scores.complete()
        drawn = np.random.default_rng([repeat, 9]).permutation(scores.n_models)[:MODELS]
        made = {"table": name, "regime": regime, "repeat": repeat}
        new = [made | row for row in cell(scores.take(models=np.sort(drawn)), regime, repeat)]
        with wanted.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)
        rows += new
        print(f"{name} {regime} {repeat}: {time.process_time() - started:.0f} s", flush=True)
    with pd.option_context("display.width", 250, "display.max_columns", 30, "display.max_rows", 99):
        for by in (["regime"], ["table", "regime"]):
            print(summed(pd.DataFrame(rows), by).round(3).to_string(index=False, na_rep=""))


if __name__ == "__main__":
    main()
