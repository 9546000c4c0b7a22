"""A full disk is an error with the file's name and what to do, and leaves files whole."""

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest

FULL = OSError(errno.ENOSPC, "Error writing bytes to file")  # as libraries say it, without a name


@pytest.fixture
def full(monkeypatch):
    """The disk is full from now on: nothing gets through to it."""

    def now():
        def fail(*_):
            raise FULL

        monkeypatch.setattr(os, "fsync", fail)

    return now


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("select s.parquet -m random -n 4 -o x.json", "x.json"),
        ("audit s.parquet --report x.html", "x.html"),
        ("import s.parquet -o x.parquet", "x.parquet"),
        ("start s.parquet -m random -n 4 -o run", "run/items.parquet"),
        ("compare s.parquet -m random -n 4 --repeats 1 --workers 1 --no-intervals --cache c.jsonl",
         "c.jsonl"),
    ],
)  # fmt: skip
def test_the_file_is_named(cli, scores, tmp_path, full, line, path):
    shutil.copy(scores, tmp_path / "s.parquet")
    full()
    said = cli(*line.split())
    assert said.code == 2
    assert said.err.splitlines()[-1] == (
        f"fewbench: error: {path}: No space left on device (hint: free some space and run the "
        "command again)"
    )
    assert not (tmp_path / path).exists() or path == "c.jsonl"


def test_an_answer_that_was_not_kept_is_asked_again(cli, ok, scores, answers, asked, full):
    ok("start", scores, "-m", "random", "-n", "4", "-o", "run")
    items = asked()["target"]
    told = answers(dict.fromkeys(items, 1))
    full()
    said = cli("tell", "run", told, "--item", "id", "--score", "points")
    assert said.code == 2
    assert "run/answers.jsonl: No space left on device" in said.err
    assert asked()["target"] == items


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_standard_output(cli, monkeypatch):
    with open("/dev/full", "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        said = cli("methods", "--json")
        assert said.code == 2
        assert "No space left on device" in said.err
        monkeypatch.undo()
