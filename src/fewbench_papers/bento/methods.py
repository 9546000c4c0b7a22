"""The methods that choose tasks, by name."""

from fewbench.methods import Entry, MethodSet
from fewbench.methods.parts import WaysOfStage
from fewbench_papers.bento.choosers import CHOOSERS
from fewbench_papers.bento.ratio import AnchorRatio
from fewbench_papers.bento.within_tasks import TaskSettings, read_within

BENTO = "Zhao et al. 2024 (BenTo), arXiv 2410.13804"

ENTRIES = {
    "random-tasks": Entry(
        "tasks-random+mean",
        "random tasks, all their items",
        BENTO,
    ),
    "bm25-sim": Entry(
        "bento-sim(matrix=text)+mean",
        "tasks most similar to all tasks by BM25 of their texts",
        BENTO,
    ),
    "bm25-le": Entry(
        "bento-le(matrix=text)+mean",
        "as bm25-sim, on Laplacian eigenmaps",
        BENTO,
    ),
    "fitted-tasks": Entry(
        "tasks-fit+mean",
        "tasks whose mean is nearest to the source models' full scores, by least squares",
        "ours; what task reduction without source models is measured against",
    ),
    "ridge-tasks": Entry(
        "tasks-ridge+task-means+ridge",
        "tasks whose means best predict the full score by ridge regression, and that regression",
        "ours; forward selection by leave-one-out error: Allen 1974",
    ),
    "bento-sim": Entry(
        "bento-sim(matrix=FILE)+mean",
        "tasks most similar to all tasks by measured transferability",
        BENTO,
        is_main=True,
        file="a file of fewbench transfer measure",
    ),
    "bento-le": Entry(
        "bento-le(matrix=FILE)+mean",
        "as bento-sim, on Laplacian eigenmaps",
        BENTO,
        file="a file of fewbench transfer measure",
    ),
}
METHODS = MethodSet(
    ENTRIES,
    {"tasks": CHOOSERS, "predictor": {"anchor-ratio": AnchorRatio}},
    {"tasks": WaysOfStage(read_within, TaskSettings)},
)
