"""The methods and parts, by name."""

from typing import Any

from fewbench.methods import Entry, MethodSet
from fewbench.methods.parts import WHOLE
from fewbench_papers.collaborative.clusters import Clusters
from fewbench_papers.collaborative.collaborative import Collaborative

FILTERING = "Two-Stage Collaborative Filtering 2025"

ENTRIES = {
    "collaborative": Entry(
        "collaborative",
        "items in rounds, by variance over similar source models; optimal transport between tasks",
        FILTERING,
        is_main=True,
    ),
    "collaborative-no-transport": Entry(
        "collaborative(transport=false)",
        "as collaborative, within each task",
        FILTERING,
    ),
    "collaborative-low-rank": Entry(
        "collaborative(prediction=low-rank)",
        "the items of collaborative, low-rank completion of the others",
        f"{FILTERING}, Table 5; completion as in UCBE-LRF, Zhou et al. 2025",
    ),
    "clustering": Entry(
        "clusters+mean",
        "k-means of source scores in each task, cluster-weighted mean",
        f"{FILTERING}, Eq. 5",
    ),
}
PARTS: dict[str, dict[str, type[Any]]] = {
    "selector": {"clusters": Clusters},
    WHOLE: {"collaborative": Collaborative},
}
METHODS = MethodSet(ENTRIES, PARTS)
