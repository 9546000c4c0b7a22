"""Answers from the results of a benchmark's own harness: `tell DIR FILE --from NAME`."""

import json

import pytest

from fewbench import Evaluation
from fewbench.scores import from_arrays, save_scores

TASKS = ["t1", "t2", "t3"]


@pytest.fixture
def started(ok, tmp_path):
    """An evaluation of all items of two tables, named as `get` names them."""

    def start(prefix, **columns):
        items = [f"{prefix}/{task}" for task in TASKS]
        table = from_arrays([[1, 0, 1], [0, 0, 1]], models=["a", "b"], items=items,
                            tasks=[prefix] * 3)  # fmt: skip
        table = table.changed(items=table.items.assign(**columns))
        path = save_scores(table, tmp_path / f"{prefix}.parquet")
        ok("start", path, "-m", "random", "-n", 3, "-t", "new", "-o", prefix)
        return prefix

    return start


def written(data, name="results.json"):
    with open(name, "w") as file:
        json.dump(data, file)
    return name


def answers_of(run):
    evaluation = Evaluation.open(run)
    answers = evaluation.record.answers("new")
    ids = evaluation.scores.item_ids[answers.items]
    return dict(zip([item.rpartition("/")[2] for item in ids], answers.scores[0], strict=True))


def test_a_report_of_swe_bench(cli, started):
    run = started("swe_bench")
    report = {"total_instances": 500, "submitted_instances": 2, "incomplete_ids": ["t3", "x"]}
    report |= {"submitted_ids": ["t1", "t2"], "resolved_ids": ["t2"]}
    said = cli("tell", run, written(report, "agent.run1.json"), "--from", "swe-bench")
    assert "recorded 2 answers" in said.out
    assert answers_of(run) == {"t1": 0, "t2": 1}
    said = cli("tell", run, "agent.run1.json", "--from", "tau2-bench")
    assert said.code == 2
    assert "agent.run1.json: no result file of tau2-bench" in said.err


def test_a_run_of_terminal_bench_with_several_trials(ok, started):
    run = started("terminal-bench-1")
    trials = [("t1", True), ("t1", None), ("t2", True), ("t2", True), ("t3", False), ("t3", False)]
    data = {"results": [{"task_id": task, "is_resolved": right} for task, right in trials]}
    assert "recorded 3 answers" in ok("tell", run, written(data), "--from", "terminal-bench")
    assert answers_of(run) == {"t1": 0.5, "t2": 1, "t3": 0}


def test_what_answers_cost_by_their_log_is_recorded_once(ok, started):
    run = started("tau2_airline", cost=[1.0, 1.0, 2.0])
    simulations = [
        {"task_id": task, "agent_cost": cost, "reward_info": {"reward": 1.0}}
        for task, cost in (("t1", 5.0), ("t2", 5.0))
    ]
    info = {"num_trials": 1, "user_info": {}, "agent_info": {"llm": "m"}}
    info |= {"environment_info": {"domain_name": "airline"}}
    data = {"info": info, "simulations": simulations}
    for _ in range(2):
        ok("tell", run, written(data))
    cost = Evaluation.open(run).cost("new")
    assert cost.spent == 10
    assert cost.full == pytest.approx(20)  # the third item costs as much as the others together
    simulations.append({"task_id": "t3", "agent_cost": 8.0, "reward_info": None})
    ok("tell", run, written(data))
    assert Evaluation.open(run).cost("new").spent == 18


def test_columns_of_a_table_are_refused_for_a_log(cli, started):
    run, log = started("tau2_retail"), written({"simulations": []})
    said = cli("tell", run, log, "--from", "tau2-bench", "--item", "q")
    assert "--item and --score name columns of a table" in said.err
