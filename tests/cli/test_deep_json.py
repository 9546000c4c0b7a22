"""JSON nested too deeply to be read, wherever it comes from: an error that names the place."""

import sys

import pytest

DEEP = "[" * 100_000
PRINTS = (sys.executable, "-S", "-c", f"print({'['!r} * 100_000, flush=True); input()")


@pytest.fixture
def started(ok, scores, tmp_path):
    ok("start", scores, "-m", "random", "-n", 5, "-o", "run")
    (tmp_path / "deep.jsonl").write_text(f"{DEEP}\n")
    row = '{"doc_id": 0, "doc": {}, "doc_hash": "x", "target": '
    (tmp_path / "samples_x_2026-01-01T10-00-00.jsonl").write_text(f"{row}{DEEP}\n")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("tell run deep.jsonl --item id --score x", "lists or objects are nested too deeply"),
        ("import samples_x_2026-01-01T10-00-00.jsonl -o s.parquet", "line 1: not whole JSON"),
        ("run endpoint S deep.jsonl -n 5 --model x/m -o e", "line 1: not a whole JSON object"),
        ("estimate run", "answers.jsonl: line 2 is damaged"),
        ("repair run", None),
    ],
)
def test_files(cli, started, scores, command, said):
    with (started / "answers.jsonl").open("a") as file:
        file.write(f"{DEEP}\n" if "run" in command.split()[:2] and "tell" not in command else "")
    found = cli(*[str(scores) if word == "S" else word for word in command.split()])
    assert found.code == (0 if said is None else 2)
    assert (said or "") in found.err
    assert len(found.err) < 500


def test_a_program(cli, scores):
    said = cli("run", "command", scores, "-m", "random", "-n", 5, "-o", "c", "--", *PRINTS)
    assert said.code == 1  # the model failed
    assert "which is not an answer" in said.err
    assert len(said.out + said.err) < 2000
