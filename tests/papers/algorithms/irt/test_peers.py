"""The truth is found at least as well as by packages made for it."""

import importlib

import numpy as np
import pytest
from scipy.optimize import fminbound

from fewbench_papers.algorithms.irt import fit_irt

MODELS, ITEMS = 300, 30
SEEDS = 3
WORSE = 0.005


def alike(x, y):
    return np.corrcoef(x, y)[0, 1]


def found(truth, a, b, ability):
    """Correlations with the truth."""
    return [
        alike(a, truth.a[:, 0]),
        alike(b, truth.b),
        alike(ability, truth.ability[:, 0]),
    ]


@pytest.fixture
def girth(monkeypatch):
    package = pytest.importorskip("girth", reason="girth, a package for comparison, is missing")
    # It sets an element to an array of one number, which numpy 2.4 no longer takes.
    module = importlib.import_module("girth.unidimensional.dichotomous.rasch_mml")
    monkeypatch.setattr(module, "fminbound", lambda *a, **k: np.ravel(fminbound(*a, **k))[0])
    return package


def of_girth(girth, values):
    """Discriminations, intercepts and abilities."""
    answers = values.T.astype(int)
    said = girth.twopl_mml(answers)
    a, b = said["Discrimination"], said["Difficulty"]
    return a, -a * b, girth.ability_eap(answers, b, a)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning:girth.*")
@pytest.mark.filterwarnings("ignore::RuntimeWarning:scipy.*")
def test_as_well_as_by_girth(simulated, girth):
    ours, theirs = [], []
    for seed in range(SEEDS):
        truth = simulated(seed, MODELS, ITEMS)
        model = fit_irt(truth.values)
        own = (model.discrimination[:, 0], model.intercept, model.sources.means[:, 0])
        ours.append(found(truth, *own))
        theirs.append(found(truth, *of_girth(girth, truth.values)))
    less = np.mean(theirs, axis=0) - np.mean(ours, axis=0)
    assert (less < WORSE).all(), dict(zip(["a", "b", "ability"], less.round(4), strict=True))
