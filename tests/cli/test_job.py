"""The whole job, from other models' results to a new model's estimate."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fewbench
from fewbench._version import __version__
from fewbench.public import load_scores
from fewbench.scores import save_scores
from fewbench.testing import simulate

LONG = ["--model", "llm", "--item", "id", "--score", "points"]
ONE = ["--item", "id", "--score", "points"]


def test_import_writes_what_the_table_holds(ok, long_csv, table, tmp_path):
    columns = [*LONG, "--task", "subject", "--date", "released", "--family", "lab"]
    out = ok("import", long_csv, *columns, "--range", "0,100", "-o", "new/s.parquet")
    assert "20 models of 10 families × 40 items, 3 tasks\n" in out
    scores = load_scores(tmp_path / "new" / "s.parquet")
    assert np.array_equal(scores.values, table.values)
    assert scores.model_ids == table.model_ids
    assert scores.models.equals(table.models)
    assert scores.scale.high == 100


def test_lower_is_better(ok, tmp_path):
    (tmp_path / "r.csv").write_text("m,q1,q2\na,0.25,0\nb,1,1\n")
    ok("import", "r.csv", "--model", "m", "--lower-is-better", "-o", "s.parquet")
    assert load_scores(tmp_path / "s.parquet").values.tolist() == [[0.75, 1], [0, 0]]


def test_import_says_how_to_name_tasks(cli, long_csv, tmp_path):
    (tmp_path / "r.csv").write_text("m,q1,q2\na,0,0\nb,1,1\n")
    wide = cli("import", "r.csv", "--model", "m", "-o", "s.parquet").err
    assert "all items count as one task. To name tasks, pass --items FILE with the columns" in wide
    words = ("import", long_csv, *LONG, "--range", "0,100", "-o", "s.parquet")
    assert "pass --task COLUMN, or --items FILE" in cli(*words, "--force").err
    assert "one task" not in cli(*words, "--task", "subject", "--force").err


def test_from_results_to_estimate(ok, cli, long_csv, table, answers, asked, tmp_path):
    ok("import", long_csv, *LONG, "--task", "subject", "--range", "0,100", "-o", "s.parquet")
    started = ok("start", "s.parquet", "-m", "kmedoids-ridge", "-n", "9", "-t", "new", "-o", "run")
    assert "kmedoids-ridge on 20 source models × 40 items; 9 items to run now" in started
    assert "Next: fewbench ask run" in started
    items = asked()["new"]
    assert ok("ask", "run").split() == items
    assert len(set(items)) == 9
    assert set(items) <= set(table.item_ids)
    told = ok("tell", "run", answers(dict.fromkeys(items[:4], 100)), *ONE)
    assert told == "recorded 4 answers. Next: fewbench ask run for 5 more\n"
    assert ok("ask", "run").split() == items[4:]
    told = ok("tell", "run", answers(dict.fromkeys(items[4:], 0)), *ONE)
    assert told == "recorded 5 answers. Next: fewbench estimate run\n"
    assert cli("ask", "run").out == ""
    assert asked() == {}
    found = json.loads(ok("estimate", "run", "--json"))["new"]
    assert found["target"] == "new"
    assert 10 <= found["score"] <= 87.5  # at least 4 and at most 35 of 40 items are right
    assert found["interval"]["low"] <= found["score"] <= found["interval"]["high"]
    assert (found["answers_right"], found["answers_mean"]) == (4, pytest.approx(100 * 4 / 9))
    assert (found["items_run"], found["items_total"], found["level"]) == (9, 40, 0.9)
    assert set(found["tasks"]) == set(table.tasks)
    assert found["provenance"]["method"] == "kmedoids-ridge"
    text = ok("estimate", "run")
    flat = " ".join(text.split())
    assert "Estimated from 9 of 40 items (22.5%), 4 of 9 right; " in flat
    assert f"{found['score']:.1f}" in text  # one digit on a scale of 100
    width, error = found["random"]["half_width"], found["random"]["expected_error"]
    assert re.search(rf"\nrandom sampling +± {width:.1f} +{error:.1f}\n", text)
    half = (found["interval"]["high"] - found["interval"]["low"]) / 2
    assert ("would give" in text) == (half > width and found["expected_error"] > error)
    assert all(task in text for task in table.tasks)
    past, ends = 100 * table.full_scores(), found["rank_interval"]
    assert found["rank"] == 1 + (past > found["score"] + 1e-6).sum()
    assert found["ranked_among"] == 21
    assert f"; rank {found['rank']} of 21, this model and 20 source models (" in flat
    printed = [line.split() for line in text.splitlines()]
    assert ["Task", "Score", "90%", "interval", "Items", "run", "Rank"] in printed
    for task, score in found["tasks"].items():
        own = found["task_intervals"][task]
        ends = ["–"] if own is None else [f"{own['low']:.1f}", "to", f"{own['high']:.1f}"]
        counts = [str(found[name][task]) for name in ("task_items", "task_ranks")]
        assert [task, f"{score:.1f}", *ends, *counts] in printed
    wider = json.loads(ok("estimate", "run", "--json", "--level", "0.99"))["new"]
    assert wider["level"] == 0.99
    assert wider["interval"]["low"] <= found["interval"]["low"]
    assert found["interval"]["high"] <= wider["interval"]["high"]


def test_several_targets(ok, cli, scores, answers, asked):
    ok("start", scores, "-m", "random", "-n", "3", "-t", "a", "-t", "b", "-o", "run")
    items = asked()
    assert items["a"] == items["b"]
    ok("tell", "run", answers(dict.fromkeys(items["a"][:1], 1)), *ONE, "-t", "a")
    waiting = cli("ask", "run")
    assert waiting.code == 2
    assert "2 targets" in waiting.err
    assert ok("ask", "run", "-t", "a").split() == items["a"][1:]
    both = [[name, item, 1] for name in "ab" for item in items["a"]]
    assert "recorded 5 answers" in ok("tell", "run", answers([*both, ["c", "item-0", 1]]), *LONG)
    found = json.loads(ok("estimate", "run", "--json"))
    assert list(found) == ["a", "b"]
    text = ok("estimate", "run", "-t", "b")
    assert text.startswith("b scores ")
    assert "a scores" not in text


def test_select_then_start_with_the_subset(ok, cli, scores, asked, tmp_path):
    words = ["select", scores, "-m", "anchor-points", "-n", "7", "--seed", "3"]
    printed = ok(*words).split()
    said = cli(*words, "-o", "subset.json")
    assert (said.code, said.out) == (0, "")
    assert "7 items of 40" in said.err
    subset = json.loads((tmp_path / "subset.json").read_text())
    assert subset["items"] == printed
    assert (
        subset["provenance"] | {"method": "anchor-points", "budget": 7, "seed": 3}
        == (subset["provenance"])
    )
    ok("start", scores, "--subset", "subset.json", "-o", "run")
    assert asked() == {"target": printed}
    started = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert started["provenance"] == subset["provenance"]
    ok("start", scores, "-m", "anchor-points", "-n", "7", "--seed", "3", "-o", "again")
    assert asked("again") == {"target": printed}


def test_select_what_a_method_that_adapts_asks_first(ok, cli, scores, asked, tmp_path):
    words = ["-m", "tailored(probe=4)", "-n", "9", "--seed", "3"]
    first = cli("select", scores, *words)
    assert len(first.out.split()) == 4
    assert "asks for these 4 items of 9, and chooses the others" in first.err
    ok("select", scores, *words, "-o", "first.json")
    assert json.loads((tmp_path / "first.json").read_text())["items"] == first.out.split()
    note = json.loads((tmp_path / "first.json").read_text())["notes"][0]
    command = note[note.index("fewbench start") : note.index(", then")]
    ok(*shlex.split(command.replace("SCORES", str(scores)).replace("DIR", "as-told"))[1:])
    assert asked("as-told")["target"] == first.out.split()
    refused = cli("start", scores, "--subset", "first.json", "-o", "run")
    assert refused.code == 2
    assert refused.kind == "conflict"
    ok("start", scores, *words, "-o", "run")
    assert asked()["target"] == first.out.split()


def test_a_job_with_a_method_that_adapts(ok, cli, scores, answers, asked):
    ok("start", scores, "-m", "tailored(probe=4)", "-n", "9", "-t", "a", "-t", "b", "-o", "run")
    probe = asked()["a"]
    assert asked()["b"] == probe
    whose = cli("tell", "run", answers(dict.fromkeys(probe, 1)), *ONE)
    assert whose.code == 2
    assert "no target named for the answers; there are 2" in whose.err
    assert asked() == {"a": probe, "b": probe}
    told = ok("tell", "run", answers(dict.fromkeys(probe, 1)), *ONE, "-t", "a")
    assert told.startswith("recorded 4 answers of a. Next: fewbench ask run for 4 more")
    again = ok("tell", "run", answers(dict.fromkeys(probe, 1)), *ONE, "-t", "a")
    assert again.startswith("recorded 0 answers of a")
    assert "ask run for 4 more" in again  # b's; until then a waits, as their sources are counted
    assert list(asked()) == ["b"]
    waits = cli("ask", "run", "-t", "a")
    assert (waits.code, waits.out) == (0, "")
    assert "'b'" in waits.err
    early = json.loads(ok("estimate", "run", "-t", "a", "--json"))["a"]
    assert "4 of 9 items answered: the method asks for more" in " ".join(early["warnings"])
    ok("tell", "run", answers(dict.fromkeys(probe, 0)), *ONE, "-t", "b")
    then = asked()
    assert [len(then[name]) for name in "ab"] == [5, 5]
    assert not set(then["a"]) & set(probe)
    assert ok("ask", "run", "-t", "a").split() == then["a"]
    for name, right in (("a", 1), ("b", 0)):
        ok("tell", "run", answers(dict.fromkeys(then[name], right)), *ONE, "-t", name)
    found = json.loads(ok("estimate", "run", "--json"))
    assert found["a"]["items_run"] == 9
    assert found["a"]["score"] > found["b"]["score"]
    assert found["a"]["provenance"]["settings"] == "tailored(probe=4)"


def test_ask_in_the_words_of_a_harness(ok, cli, placed, asked):
    ok("start", placed, "-m", "random", "-n", "12", "-o", "run")
    items = asked()["target"]
    places = [int(item.removeprefix("item-")) for item in items]
    inspect = cli("ask", "run", "--for", "inspect")
    tasks = load_scores(placed).items["task"]
    named = [f"{tasks.iloc[at]}:s{at}" for at in places]
    assert inspect.out.strip().split(",") == named
    assert "12 items" in inspect.err
    ran = dict.fromkeys(tasks.iloc[at] for at in places)
    assert f"run exactly these tasks: {','.join(ran)}" in inspect.err
    harness = cli("ask", "run", "--for", "lm-eval")
    samples = json.loads(harness.out)
    assert sorted(at for of in samples.values() for at in of) == sorted(1000 + at for at in places)
    assert f"exactly these tasks with --log_samples: {','.join(samples)}" in harness.err
    assert ok("select", placed, "-m", "random", "-n", "12", "--for", "lm-eval") == harness.out


def test_inspect_takes_item_ids_where_nothing_better_is_known(ok, scores, asked):
    ok("start", scores, "-m", "random", "-n", "3", "-o", "run")
    items = asked()["target"]
    tasks = load_scores(scores).items["task"]
    named = [f"{tasks[item]}:{item}" for item in items]
    assert ok("ask", "run", "--for", "inspect") == ",".join(named) + "\n"


def test_methods(ok):
    listed = json.loads(ok("methods", "--json"))
    names = [row["name"] for row in listed]
    assert {"random", "random-ridge", "anchor-points", "kmedoids-ridge"} <= set(names)
    first, lines = ok("methods").splitlines(), ok("methods", "--all").splitlines()
    assert sum(line.split(" ")[0] in names for line in first) == 12
    assert any("fewbench methods --all" in line for line in first)
    for row in listed:
        assert any(line.startswith(row["name"]) and row["summary"] in line for line in lines)
    assert any("run, start and select use auto: it backtests" in line for line in lines)
    page = ok("methods", "greedy-ridge")
    assert "greedy+answers+ridge" in page
    assert "`alpha`: The penalty" in page
    assert "random-search" not in page
    assert "medoids" in ok("methods", "--parts")


def test_a_method_by_a_wrong_name(cli):
    assert "did you mean greedy-ridge?" in cli("methods", "gredy-ridge").err
    assert "use auto with fewbench start" in cli("methods", "auto").err


def test_version(ok):
    assert ok("--version") == f"fewbench {__version__}\n"


def test_as_a_program_of_its_own(scores):
    """Once for real: nothing but the items on stdout, one line on stderr, exit code 2."""

    def run(*words):
        code = "import sys; sys.argv[0] = 'fewbench'; from fewbench.cli import main; main()"
        command = [sys.executable, "-c", code, *map(str, words)]
        here = os.environ | {"PYTHONPATH": str(Path(fewbench.__file__).parents[1])}
        return subprocess.run(command, capture_output=True, text=True, env=here, check=False)

    good = run("select", scores, "-m", "random", "-n", "4")
    assert (good.returncode, good.stderr) == (0, "")
    assert len(good.stdout.split()) == 4
    bad = run("select", scores, "-m", "random", "-n", "400")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("fewbench: error: budget of 400")
    assert bad.stderr.count("\n") == 1


def test_attributes_in_files_of_their_own(ok, cli, tmp_path):
    (tmp_path / "r.csv").write_text("llm,q1,q2\na,1,0\nb,0,1\n")
    (tmp_path / "models.csv").write_text("model,date,family\nb,2025-02-01,g\na,2024-01-01,f\n")
    (tmp_path / "items.csv").write_text("item,task,doc_id\nq1,sums,7\nq2,logic,3\n")
    files = ["--models", "models.csv", "--items", "items.csv"]
    assert "2 tasks" in ok("import", "r.csv", "--model", "llm", *files, "-o", "s.parquet")
    scores = load_scores(tmp_path / "s.parquet")
    assert scores.models.to_dict("list") == {
        "date": ["2024-01-01", "2025-02-01"],
        "family": ["f", "g"],
    }
    assert scores.items.to_dict("list") == {"task": ["sums", "logic"], "doc_id": [7, 3]}
    export = ok("select", "s.parquet", "-m", "random", "-n", "2", "--for", "lm-eval")
    assert json.loads(export) == {"sums": [7], "logic": [3]}
    (tmp_path / "items.csv").write_text("item,task\nq1,x\nq2,x\n")
    again = cli("import", "s.parquet", "--items", "items.csv", "-o", "t.parquet")
    assert "tasks are taken from items.csv" in again.err
    assert load_scores(tmp_path / "t.parquet").tasks == ["x"]


def test_scores_that_were_moved(ok, cli):
    save_scores(simulate(12, 20, seed=2), "here.parquet")
    ok("start", "here.parquet", "-m", "random", "-n", "4", "-o", "run")
    Path("here.parquet").rename("there.parquet")
    assert "pass their new path with --scores" in cli("ask", "run").err
    assert len(ok("ask", "run", "--scores", "there.parquet").split()) == 4


def test_without_a_method_one_is_chosen_and_named(cli, ok, scores):
    said = cli("start", scores, "--budget", 8, "-o", "chosen")
    assert said.code == 0
    assert "note: method auto chose " in said.err
    name = said.err.split("note: method auto chose ")[1].split(" (")[0]
    assert said.out.startswith(f"chosen: {name} on 20 source models")
    assert len(ok("ask", "chosen").split()) <= 8
    chosen = cli("select", scores, "--method", "auto", "--budget", 8)
    assert f"note: method auto chose {name} (" in chosen.err


def test_tell_names_what_it_does_not_use(ok, cli, scores, answers, asked):
    ok("start", scores, "-m", "random", "-n", "4", "-t", "a", "-t", "b", "-o", "run")
    first, second, *_ = items = asked()["a"]
    other = next(f"item-{at}" for at in range(40) if f"item-{at}" not in items)
    mixed = answers({first: 1, second: "", other: 1, "no-such": 1})
    told = cli("tell", "run", mixed, *ONE, "-t", "a")
    assert "recorded 1 answer of a. Next: fewbench ask run for 3 more of a, 4 more of b" in told.out
    assert (
        f"1 item asked for, but without an answer here (an empty cell means not run): {second!r}"
        in told.err
    )
    assert "1 item not in the benchmark, so not used: 'no-such'" in told.err
    assert f"1 item not asked for, so not used: {other!r}" in told.err
    assert "recorded already" not in told.err
    again = cli("tell", "run", mixed, *ONE, "-t", "a")
    assert "recorded 0 answers of a" in again.out
    assert "1 answer" in again.err
