"""Findings on items that belong together, such as several questions on one passage."""

import numpy as np

from fewbench._lazy import pandas as pd
from fewbench._names import counted
from fewbench._text import quoted
from fewbench._types import FloatArray, IntArray
from fewbench.checks.finding import Details, Finding
from fewbench.scores import Scores
from fewbench.scores.benchmark import CLUSTER, WEIGHT
from fewbench.scores.conditions import COLUMNS

FEWEST = 10
"""Fewer clusters are rather tasks, and too few to tell how far they vary."""
MOST_SHARE = 0.7
"""With more clusters per item, nearly every item is one by itself."""
TOGETHER = 1.2
"""From here on, items of a cluster make the variance of a difference so many times as large."""
MOST_MODELS = 200
"""Number of models that show whether items belong together; more would not help."""
NOT_CLUSTERS = (
    *COLUMNS,
    CLUSTER,
    WEIGHT,
    "task",
    "metric",
    "filter",
    "doc_id",
    "cost",
    "n_options",
)
"""Columns with a meaning of their own."""
NAMES = ("passage", "context", "paragraph", "document", "article", "story", "conversation", "repo")
"""Beginnings of names that columns of clusters have."""


def cluster_findings(scores: Scores) -> list[Finding | None]:
    """Return columns of the items that look like clusters; or the clusters, if they are stated."""
    if (stated := scores.cluster_of) is not None:
        sizes = np.bincount(stated)
        what = f"{counted(scores.n_items, 'item')} in {counted(int((sizes > 0).sum()), 'cluster')}"
        return [Finding("clusters", "fact", f"{what} of items that belong together")]
    columns = {str(name): _codes_of(scores, str(name)) for name in scores.items.columns}
    candidates = {name: codes for name, codes in columns.items() if codes is not None}
    residuals, rows = _residuals(scores) if candidates else np.empty((0, 0)), []
    for name, codes in candidates.items():
        factor = inflation(residuals, codes)
        if factor >= TOGETHER or name.lower().startswith(NAMES):
            rows.append((name, len(np.unique(codes)), round(factor, 2)))
    rows.sort(key=lambda row: -row[2])
    if not rows:
        return []
    name, n_clusters, factor = rows[0]
    what = f"the column {name} ({counted(n_clusters, 'value')}) looks like clusters of items"
    if factor >= TOGETHER:
        what += (
            f": models answer items of one {name} alike, which makes the variance of a "
            f"difference {factor:.1f} times as large"
        )
    return [
        Finding(
            "clusters",
            "caution",
            what,
            f"import with --by {quoted(name)}: verdicts on models then count no item by itself",
            table=Details(("column", "clusters", "variance of a difference, times"), tuple(rows)),
        )
    ]


def inflation(residuals: FloatArray, cluster_of: IntArray) -> float:
    """Return how many times as large clusters make the variance of a mean, 1 without effect.

    Parameters
    ----------
    residuals : ndarray, shape (models, items)
    cluster_of : ndarray of int, shape (items,)

    Examples
    --------
    >>> inflation(np.array([[1.0, 1, -1, -1]]), np.array([0, 0, 1, 1]))
    4.0
    """
    clusters, codes = np.unique(cluster_of, return_inverse=True)
    sums = np.stack([np.bincount(codes, row, len(clusters)) for row in residuals])
    total = float((residuals**2).sum())
    if total <= 0 or len(clusters) < 2:
        return 1.0
    return len(clusters) / (len(clusters) - 1) * float((sums**2).sum()) / total


def _residuals(scores: Scores) -> FloatArray:
    """Return answers without the means of models and of items, shape (models, items)."""
    values = np.asarray(scores.filled_cells[np.arange(min(scores.n_models, MOST_MODELS))])
    values = values - values.mean(axis=1, keepdims=True)
    return np.asarray(values - values.mean(axis=0))


def _codes_of(scores: Scores, name: str) -> IntArray | None:
    """Return the clusters that a column makes, or None if it cannot be a column of clusters."""
    column = scores.items[name]
    if name in NOT_CLUSTERS or pd.api.types.is_float_dtype(column.dtype):
        return None
    codes, values = pd.factorize(column.replace("", None))
    alone = codes < 0
    is_few = FEWEST <= len(values) <= MOST_SHARE * scores.n_items
    if not is_few or alone.mean() > 1 - MOST_SHARE or np.array_equal(codes, scores.task_of):
        return None
    codes = codes.astype(np.intp)
    codes[alone] = len(values) + np.arange(int(alone.sum()))
    return codes
