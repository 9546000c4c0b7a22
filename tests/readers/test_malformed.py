"""Files that are wrong in many ways: each ends in a FewbenchError that says where and what."""

import json
import re
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewbench.errors import FewbenchError
from fewbench.readers import Columns, import_results
from fewbench.scores import from_arrays, save_scores

from .conftest import whole

LONG = Columns("m", "i", "s")
WITH_TASK = Columns("m", "i", "s", task="t")
WIDE = Columns(model="m")
HEAD = "m,i,s\n"


def text(name, content, columns=LONG, **options):
    """A file with this text (or these bytes)."""

    def make(folder, logs):
        content_ = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(content_)
        return folder / name, {"columns": columns} | options

    return make


def npz(**changes):
    """An .npz file with arrays changed; None leaves one out."""

    def make(folder, logs):
        arrays = {"scores": np.eye(2), "models": ["a", "b"], "items": ["q", "r"]} | changes
        kept = {name: array for name, array in arrays.items() if array is not None}
        np.savez(folder / "bad.npz", **kept)
        return folder / "bad.npz", {}

    return make


def parquet(table, columns=LONG, **options):
    def make(folder, logs):
        pq.write_table(pa.Table.from_pydict(table), folder / "bad.parquet")
        return folder / "bad.parquet", {"columns": columns} | options

    return make


def saved(change):
    """Scores that fewbench saved, then changed: `change(path)`."""

    def make(folder, logs):
        path = save_scores(from_arrays(np.eye(2), models=["a", "b"]), folder / "bad.parquet")
        change(path)
        return path, {}

    return make


def rewritten(change):
    """Saved scores whose table or description another program changed."""

    def rewrite(path):
        table = pq.read_table(path)
        meta = json.loads(table.schema.metadata[b"fewbench"])
        table, meta = change(table, meta)
        known = table.schema.metadata | {b"fewbench": json.dumps(meta)}
        pq.write_table(table.replace_schema_metadata(known), path)

    return saved(rewrite)


def scores_set(table, meta):
    flipped = pa.array(1 - table["score"].to_numpy())
    return table.set_column(table.schema.get_field_index("score"), "score", flipped), meta


def cut(ending, keep, columns=None):
    """A whole file of one kind, cut short."""

    def make(folder, logs):
        path, options = whole(folder, ending)
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * keep)])
        return path, options

    return make


def log(change=None, lines=None, **options):
    """A log of lm-eval: `change(rows)` before it is written, `lines(text)` after."""

    def make(folder, logs):
        rows = [logs.choice(i, f"q{i}") for i in range(3)]
        rows = (change(rows) if change else None) or rows
        path = logs.write("org/a", "t", rows)
        file = next(path.glob("samples_*"))
        if lines:
            file.write_bytes(lines(file.read_bytes()))
        return folder / "out", options

    return make


def field(**values):
    """Set fields of the second row; None removes one."""

    def change(rows):
        rows[1] = {k: v for k, v in (rows[1] | values).items() if v is not ...}

    return log(change)


def results(content):
    def make(folder, logs):
        path = logs.write("org/a", "t", [logs.choice(0, "q")])
        next(path.glob("results_*")).write_text(content)
        return folder / "out", {}

    return make


def renamed(name):
    def make(folder, logs):
        path = logs.write("org/a", "t", [logs.choice(0, "q")])
        file = next(path.glob("samples_*"))
        return file.rename(path / name), {"form": "lm-eval"}

    return make


def two_folders(folder, logs):
    for where, right in (("one", 0), ("two", 1)):
        logs.write("org/a", "t", [logs.choice(0, "q", right=right)], folder=where)
    return folder, {}


def without_answers(folder, logs):
    logs.write("org/a", "t", [])
    return folder / "out", {}


JUNK = bytes(range(256)) * 8
PICKLED = np.array([{"a": 1}, None], dtype=object)
ZIP_OF_TEXT = "not an array"


def zip_of_text(folder, logs):
    with zipfile.ZipFile(folder / "bad.npz", "w") as file:
        file.writestr("scores.npy", ZIP_OF_TEXT)
        file.writestr("models.npy", ZIP_OF_TEXT)
    return folder / "bad.npz", {}


def empty_zip(folder, logs):
    zipfile.ZipFile(folder / "bad.npz", "w").close()
    return folder / "bad.npz", {}


def one_array(folder, logs):
    np.save(folder / "bad.npy", np.eye(2))
    return (folder / "bad.npy").rename(folder / "bad.npz"), {}


MALFORMED = {
    # Tables of text.
    "csv empty file": (text("bad.csv", ""), "bad.csv"),
    "csv only a header": (text("bad.csv", HEAD), "bad.csv: the table has no rows"),
    "csv torn in a row": (text("bad.csv", HEAD + "a,q,1\na,r"), "bad.csv"),
    "csv ragged row": (text("bad.csv", HEAD + "a,q,1\na,r,0,9\n"), "bad.csv"),
    "csv open quote": (text("bad.csv", HEAD + 'a,q,1\na,"r,0\nb,q,1\n'), "bad.csv"),
    "csv header names a column twice": (text("bad.csv", "m,i,s,s\na,q,1,1\n"), "names 's' twice"),
    "csv header again in the middle": (text("bad.csv", HEAD + "a,q,1\n" + HEAD), "'s' at row 2"),
    "csv duplicate cell": (text("bad.csv", HEAD + "a,q,1\na,q,0\n"), "model 'a', item 'q'"),
    "csv text score": (text("bad.csv", HEAD + "a,q,yes\n"), "'yes' at row 1"),
    "csv score with decimal comma": (text("bad.csv", HEAD + 'a,q,"0,5"\n'), "'0,5' at row 1"),
    "csv score above the range": (text("bad.csv", HEAD + "a,q,2\n"), "model 'a', item 'q'"),
    "csv score below the range": (text("bad.csv", HEAD + "a,q,-1\n"), "model 'a', item 'q'"),
    "csv infinite score": (text("bad.csv", HEAD + "a,q,inf\n"), "infinite score on item 'q'"),
    "csv missing column": (text("bad.csv", "m,i\na,q\n"), "no column 's'"),
    "csv column in other letters": (text("bad.csv", "M,i,s\na,q,1\n"), "no column 'm'"),
    "csv read as tsv": (
        text("bad.tsv", HEAD + "a,q,1\n"),
        "bad.tsv: columns look separated by ','",
    ),
    "csv two tasks for an item": (
        text("bad.csv", "m,i,s,t\na,q,1,x\nb,q,1,y\n", WITH_TASK),
        "one item has two values in column 't'",
    ),
    "csv no task for an item": (
        text("bad.csv", "m,i,s,t\na,q,1,\n", WITH_TASK),
        "without a task: 'q'",
    ),
    "csv empty model": (text("bad.csv", HEAD + ",q,1\n"), "model id is empty"),
    "csv blank item": (text("bad.csv", HEAD + "a, ,1\n"), "item id is empty"),
    "csv model without answers": (
        text("bad.csv", HEAD + "a,q,1\nb,q,\n"),
        "without any answer: 'b'",
    ),
    "csv not UTF-8": (text("bad.csv", HEAD.encode() + b"a\xff,q,1\n"), "bad.csv"),
    "csv header not UTF-8": (text("bad.csv", b"m\xff,i,s\na,q,1\n"), "bad.csv"),
    "csv binary junk": (text("bad.csv", JUNK), "bad.csv"),
    "csv of nothing named": (text("bad.csv", HEAD + "a,q,1\n", None), "bad.csv: no columns named"),
    "wide csv model twice": (text("bad.csv", "m,q\na,1\na,0\n", WIDE), "more than once: 'a'"),
    "wide csv item twice": (text("bad.csv", "m,q,q\na,1,0\n", WIDE), "'q' twice"),
    "wide csv without items": (text("bad.csv", "m\na\n", WIDE), "0 items"),
    "wide csv without models": (text("bad.csv", "m,q\n", WIDE), "0 models"),
    "wide csv item without a name": (text("bad.csv", "m,q,\na,1,0\n", WIDE), "item id is empty"),
    "wide csv with a column of text": (
        text("bad.csv", "m,of,q\na,x,1\n", WIDE),
        "no score in 'of'",
    ),
    "tsv binary junk": (text("bad.tsv", JUNK), "bad.tsv"),
    "text file": (text("bad.txt", HEAD + "a,q,1\n"), "bad.txt: not a table that"),
    "spreadsheet": (text("bad.xlsx", JUNK), "bad.xlsx: not a table that"),
    # JSON lines.
    "jsonl empty file": (text("bad.jsonl", ""), "bad.jsonl"),
    "jsonl torn last line": (
        text("bad.jsonl", '{"m":"a","i":"q","s":1}\n{"m":"a'),
        "line 2 is not",
    ),
    "jsonl lists": (text("bad.jsonl", '["a","q",1]\n'), "no rows: neither objects nor lists"),
    "jsonl numbers": (text("bad.jsonl", "1\n2\n"), "line 1 is not a JSON object"),
    "jsonl not UTF-8": (text("bad.jsonl", b'{"m":"\xff","i":"q","s":1}\n'), "bad.jsonl"),
    "jsonl score is a list": (text("bad.jsonl", '{"m":"a","i":"q","s":[1]}\n'), "lists or objects"),
    "jsonl item is an object": (
        text("bad.jsonl", '{"m":"a","i":{"x":1},"s":1}'),
        "in 1 row, first",
    ),
    "jsonl task is a list": (
        text("bad.jsonl", '{"m":"a","i":"q","s":1,"t":["x"]}', WITH_TASK),
        "'t' contains lists or objects in 1 row",
    ),
    "jsonl NaN id": (text("bad.jsonl", '{"m":NaN,"i":"q","s":1}\n'), "column 'm' is empty in 1"),
    "jsonl null item": (
        text("bad.jsonl", '{"m":"a","i":null,"s":1}\n'),
        "column 'i' is empty in 1",
    ),
    "jsonl row without item": (
        text("bad.jsonl", '{"m":"a","i":"q","s":1}\n{"m":"a","s":1}\n'),
        "first at row 2",
    ),
    "jsonl half a surrogate pair": (
        text("bad.jsonl", '{"m":"\\ud800","i":"q","s":1}'),
        "surrogates not allowed",
    ),
    "jsonl deep nesting": (text("bad.jsonl", "[" * 100_000), "bad.jsonl"),
    "jsonl integer of 5000 digits": (
        text("bad.jsonl", '{"m":"a","i":"q","s":' + "9" * 5000 + "}"),
        "bad.jsonl",
    ),
    "jsonl integer of 400 digits": (
        text("bad.jsonl", '{"m":"a","i":"q","s":' + "9" * 400 + "}"),
        "bad.jsonl",
    ),
    "jsonl indented": (text("bad.jsonl", json.dumps({"m": "a"}, indent=1)), "line 1 is not"),
    "json of totals": (
        text("bad.json", '{"accuracy": 1, "n": [1]}'),
        "no column 'm', 'i', 's'",
    ),
    "json torn list": (text("bad.json", '[{"m":"a","i":"q","s":1},'), "bad.json: cannot be read"),
    "jsonl binary junk": (text("bad.jsonl", JUNK), "bad.jsonl"),
    # npz.
    "npz empty file": (text("bad.npz", "", None), "bad.npz: not a whole"),
    "npz binary junk": (text("bad.npz", JUNK, None), "bad.npz: not a whole"),
    "npz text": (text("bad.npz", "scores", None), "bad.npz: not a whole"),
    "npz truncated": (cut(".npz", 0.6), "bad.npz: not a whole"),
    "npz a single array": (one_array, "bad.npz: not a whole"),
    "npz a zip of other things": (zip_of_text, "bad.npz"),
    "npz an empty zip": (empty_zip, "bad.npz: no array 'scores', 'models'"),
    "npz pickled models": (npz(models=PICKLED), "bad.npz: not a whole .npz file of plain arrays"),
    "npz pickled scores": (npz(scores=np.array([[1, None]], object)), "plain arrays"),
    "npz without scores": (npz(scores=None), "no array 'scores'"),
    "npz without models": (npz(models=None), "no array 'models'"),
    "npz scores of text": (npz(scores=np.array([["1", "0"], ["0", "1"]])), "not numbers"),
    "npz complex scores": (npz(scores=np.eye(2) * 1j), "not numbers"),
    "npz flat scores": (npz(scores=np.ones(4)), "1 dimension"),
    "npz scores of three dimensions": (npz(scores=np.ones((2, 2, 1))), "3 dimensions"),
    "npz too many models": (npz(models=["a", "b", "c"]), "3 models for 2"),
    "npz too few items": (npz(items=["q"]), "1 item for 2"),
    "npz no tasks": (npz(tasks=np.array([], str)), "0 tasks for 2"),
    "npz model twice": (npz(models=["a", "a"]), "more than once: 'a'"),
    "npz empty item": (npz(items=["", "r"]), "item id is empty"),
    "npz models in a square": (npz(models=np.array([["a", "b"]])), "'models' has 2 dimensions"),
    "npz NaN as a model": (npz(models=np.array([1.0, np.nan])), "'models' holds float64"),
    "npz model not UTF-8": (npz(models=np.array([b"\xff", b"b"])), "bad.npz"),
    "npz infinite score": (npz(scores=np.array([[np.inf, 0], [0, 1]])), "infinite score"),
    "npz percentages": (npz(scores=np.eye(2) * 100), "outside the range"),
    "npz model without answers": (npz(scores=np.array([[1, 1], [np.nan] * 2])), "'b'"),
    "npz no models": (npz(scores=np.ones((0, 2)), models=np.array([], str)), "no scores"),
    "npz wrong role": (npz(role=["source", "aim"]), "'role'"),
    "npz a role too many": (npz(role=["source"] * 3), "'role'"),
    "npz too many dates": (npz(dates=["2024"] * 3), "3 dates for 2"),
    "npz probabilities of whole numbers": (npz(probabilities=np.ones((2, 2, 1), int)), "floats"),
    "npz probabilities without options": (npz(probabilities=np.ones((2, 2))), "shape (2, 2)"),
    "npz no options at all": (npz(probabilities=np.ones((2, 2, 0))), "shape (2, 2, 0)"),
    "npz probabilities of other models": (npz(probabilities=np.ones((3, 2, 1))), "(3, 2)"),
    "npz probabilities that sum to 2": (npz(probabilities=np.ones((2, 2, 2))), "model 'a'"),
    "npz negative probabilities": (
        npz(probabilities=np.array([[[2.0, -1.0]] * 2] * 2)),
        "model 'a'",
    ),
    "npz probabilities partly NaN": (
        npz(probabilities=np.array([[[1.0, np.nan]] * 2] * 2)),
        "model 'a'",
    ),
    "npz n_options too small": (
        npz(probabilities=np.full((2, 2, 2), 0.5), n_options=[1, 2]),
        "beyond an item's n_options",
    ),
    "npz n_options too large": (
        npz(probabilities=np.full((2, 2, 2), 0.5), n_options=[2, 3]),
        "not a count from 1 to 2",
    ),
    "npz n_options of other items": (
        npz(probabilities=np.full((2, 2, 2), 0.5), n_options=[2, 2, 2]),
        "n_options does not fit 2 items",
    ),
    "npz n_options in words": (
        npz(probabilities=np.full((2, 2, 2), 0.5), n_options=["two", "two"]),
        "n_options does not fit",
    ),
    "npz n_options and a half": (
        npz(probabilities=np.full((2, 2, 2), 0.5), n_options=[1.5, 2]),
        "not a count",
    ),
    "npz answers below -2": (npz(answers=np.full((2, 2), -3)), "'answers'"),
    "npz answers beyond reason": (npz(answers=np.full((2, 2), 10**12)), "'answers'"),
    "npz answers that are not whole": (npz(answers=np.ones((2, 2))), "'answers'"),
    "npz answers of other models": (npz(answers=np.ones((3, 2), int)), "(3, 2)"),
    "npz no answers": (npz(answers=np.ones((0, 2), int)), "'answers'"),
    "npz answers with other n_options": (
        npz(answers=np.ones((2, 2), int), n_options=[2, 2, 2]),
        "'n_options'",
    ),
    # Parquet, foreign and our own.
    "parquet empty file": (text("bad.parquet", ""), "bad.parquet: not a whole Parquet"),
    "parquet binary junk": (text("bad.parquet", JUNK), "bad.parquet: not a whole Parquet"),
    "parquet truncated": (cut(".parquet", 0.7), "bad.parquet: not a whole Parquet"),
    "parquet of another program": (parquet({"m": ["a"]}, None), "bad.parquet: no columns named"),
    "parquet of another program as scores": (
        parquet({"m": ["a"]}, None, form="scores"),
        "bad.parquet: a Parquet file, but not scores saved by fewbench",
    ),
    "parquet missing column": (parquet({"m": ["a"], "i": ["q"]}), "no column 's'"),
    "parquet lists as scores": (parquet({"m": ["a"], "i": ["q"], "s": [[1]]}), "lists or objects"),
    "parquet null ids": (parquet({"m": ["a", None], "i": ["q", "r"], "s": [1, 1]}), "'m' is empty"),
    "parquet NaN ids": (
        parquet({"m": [1.0, np.nan], "i": ["q", "r"], "s": [1, 1]}),
        "'m' is empty",
    ),
    "parquet without rows": (
        parquet(
            {"m": pa.array([], "string"), "i": pa.array([], "string"), "s": pa.array([], "int8")}
        ),
        "no rows",
    ),
    "scores truncated": (
        saved(lambda path: path.write_bytes(path.read_bytes()[:-20])),
        "bad.parquet",
    ),
    "scores changed by another program": (rewritten(scores_set), "bad.parquet: changed since"),
    "scores with a row less": (
        rewritten(lambda t, m: (t.slice(1), m)),
        "bad.parquet: its metadata",
    ),
    "scores without a column": (rewritten(lambda t, m: (t.drop_columns("task"), m)), "bad.parquet"),
    "scores of a later format": (
        rewritten(lambda t, m: (t, m | {"format": 99})),
        "bad.parquet: scores of format 99",
    ),
    "scores with a broken description": (rewritten(lambda t, m: (t, ["?"])), "its metadata"),
    "scores with an unknown average": (rewritten(lambda t, m: (t, m | {"average": "x"})), "'x'"),
    "scores with an impossible scale": (
        rewritten(lambda t, m: (t, m | {"scale": [1, 0, False]})),
        "bad.parquet: a score range",
    ),
    "scores of a huge shape": (
        rewritten(lambda t, m: (t, m | {"shape": [10**20, 10**20]})),
        "bad.parquet: its metadata",
    ),
    "jsonl with a key twice": (
        text("bad.jsonl", '{"m": "a", "i": "q", "s": 1, "s": 0}\n'),
        "line 1 is not whole JSON: an object has the key 's' twice",
    ),
    "csv items in two Unicode forms": (
        text("bad.csv", "m,i,s\na,caf\u00e9,1\nb,cafe\u0301,0\n"),
        r"two item ids differ in their Unicode form only: 'caf\xe9' and 'cafe\u0301'",
    ),
    "csv models in two Unicode forms": (
        text("bad.csv", "m,i,s\ncafe\u0301,q,1\ncaf\u00e9,q,0\n"),
        "two model ids differ in their Unicode form only",
    ),
    # Logs of lm-eval.
    "log torn last line": (log(lines=lambda b: b[:-40]), "line 3: not whole JSON"),
    "log torn first line": (log(lines=lambda b: b[50:]), "line 1: not whole JSON"),
    "log not UTF-8": (log(lines=lambda b: b.replace(b"q1", b"q\xff")), "line 2: not whole JSON"),
    "log empty": (without_answers, "empty, no answer was logged"),
    "log binary junk": (log(lines=lambda b: JUNK), "line 1: not whole JSON"),
    "log of numbers": (log(lines=lambda b: b"1\n2\n"), "line 1: not a JSON object"),
    "log of an old list": (log(lines=lambda b: b"[\n{}\n]\n"), "row 1: no 'doc_hash' and no 'doc'"),
    "log with a key twice": (
        log(lines=lambda b: b.replace(b'"acc":', b'"acc": 0, "acc":', 1)),
        "line 1: an object has the key 'acc' twice",
    ),
    "log with a key twice in its last line": (
        log(lines=lambda b: b'"acc": 0, "acc"'.join(b.rsplit(b'"acc"', 1)), damaged="rows"),
        "line 3: an object has the key 'acc' twice",
    ),
    "log written twice": (log(lines=lambda b: b + b), "line 4: document 0 has a second row"),
    "log of deep nesting": (log(lines=lambda b: b"[{" * 100_000), "line 1"),
    "log without hash": (field(doc_hash=..., doc=...), "line 2: no 'doc_hash'"),
    "log with a number for a hash": (field(doc_hash=5), "line 2: 'doc_hash'"),
    "log without position": (field(doc_id=...), "line 2: 'doc_id'"),
    "log with a text for a position": (field(doc_id="1"), "line 2: 'doc_id'"),
    "log with a negative position": (field(doc_id=-1), "line 2: 'doc_id'"),
    "log with a list for a filter": (field(filter=["none"]), "line 2: 'filter' is a list of 1"),
    "log with null for a filter": (field(filter=None), "line 2: 'filter' is null"),
    "log with a text for metrics": (field(metrics="acc"), "line 2: 'metrics' is not a list"),
    "log with a number among metrics": (field(metrics=["acc", 1]), "line 2: 'metrics' is not"),
    "log without the metric it names": (field(acc=...), "line 2: no value for 'acc'"),
    "log with a list metric": (
        field(acc=[1, 0]),
        "line 2: metric 'acc' of task 't' is a list of 2",
    ),
    "log with an object metric": (
        field(acc={"score": 1}),
        "line 2: metric 'acc' of task 't' is an",
    ),
    "log with a text metric": (field(acc="C"), "line 2: metric 'acc' of task 't' is the text 'C'"),
    "log with a null metric": (field(acc=None), "metric 'acc' of task 't' is null"),
    "log with a NaN metric": (field(acc=float("nan")), "line 2: metric 'acc' of task 't' is nan"),
    "log with an infinite metric": (field(acc=1e999), "metric 'acc' of task 't' is inf"),
    "log with a huge metric": (
        field(acc=10**400),
        "metric 'acc' of task 't' is a number too large",
    ),
    "log with a hexadecimal metric": (field(acc="0x1"), "'acc' of task 't' is the text '0x1'"),
    "log with digits in groups": (field(acc="1_0"), "'acc' of task 't' is the text '1_0'"),
    "log with a metric missing in a row": (
        field(metrics=["f"], f=1, acc=...),
        "metric 'acc' of task 't' is absent",
    ),
    "log with no metric": (log(lambda rows: [r | {"metrics": []} for r in rows]), "has no metric"),
    "log with only pairs": (log(lambda rows: [r | {"acc": [0, 1]} for r in rows]), "a list of 2"),
    "log with rows that name no filter": (field(filter=..., metrics=...), "some rows name their"),
    "log out of range": (field(acc=50), "model 'org/a', item 't/"),
    "log with a metric that it lacks": (
        log(metric="f1"),
        "no task has the metric 'f1'; there is 'acc'",
    ),
    "log with a filter that it lacks": (
        log(lambda rows: [r | {"filter": "x"} for r in rows], filter="y"),
        "no task has the filter 'y'; there is 'x'",
    ),
    "log with half a surrogate pair": (renamed("samples_t\udcff.jsonl"), "Unicode"),
    "log under another name": (
        renamed("log.txt"),
        "log.txt: no result file of lm-eval (hint: lm-eval writes samples_TASK",
    ),
    "log in two folders that disagree": (two_folders, "model 'org/a' has two scores"),
    "results torn": (results('{"model_name": "or'), "results_2026-01-01T10-00-00.000001.json: not"),
    "results that are a list": (results("[]"), "not a JSON object"),
    "results with a list for sizes": (results('{"n-samples": []}'), "'n-samples' is not an object"),
    "results with a list for a task": (
        results('{"n-samples": {"t": [1]}}'),
        "'t' is not an object",
    ),
    "results with a text for config": (results('{"config": "x"}'), "'config' is not an object"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(case, tmp_path, logs):
    make, message = MALFORMED[case]
    path, options = make(tmp_path, logs)
    with pytest.raises(FewbenchError, match=re.escape(message)) as caught:
        import_results(path, **options)
    # A message names the file, or the model, item or task; every file here is "bad" or a log.
    assert re.search(r"bad\.|samples_|results_|log\.txt|model|item|task", str(caught.value))
