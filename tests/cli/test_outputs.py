"""Where commands write is checked before the work, and no file is replaced without --force."""

import json
import os
import shutil
from importlib import import_module

import pytest

QUICK = "--repeats 1 --workers 1 --no-intervals --no-cache"
SELECTION = "tasks select m.csv -k 1"
LINES = {
    "import r.csv --model llm --item id --score points --range 0,100 -o {}.parquet": "out.parquet",
    "import r.csv --model llm --item id --score points --range 0,100 -o {0}.parquet ": (
        "out.files.csv"
    ),
    "audit s.parquet --report {}.html": "out.html",
    "audit s.parquet --families -o {}.parquet": "out.parquet",
    f"compare s.parquet -m random -n 4 {QUICK} -o {{}}.json": "out.json",
    f"compare s.parquet -m random -n 4 {QUICK} --report {{}}.html": "out.html",
    "select s.parquet -m random -n 4 -o {}.json": "out.json",
    f"{SELECTION} -o {{}}.json": "out.json",
    f"{SELECTION} --report {{}}.html": "out.html",
    "tasks judge chosen.json models.csv --report {}.html": "out.html",
    "tasks items chosen.json s.parquet -o {}.json": "out.json",
    "demo -o {}": "out/report.html",
}


@pytest.fixture
def inputs(tmp_path, scores, long_csv):
    shutil.copy(scores, tmp_path / "s.parquet")
    shutil.copy(long_csv, tmp_path / "r.csv")
    (tmp_path / "m.csv").write_text("task,a,b,c\na,.9,.6,.5\nb,.6,.8,.4\nc,.5,.4,.7\n")
    (tmp_path / "models.csv").write_text("model,a,b,c\nx,.1,.2,.3\ny,.4,.3,.6\nz,.7,.8,.6\n")
    return tmp_path


@pytest.mark.parametrize("line", LINES)
def test_a_file_is_not_replaced_and_this_is_said_before_the_work(cli, inputs, monkeypatch, line):
    there = inputs / LINES[line]
    there.parent.mkdir(exist_ok=True)
    there.write_text("mine")
    for reader in ("fewbench.cli.commands", "fewbench_papers.bento.commands.tasks"):
        monkeypatch.setattr(import_module(reader), "load", pytest.fail)
    monkeypatch.setattr("fewbench.cli.commands.Call.__call__", pytest.fail)
    said = cli(*line.format("out").split())
    assert said.code == 2
    assert f"{LINES[line]} already exists (hint: add --force to replace it" in said.err
    assert there.read_text() == "mine"


def test_force_replaces(ok, inputs):
    (inputs / "out.json").write_text("mine")
    ok("select", "s.parquet", "-m", "random", "-n", "4", "-o", "out.json", "--force")
    assert len(json.loads((inputs / "out.json").read_text())["items"]) == 4


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("select s.parquet -m random -n 4 -o s.parquet", "s.parquet"),
        (f"compare s.parquet -m random -n 4 {QUICK} -o s.parquet", "s.parquet"),
        (f"compare s.parquet -m random -n 4 --cache s.parquet {QUICK[:-11]}", "s.parquet"),
        (f"{SELECTION} -o m.csv", "m.csv"),
        (f"{SELECTION} --results models.csv --report models.csv", "models.csv"),
        ("import s.parquet -o s.parquet", "s.parquet"),
        ("import s.parquet -o x.parquet --models x.files.csv", "x.files.csv"),
    ],
)
def test_an_input_is_not_even_replaced_by_force(cli, inputs, line, path):
    if not (inputs / path).exists():
        (inputs / path).write_text("model\n")
    before = (inputs / path).read_bytes()
    said = cli(*line.split(), *(["--force"] if "--cache" not in line else []))
    assert said.code == 2
    assert f"{path} is part of the input {path}" in said.err
    assert (inputs / path).read_bytes() == before


def test_a_cache_of_something_else_is_not_written_in(cli, inputs):
    (inputs / "notes.txt").write_text("mine\n")
    said = cli("compare", "s.parquet", "-m", "random", "-n", "4", "--cache", "notes.txt")
    assert said.code == 2
    assert "notes.txt: not a cache of finished cells" in said.err
    assert (inputs / "notes.txt").read_text() == "mine\n"


def test_a_folder_without_permission(cli, inputs, monkeypatch):
    monkeypatch.setattr("fewbench.cli.outputs.os.access", lambda _, mode: not mode & os.W_OK)
    said = cli("select", "s.parquet", "-m", "random", "-n", "4", "-o", "out/x.json")
    assert said.code == 2
    assert "out/x.json: no permission to write in ." in said.err


def test_an_evaluation_is_not_begun_among_other_answers(cli, inputs):
    (inputs / "ict").mkdir()
    (inputs / "ict" / "answers.jsonl").write_text("{}\n")
    said = cli("start", "s.parquet", "-m", "random", "-n", "4", "-o", "ict")
    assert said.code == 2
    assert "ict: contains answers.jsonl but no evaluation.json" in said.err
    assert (inputs / "ict" / "answers.jsonl").read_text() == "{}\n"
