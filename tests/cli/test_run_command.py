"""fewbench run: programs through the command line."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewbench import save_scores
from fewbench.testing import simulate

PROGRAM = """
import json, sys
for line in sys.stdin:
    item = json.loads(line)["item"]
    answer = {"score": len(item) % 2, "cost": 0.25} if item != "item-7" else {"error": "no picture"}
    print(json.dumps({"item": item} | answer), flush=True)
"""
START = ("--", sys.executable, "-S", "-c")


def run(cli, scores, *words, program=PROGRAM):
    return cli("run", "command", scores, "-m", "random", *words, *START, program)


def test_a_program_with_progress_result_and_another_go(cli, scores, ok, monkeypatch, tmp_path):
    monkeypatch.setattr("fewbench._progress.MINUTE", 0.0001)
    said = run(cli, scores, "-n", 40, "-o", "run", "--batch", 10, "--tries", 2)
    assert said.code == 0, said.err
    assert "Estimated from 39 of 40 items" in said.out
    assert " 9.75       10        0.25\n" in said.out  # cost, in full, saved
    assert "1 item failed and skipped: 'item-7'. Its error: no picture" in said.out
    assert "result: run/result.json" in said.err
    assert "running command: python: " in said.err
    assert " of 40 items" in said.err
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert kept["targets"]["python"]["items_run"] == 39
    again = run(cli, scores, "-n", 40, "-o", "run", "--json", "--tries", 2)
    found = json.loads(again.out)
    assert found["targets"] == kept["targets"]  # nothing is asked again
    assert json.loads(ok("estimate", "run", "--json"))["python"]["items_run"] == 39


def test_another_program_in_the_same_folder_is_refused(cli, scores):
    few = ("-n", 3, "-o", "run")
    assert run(cli, scores, *few).code == 0
    said = run(cli, scores, *few, program=PROGRAM + "#")
    assert said.code == 2
    assert "python ran differently: program is " in said.err
    assert run(cli, scores, *few, "--accept-changes", program=PROGRAM + "#").code == 0


def test_a_rerun_says_that_nothing_was_run_and_a_fresh_one_keeps_the_old_folder(
    cli, scores, tmp_path
):
    few = ("-n", 20, "-o", "run")
    wrong = PROGRAM.replace("len(item) % 2", "0")
    first = run(cli, scores, *few, program=wrong)
    assert "answers are wrong: check how replies are read" in " ".join(first.out.split())
    assert "nothing was run" not in first.out
    again = " ".join(run(cli, scores, *few, "--accept-changes").out.split())
    assert (
        "warning: nothing was run: 20 answers came from an earlier run; to start over, pass --fresh"
        in again
    )
    assert "answers are wrong" in again
    for kept in ("run.1", "run.2"):
        fresh = run(cli, scores, *few, "--fresh")
        assert fresh.code == 0, fresh.err
        assert f"the earlier run is now in {tmp_path / kept}" in fresh.err
        assert "answers are wrong" not in fresh.out
        assert "nothing was run" not in fresh.out
    kept = [cli("estimate", name).out for name in ("run.1", "run.2", "run")]
    assert "answers are wrong" in " ".join(kept[0].split())
    assert kept[1] == kept[2] != kept[0]


@pytest.mark.parametrize("shell", [False, True])
def test_a_changed_file_of_the_program_is_refused_by_name(cli, scores, tmp_path, shell):
    script, settings = tmp_path / "answer.py", tmp_path / "settings.json"
    script.write_text(PROGRAM)
    settings.write_text("{}")
    words = ("run", "command", scores, "-m", "random", "-n", 9, "-o", "run", "--accept-changes")
    program = [sys.executable, "-S", "answer.py", f"--settings={settings}"]
    program = ["--", *(["sh", "-c", f"exec {shlex.join(program)}"] if shell else program)]
    assert cli(*words, *program).code == 0
    for path in (script, settings):
        path.write_text(path.read_text() + " ")
        said = cli(*words[:-1], *program)
        assert said.code == 2
        assert f"file {path.name if path == script else path} is with the hash" in said.err
        assert cli(*words, *program).code == 0
        assert cli(*words[:-1], *program).code == 0


def test_what_ends_a_run_early_is_in_its_exit_code(cli, scores):
    said = run(cli, scores, "-n", 9, "-o", "run", program="import os; os._exit(3)")
    assert said.code == 1
    assert "ended with exit code 3, twice in a row" in " ".join(said.out.split())
    said = run(cli, scores, "-n", 20, "-o", "b", program="import sys; print('hi'); input()")
    assert said.code == 1
    assert "'hi'" in said.err
    interrupted = "import json, os, signal, sys\nfor line in sys.stdin:\n"
    interrupted += " item = json.loads(line)['item']\n"
    interrupted += " print(json.dumps({'item': item, 'score': 1}), flush=True)\n"
    interrupted += " if item == 'item-3': os.kill(os.getppid(), signal.SIGINT)\n"
    said = run(cli, scores, "-n", 40, "-o", "c", program=interrupted)
    assert said.code == 130
    assert "Stopped early: interrupted" in said.out
    assert "Rerun the command to resume." in said.err
    assert "no file is damaged" not in said.err


def test_a_file_of_items_without_scores(cli, ok, tmp_path):
    rows = [f"{at},{'ab'[at % 2]},{1 + at % 3}" for at in range(40)]
    path = tmp_path / "items.csv"
    path.write_text("\n".join(["id,task,weight", *rows]))
    program = tmp_path / "answer.py"
    program.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    item = json.loads(line)['item']\n"
        "    print(json.dumps({'item': item, 'score': int(item) % 2}), flush=True)\n"
    )
    ran = ["run", "command", "items.csv", "-n", "12", "-o", "run", "--", sys.executable, program]
    first = ok(*ran)
    assert "Estimated from 12 of 40 items" in first
    assert "a random sample with known probabilities" in first
    answers = (tmp_path / "run" / "answers.jsonl").read_text()
    ok(*ran)  # rerun: the same items, and nothing is asked again
    assert (tmp_path / "run" / "answers.jsonl").read_text() == answers
    ok("start", "items.csv", "-n", 5, "-o", "started")
    path.write_text("\n".join(["id,task,weight", *rows[1:], "40,c,1"]))
    said = cli(*ran)
    assert said.code == 0, said.err
    assert "1 new item taken in, answers stay; items to run: 1 of answer" in said.err
    assert "1 item left the scores since the evaluation was started: '0'" in said.err
    assert "of 40 items" in said.out
    said = cli("audit", "items.csv")
    assert said.kind == "missing"


def test_estimate_extends_a_run_which_is_then_as_if_it_had_begun_with_more_items(cli, ok, tmp_path):
    rows = [f"{at},{'ab'[at % 2]}" for at in range(40)]
    (tmp_path / "items.csv").write_text("\n".join(["id,task", *rows]))
    program = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    item = json.loads(line)['item']\n"
        "    print(json.dumps({'item': item, 'score': int(item) // 3 % 2}), flush=True)\n"
    )

    def ran(n, folder, target):
        words = ("-n", n, "-o", folder, "-t", target)
        said = cli("run", "command", "items.csv", *words, *START, program)
        return said if said.code else json.loads(ok("estimate", folder, "-t", target, "--json"))

    few = {name: ran(10, "run", name)[name] for name in ("a", "b")}
    refused = ran(20, "run", "a").err
    assert "for more items: fewbench estimate run --next-items 10 --ask" in refused
    assert "no effect" in cli("estimate", "run", "--next-items", "10").err
    assert "is missing" in cli("estimate", "run", "--ask").err
    said = cli("estimate", "run", "--next-items", "10", "--ask")
    assert "10 of a, 10 of b. Next: rerun the command of fewbench run" in said.err
    asked = json.loads(ok("ask", "run", "--json"))
    assert asked["a"] == asked["b"]
    for name in ("a", "b"):
        more, whole = ran(10, "run", name)[name], ran(20, f"whole-{name}", name)[name]
        assert few[name]["items_run"] < more["items_run"] == whole["items_run"] == 20
        assert more.pop("provenance")["budget"] == 10
        assert whole.pop("provenance")["budget"] == 20
        assert more == whole  # the sample of 10 items is a part of that of 20
    ok("estimate", "run", "--next-items", "99", "--ask", "-t", "a")
    assert ran(10, "run", "a")["a"]["items_run"] == 40
    said = cli("estimate", "run", "--next-items", "9", "--ask", "-t", "a")
    assert "a gets no more items" in said.err
    ok(
        "start",
        "items.csv",
        "--half-width",
        "0.3",
        "-t",
        "a",
        "-o",
        "narrow",
        "--items-of",
        "run:a",
    )
    (tmp_path / "told.csv").write_text("id,score\n" + ok("ask", "narrow").split()[0] + ",1\n")
    ok("tell", "narrow", "told.csv")
    said = cli("estimate", "narrow", "--next-items", "9", "--ask")
    assert "ends at a half width of 0.3" in said.err


AGENT = """
import json, sys
tasks = json.load(open("agent.json"))
for line in sys.stdin:
    item = json.loads(line)["item"]
    print(json.dumps({"item": item} | tasks[item]), flush=True)
"""


@pytest.fixture
def agents():
    """Fifteen earlier agents on 120 tasks of about $5, and what a new one would do."""
    table = simulate(16, 120, seed=8)
    costs = np.random.default_rng(1).lognormal(np.log(5), 0.3, 120)
    answers = dict(zip(table.item_ids.tolist(), table.values[15].tolist(), strict=True))
    paid = {item: {"score": answers[item], "cost": costs[at]} for at, item in enumerate(answers)}
    Path("agent.json").write_text(json.dumps(paid))
    sources = table.take(models=range(15))
    save_scores(sources, "agents.parquet")
    save_scores(replace(sources, items=sources.items.assign(cost=costs)), "priced.parquet")
    return costs, float(table.full_scores()[15])


def test_a_share_of_the_items_stays_as_tasks_are_added(cli, ok, tmp_path):
    """The same command goes on; a run whose file has more items says so until they are taken in."""
    lines = [f"q{at},a" for at in range(200)], [f"r{at},b" for at in range(40)]
    Path("items.csv").write_text("\n".join(["id,task", *lines[0]]))
    program = PROGRAM.replace('"item-7"', '""')

    def run(*words):
        return cli("run", "command", "items.csv", "-o", "run", *words, *START, program)

    assert "Estimated from 20 of 200 items" in run("-n", "10%").out
    Path("items.csv").write_text("\n".join(["id,task", *lines[0], *lines[1]]))
    said = cli("estimate", "run", "--scores", "items.csv")
    assert "note: 40 new items of the scores: 'r0'" in said.err
    for _ in range(2):
        assert "Estimated from 25 of 240 items" in run("-n", "10%").out
    joined = cli("start", "items.csv", "-m", "fewbench", "-n", "10%", "-o", "run", "-t", "b")
    assert joined.code == 0, joined.err
    table = pd.read_csv("items.csv").assign(cohort=[0] * 200 + [1] * 40)
    table.to_csv("items.csv", index=False)  # a new run whose items came at two times
    for _ in range(2):
        assert "Estimated from 40 of 240 items" in run("-n", "10%", "--fresh").out
        assert run("-n", "10%").code == 0


def test_an_agent_is_estimated_for_a_sum_of_money(cli, ok, agents, monkeypatch):
    monkeypatch.setattr("fewbench._progress.MINUTE", 0.0001)
    costs, truth = agents
    words = ("--cost", "75 $", "-o", "run", *START, AGENT)
    said = cli("run", "command", "agents.parquet", *words)
    assert said.code == 0, said.err
    found = json.loads(Path("run/result.json").read_text())
    target = found["targets"]["python"]
    estimate, cost = target["estimate"], target["estimate"]["cost"]
    n = target["items_run"]
    assert 75 - costs.max() < cost["spent"] < 75 + costs.max()  # costs are known afterwards
    assert cost["spent"] + cost["spent"] / n > 75  # no further item is expected to be affordable
    assert (cost["unit"], cost["limit"], cost["is_limit"]) == ("$", 75, True)
    assert cost["full"] == pytest.approx(cost["spent"] / n * 120)
    assert target["cost"] == found["spent"]["cost"] == cost["spent"]
    assert found["stopped"] == "python: the cost limit of $75.00 was reached"
    line = f"Cost: ${cost['spent']:.2f}; the limit of $75.00 ended the run. All items would cost"
    assert f"{line} about ${cost['full']:.2f}." in " ".join(said.out.split())
    assert "of at most $75.00" in said.err  # while it runs
    assert not any("items answered" in warning for warning in estimate["warnings"])
    assert estimate["interval"]["low"] <= truth <= estimate["interval"]["high"]
    assert line in " ".join(ok("estimate", "run").split())
    assert json.loads(ok("estimate", "run", "--json"))["python"]["cost"] == cost
    ok("estimate", "run", "--report", "page.html")
    ended = f"${cost['spent']:.2f}; the limit of $75.00 ended the run"
    assert ended in Path("page.html").read_text()
    again = cli("run", "command", "agents.parquet", *words)
    assert json.loads(Path("run/result.json").read_text())["targets"] == found["targets"]
    assert again.code == 0
    undecided = cli("gate", "run", "--at-least", f"{estimate['score'] - 0.1:.3f}").out
    assert "larger --cost" in undecided.split("Next")[-1]
    assert "not answered yet" not in undecided
    assert "--next-items" not in undecided
    cli("run", "command", "agents.parquet", "-t", "other", *words)
    ok("estimate", "run", "-t", "python", "--report", "one.html")
    ok("estimate", "run", "--report", "both.html")
    one, both = (Path(f"{name}.html").read_text() for name in ("one", "both"))
    assert "python: the cost limit of $75.00 was reached" in one
    assert "other:" not in one
    assert "beyond the cost limit" in one
    assert ">open<" not in one
    assert "The run took" not in one
    assert "fewbench estimate run -t python<" in one
    assert "python: the cost limit of $75.00 was reached; other: the cost limit" in both
    assert "Cost of each of other, python: $" in both  # of the same items, once


def test_a_run_estimates_a_macro_average(cli, ok, agents):
    free = AGENT.replace("tasks[item]", "{'score': tasks[item]['score']}")
    words = ("run", "command", "agents.parquet", "-n", 20, "-o", "run", *START, free)
    ok("start", "agents.parquet", "-n", 20, "-t", "python", "--average", "macro", "-o", "run")
    refused = cli(*words)
    assert "started with the macro average" in refused.err
    assert "pass --average macro" in refused.err
    assert cli(*words[:3], "--average", "macro", *words[3:]).code == 0
    assert json.loads(Path("run/result.json").read_text())["targets"]["python"]["items_run"] == 20
    assert "A full score is the mean over task scores (macro)." in ok("estimate", "run")
    audited = ok("audit", "agents.parquet", "--average", "macro")
    assert "--average macro" in audited.split("Next")[-1]
    planned = ok("plan", "agents.parquet", "-n", 20, "--average", "macro", "--repeats", 3)
    assert "--average macro -o DIR" in planned.split("Next")[-1]


def test_the_column_of_costs_is_never_overspent(cli, ok, agents):
    costs, _ = agents
    free = AGENT.replace("tasks[item]", "{'score': tasks[item]['score']}")
    ok("start", "priced.parquet", "--cost", "75$", "-o", "begun")
    Path("one.csv").write_text(f"id,score\n{ok('ask', 'begun').split()[0]},1\n")
    ok("tell", "begun", "one.csv")
    assert "1 item answered, and the limit on cost allows more" in " ".join(
        ok("estimate", "begun").split()
    )
    said = cli("run", "command", "priced.parquet", "--cost", "75$", "-o", "run", *START, free)
    assert said.code == 0, said.err
    target = json.loads(Path("run/result.json").read_text())["targets"]["python"]
    assert 75 - costs.max() < target["cost"] <= 75
    assert target["full_cost"] == pytest.approx(costs.sum())
    cost = json.loads(ok("estimate", "run", "--json"))["python"]["cost"]
    assert (cost["spent"], cost["is_limit"], cost["unit"]) == (target["cost"], True, "$")
    said_more = cli("ask", "run")
    assert (said_more.out.strip(), "within the cost limit" in said_more.err) == ("", True)
    assert "Rerun with a larger --cost" in " ".join(said.out.split())
    said = cli("run", "command", "priced.parquet", "--cost", "90$", "-o", "run", *START, free)
    more = json.loads(Path("run/result.json").read_text())["targets"]["python"]
    assert 90 - costs.max() < more["cost"] <= 90
    assert more["items_run"] > target["items_run"]
    for name, more in (("cost", ()), ("cost", ("-n", 50)), ("tokens", ("-n", 50))):
        words = (f"--{name}", "75", *more, "--fresh", "-o", "silent", *START, free)
        said = cli("run", "command", "agents.parquet", *words)
        assert said.code == 1
        assert f"reported no {name} for 1 item, so the limit on {name} cannot be kept" in said.out
    said = ok("start", "priced.parquet", "-m", "fewbench", "--cost", "20 $", "-o", "own")
    assert 2 <= len(ok("ask", "own").split()) <= 5


def test_a_program_that_is_missing_or_dies_claims_nothing(cli, scores, tmp_path):
    few = ("run", "command", scores, "-m", "random", "-n", 5, "-o", "run", "--")
    missing = cli(*few, sys.executable, "slo.py")
    assert missing.code == 2
    assert (
        missing.err
        == "fewbench: error: slo.py: no such program (hint: give the path of the script)\n"
    )
    assert not (tmp_path / "run").exists()
    dies = cli(*few, sys.executable, "-c", "exit(2)")
    assert dies.code == 1
    assert "No estimate: no target has answers" in dies.out
    assert "saved" not in dies.out
    assert "fewbench estimate" not in dies.err


def test_another_script_is_named_without_hashes_of_its_file(cli, scores):
    few = ("run", "command", scores, "-m", "random", "-n", 5, "-t", "new", "-o", "run", "--")
    for script in ("one.py", "two.py"):
        Path(script).write_text(PROGRAM)
    assert cli(*few, sys.executable, "one.py").code == 0
    program = shlex.quote(sys.executable)
    said = cli(*few, sys.executable, "two.py").err
    assert f"run: new ran differently: program is {program} two.py, was {program} one.py (" in said
