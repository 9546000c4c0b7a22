"""Scores on disk: a round trip that loses nothing, and errors that say which file."""

import json
import pickle
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewbench.errors import ScoresError
from fewbench.public import load_scores
from fewbench.scores import Benchmark, Scale, from_arrays, open_saved, save_scores
from fewbench.scores.probabilities import StoredProbabilities
from fewbench.scores.roles import as_scores
from fewbench.testing import simulate

EXTRA = {
    "number": [0.5, np.nan, 2.0, 3.0],
    "count": [1, 2, 3, 4],
    "yes": [True, False, True, True],
    "words": ["a", None, "größe", ""],
    "when": pd.to_datetime(["2024-01-01", "2024-02-01", "2024-03-01", "2024-03-01"]),
}


@pytest.mark.parametrize("read", [load_scores, open_saved])
def test_a_table_without_models_keeps_its_items(tmp_path, read):
    columns = {"task": list("xxyy"), "weight": [1.0, 2, 3, 4], **EXTRA}
    items = pd.DataFrame(columns, index=list("abcd"))
    scores = as_scores(Benchmark(items, Scale(0, 100), "macro"))
    back = read(save_scores(scores, tmp_path / "benchmark.parquet"))
    assert (back.n_models, back.fingerprint, back.digest) == (0, scores.fingerprint, scores.digest)
    assert back.equals(scores)
    assert back.values.shape == (0, 4)
    assert back.items.columns.tolist() == items.columns.tolist()
    np.testing.assert_array_equal(back.item_weights, scores.item_weights)
    assert (back.scale, back.average) == (scores.scale, scores.average)


@pytest.mark.parametrize(
    "kind",
    [{}, {"missing": 0.3}, {"continuous": True}, {"options": 4}, {"options": 3, "missing": 0.3}],
)
def test_round_trip(tmp_path, kind):
    scores = replace(simulate(5, 12, **kind), scale=Scale(-1, 3, True), average="macro")
    path = save_scores(scores, tmp_path / "new" / "scores.parquet")
    back = load_scores(path)
    assert back.equals(scores)
    np.testing.assert_array_equal(back.values, scores.values)
    assert back.item_ids.tolist() == scores.item_ids.tolist()
    assert back.models.columns.tolist() == scores.models.columns.tolist()
    assert (back.scale, back.average) == (scores.scale, scores.average)
    if scores.probabilities is not None:
        every = np.arange(12)
        np.testing.assert_array_equal(
            back.probabilities.of_items(every), scores.probabilities.of_items(every)
        )
    assert [path.name for path in path.parent.iterdir()] == ["scores.parquet"]


@pytest.mark.parametrize("name", EXTRA)
def test_attributes_of_every_type(tmp_path, name):
    base = simulate(4, 4)
    column = pd.DataFrame({name: EXTRA[name]})
    scores = replace(
        base,
        items=base.items.assign(**{name: column[name].to_numpy()}),
        models=base.models.assign(**{f"{name} of model": column[name].to_numpy()}),
    )
    back = load_scores(save_scores(scores, tmp_path / "scores.parquet"))
    assert back.equals(scores)
    assert back.items[name].isna().tolist() == column[name].isna().tolist()


def test_the_file_is_a_plain_long_table_to_others(tmp_path):
    scores = simulate(3, 4, missing=0.2)
    table = pd.read_parquet(save_scores(scores, tmp_path / "scores.parquet"))
    assert len(table) == 12
    columns = ["model", "item", "score", "task", "text", "date", "family"]
    assert table.columns.tolist() == columns
    wide = table.pivot(index="model", columns="item", values="score")
    np.testing.assert_array_equal(wide.loc[scores.model_ids, scores.item_ids], scores.values)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_keep_their_type_and_stay_on_disk(tmp_path, dtype):
    p = np.random.default_rng(0).dirichlet(np.ones(3), (4, 5)).astype(dtype)
    scores = from_arrays(np.eye(4, 5) + np.eye(4, 5, 1), models=list("abcd"), probabilities=p)
    path = save_scores(scores, tmp_path / "scores.parquet")
    path = shutil.copy(path, tmp_path / "copy.parquet")
    back = load_scores(path)
    assert back.probabilities.dtype == dtype
    stored = back.probabilities._array
    assert isinstance(stored, StoredProbabilities)
    part = back.take(models=[2, 0], items=[4, 1]).probabilities
    assert part._array is stored
    assert np.array_equal(part.of_items(np.arange(2)), p[[2, 0]][:, [4, 1]])
    assert np.array_equal(part.of_model(1), p[0, [4, 1]])
    assert len(pickle.dumps(part)) < 2000


def test_probabilities_of_a_part_are_written_in_its_order(tmp_path):
    part = simulate(6, 9, options=4).take(models=[5, 2, 3], items=[8, 1, 0])
    assert load_scores(save_scores(part, tmp_path / "part.parquet")).equals(part)


def test_saving_over_a_file_and_failing_leaves_the_old_one(tmp_path, monkeypatch):
    path = save_scores(simulate(3, 4), tmp_path / "scores.parquet")
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        save_scores(simulate(4, 4), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["scores.parquet"]


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ScoresError, check=lambda error: error.kind == "format"):
        save_scores(simulate(3, 4), tmp_path / "scores.csv")
    base = simulate(3, 4)
    named = replace(base, items=base.items.assign(score=0))
    with pytest.raises(ScoresError, match="'score'"):
        save_scores(named, tmp_path / "scores.parquet")
    base = simulate(3, 4, options=3)
    named = replace(base, items=base.items.assign(scores=0))
    with pytest.raises(ScoresError, match="'scores'"):
        save_scores(named, tmp_path / "scores.parquet")


def rewritten(path, meta=None, **columns):
    """The same Parquet file with another description or other columns."""
    table = pq.read_table(path)
    told = {**json.loads(table.schema.metadata[b"fewbench"]), **(meta or {})}
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    told = table.schema.metadata | {b"fewbench": json.dumps(told).encode()}
    pq.write_table(table.replace_schema_metadata(told), path)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: path.write_bytes(b"PAR1 torn"), "not a whole Parquet file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "not a whole Parquet file"),
        (lambda path: path.write_bytes(b""), "not a whole Parquet file"),
        (lambda path: pd.DataFrame({"a": [1]}).to_parquet(path), "not scores saved by fewbench"),
        (lambda path: rewritten(path, {"format": 99}), "scores of format 99"),
        (lambda path: rewritten(path, {"shape": [4, 4]}), "does not fit its content"),
        (lambda path: rewritten(path, {"item_columns": ["nope"]}), "does not fit its content"),
        (lambda path: rewritten(path, {"scale": [0]}), "does not fit its content"),
        (lambda path: rewritten(path, {"average": "macro"}), "changed since"),
        (lambda path: rewritten(path, score=[0.5] * 12), "changed since"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, spoil, says):
    path = save_scores(simulate(3, 4), tmp_path / "scores.parquet")
    spoil(path)
    with pytest.raises(ScoresError) as caught:
        _ = open_saved(path).cells
    assert says in str(caught.value)
    assert "scores." in str(caught.value)


def test_loading_reads_no_probabilities(tmp_path, monkeypatch):
    scores = simulate(30, 12, options=3)
    path = save_scores(scores, tmp_path / "scores.parquet")
    monkeypatch.delattr(StoredProbabilities, "read")
    back = load_scores(path)
    again = back.averaged("macro").averaged("micro").fingerprint
    assert scores.fingerprint == back.fingerprint == again


def test_a_part_of_loaded_scores_has_the_fingerprint_of_the_same_part_in_memory(tmp_path):
    scores = simulate(6, 9, options=4)
    back = load_scores(save_scores(scores, tmp_path / "scores.parquet"))
    for part in ({"models": [5, 2]}, {"items": [8, 1]}, {}):
        assert back.take(**part).fingerprint == scores.take(**part).fingerprint
    assert back.take(models=[5, 2]).fingerprint != back.take(models=[2, 5]).fingerprint


def with_a_change(raw):
    changed = np.frombuffer(raw, np.float64).copy()
    changed[:2] = changed[1::-1]
    return changed.tobytes()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (with_a_change, "changed or damaged"),
        (lambda raw: raw[:-8], "of another shape"),
        (lambda raw: np.frombuffer(raw, np.float64).astype(np.float16).tobytes(), "another shape"),
    ],
)
def test_other_probabilities_than_those_saved_are_noticed(tmp_path, spoil, says):
    path = save_scores(simulate(30, 12, options=3), tmp_path / "scores.parquet")
    known = pq.read_metadata(path).metadata
    table = pq.read_table(path)
    raw = [spoil(one) for one in table["probabilities.0"].to_pylist()]
    column = pa.array(raw, pa.binary(len(raw[0])))
    at = table.column_names.index("probabilities.0")
    table = table.set_column(at, "probabilities.0", column).replace_schema_metadata(known)
    pq.write_table(table, path)
    with pytest.raises(ScoresError, match=says) as caught:
        load_scores(path).probabilities.of_model(3)
    assert "scores.parquet: " in str(caught.value)


def test_a_flipped_bit_of_the_probabilities_is_noticed(tmp_path):
    path = save_scores(simulate(30, 12, options=3), tmp_path / "scores.parquet")
    group = pq.read_metadata(path).row_group(0)
    column = group.column(group.num_columns - 1)
    whole = bytearray(path.read_bytes())
    whole[column.data_page_offset + column.total_compressed_size - 9] ^= 4
    path.write_bytes(whole)
    with pytest.raises(ScoresError, match=r"scores\.parquet"):
        load_scores(path).probabilities.of_items(np.arange(3))
