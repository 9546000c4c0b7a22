import gzip
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from fewbench import _memory
from fewbench.errors import FewbenchError, ReaderError, ScoresError
from fewbench.readers import Columns, import_results
from fewbench.readers.npz import read_npz
from fewbench.readers.tables import read_table
from fewbench.scores import Scale, from_arrays

from .conftest import write

LONG = Columns(model="llm", item="question", score="ok")
VALUES = np.array([[1.0, 0.0, np.nan], [0.0, 0.5, 1.0]])
MODELS, ITEMS = ["org/a", "7"], ["007", "7", "x y"]


def long_table(values=VALUES):
    cells = [(m, i, values[r, c]) for r, m in enumerate(MODELS) for c, i in enumerate(ITEMS)]
    return pd.DataFrame(cells, columns=["llm", "question", "ok"])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".CSV"])
class TestEveryKind:
    def test_long(self, tmp_path, suffix):
        lower = write(long_table(), tmp_path / f"table{suffix.lower()}")
        scores = read_table(lower.rename(tmp_path / f"t{suffix}"), LONG)
        assert scores.model_ids == MODELS
        assert scores.item_ids.tolist() == ITEMS
        assert np.array_equal(scores.values, VALUES, equal_nan=True)

    def test_long_equals_wide_equals_npz(self, tmp_path, suffix):
        suffix = suffix.lower()
        wide = pd.DataFrame(VALUES, columns=ITEMS)
        wide.insert(0, "llm", MODELS)
        turned = pd.DataFrame(VALUES.T, columns=MODELS)
        turned.insert(0, "question", ITEMS)
        np.savez(tmp_path / "t.npz", scores=VALUES, models=MODELS, items=ITEMS)
        scores = read_table(write(long_table(), tmp_path / f"long{suffix}"), LONG)
        wide_path = write(wide, tmp_path / f"wide{suffix}")
        turned_path = write(turned, tmp_path / f"turned{suffix}")
        assert read_table(wide_path, Columns(model="llm")).equals(scores)
        across = read_table(turned_path, Columns(item="question"), transposed=True)
        assert across.equals(scores)
        assert read_npz(tmp_path / "t.npz").scores.equals(scores)


class TestLong:
    def test_attributes(self, tmp_path):
        table = long_table()
        table["of"] = table["question"].map({"007": "x", "7": "y", "x y": "y"})
        table["when"] = table["llm"].map({"org/a": "2024-01-01", "7": "2025-06-30"})
        table["kin"] = table["llm"].map({"org/a": "f", "7": "g"})
        columns = Columns("llm", "question", "ok", task="of", date="when", family="kin")
        for suffix in (".csv", ".parquet", ".jsonl"):
            scores = read_table(write(table, tmp_path / f"t{suffix}"), columns)
            assert scores.items["task"].tolist() == ["x", "y", "y"]
            assert scores.models["date"].str.slice(0, 10).tolist() == ["2024-01-01", "2025-06-30"]
            assert scores.models["family"].tolist() == ["f", "g"]

    def test_one_model_without_a_column(self, tmp_path):
        path = write(long_table().tail(3).drop(columns="llm"), tmp_path / "t.csv")
        scores = read_table(path, Columns(item="question", score="ok", only_model="mine"))
        assert scores.model_ids == ["mine"]
        assert read_table(path, Columns(item="question", score="ok")).model_ids == ["t"]

    def test_scales(self, tmp_path):
        path = write(long_table(VALUES * 100), tmp_path / "t.csv")
        unit = read_table(path, LONG, scale=Scale(0, 100)).values
        assert np.array_equal(unit, VALUES, equal_nan=True)
        errors = read_table(path, LONG, scale=Scale(0, 100, lower_is_better=True))
        assert np.array_equal(errors.values, 1 - VALUES, equal_nan=True)
        assert errors.scale == Scale(0, 100, lower_is_better=True)

    def test_fields_with_line_breaks_and_quotes(self, tmp_path):
        (tmp_path / "t.csv").write_text('llm,question,ok\na,"two\nlines",1\na,"say ""x""",0\n')
        scores = read_table(tmp_path / "t.csv", LONG)
        assert scores.item_ids.tolist() == ["two\nlines", 'say "x"']

    def test_truth_values_are_scores(self, tmp_path):
        rows = [{"llm": "a", "question": "q", "ok": True}, {"llm": "a", "question": "r", "ok": 0}]
        (tmp_path / "t.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
        assert read_table(tmp_path / "t.jsonl", LONG).values.tolist() == [[1, 0]]

    @pytest.mark.parametrize(
        ("header", "hint"),
        [
            ("item,score", "--item item --score score; without --model, the model is called"),
            ("Item,score,model", "--item Item --score score --model model"),
            (
                "llm,question,ok",
                "long table: --item question --score COLUMN --model COLUMN; without",
            ),
        ],
    )
    def test_the_columns_found_are_listed(self, tmp_path, header, hint):
        path = tmp_path / "t.csv"
        path.write_text(f"{header}\n{','.join('q' * len(header.split(',')))}\n")
        with pytest.raises(ReaderError) as caught:
            import_results(path)
        listed = ", ".join(map(repr, header.split(",")))
        assert caught.value.message.endswith(f"its columns are {listed}")
        assert caught.value.hint.startswith(hint)
        assert caught.value.hint.endswith("; in Python, the same as arguments of import_results")


MEASURE = """
import re, sys
from pathlib import Path
from fewbench import _memory
from fewbench.readers import Columns
from fewbench.readers.tables import read_table
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
read_table(sys.argv[1], Columns("m", "i", "s"))  # a small one, to import all that is used
expected = []
_memory.check_fits = lambda n_bytes, what: expected.append(n_bytes)
before = peak()
found = read_table(sys.argv[2], Columns("m", "i", "s"))
print(expected[0], peak() - before, found.digest)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux tells it")
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_memory_of_a_long_table_is_known_before_it_is_read(tmp_path, suffix):
    """Texts of columns that are not read take none, however many lines they have."""
    n_models, n_items = 100, 6000
    codes = np.arange(n_models * n_items)
    ids = {
        "m": [f"organization/the-name-of-model-{at}" for at in range(n_models)],
        "i": [f"benchmark_with_a_long_name/item-{at}" for at in range(n_items)],
        "s": [0, 1],
        "text": [f"answer {at}\nin two lines" for at in range(9)],
    }
    rows = {"m": codes // n_items, "i": codes % n_items, "s": codes % 7 % 2, "text": codes % 9}
    table = pa.table({name: pa.array(ids[name]).take(pa.array(rows[name])) for name in ids})
    for name, part in (("small", table.slice(0, 9)), ("large", table)):
        if suffix == ".csv":
            csv.write_csv(part, tmp_path / f"{name}.csv")
        else:
            parquet.write_table(part, tmp_path / f"{name}.parquet")
    paths = [tmp_path / f"{name}{suffix}" for name in ("small", "large")]
    told = subprocess.run(
        [sys.executable, "-c", MEASURE, *paths], capture_output=True, text=True, check=True
    )
    expected, taken, digest = told.stdout.split()
    assert int(taken) <= float(expected) <= 4 * int(taken)
    values = (codes % 7 % 2).reshape(n_models, n_items)
    assert from_arrays(values, models=ids["m"], items=ids["i"]).digest == digest


def test_few_rows_with_long_texts_are_no_large_table(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 2**20)
    table = long_table().assign(text="say\n" * 2**16)
    for suffix in (".csv", ".parquet", ".jsonl"):
        assert read_table(write(table, tmp_path / f"t{suffix}"), LONG).n_items == 3


def test_a_type_that_changes_far_down_is_that_of_the_whole_column(tmp_path):
    """Each column of a large file is read as the type that its start has, if all of it has it."""
    n = 60_000
    table = pd.DataFrame({"llm": "a", "question": np.arange(n), "ok": "1", "kept": "7"})
    for changes, scores, kept in (
        ({"ok": "0.5"}, 0.5, 7),
        ({"ok": "0.25", "kept": "1.5"}, 0.25, 1.5),
        ({"kept": "x"}, 1, "x"),
        ({"ok": "bad"}, None, None),
    ):
        changed = table.copy()
        changed.loc[n - 2, list(changes)] = list(changes.values())
        path = write(changed, tmp_path / "t.csv")
        columns = replace(LONG, keep_item=("kept",))
        if scores is None:
            with pytest.raises(ScoresError, match=rf"not a number: 'bad' at row {n - 1}"):
                read_table(path, columns)
            continue
        found = read_table(path, columns)
        assert found.values[0, -2:].tolist() == [scores, 1]
        assert found.items["kept"].iloc[-2] == kept
        assert found.items["kept"].iloc[0] == ("7" if kept == "x" else 7)


def test_columns_of_a_long_table_that_are_not_used_are_named_with_their_options(tmp_path):
    table = long_table().assign(cost=1.5, task="t", reply="x")
    for suffix in (".csv", ".tsv", ".parquet", ".jsonl"):
        path = write(table, tmp_path / f"table{suffix}")
        empty, note = import_results(path, columns=LONG).notes
        assert "without a score" in empty
        assert "columns not used: 'cost', 'task', 'reply'" in note
        assert "(to keep: --keep-item cost --task task)" in note
        assert not import_results(
            path, columns=LONG, like=import_results(path, columns=LONG).scores
        ).notes
    with pytest.raises(ReaderError) as error:
        import_results(write(table.rename(columns={"question": "item", "ok": "score"}), path))
    kept = "--item item --score score --keep-item cost --task task; without --model"
    assert error.value.hint.startswith(kept)


DIRTY = "llm,question,ok\na,q1,\na,q2,n/a\na,q3,PASS\nb,q1,-\nb,q2,FAIL\nb,q3,n/a\n"
MEANINGS = {"missing": ["n/a", "-"], "right": ["PASS"], "wrong": ["FAIL"]}


class TestCellsThatAreNoNumbers:
    def test_every_value_is_named_with_its_count_and_place_but_no_empty_cell(self, tmp_path):
        (tmp_path / "long.csv").write_text(DIRTY)
        listed = r"""'n/a' \(2, first at row 2\); 'PASS' at row 3; '-' at row 4; 'FAIL' at row 5"""
        with pytest.raises(ScoresError, match=f"column 'ok' has 5 values .* numbers: {listed} "):
            import_results(tmp_path / "long.csv", columns=LONG)
        (tmp_path / "wide.csv").write_text("llm,q1,q2\na,,1\nb,n/a,0\nc,1,n/a\n")
        listed = r"'n/a' \(2, first at row 2 of column 'q1'\)"
        with pytest.raises(ScoresError, match=f"the table has 2 values .*: {listed} .*--missing"):
            import_results(tmp_path / "wide.csv", columns=Columns(model="llm"))

    @pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
    @pytest.mark.parametrize("scale", [None, Scale(0, 100), Scale(0, 9, lower_is_better=True)])
    def test_texts_for_missing_right_and_wrong(self, tmp_path, suffix, scale):
        (tmp_path / "t.csv").write_text(DIRTY)
        table = pd.read_csv(tmp_path / "t.csv", keep_default_na=False)
        expected = np.array([[np.nan, np.nan, 1], [np.nan, 0, np.nan]])
        path = write(table, tmp_path / f"long{suffix}")
        found = import_results(path, columns=LONG, scale=scale, **MEANINGS).scores
        assert np.array_equal(found.values, expected, equal_nan=True)
        wide = write(
            table.pivot(index="llm", columns="question", values="ok").reset_index(),
            tmp_path / f"wide{suffix}",
        )
        found = import_results(wide, columns=Columns(model="llm"), scale=scale, **MEANINGS).scores
        assert np.array_equal(found.values, expected, equal_nan=True)

    @pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
    def test_a_number_for_missing_scores(self, tmp_path, suffix):
        table = pd.DataFrame({"llm": ["a", "a"], "question": ["p", "q"], "ok": [-1.0, 1.0]})
        found = import_results(
            write(table, tmp_path / f"t{suffix}"), columns=LONG, missing=["-1"]
        ).scores
        assert np.array_equal(found.values, [[np.nan, 1]], equal_nan=True)

    def test_texts_with_two_meanings_and_texts_for_logs_are_refused(self, tmp_path):
        write(long_table(), tmp_path / "t.csv")
        for texts, says in (
            ({"missing": ["x"], "right": ["x"]}, "'x' has two meanings"),
            ({"right": ["1"]}, "'1' is a number"),
        ):
            with pytest.raises(ScoresError, match=says):
                import_results(tmp_path / "t.csv", columns=LONG, **texts)
        np.savez(tmp_path / "t.npz", scores=VALUES, models=MODELS)
        with pytest.raises(ReaderError, match="--missing"):
            import_results(tmp_path / "t.npz", missing=["n/a"])

    @pytest.mark.parametrize("score", ["0x1", "1_0", "\u0661"])
    def test_only_plain_numbers_are_scores(self, tmp_path, score):
        """Arrow reads '0x1' as 1 where all of a column looks like whole numbers."""
        (tmp_path / "long.csv").write_text(f"llm,question,ok\na,p,{score}\na,q,1\n")
        (tmp_path / "wide.csv").write_text(f"llm,p,q\na,{score},1\nb,1,0\n")
        (tmp_path / "long.jsonl").write_text(
            json.dumps({"llm": "a", "question": "p", "ok": score}) + "\n"
        )
        for name, columns in (
            ("long.csv", LONG), ("wide.csv", Columns("llm")), ("long.jsonl", LONG)
        ):  # fmt: skip
            with pytest.raises(ScoresError, match=f"1 value that is not a number: '{score}' at"):
                read_table(tmp_path / name, columns)


class TestNothingNamedIsDropped:
    """A layout that has no use for a column says so."""

    @pytest.mark.parametrize(
        ("columns", "transposed", "named"),
        [
            (Columns("llm", item="question"), False, "--score is missing"),
            (Columns("llm", score="ok"), False, "--item is missing"),
            (Columns("llm", task="x", date="y"), False, "models.* not use --task, --date"),
            (Columns("llm", family="x"), False, "models.* not use --family"),
            (Columns("llm", keep_item=("x",)), False, "models.* not use --keep-item"),
            (Columns("llm", keep_model=("x",)), False, "models.* not use --keep-model"),
            (Columns(item="question", task="x"), True, "items.* not use --task"),
            (Columns("llm", item="question"), True, "items.* not use --model"),
            (LONG, True, "cannot be --transposed"),
        ],
    )
    def test_wide(self, tmp_path, columns, transposed, named):
        path = write(long_table(), tmp_path / "t.csv")
        with pytest.raises(ReaderError, match=rf"t\.csv: .*{named}"):
            read_table(path, columns, transposed=transposed)

    def test_a_hint_lists_only_columns_of_the_file(self, tmp_path):
        path = write(long_table().drop(columns="llm"), tmp_path / "t.csv")
        with pytest.raises(ScoresError, match=r"t\.csv.*'id'") as error:
            read_table(path, Columns(item="id", score="ok", only_model="mine"))
        assert error.value.hint == "its columns are 'question', 'ok'"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_tables_packed_by_gzip_are_read_as_they_are(tmp_path, monkeypatch, suffix):
    """Of one content, name and errors, and within the limits of what a file unpacks to."""
    table = pd.DataFrame({"model": ["m", "m"], "item": ["007", "7"], "score": [1, 0]})
    plain = tmp_path / f"table{suffix}"
    if suffix == ".jsonl":
        table.to_json(plain, orient="records", lines=True)
    else:
        table.to_csv(plain, index=False, sep="\t" if suffix == ".tsv" else ",")
    packed = tmp_path / f"table{suffix}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    columns = Columns("model", "item", "score")
    one, other = (import_results(path, columns=columns).scores for path in (plain, packed))
    assert one.digest == other.digest
    by_file = Columns(None, "item", "score", model_from="file")
    called = import_results(packed, columns=by_file).scores
    assert called.model_ids == ["table"]
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(ReaderError, match="gzip") as torn:
        import_results(packed, columns=columns)
    assert str(packed) in str(torn.value)
    monkeypatch.setenv("FEWBENCH_MAX_UNPACKED", "0.002")
    packed.write_bytes(gzip.compress(bytes(10_000_000)))
    with pytest.raises(FewbenchError, match="MAX_UNPACKED"):
        import_results(packed, columns=columns)


@pytest.mark.parametrize(
    ("content", "option"),
    [
        ({"q1": {"input": "1+1", "ok": 1}, "q2": {"input": "2", "ok": 0}}, "--item key"),
        ({"m1": {"q1": 1, "q2": 0}, "m2": {"q1": 0, "q2": 1}}, "--model key"),
    ],
)
def test_keys_of_objects_are_items_where_rows_are_answers(tmp_path, content, option):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ReaderError) as error:
        import_results(path)
    assert option in str(error.value)
    (other,) = {"--item key", "--model key"} - {option}
    assert other not in str(error.value)
