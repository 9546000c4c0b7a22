"""Texts as vectors without a model: TF-IDF and truncated singular value decomposition.

Latent semantic analysis: Deerwester et al. 1990, "Indexing by latent semantic analysis".
"""

from collections.abc import Sequence

import numpy as np

from fewbench._threads import one_thread
from fewbench._types import FloatArray

TOKEN = r"\w+|[^\w\s]"
"""Words of any length and single signs: in '3 + 4' each of them tells."""


def tfidf_embeddings(texts: Sequence[str], dimensions: int = 100) -> FloatArray:
    """Embed texts by the words that they share, rarer words counting more.

    Parameters
    ----------
    texts : sequence of str, length n
        None of them blank.
    dimensions : int
        Singular vectors that are kept. Where there are no more texts or words than that, the
        weighted words themselves are returned: the vectors are longer, their distances the same.

    Returns
    -------
    ndarray, shape (n, d)
        Rows of length 1, so that distances are those of cosine similarity; of length 0 if none
        of a text's words is in the kept vectors. The same texts give the same array.

    Examples
    --------
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
        # Transformed apart from the fit: there, the same text is the same row to the last bit.
        rows = TruncatedSVD(dimensions, random_state=0).fit(words).transform(words)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))
