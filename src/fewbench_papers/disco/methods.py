"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench_papers.disco.disagreement import JensenShannon, PredictiveDiversity
from fewbench_papers.disco.regressors import Forest, Neighbours

DISCO = "Rubinstein et al. 2025, DISCO"

# DISCO measures disagreement among 100 random sources (its M for MMLU).
ENTRIES = {
    "disco-pds-rf": Entry(
        "pds(models=100)+signature+pca+forest",
        "items of highest PDS, random forest on the signature",
        DISCO,
        is_main=True,
    ),
    "disco-pds-knn": Entry(
        "pds(models=100)+signature+pca+knn",
        "items of highest PDS, nearest source by signature",
        DISCO,
    ),
    "disco-jsd-rf": Entry(
        "jsd(models=100)+signature+pca+forest",
        "items of highest JSD, random forest on the signature",
        DISCO,
    ),
    "disco-jsd-knn": Entry(
        "jsd(models=100)+signature+pca+knn",
        "items of highest JSD, nearest source by signature",
        DISCO,
    ),
    "disco-jsd-ridge": Entry(
        "jsd(models=100)+signature+pca+ridge(alpha=10)",
        "items of highest JSD, ridge regression on the signature",
        DISCO,
    ),
    "random-signature-rf": Entry(
        "random+signature+pca+forest",
        "random items, random forest on the signature",
        DISCO,
    ),
    "random-signature-knn": Entry(
        "random+signature+pca+knn",
        "random items, nearest source by signature",
        DISCO,
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    "selector": {"pds": PredictiveDiversity, "jsd": JensenShannon},
    "regressor": {"knn": Neighbours, "forest": Forest},
}
METHODS = MethodSet(ENTRIES, PARTS)
