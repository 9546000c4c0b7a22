"""One small table, written down in thirty ways: each is read in one command with equal means."""

import json
from io import BytesIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
