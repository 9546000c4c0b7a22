"""The field study in small: whole stories through the command line, with known truth."""

from collections import defaultdict
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow
WORLDS = {"agents": 3, "logs": 1, "ordinary": 2, "outages": 1, "restarts": 1}
"""Of the stories that train few models, or none."""
UNKNOWABLE = {"answers: errors, not scores"}


@pytest.mark.parametrize("name", WORLDS)
def test_a_story_ends_as_promised(name, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    story, _ = import_module("stories").STORIES[name]
    found = import_module("stories.found")
    values = defaultdict(list)
    for row in story(WORLDS[name]):
        if row.measure != found.SILENT or row.case not in UNKNOWABLE:
            values[row.measure].append(row.value)
    for measure in (found.SILENT, found.LOST, found.ALARM):
        assert not np.any(values[measure]), measure
    assert sum(values[found.WRONG]) <= 2
    assert np.mean(values[found.COVERED]) >= 0.7
    assert np.mean(values[found.SAVED]) >= 0.5


def test_seams_keep_their_levels(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    seams, found = import_module("stories.seams"), import_module("stories.found")
    rows = list(seams.seams(1))
    values = defaultdict(list)
    for row in rows:
        values[row.measure].append(row.value)
    assert np.mean(values[found.COVERED]) >= 0.85
    assert np.mean(values[found.WRONG]) <= 0.1
    assert "| width | all |" in seams.table(rows)
