"""DISCO's propositions, its arithmetic of costs, and the spread over runs (Table 7)."""

import numpy as np
import pandas as pd

from fewbench._types import BoolArray, FloatArray
from fewbench.study import SplitSettings, make_split
from fewbench.study.metrics import point_metrics
from fewbench.uncertainty.replay import replay
from papers.methods import find
from papers.record import MAE, SPEARMAN, Context, Study, shown

MMLU = "llmub_mmlu.npz"
EVERY = 8
RUNS, ITEMS = 5, 100
SLACK = 1e-12
"""Rounding."""
EUCLIDEAN = "medoids(metric=euclidean)+gp-irt"
"""Anchor-corr as the text has it, which names no distance; the program has k-means."""
TABLE_7 = {
    "random": ("3.45 ± 0.67", ".916 ± .026"),
    "gp-irt-random": ("2.79 ± 0.20", ".922 ± .023"),
    "gp-irt-anchor-corr": ("2.08 ± 0.20", ".927 ± .021"),
    EUCLIDEAN: ("–", "–"),
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
    """Propositions 1 to 6 on real probabilities."""
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
    distinct = len(np.unique(scores.full_scores()))
    rows = [
        f"| {name} | {' | '.join(f'{held.sum():,} of {n:,}' for held in both)} |"
        for name, both in bounds(p, jsd).items()
    ]
    return (
        f"{m} runs, every {EVERY}th of the items: {n:,}, with {options} options. Propositions 1 "
        "and 3: the mutual information of the run and its answer equals JSD on every item, to "
        f"{10.0 ** max(-12, np.ceil(np.log10(off))):.0e} bits; they assume that "
        f"no two models have the same score: {distinct} of the {m} scores are different. "
        "Propositions 2 and 4 to 6: on how many items the bounds hold. Proposition 6 is "
        "Proposition 2 again. Propositions 4 and 5 have no PDS: they bound JSD by total variation, "
        "and total variation by how far the highest probability of an option is above the mean. "
        "The constant of Proposition 4's lower bound, 2 / ln 2, is that of a JSD in bits; in "
        "nats it is 2.\n\n"
        "| | lower bound | upper bound |\n|---|---|---|\n" + "\n".join(rows)
    )


def bounds(p: FloatArray, jsd: FloatArray) -> dict[str, tuple[BoolArray, BoolArray]]:
    """Return for each item whether the lower and the upper bounds hold.

    `p` are probabilities, shape (models, items, options), `jsd` their divergence in bits.
    """
    m, _, options = p.shape
    mean, highest, bits = p.mean(axis=0), p.max(axis=0), m / (m - 1) * np.log2(m)
    apart = np.abs(p - mean)
    variation = apart.sum(axis=2) / 2  # (models, items)
    found = {}
    for name, pds in (
        ("2 and 6, PDS as a sum over the options (Appendix H, the program)", highest.sum(axis=1)),
        ("2 and 6, PDS divided by the number of options (Eq. 1)", highest.sum(axis=1) / options),
    ):
        lower = 2 / (m**2 * np.log(2)) * (pds - 1) ** 2
        found[name] = (lower <= jsd + SLACK, jsd <= bits * (pds - 1) + SLACK)
    lower, upper = 2 / np.log(2) * (variation**2).mean(axis=0), bits * variation.mean(axis=0)
    found["4, JSD in bits"] = (lower <= jsd + SLACK, jsd <= upper + SLACK)
    nats = np.log(2)
    found["4, JSD in nats"] = (lower <= nats * jsd + SLACK, jsd <= upper + SLACK)
    spread, envelope, above = apart.mean(axis=0) / 2, highest - mean, (p > mean).sum(axis=0)
    found["5, every option"] = (
        (envelope / m <= spread + SLACK).all(axis=1),
        (spread <= above / m * envelope + SLACK).all(axis=1),
    )
    spread, envelope, most = spread.sum(axis=1), envelope.sum(axis=1), above.max(axis=1)
    found["5, all options together"] = (
        envelope / m <= spread + SLACK,
        spread <= most / m * envelope + SLACK,
    )
    return found


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
