"""Verdicts of `versus` on exactly these items, against a paired t test on as many random ones.

    python benchmarks/decisions.py FOLDER_OF_TABLES [TABLE …] [--repeats 10] [--out rows.jsonl]

Every repeat draws at most 150 models of a table and takes 16 targets out of them: at random
("like"), of the strongest quarter with the others as sources ("stronger"), or of the strongest 30 %
with the weakest half as sources ("gap"). Pairs of targets with full scores .5 to 5 points apart are
compared at 90 %. "estimated": 12 pairs, both by items chosen for the difference. "known": two of
the targets ran all items and joined the sources one at a time, and the others are compared with
them. "t": the same pairs by the same random items for both, with Student's t. "looks": after 10,
20, 40, 80 and 160 items, until a verdict, all with the bounds of Wang & Tsiatis (the t test from 5
different answers on).

`right` and `wrong` are shares of all pairs, `covers` is that of intervals with the true difference;
`more` is the share of right verdicts less that of the t test, `times` their ratio, `width` and
`error` are over the t test's. ± are standard errors over cells (table and repeat), whose pairs
share sources and targets. Finished cells are kept in --out; the same command goes on.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtr, stdtrit

from fewbench.decide.joint_estimate import contrast
from fewbench.decide.operands import operand
from fewbench.evaluation import Evaluation
from fewbench.readers.npz import read_npz
from fewbench.uncertainty.contrast import look_bounds
from fewbench.uncertainty.held_out import looks_of

LEVEL, NEAR, FAR = 0.9, 0.005, 0.05
TARGETS, MODELS, PAIRS, REFERENCES = 16, 150, 12, 2
REGIMES = ("like", "stronger", "gap")
TABLES = ("gsm8k_150", "helm_gsm", "openllm2_math_musr", "helm_med_qa")
MOST, ONCE, DISCORDANT = 160, (40, 80, 160), 5
LOOKS = looks_of(MOST)
PAIRED, OWN = "fewbench(together=2)", "fewbench"


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
    """Answer the requested items until every target has `upto` answers."""
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


def row_of(apart, ends):
    """Return the verdict of an interval on a difference."""
    low, high = (float(end) for end in ends)
    sign = (int(low > 0) - int(high < 0)) * int(np.sign(apart))
    covers = low <= apart <= high
    return {
        "sign": sign,
        "covers": covers,
        "width": high - low,
        "off": abs((low + high) / 2 - apart),
    }


def compared(how, made, targets, sample):
    """Return the rows of a pair, by `versus` and by the t test: of one look, and of several.

    `made(n)` returns the contrasts of one look and of one of several, after n answers.
    """
    (one, other), (a, b) = targets
    apart, plain = float(one.mean() - other.mean()), (one - other)[sample]
    rows, ended = [], {}
    for n, factor in zip(LOOKS, look_bounds(LOOKS, LEVEL), strict=True):
        once, again = made(n)
        bound = ndtri(0.5 + LEVEL / 2)
        few = np.count_nonzero(plain[:n]) < DISCORDANT
        looks = {
            "versus": again.interval(LEVEL),
            "t": (-1, 1) if few else student(plain[:n], len(one), bound * factor),
        }
        ends = {"versus": once.interval(LEVEL), "t": student(plain[:n], len(one), bound)}
        about = {"how": how, "a": a, "b": b}
        if n in ONCE:
            rows += [about | {"who": w, "at": str(n)} | row_of(apart, ends[w]) for w in ends]
        for who, found in looks.items():
            if who not in ended or not ended[who]["sign"]:
                said = {"who": who, "at": "looks", "items": n}
                ended[who] = about | said | row_of(apart, found)
    return rows + list(ended.values())


def cell(table, regime, repeat):
    """Return the rows of a table, regime and repeat."""
    rest, drawn = split(table, regime, repeat)
    sources, targets = table.take(models=rest), table.take(models=drawn)
    truth, names, values = targets.full_scores(), targets.model_ids, targets.values
    rng = np.random.default_rng([repeat, 1])
    apart = np.abs(truth[:, None] - truth)
    near = np.argwhere(np.triu((apart >= NEAR) & (apart <= FAR)))
    rows = []

    def contrasts(evaluation, i, j, n):
        play(evaluation, targets, n)
        sides = [
            operand((evaluation, name) if name in evaluation.targets else name, evaluation.scores)
            for name in (names[i], names[j])
        ]
        return [
            contrast(*sides, level=LEVEL, sequential=again, fixed_items=True)
            for again in (False, True)
        ]

    def compare(how, evaluation, i, j):
        both, sample = (
            ((values[i], values[j]), (names[i], names[j])),
            rng.permutation(len(values.T)),
        )
        return compared(how, lambda n: contrasts(evaluation, i, j, n), both, sample)

    for i, j in near[rng.permutation(len(near))[:PAIRS]]:
        pair = [names[i], names[j]]
        rows += compare("estimated", Evaluation(sources, PAIRED, MOST, pair, repeat), i, j)
    for j in rng.permutation(len(truth))[:REFERENCES]:
        joined = table.take(models=np.sort([*rest, drawn[j]]))
        for i in np.flatnonzero((apart[j] >= NEAR) & (apart[j] <= FAR)):
            rows += compare("known", Evaluation(joined, OWN, MOST, [names[i]], repeat), i, j)
    return rows


def clustered(values, cells):
    """Return the standard error of a mean whose values are alike within cells."""
    sums = (values - values.mean()).groupby(cells).sum()
    return np.sqrt((sums**2).sum() * len(sums) / max(len(sums) - 1, 1)) / len(values)


def summed(frame, by):
    """Return one line per group, comparison and look."""
    found = []
    for key, part in frame.groupby([*by, "how", "at"], sort=False):
        versus, plain = (part[part["who"] == w].reset_index() for w in ("versus", "t"))
        line = dict(zip([*by, "how", "at"], key, strict=True)) | {"pairs": len(versus)}
        for name, own in (("", versus), ("t ", plain)):
            line |= {f"{name}right": (own["sign"] > 0).mean()}
            line |= {f"{name}wrong": (own["sign"] < 0).mean()}
            line |= {f"{name}covers": own["covers"].mean()}
        cells = versus["table"] + versus["repeat"].astype(str)
        more = (versus["sign"] > 0).astype(float) - (plain["sign"] > 0)
        line |= {"± covers": clustered(versus["covers"].astype(float), cells)}
        line |= {"± wrong": clustered((versus["sign"] < 0).astype(float), cells)}
        line |= {"more": more.mean(), "± more": clustered(more, cells)}
        line["times"] = line["right"] / (line["t right"] or np.nan)
        for name, column in (("width", "width"), ("error", "off")):
            line[name] = versus[column].mean() / plain[column].mean()
        line |= {"items": versus["items"].mean(), "t items": plain["items"].mean()}
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
