"""A table of many blocks gives what the same table gives as one block.

Blocks are made small here; large tables themselves are for benchmarks/bench_large.py.
"""

import base64
import pickle
from dataclasses import replace

import numpy as np
import pytest

from fewbench import _blocks
from fewbench.algorithms.choice.linear_choice import forward_selection
from fewbench.algorithms.item_curves import fit_curves
from fewbench.algorithms.soundness.likeness import duplicate_groups, identical, likeness
from fewbench.checks import audit
from fewbench.errors import FewbenchError, ScoresError
from fewbench.evaluation import Evaluation
from fewbench.evaluation.answers import whole_tasks
from fewbench.methods.difficulty import difficulty_index
from fewbench.methods.kriging import source_kriging
from fewbench.methods.sources import reliability
from fewbench.public import load_scores
from fewbench.readers.npz import read_npz
from fewbench.scores import Scale, Scores, files, from_arrays, open_saved, save_scores
from fewbench.scores.cells import Cells
from fewbench.testing import simulate

BLOCK = 600  # cells
KINDS = {
    "binary": {},
    "missing": {"missing": 0.1},
    "fractions": {"continuous": True},
    "options": {"options": 4, "missing": 0.05},
}


@pytest.fixture
def small_blocks(monkeypatch):
    def switch(cells=BLOCK):
        monkeypatch.setattr(_blocks, "CELLS", cells)

    return switch


def told(scores: Scores, method: str = "fewbench") -> Evaluation:
    """An evaluation of the last model on the others, with all its answers."""
    sources = scores.take(models=np.arange(scores.n_models - 1))
    evaluation = Evaluation(sources, method, 12, scores.model_ids[-1:])
    row = np.nan_to_num(scores.cells[-1])
    while asked := evaluation.ask():
        for name, items in asked.items():
            evaluation.tell(name, dict(zip(items, row[sources.positions(items)], strict=True)))
    return evaluation


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_in_bytes_is_the_same_table(kind, small_blocks, tmp_path):
    whole = simulate(26, 90, seed=3, **KINDS[kind])
    known = whole.digest, whole.fingerprint, whole.is_binary, whole.has_missing
    small_blocks()
    held = replace(whole)
    assert isinstance(held.held, Cells) is (kind != "fractions")
    assert (held.digest, held.fingerprint, held.is_binary, held.has_missing) == known
    for name in ("full_scores", "task_scores"):
        np.testing.assert_allclose(
            getattr(held, name)(), getattr(whole, name)(), rtol=0, atol=1e-14
        )
    np.testing.assert_array_equal(held.is_run, ~np.isnan(whole.values))
    filled = held.complete()
    np.testing.assert_allclose(filled.cells[:, :], whole.filled, rtol=0, atol=1e-14)
    assert not filled.has_missing
    part = held.take(np.arange(25), np.arange(80))
    small_blocks(1 << 23)
    assert part.digest == replace(whole).take(np.arange(25), np.arange(80)).digest
    small_blocks()
    assert pickle.loads(pickle.dumps(held)).digest == whole.digest
    for number, table in enumerate((held, filled)):
        path = save_scores(table, tmp_path / f"{number}.parquet")
        opened = open_saved(path)
        assert opened.item_ids.tolist() == whole.item_ids.tolist()
        for found in (load_scores(path), opened):
            assert found.digest == table.digest
            np.testing.assert_array_equal(found.cells[:, 7], table.cells[:, 7])
            assert found.models.equals(whole.models)
    again = held.changed(models=held.models.assign(note="x"))
    assert again.held is held.held
    assert again.fingerprint == held.fingerprint
    assert "_whole" not in vars(held) or not isinstance(held.held, Cells)
    np.testing.assert_array_equal(held.values, whole.values)


def test_a_damaged_table_of_models_is_an_error():
    """Parquet has no checksum of metadata; used unchecked, the table ends the process."""
    models = simulate(3, 9).models
    packed = base64.b64decode(files._packed(models))
    ends = np.cumsum([0, *map(len, models.index)]).astype(np.int64)  # as Arrow has them
    damaged = packed.replace(ends.tobytes(), (ends * 2**20).tobytes())
    assert damaged != packed
    with pytest.raises(ValueError, match="offset"):
        files._read_models({files.MODELS: base64.b64encode(damaged)})


def test_parts_of_cells_are_those_of_the_array(small_blocks):
    whole = simulate(20, 60, seed=1, missing=0.2)
    small_blocks()
    held = replace(whole)
    some = np.array([3, 0, 9])
    for cells, values in ((held.cells, whole.values), (held.filled_cells, whole.filled)):
        for key in (
            4, some, slice(2, 5), (slice(None), some), (slice(None), 3), (2, some),
            (some, slice(9)), ([1], slice(None)), (2, 3),
        ):  # fmt: skip
            np.testing.assert_allclose(cells[key], values[key], rtol=0, atol=1e-14)
        with pytest.raises(IndexError):
            cells[some, some]


def test_results_do_not_depend_on_blocks(small_blocks):
    for kind in ("binary", "missing", "fractions"):
        whole = simulate(32, 110, 4, seed=2, **KINDS[kind])
        twin = whole.values.copy()
        twin[7] = twin[3]
        whole = replace(whole, values=twin)

        def measured(scores: Scores) -> list:
            filled = scores.filled_cells
            kriging = source_kriging(scores, 0, 10)
            alike = likeness(scores.cells)
            return [
                alike.r, alike.noise, identical(scores.cells), duplicate_groups(filled),
                forward_selection(filled, scores.full_scores(), 9, 1.0),
                fit_curves(filled, scores.full_scores()).slope, reliability(scores),
                difficulty_index(scores),
                whole_tasks(scores), kriging.inside.all_sources.wanted_noise,
                kriging.beyond.wanted_factors, np.abs(kriging.inside.along),
            ]  # fmt: skip

        before, found = measured(replace(whole)), audit(whole).to_dict()
        methods = ("fewbench", "greedy-ridge") if kind == "missing" else ()
        estimates = [told(whole, method).estimate() for method in methods]
        small_blocks()
        held = replace(whole)
        for one, other in zip(before, measured(held), strict=True):
            np.testing.assert_allclose(other, one, rtol=0, atol=2e-5)
        assert audit(held).to_dict() == found
        for method, known in zip(methods, estimates, strict=True):
            (mine,), (own,) = known.values(), told(held, method).estimate().values()
            for name in ("score", "expected_error"):
                assert getattr(own, name) == pytest.approx(getattr(mine, name), abs=1e-6)
            assert own.interval.low == pytest.approx(mine.interval.low, abs=1e-6)
        small_blocks(1 << 23)


def test_option_probabilities_by_items(small_blocks, tmp_path):
    whole = simulate(12, 40, seed=5, options=5, missing=0.1)
    easy = difficulty_index(whole, "probabilities")
    by_model = np.stack(list(whole.probabilities.by_model()))
    np.savez(
        tmp_path / "answers.npz", scores=whole.values, models=whole.model_ids,
        probabilities=by_model, n_options=whole.items["n_options"],
    )  # fmt: skip
    small_blocks()
    options = replace(whole).probabilities.take(np.arange(12), np.arange(40)[::-1])
    parts = list(options.by_items())
    assert len(parts) > 3
    joined = np.concatenate([part for _, part in parts], axis=1)
    np.testing.assert_array_equal(joined, by_model[:, ::-1])
    np.testing.assert_array_equal(options.of_items(np.array([9, 2])), by_model[:, ::-1][:, [9, 2]])
    np.testing.assert_allclose(
        difficulty_index(replace(whole), "probabilities"), easy, rtol=0, atol=1e-12
    )
    mapped = read_npz(tmp_path / "answers.npz").scores.probabilities  # as it lies in the file
    assert isinstance(mapped._array.base, np.memmap)
    np.testing.assert_array_equal(np.stack(list(mapped.by_model())), by_model)


def test_what_does_not_fit_is_refused_before_it_is_made(small_blocks, monkeypatch):
    values = (np.random.default_rng(0).random((40, 50)) < 0.5) * 100
    small_blocks()
    held = from_arrays(values, models=[f"m{i}" for i in range(40)], scale=Scale(0, 100))
    assert held.cells[:, 3].tolist() == (values[:, 3] / 100).tolist()
    monkeypatch.setattr("fewbench._memory.available_memory", lambda: 10_000)
    with pytest.raises(FewbenchError, match=r"40 models.*50 items"):
        np.asarray(held.values)
    with pytest.raises(FewbenchError, match="255 distinct"):
        from_arrays(np.random.default_rng(0).random((40, 50)), models=held.model_ids)
    assert held.full_scores().shape == (40,)  # by blocks
    for bad, message in (
        (2.0, "1 score outside the range"),
        (np.inf, "infinite score on item 'item-7'"),
    ):
        wrong = held.cells[:, :]
        wrong[33, 7] = bad
        with pytest.raises(ScoresError, match=message):
            Scores(wrong, held.models, held.items)
