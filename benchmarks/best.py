"""How soon the best of many models is found, by `fewbench best` and by other searches.

    python benchmarks/best.py FOLDER_OF_TABLES [--repeats 200] [--only gsm20] [--out best.jsonl]
    python benchmarks/best.py --page benchmarks/results/best.md [--out best.jsonl]

Each repeat draws models of a table: at random, or next in rank ("close"), in some settings
with other models as source models. Copies of a model are left out. "equal": models that give
each item the right answer with the same chance, "reruns": the same with chances near 0 or 1, as of
runs of one model. Searches: `best` (which goes on after it is settled), successive halving, UCB-E
(Audibert, Bubeck & Munos 2010, as in "On Speeding Up Language Model Evaluation", with batches of
32), UCB-E on shared items, and the same items for all. Where `best` would stop is noted beside.

`right`: share of repeats that found the best. `regret`: by how many points the best model is better
than the model found. The second call writes the page of the results from the file.
"""

import argparse
import json
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from fewbench.readers.npz import read_npz
from fewbench.study.search_study import draw_models
from fewbench.study.searching import best, halving, ucb_e, uniform

SHARES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
SHOWN = (0.01, 0.02, 0.05, 0.1, 0.2)
MOST_ITEMS, NORMAL, EQUAL = 2000, 1.645, 1e-9
CHUNK = 25
"""Repeats of a setting in a row, so that all settings have some if a run is cut short."""
SEARCHES = {
    "best": best,
    "halving": halving,
    "UCB-E": ucb_e,
    "UCB-E, shared": partial(ucb_e, is_shared=True),
    "uniform": uniform,
}
SETTINGS = {  # table, models, next in rank, source models
    "gsm20": ("gsm8k_150", 20, False, 0),
    "oll20": ("openllm2_math_musr", 20, False, 0),
    "med20": ("helm_med_qa", 20, False, 0),
    "mub20": ("llmub_mmlu", 20, False, 0),
    "gsm20close": ("gsm8k_150", 20, True, 0),
    "med20close": ("helm_med_qa", 20, True, 0),
    "mub20close": ("llmub_mmlu", 20, True, 0),
    "oll20close": ("openllm2_math_musr", 20, True, 0),
    "oll5": ("openllm2_math_musr", 5, False, 0),
    "oll100": ("openllm2_math_musr", 100, False, 0),
    "gsm20src": ("gsm8k_150", 20, False, 50),
    "oll20src": ("openllm2_math_musr", 20, False, 60),
    "equal20": ("equal", 20, False, 0),
    "reruns20": ("reruns", 20, False, 0),
}


@cache
def table(folder, name):
    """Return the answers of a table's models, copies left out."""
    scores = read_npz(folder / f"{name}.npz").scores
    values = np.asarray(scores.filled_cells[:], dtype=np.float64)
    _, first = np.unique(values, axis=0, return_index=True)
    kept = np.sort(first)
    kept = kept[[values[at].mean() > 0.02 and "#" not in scores.model_ids[at] for at in kept]]
    values = values[kept]
    if values.shape[1] > MOST_ITEMS:
        values = values[:, np.random.default_rng(7).permutation(values.shape[1])[:MOST_ITEMS]]
    return values


def drawn(folder, setting, repeat):
    """Return the answers of the models of a repeat, and of the source models or None."""
    name, models, close, sources = SETTINGS[setting]
    rng = np.random.default_rng([repeat, len(name), models, close])
    if name in ("equal", "reruns"):
        chances = rng.beta(*[{"equal": 0.6, "reruns": 0.12}[name]] * 2, size=1000)
        return (rng.random((models, 1000)) < chances) * 1.0, None
    return draw_models(table(folder, name), models, sources, rng, neighbors=close)


def measure(folder, setting, repeat):
    """Return a row per search and share, and one of the stop."""
    answers, sources = drawn(folder, setting, repeat)
    true = answers.mean(axis=1)
    budgets = [max(2 * len(true), int(share * answers.size)) for share in SHARES]
    rows = []
    searches = SEARCHES | {"best": partial(best, sources=sources, goes_on=True)}
    for name, search in searches.items():
        found = search(answers, np.random.default_rng([repeat, 1]), budgets)
        rows += [
            row_of(one, true) | {"search": name, "share": share}
            for one, share in zip(found, SHARES, strict=False)
        ]
        rows += [
            row_of(one, true) | {"search": "stop", "share": one.share}
            for one in found[len(SHARES) :]
        ]
    return rows


def row_of(found, true):
    """Return what came of a search."""
    off = found.score - true[found.best]
    return {
        "right": bool(true[found.best] >= true.max() - EQUAL),
        "regret": 100 * float(true.max() - true[found.best]),
        "off": 100 * float(off),
        "covered": bool(abs(off) <= NORMAL * found.error + EQUAL),
        "stopped": bool(found.stopped),
    }


def needed(shares, values, bound, *, at_least):
    """Return the share at which a mean first reaches a bound, interpolated, or NaN."""
    reached = values >= bound if at_least else values <= bound
    if not reached.any():
        return np.nan
    at = int(np.argmax(reached))
    if at == 0:
        return shares[0]
    rise = (bound - values[at - 1]) / (values[at] - values[at - 1])
    return shares[at - 1] + rise * (shares[at] - shares[at - 1])


def summed(rows):
    """Return one line per setting and search, and one per setting for the stops of best."""
    frame, lines, stops = pd.DataFrame(rows), [], []
    settings = [name for name in SETTINGS if name in set(frame["setting"])]
    for setting in settings:
        of_setting = frame[frame["setting"] == setting]
        for search in SEARCHES:
            part = of_setting[of_setting["search"] == search].groupby("share")
            right, regret, n = part["right"].mean(), part["regret"].mean(), int(part.size().iloc[0])
            line = {"setting": setting, "search": search, "repeats": n}
            line["95 % right"] = needed(right.index, right.to_numpy(), 0.95, at_least=True)
            line["regret 1"] = needed(regret.index, regret.to_numpy(), 1.0, at_least=False)
            errors = part["regret"].std() / np.sqrt(n)
            for share in SHOWN:
                line[f"right {share:g}"] = right[share]
                line[f"regret {share:g}"], line[f"± {share:g}"] = regret[share], errors[share]
            lines.append(line)
        own = of_setting[of_setting["search"] == "best"]
        at_5 = own[own["share"] == 0.05]
        stop = of_setting[of_setting["search"] == "stop"]
        ended = stop[stop["stopped"]]
        stops.append(
            {
                "setting": setting, "repeats": len(stop), "stopped": len(ended) / len(stop),
                "right": ended["right"].mean(), "share": ended["share"].mean(),
                "bias": ended["off"].mean(),
                "±": ended["off"].std() / np.sqrt(max(len(ended), 1)),
                "covered": ended["covered"].mean(), "bias at 5 %": at_5["off"].mean(),
                "± 5": at_5["off"].std() / np.sqrt(len(at_5)),
                "covered at 5 %": at_5["covered"].mean(),
            }
        )  # fmt: skip
    return pd.DataFrame(lines), pd.DataFrame(stops)


def percent(share, digits=1):
    """Return a share in percent, or that it is beyond the largest."""
    return f"> {100 * SHARES[-1]:.0f}" if np.isnan(share) else f"{100 * share:.{digits}f}"


def page(rows):
    """Return the page of the results."""
    lines, stops = summed(rows)
    text = ["# The best of many: all measured figures", "", INTRODUCTION, ""]
    text += ["## Answers that a search needs", ""]
    text += ["Share of the answers of all models to all items, in percent: for 95 % right, and,"]
    text += ["after the slash, for a mean regret of one point.", ""]
    text += [f"| setting | repeats | {' | '.join(SEARCHES)} |", "|---" * (2 + len(SEARCHES)) + "|"]
    for setting, part in lines.groupby("setting", sort=False):
        cells = [
            f"{percent(line['95 % right'])} / {percent(line['regret 1'])}"
            for _, line in part.iterrows()
        ]
        text.append(f"| {setting} | {part['repeats'].iloc[0]} | {' | '.join(cells)} |")
    text += ["", "## Regret at a share of the answers", ""]
    text += ["Points, ± standard errors; in parentheses the share of repeats that is right.", ""]
    text += [f"| setting | search | {' | '.join(f'{100 * s:g} %' for s in SHOWN)} |"]
    text += ["|---" * (2 + len(SHOWN)) + "|"]
    for _, line in lines.iterrows():
        cells = [
            f"{line[f'regret {s:g}']:.2f} ± {line[f'± {s:g}']:.2f} ({line[f'right {s:g}']:.2f})"
            for s in SHOWN
        ]
        text.append(f"| {line['setting']} | {line['search']} | {' | '.join(cells)} |")
    text += ["", "## Stops of `best`, and the score of the winner", ""]
    text += ["Bias: the stated score less the true one, points; covered: share of 90 % intervals."]
    text += ["At 5 %: whether it has stopped or not.", ""]
    text += ["| setting | stopped by 30 % | right | mean share, % | bias | covered | bias at 5 % "
             "| covered at 5 % |", "|---" * 8 + "|"]  # fmt: skip
    for _, stop in stops.iterrows():
        text.append(
            f"| {stop['setting']} | {stop['stopped']:.2f} | {stop['right']:.3f} | "
            f"{100 * stop['share']:.1f} | {stop['bias']:+.2f} ± {stop['±']:.2f} | "
            f"{stop['covered']:.2f} | {stop['bias at 5 %']:+.2f} ± {stop['± 5']:.2f} | "
            f"{stop['covered at 5 %']:.2f} |".replace("+nan ± nan", "–").replace("nan", "–")
        )
    return "\n".join(text) + "\n"


INTRODUCTION = """Measured and written by `python benchmarks/best.py FOLDER --page PAGE`: models of
public tables (gsm: 137 models, 1,319 items of GSM8K; oll: 426 and 1,650 of the Open LLM
Leaderboard; med: 82 and 1,000 of MedQA; mub: 102 and 2,000 of MMLU), 5, 20 or 100 at random or
(*close*) next in rank, with 50 to 60 source models (*src*). *equal* and *reruns*: models that are
equal in general. Searches may use up to 30 % of the answers. Stops of 100 models: 60 repeats."""


def main():
    """Run what is not in the file yet, and print the tables or write the page."""
    given = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    given.add_argument("folder", type=Path, nargs="?")
    given.add_argument("--repeats", type=int, default=200)
    given.add_argument("--only", default=",".join(SETTINGS))
    given.add_argument("--out", type=Path, default=Path("best.jsonl"))
    given.add_argument("--page", type=Path)
    wanted = given.parse_args()
    rows = [json.loads(line) for line in wanted.out.open()] if wanted.out.exists() else []
    done = {(row["setting"], row["repeat"]) for row in rows}
    plan = [
        (setting, repeat)
        for start in range(0, wanted.repeats, CHUNK)
        for setting in wanted.only.split(",")
        for repeat in range(start, min(start + CHUNK, wanted.repeats))
    ]
    started = time.process_time()
    for setting, repeat in [] if wanted.folder is None else plan:
        if (setting, repeat) in done:
            continue
        made = {"setting": setting, "repeat": repeat}
        new = [made | row for row in measure(wanted.folder, setting, repeat)]
        rows += new
        with wanted.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)
        if repeat % CHUNK == CHUNK - 1:
            print(f"{setting}, {repeat + 1}: {time.process_time() - started:.0f} s", flush=True)
    if wanted.page is not None:
        wanted.page.write_text(page(rows), encoding="utf-8")
        return
    with pd.option_context("display.width", 250, "display.max_columns", 40, "display.max_rows", 99):
        for part in summed(rows):
            print(part.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
