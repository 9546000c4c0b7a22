"""The N-set and its calibrated estimate against the equations written out."""

import itertools

import numpy as np
import pytest

from fewbench_papers.algorithms.clustering.distances import item_distances
from fewbench_papers.tailoredbench import tailored
from fewbench_papers.tailoredbench.tailored import Tailored, make_native_set


def table(seed=0, n_items=40, n_models=9):
    rng = np.random.default_rng(seed)
    easy, able = rng.normal(size=n_items), rng.normal(size=n_models)
    return (rng.random((n_items, n_models)) < 1 / (1 + np.exp(-easy[:, None] - able))) * 1.0


def made(k=6, seed=0, columns=None, probe=(3, 11, 20), **kind):
    columns = table() if columns is None else columns
    rng = np.random.default_rng(seed)
    return make_native_set(Tailored(**kind), columns, np.array(probe), k, rng)


@pytest.mark.parametrize("printed", [False, True])
def test_new_items_are_as_many_as_asked_for_and_not_of_the_probe_set(printed):
    for k in (0, 1, 6, 37):
        found = made(k, printed=printed)
        assert len(set(found.new.tolist())) == k
        assert not {3, 11, 20} & set(found.new.tolist())
        assert set(found.medoids.tolist()) == {*found.new.tolist(), 3, 11, 20}


def test_every_item_is_given_to_one_of_its_nearest_medoids():
    columns = table()
    found = made(columns=columns)
    to_medoids = item_distances(columns, standardise=True)[:, found.medoids]
    nearest = to_medoids == to_medoids.min(axis=1, keepdims=True)
    assert not found.share[~nearest].any()
    assert (np.sort(found.share, axis=1)[:, -2:] == [0, 1]).all()


def test_the_swap_search_finds_the_best_two_beside_the_anchors():
    """Against every pair of items, on a table small enough to try all."""
    columns = table(5, n_items=14)
    distances = item_distances(columns, standardise=True)
    pairs = itertools.combinations([i for i in range(14) if i != 4], 2)
    best = min(distances[:, [4, *pair]].min(axis=1).sum() for pair in pairs)
    found = [made(2, seed, columns, probe=[4]) for seed in range(20)]
    costs = [distances[:, one.medoids].min(axis=1).sum() for one in found]
    assert min(costs) == pytest.approx(best, rel=1e-5)


def test_swaps_are_cheaper_than_alternation_and_than_swaps_among_few(monkeypatch):
    columns = table(2, n_items=120, n_models=12)
    distances = item_distances(columns, standardise=True)

    def cost(**kind):
        found = [made(8, seed, columns, **kind) for seed in range(6)]
        return np.mean([distances[:, one.medoids].min(axis=1).sum() for one in found])

    every = cost()
    assert every < cost(printed=True)
    monkeypatch.setattr(tailored, "CANDIDATES", 10)
    assert every <= cost()


def test_expected_scores_are_those_of_the_equations():
    """Eq. 8-9, an item at a time."""
    found = made()
    for answers in ((np.arange(40) % 2) * 1.0, np.zeros(40), np.ones(40)):
        said = found.expected(answers)
        for item, shares in enumerate(found.share):
            medoid = found.medoids[shares.argmax()]
            ratio = (found.mean[item] + 0.5) / (found.mean[medoid] + 0.5)
            assert said[item] == pytest.approx((answers[medoid] + 0.5) * ratio - 0.5, abs=1e-6)


def test_which_of_equally_near_medoids_stands_for_an_item_is_drawn_not_read_off_the_table():
    """Items 0 to 9 are the same: each is at distance 0 of every medoid among them."""
    columns = table(n_items=30)
    columns[:10] = columns[0]
    drawn = set()
    for seed in range(40):
        found = made(0, seed, columns, probe=(2, 5, 8, 20))
        (medoid,) = np.unique(found.medoids[found.share[:10].argmax(axis=1)])
        drawn.add(int(medoid))
    assert drawn == {2, 5, 8}
