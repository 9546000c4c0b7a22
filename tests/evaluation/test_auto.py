"""Method `auto`: chosen by the sources, never by noise, and recorded by its real name."""

import numpy as np
import pytest

from fewbench import Evaluation, Stop, Subset, compare
from fewbench.errors import EvaluationError
from fewbench.evaluation import auto
from fewbench.evaluation.auto import Choice, candidates, choose_method, pick
from fewbench.methods import CATALOGUE
from fewbench.scores import from_arrays
from fewbench.testing import simulate

TABLE = simulate(40, 200, seed=1)


@pytest.fixture(scope="module")
def chosen():
    return choose_method(TABLE, 20)


def test_a_table_with_structure_gets_a_method_that_beats_random_sampling(chosen):
    assert chosen.method in candidates(TABLE)[:-1]
    assert "times that of random sampling, mean over 10 to 80 items" in chosen.reason
    assert chosen == choose_method(TABLE, 20)


def test_items_without_anything_in_common_get_random_sampling():
    """Models differ in ability, but all items are alike: no choice of items can help much."""
    chosen = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        answers = rng.random((30, 300)) < rng.uniform(0.1, 0.9, 30)[:, None]
        table = from_arrays(answers, models=[f"m{i}" for i in range(30)])
        chosen.append(choose_method(table, 40).method)
    assert "random" in chosen


def test_only_the_sources_of_a_regime_and_methods_that_can_run_are_considered():
    few = candidates(TABLE.take(models=range(10)))
    assert few[-1] == "random"
    assert "greedy-ridge" not in few
    assert "greedy-ridge" in candidates(TABLE)
    assert "greedy-ridge" not in candidates(TABLE, beyond=True)
    assert all(name in CATALOGUE for name in few)


def test_fewbench_s_own_method_is_preferred_where_it_is_no_worse(monkeypatch):
    monkeypatch.setitem(CATALOGUE, "fewbench", CATALOGUE["greedy-ridge"])
    found = candidates(TABLE)
    assert found[0] == "fewbench"
    assert "fluid" not in found  # it adapts, as fewbench does, and takes long to backtest
    assert choose_method(TABLE, 20).method == "fewbench"
    monkeypatch.setitem(CATALOGUE, "fewbench", CATALOGUE["collaborative"])  # clearly worse
    assert choose_method(TABLE, 20).method == "greedy-ridge"


def test_sources_with_many_missing_cells_get_random_sampling():
    chosen = choose_method(simulate(40, 200, seed=1, missing=0.3), 20)
    assert chosen.method == "random"
    assert "could be judged" in chosen.reason


def test_an_evaluation_records_the_real_name_and_keeps_the_reason(tmp_path, chosen):
    evaluation = Evaluation(TABLE, "auto", 20, ["new"])
    made = evaluation.provenance
    assert made.method == chosen.method
    assert made.settings == CATALOGUE[made.method].method.describe()
    evaluation.save(tmp_path / "run")
    again = Evaluation.open(tmp_path / "run", TABLE)
    assert again.provenance == made
    assert again.reason == evaluation.reason == chosen.reason
    assert again.ask() == evaluation.ask()


def test_without_a_number_of_items_the_method_need_not_know_it():
    evaluation = Evaluation(TABLE, "auto", stop=Stop(half_width=0.05))
    assert evaluation.method.extends


def test_given_items_need_the_name_of_their_method():
    with pytest.raises(EvaluationError, check=lambda error: error.kind == "conflict"):
        Evaluation(TABLE, "auto", 1, subset=Subset(items=(str(TABLE.item_ids[0]),)))


def test_a_comparison_chooses_by_the_sources_of_each_repeat_alone(monkeypatch):
    seen = []

    def spy(scores, budget):
        seen.append(set(scores.model_ids))
        return Choice("random-ridge", "it is a test")

    monkeypatch.setattr("fewbench.study.cell.choose_method", spy)
    found = compare(TABLE, "auto", 20, repeats=3, level=None)
    cells = found.cells.set_index("method")
    assert cells.loc["auto", "mae"] == cells.loc["random-ridge", "mae"]
    assert len(seen) == 3
    by_auto = found.estimates[found.estimates["method"] == "auto"]
    for repeat, sources in enumerate(seen):
        assert not sources & set(by_auto.loc[by_auto["repeat"] == repeat, "target"])
    assert any("chose random-ridge in repeat 0" in warning for warning in found.warnings)


@pytest.mark.parametrize("n_models", [3, 15])
def test_with_few_sources_there_is_no_lottery(n_models):
    """It is fewbench, for every table and seed; auto was random, aipw or fewbench by the seed."""
    for seed in range(3):
        table = simulate(60, 300, seed=seed).take(models=range(n_models))
        evaluation = Evaluation(table, "auto", 20, seed=seed)
        assert evaluation.provenance.method == "fewbench"
        assert "with fewer than 20 independent source models" in evaluation.reason


def test_it_says_why_the_default_lost(monkeypatch):
    """With errors that are known: another method's clearly below the default's, or its own not
    clearly below random sampling's."""
    table = simulate(60, 400, seed=1)
    errors = {"fewbench": 0.6, "greedy-ridge": 0.4, "aipw": 0.9}
    noise = 0.01 * np.arange(-2, 3)

    def shares(method, *_):
        name = next(name for name in errors if CATALOGUE[name].method.for_sources(table) == method)
        return np.array([errors[name] + noise, np.ones(5)])

    monkeypatch.setattr(auto, "_shares", shares)
    monkeypatch.setattr(auto, "_holds_beyond", lambda *_: True)
    found = choose_method(table, 20)
    assert found.method == "greedy-ridge"
    assert "that of fewbench is 0.60 times, clearly higher" in found.reason
    # As it does no better with more items: an error that does not fall shows at the last look.
    monkeypatch.setattr(auto, "_holds_beyond", lambda *given: given[3] < auto.LOOKS[-1])
    found = choose_method(table, 20)
    assert found.method == "fewbench"
    assert "greedy-ridge is lower (0.40), but higher for models stronger" in found.reason
    errors |= {"fewbench": 1.1, "aipw": 0.8}
    found = choose_method(table, 20)
    assert found.method == "greedy-ridge"
    assert "that of fewbench is 1.10 times, not clearly below 1" in found.reason
    errors |= dict.fromkeys(errors, 1.1)
    found = choose_method(table, 20)
    assert found.method == "random"
    assert "the error of the method fewbench is 1.10 times that of random sampling" in found.reason


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (np.random.default_rng(0).random((40, 200)) < 0.5, "hardly differ"),
        (np.repeat(simulate(1, 60, seed=0).values, 30, axis=0), "hardly differ"),
    ],
)
def test_sources_that_say_nothing_are_named_by_what_they_lack(answers, said):
    table = from_arrays(answers, models=[f"m{i}" for i in range(len(answers))])
    found = choose_method(table, 20)
    assert found.method == "random"
    assert said in found.reason


def test_the_preferred_method_is_taken_unless_another_is_clearly_better():
    means = {"first": 0.6, "second": 0.5, "third": 0.4}
    assert pick(list(means), means, lambda one, other, _: other == "random") == "first"
    assert pick(list(means), means, lambda one, other, _: True) == "third"
    assert pick(list(means), means, lambda one, other, _: one == "second") == "second"
    assert pick(list(means), means, lambda one, other, _: False) == "random"
