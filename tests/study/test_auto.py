"""Method `auto`: one answer for a table, whatever is to be run, and why the default lost."""

import numpy as np
import pytest

from fewbench.evaluation import auto
from fewbench.evaluation.auto import choose_method, pick
from fewbench.methods import CATALOGUE
from fewbench.scores import from_arrays
from fewbench.testing import simulate


def test_the_choice_is_the_same_at_any_number_of_items():
    table = simulate(40, 120, seed=1)
    found = {choose_method(table, n) for n in (20, 50, 64, 100)}
    assert len(found) == 1
    assert "of random sampling's, mean over 10 to 40 items" in found.pop().reason


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
    assert "that of fewbench is 0.60, clearly more" in found.reason
    monkeypatch.setattr(auto, "_holds_beyond", lambda *_: False)
    found = choose_method(table, 20)
    assert found.method == "fewbench"
    assert "greedy-ridge errs less (0.40), but more for models stronger" in found.reason
    errors |= {"fewbench": 1.1, "aipw": 0.8}
    found = choose_method(table, 20)
    assert found.method == "greedy-ridge"
    assert "that of fewbench is 1.10, not clearly below 1" in found.reason
    errors |= dict.fromkeys(errors, 1.1)
    found = choose_method(table, 20)
    assert found.method == "random"
    assert "the error of fewbench is 1.10 of random sampling's" in found.reason


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (np.random.default_rng(0).random((40, 200)) < 0.5, "hardly differ"),
        (np.repeat(simulate(1, 60, seed=0).values, 30, axis=0), "hardly differ"),
        (np.random.default_rng(0).random((3, 200)) < 0.5, "only 3 distinct source models"),
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
