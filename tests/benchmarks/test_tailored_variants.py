"""TailoredBench with other parts: each does what its name says, and keeps a method's promises."""

import numpy as np
import pytest
from scipy.spatial.distance import cityblock

from fewbench.methods import Answers, find_method
from fewbench.testing import simulate
from fewbench.testing.conformance import Settings
from fewbench.uncertainty.replay import replay
from fewbench_papers.algorithms.clustering.distances import item_distances
from fewbench_papers.tailoredbench.tailored import make_native_set
from papers.methods import find
from papers.methods.tailored import TailoredVariant

VARIANTS = [
    "tailored(company=sources,ties=shared,restarts=2)",
    "tailored(metric=cosine,natives=own,corrected=true)",
    "tailored(metric=correlation,natives=dynamic,calibrate=false)",
    "tailored(probe=2,anchored=false)",
]


class TestVariants(Settings):
    estimates = False

    @pytest.fixture(params=VARIANTS)
    def method(self, request):
        method = find(request.param)
        assert method.describe() == request.param
        return method


def tables(n_targets=4):
    table = simulate(20 + n_targets, 60)
    return table.take(models=np.arange(20)), table.take(models=np.arange(20, 20 + n_targets))


def test_without_other_parts_it_is_the_method_itself():
    sources, targets = tables()
    ours, theirs = (
        replay(method, sources, targets, 20, 0)
        for method in (TailoredVariant(), find_method("tailored"))
    )
    assert ours.scores.tolist() == theirs.scores.tolist()
    assert [items.tolist() for items in ours.items] == [items.tolist() for items in theirs.items]


@pytest.mark.parametrize("seed", range(2))
def test_numbers_of_native_sources_are_those_of_the_paper(seed):
    """Dynamic and own numbers of sources within the mean distance, a pair at a time."""
    rng = np.random.default_rng(seed)
    models = rng.integers(0, 2, (12, 5)) * 1.0
    distances = item_distances(models)
    mean = np.mean([cityblock(models[i], models[j]) for i in range(12) for j in range(i)])
    own = [sum(cityblock(models[t], models[s]) <= mean for s in range(9)) for t in (9, 10, 11)]
    average = int(np.mean(own))
    for kind, wanted in {
        "average": [average] * 3,
        "own": own,
        "dynamic": [max(n, average) for n in own],
        "all": [9] * 3,
    }.items():
        found = TailoredVariant(natives=kind).choose_natives(distances, 9)
        assert [len(one) for one in found] == [max(1, n) for n in wanted]


def made(k=6, probe=(3, 11, 20), **parts):
    rng = np.random.default_rng(0)
    columns = (rng.random((40, 9)) < rng.random((40, 1))) * 1.0
    method = TailoredVariant(**parts)
    return columns, make_native_set(method, columns, np.array(probe), k, np.random.default_rng(0))


def test_a_free_probe_set_is_no_medoid_and_shared_ties_are_shared():
    _, found = made(anchored=False)
    assert not {3, 11, 20} & set(found.medoids.tolist())
    assert len(found.medoids) == 6
    columns, found = made(ties="shared")
    to_medoids = item_distances(columns, standardise=True)[:, found.medoids]
    nearest = to_medoids == to_medoids.min(axis=1, keepdims=True)
    np.testing.assert_allclose(found.share, nearest / nearest.sum(axis=1, keepdims=True), rtol=1e-6)


def play(sources, targets, **parts):
    """A session of one target with all its answers, and the estimate."""
    (name,) = targets.model_ids
    session = TailoredVariant(natives="all", **parts).start(sources, 20, 0, [name])
    while wanted := session.ask():
        session.tell(name, Answers(wanted[name], targets.values[:1, wanted[name]]))
    return session, session.predict([name]).scores[0]


def test_corrected_by_what_the_estimate_errs_on_the_native_sources():
    sources, targets = tables(1)
    (_, plain), (session, corrected) = (play(sources, targets, corrected=c) for c in (False, True))
    chosen = session.native_set(np.arange(20))
    errs = [np.minimum(chosen.expected(row), 1.0) - row for row in sources.values]
    expected = np.where(session.record.scores("model-20") >= 0, 0, np.mean(errs, axis=0))
    assert expected.mean() != 0
    assert plain - corrected == pytest.approx(expected.mean(), abs=1e-12)


def test_uncalibrated_an_item_has_its_medoid_s_answer():
    sources, targets = tables(1)
    session, estimate = play(sources, targets, calibrate=False)
    chosen = session.native_set(np.arange(20))
    answers = session.record.scores("model-20")
    items = np.where(np.isnan(answers), answers[chosen.medoids[chosen.share.argmax(1)]], answers)
    assert estimate == pytest.approx(items.mean())
