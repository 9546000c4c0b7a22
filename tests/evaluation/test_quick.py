"""Opening a folder reads only the labels of its scores; cells when they are used."""

import numpy as np
import pytest

from fewbench import Evaluation, load_scores, save_scores
from fewbench.errors import ScoresError
from fewbench.scores import open_saved
from fewbench.testing import simulate


@pytest.fixture
def saved(tmp_path):
    return save_scores(simulate(25, 60, options=3), tmp_path / "scores.parquet")


def test_opened_scores_are_those_loaded(saved):
    whole, opened = load_scores(saved), open_saved(saved)
    assert "cells" not in vars(opened)
    assert (opened.n_models, opened.n_items, opened.tasks) == (25, 60, whole.tasks)
    assert opened.fingerprint == whole.fingerprint
    assert "cells" not in vars(opened)
    assert opened.probabilities.shape == whole.probabilities.shape
    assert opened.averaged("macro").fingerprint == whole.averaged("macro").fingerprint
    assert opened.take(models=[1, 2]).n_models == 2
    assert opened._hash(opened.models) == whole.digest


def test_asking_and_telling_read_no_cells(saved, tmp_path):
    started = Evaluation(load_scores(saved), "random-ridge", 8)
    started.ask()
    started.save(tmp_path / "run", saved)
    evaluation = Evaluation.open(tmp_path / "run")
    asked = evaluation.ask()["target"]
    assert evaluation.tell("target", dict.fromkeys(asked, 1.0)) == 0
    assert evaluation.ask() == {}
    assert "cells" not in vars(evaluation.scores)
    assert "method" not in vars(evaluation)
    assert evaluation.estimate()["target"].items_run == 8
    assert "cells" in vars(evaluation.scores)


def test_a_file_changed_after_it_was_opened_is_refused(saved):
    opened = open_saved(saved)
    save_scores(simulate(25, 60, seed=1), saved)
    with pytest.raises(ScoresError, check=lambda error: error.kind == "changed"):
        np.isnan(opened.values)
