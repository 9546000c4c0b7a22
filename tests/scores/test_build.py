"""Building scores from arrays and tables: what is taken, and what each error says."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from fewbench.errors import ScoresError
from fewbench.scores import OptionProbabilities, Scale, from_arrays, from_long, from_wide
from fewbench.scores.cells import compact

LONG = pd.DataFrame(
    {
        "llm": ["a", "a", "b", "b"],
        "q": [1, 2, 1, 2],
        "ok": [1.0, 0.0, 1.0, np.nan],
        "topic": ["x", "y", "x", "y"],
        "when": ["2024-01", "2024-01", None, None],
        "kin": ["f", "f", "g", "g"],
        "hard": [0.1, 0.9, 0.1, 0.9],
        "size": [7, 7, 70, 70],
    }
)
NAMES = {"model": "llm", "item": "q", "score": "ok"}


def test_from_long_takes_every_column_that_is_named():
    scores = from_long(
        LONG,
        **NAMES,
        task="topic",
        date="when",
        family="kin",
        item_columns=["hard"],
        model_columns=["size"],
    )
    np.testing.assert_array_equal(scores.values, [[1, 0], [1, np.nan]])
    assert scores.item_ids.tolist() == ["1", "2"]
    assert scores.tasks == ["x", "y"]
    assert scores.models["date"].tolist() == ["2024-01", ""]
    assert scores.models["family"].tolist() == ["f", "g"]
    assert scores.models["size"].tolist() == [7, 70]
    assert scores.items["hard"].tolist() == [0.1, 0.9]


def test_from_long_does_not_depend_on_the_order_or_index_of_rows():
    here = from_long(LONG, **NAMES, task="topic")
    there = from_long(LONG.iloc[[3, 1, 0, 2]], **NAMES, task="topic")
    again = there.take(there.model_positions(["a", "b"]), there.positions(["1", "2"]))
    assert again.equals(here)


def test_ids_as_categories_are_the_same_ids():
    """Whatever their order is, unused ones included; equal values with two texts are two ids."""
    coded = LONG.assign(llm=pd.Categorical(LONG["llm"], ["z", *LONG["llm"].unique()[::-1]]))
    coded = coded.assign(q=coded["q"].astype("category"), topic=coded["topic"].astype("category"))
    assert from_long(coded, **NAMES, task="topic").equals(from_long(LONG, **NAMES, task="topic"))
    mixed = LONG.assign(q=np.array([1, True, 1.0, 0.0], dtype=object), ok=1)
    assert from_long(mixed, **NAMES).item_ids.tolist() == ["1", "True", "1.0", "0.0"]
    zeros = LONG.assign(q=[0.0, -0.0, 0.0, -0.0])
    assert from_long(zeros, **NAMES).item_ids.tolist() == ["0.0", "-0.0"]


def test_numbers_that_are_all_distinct_are_not_collected():
    values = np.random.default_rng(0).random((500, 1000))
    tracemalloc.start()
    assert compact(values) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * values.nbytes


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int8, np.int64, np.float16, np.float64])
@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-1, 1), (0, 100), (0, 254), (1, 255), (200, 300)]
)
def test_whole_numbers_held_as_bytes_are_the_numbers(kind, low, high, monkeypatch):
    """To the bit, with NaN of either sign, in a few parts, on scales that turn their order."""
    monkeypatch.setattr("fewbench.scores.cells.CACHED", 200)
    numbers = np.random.default_rng(0).integers(low, high + 1, (20, 50))
    values = numbers.astype(kind)
    if values.dtype.kind == "f":
        values[3, :9], values[15] = np.nan, -np.float64(np.nan)
        values[4:7][values[4:7] == 0] = -0.0 if low == -1 else 0.0
    for of in (None, Scale(0, 400).to_unit, Scale(0, 400, lower_is_better=True).to_unit):
        scores = (of or np.asarray)(values.astype(np.float64))
        cells = compact(values, of)
        n_distinct = len(np.unique(scores[~np.isnan(scores)].view(np.int64)))
        n_equal = len(np.unique(scores[~np.isnan(scores)]))
        if n_distinct > 255 or n_equal < n_distinct:  # both 0 and -0
            assert cells is None
            continue
        assert cells.distinct.tolist() == np.unique(scores[~np.isnan(scores)]).tolist()
        np.testing.assert_array_equal(cells[:], scores)
        np.testing.assert_array_equal(np.signbit(cells[:])[:15], np.signbit(scores)[:15])


def test_from_wide_both_ways():
    wide = pd.DataFrame({"m": ["a", "b"], "q1": [1, 0], "q2": [0.5, np.nan]})
    scores = from_wide(wide, model="m")
    np.testing.assert_array_equal(scores.values, [[1, 0.5], [0, np.nan]])
    flipped = from_wide(wide.set_index("m").T, transposed=True)
    assert flipped.equals(scores)
    assert from_wide(wide.set_index("m") * 10, scale=Scale(0, 10)).values[0, 1] == 0.5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "model"}, "no column 'model'"),
        ({"task": "nope"}, "no column 'nope'"),
        ({"model_columns": ["hard"]}, "two values in column 'hard': 0.1 and 0.9 (row 2)"),
        ({"task": "kin"}, "one item has two values in column 'kin'"),
        ({"score": "kin"}, "4 values that are not numbers: 'f' (2, first at row 1); 'g' (2, "),
        ({"score": "size"}, "outside the range"),
        ({"item": "topic", "model": "kin", "score": "when"}, "not numbers"),
        ({"model": "when"}, "column 'when' is empty in 2 rows, first at row 3"),
    ],
)
def test_from_long_says_what_does_not_fit(change, says):
    with pytest.raises(ScoresError) as caught:
        from_long(LONG, **{**NAMES, **change})
    assert says in str(caught.value)


def test_from_long_says_which_cell_is_there_twice():
    twice = pd.concat([LONG, LONG.iloc[[1]]])
    says = "1 row repeats a cell with the same score, first: model 'a', item '2'"
    with pytest.raises(ScoresError, match=says):
        from_long(twice, **NAMES)
    other = twice.assign(ok=[*twice["ok"].iloc[:-1], 1 - twice["ok"].iloc[-1]])
    with pytest.raises(ScoresError, match=r"1 row.*1"):
        from_long(other, **NAMES)
    with pytest.raises(ScoresError, check=lambda error: error.kind == "too-few"):
        from_long(LONG.iloc[:0], **NAMES)
    with pytest.raises(ScoresError, match="'ok'"):
        from_long(LONG.rename(columns={"hard": "ok"}), **NAMES)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pd.DataFrame({"q1": ["yes"]}, index=["a"]), "not a number: 'yes' at row 1 of column 'q1'"),
        (pd.DataFrame({"q1": [1, 0]}, index=["a", "a"]), "1 model id appears more than once: 'a'"),
        (pd.DataFrame([[1, 0]], columns=["q", "q"], index=["a"]), "1 item id appears more than"),
        (pd.DataFrame({"q1": [1]}, index=[None]), "has no name"),
        (pd.DataFrame(), "0 models and 0 items"),
    ],
)
def test_from_wide_says_what_does_not_fit(table, says):
    with pytest.raises(ScoresError) as caught:
        from_wide(table)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("values", "more", "says"),
    [
        ([[0, 2]], {}, "1 score outside the range 0 to 1, first: model 'a', item 'item-1'"),
        ([[0, -0.1]], {}, "outside the range"),
        ([[0, np.inf]], {}, "model 'a' has an infinite score on item 'item-1'"),
        ([[np.nan, np.nan]], {}, "1 model without any answer: 'a'"),
        ([["x", 0]], {}, "not numbers"),
        ([0, 1], {}, "1 dimension, not models × items (hint: give one row per model, also for"),
        ([[]], {}, "no scores"),
        ([[0, 1]], {"items": ["q"]}, "1 item for 2"),
        ([[0, 1]], {"items": ["q", "q"]}, "1 item id appears more than once: 'q'"),
        ([[0, 1]], {"items": ["q", " "]}, "1 item id is empty"),
        ([[0, 1]], {"tasks": ["t", ""]}, "1 item without a task: 'item-1'"),
        ([[0, 1]], {"models": ["a", "b"]}, "2 models for 1 row"),
        ([[0, 1]], {"probabilities": np.ones((1, 2))}, "shape (1, 2)"),
        ([[0, 1]], {"probabilities": np.ones((1, 2, 2), int)}, "give floats"),
        ([[0, 1]], {"probabilities": np.full((1, 3, 2), 0.5)}, "the scores (1, 2)"),
        ([[0, 1]], {"probabilities": np.full((1, 2, 2), 0.6)}, "model 'a': the option prob"),
        ([[0, 1]], {"probabilities": np.array([[[2.0, -1.0]] * 2])}, "2 items are negative"),
        ([[0, 1]], {"probabilities": np.array([[[np.nan, 1.0]] * 2])}, "not finite"),
        (
            [[0, 1]],
            {"probabilities": np.full((1, 2, 2), 0.5), "n_options": [2, 1]},
            "options beyond an item's n_options",
        ),
    ],
)
def test_from_arrays_says_what_does_not_fit(values, more, says):
    with pytest.raises(ScoresError) as caught:
        from_arrays(values, **{"models": ["a"], **more})
    assert says in str(caught.value)


def test_float16_probabilities_of_many_options_sum_to_one_closely_enough():
    p = np.random.default_rng(0).dirichlet(np.ones(1000), (2, 3)).astype(np.float16)
    built = from_arrays([[0, 1, 1], [1, 1, 0]], models=["a", "b"], probabilities=p)
    assert built.probabilities.dtype == np.float16
    assert OptionProbabilities(p).of_items(np.array([2])).dtype == np.float64


@pytest.mark.parametrize("bounds", [(1, 1), (1, 0), (0, np.inf), (np.nan, 1)])
def test_a_scale_needs_two_bounds_in_order(bounds):
    with pytest.raises(ScoresError, check=lambda error: error.kind == "range"):
        Scale(*bounds)


def test_from_wide_names_columns_of_texts():
    table = pd.DataFrame({"role": ["source", "target"], "q1": [1, 0]}, index=["a", "b"])
    with pytest.raises(ScoresError, match=r"'role'.*--models FILE"):
        from_wide(table)


def test_a_transposed_table_is_told_to_move_the_items_columns():
    """The message names columns as they stand in the file."""
    table = pd.DataFrame({"subject": ["web", "code"], "a": [1, 0], "b": [0, 1]}, index=["q", "r"])
    with pytest.raises(ScoresError, match="'subject'") as caught:
        from_wide(table, transposed=True)
    assert "to a file of their own (--items FILE)" in caught.value.hint
    scores = from_wide(table.drop(columns="subject"), transposed=True)
    assert (list(scores.model_ids), list(scores.item_ids)) == (["a", "b"], ["q", "r"])
    assert scores.values.tolist() == [[1, 0], [0, 1]]


def test_percentages_in_one_column_are_not_told_to_rescale_all():
    with pytest.raises(ScoresError, check=lambda error: error.kind == "range") as caught:
        from_arrays([[1, 0], [100, 0]], models=["a", "b"], items=["q", "r"])
    assert "if only some models do, rescale" in caught.value.hint
