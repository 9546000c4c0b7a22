"""The made-up texts of simulated items."""

import numpy as np

from fewbench.testing import simulate


def test_words_go_with_the_task_and_with_the_difficulty():
    scores = simulate(200, 120, 2, seed=1)
    texts = [set(text.split()) for text in scores.items["text"]]
    share = np.array([[len(a & b) for b in texts] for a in texts], dtype=float)
    np.fill_diagonal(share, np.nan)
    same = np.equal.outer(scores.task_of, scores.task_of)
    assert np.nanmean(share[same]) > np.nanmean(share[~same]) + 0.5
    hard = scores.values.mean(axis=0)
    close = np.abs(np.subtract.outer(hard, hard)) < 0.1
    assert np.nanmean(share[same & close]) > np.nanmean(share[same & ~close]) + 0.2


def test_texts_are_of_the_items_and_not_of_what_was_run():
    one, other = simulate(5, 40, seed=2), simulate(5, 40, seed=2, missing=0.3, options=4)
    assert one.items["text"].tolist() == other.items["text"].tolist()
    assert one.items["text"].tolist() != simulate(5, 40, seed=3).items["text"].tolist()
