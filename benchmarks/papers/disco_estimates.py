"""DISCO's Table 1 by the estimates of 40 dated targets in its authors' repository."""

from collections.abc import Callable, Mapping

import numpy as np
from scipy.stats import spearmanr

from fewbench._types import FloatArray
from papers.record import Context

Judged = dict[str, tuple[float, float]]
"""Error and correlation by method."""
TableOne = Mapping[str, tuple[str, tuple[float, ...], tuple[float, ...]]]
"""Label, errors and correlations by method."""
ESTIMATES = "disco_estimates.npz"
IN_FILES = {
    "mmlu": "mmlu_fields",
    "hellaswag": "hellaswag",
    "winogrande": "winogrande",
    "arc": "arc",
}
FOREST, NEIGHBOR = "RandomForestRegressor_100", "KNN"
AUTHORS = {  # rows of Table 1, and what the authors' program calls them
    "random": "random_naive",
    "gp-irt-random": "random_gpirt",
    "gp-irt-anchor": "anchor-irt_gpirt",
    "gp-irt-anchor-corr": "anchor_gpirt",
    "random-signature-knn": f"random_{NEIGHBOR}",
    "random-signature-rf": f"random_{FOREST}",
}
HIGH = "high-disagreement"


def authors_estimates(context: Context, printed: TableOne) -> str:
    """Table 1 from the authors' estimates of their dated targets, and what it leaves out."""
    lines = []
    with np.load(context.folder / ESTIMATES) as file:
        found = {
            name: _judged(*(file[f"{own}_{part}"] for part in ("methods", "estimates", "full")))
            for name, own in IN_FILES.items()
        }
    for method, own in AUTHORS.items():
        lines.append(_beside(f"`{method}`", printed[method], found, lambda of, own=own: of[own]))
    for method, regressor in (("disco-pds-knn", NEIGHBOR), ("disco-pds-rf", FOREST)):
        chosen = {
            "best of the variants": lambda of, r=regressor: _over(of, r, "best"),
            "their median": lambda of, r=regressor: _over(of, r, "median"),
            "of all source models": lambda of, r=regressor: of.get(f"{HIGH}+nonstratified_{r}"),
        }
        for label, pick in chosen.items():
            first = label == "best of the variants"
            lines.append(
                _beside(f"`{method}`, {label}", printed[method] if first else None, found, pick)
            )
    lines.append(
        _beside("ridge on random signatures", None, found, lambda of: of["random_Ridge_10"])
    )
    return (
        "The authors' repository has its methods' estimates of the 40 newest models by 100 items, "
        "in five runs. Error (pp) / Spearman correlation. The variants of high disagreement are "
        "eight: of all source models, 2, 10 or 100, stratified or not; the error and the "
        "correlation of the best are chosen apart, on the targets. For MMLU, the file with one "
        "variant is small enough to be had, of 100 source models.\n\n"
        "| | " + " | ".join(f"{name}, paper | authors' file" for name in found) + " |\n"
        + "|---" * (1 + 2 * len(found)) + "|\n" + "\n".join(lines)
    )  # fmt: skip


def _judged(methods: np.ndarray, estimates: FloatArray, full: FloatArray) -> Judged:
    """Return each method's mean error in pp, and mean correlation over the runs."""
    return {
        str(method): (
            100 * float(np.abs(own - full[:, None]).mean()),
            float(np.mean([spearmanr(run, full)[0] for run in own.T])),
        )
        for method, own in zip(methods, estimates, strict=True)
        if np.ptp(own, axis=0).all()  # not the same for every target
    }


def _over(of: Judged, regressor: str, kind: str) -> tuple[float, float]:
    """Return the best or the median error and correlation of the variants."""
    errors, ranks = zip(
        *(
            found
            for method, found in of.items()
            if method.startswith(HIGH) and method.endswith(f"_{regressor}")
        ),
        strict=True,
    )
    if kind == "best":
        return min(errors), max(ranks)
    return float(np.median(errors)), float(np.median(ranks))


def _beside(
    title: str,
    printed: tuple[str, tuple[float, ...], tuple[float, ...]] | None,
    found: dict[str, Judged],
    pick: Callable[[Judged], tuple[float, float] | None],
) -> str:
    cells = []
    for at, of in enumerate(found.values()):
        own = pick(of)
        cells.append("–" if printed is None else f"{printed[1][at]:.2f} / {printed[2][at]:.3f}")
        cells.append("–" if own is None else f"{own[0]:.2f} / {own[1]:.3f}")
    return f"| {title} | {' | '.join(cells)} |"
