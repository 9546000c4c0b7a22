"""TailoredBench (Yuan et al. 2025): tables on GSM8K, and the figures that the paper prints."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd

from fewbench._types import FloatArray, IntArray
from fewbench.methods.confidence import confidence
from fewbench.study import SplitSettings, compare, make_split
from fewbench.study.metrics import kendall_tau
from fewbench.uncertainty.replay import replay
from fewbench_papers.algorithms.clustering.distances import item_distances
from fewbench_papers.algorithms.clustering.kmedoids import alternating_kmedoids, kmedoids
from papers.methods import find, paper_method
from papers.record import (
    GIVEN,
    HALVES,
    HEADINGS,
    MAE,
    NONE,
    OTHER,
    TAU,
    Context,
    Differences,
    Paper,
    Row,
    Study,
    Table,
    means,
    seed_of_compare,
    shown,
    without_duplicates,
)
from papers.tailored_tables import (
    ARC,
    BENCHMARKS,
    FEW,
    MORE,
    ON_GSM8K,
    REDUCTIONS,
    TABLE_5,
    TABLE_6,
    WITH_MORE,
    native_sources,
)
from tailoredbench.analysis import analyze
from tailoredbench.methods import with_families

EVERY = 6  # items of MMLU, for studies of a dozen methods in minutes
BY_PROBABILITIES = (
    Row("tailored"),
    Row("tailored(values=probabilities)", against="tailored"),
    Row("kmedoids-ridge"),
    Row(
        "medoids(standardise=true)+answers(values=probabilities)+ridge",
        "regression on probabilities",
        against="kmedoids-ridge",
    ),
    Row(
        "medoids(standardise=true,values=probabilities)+answers+ridge",
        "items by probabilities",
        against="kmedoids-ridge",
    ),
    Row(
        "medoids(standardise=true,values=probabilities)+answers(values=probabilities)+ridge",
        "both",
        against="kmedoids-ridge",
    ),
    Row("anchor-points"),
    Row("medoids(standardise=true,values=probabilities)+mean", against="anchor-points"),
    Row("anchor-points-correlation"),
    Row(
        "medoids(metric=correlation,values=probabilities)+mean",
        "confidence of Anchor Points",
        against="anchor-points-correlation",
    ),
    Row("random"),
)


def by_confidence(context: Context) -> str:
    """The paper's setting with probabilities: their mean is also what is predicted."""
    scores = context.scores("llmub_mmlu.npz")
    scores = scores.take(items=range(0, scores.n_items, EVERY))
    scores = scores.changed(values=confidence(scores).sources, probabilities=None)
    budgets = [20, 30, 40]
    found = compare(
        scores,
        [paper_method(method) or method for method in OF_CONFIDENCE],
        budgets,
        SplitSettings("group"),
        10,
        level=None,
        workers=context.workers,
        cache=context.cache,
    )
    lines = [
        "MMLU as above, 10 divisions with checkpoints held out. The score of an item is the "
        "probability of the right option, and the full score is its mean: the paper's setting on "
        "ARC and HellaSwag. *Difference* is to `tailored`.",
    ]
    for metric in (TAU, MAE):
        wide = found.repeats.pivot(index="repeat", columns=["method", "budget"], values=metric)
        wide *= 100 if metric == MAE else 1
        lines += [f"\n| {HEADINGS[metric]} | | 20 | 30 | 40 |", "|---|---|---|---|---|"]
        for method, label in OF_CONFIDENCE.items():
            own = " | ".join(means(wide[method][budgets], metric))
            lines.append(f"| `{method}`{label} | fewbench | {own} |")
            if method != "tailored":
                less = wide[method][budgets] - wide["tailored"][budgets]
                lines.append(f"| | difference | {' | '.join(means(less, metric, '+'))} |")
    return "\n".join(lines)


OF_CONFIDENCE = {
    "tailored": " as published",
    "tailored(calibrate=false)": " no calibration",
    "anchor-points-correlation": " the paper's AnchorPoints",
    "anchor-points": " Manhattan distance",
    "kmedoids-ridge": " not in the paper",
    "random": "",
}
FAMILIES = "llama,mistral+mixtral+zephyr,qwen,gemma,yi-,phi-,granite,falcon,smollm"


def without_families(context: Context) -> str:
    """Tables 11 and 12 on a table with names of models."""
    scores = without_duplicates(context.scores("openllm2_math_musr.npz"))
    scores = with_families(scores, FAMILIES)
    found = analyze(
        scores,
        budget=30,
        split=SplitSettings("random", 0.5),
        repeats=5,
        others=("anchor-points", "gp-irt-anchor", "kmedoids-ridge", "random"),
        parts=("affinity", "absence"),
        workers=context.workers,
    )
    methods, names = found.by_method, {"mae": "error (pp)", "kendall_tau": "Kendall tau"}
    if methods is None:
        raise ValueError(f"no family was left out: {found.absent}")
    lines = [
        f"MATH-hard and MuSR of the Open LLM Leaderboard, {scores.n_models} models without "
        "duplicates, 5 random halves, 30 items. Families are words in the models' names "
        f"({FAMILIES}); the six with most targets are left out in turn. With and without, there "
        "are as many source models. Means over families; in brackets, 90 % intervals. The paper "
        "leaves out Llama on GSM8K, whose arrays do not say which model is which.\n",
        *("- " + found.findings[name] for name in ("affinity", "absence")),
    ]
    for metric, name in names.items():
        lines += [f"\n| {name} | | with | without | change |", "|---|---|---|---|---|"]
        for row in methods.to_dict("records"):
            printed = PRINTED.get(row["method"])
            if printed is not None:
                said = " | ".join(shown(value, metric) for value in printed[metric])
                lines.append(f"| `{row['method']}` | paper | {said} | |")
            scale = 100 if metric == "mae" else 1
            with_, without, gap, low, high = (
                shown(scale * row[f"{metric}_{end}"], metric, "+" if "gap" in end else "")
                for end in ("with", "without", "gap", "gap_low", "gap_high")
            )
            mine = f"{with_} | {without} | {gap} [{low}, {high}] |"
            lines.append(f"| {'' if printed else '`' + row['method'] + '`'} | fewbench | {mine}")
    return "\n".join(lines)


PRINTED = {
    "tailored": {"mae": (2.2, 3.1), "kendall_tau": (0.704, 0.634)},
    "anchor-points": {"mae": (5.0, 4.8), "kendall_tau": (0.525, 0.388)},
    "gp-irt-anchor": {"mae": (3.8, 6.4), "kendall_tau": (0.526, 0.505)},
}
"""Table 12, on GSM8K: with Llama among the source models, and without."""

SEEDS = 30
PRINTED_ON_GSM8K = {
    method: {TAU: tau, MAE: error} for method, (tau, error) in TABLE_6["GSM8K"].items()
}


OF_FIVE = "paper, mean of five"
STRONG, STRONG_SEEDS = 0.4, 5


def strong_targets(context: Context) -> str:
    """How far targets above 40 % are estimated too low, as published and corrected."""
    scores = context.scores("gsm8k_150.npz")
    split = make_split(scores, SplitSettings("given"), 0, 0)
    sources, targets = scores.take(models=split.sources), scores.take(models=split.targets)
    full = targets.full_scores()
    strong = full > STRONG
    lines = [
        f"The {strong.sum()} targets above {STRONG:.0%}, and the other {(~strong).sum()}; 30 "
        f"items, {STRONG_SEEDS} seeds. Mean of estimate less full score, in pp, ± one standard "
        "error over seeds; below 0, estimates are too low.\n",
        "| | strong | other |",
        "|---|---|---|",
    ]
    for method in ("tailored", "tailored(corrected=true)"):
        gaps = 100 * np.array(
            [
                replay(find(method), sources, targets, 30, seed_of_compare(seed)).scores - full
                for seed in range(STRONG_SEEDS)
            ]
        )
        parts = pd.DataFrame({at: gaps[:, at == strong].mean(axis=1) for at in (True, False)})
        lines.append(f"| `{method}` | {' | '.join(means(parts, MAE, '+'))} |")
    return "\n".join(lines)


def searches(context: Context) -> str:
    """AnchorPoints on the paper's GSM8K table, by the search for its medoids."""
    scores = context.scores("gsm8k_150.npz")
    split = make_split(scores, SplitSettings("given"), 0, 0)
    distances = item_distances(scores.filled[split.sources].T, "correlation")
    answers, full = scores.filled[split.targets], scores.full_scores()[split.targets]
    found: dict[str, list[tuple[float, float]]] = {}
    for search, k, seed in product(SEARCHES, FEW, range(SEEDS)):
        medoids = SEARCHES[search](distances, k, np.random.default_rng(seed))
        sizes = np.bincount(distances[:, medoids].argmin(axis=1), minlength=k)
        estimates = answers[:, medoids] @ sizes / len(distances)
        error = 100 * float(np.abs(estimates - full).mean())
        found.setdefault(search, []).append((kendall_tau(full, estimates), error))
    lines = [
        f"k-medoids by correlation, {SEEDS} seeds. The authors' program searches by CLARA: the "
        "best of five searches in random samples of 40 + 2k items. The printed errors lie between "
        "those of CLARA and those of a search over all items, which finds better medoids.",
    ]
    for at, metric in enumerate((TAU, MAE)):
        lines += ["", f"| {HEADINGS[metric]} | {' | '.join(map(str, FEW))} |"]
        lines.append("|---" * (1 + len(FEW)) + "|")
        printed = PRINTED_ON_GSM8K["anchor-points-correlation"][metric]
        lines.append(f"| paper | {' | '.join(shown(value, metric) for value in printed)} |")
        for search, pairs in found.items():
            values = np.array(pairs)[:, at].reshape(len(FEW), SEEDS).T
            lines.append(f"| {search} | {' | '.join(means(pd.DataFrame(values), metric))} |")
    return "\n".join(lines)


def in_samples(distances: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Medoids of the best of five searches in random samples, as CLARA finds them."""
    found = []
    for _ in range(5):
        sample = rng.permutation(len(distances))[: 40 + 2 * k]
        medoids = sample[kmedoids(distances[np.ix_(sample, sample)], k, rng).medoids]
        found.append((float(distances[:, medoids].min(axis=1).sum()), medoids))
    return min(found, key=lambda one: one[0])[1]


SEARCHES: dict[str, Callable[[FloatArray, int, np.random.Generator], IntArray]] = {
    "swaps over all items (`anchor-points-correlation`)": lambda distances, k, rng: (
        kmedoids(distances, k, rng).medoids
    ),
    "swaps in samples (CLARA)": in_samples,
    "alternating over all items": alternating_kmedoids,
}


SECTIONS = (
    Table(
        ON_GSM8K,
        "75 sources, 75 targets, 1,319 items, right or wrong; 30 seeds. The paper's 100 trials are "
        "seeds on this one division, in which sources and targets alternate by rank. The paper's "
        "rows are its Table 6.",
        "gsm8k_150.npz",
        FEW,
        GIVEN,
        30,
        (TAU, MAE),
        (
            Row(
                "tailored",
                "as published (default)",
                PRINTED_ON_GSM8K["tailored"],
            ),
            Row(
                "tailored-as-printed",
                "Eq. 1-10 to the letter",
                {TAU: (0.796, 0.802, 0.819, 0.814, 0.828), MAE: (4.9, 4.7, 4.4, 4.4, 4.2)},
                OTHER,
            ),
            Row(
                "kmedoids-ridge",
                "static, not in the paper",
                {TAU: (0.849, 0.855, 0.868, 0.875, 0.877), MAE: (3.8, 3.7, 3.4, 3.3, 3.2)},
                OTHER,
            ),
            Row(
                "anchor-points-correlation",
                "AnchorPoints",
                PRINTED_ON_GSM8K["anchor-points-correlation"],
            ),
            Row(
                "anchor-points",
                "the same with Manhattan distances",
                {TAU: (0.826, NONE, NONE, NONE, 0.855), MAE: (4.7, NONE, NONE, NONE, 3.5)},
                OTHER,
            ),
            Row(
                "gp-irt-random",
                "gp-IRT of random items",
                PRINTED_ON_GSM8K["gp-irt-random"],
            ),
            Row("gp-irt-anchor", "gp-IRT of its anchor items"),
            Row(
                "random",
                "",
                PRINTED_ON_GSM8K["random"],
            ),
        ),
        z="tailored",
    ),
    Table(
        "TailoredBench on GSM8K, pairs of models in order",
        "As in the first table.",
        "gsm8k_150.npz",
        (30,),
        GIVEN,
        30,
        ("pairwise_accuracy",),
        (Row("tailored", "as published (default)", {"pairwise_accuracy": (93.6,)}),),
    ),
    Table(
        "TailoredBench on GSM8K with more items (Table 5, there HellaSwag)",
        "As in the first table. The paper's rows are of HellaSwag.",
        "gsm8k_150.npz",
        MORE,
        GIVEN,
        30,
        (TAU, MAE),
        (
            *(
                Row(method, "", {TAU: tau, MAE: error}, "paper, HellaSwag")
                for method, (tau, error) in TABLE_5.items()
            ),
            Row("kmedoids-ridge", "static, not in the paper"),
        ),
        z="tailored",
    ),
    Differences(
        "TailoredBench and others on GSM8K, over models",
        "gsm8k_150.npz",
        tuple(
            ("tailored", other)
            for other in (
                *("random", "gp-irt-random", "gp-irt-anchor", "anchor-points"),
                *("anchor-points-correlation", "kmedoids-ridge"),
            )
        ),
        (20, 30, 40, 100, 150),
        GIVEN,
        30,
        (TAU, MAE),
    ),
    REDUCTIONS,
    ARC,
    Study("Why AnchorPoints has less error than printed", ("gsm8k_150.npz",), searches),
    Table(
        "TailoredBench on GSM8K, models divided anew at random",
        "The same 150 models, 30 random divisions in halves: what a user can expect. "
        "*Difference* is to `tailored`, paired over the divisions.",
        "gsm8k_150.npz",
        FEW,
        HALVES,
        30,
        (TAU, MAE),
        (
            Row(
                "tailored",
                "as published (default)",
                {TAU: (0.826, 0.842, 0.850, 0.860, 0.867), MAE: (4.3, 3.9, 3.7, 3.4, 3.3)},
                OTHER,
            ),
            Row(
                "kmedoids-ridge",
                "static, not in the paper",
                {TAU: (0.842, 0.855, 0.866, 0.872, 0.877), MAE: (4.0, 3.7, 3.5, 3.3, 3.2)},
                OTHER,
            ),
            Row("random-ridge"),
            Row("random"),
        ),
        against="tailored",
    ),
    Table(
        "TailoredBench's parts on GSM8K, at 30 items",
        "As in the first table; what the paper reports of GSM8K is in its Tables 7-10 and 13.",
        "gsm8k_150.npz",
        (30,),
        GIVEN,
        30,
        (TAU, MAE),
        (
            Row("tailored", "as published", {TAU: (0.863,), MAE: (3.3,)}),
            Row("tailored(calibrate=false)", "no calibration", {TAU: (0.862,), MAE: (3.6,)}),
            Row("tailored(natives=dynamic)", "dynamic n̄", {TAU: (0.875,), MAE: (3.1,)}),
            Row(
                "tailored(natives=all)",
                "all sources are native",
                {TAU: (0.843,), MAE: (3.5,)},
                OTHER,
            ),
            Row(
                "tailored(anchored=false)",
                "free G, 30 calls",
                {TAU: (0.837,), MAE: (3.7,)},
                OTHER,
            ),
            Row(
                "tailored(metric=cosine)",
                "cosine distance",
                {TAU: (0.827,), MAE: (4.0,)},
            ),
            Row(
                "tailored(metric=correlation)",
                "correlation distance",
                {TAU: (0.828,), MAE: (4.1,)},
            ),
            Row("tailored(probe=5)", "a probe set of 5", {TAU: (0.865,), MAE: (3.5,)}),
            Row("tailored(probe=15)", "a probe set of 15", {TAU: (0.854,), MAE: (3.4,)}),
            Row("tailored(probe=20)", "a probe set of 20", {TAU: (0.862,), MAE: (3.4,)}),
            Row("tailored(probe=25)", "a probe set of 25", {TAU: (0.851,), MAE: (3.6,)}),
        ),
        against="tailored",
    ),
    Table(
        "TailoredBench's probe items free to move, on GSM8K (Table 10)",
        "As in the first table, 10 seeds. The paper prints means of five benchmarks. Free to move, "
        "the probe items cost 10 calls and the medoids the rest: 30 medoids cost 40 calls.",
        "gsm8k_150.npz",
        (30, 40),
        GIVEN,
        10,
        (TAU, MAE),
        (
            Row("tailored", "", {TAU: (0.740, NONE), MAE: (2.7, NONE)}, OF_FIVE),
            Row(
                "tailored(anchored=false)",
                "",
                {TAU: (0.719, 0.745), MAE: (3.1, 2.7)},
                OF_FIVE,
            ),
        ),
    ),
    Study("TailoredBench's strong targets on GSM8K", ("gsm8k_150.npz",), strong_targets),
    Differences(
        "TailoredBench's parts on GSM8K, over models",
        "gsm8k_150.npz",
        tuple(
            (other, "tailored")
            for other in (
                *("tailored-as-printed", "tailored(calibrate=false)", "tailored(natives=dynamic)"),
                *("tailored(metric=cosine)", "tailored(metric=correlation)"),
                *(f"tailored(probe={size})" for size in (5, 15, 20, 25)),
            )
        ),
        (30,),
        GIVEN,
        30,
        (TAU, MAE),
    ),
    Table(
        "What could be better in TailoredBench, at 30 items",
        "Random halves again. None is the default.",
        "gsm8k_150.npz",
        (30,),
        HALVES,
        30,
        (TAU, MAE),
        (
            Row("tailored", "as published"),
            Row("tailored(ties=shared)", "medoids equally near share their items"),
            Row("tailored(restarts=5)", "the cheapest of 5 searches"),
            Row("tailored(ties=shared,restarts=5)", "both"),
            Row("tailored(natives=own)", "each target its own number of native sources"),
            Row("tailored(company=sources)", "sources stand in for the other targets"),
            Row("tailored(corrected=true)", "less what it errs on native sources"),
            Row("tailored(ties=shared,restarts=5,corrected=true)", "three of them"),
            Row("kmedoids-ridge", "static"),
        ),
        against="tailored",
    ),
    *(
        Table(
            f"TailoredBench by option probabilities on MMLU, {title}",
            "102 runs of 25 checkpoints on every sixth of 9,969 items, a quarter of the runs "
            "targets, 10 divisions. What is predicted is the share of right answers. "
            "`values=probabilities` compares items and models by the probability of the right "
            "option: in `medoids` that of the source models, in `answers` and `tailored` that of "
            "the target as well. "
            "*Difference* is to the same method by scores, paired over the divisions.",
            "llmub_mmlu.npz",
            (10, 30, 100),
            split,
            10,
            (TAU, MAE),
            BY_PROBABILITIES,
            every=EVERY,
        )
        for title, split in (
            ("checkpoints held out", "--split group"),
            ("runs divided at random", "--split random"),
        )
    ),
    Study(
        "TailoredBench where the score is a probability, on MMLU",
        ("llmub_mmlu.npz",),
        by_confidence,
    ),
    Study(
        "TailoredBench's native sources on GSM8K (Figures 1, 3 and 4)",
        ("gsm8k_150.npz",),
        native_sources("gsm8k_150.npz", GIVEN, "The paper's division"),
    ),
    Study(
        "TailoredBench without sources of the target's family",
        ("openllm2_math_musr.npz",),
        without_families,
    ),
    *(section for benchmark in BENCHMARKS for section in benchmark.sections),
    WITH_MORE,
)
PAPER = Paper("tailoredbench", "TailoredBench: printed figures and those of fewbench", SECTIONS)
