"""Choosers as they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import MethodError
from fewbench.tasks import CHOOSERS, describe_chooser, read_chooser
from fewbench.tasks.choosers import SHORT, BentoLe, BentoSim, ListedTasks, TaskMedoids


@given(
    st.sampled_from(["centre", "none", "sum", "z-score"]),
    st.sampled_from(["euclidean", "cosine", "chebyshev"]),
    st.booleans(),
    st.one_of(st.none(), st.floats(0, 1)),
    st.integers(0, 20),
    st.floats(1.01, 1000),
)
def test_what_is_described_is_read_back(scaling, distance, flag, match, components, t):
    for chooser in (
        BentoSim(scaling, distance, flag, match, "last"),
        BentoLe(scaling, distance, not flag, match, "first", components, flag, t),
        TaskMedoids("le", scaling, distance, components, t),
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


def test_short_names_take_settings():
    assert read_chooser("bento-le(components=5,tie=last)") == BentoLe(components=5, tie="last")
    assert read_chooser("km-sim(distance=cosine)") == TaskMedoids("sim", distance="cosine")
    assert read_chooser("km-sim(space=le)") == TaskMedoids("le")
    assert read_chooser("bento-sim(match=none)") == BentoSim()
    assert read_chooser("list(names=a|b%2C)") == ListedTasks("a|b%2C")


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
        ("bento-sim(match=nan)", "not a finite number"),
        ("bento-sim(t=2)", "has no setting 't'"),
        ("bento-le(components=2.5)", "components=2.5"),
        ("bento-le(components=3,components=4)", "set twice"),
        ("kmedoids(space=odd)", "space=odd"),
        ("random(k=3)", "has no setting 'k'"),
    ],
)
def test_what_cannot_be_read(text, said):
    with pytest.raises(MethodError, match=said):
        read_chooser(text)
