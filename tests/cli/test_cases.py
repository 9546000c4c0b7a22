"""Small inputs that people published, which gave a silently wrong number."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from fewbench import Evaluation, load_scores

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="needs the cases beside the checkout")


@pytest.mark.skipif(not find_spec("inspect_ai"), reason="logs of Inspect are read with inspect-ai")
def test_samples_of_one_text_are_joined_by_their_ids(ok):
    logs = CASES / "inspect_same_text_samples" / "logs"
    ok("import", logs, "-o", "s.parquet")
    scores = load_scores("s.parquet")
    a, b, c = scores.values
    assert a.tolist() == b.tolist() == [1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    ran = np.flatnonzero(~np.isnan(c)).tolist()
    assert scores.items["sample_id"].iloc[ran].tolist() == ["s3", "s7"]
    ok("start", "s.parquet", "-m", "random", "-n", 12, "-t", "new", "-o", "run")
    ok("tell", "run", logs / "c.eval", "-t", "new")
    answers = Evaluation.open("run", scores).record.answers("new")
    assert sorted(answers.items) == ran


def test_a_log_likelihood_is_not_a_perplexity(cli, ok):
    logs = CASES / "lmeval_perplexity" / "logs"
    for more in (("--range=-20,0",), ("--range=-20,0", "--lower-is-better")):
        said = cli("import", logs, "--metric", "perplexity", *more, "-o", "s.parquet")
        assert said.code == 2
        assert "metric 'perplexity' of task 'toy_capitals' is not the mean of its rows" in said.err
        assert "use --metric acc" in said.err
    ok("import", logs, "-o", "s.parquet")
    assert set(load_scores("s.parquet").items["metric"]) == {"acc"}


def test_the_first_rows_of_a_benchmark_are_no_sample_of_it(ok):
    case = CASES / "first_n"
    ok("start", case / "items.csv", "-n", 120, "-t", "m", "-o", "run")
    ok("tell", "run", case / "first120.csv", "-t", "m")
    text = " ".join(ok("estimate", "run").split())
    assert "asked have no answer (none of " in text
    (found,) = json.loads(ok("estimate", "run", "--json")).values()
    assert found["interval"]["low"] < 0.5025 < found["interval"]["high"]
    ok("tell", "run", case / "all.csv", "-t", "m")
    assert "asked have no answer" not in ok("estimate", "run")


def test_a_list_of_failures_is_no_table_of_scores(cli, ok):
    rows = CASES / "bfcl_failures_only" / "rows.jsonl"
    named = ("--model", "model_name", "--item", "id", "--score", "valid")
    said = cli("import", rows, *named, "-o", "s.parquet")
    assert "note: " + str(rows) + ": every score is the worst one" in " ".join(said.err.split())
    text = ok("audit", "s.parquet")
    assert "every score is the worst one" in text
    assert "No problems" not in text


def test_null_is_a_failure_where_the_benchmark_says_so(cli, ok):
    rows = CASES / "null_is_failure" / "r.jsonl"
    named = ("--model", "model", "--item", "task_id", "--score", "is_resolved", "-o", "s.parquet")
    said = cli("import", rows, *named)
    assert "without a score count as not run" in " ".join(said.err.split())
    assert "pass --missing wrong" in said.err
    said = cli("import", rows, *named, "--missing", "wrong", "--force")
    assert "without a score" not in said.err
    assert load_scores("s.parquet").full_scores().mean() == pytest.approx(0.1)


def test_rows_in_a_list_and_a_file_for_each_model(ok):
    named = ("--model", "model", "--item", "id", "--score", "score")
    ok("import", CASES / "json_array_table" / "a.json", *named, "-o", "s.parquet")
    assert load_scores("s.parquet").full_scores().tolist() == [0.5]
    files = sorted((CASES / "one_file_per_model").glob("*.jsonl"))
    ok("import", *files, "--item", "id", "--score", "if_right", "-o", "s.parquet", "--force")
    scores = load_scores("s.parquet")
    assert dict(zip(scores.model_ids, scores.full_scores(), strict=True)) == {
        "model-a": 0.5,
        "model-b": 0.75,
    }


def test_names_of_models_are_in_a_table_of_their_own(ok):
    files = [CASES / "measurement_db" / "toy" / f"{n}.parquet" for n in ("responses", "subjects")]
    named = ("--model", "display_name", "--item", "item_id", "--score", "response")
    ok("import", *files, *named, "--trials", "mean", "-o", "s.parquet")
    assert load_scores("s.parquet").model_ids[0] == "model 0"


@pytest.mark.parametrize(
    ("case", "metric", "right"),
    [
        ("evalplus_results", "base", {"evalplus_results": [1, 0.5]}),
        ("evalplus_results", "plus", {"evalplus_results": [0, 0.5]}),
        ("evalscope_reviews", "acc", {"m1": [0, 1, 0, 1]}),
        ("promptfoo", "pass", {"openai:gpt-x": [1, 0], "openai:gpt-y": [None, 1]}),
        ("swebench_report", "resolved", {"agent-x": [1, 1, 0, 0, 0]}),
        (
            "get_terminal_bench_1",
            "resolved",
            {"agent-a_model-x": [1, 0], "agent-b_model-x": [0.5, 1], "agent-c_model-y": [0, 1]},
        ),
    ],
)
def test_formats_that_people_publish(ok, case, metric, right):
    ok("import", CASES / case, "--metric", metric, "--trials", "mean", "-o", "s.parquet")
    scores = load_scores("s.parquet")
    rows = dict(zip(scores.model_ids, scores.values, strict=True))
    assert {*rows} == {*right}
    for model, expected in right.items():
        assert np.array_equal(rows[model], np.array(expected, dtype=float), equal_nan=True)


@pytest.mark.parametrize(
    ("files", "options", "right"),
    [
        (
            ["model_is_the_file/a-cot.jsonl", "model_is_the_file/a-direct.jsonl"],
            "--item id --score correct --model-from file",
            {"a-cot": 0.25, "a-direct": 0.75},
        ),
        (
            ["models_as_nested_columns/solutions.jsonl"],
            "--item question --score *.is_correct",
            {"small": 1 / 3, "large": 2 / 3},
        ),
        (
            ["prediction_as_score/o.json"],
            "--item input --score prediction --target target --model-name bbh",
            {"bbh": 0.5},
        ),
        (
            ["split_json/eval_results_table.json"],
            "--item inputs --score exact_match/v1/score --model-name m",
            {"m": 0.75},
        ),
        (
            ["swebench_instances_csv/exp", "swebench_instances_csv/instances.csv"],
            "",
            {"20260101_a": 0.4, "20260102_b": 0.2},
        ),
        (["tau2_lost_tasks"], "--errors wrong", {"m1": 1 / 6}),
    ],
)
def test_tables_and_logs_as_people_have_them(ok, files, options, right):
    ok("import", *(CASES / file for file in files), *options.split(), "-o", "s.parquet")
    scores = load_scores("s.parquet")
    means = dict(zip(scores.model_ids, scores.full_scores(), strict=True))
    assert means == pytest.approx(right)


def test_hints_do_not_send_users_the_wrong_way(cli):
    def hint(*words):
        return cli("import", *words, "-o", "s.parquet").err.partition("(hint: ")[2]

    files = sorted((CASES / "model_is_the_file").glob("*.jsonl"))
    named = ("--item", "id", "--score", "correct", "--model", "model")
    assert hint(*files, *named).index("--model-from file") < hint(*files, *named).index("--trials")
    assert "instance_id" in hint(CASES / "swebench_instances_csv" / "exp")
    predictions = CASES / "prediction_as_score" / "o.json"
    assert "--target target" in hint(predictions, "--item", "input", "--score", "prediction")


def test_tasks_that_a_log_lists_and_lost_are_not_run(cli):
    said = cli("import", CASES / "tau2_lost_tasks", "-o", "s.parquet")
    assert "not run: '1', '2'" in " ".join(said.err.split())
    assert load_scores("s.parquet").is_run.tolist() == [[True, False, False]]


def test_rows_inside_the_results_of_lm_eval(ok):
    ok("import", CASES / "lmeval_samples_inside" / "results.json", "-o", "s.parquet")
    scores = load_scores("s.parquet")
    assert scores.n_items == 20
    assert dict(zip(scores.tasks, scores.task_scores()[0], strict=True)) == pytest.approx(
        {"toy_capitals": 7 / 12, "toy_sums": 0}
    )


def test_a_model_that_ran_half_of_the_tasks(ok):
    scores = CASES / "zeros_not_run" / "scores.csv"
    named = ("--model", "model", "--item", "item", "--score", "score", "--task", "category")
    ok("import", scores, *named, "-o", "s.parquet")
    found = {one["kind"]: one for one in json.loads(ok("audit", "s.parquet", "--json"))["findings"]}
    assert found["one-sided-part"]["ids"] == ["m3"]
    ok("audit", "s.parquet", "--drop", "one-sided", "-o", "clean.parquet")
    assert load_scores("clean.parquet").is_run.sum() == 8 * 160 - 80
