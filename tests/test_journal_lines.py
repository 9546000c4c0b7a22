"""Files of lines that only grow: torn ends, altered lines, full disks, repairs, many writers."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from fewbench._journal import Lines, checked
from fewbench.errors import EvaluationError


@pytest.fixture
def lines(tmp_path):
    return Lines(tmp_path / "log.jsonl")


def content(lines):
    return [checked(line) for _, line in lines.read()]


def news(lines):
    return [(number, checked(line)) for number, line in lines.unread()]


def test_a_torn_line_is_not_read_and_cut_off(lines):
    assert content(lines) == []
    lines.append(b'{"a": 1}')
    whole = lines.path.read_bytes()
    with lines.path.open("ab") as file:
        file.write(b'{"a": 2' + b" " * 200_000)
    assert content(lines) == [b'{"a": 1}']
    lines.append(b'{"a": 3}')
    assert lines.path.read_bytes().startswith(whole + b'{"a": 3,')
    assert [number for number, _ in lines.read()] == [1, 2]


def test_only_new_lines_are_read_again(lines):
    other = Lines(lines.path)
    for line in (b'{"a":1}', b'{"a":2}'):
        other.append(line)
    assert news(lines) == [(1, b'{"a":1}'), (2, b'{"a":2}')]
    lines.append(b'{"a":3}')
    other.append(b'{"a":4}')
    assert news(lines) == [(4, b'{"a":4}')]
    other.append(b'{"a":5}')
    lines.append(b'{"a":6}')  # without having read the other's
    assert news(lines) == [(5, b'{"a":5}'), (6, b'{"a":6}')]
    other.rewrite(lambda line: None if line == b'{"a":2}' else line)
    other.append(b'{"a":7}')
    with pytest.raises(EvaluationError, match="rewritten"):
        news(lines)


def test_each_altered_bit_is_noticed(lines):
    for number in (1, 2):
        lines.append(b'{"items":["a"],"scores":[%d.0]}' % number)
    whole = lines.path.read_bytes()

    def is_sound(line):
        try:
            return set(json.loads(checked(line))) == {"items", "scores"}
        except ValueError:
            return False

    for bit in range(8 * len(whole)):
        altered = bytearray(whole)
        altered[bit // 8] ^= 1 << bit % 8
        lines.path.write_bytes(altered)
        assert not all(is_sound(line) for _, line in lines.read()), bit
    assert lines.repair(is_sound) == [2]  # the last bit is in the end of the line


def test_lines_of_older_versions_have_no_checksum(lines):
    lines.path.write_bytes(b'{"failed":{"a":"b","crc32":"12345678"}}\n')
    lines.append(b'{"a":1}')
    assert content(lines) == [b'{"failed":{"a":"b","crc32":"12345678"}}', b'{"a":1}']


def test_a_line_that_does_not_fit_on_the_disk_is_not_added(lines):
    resource = pytest.importorskip("resource")
    lines.append(b'{"a":1}')
    whole = lines.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 5, hard))
    try:
        with pytest.raises(OSError, match=r"log\.jsonl"):
            lines.append(b'{"a":2}')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert lines.path.read_bytes() == whole
    lines.append(b'{"a":3}')
    assert content(lines) == [b'{"a":1}', b'{"a":3}']


def test_a_line_that_the_disk_does_not_confirm_is_not_added(lines, monkeypatch):
    lines.append(b'{"a":1}')

    def fail(handle):
        raise OSError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="lost"):
            lines.append(b'{"a":2}')
    assert content(lines) == [b'{"a":1}']


def test_repair_drops_what_is_damaged_and_keeps_the_file(lines):
    before = b"1\nx\n2\n\n3"
    lines.path.write_bytes(before)
    assert lines.repair(bytes.isdigit) == [2, 4, 5]
    assert lines.path.read_bytes() == b"1\n2\n"
    kept = lines.path.with_name("log.jsonl.damaged")
    assert kept.read_bytes() == before
    kept.unlink()
    assert lines.repair(bytes.isdigit) == []
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


def test_threads_and_processes_write_whole_lines(lines):
    pytest.importorskip("fcntl")
    command = [sys.executable, "-c", WRITER, str(lines.path)]
    writers = [subprocess.Popen([*command, name]) for name in ("one", "two")]

    def write(number):
        lines.append(b'{"from": "threads", "number": %d}' % number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(300)))
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = [json.loads(line) for line in content(lines)]
    for name in ("one", "two", "threads"):
        numbers = [one["number"] for one in found if one["from"] == name]
        assert sorted(numbers) == list(range(300))


def test_nothing_is_added_to_a_file_while_it_is_rewritten(lines):
    """A line that waits for its turn goes to the new file, not to the one that was there."""
    pytest.importorskip("fcntl")
    lines.append(b'{"a":1}')
    with ThreadPoolExecutor(4) as pool:
        with lines.locked():
            added = [pool.submit(Lines(lines.path).append, b'{"a":%d}' % n) for n in (2, 3, 4)]
            added.append(pool.submit(lines.append, b'{"a":5}'))
            lines.rewrite(lambda line: line)
        for one in added:
            one.result(30)
    assert sorted(content(lines)) == [b'{"a":%d}' % n for n in range(1, 6)]
