import json

import numpy as np
import pandas as pd
import pytest

from fewbench.errors import FewbenchError, ReaderError
from fewbench.public import load_scores
from fewbench.readers import join_attributes
from fewbench.scores import from_arrays, save_scores

from .conftest import write

SCORES = from_arrays(
    [[1, 0, 1], [0, 1, 1]],
    models=["org/a", "7"],
    items=["007", "7", "x y"],
    tasks=["t", "t", "u"],
    families=["f", "g"],
)
MODELS = pd.DataFrame(
    {
        "model": ["7", "org/a"],
        "date": ["2025-02-01", "2024-01-31"],
        "family": ["g", "f"],
        "role": ["target", "source"],
        "size": [7.5, np.nan],
    }
)
ITEMS = pd.DataFrame(
    {
        "item": ["x y", "007", "7"],
        "task": ["one", "two", "one"],
        "doc_id": [3, 1, 2],
        "sample_id": ["03", "01", "02"],
    }
)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_rows_are_joined_by_id(tmp_path, suffix):
    models = write(MODELS, tmp_path / f"models{suffix}")
    items = write(ITEMS, tmp_path / f"items{suffix}")
    joined = join_attributes(SCORES, models=models, items=items)
    assert joined.model_ids == SCORES.model_ids
    assert np.array_equal(joined.values, SCORES.values)
    assert joined.models["date"].tolist() == ["2024-01-31", "2025-02-01"]
    assert joined.models["family"].tolist() == ["f", "g"]
    assert joined.models["role"].tolist() == ["source", "target"]
    assert pd.isna(joined.models["size"].iloc[0])
    assert joined.models["size"].iloc[1] == 7.5
    assert joined.items["task"].tolist() == ["two", "one", "one"]
    assert joined.items["doc_id"].tolist() == [1, 2, 3]
    assert joined.items["sample_id"].tolist() == ["01", "02", "03"]
    saved = save_scores(joined, tmp_path / "s.parquet")
    assert load_scores(saved).equals(joined)
    assert join_attributes(load_scores(saved), models=models, items=items).equals(joined)


def test_positions_may_be_unknown(tmp_path):
    (tmp_path / "i.csv").write_text("item,doc_id,kind\n007,4,\n7,,2020-01-01\nx y,5,2021-01-01\n")
    joined = join_attributes(SCORES, items=tmp_path / "i.csv")
    assert joined.items["doc_id"].isna().tolist() == [False, True, False]
    assert load_scores(save_scores(joined, tmp_path / "s.parquet")).equals(joined)


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("models", "llm,date\norg/a,x\n7,y\n", "no column 'model'.*'llm', 'date'"),
        ("models", "model,size\norg/a,1\n", "1 models of the scores are missing: '7'"),
        ("models", "model,size\norg/a,1\n7,1\n07,1\n", "not in the scores: '07'.*remove"),
        ("models", "model,size\norg/a,1\n7,1\n,1\n", "not in the scores: ''"),
        ("models", "model,size\norg/a,1\n7,1\n7,2\n", "more than once: '7'"),
        ("models", "model,family\norg/a,f\n7,h\n", "'7' has 'g' there and 'h' here"),
        ("models", "model,role\norg/a,source\n7,\n", "source or target for every model"),
        ("models", "model,task\norg/a,x\n7,y\n", "both have columns named 'task'"),
        ("models", "model,score\norg/a,1\n7,2\n", "may not be named 'score'"),
        ("models", "model,\norg/a,1\n7,2\n", "a column has no name"),
        ("models", "model,x,x\norg/a,1,1\n7,2,2\n", "'x' twice"),
        ("models", "model,x\norg/a\n", "cannot be read as csv"),
        ("models", "", "the file is empty"),
        ("items", "item,task\n007,t\n7,\nx y,u\n", "1 item without a task: '7'"),
        ("items", "item,doc_id\n007,1\n7,2.5\nx y,3\n", "'2.5' at row 2, not a position"),
        ("items", "item,doc_id\n007,1\n7,b\nx y,\n", "'b' at row 2, not a position"),
        ("items", "item,doc_id\n007,-1\n7,2\nx y,3\n", "'-1' at row 1, not a position"),
        ("items", "item,family\n007,1\n7,2\nx y,3\n", "both have columns named 'family'"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, kind, content, said):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(FewbenchError, match=rf"bad\.csv: .*{said}"):
        join_attributes(SCORES, **{kind: path})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (([1], "x"), "has a list or an object at row 1"),
        ((1, {"a": 1}), "has a list or an object at row 2"),
        ((1, "\ud800"), "is not valid Unicode at row 2"),
        (("x", "\ud800"), "surrogates not allowed"),
    ],
)
@pytest.mark.parametrize("name", ["family", "other", "model"])
def test_values_that_are_no_plain_text(tmp_path, name, values, said):
    rows = [{"model": model} | {name: value} for model, value in zip("ab", values, strict=True)]
    (tmp_path / "bad.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ReaderError, match=rf"bad\.jsonl: .*{said}"):
        join_attributes(SCORES, models=tmp_path / "bad.jsonl")


def test_a_column_whose_name_is_no_text(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"model": "org/a", "\\ud800": 1}\n{"model": "7"}\n')
    with pytest.raises(ReaderError, match=r"bad\.jsonl: .*(Unicode|surrogates)"):
        join_attributes(SCORES, models=tmp_path / "bad.jsonl")


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(ReaderError, match=r"absent\.csv"):
        join_attributes(SCORES, items=tmp_path / "absent.csv")
    (tmp_path / "x.txt").touch()
    with pytest.raises(ReaderError, check=lambda error: error.kind == "format"):
        join_attributes(SCORES, items=tmp_path / "x.txt")
