"""Two-stage collaborative filtering: tables on leaderboards, and what the paper prints."""

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fewbench._threads import one_thread
from fewbench._types import FloatArray
from fewbench.algorithms.sampling import LEAST_OF_TASK, task_sizes
from fewbench.methods.needs import item_texts
from fewbench.scores import Scores
from fewbench.study import make_split
from fewbench.uncertainty.replay import replay
from papers.methods import find
from papers.methods.semantic import tfidf_embeddings
from papers.record import (
    HALVES,
    MAE,
    NONE,
    Context,
    Differences,
    Paper,
    Row,
    Study,
    Table,
    settings,
    without_duplicates,
)

RATIOS = ("10%", "20%", "30%", "40%", "50%")
METRICS = ("task_mae", "task_weighted_mae", "task_rank_mae", "task_weighted_rank_mae", MAE)
ITS_OWN = "paper, its table"
TOP, NDCG = "task_top10_recall", "task_ndcg"
ROWS = (
    Row(
        "collaborative",
        "",
        {
            "task_mae": (2.88, *[NONE] * 4),
            "task_weighted_mae": (1.77, *[NONE] * 4),
            "task_rank_mae": (25.79, *[NONE] * 4),
            "task_weighted_rank_mae": (15.72, *[NONE] * 4),
            TOP: (58.39, 61.61, 69.03, 73.06, 74.84),
            NDCG: (0.9983, 0.9984, 0.9987, 0.9989, 0.9992),
        },
        ITS_OWN,
    ),
    Row("collaborative-no-transport", "the ablation"),
    Row("collaborative-low-rank", "low-rank completion as stage 2"),
    Row(
        "ucbe-lrf(share=1)",
        "UCBE-LRF, rank 1",
        {
            "task_mae": (2.53, *[NONE] * 4),
            "task_weighted_mae": (1.77, *[NONE] * 4),
            "task_rank_mae": (20.68, *[NONE] * 4),
            "task_weighted_rank_mae": (13.73, *[NONE] * 4),
        },
        ITS_OWN,
    ),
    Row("ucbe-lrf(share=1,rank=3)", "UCBE-LRF, rank 3"),
    Row("stratified(minimum=20)+mean", "random sampling"),
    Row("clusters(minimum=20)+mean", "clustering"),
    Row(
        "gp-irt-anchor",
        "tinyBenchmarks",
        {
            TOP: (59.42, 61.35, 64.71, 68.45, 73.45),
            NDCG: (0.9979, 0.9981, 0.9983, 0.9986, 0.9989),
        },
        ITS_OWN,
    ),
    Row("p-irt", "tinyBenchmarks without gp"),
    Row("stratified(minimum=20)+gp-irt", "gp-IRT of random items of each task"),
    Row(
        "sort-and-search",
        "Sort & Search",
        {
            TOP: (45.48, 53.23, 65.32, 69.52, 71.61),
            NDCG: (0.9959, 0.9967, 0.9985, 0.9987, 0.9991),
        },
        ITS_OWN,
    ),
    Row("random-low-rank", "low-rank completion of random items"),
    Row("random-ridge", "ridge on random items"),
)
NEAREST = 3
OTHERS = (
    *("collaborative(similar_sources=5)", "collaborative(similar_sources=20)"),
    *("collaborative(alpha=0.25)", "collaborative(alpha=0.5)"),
    *("collaborative(rounds=2)", "collaborative(rounds=10)"),
    "collaborative(similar_tasks=0.8)",
    *("collaborative(low_importance=1.1)", "collaborative(low_importance=3.0)"),
    *("collaborative(least_similarity=0.6)", "collaborative(least_similarity=0.95)"),
    *("collaborative(quantile=0.25)", "collaborative(quantile=0.75)"),
)
"""Settings of Figure 9, below and above the defaults."""


def alike_across_tasks(context: Context) -> str:
    """Two models' correlation on a task's items, against that on all items of other tasks."""
    lines = ["| table | models | tasks | correlation | least | most |", "|---" * 6 + "|"]
    for file in ("openllm2_math_musr.npz", "helm_math.npz", "llmub_mmlu.npz"):
        scores = without_duplicates(context.scores(file))
        found = likeness_by_task(scores)
        figures = " | ".join(f"{x:.2f}" for x in (found.mean(), found.min(), found.max()))
        lines.append(f"| {file} | {scores.n_models} | {len(found)} | {figures} |")
    about = (
        "For each pair of models, Pearson's correlation of their answers to a task's items, and of "
        "their answers to all other items. The table has the correlation of the two over all "
        "pairs, for each task: mean over the tasks, least and most. The paper shows one task of "
        "MMLU, with a clear linear relation, without a number. llmub_mmlu has 102 runs of 25 "
        "checkpoints: runs of a checkpoint are alike on every task.\n"
    )
    return "\n".join([about, *lines])


def alike(values: FloatArray) -> FloatArray:
    """Return the models' correlations, NaN for a model with equal scores on all items."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.corrcoef(values))


def likeness_by_task(scores: Scores) -> FloatArray:
    """Return the correlation over pairs of models, of each task; shape (tasks,)."""
    pairs = np.triu_indices(scores.n_models, 1)
    found = []
    for task in range(len(scores.tasks)):
        own = scores.task_of == task
        here, there = (alike(scores.filled[:, part])[pairs] for part in (own, ~own))
        known = np.isfinite(here) & np.isfinite(there)  # a model may have one answer to all
        found.append(np.corrcoef(here[known], there[known])[0, 1])
    return np.array(found)


def texts_and_scores(context: Context) -> str:
    """The distance of an item to its nearest texts, against that of their scores.

    The file is a table of MMLU whose items have the column `text`.
    """
    scores = context.scores("mmlu_text.parquet")
    found = text_correlations(scores, tfidf_embeddings(item_texts(scores)))
    figures = " | ".join(f"{x:.2f}" for x in (found.mean(), found.min(), found.max()))
    return (
        f"Each item and the {NEAREST} items of its task with the nearest texts (TF-IDF; the paper "
        "has Sentence-BERT): Spearman's correlation of the distance of the texts with the distance "
        "of the source models' scores. The paper shows one task, without any relation.\n\n"
        f"| tasks | correlation | least | most |\n|---|---|---|---|\n| {len(found)} | {figures} |"
    )


def text_correlations(scores: Scores, points: FloatArray) -> FloatArray:
    """Return the correlation of distances over nearest pairs, of each task; shape (tasks,)."""
    from scipy.stats import spearmanr

    found = []
    for task in range(len(scores.tasks)):
        items = np.flatnonzero(scores.task_of == task)
        of_texts, of_scores = (
            np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0.0))
            for rows in (points[items], scores.filled[:, items].T)
            for squares in [(rows**2).sum(axis=1)]
        )
        np.fill_diagonal(of_texts, np.inf)
        near = np.argsort(of_texts, axis=1, kind="stable")[:, :NEAREST]
        row = np.arange(len(items))[:, None]
        found.append(spearmanr(of_texts[row, near].ravel(), of_scores[row, near].ravel())[0])
    return np.array(found)


MMLU = "llmub_mmlu.npz"
TIMES: Mapping[str, tuple[str, float]] = {
    "clustering": ("27.0", 27.0),
    "random-stratified": ("0.0023", 0.0023),
    "sort-and-search": ("6.07", 6.07),
    "gp-irt-anchor": ("30.2", 30.2),
    "collaborative": ("25.2", 25.2),
    "collaborative-low-rank": ("–", NONE),
    "ucbe-lrf(share=1)": ("at least 5,400", 5400.0),
}
"""Methods, and the paper's total seconds (Tables 3 and 5): without tinyBenchmarks' deployment."""


def times(context: Context) -> str:
    """Table 3: the time of each method for one target, with all that it learns from the sources."""
    scores = context.scores(MMLU)
    split = make_split(scores, settings("--split random"), 0, 0)
    sources, target = scores.take(models=split.sources), scores.take(models=split.targets[:1])
    sizes = np.bincount(scores.task_of)
    budget = int(np.maximum(np.round(0.1 * sizes), np.minimum(sizes, LEAST_OF_TASK)).sum())
    assert task_sizes(budget, sizes, LEAST_OF_TASK).sum() == budget
    took = {}
    with one_thread():
        for name in TIMES:
            seconds = []
            for _ in range(3):
                table = replace(sources)  # without what an earlier method learned from it
                began = time.process_time()
                replay(find(name), table, target, budget, 0, tasks=True)
                seconds.append(time.process_time() - began)
            took[name] = float(np.median(seconds))
    lines = [
        f"One target, {sources.n_models} source models, {len(scores.tasks)} tasks, {budget:,} of "
        f"{scores.n_items:,} items: processor seconds on one core, with all that a method learns "
        "from the source models; the middle one of three runs. The paper has 296 source models and "
        "14,042 items. Its tinyBenchmarks takes 309 more seconds to be deployed (12.6 times "
        "clustering with them).\n",
        "| | seconds | times clustering | paper, seconds | paper, times clustering |",
        "|---|---|---|---|---|",
    ]
    for name, (printed, paper) in TIMES.items():
        theirs = "–" if np.isnan(paper) else f"{paper / TIMES['clustering'][1]:.4f}"
        ratio = took[name] / took["clustering"]
        lines.append(f"| `{name}` | {took[name]:.3f} | {ratio:.2f} | {printed} | {theirs} |")
    return "\n".join(lines)


SECTIONS = (
    Table(
        "Two-stage collaborative filtering on MATH-hard and MuSR",
        "Open LLM Leaderboard, 8 tasks, 1,650 items, 426 models without duplicates, three quarters "
        "of them sources, 5 random divisions; a tenth to a half of each task's items, and at "
        "least 20. The paper prints its main figures without numbers; those below are its Tables 4 "
        "and 5, on another leaderboard, with k not stated. *Difference* is to `collaborative`, "
        "paired over the divisions.",
        "openllm2_math_musr.npz",
        RATIOS,
        "--split random",
        5,
        (*METRICS, "task_top10_recall", "task_ndcg"),
        ROWS,
        against="collaborative",
        distinct=True,
    ),
    Differences(
        "Two-stage collaborative filtering and others, over models",
        "openllm2_math_musr.npz",
        (
            *(
                ("collaborative", other)
                for other in (
                    *("stratified(minimum=20)+mean", "clusters(minimum=20)+mean"),
                    *("sort-and-search", "gp-irt-anchor", "p-irt", "collaborative-low-rank"),
                    *("collaborative-no-transport", "ucbe-lrf(share=1)"),
                    "ucbe-lrf(share=1,rank=3)",
                )
            ),
            *(
                (other, "collaborative")
                for other in (
                    *("collaborative(alpha=0.25)", "collaborative(low_importance=1.1)"),
                    "collaborative(low_importance=3.0)",
                )
            ),
        ),
        (184,),
        "--split random",
        5,
        (*METRICS[:3], TOP),
        distinct=True,
    ),
    Differences(
        "Two-stage collaborative filtering and others by NDCG (Table 4), over models",
        "openllm2_math_musr.npz",
        tuple(("collaborative", other) for other in ("gp-irt-anchor", "sort-and-search")),
        (184, 825),
        "--split random",
        5,
        (NDCG,),
        distinct=True,
    ),
    Differences(
        "Two-stage collaborative filtering with Eq. 9 to the letter, over models",
        "openllm2_math_musr.npz",
        tuple(
            ("collaborative(printed=true)", other)
            for other in (
                *("collaborative", "collaborative-no-transport"),
                "collaborative(low_importance=1000,transport=false)",
            )
        ),
        (184,),
        "--split random",
        3,
        ("task_mae", MAE),
        distinct=True,
    ),
    Study("Times of one target (Tables 3 and 5)", (MMLU,), times),
    Differences(
        "Two-stage collaborative filtering and others where the targets are stronger, over models",
        "openllm2_math_musr.npz",
        tuple(
            ("collaborative", other) for other in ("stratified(minimum=20)+mean", "gp-irt-anchor")
        ),
        (184,),
        "--split performance",
        3,
        ("task_mae",),
        distinct=True,
    ),
    Table(
        "Two-stage collaborative filtering with other settings (Figure 9)",
        "The same table, 2 random divisions, a tenth of the items. The paper's figure is of "
        "MMLU, without numbers. *Difference* is to the defaults.",
        "openllm2_math_musr.npz",
        ("10%",),
        "--split random",
        2,
        ("task_mae", "task_weighted_mae"),
        (Row("collaborative", "the defaults"), *map(Row, OTHERS)),
        against="collaborative",
        distinct=True,
    ),
    Table(
        "Two-stage collaborative filtering where the targets are stronger",
        "The same models, the strongest quarter as targets, 3 seeds. The table has no dates; newer "
        "models are mostly stronger ones.",
        "openllm2_math_musr.npz",
        ("10%", "30%"),
        "--split performance",
        3,
        METRICS,
        tuple(Row(row.method, row.label) for row in ROWS),
        against="collaborative",
        distinct=True,
    ),
    Study(
        "Models that are alike on a task and on the other tasks (Figure 6)",
        ("openllm2_math_musr.npz", "helm_math.npz", "llmub_mmlu.npz"),
        alike_across_tasks,
    ),
    Study(
        "Distance of texts and distance of scores (Figure 7)",
        ("mmlu_text.parquet",),
        texts_and_scores,
    ),
    Table(
        "Clusters of texts and of source scores (Table 1)",
        "102 runs of 25 checkpoints on MMLU, checkpoints held out, 5 divisions. Texts are embedded "
        "by TF-IDF. The paper embeds them by Sentence-BERT and has 32 models of OpenCompass.",
        "mmlu_text.parquet",
        ("10%",),
        "--split group",
        5,
        ("task_mae", "task_rank_mae"),
        (
            Row(
                "clustering",
                "by source scores",
                {"task_mae": (3.5,), "task_rank_mae": (2.9,)},
                "paper, OpenCompass",
            ),
            Row(
                "clustering-semantic",
                "by texts",
                {"task_mae": (21.0,), "task_rank_mae": (6.7,)},
                "paper, OpenCompass",
            ),
        ),
        against="clustering",
    ),
    Table(
        "Two-stage collaborative filtering on a single task",
        "GSM8K again, 10 random halves: not what the method is made for.",
        "gsm8k_150.npz",
        (30, 132, 396),
        HALVES,
        10,
        (MAE,),
        (
            Row("collaborative"),
            Row("collaborative-low-rank"),
            Row("random-low-rank"),
            Row("kmedoids-ridge"),
            Row("random"),
        ),
    ),
    Table(
        "Two-stage collaborative filtering on MMLU, by date",
        "A sample of 424 models of the Open LLM Leaderboard, 57 tasks; the newest quarter by date "
        "of the run are the targets. The paper has 395 other models and prints figures without "
        "numbers.",
        "mmlu.parquet",
        ("10%",),
        "--split chronological",
        3,
        METRICS,
        (
            Row("collaborative"),
            Row("collaborative-low-rank", "low-rank completion as stage 2"),
            Row("stratified(minimum=20)+mean", "random sampling"),
            Row("clusters(minimum=20)+mean", "clustering"),
            Row("gp-irt-anchor", "tinyBenchmarks"),
            Row("random-ridge", "ridge on random items"),
            Row("sort-and-search", "Sort & Search"),
        ),
        against="collaborative",
    ),
    Table(
        "Transport where tasks are alike: HELM MATH",
        "The seven tasks of HELM MATH, 83 models, 10 random divisions.",
        "helm_math.npz",
        (140,),
        "--split random",
        10,
        ("task_mae",),
        (Row("collaborative"), Row("collaborative-no-transport", "the ablation")),
        against="collaborative",
    ),
    Differences(
        "Transport where tasks are alike: HELM MATH, over models",
        "helm_math.npz",
        (("collaborative", "collaborative-no-transport"),),
        (140,),
        "--split random",
        10,
        ("task_mae",),
    ),
)
PAPER = Paper(
    "collaborative",
    "Two-stage collaborative filtering: printed figures and those of fewbench",
    SECTIONS,
    "The tables on MATH-hard and MuSR and on a single task, the section of others over models,\n"
    "and methods.csv are older than the rule which of several optimal plans is taken. It changes\n"
    "the error of a task in the first division, at 10%, from 2.8535 to 2.8541 pp.",
)
