"""BM25 between tasks' texts against its formula in plain Python."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.testing import simulate
from fewbench_papers.bento.matrix import bm25, of_items, of_texts

TEXTS = [
    "rivers run to the sea the sea is salt and salt",
    "rivers are fresh water and run to the sea",
    "salt and pepper and salt to salt",
    "Completely other words here: quarks!",
]


def plain(texts, k1=1.5, b=0.75):
    """Okapi BM25: document j for every word of query i, as often as it is there."""
    words = [text.split() for text in texts]
    mean = sum(map(len, words)) / len(words)
    found = {word: sum(word in other for other in words) for of_text in words for word in of_text}
    idf = {word: math.log(len(words) - n + 0.5) - math.log(n + 0.5) for word, n in found.items()}
    average = sum(idf.values()) / len(idf)
    idf = {word: value if value >= 0 else 0.25 * average for word, value in idf.items()}
    table = np.zeros((len(texts), len(texts)))
    for i, query in enumerate(words):
        for j, document in enumerate(words):
            for word in query:
                tf = document.count(word)
                size = k1 * (1 - b + b * len(document) / mean)
                table[i, j] += idf[word] * tf * (k1 + 1) / (tf + size)
    return table


def test_is_bm25_of_document_j_for_query_i():
    found, expected = bm25(TEXTS), plain(TEXTS)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert not np.allclose(expected, expected.T), "a symmetric example would show no orientation"


def test_texts_of_tasks_by_name_and_not_by_place():
    sizes = np.arange(1, 5)
    names = ("d", "b", "a", "c")
    texts = dict(zip(sorted(names), TEXTS, strict=True)) | {"more": "not asked for"}
    found = of_texts(texts, names, sizes)
    assert (found.names, found.kind, found.ease) == (names, "BM25", None)
    assert found.sizes.tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(found.rows, plain([texts[name] for name in names]), rtol=1e-5)


def test_texts_of_items_are_those_of_their_task():
    scores = simulate(6, 30, seed=1)
    found = of_items(scores)
    together = [
        " ".join(scores.items["text"][scores.items["task"] == task]) for task in scores.tasks
    ]
    np.testing.assert_allclose(found.rows, plain(together), rtol=1e-5)
    assert found.sizes.tolist() == [(scores.items["task"] == task).sum() for task in scores.tasks]


def test_texts_that_lack():
    with pytest.raises(MethodError, match=r"2 tasks.*'b'.*'c'"):
        of_texts({"a": "x"}, ("a", "b", "c"), np.ones(3, dtype=int))
    with pytest.raises(MethodError, match=r"'2'\. of 3"):
        bm25(["a", " \n ", "b"])
    scores = simulate(6, 30, seed=1)
    scores = replace(scores, items=scores.items.drop(columns="text"))
    with pytest.raises(MethodError, check=lambda error: error.kind == "missing"):
        of_items(scores)
