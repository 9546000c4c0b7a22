"""Every method of the catalogue keeps the promises; a new line there is tested by itself."""

import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from fewbench.evaluation import Evaluation
from fewbench.methods import CATALOGUE, StaticMethod, find_method
from fewbench.testing import simulate
from fewbench.testing.conformance import (
    Asking,
    MethodConformance,
    StaticConformance,
    StaticSettings,
)
from fewbench.testing.quality import Quality
from fewbench.uncertainty.replay import replay

WRITTEN_OUT = [
    "pds(models=6,stratified=true)+pca(components=4)+knn(k=3)",
    "stratified+subset-score+linear",
]


def lighter(method):
    """The same with fewer trees: what is promised does not hang on their number."""
    text = method.describe()
    return find_method(f"{text}(trees=8)") if text.endswith("+forest") else method


def parts(name):
    method = CATALOGUE[name].method
    return {method.selector, method.predictor} if isinstance(method, StaticMethod) else {name}


def smallest_cover():
    """Names of the catalogue with every method that adapts, every selector and every predictor."""
    kept = dict.fromkeys(CATALOGUE)
    for name in CATALOGUE:
        others = set[object]().union(*(parts(other) for other in kept if other != name))
        if parts(name) <= others:
            del kept[name]
    return list(kept)


# One session class serves all static methods: its promises, and intervals, are tried on a few.
WHOLE = ["random", "random-ridge", "disco-jsd-ridge", "tailored"]
ADAPTIVE = [name for name in CATALOGUE if parts(name) == {name} and name not in WHOLE]
COVER = smallest_cover()
STATIC = [name for name in COVER if name not in {*WHOLE, *ADAPTIVE}]
PAIRED = [name for name in CATALOGUE if name not in {*WHOLE, *ADAPTIVE, *STATIC}]
"""Selectors and predictors that others have too: what can break is how the two work together."""

# Regressions over models, splines and thresholds do not give back a score that they are told whole;
# of medoids, those of equal items share a cluster and its weight.
INEXACT = {
    *("random-linear", "random-ridge", "kmedoids-ridge", "random-search-ridge", "greedy-ridge"),
    *(
        "lasso-ridge",
        "double-optimize",
        "anchor-points",
        "anchor-points-correlation",
    ),
    *(
        "metabench",
        "metabench-unfiltered",
        "best-for-validation",
        "ridge-tasks",
        "task-means-ridge",
    ),
    *(name for name in CATALOGUE if name.startswith(("disco-", "random-signature-"))),
}

# Samples, and choices of tasks or of clusters; the others choose items by what they tell.
UNINFORMED = {
    *("aipw", "gp-irt-random", "ssepy", "ssepy-difference", "tailored-as-printed"),
    *("bm25-sim", "bm25-le", "fitted-tasks", "ridge-tasks", "task-means-ridge"),
    *(name for name in CATALOGUE if name.startswith("random") and "search" not in name),
}


class OfCatalogue:
    @pytest.fixture
    def method(self, request):
        self.exact = request.param not in INEXACT
        self.informed = request.param not in UNINFORMED
        return lighter(CATALOGUE[request.param].method)


@pytest.mark.parametrize("method", WHOLE, indirect=True)
class TestWhole(OfCatalogue, MethodConformance):
    pass


@pytest.mark.parametrize("method", ADAPTIVE, indirect=True)
class TestAdaptive(OfCatalogue, MethodConformance):
    estimates = False


@pytest.mark.parametrize("method", STATIC, indirect=True)
class TestStatic(OfCatalogue, StaticConformance):
    estimates = False


@pytest.mark.parametrize("method", PAIRED, indirect=True)
class TestPaired(OfCatalogue, Quality):
    pass


class TestWrittenOut(StaticConformance):
    estimates = False

    @pytest.fixture(params=WRITTEN_OUT)
    def method(self, request):
        return find_method(request.param)


# Settings that no name of the catalogue has, and parts beside which none stands there.
SETTINGS = [
    "medoids(metric=correlation)+anchor-lines(logit=true)",
    "random+imputation(rank=3,steps=20)",
    "random+aipw(alpha=none,folds=5)",
    "stratified+aipw(folds=2)",
    "random+anchor-ratio",
    "tasks-fit(share=0.3)+stratified+answers+ridge",
    "informative(subsets=50)+ability(uses=ability)",
    "random+ability",
    "random+completion(rank=2)",
    "random+difference",
    "strata(strata=4,allocation=neyman)+difference(tune=true)",
    "strata(proxy=probabilities)+difference(proxy=probabilities)",
]


class TestSettings(StaticSettings):
    estimates = False

    @pytest.fixture(params=SETTINGS)
    def method(self, request):
        self.needs_probabilities = "probabilities" in request.param
        return find_method(request.param)


class TestForestAsPublished(Asking):
    @pytest.fixture
    def method(self):
        return CATALOGUE["disco-pds-rf"].method


def test_nothing_of_the_catalogue_is_left_out():
    assert {*WHOLE, *ADAPTIVE, *STATIC, *PAIRED} == set(CATALOGUE)
    tried = set().union(*map(parts, [*WHOLE, *ADAPTIVE, *STATIC]))
    assert tried == set().union(*map(parts, CATALOGUE))


def play_all():
    table = simulate(15, 30, options=3, seed=2)
    sources, targets = table.take(models=range(12)), table.take(models=range(12, 15))
    for name, entry in CATALOGUE.items():
        said = replay(entry.method, sources, targets, 6, 4)
        yield name, said.scores.tolist(), [items.tolist() for items in said.items]


def test_same_seed_same_answer_in_another_process_with_other_threads_and_hashes():
    program = f"""
import json
from fewbench.methods import CATALOGUE
from fewbench.uncertainty.replay import replay
from fewbench.testing import simulate
{inspect.getsource(play_all)}
print(json.dumps(list(play_all())))
"""
    threads = "1" if os.environ.get("OMP_NUM_THREADS") == "2" else "2"
    env = dict(os.environ, PYTHONHASHSEED="7", OMP_NUM_THREADS=threads)
    ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
    for here, there in zip(play_all(), json.loads(ran.stdout), strict=True):
        assert here[0] == there[0]
        assert here[2] == there[2], f"{here[0]} asks other items"
        np.testing.assert_allclose(here[1], there[1], atol=1e-9, rtol=0, err_msg=here[0])


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_evaluation_is_opened_again_by_the_name_of_its_method(name, tmp_path):
    table = simulate(12, 20, seed=1)
    evaluation = Evaluation(table, name, 5, ["new"], seed=3)
    evaluation.save(tmp_path)
    opened = Evaluation.open(tmp_path, table)
    assert opened.method == CATALOGUE[name].method
    assert opened.ask() == evaluation.ask()


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_says_what_it_does_and_whose_it_is(name):
    entry = CATALOGUE[name]
    assert 10 < len(entry.summary) < 100
    assert entry.citation
    assert name == name.lower()
    assert " " not in name
