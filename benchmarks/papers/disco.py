"""DISCO (Rubinstein et al. 2025): its factors on MMLU, number of source models, calibration."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fewbench.errors import MissingExtraError
from fewbench.executors import Lost, open_pool
from fewbench.scores import Scores
from fewbench.scores.probabilities import OptionProbabilities
from fewbench.study import SplitSettings, make_split
from fewbench.study.metrics import point_metrics
from fewbench.study.splits import Kind
from fewbench.uncertainty.replay import replay
from papers.disco_estimates import ESTIMATES, authors_estimates
from papers.disco_theory import EUCLIDEAN, THEORY
from papers.methods import find
from papers.record import (
    MAE,
    NONE,
    PERCENT,
    SPEARMAN,
    Context,
    Differences,
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
SPLITS: dict[Kind, str] = {"group": "checkpoints held out", "random": "a random division"}
PDS = "pds(models=100)+signature"

Factor = tuple[str, str, float | None]
FACTORS: tuple[Factor, ...] = (
    ("disco-pds-rf", "the default: PDS, 256 components, forest", 0.987),
    ("pds(models=100,stratified=true)+signature+pca+forest", "as many items a task (b)", 0.978),
    (f"{PDS}+forest", "no reduction (d)", 0.918),
    (f"{PDS}+pca(components=8)+forest", "8 components (d)", None),
    (f"{PDS}+pca(components=32)+forest", "32 components (d)", 0.983),
    (f"{PDS}+pca(components=64)+forest", "64 components (d)", 0.987),
    ("disco-pds-knn", "nearest neighbor (e)", 0.971),
    (f"{PDS}+pca+mlp", "2-layer perceptron (e)", 0.959),
    (f"{PDS}+pca+mlp(layers=3)", "3-layer perceptron (e)", 0.962),
    (f"{PDS}+pca+linear", "least squares (e)", 0.888),
    (f"{PDS}+pca+ridge(alpha=10)", "ridge, penalty 10 (e)", 0.918),
    (f"{PDS}+pca+ridge", "ridge, penalty chosen by the sources", None),
    (f"{PDS}+pca+lasso", "lasso (e)", 0.908),
    (f"{PDS}+pca+boosting", "gradient boosting (e)", 0.980),
    ("disco-jsd-rf", "JSD", None),
    ("disco-jsd-ridge", "JSD, ridge", None),
    ("random-signature-rf", "random items", None),
    ("random+signature+ridge(alpha=1)", "random items, ridge", None),
    ("random+signature+pca+mlp", "random items, 2-layer perceptron", None),
    ("random+signature+pca+mlp(layers=3)", "random items, 3-layer perceptron", None),
    ("random-ridge", "random items, right and wrong, ridge", None),
    ("random", "random items, share of right answers", None),
)
"""Method, what it is, and the Spearman correlation that the paper prints (Table 2)."""
BY_UMAP: tuple[Factor, ...] = (
    (f"{PDS}+umap(components=8)+forest", "UMAP, 8 dimensions (d)", None),
    (f"{PDS}+umap(components=64)+forest", "UMAP, 64 dimensions (d)", 0.982),
)


class Said(NamedTuple):
    """A repeat of a method: the items that it chose, and its estimates."""

    items: frozenset[int]
    estimate: pd.Series
    truth: pd.Series

    @property
    def errors(self) -> pd.Series:
        """The absolute error of each target."""
        return (self.estimate - self.truth).abs()

    def metric(self, name: str) -> float:
        """Return the mean absolute error in pp, or the Spearman correlation."""
        value = point_metrics(self.truth.to_numpy(), self.estimate.to_numpy(), np.empty(0))[name]
        return 100 * value if name in PERCENT else value


class Job(NamedTuple):
    """A method on a repeat of a split."""

    method: str
    split: SplitSettings
    repeat: int
    items: int


def said(tables: tuple[Scores, Scores], job: Job) -> Said:
    """Run a method on the sources of a table and the targets of another with the same models."""
    split = make_split(tables[0], job.split, 0, job.repeat)
    sources, targets = tables[0].take(models=split.sources), tables[1].take(models=split.targets)
    run = replay(find(job.method), sources, targets, job.items, job.repeat)
    names = list(targets.model_ids)
    truth = pd.Series(targets.full_scores(), names)
    return Said(frozenset(run.items[0].tolist()), pd.Series(run.scores, names), truth)


def run(
    sources: Scores,
    targets: Scores,
    methods: Sequence[str],
    split: SplitSettings,
    workers: int,
    items: int = ITEMS,
) -> dict[str, list[Said]]:
    """Run methods on all repeats of a split, without the scores of tasks."""
    jobs = [Job(method, split, repeat, items) for repeat in range(REPEATS) for method in methods]
    found: dict[str, dict[int, Said]] = {method: {} for method in methods}
    with open_pool(None, workers) as pool:
        for at, one in pool.each(said, (sources, targets), jobs):
            if isinstance(one, Lost):
                raise RuntimeError(one.reason)
            found[jobs[at].method][jobs[at].repeat] = one
    return {name: [runs[repeat] for repeat in range(REPEATS)] for name, runs in found.items()}


def by_umap(context: Context) -> str:
    """Table 2 d: reduction by UMAP.

    Raises MissingExtraError without umap-learn, so that the record's section stays as it is.
    """
    if find_spec("umap") is None:
        raise MissingExtraError("UMAP needs umap-learn", hint="pip install umap-learn")
    return by_factors(context, BY_UMAP)


def by_factors(context: Context, factors: tuple[Factor, ...] = FACTORS) -> str:
    """Table 2: reduction, stratification, predictor."""
    scores = context.scores(MMLU)
    methods = [method for method, _, _ in factors]
    ran = {
        kind: run(scores, scores, methods, SplitSettings(kind), context.workers) for kind in SPLITS
    }
    lines = [
        f"{scores.n_models} runs of {scores.models['family'].nunique()} checkpoints, "
        f"{scores.n_items:,} questions with option probabilities, {ITEMS} items, "
        f"{REPEATS} divisions: whole checkpoints are targets, or runs, so that near copies of them "
        "are source models. The paper's figures (Table 2) are of other models: 382 source models, "
        "divided by date. Components are at most as many as source models less 1, about 74. A "
        "letter is the part of Table 2.\n",
        "| | | Spearman, paper | held out | random division | error (pp), held out | random "
        "division |",
        "|---|---|---|---|---|---|---|",
    ]
    for method, label, printed in factors:
        cells = ["–" if printed is None else shown(printed, SPEARMAN)]
        for metric in (SPEARMAN, MAE):
            mine = {kind: [one.metric(metric) for one in ran[kind][method]] for kind in SPLITS}
            cells += means(pd.DataFrame(mine, dtype=float), metric)
        lines.append(f"| `{method}` | {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


# Number of items (Figure 5)

BY_ITEMS = (10, 30, 50, 100, 200, 500)
METHODS = (
    *("disco-pds-rf", "disco-pds-knn", "disco-jsd-ridge", "random+signature+ridge(alpha=1)"),
    *("random-signature-knn", "kmedoids-ridge", "anchor-points", "random-ridge", "random"),
)


def by_items(context: Context) -> str:
    """Figure 5: error and rank correlation by the number of items."""
    scores = context.scores(MMLU)
    lines = [
        f"{REPEATS} divisions. The paper's figure, of other models divided by date, has no numbers "
        "but those of Table 1, at 100 items."
    ]
    for kind, title in SPLITS.items():
        ran = {
            items: run(scores, scores, METHODS, SplitSettings(kind), context.workers, items)
            for items in BY_ITEMS
        }
        for metric, name in ((MAE, "error (pp)"), (SPEARMAN, "Spearman correlation")):
            lines += ["", *_by_column(f"{name}, {title}", METHODS, ran, metric)]
    return "\n".join(lines)


def _by_column(
    heading: str, methods: Sequence[str], ran: Mapping[Any, dict[str, list[Said]]], metric: str
) -> Iterator[str]:
    """Write a table of methods, with a column for each run of all of them."""
    yield f"| {heading} | {' | '.join(map(str, ran))} |"
    yield "|---" * (1 + len(ran)) + "|"
    for method in methods:
        values = {at: [one.metric(metric) for one in runs[method]] for at, runs in ran.items()}
        yield f"| `{method}` | {' | '.join(means(pd.DataFrame(values), metric))} |"


# Division of the models (Tables 2 a and 8 to 10)

DIVISIONS: dict[str, tuple[SplitSettings, tuple[float, float]]] = {
    "every tenth model": (SplitSettings("every", 0.1), (0.921, 0.986)),
    "every tenth model, both sides drawn with replacement": (
        SplitSettings("every", 0.1, resample=True),
        (NONE, NONE),
    ),
    "the strongest tenth": (SplitSettings("performance", 0.1), (0.898, 0.981)),
    "the strongest 30%, sources from the weakest half": (
        SplitSettings("performance", 0.3, 0.2),
        (0.874, 0.892),
    ),
}
"""Targets (Table 9), and Spearman correlations of random items and DISCO (Table 10)."""
DIVIDED = ("random", "disco-pds-rf", "disco-pds-knn", "random-ridge")


def by_division(context: Context) -> str:
    """Tables 2 a, 8 and 10: the gain over random items, by how the models are divided."""
    scores = context.scores(MMLU)
    lines = [
        f"{ITEMS} items, {REPEATS} seeds. Runs of a checkpoint may be on both sides of a division. "
        "The paper's chronological division needs dates, which this table has not. The paper draws "
        "source models and targets of that division with replacement (D.2), which changes the "
        "correlation of `disco-pds-rf` from .987 to .980 and its error from 1.07 to 1.25 pp.\n",
        "| targets | | random | paper | `disco-pds-rf` | paper | its gain | paper "
        "| `disco-pds-knn` | `random-ridge` |",
        "|---" * 10 + "|",
    ]
    for title, (split, printed) in DIVISIONS.items():
        ran = run(scores, scores, DIVIDED, split, context.workers)
        for metric, name in ((SPEARMAN, "Spearman"), (MAE, "error (pp)")):
            values = pd.DataFrame({x: [one.metric(metric) for one in ran[x]] for x in DIVIDED})
            direct, forest, neighbor, ridge = means(values, metric)
            gain = values[["disco-pds-rf"]].sub(values["random"], axis=0)
            figures = (*printed, printed[1] - printed[0]) if metric == SPEARMAN else (NONE,) * 3
            said = [shown(x, SPEARMAN, "+" if at == 2 else "") for at, x in enumerate(figures)]
            own = (direct, forest, next(means(gain, metric, "+")))
            cells = [cell for pair in zip(own, said, strict=True) for cell in pair]
            lines.append(f"| {title} | {name} | {' | '.join([*cells, neighbor, ridge])} |")
    return "\n".join(lines)


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
    printed = ", ".join(f"{shown(rank, SPEARMAN)} with {n}" for n, rank in RANKS.items())
    lines = [
        f"{ITEMS} items, {REPEATS} divisions. The paper's Spearman correlations of the default: "
        f"{printed}."
    ]
    for kind, title in SPLITS.items():
        whole = f"{75 if kind == 'group' else 76}"
        ran = {
            "all, about " + whole if size is None else str(size): run(
                scores, scores, LEARNERS, SplitSettings(kind, sources=size), context.workers
            )
            for size in (*SOURCES, None)
        }
        for metric, name in ((MAE, "error (pp)"), (SPEARMAN, "Spearman correlation")):
            lines += ["", *_by_column(f"{name}, {title}", LEARNERS, ran, metric)]
    counts = ",".join(map(str, SOURCES))
    command = f"fewbench compare FOLDER/{MMLU} -m '{','.join(LEARNERS)}' -n {ITEMS} --split group "
    command += f"--sources {counts} --repeats {REPEATS} --no-intervals"
    return "\n".join([*lines, "", "Other seeds of the methods, the same divisions:", "", "```",
                      command, "```"])  # fmt: skip


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
    tables = {t: tempered(scores, t) for t in TEMPERATURES if t != 1}
    whole: dict[float, dict[str, list[Said]]] = {}
    for kind, title in SPLITS.items():
        plain = run(scores, scores, TEMPERED, SplitSettings(kind), context.workers)
        for method, runs in plain.items():
            each = pd.concat([one.errors for one in runs])
            both = known.assign(error=each.groupby(level=0).mean()).dropna()
            found = [_correlation(both, scores, name) for name in ("ECE", "confidence")]
            lines.append(f"| `{method}`, {title} | {' | '.join(found)} |")
        if kind == "group":
            whole[1.0] = plain
    held_out = SplitSettings("group")
    alone = {1.0: whole[1.0]}
    for t in TEMPERATURES:
        if t != 1:
            whole[t] = run(tables[t], tables[t], TEMPERED, held_out, context.workers)
            alone[t] = run(scores, tables[t], TEMPERED, held_out, context.workers)
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
    for title, of in (("all", whole), ("targets", alone)):
        for method in TEMPERED:
            errors = {t: [one.metric(MAE) for one in of[t][method]] for t in of}
            mine = means(pd.DataFrame(errors)[list(TEMPERATURES)], MAE)
            lines.append(f"| `{method}` | {title} | {' | '.join(mine)} |")
    return "\n".join(lines)


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
    "gp-irt-anchor-corr": (
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
"""Method: its label, and error and correlation on each benchmark."""


def table_1(at: int, file: str) -> Table:
    """Return the paper's Table 1 on one benchmark."""
    rows = [
        Row(method, label, {MAE: (error[at],), SPEARMAN: (rank[at],)} if error else {})
        for method, (label, error, rank) in TABLE_1.items()
    ]
    return Table(
        f"DISCO's Table 1: {BENCHMARKS[file]}",
        "A sample of 424 models of the Open LLM Leaderboard; the newest tenth by date of the run "
        "are the targets, 5 seeds. The paper has 424 other models.",
        f"{file}.parquet",
        (100,),
        "--split chronological --targets 0.1",
        5,
        (MAE, SPEARMAN),
        tuple(rows),
    )


METABENCH = {  # items, error, correlation
    "mmlu": (150, 2.08, 0.904),
    "hellaswag": (450, 0.80, 0.974),
    "winogrande": (200, 1.23, 0.947),
    "arc": (150, 1.14, 0.971),
}


def metabench(file: str) -> Table:
    """Return metabench's row of Table 1 on one benchmark, beside DISCO at as many items."""
    items, error, rank = METABENCH[file]
    return Table(
        f"DISCO's Table 1, metabench: {BENCHMARKS[file]}",
        "As in Table 1, with metabench's number of items.",
        f"{file}.parquet",
        (items,),
        "--split chronological --targets 0.1",
        5,
        (MAE, SPEARMAN),
        (Row("metabench", "", {MAE: (error,), SPEARMAN: (rank,)}), Row("disco-pds-rf")),
    )


TABLE_8 = {
    "random": ((2.85,), (0.933,)),
    "gp-irt-random": ((2.42,), (0.936,)),
    "gp-irt-anchor-corr": ((1.93,), (0.929,)),
    "gp-irt-anchor": ((3.13,), (0.902,)),
    "disco-pds-knn": ((1.23,), (0.970,)),
    "disco-pds-rf": ((1.25,), (0.980,)),
}
"""Method, and error and correlation (Appendix D.2)."""
LEADERBOARD = (
    Table(
        "DISCO's Table 8: MMLU, bootstrapped divisions by date",
        "As in Table 1, with source models and targets drawn with replacement from the older and "
        "the newer models; 5 draws.",
        "mmlu.parquet",
        (100,),
        "--split chronological --targets 0.1 --resample",
        5,
        (MAE, SPEARMAN),
        tuple(Row(run, "", {MAE: error, SPEARMAN: rank}) for run, (error, rank) in TABLE_8.items()),
    ),
    Table(
        "DISCO's Figure 5: MMLU, by number of items",
        "As in Table 1. The paper prints a figure without numbers.",
        "mmlu.parquet",
        (10, 20, 50, 100, 200, 500),
        "--split chronological --targets 0.1",
        5,
        (MAE, SPEARMAN),
        tuple(Row(run) for run in ("random", "gp-irt-random", "disco-pds-knn", "disco-pds-rf")),
    ),
)


SECTIONS: tuple[Section, ...] = (
    *(table_1(at, file) for at, file in enumerate(BENCHMARKS)),
    *map(metabench, BENCHMARKS),
    *LEADERBOARD,
    Study(
        "DISCO's Table 1 by the authors' estimates",
        (ESTIMATES,),
        lambda at: authors_estimates(at, TABLE_1),
    ),
    Study("DISCO's factors on MMLU", (MMLU,), by_factors),
    Study("DISCO's factors on MMLU, UMAP", (MMLU,), by_umap),
    Study("DISCO by number of items on MMLU (Figure 5)", (MMLU,), by_items),
    Differences(
        "DISCO and others on MMLU, over models",
        MMLU,
        (
            ("disco-jsd-ridge", "random+signature+ridge(alpha=1)"),
            ("random+signature+ridge(alpha=1)", "random-ridge"),
            ("disco-jsd-ridge", "random-ridge"),
            ("disco-pds-rf", "random-ridge"),
            ("disco-pds-rf", "random"),
            ("disco-jsd-ridge", "disco-pds-rf"),
            ("disco-pds-knn", "disco-pds-rf"),
        ),
        (10, 100, 500),
        "--split group",
        REPEATS,
        (MAE, SPEARMAN),
        seed_of=int,
    ),
    Differences(
        "DISCO's parts on MMLU, over models",
        MMLU,
        (
            ("disco-pds-rf", "pds(models=100,stratified=true)+signature+pca+forest"),
            *(
                ("disco-pds-rf", f"{PDS}+{rest}")
                for rest in (
                    *("forest", "pca(components=8)+forest", "pca(components=32)+forest"),
                    *("pca+boosting", "pca+mlp", "pca+mlp(layers=3)", "pca+ridge(alpha=10)"),
                    *("pca+lasso", "pca+knn", "pca+linear"),
                )
            ),
        ),
        (ITEMS,),
        "--split group",
        REPEATS,
        (MAE, SPEARMAN),
        seed_of=int,
    ),
    *(
        Differences(
            f"DISCO and others on MMLU, {title}, over models",
            MMLU,
            pairs,
            budgets,
            split,
            REPEATS,
            (MAE, SPEARMAN),
            seed_of=int,
        )
        for title, pairs, budgets, split in (
            (
                "a random division",
                (("disco-pds-knn", "disco-pds-rf"),),
                (10, 100),
                "--split random",
            ),
            (
                "checkpoints held out, gp-IRT",
                (("disco-pds-rf", "gp-irt-anchor-corr"), ("disco-pds-rf", EUCLIDEAN)),
                (ITEMS,),
                "--split group",
            ),
            (
                "every tenth model",
                tuple(
                    ("disco-pds-rf", other) for other in ("random", "gp-irt-anchor-corr", EUCLIDEAN)
                ),
                (ITEMS,),
                "--split every --targets 0.1",
            ),
            *(
                (title, (("disco-pds-rf", "random"),), (ITEMS,), split)
                for title, split in (
                    ("the strongest tenth", "--split performance --targets 0.1"),
                    ("the strongest 30%", "--split performance --targets 0.3 --gap"),
                )
            ),
        )
    ),
    Study("DISCO by division of the models on MMLU", (MMLU,), by_division),
    Study("DISCO by number of source models on MMLU", (MMLU,), by_sources),
    Study("DISCO and calibration on MMLU", (MMLU,), by_calibration),
    *THEORY,
)
PAPER = Paper("disco", "DISCO: printed figures and those of fewbench", SECTIONS)
