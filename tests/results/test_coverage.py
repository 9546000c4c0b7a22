"""Intervals stated at 90 % on real tables: for targets like the sources and for others.

Where a method learned from sources cannot hold, its estimate says so (docs/intervals.md). Run with
-s to see the figures; benchmarks/intervals.py makes more.
"""

import numpy as np
import pytest

from fewbench import Evaluation, from_arrays
from fewbench.algorithms.soundness.likeness import duplicate_groups
from fewbench.datasets import load_zoo
from fewbench.study import SplitSettings, compare, make_split

pytestmark = pytest.mark.slow

# One of each kind of predictor: means, regression, nearest model, completion.
METHODS = ["anchor-points", "random-ridge", "random-signature-knn", "random-low-rank"]
SHOWN = ["method", "split", "coverage90", "half_width90", "mae"]


def coverage(real, methods, tables):
    """Share of the targets inside their interval, pooled over the tables."""
    covered, met = {}, {}
    for table, repeats in tables.items():
        outcome = compare(real(table), methods, [30], repeats=repeats, workers=1)
        print(table, outcome.cells[SHOWN].to_string(), sep="\n")
        for row in outcome.cells.to_dict("records"):
            name = row["method"]
            covered[name] = covered.get(name, 0.0) + row["coverage90"] * row["n_targets"] * repeats
            met[name] = met.get(name, 0) + row["n_targets"] * repeats
    return {name: covered[name] / met[name] for name in covered}


# A share of 240 targets of 90 % has a standard error near 2 points. Intervals a fifth too narrow
# hold 81 %.
def test_random_splits(real):
    share = coverage(real, METHODS, {"gsm8k_150": 4, "helm_med_qa": 4})
    assert min(share.values()) >= 0.86, share


def test_random_splits_with_methods_that_adapt(real):
    share = coverage(real, ["tailored", "collaborative-low-rank"], {"helm_math": 3})
    assert min(share.values()) >= 0.84, share


def judged(method, sources, targets, budget, seed=0):
    """Return what each target's estimate reached: covered, width over random's, warned of."""
    evaluation = Evaluation(sources, method, budget, targets.model_ids, seed)
    while any(map(len, evaluation.ask().values())):
        evaluation.tell_table(targets)
    truth, found = targets.full_scores(), []
    for one, score in zip(evaluation.estimate(warn=False).values(), truth, strict=True):
        low, high = one.interval.low, one.interval.high
        said = " ".join(one.warnings)
        warned = "errors on them may not hold" in said or "hardly differ in ability" in said
        found.append(
            [low - 1e-9 <= score <= high + 1e-9, (high - low) / 2 / one.random.half_width, warned]
        )
    return np.array(found)


# Folds with 17 of 22 sources have to run what 22 sources run: else intervals hold .74 to .84.
@pytest.mark.parametrize("method", ["fewbench", "fewbench-static"])
def test_a_few_more_sources_than_change_the_method(real, method):
    found = []
    for table in ("helm_med_qa", "gsm8k_150"):
        scores = real(table)
        scores = scores.take(
            models=np.unique(duplicate_groups(scores.filled), return_index=True)[1]
        )
        for repeat in range(3):
            drawn = np.random.default_rng(repeat).permutation(scores.n_models)
            sources, targets = (scores.take(models=at) for at in (drawn[:22], drawn[22:52]))
            found.append(judged(method, sources, targets, 50, repeat))
    covered, width, _ = np.concatenate(found).mean(axis=0)
    print(f"{method}: covered {covered:.3f}, width {width:.2f}")
    assert covered >= 0.86
    assert width < 1


# 5 sources of gsm8k gave .01 to .98; 12 of 20 families of the zoo 1.33 of random sampling's width.
def test_few_sources_and_new_families_get_an_interval_narrower_than_random_sampling_s(real):
    found = {"few": [], "families": []}
    for table in ("helm_med_qa", "gsm8k_150"):
        scores = real(table)
        for repeat in range(3):
            drawn = np.random.default_rng(repeat).permutation(scores.n_models)
            sources, targets = (scores.take(models=at) for at in (drawn[:5], drawn[5:35]))
            found["few"].append(judged("fewbench", sources, targets, 50, repeat))
    zoo = load_zoo()
    families = np.unique(zoo.models["family"])
    for repeat in range(3):
        known = np.random.default_rng(repeat).permutation(families)[:12]
        inside = zoo.models["family"].isin(known).to_numpy()
        targets = np.random.default_rng(repeat).permutation(np.flatnonzero(~inside))[:32]
        sources = zoo.take(models=np.flatnonzero(inside))
        found["families"].append(judged("fewbench", sources, zoo.take(models=targets), 30, repeat))
    for kind, rows in found.items():
        covered, width, _ = np.concatenate(rows).mean(axis=0)
        print(f"{kind}: covered {covered:.3f}, width {width:.2f}")
        assert covered >= 0.83, kind
        assert width < 0.9, kind


# The models learned from sources put all right at .90 and all wrong at .18.
def test_targets_unlike_all_sources(real):
    found: dict[str, list] = {}
    for table in ("helm_med_qa", "gsm8k_150"):
        scores, rng = real(table), np.random.default_rng(0)
        n = scores.n_items
        hard = (scores.filled.mean(axis=0).argsort().argsort() < n // 2).astype(float)
        rows = {"all right": np.ones(n), "all wrong": np.zeros(n), "hard half": hard}
        for draw in range(12):
            coin, like = (
                rng.integers(0, 2, n) * 1.0,
                scores.filled[rng.integers(len(scores.is_run))],
            )
            rows |= {f"coin {draw}": coin, f"inverted {draw}": 1 - like}
            rows[f"half noise {draw}"] = np.where(rng.random(n) < 0.5, like, coin)
        targets = from_arrays(
            np.array(list(rows.values())), models=list(rows), items=scores.item_ids.tolist(),
            tasks=scores.items["task"].tolist(),
        )  # fmt: skip
        for name, row in zip(rows, judged("fewbench", scores, targets, 100), strict=True):
            found.setdefault(name.rstrip("0123456789 "), []).append(row)
    covered = {kind: np.mean(rows, axis=0)[0] for kind, rows in found.items()}
    print(covered)
    assert covered["all right"] == covered["all wrong"] == 1
    assert covered["inverted"] >= 0.8
    assert (covered["coin"] + covered["half noise"]) / 2 >= 0.75


# Of three tables the weaker models foretell the stronger, or do in part, or only guess.
BEYOND = ("helm_math", "helm_med_qa", "glue_rte")
# Of four, sources lie far enough apart that 50 answers show where a target is among them.
APART = ("gsm8k_150", "helm_gsm", "helm_med_qa", "helm_math")


@pytest.mark.parametrize("name", ["greedy-ridge", "anchor-points", "disco-jsd-ridge"])
def test_targets_beyond_the_sources_are_covered_or_warned_of(real, name):
    """80 % of targets above most sources are covered or warned of, few of those between them."""
    seen, flagged = [], []
    for table, kind in [(t, "performance") for t in BEYOND] + [(t, "random") for t in APART]:
        scores = real(table)
        split = make_split(scores, SplitSettings(kind), 0, 0)
        sources, targets = (scores.take(models=m) for m in (split.sources, split.targets))
        covered, _, warned = judged(name, sources, targets, 50).T
        print(name, table, kind, f"covered {covered.mean():.2f}, warned {warned.mean():.2f}")
        if kind == "random":
            low, high = np.quantile(sources.full_scores(), [0.05, 0.95])
            truth = targets.full_scores()
            flagged.extend(warned[(low < truth) & (truth < high)])
        else:
            seen.extend(np.maximum(covered, warned))
    assert np.mean(seen) >= 0.8  # of 64; one table's 21 do not tell .8 from .7
    assert np.mean(flagged) < 0.13


def test_no_silence_where_few_items_show_that_a_target_is_beyond_the_sources(real):
    """All 423 sources are below .30; 24 targets reach .43, and 50 medoids place many of them among
    the best sources only. 13 of them had an interval without the truth and no warning."""
    scores = real("openllm2_math_musr")
    below = scores.full_scores() < 0.30
    sources, targets = (scores.take(models=np.flatnonzero(at)) for at in (below, ~below))
    assert sources.n_models == 423
    covered, _, warned = judged("kmedoids-ridge", sources, targets, 50).T
    assert np.maximum(covered, warned).mean() >= 0.85
    assert warned[targets.full_scores().argmax()]


# With the quantile of all tasks together, or with the full score's least width, it is .89, and .66
# for one task: the sources hardly solve it, and the targets do. The targets of a split share most
# items, so one split says little: with 70% of models and items the worst task has .53 to .91, .68
# over eight.
def test_task_scores_of_models_beyond_the_sources(real):
    scores, covered = real("openllm2_math_musr"), []
    for repeat in range(3):
        for gap in ({}, {"targets": 0.3, "gap": 0.2}):
            split = make_split(scores, SplitSettings("performance", **gap), 0, repeat)
            drawn = np.random.default_rng(repeat).permutation(split.targets)[:40]
            sources, targets = (scores.take(models=at) for at in (split.sources, drawn))
            evaluation = Evaluation(sources, "fewbench", 30, targets.model_ids, repeat)
            while any(map(len, evaluation.ask().values())):
                evaluation.tell_table(targets)
            estimates = evaluation.estimate(warn=False).values()
            for estimate, truths in zip(estimates, targets.task_scores(), strict=True):
                pairs = zip(estimate.task_intervals.values(), truths, strict=True)
                covered.append(
                    [np.nan if i is None else i.low - 1e-9 <= t <= i.high + 1e-9 for i, t in pairs]
                )
    of_tasks = np.nanmean(covered, axis=0)
    print(of_tasks)
    assert np.nanmean(covered) >= 0.9
    assert of_tasks.min() >= 0.64
