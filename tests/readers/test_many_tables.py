"""Tables as people publish them: lists of rows in JSON, a file for each model, several files."""

import json

import pandas as pd
import pytest

from fewbench.errors import FewbenchError, ScoresError
from fewbench.readers import Columns, import_results
from fewbench.scores import Scale, from_arrays, save_scores

NAMED = Columns(item="id", score="ok")
ROWS = [{"id": "q0", "ok": True}, {"id": "q1", "ok": False}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps(ROWS)),
        ("a.json", json.dumps(ROWS, indent=2)),
        ("a.json", json.dumps({"accuracy": 0.5, "results": ROWS}, indent=2)),
        ("a.json", json.dumps({"accuracy": 0.5, "results": ROWS})),
        ("a.json", "\n".join(map(json.dumps, ROWS))),
        ("a.jsonl", json.dumps(ROWS)),
        ("a.jsonl", "\ufeff" + "\n\n".join(map(json.dumps, ROWS))),
    ],
)
def test_rows_in_json_are_read_in_lines_and_in_lists(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    reading = import_results(tmp_path / name, columns=NAMED)
    assert reading.scores.model_ids == ["a"]
    assert reading.scores.values.tolist() == [[1, 0]]
    assert reading.notes[0].startswith("the model is called as the file is, 'a'")


def test_a_value_within_an_object_is_named_with_a_point(tmp_path):
    rows = [
        {"model": {"id": "a"}, "id": f"q{n}", "result": {"acc": n, "f1": 0.5}} for n in range(2)
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    with pytest.raises(ScoresError, match="2 mistakes") as caught:
        import_results(tmp_path / "a.json", columns=Columns("model", "id", "result"))
    assert caught.value.parts[1].hint.endswith("name a value within it: result.acc, result.f1")
    reading = import_results(tmp_path / "a.json", columns=Columns("model.id", "id", "result.acc"))
    assert reading.scores.model_ids == ["a"]
    assert reading.scores.values.tolist() == [[0, 1]]
    assert not reading.notes
    with pytest.raises(ScoresError, match=r"'result\.em'"):
        import_results(tmp_path / "a.json", columns=Columns("model.id", "id", "result.em"))


def test_a_file_for_each_model(tmp_path):
    paths = [tmp_path / "run" / f"{name}.jsonl" for name in ("model-b", "model-a")]
    paths[0].parent.mkdir()
    for path, rows in zip(paths, (ROWS, ROWS[:1]), strict=True):
        path.write_text("\n".join(map(json.dumps, rows)))
    together = import_results(paths, columns=NAMED)
    assert together.scores.model_ids == ["model-b", "model-a"]
    assert together.scores.has_missing
    assert "the models are called as the files are, 'model-b', 'model-a'" in together.notes[0]
    one = Columns(item="id", score="ok", only_model="m")
    assert import_results(paths, columns=one, trials="mean").scores.model_ids == ["m"]
    other = paths[0].with_suffix(".json")
    other.write_text(json.dumps(ROWS))
    assert import_results([paths[0], other], columns=NAMED).scores.model_ids == [
        "model-b.jsonl",
        "model-b.json",
    ]
    other.unlink()
    folder = import_results(paths[0].parent, columns=NAMED).scores
    assert folder.model_ids == ["model-a", "model-b"]
    (tmp_path / "deep").mkdir()
    for path in paths:
        home = tmp_path / "deep" / path.stem / "eval"
        home.mkdir(parents=True)
        path.rename(home / "answers.jsonl")
    assert import_results(tmp_path / "deep", columns=NAMED).scores.model_ids == [
        "model-a",
        "model-b",
    ]


def test_a_folder_without_tables(tmp_path):
    with pytest.raises(FewbenchError, check=lambda error: error.kind == "missing"):
        import_results(tmp_path, form="table", columns=NAMED)


def test_answers_of_one_model_in_several_files_are_repeated_answers(tmp_path):
    paths = [tmp_path / f"trial-{n}.jsonl" for n in range(2)]
    for n, path in enumerate(paths):
        path.write_text(json.dumps({"llm": "a", "id": "q", "ok": n}))
    columns = Columns("llm", "id", "ok")
    with pytest.raises(ScoresError, match=r"2 files.*1 row.*1"):
        import_results(paths, columns=columns)
    scores = import_results(paths, columns=columns, trials="mean").scores
    assert scores.values.tolist() == [[0.5]]
    assert scores.repeats.counts.tolist() == [[2]]


def test_each_of_several_files_needs_the_columns(tmp_path):
    for name, score in (("a", "ok"), ("b", "right"), ("c", "right")):
        (tmp_path / f"{name}.csv").write_text(f"llm,id,{score}\n{name},q,1\n")
    with pytest.raises(FewbenchError) as caught:
        import_results(tmp_path, columns=Columns("llm", "id", "ok"))
    assert [part.message for part in caught.value.parts] == [
        f"{tmp_path / name}.csv: the table has no column 'ok'" for name in "bc"
    ]


def test_columns_from_a_table_of_their_own(tmp_path):
    def written(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    answers = written("responses.csv", "subject,q,ok\n007,q1,1\n7,q1,0\n007,q2,0\n")
    names = written("subjects.csv", "subject,name,lab\n007,org/a,x\n7,org/b,y\n")
    items = written("items.csv", "q,kind\nq1,sums\nq2,words\n")
    columns = Columns("name", "q", "ok", task="kind", keep_model=("lab",))
    for order in ([answers, names, items], [items, names, answers]):
        reading = import_results(order, columns=columns)
        scores = reading.scores
        assert scores.model_ids == ["org/a", "org/b"]
        assert scores.models["lab"].tolist() == ["x", "y"]
        assert scores.items["task"].to_dict() == {"q1": "sums", "q2": "words"}
        assert f"'kind' from {items}, by 'q'" in reading.notes
    names.write_text("subject,name,lab\n007,org/a,x\n")
    with pytest.raises(ScoresError, match=r"'name'.*1 row"):
        import_results([answers, names, items], columns=columns)
    names.write_text("subject,name,lab\n7,org/a,x\n7,org/b,x\n")
    with pytest.raises(FewbenchError, match=r"'subject'.*'7'"):
        import_results([answers, names, items], columns=columns)


def test_rows_of_a_table_are_found_by_all_columns_in_common(tmp_path):
    answers, names = tmp_path / "answers.csv", tmp_path / "names.csv"
    answers.write_text("lang,model_id,q,ok\nen,1,q1,1\nen,2,q1,0\nde,1,q2,1\n")
    names.write_text("lang,model_id,name\nde,1,Alpha\nen,1,Alpha\nen,2,Beta\n")
    columns = Columns("name", "q", "ok")
    reading = import_results([answers, names], columns=columns)
    assert reading.scores.model_ids == ["Alpha", "Beta"]
    assert f"'name' from {names}, by 'lang', 'model_id'" in reading.notes
    answers.write_text(answers.read_text() + "en,3,q1,1\n")
    with pytest.raises(ScoresError, match=r"'name'.*1 row"):
        import_results([answers, names], columns=columns)
    names.write_text(names.read_text() + "en,1,Gamma\n")
    with pytest.raises(FewbenchError, match=r"'lang'.*'model_id'.*'en, 1'"):
        import_results([answers, names], columns=columns)


def test_a_column_of_models_that_is_not_named(tmp_path):
    (tmp_path / "t.csv").write_text("Model,id,ok\na,q,1\nb,q,0\n")
    with pytest.raises(FewbenchError, match="'Model'") as caught:
        import_results(tmp_path / "t.csv", columns=NAMED)
    assert caught.value.hint.startswith("add --model Model; or --model-from file")
    (tmp_path / "t.csv").write_text("llm,id,ok\na,q,1\nb,q,0\n")
    with pytest.raises(ScoresError, match="1 row") as caught:
        import_results(tmp_path / "t.csv", columns=NAMED)
    assert caught.value.hint.endswith("if a column names models, add --model COLUMN")


def test_saved_scores_are_joined_with_each_other_and_with_tables(tmp_path):
    first = from_arrays([[1, 0]], models=["a"], items=["q", "r"], tasks=["x", "x"])
    second = from_arrays([[0, 1]], models=["b"], items=["r", "s"], tasks=["x", "y"])
    paths = [
        save_scores(table, tmp_path / f"{name}.parquet")
        for name, table in (("one", first), ("two", second))
    ]
    joined = import_results(paths).scores
    assert joined.model_ids == ["a", "b"]
    assert joined.items["task"].to_dict() == {"q": "x", "r": "x", "s": "y"}
    assert joined.values[joined.is_run].tolist() == [1, 0, 0, 1]
    (tmp_path / "wide.csv").write_text("llm,r\nc,1\n")
    mixed = import_results([tmp_path / "wide.csv", paths[0]], columns=Columns("llm")).scores
    assert mixed.model_ids == ["c", "a"]
    assert set(mixed.items["task"]) == {"x"}  # which the wide table does not say
    with pytest.raises(FewbenchError, match="does not use columns"):
        import_results(paths, columns=Columns("llm"))
    other = save_scores(from_arrays([[1.0]], models=["a"], items=["r"], tasks=["x"]), paths[1])
    with pytest.raises(ScoresError, match=r"1 cell.*'a'.*'r'"):
        import_results([paths[0], other])
    last = save_scores(from_arrays([[0.0]], models=["a"], items=["t"]), tmp_path / "three.parquet")
    joined = import_results([paths[0], last]).scores  # no item in common
    assert joined.values[joined.is_run].tolist() == [1, 0, 0]
    again = save_scores(from_arrays([[1.0]], models=["a"], items=["t"]), tmp_path / "four.parquet")
    with pytest.raises(ScoresError, match=r"three\.parquet"):
        import_results([paths[0], last, again])
    for change, wrong in (
        ({"tasks": ["z"]}, r"a different task of 1 item, first 'r': 'x' and 'z'"),
        ({"tasks": ["x"], "scale": Scale(0, 100)}, "the scale is"),
    ):
        save_scores(from_arrays([[1.0]], models=["b"], items=["r"], **change), other)
        with pytest.raises(ScoresError, match=wrong):
            import_results([paths[0], other])


def test_other_attributes_of_joined_items_are_accepted_and_costs_are_means(tmp_path):
    tables = [
        from_arrays([[1.0]] * n, models=[f"{n}-{at}" for at in range(n)], items=["q"])
        for n in (1, 3)
    ]
    paths = [
        save_scores(
            table.changed(items=table.items.assign(source=str(cost), cost=cost, harness="x")),
            tmp_path / f"{cost:g}.parquet",
        )
        for table, cost in zip(tables, (1.0, 5.0), strict=True)
    ]
    with pytest.raises(ScoresError, match=r"1 item.*'1.0'.*'5.0'"):
        import_results(paths)
    reading = import_results(paths, accept_differences=True)
    assert reading.scores.items.loc["q", "cost"] == 4
    assert "accepted as the items of" in reading.notes[0]
    for path in paths:  # no logs, so that the cost is the user's
        table = import_results(path).scores
        save_scores(table.changed(items=table.items.drop(columns=["harness", "source"])), path)
    with pytest.raises(ScoresError, match=r"1 item.*1\.0.*5\.0"):
        import_results(paths)


def test_texts_that_one_of_joined_tables_lacks_are_empty(tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for at, path in enumerate(paths):
        table = from_arrays([[1.0, 0.0]], models=[path.stem], items=[f"q{at}", "r"])
        if not at:
            table = table.changed(models=table.models.assign(lab=pd.array(["x"], dtype="string")))
            table = table.changed(items=table.items.assign(kind=pd.array(["x"] * 2, dtype="str")))
        save_scores(table, path)
    scores = import_results(paths).scores
    assert scores.models["lab"].tolist() == ["x", ""]
    assert scores.items["kind"].tolist() == ["x", "x", ""]


def test_all_that_is_wrong_with_a_table_is_said_at_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("llm,q,ok,kind\na,1,1,x\na,1,0,x\nb,1,7,y\n")
    columns = Columns("llm", "q", "ok", task="kind", date="when", family="lab")
    with pytest.raises(ScoresError) as caught:
        import_results(path, columns=columns)
    assert caught.value.message.startswith("4 mistakes: (1)")
    for part, wrong in zip(
        caught.value.parts,
        (
            "no column 'when', 'lab'",
            "1 row repeats a cell",
            "two values in column 'kind'",
            "1 score outside the range 0 to 1",
        ),
        strict=True,
    ):
        assert part.message.startswith(f"{path}: ")
        assert wrong in part.message
        assert part.hint
    lines = path.with_suffix(".jsonl")
    lines.write_text('{"llm": null, "q": 1, "ok": "yes"}')
    with pytest.raises(ScoresError, match=r"2 mistakes.*'llm'.*'yes'.*row 1"):
        import_results(lines, columns=Columns("llm", "q", "ok"))
