"""The grammar of methods: names, settings, order, and back to text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import MethodError
from fewbench.methods import CATALOGUE, StaticMethod, find_method
from fewbench.methods.parts import STAGES
from fewbench.methods.prediction.features import PCA, AnswerFeatures, NoReduction, Signature
from fewbench.methods.prediction.mean import Mean
from fewbench.methods.prediction.regression import Regression, Ridge
from fewbench.methods.selection.random import Random
from fewbench_papers.anchor_points.clusters import Medoids
from fewbench_papers.disco.disagreement import JensenShannon, PredictiveDiversity
from fewbench_papers.disco.regressors import Forest, Neighbours

positive = st.integers(1, 10**6)
selectors = st.one_of(
    st.builds(Random),
    st.builds(Medoids, metric=st.sampled_from(["manhattan", "cosine"]), standardise=st.booleans()),
    st.builds(JensenShannon, models=st.none() | positive, stratified=st.booleans()),
    st.builds(PredictiveDiversity, models=st.none() | positive),
)
numbers = st.floats(0, 1e300)
regressors = st.one_of(
    st.builds(Ridge, alpha=st.none() | numbers),
    st.builds(Forest, trees=positive),
    st.builds(Neighbours, k=positive),
)
reductions = st.one_of(st.builds(NoReduction), st.builds(PCA, components=positive))
features = st.one_of(st.builds(AnswerFeatures), st.builds(Signature))
predictors = st.builds(Mean) | st.builds(
    Regression, regressor=regressors, features=features, reduction=reductions
)


@given(st.builds(StaticMethod, selector=selectors, predictor=predictors))
def test_a_description_is_read_back_as_the_same_method(method):
    assert find_method(method.describe()) == method


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_is_found_by_name_and_by_description(name):
    method = CATALOGUE[name].method
    assert find_method(name) is method
    assert find_method(f" {name} ") is method
    assert find_method(method.describe()).describe() == method.describe()


def test_every_part_can_be_written():
    for selector in STAGES["selector"]:
        assert find_method(f"{selector}+mean").describe() == f"{selector}+mean"
        for regressor in STAGES["regressor"]:
            assert isinstance(find_method(f"{selector}+{regressor}"), StaticMethod)
    for feature in STAGES["features"]:
        for reduction in STAGES["reduction"]:
            find_method(f"random+{feature}+{reduction}+ridge")


def test_names_of_parts_and_of_methods_are_all_different():
    names = [name for parts in STAGES.values() for name in parts]
    assert len(names) == len(set(names))
    # A part never stands by itself, so these by themselves are the methods.
    both = {"random", "aipw", "p-irt"}
    assert not {name for name in CATALOGUE if name in names} - both


def test_defaults_of_what_is_left_out():
    method = find_method("pds + forest")
    assert method == StaticMethod(PredictiveDiversity(), Regression(Forest(), Signature()))
    assert method.predictor.reduction == NoReduction()


def test_settings_are_typed():
    method = find_method("pds(models=100, stratified=true)+pca(components=64)+ridge(alpha=none)")
    assert method.selector == PredictiveDiversity(models=100, stratified=True)
    assert method.predictor.reduction == PCA(64)
    assert method.predictor.regressor == Ridge(None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "unknown method 'nonsense'"),
        ("tinyBenchmarks", "did you mean gp-irt-anchor, or a variant: anchor-irt, p-irt"),
        ("anchor points", "did you mean anchor-points?"),
        ("disko", "did you mean disco-pds-rf, or a variant: disco-pds-knn"),
        ("auto", "auto is not a method"),
        ("random+nonsense", "unknown method or part 'nonsense'"),
        ("", "cannot read"),
        ("random++mean", "cannot read"),
        ("random+ridge(alpha=1", "cannot read"),
        ("Random+mean", "cannot read"),
        ("random+ridge(alpha)", "has no value"),
        ("random+ridge(beta=1)", "no setting 'beta'"),
        ("random+knn(k=many)", "knn(k=many)"),
        ("medoids(metric=taxi)+mean", "medoids(metric=taxi)"),
        ("mean+random", "out of place"),
        ("random+random+mean", "out of place"),
        ("random+ridge+pca", "out of place"),
        ("answers+ridge", "has no selector"),
        ("random+answers", "has no predictor"),
        ("random+answers+mean", "works on plain answers"),
        ("random-ridge(alpha=1)", "fixed settings"),
    ],
)
def test_what_cannot_be_read_is_said(text, says):
    with pytest.raises(MethodError) as caught:
        find_method(text)
    assert says in str(caught.value)
