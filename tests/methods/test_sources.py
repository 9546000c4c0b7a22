"""Independent source models are families, by one count, and what that means for estimates."""

import json
from pathlib import Path

import numpy as np
import pytest

import fewbench
from fewbench.checks import audit
from fewbench.methods.sources import are_alike, independent_sources, learned_from, source_groups
from fewbench.readers import import_results
from fewbench.scores import from_arrays
from fewbench.study.splits import SplitSettings, make_split
from fewbench.testing import simulate, simulate_run

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
real = pytest.mark.skipif(
    not (DATA / "training_runs.npz").exists(), reason="training_runs.npz is not beside the checkout"
)


def checkpoints(n=24, items=300):
    """Checkpoints of one training run, in a table without families."""
    table = simulate_run(n, items, n_models=2, seed=3)
    run = table.take(models=range(2, 2 + n))
    return run.changed(models=run.models.drop(columns="family")), table.take(models=[0])


def unnamed(scores):
    names = [f"m{at}" for at in range(scores.n_models)]
    return scores.changed(models=scores.models.set_axis(names))


def test_checkpoints_are_one_source_and_the_items_a_sample():
    """The result says so wherever its numbers are: text, repr, JSON, frame; audit counts alike."""
    sources, other = checkpoints()
    assert independent_sources(sources) == 1
    answers = dict(zip(other.item_ids, other.values[0], strict=True))
    result = fewbench.run(sources, budget=40, score=answers.get)
    estimate = result.estimates["target"]
    assert estimate.interval_kind == "sampled"
    warned = "24 models of 1 training run count as 1 independent source model, and 20 are needed"
    assert warned in estimate.warnings[0]
    for text in (
        str(result),
        json.dumps(estimate.to_dict()),
        result.to_frame()["warnings"].iloc[0],
    ):
        assert warned in " ".join(text.split())
    checked = audit(sources)
    assert checked.table["independent"] == 1
    found = checked.of_kind("independent-sources")
    assert found.severity == "caution"
    assert "24 models of 1 training run count as 1 independent" in found.what
    assert checked.of_kind("families").what.startswith("1 family by the models' names")
    assert [advice.when for advice in checked.use] == ["fewer than 20 independent source models"]


def test_models_that_ran_a_part_are_counted_alike_everywhere():
    """The audit, the choice of the method and the report; the errors have a number of their own."""
    table = simulate(45, 200, seed=1)
    cells = table.values.copy()
    cells[38:44, 60:] = np.nan
    sources = table.changed(values=cells).take(models=range(44))
    assert "38 models of 19 families count as 19 independent" in (
        audit(sources).of_kind("independent-sources").what
    )
    evaluation = fewbench.Evaluation(sources, budget=40)
    assert "38 of 44 source models ran half of the items or more, 19 of them independent" in (
        evaluation.reason
    )
    asked = evaluation.ask()["target"]
    evaluation.tell("target", dict.fromkeys(asked, 1.0))
    facts = next(part.facts for part in evaluation.page().sections if part.id == "basis")
    words = "44 models, of which 38 ran half of the items or more, 19 of them independent"
    assert facts["Source models"] == words


@pytest.mark.parametrize(("families", "kind"), [(19, "sampled"), (20, "held-out")])
def test_twenty_families_choose_items(families, kind):
    """However many models they have."""
    table = simulate(2 * families + 2, 200, seed=1)
    sources, target = table.take(models=range(2 * families)), table.values[-1]
    assert independent_sources(sources) == families
    answers = dict(zip(table.item_ids, target, strict=True))
    estimate = fewbench.run(sources, "fewbench-static", 40, score=answers.get).estimates["target"]
    assert estimate.interval_kind == kind


def test_runs_by_name_are_held_out_together():
    rng = np.random.default_rng(0)
    names = [f"{run}/step-{step}" for run in "ABCDE" for step in range(6)]
    scores = from_arrays((rng.random((30, 90)) < rng.random(90)).astype(float), models=names)
    assert len(np.unique(source_groups(scores))) == 5
    split = make_split(scores, SplitSettings("group"), 0, 0)
    runs = [{names[at][0] for at in part} for part in (split.sources, split.targets)]
    assert not runs[0] & runs[1]


@real
def test_models_of_a_run_whose_names_say_nothing_are_warned_of():
    scores = import_results(DATA / "training_runs.npz").scores
    run = scores.take(models=range(25))
    assert not are_alike(run)  # its family is known
    assert are_alike(unnamed(run))
    answers = dict(zip(scores.item_ids, scores.values[31], strict=True))
    estimate = fewbench.run(unnamed(run), "fewbench-static", 100, score=answers.get).estimates[
        "target"
    ]
    assert any("answer more alike than unrelated models" in text for text in estimate.warnings)
    assert audit(unnamed(run)).of_kind("answer-alike").severity == "caution"
    assert audit(run).of_kind("answer-alike") is None


def test_unrelated_models_are_not_warned_of():
    warned = 0
    for seed in range(20):
        table = simulate(50, 200, seed=seed)
        one_each = table.take(models=range(0, 50, 2))
        warned += are_alike(one_each.changed(models=one_each.models.drop(columns="family")))
    assert warned == 0


@real
def test_another_run_from_checkpoints_of_one():
    """25 checkpoints of run A as sources, the checkpoints of runs C and D as targets."""
    scores = import_results(DATA / "training_runs.npz").scores
    sources, covered, errors = scores.take(models=range(25)), 0, []
    for row in range(31, 43):
        answers = dict(zip(scores.item_ids, scores.values[row], strict=True))
        estimate = fewbench.run(sources, budget=150, score=answers.get).estimates["target"]
        full = float(scores.full_scores()[row])
        covered += estimate.interval.low <= full <= estimate.interval.high
        errors.append(abs(estimate.score - full))
    assert covered >= 11
    assert np.mean(errors) < 0.018


def test_a_fold_has_the_groups_of_its_own_models():
    """Also where a model that joins two copies is left out."""
    rng = np.random.default_rng(0)
    rows = (rng.random((60, 400)) < rng.random(400)).astype(float)
    for copy, at in ((1, 0), (2, 1), (7, 5), (50, 3)):  # 0, 1 and 2 are a chain
        rows[copy] = rows[at]
        rows[copy, 9 * copy : 9 * copy + 8] = 1 - rows[copy, 9 * copy : 9 * copy + 8]
    rows[20] = rows[21] = 1.0  # all right
    table = from_arrays(rows, models=[f"m{row}" for row in range(60)])
    assert len(np.unique(source_groups(table))) < 60 - 3
    for kept in (np.arange(60), np.delete(np.arange(60), [1, 21]), np.arange(59, 1, -2)):
        groups = source_groups(learned_from(table, kept))
        assert groups.tolist() == source_groups(table.take(models=kept)).tolist()
