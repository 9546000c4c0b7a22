"""The lists of tasks in BenTo's program: Figures 1 and 3, "better than GPT-4", and each model."""

import numpy as np

from fewbench._seeds import child_seed
from fewbench.study.metrics import nrmse
from fewbench_papers.bento import Similarity, TaskMatrix
from fewbench_papers.bento.judgement import resampled_models, task_estimates
from papers.bento_data import RELEASED, released, row, table_of
from papers.record import Context, Study

SIZES = range(1, 11)
NAMES = {
    "bento_le": "BenTo-le",
    "bento_sim": "BenTo-sim",
    "gpt4": "GPT-4",
    "bm25_le": "BM25-le",
    "bm25_sim": "BM25-sim",
}
FEW = 3
"""Tasks of Figure 1."""
CLUSTERS = (
    *((21, 30, 31), (17, 22, 23, 41, 53), (0, 7, 11, 13, 20, 37), (28, 32, 33, 43, 46, 49, 50)),
    *((1, 4, 5, 9, 18, 44, 48), (34, 40, 52, 54, 55, 56), (8, 15, 16, 25, 29)),
    *((3, 14, 24, 26, 38, 39, 47, 51), (2, 6, 10, 12, 19, 27), (35, 36, 42, 45)),
)
"""Clusters of Figure 1 in the authors' program, as positions of MMLU's tasks from 0."""
STARTS = 50
README = {  # MMLU and Big-Bench Hard, all tasks and BenTo's (%)
    "Llama-2-13b": (54.5, 53.9, 45.3, 49.6),
    "Llama-2-7b": (46.0, 49.8, 37.1, 35.4),
    "Llama-3-8b": (61.7, 60.2, 59.1, 57.6),
    "Mistral-7b-v0.3": (62.1, 62.2, 56.3, 56.0),
    "Phi-2": (56.5, 56.7, 58.6, 56.7),
    "Phi-3-mini-4k": (69.5, 70.0, 70.2, 64.2),
    "StableLM-2-1.6B": (34.6, 34.7, 23.4, 20.7),
    "TinyLlama": (24.9, 25.9, 25.1, 25.1),
    "Gemma-7b": (65.2, 63.4, np.nan, np.nan),
}
"""Tables 1 and 11, as the readme of the authors' repository has them."""


def of_lists(context: Context) -> str:
    """Every number of tasks from 1 to 10: where the paper's figures and prose speak of them."""
    results, _, lists = released(context)
    full = results.full
    said = {
        name: np.array([results.reduced(np.array(lists[name][:k])) for k in SIZES])
        for name in NAMES
    }
    errors = {name: nrmse(one, full) for name, one in said.items()}
    rows = [row(title, errors[name].tolist()) for name, title in NAMES.items()]
    drawn = [nrmse(task_estimates(results, k, child_seed(0, k), 5000), full).mean() for k in SIZES]
    rows.append(row("random tasks, mean", [float(one) for one in drawn]))
    for title in ("bento", "bm25"):
        less = errors[f"{title}_sim"] - errors[f"{title}_le"]
        name = NAMES[f"{title}_sim"].removesuffix("-sim")
        rows.append(f"| {name}: sim less le (Figure 3) | {' | '.join(f'{x:+.3f}' for x in less)} |")
    weights = resampled_models(results, np.random.default_rng(0), 1000)
    of_gpt4 = nrmse(said["gpt4"], full, weights)
    for name in ("bento_le", "bento_sim"):
        again = nrmse(said[name], full, weights) - of_gpt4
        low, high = np.quantile(again, [0.05, 0.95], axis=1)
        cells = (
            f"{value:+.3f} ({a:+.3f} to {b:+.3f})"
            for value, a, b in zip(errors[name] - errors["gpt4"], low, high, strict=True)
        )
        rows.append(f"| {NAMES[name]} less GPT-4 | {' | '.join(cells)} |")
    table = table_of("NRMSE, k =", [str(k) for k in SIZES], rows)
    return (
        "The lists in the authors' program, on the seven released models. Intervals are 90 %, over "
        "models; below 0, BenTo is better. Above 0 in the rows of Figure 3, le is better. GPT-4's "
        "seventh task is `professional_law`.\n\n" + table
    )


def of_each_model(context: Context) -> str:
    """Tables 1, 8 and 11, and Figure 1 (right): full and reduced scores of each model."""
    results, _, lists = released(context)
    le, sim = (results.reduced(np.array(lists[name][:FEW])) for name in ("bento_le", "bento_sim"))
    rows, accuracies = [], []
    for model, whole, by_le, by_sim in zip(results.models, results.full, le, sim, strict=True):
        accuracies.append((1 - abs(by_le - whole) / whole, 1 - abs(by_sim - whole) / whole))
        shown = [f"{100 * x:.1f}" for x in (whole, by_le, by_sim)]
        shown += [f"{share:.1%}" for share in accuracies[-1]]
        rows.append(f"| {model} | {' | '.join(shown)} |")
    means = [f"{share:.1%}" for share in np.mean(accuracies, axis=0)]
    rows.append(f"| mean | – | – | – | {' | '.join(means)} |")
    header = ["all tasks (%)", "BenTo-le's 3", "BenTo-sim's 3", "accuracy of le", "of sim"]
    return (
        "Scores on all of MMLU and on the first three tasks of the published lists. The accuracy "
        "of Figure 1 is 1 less the relative error; the paper has 97 % for BenTo-le over nine "
        "models, of which seven are released.\n\n" + table_of("model", header, rows)
    )


def of_readme(_: Context) -> str:
    """Tables 1 and 11: NRMSE by the printed scores, with and without Eq. 7's missing square."""
    rows = []
    for title, at in (("MMLU, 3 of 57 tasks", (0, 1)), ("Big-Bench Hard", (2, 3))):
        scores = np.array([[row[place] for place in at] for row in README.values()]) / 100
        full, few = scores[np.isfinite(scores[:, 0])].T
        as_printed = np.sqrt(((few - full) ** 2).sum() / full.sum())
        rows.append(row(f"{title}: {len(full)} models", [float(nrmse(few, full)), as_printed]))
    return (
        "From the scores of BenTo-le's tasks in the readme of the authors' repository; the paper "
        "prints an NRMSE of .029 for MMLU. Eq. 7 has no square in the sum below the line. Without "
        "it NRMSE depends on the scale of the scores.\n\n"
        + table_of("NRMSE", ["with the square", "Eq. 7 as printed"], rows)
    )


def of_clusters(context: Context) -> str:
    """Figure 1, left: spectral clusters of the tasks."""
    from scipy.sparse.csgraph import laplacian
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    _, transfer, _ = released(context)
    s = Similarity().sim(TaskMatrix.of_transfer(transfer).rows)
    vectors = np.linalg.eigh(laplacian(s, normed=True))[1][:, 1 : 1 + len(CLUSTERS)]
    published = np.empty(len(s), dtype=int)
    for number, tasks in enumerate(CLUSTERS):
        published[[*tasks]] = number
    alike = [
        adjusted_rand_score(
            published, KMeans(len(CLUSTERS), n_init=n, random_state=0).fit_predict(vectors)
        )
        for n in ("auto", STARTS)
    ]
    return (
        "Eq. 2, 3 and 6 with ten eigenvectors after the first, and k-means into ten clusters, "
        "beside the clusters that the authors' program draws (adjusted Rand index). The program "
        "starts k-means once, from seed 0.\n\n"
        + table_of(
            "",
            ["equal clusters (1 is all)"],
            [
                f"| {title} | {value:.2f} |"
                for title, value in zip(
                    ("one start, seed 0", f"the best of {STARTS} starts"), alike, strict=True
                )
            ],
        )
    )


LISTS = (
    Study("The published lists, by number of tasks", RELEASED, of_lists),
    Study("The published lists, model by model", RELEASED, of_each_model),
    Study("The printed scores (Tables 1 and 11)", (), of_readme),
    Study("Clusters of tasks (Figure 1)", RELEASED, of_clusters),
)
