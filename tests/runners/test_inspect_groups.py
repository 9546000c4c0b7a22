"""Tasks of the real Inspect whose scores are grouped: the groups are tasks in the scores."""

import importlib.util

import pytest

import fewbench
from fewbench.cli import app
from fewbench.evaluation import Evaluation
from fewbench.readers.harnesses.inspect_logs.samples import content_of
from fewbench.readers.values import content_id
from fewbench.runners.inspect.samples import tasks_in

from .test_inspect import QUIZ, logs_of, quiz_module, run, sources, told

pytestmark = [
    # Looked for, not imported: it would take a second whenever tests are collected.
    pytest.mark.skipif(not importlib.util.find_spec("inspect_ai"), reason="needs inspect-ai"),
    # Of tenacity, as Inspect 0.3.285 uses it.
    pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning"),
]
BOTH = [f"{QUIZ}@exam", f"{QUIZ}@exam_more"]
NEW = "scripted/new-9"
PARTS = ("exam_law", "exam_art", "exam/more")  # exam_more is the other task
NOT_BY_LEVEL = "groups by 'subject' are tasks here; those by 'level' are not"


@pytest.fixture(scope="module", autouse=True)  # it registers the scripted model
def quiz():
    return quiz_module()


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The questions that the model was asked so far."""
    path = tmp_path / "asked.txt"
    monkeypatch.setenv("ASKED", str(path))
    return lambda: path.read_text().splitlines() if path.exists() else []


def evaluate(folder, tasks=BOTH, **settings):
    """Run Inspect itself; return its logs by task."""
    import inspect_ai

    how = {"model": NEW, "log_dir": str(folder), "display": "none"} | settings
    return {log.eval.task: log for log in inspect_ai.eval(tasks, **how)}


def metrics_in(log):
    return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}


def test_groups_of_samples_are_tasks_that_score_as_in_inspect(tmp_path, monkeypatch):
    monkeypatch.setenv("GROUPED", "subject,level")
    logs = evaluate(tmp_path / "logs")
    reading = fewbench.import_results(tmp_path / "logs")
    scores = reading.scores
    own, other = metrics_in(logs["exam"]), metrics_in(logs["exam_more"])
    assert dict(zip(scores.tasks, scores.task_scores()[0], strict=True)) == pytest.approx(
        {
            "exam_law": own["law"],
            "exam_art": own["art"],
            "exam/more": own["more"],
            "exam_more": other["accuracy"],
        }
    )
    (group,) = scores.groups
    assert (group.name, group.parts) == ("exam", PARTS)
    assert scores.task_scores()[0] @ group.weights == pytest.approx(own["accuracy"])
    assert sum(NOT_BY_LEVEL in note for note in reading.notes) == 1
    assert [tasks_in(scores, name) for name in ("exam", "own/exam", "exam_more", "exam_law")] == [
        *(PARTS, PARTS, ("exam_more",), ("exam_law",))
    ]
    ungrouped = scores.items.copy()  # a sample that names no group
    ungrouped.loc[ungrouped.index[0], ["task", "group"]] = "exam", ""
    assert set(tasks_in(scores.changed(items=ungrouped), "exam")) == {"exam", *PARTS}
    alone = evaluate(tmp_path / "alone", BOTH[:1])["exam"]
    assert metrics_in(alone)["more"] == own["more"]
    assert "exam_more" in fewbench.import_results(tmp_path / "alone").scores.tasks


def test_a_run_without_sources_resumes_and_a_full_one_scores_as_inspect_does(
    tmp_path, asked, monkeypatch
):
    monkeypatch.setenv("GROUPED", "subject,level")
    folder = tmp_path / "run"
    found = run(None, folder, BOTH[1], task="exam", stop=14)
    assert f"task 'exam': {NOT_BY_LEVEL}" in found.notes
    first = found.estimates[NEW]
    assert first.groups["exam"].parts == PARTS
    assert first.groups["exam"].items_run == sum(first.task_items[task] for task in PARTS)
    for log in logs_of(folder):  # each sample ran in its own task
        for sample in log.samples:
            assert f"{log.eval.task}/{content_id(*content_of(sample))}" in told(folder)
    assert len(asked()) == len(told(folder)) == 14
    app(["estimate", str(folder), "--next-items", "22", "--ask"], standalone_mode=False)
    whole = run(None, folder, BOTH[1], task="exam", stop=14).estimates[NEW]
    assert (len(asked()), len(set(asked()))) == (36, 36)
    logs = evaluate(tmp_path / "logs")
    own = metrics_in(logs["exam"])
    scored = whole.groups["exam"]
    assert (scored.score, scored.interval.low, scored.interval.high) == pytest.approx(
        (own["accuracy"],) * 3
    )
    assert [whole.tasks[task] for task in PARTS] == pytest.approx(
        [own[name] for name in ("law", "art", "more")]
    )
    made = fewbench.load_scores(folder / "benchmark.parquet")
    imported = fewbench.import_results(tmp_path / "logs").scores
    assert made.items.equals(imported.items.drop(columns="tokens"))


def test_a_run_with_sources_resumes_and_prints_groups(tmp_path, asked):
    table = sources(tmp_path / "sources", BOTH)
    before, folder = len(asked()), tmp_path / "run"
    given = {"task": "exam", "method": "random", "stop": 14}
    first = run(table, folder, BOTH[1], **given).estimates[NEW]
    path = folder / "answers.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:8]))
    again = run(table, folder, BOTH[1], **given).estimates[NEW]  # the rest is in the logs
    assert len(asked()) - before == 14
    assert again.groups == first.groups
    lines = str(again).partition("\nTask ")[2].splitlines()[1:6]
    rows = [line.replace("\N{NO-BREAK SPACE}", ".").split() for line in lines]
    assert [row[0] for row in rows] == ["exam", *(f"..{part}" for part in PARTS), "exam_more"]
    assert rows[0][1] == f"{again.groups['exam'].score:.1%}"


def test_by_hand_logs_are_told_with_and_without_the_groups(tmp_path, monkeypatch, capsys):
    table = sources(tmp_path / "sources", BOTH)
    fewbench.save_scores(table, tmp_path / "scores.parquet")

    def say(*words):
        capsys.readouterr()
        app([str(word) for word in words], standalone_mode=False)
        return capsys.readouterr()

    estimates = []
    for grouped in ("subject", "", "level"):
        monkeypatch.setenv("GROUPED", grouped)
        folder, logs = tmp_path / f"run{grouped}", tmp_path / f"logs{grouped}"
        say("start", tmp_path / "scores.parquet", "-m", "random", "-n", 14, "-o", folder)
        said = say("ask", folder, "--for", "inspect")
        chosen = said.out.strip().split(",")
        assert {name.partition(":")[0] for name in chosen} == {"exam", "exam_more"}
        assert "run exactly these tasks: " in said.err
        ran = evaluate(logs, sample_id=chosen)
        assert sum(len(log.samples) for log in ran.values()) == 14
        assert say("tell", folder, logs).out.startswith("recorded 14 answers")
        read = fewbench.import_results(logs, like=table).scores.items
        assert read["task"].equals(table.items["task"].loc[read.index])
        estimates.append(Evaluation.open(folder).estimate(warn=False)["target"])
    assert [found.groups["exam"].parts for found in estimates] == [PARTS] * 3
    assert estimates[0].groups == estimates[1].groups == estimates[2].groups
    # Sources whose logs have no groups, and logs that have them.
    monkeypatch.setenv("GROUPED", "")
    plain = sources(tmp_path / "plain", BOTH)
    by_hand = Evaluation(plain, "random", 14)
    by_hand.ask()
    reading = fewbench.import_results(tmp_path / "logssubject", like=plain)
    assert by_hand.tell_table(reading.scores).answers == 14
    found = by_hand.estimate(warn=False)["target"]
    assert (list(found.tasks), found.groups) == (["exam", "exam_more"], {})
