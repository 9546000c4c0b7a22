"""The truth is found at least as well as by packages made for it."""

import importlib

import numpy as np
import pytest
from scipy.optimize import fminbound

from fewbench.algorithms.irt import fit_irt

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


@pytest.mark.filterwarnings("ignore")  # of torch and pyro
def test_as_well_as_by_py_irt(simulated, tmp_path):
    reason = "py-irt is missing; its pins exclude ours: pip install --no-deps py-irt"
    pytest.importorskip("py_irt", reason=reason)
    import json

    import pyro
    import torch
    from py_irt.config import IrtConfig
    from py_irt.training import IrtModelTrainer

    torch.set_num_threads(1)
    ours, theirs = [], []
    for seed in range(2):
        truth = simulated(seed, MODELS, ITEMS)
        model = fit_irt(truth.values)
        own = (model.discrimination[:, 0], model.intercept, model.sources.means[:, 0])
        ours.append(found(truth, *own))
        path = tmp_path / f"{seed}.jsonlines"
        rows = (
            {"subject_id": str(row), "responses": {str(k): int(v) for k, v in enumerate(values)}}
            for row, values in enumerate(truth.values)
        )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        pyro.set_rng_seed(seed)
        config = IrtConfig(model_type="2pl", epochs=2000, priors="hierarchical")
        trainer = IrtModelTrainer(data_path=path, config=config, verbose=False)
        trainer.train()
        said = trainer.last_params  # models and items stand as they were first read
        a, b = np.array(said["disc"]), np.array(said["diff"])
        theirs.append(found(truth, a, -a * b, np.array(said["ability"])))
    less = np.mean(theirs, axis=0) - np.mean(ours, axis=0)
    assert (less < WORSE).all(), dict(zip(["a", "b", "ability"], less.round(4), strict=True))
