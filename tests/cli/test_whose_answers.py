"""Tables that name another model than the target, or another benchmark's task."""

import csv
import json
import unicodedata

import pytest

from fewbench import Evaluation
from fewbench.errors import AnswersError, ScoresError

COLUMNS = ("--item", "id", "--score", "points")


@pytest.fixture
def tell(ok, cli, scores, asked, tmp_path):
    """Start an evaluation and return a function that tells it a table."""
    ok("start", scores, "-m", "random", "-n", 6, "-o", "run")
    items = asked()["target"]

    def call(*words, model=None, task=None, score=1, part=slice(None)):
        with (tmp_path / "t.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["llm", "id", "points", "task"] if task else ["llm", "id", "points"])
            for item in items[part]:
                rows.writerow([model, item, score, *([task(item)] if task else [])])
        named = ("--model", "llm") if model else ()
        return cli("tell", "run", "t.csv", *named, *COLUMNS, *words)

    call.items = items
    return call


def lines():
    with open("run/answers.jsonl") as file:
        return [json.loads(line) for line in file if '"scores"' in line]


def test_another_model_is_noted_and_recorded_and_a_second_one_refused(tell, ok):
    said = tell(model="org/a", part=slice(2))
    assert said.code == 0
    assert "note: t.csv: answers of the model 'org/a' are recorded as those of 'target'" in said.err
    assert [line["model"] for line in lines()] == ["org/a"]
    other = tell(model="org/b", part=slice(2, 4))
    assert other.code == 2
    assert "'target' has answers of the model 'org/a', and these are of 'org/b'" in other.err
    assert "--target target" in other.err
    assert len(lines()) == 1
    # The user may say whose they are; answers without a model are the target's.
    assert tell("--target", "target", model="org/b", part=slice(2, 4)).code == 0
    assert tell(part=slice(4, 6)).code == 0
    again = tell(model="org/a")
    assert again.code == 0, again.err
    assert json.loads(ok("estimate", "run", "--json"))["target"]["items_run"] == 6


def test_another_task_is_refused_unless_accepted(tell, table, ok, cli):
    right = dict(table.items["task"].items())
    assert tell(task=right.get).code == 0
    refused = tell("--correct", task=lambda item: "other-benchmark", score=0)
    assert refused.code == 2
    assert "6 of 6 items" in refused.err
    assert "'other-benchmark'" in refused.err
    assert "--accept-differences" in refused.err
    assert len(lines()) == 1
    accepted = tell(
        "--correct", "--accept-differences", task=lambda item: "other-benchmark", score=0
    )
    assert accepted.code == 0, accepted.err
    for words in ((), ("--json",)):
        assert "other-benchmark" in ok("estimate", "run", *words)


def test_tasks_are_compared_only_where_both_sides_have_them(tell, table, ok, tmp_path):
    from fewbench.scores import from_arrays, save_scores

    bare = from_arrays(
        table.values, models=list(table.model_ids), items=list(table.item_ids)
    )  # of no task
    save_scores(bare, tmp_path / "bare.parquet")
    (tmp_path / "run").rename(tmp_path / "old")
    ok("start", "bare.parquet", "-m", "random", "-n", 6, "-o", "run")
    assert tell(task=lambda item: "other").code == 0


def test_answers_whose_ids_have_another_unicode_form_are_refused(cli, ok, tmp_path):
    items = [unicodedata.normalize("NFC", f"café-{at}") for at in range(9)]
    (tmp_path / "items.csv").write_text("\n".join(["id", *items]) + "\n")
    ok("start", "items.csv", "-n", 3, "-o", "forms")
    asked = ok("ask", "forms").split()
    rows = [f"{unicodedata.normalize('NFD', item)},1" for item in asked]
    (tmp_path / "t.csv").write_text("\n".join(["id,points", *rows]) + "\n")
    said = cli("tell", "forms", "t.csv", *COLUMNS)
    assert said.code == 2
    assert said.kind == "unknown"
    evaluation = Evaluation.open("forms")
    with pytest.raises(ScoresError, check=lambda error: error.kind == "unknown"):
        evaluation.tell("target", {unicodedata.normalize("NFD", asked[0]): 1})
    with pytest.raises(AnswersError, match=f"the score of item '{asked[0]}' is not a number: int"):
        evaluation.tell("target", {asked[0]: 10**400})


def test_texts_for_right_and_wrong_answers(tell, asked):
    said = tell(score="PASS", part=slice(3))
    assert said.code == 2
    assert "'PASS' (3, first at row 1)" in said.err
    assert tell("--right", "PASS", "--wrong", "FAIL", score="PASS", part=slice(3)).code == 0
    assert tell("--right", "PASS", "--wrong", "FAIL", score="FAIL", part=slice(3, 6)).code == 0
    assert [line["scores"] for line in lines()] == [[1, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("header", "options"),
    [("id,score", ()), ("item,score", ()), ("id,step-1", ("--score", "step-1"))],
)
def test_usual_columns_of_answers_need_no_names(ok, cli, scores, asked, tmp_path, header, options):
    ok("start", scores, "-m", "random", "-n", "4", "-o", "run")
    rows = [f"{item},1" for item in asked()["target"]]
    (tmp_path / "results.csv").write_text("\n".join([header, *rows]))
    assert "recorded 4 answers" in ok("tell", "run", "results.csv", *options)
    (tmp_path / "other.csv").write_text(
        "\n".join([f"model,{header}", *(f"m,{row}" for row in rows)])
    )
    assert "--model" in cli("tell", "run", "other.csv").err  # perhaps of several models
