"""Files of lines that only grow: torn ends, full disks, repairs, two writers."""

import json
import os
import subprocess
import sys

import pytest

from fewbench._journal import Lines


@pytest.fixture
def lines(tmp_path):
    return Lines(tmp_path / "log.jsonl")


def content(lines):
    return [line for _, line in lines.read()]


def test_a_torn_line_is_not_read_and_cut_off(lines):
    assert content(lines) == []
    lines.append(b'{"a": 1}')
    with lines.path.open("ab") as file:
        file.write(b'{"a": 2' + b" " * 200_000)
    assert content(lines) == [b'{"a": 1}']
    lines.append(b'{"a": 3}')
    assert lines.path.read_bytes() == b'{"a": 1}\n{"a": 3}\n'
    assert [number for number, _ in lines.read()] == [1, 2]


def test_only_new_lines_are_read_again(lines):
    other = Lines(lines.path)
    for line in (b"1", b"2"):
        other.append(line)
    assert list(lines.unread()) == [(1, b"1"), (2, b"2")]
    lines.append(b"3")
    other.append(b"4")
    assert list(lines.unread()) == [(4, b"4")]
    lines.path.write_bytes(b"1\nlonger\n3\n4\n5\n6")  # rewritten: known lines by their number
    assert list(lines.unread()) == [(5, b"5")]


def test_a_line_that_does_not_fit_on_the_disk_is_not_added(lines):
    resource = pytest.importorskip("resource")
    lines.append(b"first")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match=r"log\.jsonl"):
            lines.append(b"a longer line")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert lines.path.read_bytes() == b"first\n"
    lines.append(b"second")
    assert content(lines) == [b"first", b"second"]


def test_a_line_that_the_disk_does_not_confirm_is_not_added(lines, monkeypatch):
    lines.append(b"first")

    def fail(handle):
        raise OSError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="lost"):
            lines.append(b"second")
    assert content(lines) == [b"first"]


def test_repair_drops_what_is_damaged_and_keeps_the_file(lines):
    before = b"1\nx\n2\n\n3"
    lines.path.write_bytes(before)
    assert lines.repair(bytes.isdigit) == 3
    assert lines.path.read_bytes() == b"1\n2\n"
    kept = lines.path.with_name("log.jsonl.damaged")
    assert kept.read_bytes() == before
    kept.unlink()
    assert lines.repair(bytes.isdigit) == 0
    assert not kept.exists()


WRITER = """
import sys
from pathlib import Path
from fewbench._journal import Lines
lines = Lines(Path(sys.argv[1]), sync_every=60)
for number in range(300):
    lines.append(b'{"from": "%s", "number": %d, "%s": 0}' % (
        sys.argv[2].encode(), number, b"x" * 500))
"""


def test_two_processes_write_whole_lines(lines):
    pytest.importorskip("fcntl")
    command = [sys.executable, "-c", WRITER, str(lines.path)]
    writers = [subprocess.Popen([*command, name]) for name in ("one", "two")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = [json.loads(line) for line in content(lines)]
    for name in ("one", "two"):
        numbers = [one["number"] for one in found if one["from"] == name]
        assert numbers == list(range(300))
