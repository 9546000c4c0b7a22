"""Clustering of the items' texts: k-means within each task, the item nearest each center.

The baseline "clustering (semantic)" of Two-Stage Collaborative Filtering (3.3, Eq. 5). The paper
embeds questions by Sentence-BERT; here TF-IDF and singular value decomposition do (latent semantic
analysis: Deerwester et al. 1990).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fewbench._threads import one_thread
from fewbench._types import FloatArray
from fewbench.methods.needs import Need, item_texts, require
from fewbench.methods.subset import Subset
from fewbench.scores import Scores
from fewbench_papers.collaborative.clusters import cluster_subset

TOKEN = r"\w+|[^\w\s]"
"""Words of any length and single signs, so that '3 + 4' has three tokens."""


def tfidf_embeddings(texts: Sequence[str], dimensions: int = 100) -> FloatArray:
    """Embed texts, none blank, by the words that they share; rarer words count more; shape (n, d).

    Keeps `dimensions` singular vectors. With no more texts or words than that, the weighted words
    themselves are returned: longer vectors with the same distances. Rows have length 1, so
    distances follow cosine similarity, or 0 if the kept vectors have none of a text's words. The
    same texts always give the same array.

    >>> rows = tfidf_embeddings(["a red apple", "an apple, red", "the moons of Mars"])
    >>> similar = rows @ rows.T
    >>> bool(similar[0, 1] > similar[0, 2] == 0)
    True
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(token_pattern=TOKEN, sublinear_tf=True).fit_transform(texts)
    if min(words.shape) <= dimensions:
        return np.asarray(words.toarray(), dtype=np.float64)
    with one_thread():
        # `transform` gives the same row for the same text to the last bit, unlike `fit_transform`.
        rows = TruncatedSVD(dimensions, random_state=0).fit(words).transform(words)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


@dataclass(frozen=True)
class Semantic:
    """Items nearest the k-means centers of each task's embedded texts."""

    needs: ClassVar = (Need("text", 1, "nothing to cluster; import a column text", required=True),)

    def select(self, scores: Scores, budget: int, seed: int) -> Subset:
        """Cluster each task's items; weights are the clusters' shares of the full score."""
        require(self, scores)
        rows = tfidf_embeddings(item_texts(scores))
        return cluster_subset(
            scores, lambda items: rows[items] - rows[items].mean(axis=0), budget, seed
        )

    def describe(self) -> str:
        return "semantic"
