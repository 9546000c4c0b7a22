"""Benjamini and Hochberg's rule: the textbook's answers, and the rate that it promises."""

import numpy as np
import pytest

from fewbench.algorithms.soundness.false_discovery import benjamini_hochberg


def test_it_is_the_textbook():
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.5, np.nan])
    # 0.005 ≤ 0.01, 0.01 ≤ 0.02, 0.03 ≤ 0.03, 0.04 ≤ 0.04, 0.5 > 0.05
    assert benjamini_hochberg(p, 0.05).tolist() == [True, True, True, True, False, False]


def test_a_larger_p_below_its_line_takes_the_smaller_along():
    assert benjamini_hochberg(np.array([0.03, 0.04, 0.045]), 0.05).all()
    assert not benjamini_hochberg(np.array([0.03, 0.04, 0.055]), 0.05).any()


def test_ties_go_together_and_nothing_is_fine():
    assert benjamini_hochberg(np.array([0.02, 0.02, 0.9, 0.9]), 0.05).sum() == 2
    assert not benjamini_hochberg(np.array([np.nan]), 0.05).any()
    assert not benjamini_hochberg(np.array([]), 0.05).any()


@pytest.mark.parametrize("true", [0, 10])
def test_the_share_of_wrong_ones_is_what_was_asked_for(true):
    rng = np.random.default_rng(0)
    wrong = []
    for _ in range(2000):
        p = rng.random(50)
        p[:true] **= 12
        found = benjamini_hochberg(p, 0.1)
        wrong.append(found[true:].sum() / max(found.sum(), 1))
    assert np.mean(wrong) == pytest.approx(0.1 * (50 - true) / 50, abs=0.02)
