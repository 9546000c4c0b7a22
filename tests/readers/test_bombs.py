"""Files that unpack to far more than their size are refused before memory is taken."""

import base64
import io
import tarfile
import zipfile
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewbench import _memory
from fewbench.errors import FewbenchError
from fewbench.readers import import_results
from fewbench.readers.files import parquet_rows
from fewbench.readers.tables import Columns
from fewbench.scores import from_arrays, open_saved, save_scores
from fewbench_logs.harnesses.vlmevalkit import _read_xlsx
from fewbench_logs.sites import papers, tables
from fewbench_papers.bento.transferability import Transferability

ROWS = 500_000
LONG = Columns("model", "item", "score")


@pytest.fixture(autouse=True)
def _low_limit(monkeypatch):
    """Small bombs are bombs: more than 2 MB, and 500 times the file's size."""
    monkeypatch.setenv("FEWBENCH_MAX_UNPACKED", str(2 * 2**20 / 2**30))


def array(shape):
    head = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, described)
    return head.getvalue() + bytes(8 * int(np.prod(shape)))


def texts(*values):
    file = io.BytesIO()
    np.save(file, np.array(values))
    return file.getvalue()


def zipped(path, **entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries.items():
            file.writestr(name.replace("__", "."), content)
    return path


def npz(path, **more):
    models = texts("a", "b")
    return zipped(path, scores__npy=array((2, ROWS)), models__npy=models, **more)


def long_rows(path):
    """A table whose rows are all alike."""
    text = pa.DictionaryArray.from_arrays(np.zeros(ROWS, np.int32), ["m"])
    table = pa.table({"model": text, "item": text, "score": np.ones(ROWS)})
    pq.write_table(table, path, compression="zstd")
    return path


def long_texts(path):
    """A table of few rows with one text of 100 kB."""
    text = pa.DictionaryArray.from_arrays(np.zeros(500, np.int32), ["x" * 100_000])
    item = [str(at) for at in range(500)]
    pq.write_table(pa.table({"model": text, "item": item}), path, compression="zstd")
    return path


def tar(path, table):
    """An archive with a table, or with a name, of 4 MB."""
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as file:
        named = tarfile.TarInfo("gsm8k.csv" if table else "x" * 2**22)
        named.size = 2**22 * table
        file.addfile(named, io.BytesIO(bytes(named.size)))
    return path


def of_metabench(path):
    found = SimpleNamespace(files=[SimpleNamespace(path=path.name)])
    ask = SimpleNamespace(benchmark="gsm8k", name="metabench")
    return list(papers._metabench_tables(ask, found, path.parent))


BOMBS = {
    "npz": ("a.npz", npz, import_results),
    "npz of a matrix": ("a.npz", npz, Transferability.load),
    "npz with an entry that is no array": (
        "a.npz",
        lambda path: zipped(path, models__npy=texts("a"), scores=bytes(2**23)),
        import_results,
    ),
    "rows of Parquet": ("a.parquet", long_rows, lambda path: import_results(path, columns=LONG)),
    "texts of Parquet": (
        "a.parquet",
        long_texts,
        lambda path: import_results(path, columns=Columns("model")),
    ),
    "texts of a harness": ("a.parquet", long_texts, lambda path: next(parquet_rows(path))),
    "log of Inspect": (
        "a.eval",
        lambda path: zipped(path, header__json="{}", summaries__json=b" " * 2**23),
        import_results,
    ),
    "sheet": ("a.xlsx", lambda path: zipped(path, sheet__xml=bytes(2**23)), _read_xlsx),
    "zip of JSON": ("a.zip", lambda path: zipped(path, a__json=b" " * 2**23), tables._zipped),
    "table in a tar": ("a.tar.gz", lambda path: tar(path, True), of_metabench),
    "name in a tar": ("a.tar.gz", lambda path: tar(path, False), of_metabench),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bombs_are_refused(kind, tmp_path):
    name, make, read = BOMBS[kind]
    if name.endswith(".eval") and find_spec("inspect_ai") is None:
        pytest.skip("needs inspect-ai")
    path = make(tmp_path / name)
    assert path.stat().st_size < 2**15
    with pytest.raises(FewbenchError) as found:
        read(path)
    is_foreign = "no array" in kind
    assert ("is not an array" if is_foreign else "unpack to") in str(found.value)
    assert is_foreign or _memory.LIMIT in found.value.hint


def test_saved_scores_that_are_a_bomb(tmp_path, monkeypatch):
    path = tmp_path / "s.parquet"
    text = np.full(2000, "x" * 20_000, dtype=object)
    scores = from_arrays(np.ones((2, 2000)) * [[0], [1]], models=["a", "b"])
    save_scores(scores.changed(items=scores.items.assign(text=text)), path)
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "limit"):
        open_saved(path)
    monkeypatch.setenv(_memory.LIMIT, "1")
    assert open_saved(path).n_items == 2000


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_a_packed_table_of_models_is_not_unpacked(codec, tmp_path):
    """It stands in the metadata, whose size says nothing of its content."""
    path = save_scores(from_arrays(np.eye(2), models=["a", "b"]), tmp_path / "s.parquet")
    table, sink = pq.read_table(path), pa.BufferOutputStream()
    kind = pa.array(["x" * 20_000] * 2).dictionary_encode()
    models = pa.table({"model": ["a", "b"], "kind": kind})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, models.schema, options=options) as stream:
        stream.write_table(models)
    packed = {b"fewbench.models": base64.b64encode(sink.getvalue().to_pybytes())}
    pq.write_table(table.replace_schema_metadata(table.schema.metadata | packed), path)
    if codec is None:
        assert open_saved(path).models["kind"].str.len().tolist() == [20_000] * 2
        return
    with pytest.raises(FewbenchError, match="a packed table of models"):
        open_saved(path)


def test_a_user_can_raise_the_limit(tmp_path, monkeypatch):
    path = npz(tmp_path / "a.npz")
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "limit"):
        import_results(path)
    monkeypatch.setenv(_memory.LIMIT, "8")
    assert import_results(path).scores.n_items == ROWS
    monkeypatch.setenv(_memory.LIMIT, "much")
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "range"):
        import_results(path)


def test_real_tables_are_far_from_the_limit(tmp_path, monkeypatch):
    """Answers of models are no repetition, however well they are packed."""
    monkeypatch.setenv(_memory.LIMIT, "0")  # the ratio alone
    n_models, n_items = 500, 2000
    values = (np.random.default_rng(0).random((n_models, n_items)) < 0.95).astype(float)
    scores = from_arrays(values, models=[f"model-{at}" for at in range(n_models)])
    saved = save_scores(scores, tmp_path / "s.parquet")
    assert (open_saved(saved).values == values).all()
    np.savez_compressed(tmp_path / "t.npz", scores=values, models=list(scores.model_ids))
    assert (import_results(tmp_path / "t.npz").scores.values == values).all()
    items = [f"task/item-{at}" for at in range(n_items)]
    frame = pd.DataFrame(
        {"model": np.repeat(scores.model_ids, n_items), "item": items * n_models}
    ).assign(score=values.ravel())
    frame.to_parquet(tmp_path / "long.parquet", compression="zstd")
    assert import_results(tmp_path / "long.parquet", columns=LONG).scores.n_items == n_items
