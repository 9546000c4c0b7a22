"""The table itself: labels, parts, full scores, missing cells, identity."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbench.errors import ScoresError
from fewbench.scores import OptionProbabilities, Scale, Scores, from_arrays
from fewbench.testing import simulate


def small(**more):
    return from_arrays(
        [[1, 0, 1], [0, 0, np.nan]],
        models=["a", "b"],
        items=["p", "q", "r"],
        tasks=["x", "x", "y"],
        dates=["2024", "2025"],
        families=["f", "g"],
        **more,
    )


@pytest.mark.parametrize("unknown", [["nope"], ["p", 1], [None], ["p", "\ud800"]])
def test_unknown_labels_are_named(unknown):
    with pytest.raises(ScoresError, check=lambda error: error.kind == "unknown"):
        small().positions(unknown)
    with pytest.raises(ScoresError, check=lambda error: error.kind == "unknown"):
        small().model_positions(["nope"])


@given(st.integers(0, 999), st.sampled_from(["micro", "macro"]))
def test_full_scores_are_means_of_items_or_of_tasks(seed, average):
    scores = simulate(5, 23, 4, seed=seed, continuous=True).averaged(average)
    assert scores.item_weights.sum() == pytest.approx(1)
    assert scores.averaged(average) is scores
    means = [scores.values[:, scores.task_of == task].mean(axis=1) for task in range(4)]
    np.testing.assert_allclose(scores.task_scores(), np.transpose(means))
    expected = scores.values.mean(axis=1) if average == "micro" else np.mean(means, axis=0)
    np.testing.assert_allclose(scores.full_scores(), expected)


def test_a_missing_cell_is_filled_by_item_and_model():
    scores = small()
    # Item r is answered by a alone (1); b is 0.25 below the means of p (0.5) and q (0).
    assert scores.filled[1, 2] == pytest.approx(0.75)
    assert scores.complete().values[1].tolist() == [0, 0, 0.75]
    assert not scores.complete().has_missing
    assert scores.complete().complete().equals(scores.complete())


@given(st.integers(0, 999), st.floats(0.05, 0.9))
def test_filled_keeps_what_was_run_and_stays_within_0_and_1(seed, missing):
    scores = simulate(8, 30, seed=seed, missing=missing)
    run = ~np.isnan(scores.values)
    assert np.array_equal(scores.filled[run], scores.values[run])
    assert ((scores.filled >= 0) & (scores.filled <= 1)).all()


def test_filled_is_the_additive_model_where_it_holds():
    truth = np.linspace(0.2, 0.5, 9)[:, None] + np.linspace(0, 0.3, 12)
    values = truth.copy()
    values[3, 5] = np.nan
    scores = from_arrays(values, models=list("abcdefghi"))
    assert scores.filled[3, 5] == pytest.approx(truth[3, 5], abs=0.01)


def test_take_keeps_labels_attributes_and_probabilities():
    scores = simulate(6, 10, options=4)
    part = scores.take(models=[4, 1], items=[7, 0, 2])
    assert part.model_ids == [scores.model_ids[4], scores.model_ids[1]]
    assert part.item_ids.tolist() == scores.item_ids[[7, 0, 2]].tolist()
    assert part.models["family"].tolist() == scores.models["family"].iloc[[4, 1]].tolist()
    expected = scores.probabilities.of_items(np.array([7, 0, 2]))[[4, 1]]
    assert np.array_equal(part.probabilities.of_items(np.arange(3)), expected)
    again = part.take(models=[1], items=[2, 1])
    assert np.array_equal(again.probabilities.of_model(0), expected[1][[2, 1]])
    assert scores.take().equals(scores)


def test_take_names_what_would_be_empty():
    with pytest.raises(ScoresError, match="'b'"):
        small().take(items=[2])
    with pytest.raises(ScoresError, check=lambda error: error.kind == "repeated"):
        small().take(models=[0, 0])


def test_take_refuses_ids_and_masks():
    digits = from_arrays(np.eye(3), models=["2", "1", "0"])
    for part in ({"models": ["0"]}, {"items": ["0"]}, {"models": [1.5]}, {"models": [True, False]}):
        with pytest.raises(ScoresError, match=r"positions, not .*scores\[\[.*model_positions"):
            digits.take(**part)
    assert digits.take(models=[-1]).model_ids == digits[["0"]].model_ids == ["0"]


def test_the_table_cannot_be_changed():
    scores = small()
    with pytest.raises(ValueError, match="read-only"):
        scores.values[0, 0] = 0
    with pytest.raises(FrozenInstanceError):
        scores.average = "macro"
    source = np.ones((1, 2))
    kept = from_arrays(source, models=["a"])
    source[:] = 0
    assert kept.values.tolist() == [[1, 1]]


def test_the_table_leaves_the_callers_array_and_frames_alone_and_he_it():
    base = small()
    values, models, items = base.values.copy(), base.models.copy(), base.items.copy()
    scores = replace(base, values=values, models=models, items=items)
    assert values.flags.writeable
    values[:] = 1
    models["family"] = "other"
    items.loc["p", "task"] = "z"
    assert scores.equals(base)
    assert scores.tasks == ["x", "y"]
    assert not scores.values.flags.writeable


def test_read_only_values_are_not_copied():
    scores = small()
    assert replace(scores).values is scores.values
    assert scores.complete().values is scores.filled
    for part in (scores, scores.take([0]), scores.complete()):
        assert not part.values.flags.writeable
        assert not part.filled.flags.writeable


def changed():
    base = simulate(4, 6, options=3)
    values = base.values.copy()
    values[1, 2] = 1 - values[1, 2]
    gap = base.values.copy()
    gap[0, 0] = np.nan
    p = base.probabilities.of_items(np.arange(6))
    p[2, 3] = p[2, 3][::-1]
    yield "score", replace(base, values=values)
    yield "missing cell", replace(base, values=gap)
    yield "probabilities", replace(base, probabilities=OptionProbabilities(p))
    yield "no probabilities", replace(base, probabilities=None)
    yield "scale", replace(base, scale=Scale(0, 100))
    yield "direction", replace(base, scale=Scale(lower_is_better=True))
    yield "average", base.averaged("macro")
    yield "model id", replace(base, models=base.models.rename(index={"model-00": "m"}))
    yield "item id", replace(base, items=base.items.rename(index={"item-0": "i"}))
    yield "task", replace(base, items=base.items.assign(task=["t"] * 6))
    yield "family", replace(base, models=base.models.assign(family=["f"] * 4))
    yield "date", replace(base, models=base.models.drop(columns="date"))
    yield "attribute", replace(base, items=base.items.assign(extra=range(6)))
    yield "order of models", base.take(models=[1, 0, 2, 3])
    yield "order of items", base.take(items=[1, 0, 2, 3, 4, 5])


def test_the_fingerprint_changes_with_everything_and_with_nothing_else():
    base = simulate(4, 6, options=3)
    assert replace(base).fingerprint == base.fingerprint
    assert simulate(4, 6, options=3).equals(base)
    prints = {what: scores.fingerprint for what, scores in changed()}
    assert base.fingerprint not in prints.values()
    assert len(set(prints.values())) == len(prints)
    assert len(base.fingerprint) == 16


def test_what_the_table_needs():
    base = small()
    with pytest.raises(ScoresError, match="'task'"):
        replace(base, items=base.items.drop(columns="task"))
    with pytest.raises(ScoresError, check=lambda error: error.kind == "unknown"):
        base.averaged("mean")
    with pytest.raises(ScoresError, match="'task'"):
        replace(base, models=base.models.assign(task="x"))
    with pytest.raises(ScoresError, check=lambda error: error.kind == "name"):
        replace(base, models=base.models.set_axis([1, 2]))
    with pytest.raises(ScoresError, match="'n_options'"):
        Scores(
            base.values.copy(),
            base.models,
            base.items,
            OptionProbabilities(np.full((2, 3, 2), 0.5)),
        )


def test_labels_of_any_alphabet_and_dtype():
    scores = from_arrays(np.eye(3), models=["größe", "模型", "a b"], items=["1", "01", "1.0"])
    assert scores.positions(["01"]).tolist() == [1]
    same = replace(scores, models=scores.models.set_axis(pd.Index(scores.model_ids, dtype=object)))
    assert same.equals(scores)


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
    st.booleans(),
    st.lists(st.floats(0, 1), min_size=2, max_size=5),
)
def test_a_scale_goes_there_and_back(low, width, lower_is_better, shares):
    scale = Scale(low, low + width, lower_is_better)
    given_ = scale.low + np.array(shares) * (scale.high - scale.low)
    given_ = np.clip(given_, scale.low, scale.high)
    unit = scale.to_unit(given_)
    assert ((unit >= 0) & (unit <= 1)).all()
    np.testing.assert_allclose(scale.from_unit(unit), given_, atol=1e-9 * (abs(low) + width))
    apart = scale.difference_from_unit(np.diff(unit))
    np.testing.assert_allclose(apart, np.diff(given_), atol=1e-9 * (abs(low) + width))
    assert np.isnan(scale.to_unit([np.nan])).all()
