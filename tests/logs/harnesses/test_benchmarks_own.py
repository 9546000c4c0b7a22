"""What the harnesses of single benchmarks write: SWE-bench, Terminal-Bench, tau2-bench, …"""

import json

import numpy as np
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import import_results


def save(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def by_item(scores, row=0):
    return dict(zip(scores.item_ids, scores.values[row], strict=True))


# -- SWE-bench ---------------------------------------------------------------------------------

REPORT = {
    "total_instances": 6,
    "submitted_instances": 4,
    "completed_ids": ["a__b-1", "a__b-2"],
    "incomplete_ids": ["a__b-5", "a__b-6"],
    "empty_patch_ids": ["a__b-3"],
    "submitted_ids": ["a__b-1", "a__b-2", "a__b-3", "a__b-4"],
    "resolved_ids": ["a__b-1"],
    "unresolved_ids": ["a__b-2"],
    "error_ids": ["a__b-4"],
    "schema_version": 2,
}


def test_a_report_of_swe_bench(tmp_path):
    reading = import_results(save(tmp_path / "org__agent-1.5.run1.json", REPORT))
    assert reading.scores.model_ids == ["org__agent-1.5"]
    assert by_item(reading.scores) == {
        f"swe_bench/a__b-{n}": score for n, score in enumerate([1, 0, 0, 0], start=1)
    }
    older = {name: value for name, value in REPORT.items() if "submitted" not in name}
    older = {"total_instances": 6, "completed_instances": 2, **older}
    assert import_results(save(tmp_path / "b.run1.json", older)).scores.values.tolist() == [
        [1, 0, 0, 0]
    ]
    not_run = import_results(tmp_path / "org__agent-1.5.run1.json", errors="not-run").scores
    assert not_run.is_run.tolist() == [[True, True, True, False]]  # an error is not the agent's
    with pytest.raises(ReaderError, match="--errors cannot be 'x'"):
        import_results(tmp_path / "org__agent-1.5.run1.json", errors="x")
    text = " ".join(reading.notes)
    assert "without a prediction count as not run (2): 'a__b-5', 'a__b-6'" in text
    assert "1 instance with an empty patch, not resolved: 'a__b-3'" in text
    with pytest.raises(ReaderError, match="'resolved_ids'"):
        import_results(save(tmp_path / "x.run1.json", REPORT | {"resolved_ids": None}))


def test_costs_in_details_of_swe_bench_are_kept(tmp_path):
    for name, cost in (("20250101_a", 1.0), ("20250102_b", 3.0), ("20250103_c", None)):
        details = {
            f"x-{n}": {"resolved": n == 1, "cost": cost, "api_calls": 10 * n} for n in (1, 2)
        }
        save(tmp_path / name / "per_instance_details.json", details)
    reading = import_results(tmp_path)
    assert reading.scores.items["cost"].tolist() == [2, 2]
    assert reading.scores.items["api_calls"].tolist() == [10, 20]
    assert "'cost' of an item: the mean of an answer, by the logs of 2 models" in reading.notes


# -- Terminal-Bench ----------------------------------------------------------------------------


def run_1(*verdicts, **more):
    """A file of results of version 1: pairs of task and verdict."""
    return {
        "id": "r",
        "results": [
            {"id": "x", "trial_name": f"{task}.1-of-1", "task_id": task, "is_resolved": verdict}
            | more
            for task, verdict in verdicts
        ],
    }


def test_a_run_of_terminal_bench_1(tmp_path):
    run = run_1(("t1", True), ("t2", None), ("t1", False), ("t2", False), total_input_tokens=5)
    folder = tmp_path / "runs" / "2025-08-25__12-29-38"
    path = save(folder / "results.json", run)
    save(folder / "t1" / "t1.1-of-2" / "results.json", run["results"][0])  # of one trial
    assert import_results(path).scores.model_ids == ["2025-08-25__12-29-38"]
    save(folder / "run_metadata.json", {"agent_name": "terminus", "model_name": "org/m"})
    reading = import_results(tmp_path)
    assert reading.scores.model_ids == ["terminus_org/m"]
    assert by_item(reading.scores) == {"terminal-bench-1/t1": 0.5, "terminal-bench-1/t2": 0}
    assert reading.scores.repeats.counts.tolist() == [[2, 2]]
    assert reading.scores.items["sample_id"].tolist() == ["t1", "t2"]
    assert any("without a verdict (null) count as failed (1)" in note for note in reading.notes)
    not_run = import_results(path, errors="not-run").scores
    assert by_item(not_run) == {"terminal-bench-1/t1": 0.5, "terminal-bench-1/t2": 0}
    assert not_run.repeats.counts.tolist() == [[2, 1]]
    passed = import_results(path, trials="pass@2").scores
    assert by_item(passed) == {"terminal-bench-1/t1": 1, "terminal-bench-1/t2": 0}


def test_runs_of_a_submission_are_repeated_answers(tmp_path):
    place = tmp_path / "results" / "core@0.1.1" / "20250811_agent_model"
    save(place / "run1" / "results.json", run_1(("t1", True)))
    save(place / "run2" / "results.json", run_1(("t1", False)))
    with pytest.raises(ReaderError, match="'agent_model'") as caught:
        import_results(tmp_path)
    assert "--trials mean" in caught.value.hint
    assert by_item(import_results(tmp_path, trials="mean").scores) == {"terminal-bench-1/t1": 0.5}
    own = tmp_path / "data@2" / "runs"  # a folder of the user's
    for name in ("r1", "r2"):
        save(own / name / "results.json", run_1(("t1", True)))
        save(own / name / "run_metadata.json", {"agent_name": "terminus", "model_name": name})
    assert import_results(own).scores.model_ids == ["terminus_r1", "terminus_r2"]


def trial_2(task, reward, cost=0.5, suffix="Ab"):
    return {
        "id": "u",
        "task_name": task,
        "trial_name": f"{task}__{suffix}",
        "config": {"text": "x" * 9000},
        "agent_info": {"name": "agent", "model_info": {"name": "model", "provider": "org"}},
        "agent_result": {"n_input_tokens": 10, "n_output_tokens": 2, "cost_usd": cost},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "started_at": "2026-01-02T03:04:05",
    }


STATS = {
    "reward_stats": {"reward": {"1.0": ["t1__a"], "0.0": ["t1__b", "t2__d"]}},
    "exception_stats": {"AgentTimeoutError": ["t2__c", "t2__d"]},
}
JOB = {"id": "j", "n_total_trials": 4, "stats": {"evals": {"k": STATS}}}


def test_a_job_of_terminal_bench_2_with_its_trials(tmp_path):
    job = tmp_path / "jobs" / "2026-01-02"
    save(job / "result.json", JOB)
    for name, task, reward in (("a", "t1", 1.0), ("b", "t1", 0), ("c", "t2", None), ("d", "t2", 0)):
        save(job / f"{task}__{name}" / "result.json", trial_2(task, reward, suffix=name))
    reading = import_results(tmp_path)
    assert reading.scores.model_ids == ["agent__model"]
    assert by_item(reading.scores) == {"terminal-bench-2/t1": 0.5, "terminal-bench-2/t2": 0}
    assert reading.scores.items[["cost", "tokens"]].to_numpy().tolist() == [[0.5, 12], [0.5, 12]]
    assert any("trials without a reward count as failed (1)" in note for note in reading.notes)
    for trial in ("t1__b", "t2__c"):
        (job / trial / "result.json").unlink()
    part = import_results(tmp_path)
    assert by_item(part.scores) == by_item(reading.scores)
    assert part.scores.repeats.counts.tolist() == [[2, 2]]
    assert any("without a file count by the list of their job (2)" in note for note in part.notes)
    alone = import_results(save(tmp_path / "other" / "agent__m2" / "job" / "result.json", JOB))
    assert by_item(alone.scores) == by_item(reading.scores)
    assert any("trials without a reward count as failed (1)" in note for note in alone.notes)
    lost = {"evals": {"k": {"reward_stats": {}, "exception_stats": {"Error": ["t1__a"]}}}}
    path = save(tmp_path / "lost" / "result.json", JOB | {"stats": lost})
    assert by_item(import_results(path).scores) == {"terminal-bench-2/t1": 0}
    assert any(
        "are not read: their tasks are unknown (3)" in note for note in import_results(path).notes
    )
    published = tmp_path / "submissions" / "terminal-bench" / "2.0" / "agent__m3" / "job"
    assert import_results(save(published / "result.json", JOB)).scores.model_ids == ["agent__m3"]
    own = tmp_path / "submissions" / "today" / "jobs" / "x"  # folders of the user's
    save(own / "j1" / "t1__a" / "result.json", trial_2("t1", 1.0))
    assert import_results(own).scores.model_ids == ["agent__model"]


# -- tau2-bench --------------------------------------------------------------------------------


def tau2(*rewards, kind="llm_agent", **more):
    """Results of tau2-bench: pairs of task and reward, None without one."""
    return {
        "timestamp": "2025-06-01T00:00:00",
        "info": {
            "num_trials": 2,
            "user_info": {"implementation": "user_simulator", "llm": "gpt-x", "llm_args": {}},
            "agent_info": {"implementation": kind, "llm": "org/m"},
            "environment_info": {"domain_name": "airline"},
        },
        "tasks": [],
        "simulations": [
            {"id": "s", "task_id": task, "agent_cost": 0.25}
            | {"reward_info": None if reward is None else {"reward": reward}}
            | more
            for task, reward in rewards
        ],
    }


def test_results_of_tau2_bench(tmp_path):
    path = save(tmp_path / "a.json", tau2(("0", 1.0), ("1", None), ("0", 0.0), ("1", 1.0)))
    reading = import_results(path)
    assert reading.scores.model_ids == ["org/m"]
    assert by_item(reading.scores) == {"tau2_airline/0": 0.5, "tau2_airline/1": 0.5}
    assert reading.scores.items["cost"].tolist() == [0.25, 0.25]
    assert "user_simulator(llm=gpt-x)" in reading.scores.items["task_settings"].iloc[0]
    other = save(tmp_path / "b.json", tau2(("0", 1.0), kind="solo"))
    assert import_results(other).scores.model_ids == ["solo_org/m"]
    lost = tau2(("0", None), termination_reason="infrastructure_error")
    lost["simulations"] += tau2(("1", 1.0))["simulations"]
    reading = import_results(save(tmp_path / "c.json", lost))
    assert reading.scores.is_run.tolist() == [[True, False]]  # both tasks were tried
    assert any("1 task without a trial that counts, not run: '0'" in note for note in reading.notes)
    failed = import_results(tmp_path / "c.json", errors="wrong").scores
    assert by_item(failed) == {"tau2_airline/0": 0, "tau2_airline/1": 1}
    place = tmp_path / "submissions" / "m_org" / "trajectories"
    assert import_results(save(place / "d.json", tau2(("0", 1.0)))).scores.model_ids == ["m_org"]
    own = tmp_path / "submissions" / "mine" / "e.json"  # a folder of the user's
    assert import_results(save(own, tau2(("0", 1.0)))).scores.model_ids == ["org/m"]


# -- MMLU-Pro and LiveCodeBench ----------------------------------------------------------------


def test_answers_of_mmlu_pro(tmp_path):
    rows = [
        {"question_id": n, "question": "q", "options": ["x", "y"], "answer": "A", "pred": pred}
        | {"category": "computer science"}
        for n, pred in enumerate(["A", "B", None])
    ]
    folder = tmp_path / "eval_results" / "model-x"
    reading = import_results(save(folder / "computer science_result.json", rows))
    assert reading.scores.model_ids == ["model-x"]
    assert by_item(reading.scores) == {
        f"mmlu_pro_computer_science/{n}": score for n, score in enumerate([1, 0, 0])
    }
    assert any("without a choice (null) are wrong here (1)" in note for note in reading.notes)
    named = import_results(save(tmp_path / "model_outputs_m_5shots.json", rows)).scores
    assert named.model_ids == ["m_5shots"]
    other = [row | {"answer": "B"} for row in rows]
    both = [save(tmp_path / f"model_outputs_{name}.json", some) for name, some in
            (("m", rows), ("n", other))]  # fmt: skip
    with pytest.raises(ReaderError, match=r"not scored alike: .* have another right answer"):
        import_results(both)
    rows[1].pop("pred")
    path = save(tmp_path / "model_outputs_m_5shots.json", [*rows, "text"])
    with pytest.raises(ReaderError, match="answer 2: an object, without") as caught:
        import_results(path)
    assert "--damaged rows" in caught.value.hint
    reading = import_results(path, damaged="rows")
    assert reading.scores.n_items == 2
    assert any("2 entries of the list left out" in note for note in reading.notes)


def test_codes_of_livecodebench(tmp_path):
    rows = [
        {"question_id": "1_A", "platform": "leetcode", "graded_list": [True, False]},
        {"question_id": "abc", "platform": "atcoder", "graded_list": [True, True]},
    ]
    path = tmp_path / "output" / "Model-X" / "Scenario.codegeneration_2_0.2_eval_all.json"
    scores = import_results(save(path, rows)).scores
    assert scores.model_ids == ["Model-X"]
    assert by_item(scores) == {"atcoder/abc": 1, "leetcode/1_A": 0.5}
    assert np.isclose(scores.repeats.variances, [[0, 0.5]]).all()
    tests = [{"question_id": "7", "test_id": n, "graded_list": [n == 1]} for n in range(2)]
    other = save(path.with_name("Scenario.testoutputprediction_1_0.2_eval_all.json"), tests)
    task = "livecodebench_testoutputprediction"
    assert by_item(import_results(other).scores) == {f"{task}/7/0": 0, f"{task}/7/1": 1}
    rows[0]["graded_list"] = None
    with pytest.raises(ReaderError, match=r"problem 1.*graded_list"):
        import_results(save(path, rows))
