"""DISCO's propositions, its arithmetic of costs, and the spread over runs (Table 7)."""

import numpy as np
import pandas as pd

from fewbench._types import FloatArray
from fewbench.study import SplitSettings, make_split
from fewbench.study.metrics import point_metrics
from fewbench.uncertainty.replay import replay
from papers.methods import find
from papers.record import MAE, SPEARMAN, Context, Study, shown

MMLU = "llmub_mmlu.npz"
EVERY = 8
RUNS, ITEMS = 5, 100
TABLE_7 = {
    "random": ("3.45 ± 0.67", ".916 ± .026"),
    "gp-irt-random": ("2.79 ± 0.20", ".922 ± .023"),
    "medoids(metric=correlation)+gp-irt": ("2.08 ± 0.20", ".927 ± .021"),
    "gp-irt-anchor": ("3.25 ± 0.49", ".922 ± .015"),
    "disco-jsd-knn": ("1.14 ± 0.00", ".975 ± .000"),
    "disco-jsd-rf": ("1.30 ± 0.02", ".987 ± .001"),
    "disco-pds-knn": ("1.31 ± 0.00", ".972 ± .000"),
    "disco-pds-rf": ("1.07 ± 0.04", ".987 ± .002"),
}
"""Method, and the paper's error and Spearman correlation, with standard deviations over runs."""


def entropy(p: FloatArray) -> FloatArray:
    """Return the entropy in bits over the last axis."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-np.where(p > 0, p * np.log2(p), 0.0).sum(axis=-1))


def propositions(context: Context) -> str:
    """Propositions 1 and 2 on real probabilities."""
    scores = context.scores(MMLU)
    scores = scores.take(items=range(0, scores.n_items, EVERY))
    assert scores.probabilities is not None
    p = np.stack([row.astype(np.float64) for row in scores.probabilities.by_model()])
    p /= p.sum(axis=2, keepdims=True)  # stored as float16
    m, n, options = p.shape
    mean = p.mean(axis=0)
    jsd = entropy(mean) - entropy(p).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.where(p > 0, p * np.log2(p / mean), 0.0).sum(axis=2).mean(axis=0)
    off = np.abs(information - jsd).max()
    total = p.max(axis=0).sum(axis=1)
    distinct = len(np.unique(scores.full_scores()))
    rows = []
    for name, pds in (
        ("sum over the options (the program, Appendix H)", total),
        ("divided by the number of options (Eq. 1)", total / options),
    ):
        lower = 2 / (m**2 * np.log(2)) * (pds - 1) ** 2
        upper = m / (m - 1) * np.log2(m) * (pds - 1)
        held = ((lower <= jsd + 1e-12).sum(), (jsd <= upper + 1e-12).sum())
        rows.append(f"| {name} | {' | '.join(f'{count:,} of {n:,}' for count in held)} |")
    return (
        f"{m} runs, every {EVERY}th of the items: {n:,}, with {options} options. Proposition 1: "
        "the mutual information of the run and its answer equals JSD on every item, to "
        f"{10.0 ** max(-12, np.ceil(np.log10(off))):.0e} bits; it assumes that "
        f"no two models have the same score: {distinct} of the {m} scores are different. "
        "Proposition 2: on how many items the bounds hold.\n\n"
        "| PDS | lower bound | upper bound |\n|---|---|---|\n" + "\n".join(rows)
    )


def costs(_: Context) -> str:
    """The arithmetic of Table 1's caption and of Appendix B."""
    saved = 8.53 - 0.07
    even = 3284.05 / saved
    outputs = 14_042 * 4 * 4
    rows = [
        f"| GPU hours saved by a target (8.53 less 0.07) | 8.46 | {saved:.2f} |",
        f"| new models until 3,284 GPU hours are paid back | 389 | {np.ceil(even):.0f} |",
        f"| share saved by time, (30,739 - 218) / 30,739 | 99.3% | {1 - 218 / 30739:.1%} |",
        *(
            f"| share saved by items, {name}: {items:,} to 100 | {printed} "
            f"| {1 - 100 / items:.1%} |"
            for name, items, printed in (
                ("MMLU", 14_042, "99.3%"),
                ("HellaSwag", 10_042, "99.0%"),
                ("ImageNet", 50_000, "99.8%"),
            )
        ),
        f"| outputs of 385 source models | 86.54 MB | {385 * outputs / 1e6:.2f} MB |",
        f"| outputs of a target on all questions | 224.78 KB | {outputs / 1e3:.2f} KB |",
        f"| outputs of a target on 100 questions | – | {100 * 16 / 1e3:.2f} KB |",
        f"| signatures of 400 source models | 400 KB | {400 * 256 * 4 / 1024:.0f} KB |",
        f"| signature of a target | 1 KB | {256 * 4 / 1024:.0f} KB |",
    ]
    return (
        "Computed from the paper's own numbers; nothing is measured. Outputs are 4 options of "
        "4 bytes, a signature is 256 components. The paper's storage of a target (Table 5) is that "
        "of all 14,042 questions, and that of the source models is of 385 models, not 400.\n\n"
        "| | paper | computed |\n|---|---|---|\n" + "\n".join(rows)
    )


def spread(context: Context) -> str:
    """Table 7: the standard deviation over runs on one division."""
    scores = context.scores(MMLU)
    split = make_split(scores, SplitSettings("every", 0.1), 0, 0)
    sources, targets = scores.take(models=split.sources), scores.take(models=split.targets)
    truth, lines = targets.full_scores(), []
    for method, printed in TABLE_7.items():
        found = []
        for seed in range(RUNS):
            said = replay(find(method), sources, targets, ITEMS, seed).scores
            found.append(point_metrics(truth, said, np.empty(0)))
        values = pd.DataFrame(found)
        cells = []
        for metric, scale, theirs in ((MAE, 100, printed[0]), (SPEARMAN, 1, printed[1])):
            own = scale * values[metric]
            cells += [theirs, f"{shown(own.mean(), metric)} ± {shown(own.std(), metric)}"]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return (
        f"One division, every tenth run a target, {ITEMS} items, {RUNS} seeds; ± is the standard "
        "deviation over the seeds. The paper's division is by date.\n\n"
        "| | error (pp), paper | fewbench | Spearman, paper | fewbench |\n|---|---|---|---|---|\n"
        + "\n".join(lines)
    )


THEORY = (
    Study("DISCO's propositions on MMLU", (MMLU,), propositions),
    Study("DISCO's costs, computed", (), costs),
    Study("DISCO's spread over runs on MMLU (Table 7)", (MMLU,), spread),
)
