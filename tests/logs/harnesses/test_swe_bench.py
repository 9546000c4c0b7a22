"""Submissions to SWE-bench: lists of resolved instances, and details of each."""

import json

import pandas as pd
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import import_results

IDS = [f"org__repo-{n}" for n in range(4)]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.fixture
def split(tmp_path):
    """Two submissions by lists, one with details, and the table of instances."""
    folder = tmp_path / "evaluation" / "verified"
    lists = {"no_generation": [IDS[3]], "no_logs": [], "resolved": IDS[:2]}
    write(folder / "20240101_a" / "results" / "results.json", lists)
    write(folder / "20240301_b" / "results" / "results.json", {"resolved": [*IDS[1:3], "gone"]})
    details = {one: {"resolved": one == IDS[0]} for one in IDS[:3]}
    write(folder / "20250101_c" / "per_instance_details.json", details)
    write(folder / "20250101_c" / "results" / "results.json", {"resolved": IDS})
    pd.DataFrame({"instance_id": IDS, "repo": "org/repo"}).to_parquet(tmp_path / "test.parquet")
    return folder


def test_submissions_and_the_table_of_instances(split, tmp_path):
    reading = import_results(tmp_path)
    scores = reading.scores
    assert scores.model_ids == ["20240101_a", "20240301_b", "20250101_c"]
    assert scores.values.tolist() == [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0]]
    assert scores.tasks == ["swe_bench"]
    assert list(scores.items["sample_id"]) == IDS
    assert set(reading.files.query("taken > 0")["time"]) == {
        "2024-01-01",
        "2024-03-01",
        "2025-01-01",
    }
    notes = " ".join(reading.files["note"])
    assert "1 instance not in the table: 'gone'" in notes
    assert "1 instance without a result, which count as not resolved: 'org__repo-3'" in notes
    assert import_results(tmp_path, form="swe-bench").scores.equals(scores)


def test_details_need_no_table(split):
    reading = import_results(split / "20250101_c")
    assert reading.scores.values.tolist() == [[1, 0, 0]]
    assert "only the 3 instances with a result count" in " ".join(reading.files["note"])


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("results/results.json", {"resolved": IDS}, "not which instances there are"),
        ("results/results.json", {"resolved": ["a"]}, "none of its resolved instances is in"),
        ("results/results.json", {"resolved": [1, 2]}, "not a list of instance ids"),
        ("results/results.json", {"no_logs": []}, "not a list of instance ids"),
        ("per_instance_details.json", {IDS[0]: {"resolved": "yes"}}, "not true or false"),
        ("per_instance_details.json", {"resolved": True}, "not true or false"),
    ],
)
def test_what_cannot_be_read(tmp_path, name, content, said):
    write(tmp_path / "evaluation" / "lite" / "20240101_a" / name, content)
    if "which" not in said:
        rows = pd.DataFrame({"instance_id": IDS})
        rows.to_json(tmp_path / "instances.jsonl", orient="records", lines=True)
    with pytest.raises(ReaderError, match=said):
        import_results(tmp_path)
    (tmp_path / "instances.jsonl").write_text('{"instance_id": "a"}\n' * 2)
    write(tmp_path / "evaluation" / "lite" / "20240101_a" / name, {"resolved": []})
    with pytest.raises(ReaderError, check=lambda error: error.kind == "repeated"):
        import_results(tmp_path, form="swe-bench")
