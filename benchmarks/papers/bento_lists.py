"""The lists of tasks in BenTo's program: Figures 1 and 3, "better than GPT-4", and each model."""

import numpy as np

from fewbench._seeds import child_seed
from fewbench.study.metrics import nrmse
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


LISTS = (
    Study("The published lists, by number of tasks", RELEASED, of_lists),
    Study("The published lists, model by model", RELEASED, of_each_model),
)
