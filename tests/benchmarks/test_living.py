"""A benchmark that lives on: its stories in small."""

from collections import defaultdict
from importlib import import_module

import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("name", "size"), [("living", 8), ("year", 4)])
def test_a_run_outlives_its_benchmark(name, size):
    if name == "living":
        pytest.importorskip("lm_eval", reason="needs the extra lm-eval")
    found = import_module("stories.found")
    values = defaultdict(list)
    for row in import_module("stories").STORIES[name][0](1, size):
        values[row.measure].append(row.value)
    assert not np.any(values[found.LOST]), "an answer was run twice"
    assert not np.any(values[found.SILENT])
    assert sum(values[found.WRONG]) == 0
    assert np.mean(values[found.COVERED]) >= 0.7
