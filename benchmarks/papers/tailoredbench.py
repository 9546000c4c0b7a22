"""TailoredBench (Yuan et al. 2025): tables on GSM8K, and the figures that the paper prints."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd

from fewbench._types import FloatArray, IntArray
from fewbench.algorithms.clustering.distances import item_distances
from fewbench.algorithms.clustering.kmedoids import alternating_kmedoids, kmedoids
from fewbench.methods.confidence import confidence
from fewbench.study import SplitSettings, compare, make_split
from fewbench.study.metrics import kendall_tau
from papers.methods import paper_method
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
    shown,
    without_duplicates,
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
NATIVE_PARTS = ("spread", "nearness", "shares", "counts")


def of_native_sources(context: Context) -> str:
    """Figures 1, 3 and 4: what native sources are good for."""
    found = analyze(
        context.scores("gsm8k_150.npz"), budget=30, parts=NATIVE_PARTS, workers=context.workers
    )
    lines = [
        "The paper's division, 30 items, 5 seeds; in brackets, 90 % intervals. Distances are of "
        "items to their medoids, and between any two items as for a random item.\n",
        *(f"- {found.findings[part]}" for part in NATIVE_PARTS),
    ]
    for title, part in (
        ("fifths of the sources, the nearest first", found.nearness),
        ("share of the native sources", found.shares),
        ("number of nearest sources", found.counts),
    ):
        if part is None:
            raise ValueError(f"{title}: {found.absent}")
        lines += [
            f"\n| {title} | error (pp) | less that of {part.against} | Kendall tau | less |",
            "|---" * 5 + "|",
        ]
        for step, row in part.steps.iterrows():
            cells = [
                cell
                for metric, scale in ((MAE, 100), (TAU, 1))
                for cell in (
                    shown(scale * row[metric], metric),
                    "{} [{}, {}]".format(
                        *(
                            shown(scale * row[f"{metric}_gap{end}"], metric, "+")
                            for end in ("", "_low", "_high")
                        )
                    ),
                )
            ]
            lines.append(f"| {step} | {' | '.join(cells)} |")
    return "\n".join(lines)


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

FEW = (20, 25, 30, 35, 40)
SEEDS = 30


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
        printed = ANCHOR_POINTS[metric]
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
ANCHOR_POINTS = {TAU: (0.786, 0.791, 0.796, 0.800, 0.799), MAE: (8.7, 7.9, 7.3, 7.1, 7.1)}
TABLE_6 = {
    "ARC Challenge": {
        "tailored": ((0.711, 0.737, 0.756, 0.766, 0.773), (3.1, 2.9, 2.8, 2.7, 2.7)),
        "anchor-points-correlation": (
            (0.662, 0.663, 0.676, 0.713, 0.714),
            (6.4, 5.8, 5.3, 4.8, 4.3),
        ),
        "gp-irt-random": ((0.589, 0.620, 0.662, 0.681, 0.695), (4.6, 4.6, 3.6, 3.6, 2.9)),
        "random": ((0.626, 0.659, 0.676, 0.694, 0.712), (7.8, 6.5, 6.7, 6.2, 5.7)),
    },
    "HellaSwag": {
        "tailored": ((0.900, 0.909, 0.913, 0.914, 0.918), (2.0, 1.8, 1.8, 1.7, 1.7)),
        "anchor-points-correlation": (
            (0.860, 0.880, 0.877, 0.897, 0.898),
            (6.0, 6.1, 6.7, 5.9, 5.7),
        ),
        "gp-irt-random": ((0.724, 0.776, 0.810, 0.827, 0.849), (6.2, 5.3, 4.3, 3.8, 3.2)),
        "random": ((0.811, 0.836, 0.850, 0.863, 0.871), (8.3, 7.7, 6.6, 6.0, 5.8)),
    },
    "Winogrande": {
        "tailored": ((0.565, 0.568, 0.604, 0.608, 0.618), (2.8, 2.6, 2.4, 2.3, 2.2)),
        "anchor-points-correlation": (
            (0.472, 0.487, 0.514, 0.521, 0.518),
            (8.6, 8.5, 7.5, 8.7, 7.3),
        ),
        "gp-irt-random": ((0.263, 0.313, 0.353, 0.392, 0.419), (4.1, 3.8, 3.8, 3.6, 3.4)),
        "random": ((0.373, 0.408, 0.446, 0.470, 0.492), (7.8, 6.7, 6.2, 5.5, 5.2)),
    },
}
"""Benchmark and method: Kendall's tau and error at 20 to 40 items."""


BY_CONFIDENCE = {
    "tailored": "tailored(values=probabilities)",
    "anchor-points-correlation": "medoids(metric=correlation,values=probabilities)+mean",
}
"""What the paper compares by the probabilities of the right options."""


def table_6(benchmark: str, file: str) -> Table:
    """Return the paper's Table 6 on a benchmark, with the models that it names."""
    by_probabilities = benchmark != "Winogrande"
    rows = []
    for method, (tau, error) in TABLE_6[benchmark].items():
        run = BY_CONFIDENCE.get(method, method) if by_probabilities else method
        rows.append(Row(run, "" if run == method else method, {TAU: tau, MAE: error}))
    rows.append(Row("kmedoids-ridge", "static, not in the paper"))
    about = (
        "The authors' arrays of options' probabilities, their source models and targets, 30 seeds. "
        "The full score is the share of right answers, as in the authors' program."
        if by_probabilities
        else "The models that the paper's Table 16 names, as the Open LLM Leaderboard has them; 30 "
        "random halves."
    )
    return Table(
        f"TailoredBench's Table 6: {benchmark}",
        about,
        f"{file}.parquet",
        FEW,
        GIVEN if by_probabilities else HALVES,
        30,
        (TAU, MAE),
        tuple(rows),
    )


MORE = (50, 100, 150)
TABLE_5 = {
    "tailored": ((0.923, 0.934, 0.943), (1.6, 1.4, 1.2)),
    "anchor-points-correlation": ((0.915, 0.931, 0.940), (4.6, 4.0, 4.0)),
    "gp-irt-random": ((0.869, 0.915, 0.936), (2.6, 1.5, 1.2)),
    "random": ((0.887, 0.920, 0.935), (5.3, 3.8, 3.0)),
}


SECTIONS = (
    Table(
        "TailoredBench on GSM8K, the paper's sources and targets",
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
                {TAU: (0.852, 0.858, 0.863, 0.869, 0.878), MAE: (3.5, 3.4, 3.3, 3.1, 2.9)},
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
                ANCHOR_POINTS,
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
                {TAU: (0.787, 0.807, 0.829, 0.842, 0.858), MAE: (5.5, 4.7, 4.1, 3.8, 3.4)},
            ),
            Row("gp-irt-anchor", "gp-IRT of its anchor items"),
            Row(
                "random",
                "",
                {TAU: (0.811, 0.828, 0.839, 0.847, 0.858), MAE: (6.2, 5.5, 5.2, 4.9, 4.4)},
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
        of_native_sources,
    ),
    Study(
        "TailoredBench without sources of the target's family",
        ("openllm2_math_musr.npz",),
        without_families,
    ),
    table_6("ARC Challenge", "tailored_arc"),
    table_6("HellaSwag", "tailored_hellaswag"),
    table_6("Winogrande", "tailored_winogrande"),
    Table(
        "TailoredBench's Table 5: HellaSwag with more items",
        "As in Table 6.",
        "tailored_hellaswag.parquet",
        MORE,
        GIVEN,
        30,
        (TAU, MAE),
        tuple(
            Row(BY_CONFIDENCE.get(method, method), "", {TAU: tau, MAE: error})
            for method, (tau, error) in TABLE_5.items()
        ),
        z=BY_CONFIDENCE["tailored"],
    ),
)
PAPER = Paper("tailoredbench", "TailoredBench: printed figures and those of fewbench", SECTIONS)
