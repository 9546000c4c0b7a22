"""Models that answer without regard to difficulty or always alike; sound ones are not named."""

import numpy as np
import pytest

from fewbench.checks import audit
from fewbench.errors import ScoresError
from fewbench.scores import Scale, from_arrays
from fewbench.testing import simulate


def kinds(found):
    return {finding.kind for finding in found.findings}


def test_a_model_that_guesses(make):
    def plant(values, names):
        values[4] = np.random.default_rng(9).random(1500) < 0.3

    finding = audit(make(plant, items=1500)).of_kind("unlike-all")
    assert finding.ids == ("lab/model-04",)
    assert abs(finding.table.rows[0][2]) < 0.3


@pytest.mark.parametrize("lower_is_better", [False, True])
def test_a_model_on_another_range_is_named(make, lower_is_better):
    """One from 0 to 1 among others from 0 to 100, and a weak model that is on the right one."""
    table, scale = make(items=60), Scale(0, 100, lower_is_better=lower_is_better)
    values = 100 * table.values
    values[2] /= 100
    values[3] = 0
    values[3, 0] = 2
    found = audit(from_arrays(values, models=table.model_ids, scale=scale))
    finding = found.of_kind("other-range")
    assert (finding.severity, finding.ids) == ("problem", (table.model_ids[2],))
    assert "no score above 1, on a range from 0 to 100" in finding.what
    assert finding.table.rows == ((table.model_ids[2], 1.0),)
    for alike in ([0, 1], [2]):  # all on one range
        names = [table.model_ids[at] for at in alike]
        sound = audit(from_arrays(values[alike], models=names, scale=scale))
        assert sound.of_kind("other-range") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("models", "items", "difficulty", "guess", "ability"),
    [
        (30, 1000, 0.3, 0.0, 1.0),  # items are alike
        (30, 1000, 0.0, 0.0, 1.0),  # items are the same
        (40, 1000, 1.0, 0.25, 1.0),
        (40, 2000, 1.0, 0.25, 1.5),
        (5, 1000, 0.3, 0.0, 0.5),
        (5, 1000, 1.0, 0.0, 1.0),
        (5, 1000, 1.0, 0.25, 1.0),
    ],
)
def test_sound_models_follow_difficulty(models, items, difficulty, guess, ability):
    named = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        logit = rng.normal(0, ability, (models, 1)) - rng.normal(0, difficulty, items)
        p = guess + (1 - guess) / (1 + np.exp(-logit))
        values = (rng.random(p.shape) < p).astype(float)
        found = audit(from_arrays(values, models=[f"m{i}" for i in range(models)]))
        named += "unlike-all" in kinds(found)
    assert named == 0


def test_a_guess_or_two_of_few_items_proves_nothing(make):
    """With 60 items a sound model's answers can lie against difficulty by chance."""
    assert not [s for s in range(40) if "unlike-all" in kinds(audit(make(seed=s, items=60)))]


def test_it_takes_others_to_be_unlike_them():
    """Four models are too few; of five, one that guesses is named."""
    for models, named in ((4, False), (6, True)):
        rng = np.random.default_rng(2)
        p = 1 / (1 + np.exp(-(rng.normal(0, 0.5, (models, 1)) - rng.normal(0, 2, 5000))))
        values = (rng.random(p.shape) < p).astype(float)
        values[1] = rng.random(5000) < 0.3
        found = audit(from_arrays(values, models=[f"m{i}" for i in range(models)]))
        assert ("unlike-all" in kinds(found)) == named


def test_copies_of_one_broken_model_do_not_speak_for_each_other(make):
    def plant(values, names):
        values[4] = np.random.default_rng(9).random(values.shape[1]) < 0.3
        values[5] = values[6] = values[4]
        values[5, :30], values[6, -30:] = 1 - values[4, :30], 1 - values[4, -30:]

    finding = audit(make(plant, items=1500)).of_kind("unlike-all")
    assert set(finding.ids) == {"lab/model-04", "lab/model-05", "lab/model-06"}


def test_where_many_answer_otherwise_they_are_not_odd(make):
    """A third of the models gives the opposite answers: two camps."""

    def plant(values, names):
        values[:10] = 1 - values[:10]

    assert "unlike-all" not in kinds(audit(make(plant, items=1500)))


def test_scores_in_between_are_not_judged_by_difficulty(make):
    rng = np.random.default_rng(0)
    easy = rng.beta(2, 2, 1000)
    values = np.clip(easy + rng.normal(0, 0.1, (20, 1000)), 0, 1)
    values[3] = rng.random(1000)
    found = audit(from_arrays(values, models=[f"m{i}" for i in range(20)]))
    assert "unlike-all" not in kinds(found)


def test_a_model_that_always_says_the_same():
    scores = simulate(20, 200, seed=1, options=4)
    array = np.stack([scores.probabilities.of_model(m) for m in range(20)])
    array[5] = 0.0
    array[5, :, 1] = 1.0
    table = from_arrays(
        scores.values, models=scores.model_ids, probabilities=array, n_options=[4] * 200
    )
    finding = audit(table).of_kind("one-option")
    assert finding.table.rows == (("model-05", 2, 1.0),)


def test_a_task_in_percent_is_named():
    """--range 0,100 would put the other tasks into a hundredth of it."""
    table = simulate(10, 60, 2, seed=4)
    percent = table.values * np.where(table.task_of == 0, 100, 1)
    labels = {"models": table.model_ids, "items": list(table.item_ids)}
    tasks = list(table.items["task"])
    with pytest.raises(ScoresError, match=r"0.*1, all.*'task-0'") as error:
        from_arrays(percent, **labels, tasks=tasks)
    assert "rescale the scores of these tasks" in error.value.hint
    found = audit(from_arrays(percent, **labels, tasks=tasks, scale=Scale(0, 100)))
    assert found.of_kind("other-range-of-task").ids == ("task-1",)
    assert audit(table).of_kind("other-range-of-task") is None
    with pytest.raises(ScoresError) as error:
        from_arrays(table.values * 100, **labels, tasks=tasks)
    assert "--range 0,100" in error.value.hint
