"""Files of items: what is read, and what is refused with its place."""

import json

import numpy as np
import pandas as pd
import pytest

import fewbench
from fewbench.errors import ReaderError
from fewbench.public import load_scores, open_scores
from fewbench.readers import are_items, look
from fewbench.scores import save_scores
from fewbench.scores.roles import as_scores

ROWS = [
    {"id": f"{at:03}", "task": "ab"[at % 2], "weight": 1 + at, "cost": 0.5, "options": ["x", "y"]}
    | {"question": f"Is {at} so?", "answer": at if at else "none"}
    for at in range(4)
]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_each_format_gives_the_same_benchmark_which_can_be_saved(kind, tmp_path):
    path = tmp_path / f"items.{kind}"
    frame = pd.DataFrame(ROWS).assign(answer=lambda rows: rows["answer"].astype(str))
    if kind == "jsonl":
        path.write_text("\n\n".join(map(json.dumps, ROWS)))
    elif kind == "csv":
        frame.assign(options=frame["options"].map(json.dumps)).to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    assert are_items(look(path))
    found = fewbench.read_items(path)
    assert list(found.item_ids) == ["000", "001", "002", "003"]
    assert found.tasks == ["a", "b"]
    np.testing.assert_allclose(found.item_weights, [0.1, 0.2, 0.3, 0.4])
    assert found.items["cost"].tolist() == [0.5] * 4
    assert found.items["options"].tolist() == ['["x", "y"]'] * 4
    scores = as_scores(found)
    saved = save_scores(scores, tmp_path / "benchmark.parquet")
    assert load_scores(saved).fingerprint == scores.fingerprint
    assert not are_items(look(saved))
    result = fewbench.run(found, "fewbench", 3, score=lambda item: 1)
    assert result.estimates["target"].items_run == 3


def test_only_ids_are_needed(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text('{"item": 7}\n{"item": "x"}')
    found = fewbench.read_items(path)
    assert list(found.item_ids) == ["7", "x"]
    assert found.counts_equally


@pytest.mark.parametrize(("head", "needs"), [("question", True), ("id", False)])
def test_a_file_of_items_without_ids_is_told_of_the_column(head, needs, tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(f"{head},model,right\na,b,1\n")
    with pytest.raises(ReaderError, match="no columns named") as error:
        open_scores(path)
    assert ("a file of items, which has no scores, needs a column id" in error.value.hint) == needs
    assert "in Python, the same as arguments of import_results" in error.value.hint


def test_a_long_table_with_one_column_of_another_name():
    table = pd.DataFrame({"agent": ["a"], "item": ["q"], "score": [1]})
    with pytest.raises(ReaderError, match="'model'"):
        fewbench.load_scores(table)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,task\nx,a\ny,b\nx,a\n", "rows 1 and 3 have the same id 'x'"),
        ("id,task\nx,a\n,b\n", "id is empty at row 2"),
        ("id,task\nx,a\ny,\n", "task is empty at row 2"),
        ("id,task\n", "no items"),
        ("", "the file is empty"),
        ("id,weight\nx,0\ny,0\n", "no item has a weight above 0"),
        ("id,weight\nx,heavy\n", "weight is 'heavy' at row 1, not a number of 0 or more"),
        ("id,weight\nx,50%\ny,0.5\n", "weight is '50%' at row 1, not a number of 0 or more"),
        ("id,cost\nx,1\ny,\n", "cost is nan at row 2, not a number of 0 or more"),
        ("id,cost\nx,-1\n", "cost is -1 at row 1"),
        ("id,item\nx,y\n", "the columns 'id' and 'item'"),
        ("task,cost\nx,1\n", "no column 'id'"),
        ("id,model,score\nx,m,1\n", "'model', 'score', so it holds results"),
    ],
)
def test_what_is_refused_and_where(text, said, tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(text)
    with pytest.raises(ReaderError, match=said) as error:
        fewbench.read_items(path)
    assert str(path) in error.value.message
    assert error.value.hint


def test_an_unknown_format_and_what_is_no_file_of_items(tmp_path):
    path = tmp_path / "items.txt"
    path.write_text("id\nx\n")
    with pytest.raises(ReaderError, match=r"not a table .*use .csv"):
        fewbench.read_items(path)
    path = tmp_path / "scores.csv"
    for text in ("model,item,score\nm,x,1\n", "item,score\nx,1\n", "model,x\nm,1\n"):
        path.write_text(text)
        assert not are_items(look(path))
    for text in ("item,m1,m2\nx,1,0\n", "llm,id,ok\na,x,yes\nb,x,no\n"):
        path.write_text(text)
        with pytest.raises(ReaderError, match=r"the columns have two meanings: '.*' may be scores"):
            are_items(look(path))
