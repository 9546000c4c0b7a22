from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fewbench.report.identity import looks
from fewbench.report.panels import places, thin
from fewbench.report.results import Estimate
from fewbench.report.scales import Scale, nice_range, nice_ticks, spread
from fewbench.report.svg import drawing, fit, text_width, wrap


def test_scales_map_their_ends():
    for log in (False, True):
        scale = Scale(10, 1000, 300, 20, log=log)
        assert scale(10) == 300
        assert scale(1000) == pytest.approx(20)
        assert scale.clamp(5000) == pytest.approx(20)
    assert Scale(10, 1000, 0, 1, log=True)(100) == pytest.approx(0.5)
    assert Scale(5, 5, 0, 10)(5) == 5


@pytest.mark.parametrize(("low", "high"), [(0, 0.07), (0, 9.3), (13, 97), (0.2, 0.2), (0, 0)])
def test_ticks_are_round_and_few(low, high):
    ticks = nice_ticks(low, high)
    assert len(ticks) <= 6
    assert all(low - 1e-9 <= t <= high + 1e-9 for t in ticks)
    a, b = nice_range(low, high)
    assert a <= low <= high <= b
    assert a < b


def test_labels_never_touch_and_stay_inside():
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(1, 13))
        sizes = rng.choice([15.0, 28.0], n)
        low, high = 20.0, 20.0 + sizes.sum() + rng.uniform(0, 100)
        wanted = rng.uniform(low, high, n) ** rng.choice([0.5, 1])
        spots = np.array(spread(list(wanted), list(sizes), low, high))
        edges = sorted(zip(spots - sizes / 2, spots + sizes / 2, strict=True))
        assert edges[0][0] >= low - 1e-6
        assert edges[-1][1] <= high + 1e-6
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(edges))


def test_long_names_keep_both_ends():
    name = "disagreement-maximising items, kernel ridge"
    short = fit(name, 120, 12)
    assert text_width(short, 12) <= 120
    assert short.startswith("disa")
    assert short.endswith("ridge")
    lines = wrap(name, 120, 12)
    assert len(lines) == 2
    assert all(text_width(line, 12) <= 120 for line in lines)
    assert wrap("", 50, 12) == []


def test_looks_are_distinct_and_do_not_depend_on_results():
    names = [f"m{i}" for i in range(11)]
    found = looks(["random", *names], "random")
    assert len({(v.cls, v.shape, v.hollow) for v in found.values()}) == 12
    assert found["random"].cls == "ref"
    assert looks(names, None)["m3"] == found["m3"]


def test_thinning_keeps_the_spread():
    many = [Estimate(str(i), i / 999, 0.5, 0, 1) for i in range(1000)]
    kept = thin(many)
    assert len(kept) == 400
    assert kept[0].truth == 0
    assert kept[-1].truth > 0.99
    assert thin(many[:9]) == many[:9]


def test_equal_scores_share_a_place():
    assert places([0.5, 0.7, 0.5, 0.1]) == [2.5, 1, 2.5, 4]


def test_drawings_describe_themselves():
    shown = drawing(10, 20, "a <b>")
    assert 'role="img"' in shown
    assert 'aria-label="a &lt;b&gt;"' in shown
    assert "<title>a &lt;b&gt;</title>" in shown
