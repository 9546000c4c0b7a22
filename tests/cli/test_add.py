"""fewbench add: a scores file grows by the runs that were evaluated."""

import json
import os

import numpy as np
import pytest

import fewbench
from fewbench import load_scores, save_scores
from fewbench.evaluation import Evaluation
from fewbench.scores.table import PROMPTS
from fewbench.testing import simulate

WHOLE = simulate(6, 60, 2, seed=3)


def ran(folder, row, n=20, target="target"):
    answer = dict(zip(WHOLE.item_ids, WHOLE.values[row], strict=True)).get
    fewbench.run(WHOLE.benchmark, "random", n, answer, targets=[target], folder=folder, seed=row)


def told(folder, row, prompt):
    evaluation = Evaluation(WHOLE.benchmark, "random", 60, [f"m{row}"])
    evaluation.save(folder)
    answers = WHOLE.take(models=[row])
    evaluation.tell_table(answers.changed(items=answers.items.assign(**{PROMPTS: prompt})))


def test_three_runs_from_nothing_serve_the_fourth(ok, cli):
    for row in range(3):
        ran(f"run-{row}", row)
    said = ok("add", "run-0", "run-1", "-o", "scores.parquet")
    assert said.startswith(
        "scores.parquet: has 2 runs from 'run-0', 'run-1'; 2 models × 60 items, 2 tasks, 66.7% of"
    )
    ok("add", "run-2", "--name", "run-2=third", "-o", "scores.parquet")
    assert load_scores("scores.parquet").model_ids == ["run-0", "run-1", "third"]
    ok("start", "scores.parquet", "-n", 20, "-t", "new", "-o", "new")
    known = dict(zip(WHOLE.item_ids, WHOLE.values[3], strict=True))
    while asked := json.loads(ok("ask", "new", "--json")).get("new"):
        rows = "".join(f"{item},{known[item]:g}\n" for item in asked)
        with open("answers.csv", "w", encoding="utf-8") as file:
            file.write("item,score\n" + rows)
        ok("tell", "new", "answers.csv", "--item", "item", "--score", "score")
    before = ok("estimate", "new")
    assert "20 of 60 items" in before
    ok("add", "new", "-o", "scores.parquet")
    assert load_scores("scores.parquet").model_ids[-1] == "new"
    assert ok("estimate", "new") == before
    again = cli("add", "run-1", "-o", "scores.parquet")
    assert again.code == 0
    assert "scores.parquet: no new answers of 'run-1 (run-1)': the table has them all" in again.err
    assert "has 1 run from 'run-1'; 4 models" in again.out


def test_a_table_to_add_to_and_another_file(ok, cli):
    save_scores(WHOLE.take(models=np.arange(5)), "scores.parquet")
    ran("run", 5)
    ok("add", "run", "--scores", "scores.parquet", "-o", "new.parquet")
    assert load_scores("scores.parquet").n_models == 5
    assert load_scores("new.parquet").n_models == 6
    again = cli("add", "run", "--scores", "scores.parquet", "-o", "new.parquet")
    assert "new.parquet already exists" in again.err
    ok("add", "run", "--scores", "scores.parquet", "-o", "new.parquet", "--force")
    own = cli("add", "run", "--scores", "scores.parquet", "-o", "scores.parquet")
    assert own.kind == "conflict"


def test_accepted_differences_are_told(ok, cli):
    told("a", 0, "9f00")
    told("b", 1, "1234")
    refused = cli("add", "a", "b", "-o", "scores.parquet")
    assert "b: not answers to the same items as in the table" in refused.err
    assert not os.path.exists("scores.parquet")
    taken = cli("add", "a", "b", "-o", "scores.parquet", "--accept-differences")
    assert taken.code == 0
    assert "note: scores.parquet: b: accepted as answers to the same items: " in taken.err
    assert set(load_scores("scores.parquet").items[PROMPTS]) == {"9f00 1234"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere", "-o", "s.parquet"], "nowhere: no evaluation here"),
        (["run", "-o", "s.csv"], "scores are saved as Parquet"),
        (["run", "-o", "run/benchmark.parquet"], "part of the input run"),
        (["run", "--name", "a", "-o", "s.parquet"], "a: no folder and name"),
        (["run", "--name", "b=a", "-o", "s.parquet"], "no run to give a name: 'b'"),
        (["run", "-o", "other.parquet"], "none of the answered items is in the table"),
    ],
)
def test_mistakes(cli, words, message):
    ran("run", 0)
    other = WHOLE.take(models=[1])
    items = other.items.set_axis([f"x{at}" for at in range(60)])
    save_scores(other.changed(items=items), "other.parquet")
    before = load_scores("other.parquet").digest
    said = cli("add", *words)
    assert said.code == 2
    assert message in said.err
    assert not os.path.exists("s.parquet")
    assert load_scores("other.parquet").digest == before


def test_import_says_what_an_evaluation_s_folder_is_for(cli):
    ran("run", 0)
    said = cli("import", "run", "-o", "s.parquet")
    assert "run: an evaluation" in said.err
    assert "fewbench add run -o scores.parquet" in said.err
