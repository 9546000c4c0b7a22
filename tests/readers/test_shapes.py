"""One small table, written down in thirty ways: each is read in one command with equal means."""

import json
from io import BytesIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewbench.errors import FewbenchError
from fewbench.readers import Columns, import_results

VALUES = {"m1": [1, 0, 1, 1], "m2": [0, 0, 1, 0], "m3": [1, 1, 1, 1]}
ITEMS = ["q1", "q2", "q3", "q4"]
MEANS = {model: float(np.mean(scores)) for model, scores in VALUES.items()}
BY_MODEL = {model: dict(zip(ITEMS, scores, strict=True)) for model, scores in VALUES.items()}
BY_ITEM = {item: {model: BY_MODEL[model][item] for model in VALUES} for item in ITEMS}
ROWS = [
    {"model": model, "id": item, "ok": score}
    for model, scores in BY_MODEL.items()
    for item, score in scores.items()
]
OF = {model: [{k: row[k] for k in ("id", "ok")} for row in ROWS if row["model"] == model]
      for model in VALUES}  # fmt: skip
LONG = Columns("model", "id", "ok")
FRAME = pd.DataFrame(ROWS)
WIDE = pd.DataFrame([{"model": model, **scores} for model, scores in BY_MODEL.items()])
SPLIT = FRAME.to_dict("split")
RIGHT = {1: "yes", 0: "no"}


def parquet(rows):
    file = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def lines(rows):
    return "\n".join(map(json.dumps, rows))


def predicted(rows):
    return [{k: v for k, v in row.items() if k != "ok"} | {"said": "A" if row["ok"] else "B",
            "gold": "A"} for row in rows]  # fmt: skip


SHAPES = {
    # Tables of text.
    "long csv": ({"t.csv": FRAME.to_csv(index=False)}, LONG, {}),
    "long tsv": ({"t.tsv": FRAME.to_csv(index=False, sep="\t")}, LONG, {}),
    "csv with an index": ({"t.csv": FRAME.to_csv()}, LONG, {}),
    "texts for scores": ({"t.csv": FRAME.replace({"ok": RIGHT}).to_csv(index=False)}, LONG,
                         {"right": ["yes"], "wrong": ["no"]}),
    "wide csv": ({"t.csv": WIDE.to_csv(index=False)}, Columns("model"), {}),
    "turned csv": ({"t.csv": WIDE.set_index("model").T.to_csv(index_label="id")},
                   Columns(item="id"), {"transposed": True}),
    "columns of models": ({"t.csv": WIDE.set_index("model").T.add_prefix("ok_")
                           .to_csv(index_label="id")}, Columns(item="id", score="ok_*"), {}),
    "a csv for each model": ({f"{m}.csv": pd.DataFrame(OF[m]).to_csv(index=False) for m in OF},
                             Columns(None, "id", "ok"), {}),
    # Lists of objects.
    "lines": ({"t.jsonl": lines(ROWS)}, LONG, {}),
    "list": ({"t.json": json.dumps(ROWS)}, LONG, {}),
    "list within": ({"t.json": json.dumps({"date": "x", "results": ROWS})}, LONG, {}),
    "list beside settings": ({"t.json": json.dumps({"config": {"n": 4}, "results": ROWS})}, LONG,
                             {}),
    "pretty list": ({"t.json": json.dumps(ROWS, indent=2)}, LONG, {}),
    "yaml list": ({"t.yaml": "".join(f"- model: {r['model']}\n  id: {r['id']}\n  ok: {r['ok']}\n"
                                     for r in ROWS)}, LONG, {}),
    "wide lines": ({"t.jsonl": lines(WIDE.to_dict("records"))}, Columns("model"), {}),
    # Objects by key.
    "rows by id": ({f"{m}.json": json.dumps({row["id"]: {"ok": row["ok"]} for row in OF[m]})
                    for m in OF}, Columns(None, "key", "ok"), {}),
    "lists by model": ({"t.json": json.dumps(OF)}, Columns("key", "id", "ok"), {}),
    "scores by model and item": ({"t.json": json.dumps(BY_MODEL)}, Columns("key"), {}),
    "scores by item and model": ({"t.json": json.dumps(BY_ITEM)}, Columns(item="key"),
                                 {"transposed": True}),
    "objects by model and item": ({"t.json": json.dumps(
        {m: {i: {"ok": s} for i, s in scores.items()} for m, scores in BY_MODEL.items()})},
        Columns("key", None, "*.ok"), {}),
    "objects by item and model": ({"t.json": json.dumps(
        {i: {m: {"ok": s} for m, s in scores.items()} for i, scores in BY_ITEM.items()})},
        Columns(None, "key", "*.ok"), {}),
    "a line for each model": ({"t.jsonl": lines({"model": m, "results": OF[m]} for m in OF)}, LONG,
                              {}),
    "scores of a model": ({f"{m}.json": json.dumps(scores) for m, scores in BY_MODEL.items()},
                          Columns(score="*"), {}),
    # Columns and cells apart.
    "split": ({"t.json": json.dumps({"columns": SPLIT["columns"], "data": SPLIT["data"]})}, LONG,
              {}),
    "lists of columns": ({"t.json": json.dumps(FRAME.to_dict("list"))}, LONG, {}),
    "pandas columns": ({"t.json": FRAME.to_json()}, LONG, {}),
    "header and rows": ({"t.json": json.dumps([list(FRAME), *FRAME.to_numpy().tolist()])}, LONG,
                        {}),
    # Objects within rows.
    "objects of models": ({"t.jsonl": lines({"id": i, **{m: {"ok": s, "text": "x"}
                          for m, s in scores.items()}} for i, scores in BY_ITEM.items())},
                          Columns(None, "id", "*.ok"), {}),
    "lists of metrics": ({"t.jsonl": lines({"model": r["model"], "id": r["id"], "metrics": [
        {"name": "acc", "score": r["ok"]}, {"name": "f1", "score": 0.5}]} for r in ROWS)},
        Columns("model", "id", "metrics.acc.score"), {}),
    "objects in parquet": (
        {
            "t.parquet": parquet(
                [
                    {"id": i, **{m: {"ok": s, "text": "x"} for m, s in scores.items()}}
                    for i, scores in BY_ITEM.items()
                ]
            )
        },
        Columns(None, "id", "*.ok"),
        {},
    ),
    "metrics in parquet": (
        {"t.parquet": parquet([{**r, "metrics": {"acc": r["ok"]}, "ok": None} for r in ROWS])},
        Columns("model", "id", "metrics.acc"),
        {},
    ),
    "several answers": ({"t.jsonl": lines({**r, "ok": [r["ok"], r["ok"]]} for r in ROWS)}, LONG,
                        {"trials": "mean"}),
    # Who the model is, and what is right.
    "one name, two settings": ({"t.csv": FRAME.assign(model="m", n=FRAME["model"].str[1:])
                                .to_csv(index=False)}, Columns("model,n", "id", "ok"), {}),
    "one name, a file each": ({f"{m}.jsonl": lines({"model": "m", **row} for row in OF[m])
                               for m in OF}, Columns(None, "id", "ok", model_from="file"), {}),
    "one name, a folder each": ({f"{m}/{part}.jsonl": lines(OF[m][part::2]) for m in OF
                                 for part in (0, 1)},
                                Columns(None, "id", "ok", model_from="folder"), {}),
    "predictions": ({"t.jsonl": lines(predicted(ROWS))},
                    Columns("model", "id", "said", target="gold"), {}),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_has_the_same_means(tmp_path, shape):
    files, columns, options = SHAPES[shape]
    if shape == "yaml list":
        pytest.importorskip("yaml", reason="reads YAML")
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        content = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in files]
    scores = import_results(paths, columns=columns, **options).scores
    means = dict(zip(scores.model_ids, scores.full_scores(), strict=True))
    expected = MEANS
    if shape == "one name, two settings":
        expected = {name.replace("m", "m/"): mean for name, mean in MEANS.items()}
    assert means == pytest.approx(expected)
    assert sorted(scores.item_ids) == ITEMS
    assert not scores.has_missing


def test_models_in_columns_of_several_files_or_models(tmp_path):
    """The name of the model, or of the file, comes before what the pattern names."""
    rows = [{"id": i, "run": "r", "x": {"ok": 1}, "y": {"ok": 0}} for i in ITEMS]
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(lines(rows))
    named = Columns("run", "id", "*.ok")
    assert import_results(tmp_path / "a.jsonl", columns=named).scores.model_ids == ["r/x", "r/y"]
    of_files = Columns(None, "id", "*.ok", model_from="file")
    scores = import_results(tmp_path, columns=of_files).scores
    assert sorted(scores.model_ids) == ["a/x", "a/y", "b/x", "b/y"]


def test_answers_are_compared_by_a_stated_rule(tmp_path):
    """Numbers as numbers, texts as texts; an empty answer is not run, unless it is wrong."""
    path = tmp_path / "t.csv"
    path.write_text('id,said,gold\n1,7,7.0\n2,(b),(B)\n3,,x\n4,-5,5\n5,"x, Y",X y\n6,True,1\n')
    exact = Columns(None, "id", "said", target="gold")
    loose = Columns(None, "id", "said", target="gold", match="loose")
    nan = np.nan
    for columns, missing, expected in (
        (exact, (), [1, 0, nan, 0, 0, 0]),
        (loose, (), [1, 1, nan, 0, 1, 0]),
        (loose, ("wrong",), [1, 1, 0, 0, 1, 0]),
    ):
        values = import_results(path, columns=columns, missing=missing).scores.values[0]
        assert np.array_equal(values, expected, equal_nan=True)
    path.write_text("id,said,gold\n1,7,\n2,8,8\n")
    with pytest.raises(FewbenchError, match=r"'gold'.*1 row.*row 1"):
        import_results(path, columns=exact)


def test_texts_that_look_like_answers_are_no_scores(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,said,target,correct\n1,True,True,True\n2,False,True,False\n")
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "format") as caught:
        import_results(path, columns=Columns(None, "id", "said"))
    assert "--target target" in caught.value.hint
    stated = {"right": ["True", "true"], "wrong": ["False", "false"]}
    for columns, options in ((Columns(None, "id", "said"), stated),
                             (Columns(None, "id", "correct"), {})):  # fmt: skip
        assert import_results(path, columns=columns, **options).scores.values.tolist() == [[1, 0]]


def test_what_stands_beside_the_rows_is_named(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"config": {"shots": 5}, "model": "m", "results": {
        "q1": {"ok": 1, "log": [{"ok": 0}]}, "q2": {"ok": 0, "log": []}}}))  # fmt: skip
    reading = import_results(path, columns=Columns("model", "key2", "ok"))
    assert reading.scores.values.tolist() == [[1, 0]]
    note = next(note for note in reading.notes if "is their key" in note)
    assert "2 rows in objects; column 'key2' is their key ('q1', 'q2')" in note
