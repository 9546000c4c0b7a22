"""What only an ablation or a losing baseline needs is not in the package, and runs beside it."""

import pytest

from fewbench.errors import MethodError
from fewbench.methods import find_method
from papers.methods import METHODS, find

HERE = (
    *("tailored(natives=all)", "tailored(natives=dynamic)", "tailored(anchored=false)"),
    *("tailored(metric=cosine)", "tailored(calibrate=false)", "tailored(ties=shared)"),
    *("tailored(restarts=5)", "tailored(corrected=true)", *METHODS),
)
"""Read by `find`, as rows of the record name them."""
NOWHERE = (
    *("tailored(search=swaps)", "tailored(standardise=false)", "tailored(inclusive=false)"),
    *("tailored(clip=false)", "pds(normalise=true)+signature+forest"),
    *("collaborative(importance=variance)", "collaborative(weighted=true)"),
    *("bento-sim(matrix=text,scaling=none)+mean", "bento-sim(matrix=text,distance=cosine)+mean"),
    *("bento-sim(matrix=text,match=0.01)+mean", "bento-sim(matrix=text,exact=true)+mean"),
)
"""Settings that nothing needed."""


@pytest.mark.parametrize("text", HERE)
def test_a_method_of_the_papers_alone_is_unknown_to_the_package(text):
    assert find(text).describe() == text
    with pytest.raises(MethodError):
        find_method(text)


@pytest.mark.parametrize("text", NOWHERE)
def test_settings_that_nothing_needed_are_gone(text):
    with pytest.raises(MethodError):
        find(text)
