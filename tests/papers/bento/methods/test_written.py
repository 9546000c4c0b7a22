"""Choosers as they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import MethodError
from fewbench_papers.bento import read_chooser
from fewbench_papers.bento.choosers import CHOOSERS, SHORT, BentoLe, BentoSim, describe_chooser


@given(
    st.sampled_from(["centre", "sum", "z-score"]),
    st.booleans(),
    st.integers(0, 20),
    st.floats(1.01, 1000),
)
def test_what_is_described_is_read_back(scaling, flag, components, t):
    for chooser in (
        BentoSim(scaling, "last"),
        BentoLe(scaling, "first", components, flag, t),
    ):
        assert read_chooser(describe_chooser(chooser)) == chooser


@pytest.mark.parametrize("name", CHOOSERS)
def test_without_settings_a_name_alone(name):
    assert describe_chooser(CHOOSERS[name]()) == name
    assert read_chooser(name) == CHOOSERS[name]()


@pytest.mark.parametrize("name", SHORT)
def test_short_names_are_of_choosers_with_their_settings(name):
    chooser = read_chooser(name)
    full, settings = SHORT[name]
    assert type(chooser) is CHOOSERS[full]
    assert all(getattr(chooser, key) == value for key, value in settings.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bento", "unknown task chooser 'bento'.*bento-sim"),
        ("random+mean", "several parts"),
        ("bento-sim(", "cannot read"),
        ("", "cannot read"),
        ("bento-sim(components=5)", "has no setting 'components'"),
        ("bento-sim(scaling)", "has no value"),
        ("bento-sim(scaling=log)", "scaling=log"),
        ("bento-le(t=nan)", "not a finite number"),
        ("bento-sim(t=2)", "has no setting 't'"),
        ("bento-le(components=2.5)", "components=2.5"),
        ("bento-le(components=3,components=4)", "set twice"),
        ("random(k=3)", "has no setting 'k'"),
    ],
)
def test_what_cannot_be_read(text, said):
    with pytest.raises(MethodError, match=said):
        read_chooser(text)
