import json

import numpy as np
import pandas as pd
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import Columns, read
from fewbench.readers.npz import read_npz
from fewbench.readers.tables import read_table
from fewbench.scores import Scale

LONG = Columns(model="llm", item="question", score="ok")
VALUES = np.array([[1.0, 0.0, np.nan], [0.0, 0.5, 1.0]])
MODELS, ITEMS = ["org/a", "7"], ["007", "7", "x y"]


def long_table(values=VALUES):
    cells = [(m, i, values[r, c]) for r, m in enumerate(MODELS) for c, i in enumerate(ITEMS)]
    return pd.DataFrame(cells, columns=["llm", "question", "ok"])


def write(table, path):
    """Write a table by the ending of its name."""
    if path.suffix in (".csv", ".tsv"):
        table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    elif path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        path.write_text(table.to_json(orient="records", lines=True))
    return path


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
        with pytest.raises(ReaderError, match="which column holds the models"):
            read_table(path, Columns(item="question", score="ok"))

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

    def test_columns_must_be_named(self, tmp_path):
        path = write(long_table(), tmp_path / "t.csv")
        with pytest.raises(ReaderError, match=r"t\.csv: which columns hold what"):
            read(path)
        with pytest.raises(ReaderError, match=r"t\.csv: which columns hold what"):
            read(path, columns=Columns(item="question"))


class TestNothingNamedIsDropped:
    """A layout that has no use for a column says so."""

    @pytest.mark.parametrize(
        ("columns", "transposed", "named"),
        [
            (Columns("llm", item="question"), False, "models.* not use --item"),
            (Columns("llm", score="ok"), False, "models.* not use --score"),
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
        with pytest.raises(ReaderError, match=r"t\.csv: .*no column 'id'") as error:
            read_table(path, Columns(item="id", score="ok", only_model="mine"))
        assert error.value.hint == "its columns are 'question', 'ok'"
