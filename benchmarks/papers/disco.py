"""DISCO (Rubinstein et al. 2025): its factors on MMLU, number of source models, calibration."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from fewbench.evaluation.replay import replay
from fewbench.methods import find_method
from fewbench.scores import Scores
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.study import SplitSettings, compare, make_split
from fewbench.study.splits import Split
from papers.record import (
    MAE,
    SPEARMAN,
    Context,
    Paper,
    Row,
    Section,
    Study,
    Table,
    means,
    shown,
)

MMLU = "llmub_mmlu.npz"
REPEATS = 10
ITEMS = 100
PDS = "pds(models=100)"


def _factor(method: str, label: str, rank: float | None = None) -> Row:
    return Row(method, label, {} if rank is None else {SPEARMAN: (rank,)})


FACTORS = (
    _factor("disco-pds-rf", "PDS, 256 components, forest", 0.987),
    _factor(
        "pds(models=100,stratified=true)+signature+pca+forest", "as many items a task (b)", 0.978
    ),
    _factor(f"{PDS}+signature+forest", "no reduction (d)", 0.918),
    _factor(f"{PDS}+signature+pca(components=16)+forest", "16 components (d)"),
    _factor(f"{PDS}+signature+pca(components=32)+forest", "32 components (d)", 0.983),
    _factor(f"{PDS}+signature+pca(components=64)+forest", "64 components (d)", 0.987),
    _factor("disco-pds-knn", "nearest neighbor (e)", 0.971),
    _factor(f"{PDS}+signature+pca+mlp", "2-layer perceptron (e)", 0.959),
    _factor(f"{PDS}+signature+pca+mlp(layers=3)", "3-layer perceptron (e)", 0.962),
    _factor(f"{PDS}+signature+pca+linear", "least squares (e)", 0.888),
    _factor(f"{PDS}+signature+pca+ridge(alpha=10)", "ridge, penalty 10 (e)", 0.918),
    _factor(f"{PDS}+signature+pca+ridge", "ridge, penalty chosen by the sources"),
    _factor(f"{PDS}+signature+pca+lasso", "lasso (e)", 0.908),
    _factor(f"{PDS}+signature+pca+boosting", "gradient boosting (e)", 0.980),
    _factor("disco-jsd-rf", "JSD"),
    _factor("disco-jsd-ridge", "JSD, ridge"),
    _factor("random-signature-rf", "random items"),
    _factor("random+signature+ridge(alpha=1)", "random items, ridge"),
    _factor("random-ridge", "random items, right and wrong, ridge"),
)


UMAP = (
    FACTORS[0],
    _factor(f"{PDS}+signature+umap(components=16)+forest", "16 dimensions"),
    _factor(f"{PDS}+signature+umap(components=64)+forest", "64 dimensions", 0.982),
)


def _factors(title: str, split: str, about: str, rows: tuple[Row, ...] = FACTORS) -> Table:
    return Table(
        title,
        f"102 runs of 25 checkpoints, 9,969 questions with option probabilities; {about}; "
        f"{REPEATS} divisions, {ITEMS} items. The paper's figures (Table 2) are of other models: "
        "382 source models, divided by date. Components are at most as many as sources less 1. "
        "*Difference* is to `disco-pds-rf`, paired over the divisions.",
        MMLU,
        (ITEMS,),
        split,
        REPEATS,
        (SPEARMAN, MAE),
        rows,
        against="disco-pds-rf",
    )


# Number of source models (Table 2 c)

SOURCES = (3, 10, 30, 50)
RANKS = {3: 0.652, 10: 0.787, 30: 0.844, 100: 0.969, 300: 0.975, 382: 0.987}
"""Spearman correlation by number of source models, as the paper prints it."""
LEARNERS = (
    "disco-pds-rf",
    "disco-pds-knn",
    "disco-jsd-ridge",
    "random+signature+ridge(alpha=1)",
    "random-linear",
    "random-ridge",
    "random",
)


def by_sources(context: Context) -> str:
    """Table 2 c: parts of the source models, the same targets."""
    scores = context.scores(MMLU)
    printed = ", ".join(f"{rank:.3f} with {n}".replace("0.", ".", 1) for n, rank in RANKS.items())
    lines = [
        f"{ITEMS} items, {REPEATS} divisions. The paper's Spearman correlations of the default: "
        f"{printed}.",
    ]
    for title, split in (("checkpoints held out", "group"), ("a random division", "random")):
        outcome = compare(
            scores, LEARNERS, ITEMS, SplitSettings(split), REPEATS,
            sources=SOURCES, level=None, workers=context.workers, cache=context.cache,
        )  # fmt: skip
        sizes = outcome.repeats.groupby("split")["n_sources"].mean().sort_values()
        for metric, name in ((MAE, "error (pp)"), (SPEARMAN, "Spearman correlation")):
            lines += ["", f"| {name}, {title} | {' | '.join(f'{n:.0f}' for n in sizes)} |"]
            lines.append("|---" * (1 + len(sizes)) + "|")
            wide = outcome.repeats.pivot(index="repeat", columns=["method", "split"], values=metric)
            for method in LEARNERS:
                if method in wide:
                    mine = (100 if metric == MAE else 1) * wide[method].reindex(columns=sizes.index)
                    lines.append(f"| `{method}` | {' | '.join(means(mine, metric))} |")
    counts = ",".join(map(str, SOURCES))
    methods = ",".join(LEARNERS)
    return "\n".join(
        [*lines, "", "```", f"fewbench compare FOLDER/{MMLU} -m '{methods}' -n {ITEMS} "
         f"--split group --sources {counts} --repeats {REPEATS} --no-intervals", "```"]
    )  # fmt: skip


# Calibration (appendix E)

TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0)
TEMPERED = ("disco-pds-rf", "disco-jsd-rf", "disco-jsd-ridge", "random+signature+ridge(alpha=1)")
BINS = 15


def tempered(scores: Scores, temperature: float) -> Scores:
    """Return scores with probabilities raised to 1 / temperature.

    Above 1 models are less confident, below more; the most probable option stays the same.
    """
    assert scores.probabilities is not None
    array = np.stack(list(scores.probabilities.by_model()))
    for row in array:
        powers = row.astype(np.float64) ** (1 / temperature)
        row[:] = powers / powers.sum(axis=1, keepdims=True)
    return replace(scores, probabilities=OptionProbabilities(array))


def calibration(scores: Scores) -> pd.DataFrame:
    """Return each model's expected calibration error and mean confidence, in percent."""
    assert scores.probabilities is not None
    rows = []
    for p, right in zip(scores.probabilities.by_model(), scores.filled_cells[:], strict=True):
        confidence = p.max(axis=1).astype(np.float64)
        bin_of = np.minimum((BINS * confidence).astype(int), BINS - 1)
        gaps = np.bincount(bin_of, confidence - right, BINS)
        rows.append((100 * np.abs(gaps).sum() / len(right), 100 * confidence.mean()))
    return pd.DataFrame(rows, index=list(scores.model_ids), columns=["ECE", "confidence"])


def by_calibration(context: Context) -> str:
    """Appendix E: error against calibration, and the effect of a temperature."""
    scores = context.scores(MMLU)
    known = calibration(scores)
    lines = [
        f"{ITEMS} items, {REPEATS} divisions. Expected calibration error (ECE): {BINS} bins of the "
        f"highest option probability; it is {known['ECE'].min():.0f} to {known['ECE'].max():.0f} % "
        "here. Correlations are Pearson's over the runs, of a run's mean error as a target with "
        "its ECE and its mean confidence; in brackets, 90 % intervals by resampling checkpoints. "
        "The paper prints .49 and -.47 for `disco-pds-rf`.\n",
        "| error of a target with its | ECE | confidence |",
        "|---|---|---|",
    ]
    tables = {t: tempered(scores, t) for t in TEMPERATURES}
    whole: dict[float, dict[str, list[Said]]] = {}
    for title, kind in (("checkpoints held out", "group"), ("a random division", "random")):
        splits = [make_split(scores, SplitSettings(kind), 0, repeat) for repeat in range(REPEATS)]
        plain = _said(scores, scores, splits)
        for method, runs in plain.items():
            each = pd.concat([run.errors for run in runs])
            both = known.assign(error=each.groupby(level=0).mean()).dropna()
            said = [_correlation(both, scores, name) for name in ("ECE", "confidence")]
            lines.append(f"| `{method}`, {title} | {' | '.join(said)} |")
        if kind == "group":
            held_out, whole[1.0] = splits, plain
    alone = {1.0: whole[1.0]}
    for t in TEMPERATURES:
        if t != 1:
            whole[t] = _said(tables[t], tables[t], held_out)
            alone[t] = _said(scores, tables[t], held_out)
    lines += [
        "",
        "A temperature T (probabilities to the power 1/T) changes confidence, not the answers. "
        "*All*: of every model; items shared is the share of the chosen items that T = 1 chooses, "
        "too. *Targets*: of the targets alone, as if they were calibrated in another way than the "
        "source models. Errors in pp, checkpoints held out.",
        "",
        f"| T | | {' | '.join(f'{t:g}' for t in TEMPERATURES)} |",
        "|---" * (2 + len(TEMPERATURES)) + "|",
    ]
    for method in TEMPERED[:2]:
        lines.append(
            f"| `{method}` | items shared | "
            + " | ".join(
                f"{np.mean([len(a.items & b.items) / ITEMS for a, b in both]):.0%}"
                for both in (
                    zip(whole[t][method], whole[1.0][method], strict=True) for t in TEMPERATURES
                )
            )
            + " |"
        )
    for title, found in (("all", whole), ("targets", alone)):
        for method in TEMPERED:
            errors = {t: [100 * run.errors.mean() for run in found[t][method]] for t in found}
            mine = means(pd.DataFrame(errors)[list(TEMPERATURES)], MAE)
            lines.append(f"| `{method}` | {title} | {' | '.join(mine)} |")
    return "\n".join(lines)


class Said(NamedTuple):
    """The items that a method chose, and its error for each target."""

    items: frozenset[int]
    errors: pd.Series


def _said(sources: Scores, targets: Scores, splits: list[Split]) -> dict[str, list[Said]]:
    """Run the methods on sources and targets of two tables with the same models."""
    found: dict[str, list[Said]] = {}
    for repeat, split in enumerate(splits):
        known, own = sources.take(models=split.sources), targets.take(models=split.targets)
        for name in TEMPERED:
            run = replay(find_method(name), known, own, ITEMS, repeat)
            errors = pd.Series(np.abs(run.scores - own.full_scores()), list(own.model_ids))
            found.setdefault(name, []).append(Said(frozenset(run.items[0].tolist()), errors))
    return found


def _correlation(table: pd.DataFrame, scores: Scores, name: str) -> str:
    """Return the correlation of errors with a column, with its interval over checkpoints."""
    groups = [part for _, part in table.groupby(scores.models["family"].loc[table.index])]
    rng = np.random.default_rng(0)
    drawn = [
        pd.concat([groups[at] for at in rng.integers(0, len(groups), len(groups))])
        for _ in range(999)
    ]
    low, high = np.quantile([one["error"].corr(one[name]) for one in drawn], [0.05, 0.95])
    value = table["error"].corr(table[name])
    return "{} [{}, {}]".format(*(shown(x, SPEARMAN) for x in (value, low, high)))


# The leaderboard's benchmarks (Table 1)

BENCHMARKS = {"mmlu": "MMLU", "hellaswag": "HellaSwag", "winogrande": "Winogrande", "arc": "ARC"}
TABLE_1 = {
    "random": ("", (3.45, 2.85, 3.60, 2.61), (0.916, 0.839, 0.827, 0.898)),
    "gp-irt-random": ("", (2.79, 1.96, 1.64, 2.22), (0.922, 0.819, 0.928, 0.921)),
    "gp-irt-anchor": ("Anchor-IRT", (3.25, 2.19, 2.24, 4.55), (0.922, 0.830, 0.850, 0.708)),
    "medoids(metric=correlation)+gp-irt": (
        "Anchor-corr",
        (2.08, 1.27, 1.95, 2.18),
        (0.927, 0.937, 0.918, 0.948),
    ),
    "random-signature-knn": ("", (1.82, 1.49, 1.58, 2.30), (0.912, 0.899, 0.920, 0.905)),
    "random-signature-rf": ("", (1.81, 1.36, 1.29, 1.72), (0.933, 0.938, 0.926, 0.938)),
    "disco-pds-knn": ("", (1.31, 1.32, 1.19, 1.96), (0.972, 0.956, 0.951, 0.937)),
    "disco-pds-rf": ("", (1.07, 1.01, 1.00, 1.47), (0.987, 0.984, 0.967, 0.971)),
    "disco-jsd-knn": ("", (1.14, 1.50, 1.26, 2.11), (0.975, 0.944, 0.955, 0.939)),
    "disco-jsd-rf": ("", (1.30, 0.86, 1.09, 1.75), (0.987, 0.972, 0.973, 0.938)),
    "random-ridge": ("not in the paper", (), ()),
}
"""Method: its label, and error and correlation on each benchmark. metabench has other budgets."""


def table_1(at: int, file: str) -> Table:
    """Return the paper's Table 1 on one benchmark."""
    rows = [
        Row(method, label, {MAE: (error[at],), SPEARMAN: (rank[at],)} if error else {})
        for method, (label, error, rank) in TABLE_1.items()
    ]
    return Table(
        f"DISCO's Table 1: {BENCHMARKS[file]}",
        "A sample of 424 models of the Open LLM Leaderboard; the newest tenth by date of the run "
        "are the targets, 5 seeds. The paper has 424 other models, and its rows for DISCO are the "
        "best of 8 variants on the targets.",
        f"{file}.parquet",
        (100,),
        "--split chronological --targets 0.1",
        5,
        (MAE, SPEARMAN),
        tuple(rows),
    )


RUNS = "runs are targets, so near copies of them are source models"
CHECKPOINTS = "whole checkpoints are targets"
SECTIONS: tuple[Section, ...] = (
    *(table_1(at, file) for at, file in enumerate(BENCHMARKS)),
    _factors("DISCO's factors on MMLU, checkpoints held out", "--split group", CHECKPOINTS),
    _factors("DISCO's factors on MMLU, a random division", "--split random", RUNS),
    Study("DISCO by number of source models on MMLU", (MMLU,), by_sources),
    Study("DISCO and calibration on MMLU", (MMLU,), by_calibration),
    # The last ones, because they need the extra `umap`.
    _factors("UMAP in DISCO, checkpoints held out", "--split group", CHECKPOINTS, UMAP),
    _factors("UMAP in DISCO, a random division", "--split random", RUNS, UMAP),
)
PAPER = Paper("disco", "DISCO: printed figures and those of fewbench", SECTIONS)
