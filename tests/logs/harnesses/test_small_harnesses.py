"""EvalPlus, EvalScope and promptfoo: files of their layout, written here."""

import json

import pytest

from fewbench.errors import ReaderError
from fewbench.readers import import_results


def save(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = data if isinstance(data, list) else [data]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_evalplus_counts_each_sample_and_needs_base_tests_for_plus(tmp_path):
    samples = {
        "HumanEval/0": [("pass", "fail")],
        "HumanEval/1": [("pass", "pass"), ("fail", "pass")],
        "Mbpp/2": [("pass", "pass")],
    }
    newer = {
        problem: [
            {"task_id": problem, "solution": "x" * 5000, "base_status": base, "plus_status": plus}
            for base, plus in several
        ]
        for problem, several in samples.items()
    }
    older = {
        problem: {
            "nfiles": len(several),
            "base": [["success" if base == "pass" else base, []] for base, _ in several],
            "plus": [["success" if plus == "pass" else plus, []] for _, plus in several],
        }
        for problem, several in samples.items()
    }
    for number, form in enumerate((newer, older)):
        data = {"date": "2025-01-01 10:00", "hash": "h", "eval": form}
        path = save(tmp_path / f"{number}" / "org--m_vllm_temp_0.0.eval_results.json", data)
        base, plus = (import_results(path, metric=metric).scores for metric in ("base", "plus"))
        assert base.model_ids == ["org--m_vllm_temp_0.0"]
        assert base.item_ids.tolist() == ["HumanEval/0", "HumanEval/1", "Mbpp/2"]
        assert base.values.tolist() == [[1, 0.5, 1]]
        assert plus.values.tolist() == [[0, 0.5, 1]]
        assert base.repeats.counts.tolist() == [[1, 2, 1]]
    plain = save(tmp_path / "model-y" / "samples_eval_results.json", {"eval": newer})
    assert import_results(plain, metric="base").scores.model_ids == ["model-y"]
    with pytest.raises(ReaderError, match=r"'HumanEval/0'.*0"):
        import_results(save(plain, {"eval": {"HumanEval/0": []}}))


def review(index, value, group=None, text=None, **more):
    sample = {"score": {"value": value, "prediction": "p"}, "sample_id": index, "group_id": group}
    return {"index": index, "input": text or f"q{group}", "target": "1"} | {
        "sample_score": sample | more
    }


def test_evalscope_has_a_task_for_each_subset_and_repeats(tmp_path):
    rows = [review(n, {"acc": float(n == 3), "f1": 0.5}, group=n // 2) for n in range(4)]
    save(tmp_path / "reviews" / "m1" / "math_500_Level 1.jsonl", rows)
    save(tmp_path / "reports" / "m1" / "math_500.json", {"dataset_name": "math_500", "score": 0.25})
    save(tmp_path / "predictions" / "m1" / "math_500_Level 1.jsonl", [{"index": 0}])
    reading = import_results(tmp_path, metric="acc")
    scores = reading.scores
    assert scores.tasks == ["math_500_Level 1"]
    assert scores.model_ids == ["m1"]
    assert scores.values.tolist() == [[0, 0.5]]
    assert scores.repeats.counts.tolist() == [[2, 2]]
    assert scores.items["group"].tolist() == ["math_500", "math_500"]
    bad = save(tmp_path / "reviews" / "m2" / "gsm8k_main.jsonl", [review(0, {})])
    with pytest.raises(ReaderError, match=r"line 1.*sample_score"):
        import_results(bad)


def result(test, provider, score, **more):
    return {
        "testIdx": test,
        "promptIdx": 0,
        "provider": {"id": provider, "label": ""},
        "vars": {"q": f"{test % 2}+1"},
        "success": score > 0.5,
        "score": score,
        "gradingResult": {"pass": score > 0.5},
        "namedScores": {},
        "cost": 0.25,
    } | more


def test_promptfoo_counts_errors_as_not_run_and_the_same_test_again(tmp_path):
    error = {"success": False, "error": "429", "failureReason": 2, "gradingResult": None}
    results = [
        result(0, "x", 1),
        result(0, "y", 0, **error),
        result(1, "x", 0.33),
        result(1, "y", 1),
        result(2, "x", 0),  # test 0 again
    ]
    path = save(
        tmp_path / "r.json", {"evalId": None, "results": {"version": 3, "results": results}}
    )
    with pytest.raises(ReaderError, match="--metric") as caught:
        import_results(path)
    assert "--metric pass" in caught.value.hint
    reading = import_results(path, metric="pass")
    assert reading.scores.model_ids == ["x", "y"]
    assert reading.scores.values[0].tolist() == [0.5, 0]
    assert reading.scores.missing_shares.tolist() == [0, 0.5]
    assert reading.scores.items["cost"].tolist() == [0.25, 0.25]
    assert any("1 test that ended in an error counts as not run" in note for note in reading.notes)
    assert import_results(path, metric="score").scores.values[0].tolist() == [0.5, 0.33]
    del error["failureReason"]  # as in version 2
    older = [result(0, "x", 1, **error), *results[2:4]]
    save(path, {"results": {"version": 2, "results": older}})
    assert import_results(path, metric="pass").scores.is_run.tolist() == 2 * [[False, True]]
    assert import_results(path, metric="pass", errors="wrong").scores.values[0, 0] == 0
    alone = [result(0, "x", 1), result(0, "y", 0, **error)]
    save(path, {"results": {"version": 2, "results": alone}})
    reading = import_results(path, metric="pass")
    assert reading.scores.model_ids == ["x"]
    assert any("left out: 'y'" in note for note in reading.notes)
    for at, each in enumerate(results):
        each["prompt"] = {"label": f"prompt {at % 2}", "raw": "p"}
    save(path, {"evalId": "e", "results": {"version": 3, "results": results[2:4]}})
    assert import_results(path, metric="pass").scores.model_ids == ["x (prompt 0)", "y (prompt 1)"]
