"""TF-IDF and SVD against the definition, and clusters of items by their texts."""

from math import log

import numpy as np
import pytest

from fewbench.errors import MethodError
from fewbench.scores import from_arrays
from fewbench.testing import simulate
from fewbench.testing.conformance import StaticConformance
from papers.methods import find
from papers.methods.semantic import tfidf_embeddings

TEXTS = simulate(2, 300, seed=3).items["text"].tolist()


def naive(texts):
    """(1 + ln count) · (ln((1 + n) / (1 + texts with the word)) + 1), rows of length 1."""
    split = [text.lower().split() for text in texts]
    words = sorted({word for text in split for word in text})
    within = {word: sum(word in text for text in split) for word in words}
    rows = np.array(
        [
            [
                (1 + log(text.count(word))) * (log((1 + len(texts)) / (1 + within[word])) + 1)
                if word in text
                else 0.0
                for word in words
            ]
            for text in split
        ]
    )
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_few_texts_keep_their_weighted_words():
    np.testing.assert_allclose(tfidf_embeddings(TEXTS[:40], 100), naive(TEXTS[:40]), atol=1e-12)


def test_many_texts_keep_the_largest_singular_vectors():
    u, s, _ = np.linalg.svd(naive(TEXTS), full_matrices=False)
    kept = (u * s)[:, :10]
    kept /= np.linalg.norm(kept, axis=1, keepdims=True)
    found = tfidf_embeddings(TEXTS, 10)
    assert found.shape == (300, 10)
    # Randomised: the last of the ten are close to the next, and found nearly.
    assert np.abs(found @ found.T - kept @ kept.T).mean() < 0.05
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)


def test_all_dimensions_have_the_distances_of_the_words():
    words = len({word for text in TEXTS for word in text.split()})
    assert 100 < words - 1 < 300
    found, exact = tfidf_embeddings(TEXTS, words - 1), naive(TEXTS)
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=0.02)


@pytest.mark.parametrize("dimensions", [5, 1000])
def test_the_same_text_is_the_same_row_to_the_last_bit(dimensions):
    rows = tfidf_embeddings(TEXTS + TEXTS[::3], dimensions)
    assert np.array_equal(rows[300:], rows[:300:3])


def test_signs_and_single_letters_tell():
    rows = tfidf_embeddings(["3 + 4", "3 - 4", "x?", "日 本"], 100)
    assert len(np.unique(rows, axis=0)) == 4


class TestSemantic(StaticConformance):
    estimates = False
    exact = False

    @pytest.fixture
    def method(self):
        return find("clustering-semantic")


def test_an_item_of_each_topic_is_chosen_and_texts_are_needed():
    topics = ["apples and pears", "trains, buses", "3 + 4 =", "the moon and stars"]
    texts = [f"What of {topics[n % 4]}?" for n in range(40)]
    values = np.random.default_rng(0).integers(0, 2, (12, 40)) * 1.0
    scores = from_arrays(values, models=[f"m{m}" for m in range(12)])
    named = scores.changed(items=scores.items.assign(text=texts))
    (items,) = find("clustering-semantic").start(named, 4, 0, ["new"]).ask().values()
    assert sorted(items % 4) == [0, 1, 2, 3]
    with pytest.raises(MethodError, match="40 of 40 items"):
        find("clustering-semantic").start(scores, 4, 0, ["new"])
