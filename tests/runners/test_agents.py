"""Two versions of an agent in Inspect: one folder, one command, and no warning about the change."""

import importlib.util
import json
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import fewbench
from fewbench.decide.best import Search, run_best
from fewbench.errors import RunError
from fewbench.evaluation import Evaluation
from fewbench.scores.conditions import compare_conditions, disagreements, join_settings
from fewbench.scores.table import SETTINGS

QUIZ = Path(__file__).with_name("inspect_quiz.py")
MODEL = "scripted/new-9"
pytestmark = [
    pytest.mark.skipif(not importlib.util.find_spec("inspect_ai"), reason="needs inspect-ai"),
    pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)  # it registers the scripted model
def quiz():
    spec = importlib.util.spec_from_file_location("inspect_quiz", QUIZ)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(folder, target, *arguments, **settings):
    words = [f"{QUIZ}@quiz", "--model", MODEL, *arguments]
    given = {"stop": 8, "targets": [target], "quiet": True} | settings
    return fewbench.run_inspect(None, arguments=words, folder=folder, **given)


def test_versions_share_a_folder_and_a_note_says_how_they_differ(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    run(folder, "old")
    found = run(folder, "new", "--temperature", "0.5")
    assert sum("run in different ways: temperature of task 'quiz': 0.5" in n for n in found.notes)
    assert not any("temperature" in text for text in found.estimates["new"].warnings)
    both = Evaluation.open(folder)
    assert both.record.asked("old").tolist() == both.record.asked("new").tolist()
    decided = fewbench.versus((both, "new"), (both, "old"))
    assert not any("temperature" in text for text in decided.warnings)
    # A target itself stays as it is, and all are scored alike.
    path = folder / "answers.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    last = [at for at, line in enumerate(lines) if '"scores"' in line][-1]
    path.write_text("".join(lines[:last]))
    with pytest.raises(RunError, match=r"0\.7 in the task now, 0\.5 in the beginning"):
        run(folder, "new", "--temperature", "0.7", stop=None)
    monkeypatch.setenv("NUMERIC", "1")
    with pytest.raises(RunError, match="metric of task 'quiz'"):
        run(folder, "third")


def test_the_best_of_versions_with_arguments_of_their_own(tmp_path):
    """Each has evals of its own, in turn, and a limit on cost is refused without prices."""
    own = {name: ["--model", f"scripted/{name}"] for name in ("good-18", "bad-0")}
    own["good-18"] += ["--temperature", "0.5"]
    start = partial(fewbench.run_inspect, arguments=[f"{QUIZ}@quiz"], own=own, quiet=True)
    with pytest.raises(RunError, match="no cost is reported"):
        run_best(start, None, Search(targets=tuple(own), cost=5.0), folder=tmp_path / "cost")
    assert not (tmp_path / "cost").exists()
    found = run_best(start, None, Search(targets=tuple(own), answers=40), folder=tmp_path / "run")
    assert found.winners == ("good-18",)
    assert 16 < found.answers <= 40
    assert len([*(tmp_path / "run" / "logs").iterdir()]) > 2


def test_a_failed_sample_is_named_by_its_own_id_with_one_line(tmp_path, monkeypatch):
    run(tmp_path / "first", "old")
    item = Evaluation.open(tmp_path / "first").items("old").query("status == 'answered'").index[0]
    own_id = Evaluation.open(tmp_path / "first").scores.items["sample_id"][item]
    monkeypatch.setenv("FAIL", f"Is {own_id[1:]} so?")
    found = run(tmp_path / "run", "old", tries=1)
    assert found.targets["old"].failed == {item: "RuntimeError: the service is down"}
    said = " ".join(str(found).split())
    assert f"1 item failed and skipped: '{own_id}'. Its error: RuntimeError: the serv" in said
    assert item not in said
    assert json.loads(found.to_json())["targets"]["old"]["own_ids"] == {item: own_id}


def test_another_agent_than_several_agents_is_a_note():
    def asked(*versions, other="1"):
        runs = [{"task argument: version": name, "few-shot examples": other} for name in versions]
        return fewbench.Benchmark(
            pd.DataFrame({"task": "t", SETTINGS: join_settings(runs)}, index=["q"])
        )

    new = asked("3")
    assert compare_conditions(asked("1"), new, ["q"]).differences
    several = compare_conditions(asked("1", "2"), new, ["q"])
    assert not several.differences
    assert "another agent than in the sources" in several.notes[0]
    assert compare_conditions(asked("1", "2", other="5"), new, ["q"]).differences
    assert disagreements(asked("1", "2"))
    assert not disagreements(asked("1", "2"), but_agents=True)
