"""fewbench run: programs through the command line."""

import json
import sys

import pytest

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
    assert "1 item failed and skipped: 'item-7'; 'item-7': no picture" in said.out
    assert "result: run/result.json" in said.err
    assert "running command: target: " in said.err
    assert " of 40 items" in said.err
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert kept["targets"]["target"]["items_run"] == 39
    again = run(cli, scores, "-n", 40, "-o", "run", "--json", "--tries", 2)
    found = json.loads(again.out)
    assert found["targets"] == kept["targets"]  # nothing is asked again
    assert json.loads(ok("estimate", "run", "--json"))["target"]["items_run"] == 39


def test_another_program_in_the_same_folder_is_refused(cli, scores):
    few = ("-n", 3, "-o", "run", "--tokens", 99)
    assert "no tokens reported" in run(cli, scores, *few).err
    said = run(cli, scores, *few, program=PROGRAM + "#")
    assert said.code == 2
    assert "the answers there come from program" in said.err
    assert run(cli, scores, *few, "--accept-changes", program=PROGRAM + "#").code == 0


def test_what_ends_a_run_early_is_in_its_exit_code(cli, scores):
    said = run(cli, scores, "-n", 9, "-o", "run", program="import os; os._exit(3)")
    assert said.code == 1
    assert "ended with exit code 3, twice in a row" in " ".join(said.out.split())
    said = run(cli, scores, "-n", 20, "-o", "b", program="import sys; print('hi'); input()")
    assert said.code == 2
    assert "printed 'hi', which is no answer" in said.err
    interrupted = "import json, os, signal, sys\nfor line in sys.stdin:\n"
    interrupted += " item = json.loads(line)['item']\n"
    interrupted += " print(json.dumps({'item': item, 'score': 1}), flush=True)\n"
    interrupted += " if item == 'item-3': os.kill(os.getppid(), signal.SIGINT)\n"
    said = run(cli, scores, "-n", 40, "-o", "c", program=interrupted)
    assert said.code == 130
    assert "Stopped early: interrupted" in said.out
    assert "Rerun the command to resume." in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no limit given"),
        (("--level", 2, "-n", 9), "level"),
        (("--minutes", 0), "the limit seconds is not possible"),
        (("-n", 9, "--half-width", 0.6), "every interval is narrower"),
        (("-n", 9, "-m", "no-such"), "no-such"),
    ],
)
def test_limits_and_methods_that_are_not_possible(cli, scores, words, said):
    given = run(cli, scores, "-o", "run", *words)
    assert given.code == 2
    assert said in given.err


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
    assert "no assumption about the model" in first
    answers = (tmp_path / "run" / "answers.jsonl").read_text()
    ok(*ran)  # rerun: the same items, and nothing is asked again
    assert (tmp_path / "run" / "answers.jsonl").read_text() == answers
    ok("start", "items.csv", "-n", 5, "-o", "started")
    path.write_text("\n".join(["id,task,weight", *rows[1:], "40,c,1"]))
    said = cli(*ran)
    assert said.code == 2
    assert "the benchmark has changed" in said.err
    assert "1 item is gone: '0'; 1 item is new: '40'" in said.err
    said = cli("audit", "items.csv")
    assert "items without scores of models, which this command needs" in said.err
