"""Share of right and wrong verdicts of `versus`, against paired random sampling.

    python benchmarks/decisions.py FOLDER_OF_TABLES [TABLE …] --cache DIR

Every repeat draws at most 150 models of a table and takes target models out of them: at random
("like"), of the strongest quarter with the others as sources ("stronger"), or of the strongest 30 %
with the weakest half as sources ("gap"). Pairs of targets with full scores .5 to 5 points apart are
compared at 90 %, as one evaluation of two targets by items chosen for their difference. Paired
sampling runs both on the same random items: McNemar's exact test, and Student's interval of the
paired difference.

Verdicts: `right` and `wrong` are shares of the pairs. `covers` is the share of intervals with the
true difference, with the two-way standard error over repeats and models. `error` and `width` are
mean errors and widths over those of paired sampling; `apart` is the error if each target has items
of its own. Sequential verdicts look after 10, 20, 40, … items and stop; `items` is the mean number
run, `ratio` that over the paired interval's, with its level divided among the looks.

Finished cells are kept in the cache; the same command goes on.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from fewbench.decide.contrast import Contrast
from fewbench.decide.held_out import measure
from fewbench.decide.paired import mcnemar
from fewbench.decide.residuals import HeldOut, looks
from fewbench.decide.sides import side

from fewbench._files import written_whole
from fewbench.evaluation import Evaluation
from fewbench.methods.catalogue import find_method
from fewbench.readers.npz import read_npz

LEVEL, NEAR, FAR = 0.9, 0.005, 0.05
TARGETS, MODELS, PAIRS = 16, 150, 12
REGIMES = ("like", "stronger", "gap")
TABLES = ("gsm8k_150", "helm_gsm", "openllm2_math_musr", "helm_med_qa")
METHOD = "fewbench(together=2)"
MOST, ONCE = 160, (40, 80, 160)


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
        asked = {name: items for name, items in asked.items() if items}
        if not asked:
            return
        for name, items in asked.items():
            row = targets.values[targets.model_ids.index(name)]
            evaluation.tell(name, dict(zip(items, row[targets.positions(items)], strict=True)))


def verdict(low, high):
    """Return 1, -1 or 0 for undecided."""
    return int(low > 0) - int(high < 0)


def paired(apart, n_items, level):
    """Return Student's interval of the mean of paired differences on random items."""
    from scipy.stats import t

    n = len(apart)
    error = np.sqrt(max(apart.var(ddof=1), 1e-9) * (1 / n - 1 / n_items))
    half = t.ppf(0.5 + level / 2, n - 1) * error
    return apart.mean() - half, apart.mean() + half


def single_looks(held):
    """Return the errors after each look alone, as `Contrast` asks for them."""
    return {
        n: HeldOut(
            held.errors[:, [at]], held.spreads[:, [at]], held.estimates,
            *(held.models, held.groups, held.parts, held.sessions, held.distances),
        )
        for at, n in enumerate(looks(MOST))
    }  # fmt: skip


def cell(table, regime, repeat, folder):
    """Return one row per pair of a table, regime and repeat."""
    rest, drawn = split(table, regime, repeat)
    sources, targets = table.take(models=rest), table.take(models=drawn)
    truth, n_items = targets.full_scores(), targets.n_items
    near = [
        (i, j)
        for i in range(len(truth))
        for j in range(i)
        if NEAR <= abs(truth[i] - truth[j]) <= FAR
    ]
    rng = np.random.default_rng([repeat, 1])
    near = [near[at] for at in rng.permutation(len(near))[:PAIRS]]
    if not near:
        return []
    own = Evaluation(sources, "fewbench", MOST, targets.model_ids, repeat)
    apart_at = {}
    for n in ONCE:
        play(own, targets, n)
        apart_at[n] = [own.prediction(name).scores[0] for name in own.targets]
    held = measure(find_method(METHOD), sources, MOST, repeat, looks(MOST), folder)
    alone = single_looks(held)
    rows = []
    for i, j in near:
        names = [targets.model_ids[i], targets.model_ids[j]]
        apart, sample = truth[i] - truth[j], rng.permutation(n_items)
        row = {"i": names[0], "j": names[1], "apart": apart}
        evaluation = Evaluation(sources, METHOD, MOST, names, repeat)
        stopped, p_stopped, m_stopped = None, None, None
        for n in looks(MOST):
            play(evaluation, targets, n)
            sides = [side((evaluation, name), sources) for name in names]
            both = Contrast(*sides, sources, sequential=True)
            key = (evaluation.method.describe(), MOST, repeat)
            both._measured[(*key, looks(MOST))] = held
            found = both.interval(LEVEL)
            values = targets.values[[i, j]][:, sample[:n]]
            share = (1 - LEVEL) / len(looks(MOST))
            if stopped is None and (said := verdict(found.low, found.high)):
                stopped = n, said * np.sign(apart)
            low, high = paired(values[0] - values[1], n_items, 1 - share)
            if p_stopped is None and (said := verdict(low, high)):
                p_stopped = n, said * np.sign(apart)
            test = mcnemar(*values)
            sign = np.sign(test.only_a - test.only_b) * np.sign(apart)
            if m_stopped is None and test.p_value <= share:
                m_stopped = n, sign
            if n not in ONCE:
                continue
            once = Contrast(*sides, sources, sequential=False)
            once._measured[(*key, once._at(once.one))] = alone[n]
            found, (low, high) = once.interval(LEVEL), paired(values[0] - values[1], n_items, LEVEL)
            row |= {f"low {n}": found.low, f"high {n}": found.high, f"kind {n}": found.kind}
            row |= {f"p low {n}": low, f"p high {n}": high}
            row |= {f"m {n}": float(sign * (test.p_value <= 1 - LEVEL))}
            row |= {f"estimate {n}": once.difference}
            row |= {f"own {n}": apart_at[n][i] - apart_at[n][j]}
        for name, end in (("s", stopped), ("ps", p_stopped), ("ms", m_stopped)):
            row[f"{name} items"], row[f"{name} verdict"] = end or (MOST, 0)
        rows.append({name: _plain(value) for name, value in row.items()})
    return rows


def _plain(value):
    return value if isinstance(value, str) else float(value)


def two_way_error(held, repeats, models):
    """Return the standard error of a share by two-way resampling of repeats and models."""
    rng = np.random.default_rng(0)
    of_repeat, at = np.unique(repeats, return_inverse=True)
    of_model, which = np.unique(models, return_inverse=True)
    means = []
    for _ in range(500):
        a = np.bincount(rng.integers(len(of_repeat), size=len(of_repeat)), minlength=len(of_repeat))
        b = np.bincount(rng.integers(len(of_model), size=len(of_model)), minlength=len(of_model))
        weights = a[at] * b[which]
        if weights.sum():
            means.append((weights * held).sum() / weights.sum())
    return float(np.std(means))


def summed(frame, by):
    """Return one row per group and number of items."""
    found = []
    for key, part in frame.groupby(by, sort=False):
        apart = part["apart"]
        for n in ONCE:
            low, high = part[f"low {n}"], part[f"high {n}"]
            p_low, p_high = part[f"p low {n}"], part[f"p high {n}"]
            said = ((low > 0).astype(int) - (high < 0)) * np.sign(apart)
            p_said = ((p_low > 0).astype(int) - (p_high < 0)) * np.sign(apart)
            held, off = (low <= apart) & (apart <= high), (p_low + p_high) / 2 - apart
            row = dict(zip(by, key, strict=True)) | {"n": n, "pairs": len(part)}
            row |= {"right": (said > 0).mean(), "wrong": (said < 0).mean()}
            row |= {"paired right": (p_said > 0).mean(), "paired wrong": (p_said < 0).mean()}
            row |= {"mcnemar right": (part[f"m {n}"] > 0).mean()}
            row |= {"mcnemar wrong": (part[f"m {n}"] < 0).mean(), "covers": held.mean()}
            row |= {"±": two_way_error(held, part["repeat"], part["i"])}
            row |= {"paired covers": ((p_low <= apart) & (apart <= p_high)).mean()}
            row |= {"width": (high - low).mean() / (p_high - p_low).mean()}
            for name, column in (("error", "estimate"), ("apart", "own")):
                row[name] = (part[f"{column} {n}"] - apart).abs().mean() / off.abs().mean()
            found.append(row)
    return pd.DataFrame(found)


def summed_looks(frame, by):
    """Return one row per group of the sequential comparisons."""
    found = []
    for key, part in frame.groupby(by, sort=False):
        row = dict(zip(by, key, strict=True)) | {"pairs": len(part)}
        for name, prefix in (("", "s"), ("paired ", "ps"), ("mcnemar ", "ms")):
            row[f"{name}right"] = (part[f"{prefix} verdict"] > 0).mean()
            row[f"{name}wrong"] = (part[f"{prefix} verdict"] < 0).mean()
            row[f"{name}items"] = part[f"{prefix} items"].mean()
        found.append(row | {"ratio": row["items"] / row["paired items"]})
    return pd.DataFrame(found)


def main():
    """Run what is not in the cache and print both tables."""
    given = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    given.add_argument("folder", type=Path)
    given.add_argument("tables", nargs="*", default=list(TABLES))
    given.add_argument("--repeats", type=int, default=10)
    given.add_argument("--cache", type=Path, default=Path("decisions-cells"))
    wanted = given.parse_args()
    wanted.cache.mkdir(parents=True, exist_ok=True)
    rows = []
    for repeat in range(wanted.repeats):
        for name in wanted.tables:
            for regime in REGIMES:
                path = wanted.cache / f"{name}-{regime}-{repeat}.json"
                if not path.exists():
                    started = time.process_time()
                    scores = read_npz(wanted.folder / f"{name}.npz").scores.complete()
                    drawn = np.random.default_rng([repeat, 9]).permutation(scores.n_models)[:MODELS]
                    found = cell(scores.take(models=np.sort(drawn)), regime, repeat, wanted.cache)
                    with written_whole(path) as temporary:
                        temporary.write_text(json.dumps(found))
                    print(f"{path.stem}: {time.process_time() - started:.0f} s", flush=True)
                made = {"table": name, "regime": regime, "repeat": repeat}
                rows += [made | row for row in json.loads(path.read_text())]
    frame = pd.DataFrame(rows)
    with pd.option_context("display.width", 250, "display.max_columns", 30):
        for by in (["table", "regime"], ["regime"]):
            print(summed(frame, by).round(3).to_string(index=False))
            print(summed_looks(frame, by).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
