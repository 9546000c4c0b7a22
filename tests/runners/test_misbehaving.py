"""Programs that misbehave: what they were paid for is kept, and no more is sent than is read.

    python tests/runners/test_misbehaving.py [SECONDS]

prints for each program how many answers it was paid for, of how many items, and how many of them
are recorded; each answer takes it so many seconds.
"""

import os
import sys
import time
from pathlib import Path

import pytest

from fewbench.errors import FewbenchError
from fewbench.evaluation import Evaluation
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.testing import simulate

ITEMS = simulate(2, 60, seed=5).benchmark
N = 30
KEY = "sk-proj-1234567890"
PROGRAM = """
import json, os, random, subprocess, sys, time

def say(text):
    print(text, flush=True)

def tell(item, score=1, **more):
    say(json.dumps({{"item": item, "score": score}} | more))

def pay(item):
    with open("paid", "a") as file:
        file.write(item + "\\n")
    time.sleep({seconds})

def asked():
    for line in sys.stdin:
        yield json.loads(line)["item"]

"""
EACH = "for n, item in enumerate(asked(), 1):\n    pay(item)\n"
# What the program does, how many of 30 answers are recorded in one run, and how many more answers
# than these it may be paid for.
PROGRAMS = {
    "behaves": (EACH + "    tell(item)", 30, 0),
    "log lines": (EACH + "    if n == 7: say('warning: retrying')\n    tell(item)", 30, 0),
    "log lines that are JSON": (EACH + "    say('{\"level\": \"info\"}')\n    tell(item)", 30, 0),
    "score out of range": (EACH + "    tell(item, 7 if n == 7 else 1)", 30, 1),
    "score as text": (EACH + "    tell(item, 'yes' if n == 7 else 1)", 30, 1),
    "score as a list": (EACH + "    tell(item, [1] if n == 7 else 1)", 30, 1),
    "score null": (EACH + "    tell(item, None if n == 7 else 1)", 30, 1),
    "score NaN": (EACH + "    tell(item, float('nan') if n == 7 else 1)", 30, 1),
    "every score out of range": (EACH + "    tell(item, 87)", 0, 10),
    "negative cost": (EACH + "    tell(item, cost=-1 if n == 7 else 1)", 30, 1),
    "tokens as text": (EACH + "    tell(item, tokens='many' if n == 7 else 1)", 30, 1),
    "costs without bounds": (EACH + "    tell(item, cost=1e308 if n in (7, 9) else 1)", 30, 2),
    "tokens without bounds": (EACH + "    tell(item, tokens=10**400 if n == 7 else 1)", 30, 1),
    "unknown item": (EACH + "    if n == 7: tell('elsewhere')\n    tell(item)", 30, 0),
    "items not sent": (EACH + "    tell(f'item-{n + 30}')\n    tell(item)", 30, 0),
    "second answer": (EACH + "    tell(item)\n    if n == 7: tell(item, 0)", 30, 0),
    "late second answer": (
        EACH + "    if n == 7: first = item\n    tell(item)\n    if n == 20: tell(first, 0)", 30, 0,
    ),
    "answers twice": (EACH + "    tell(item)\n    tell(item)", 30, 0),
    "answers out of order": (
        "for line in sys.stdin:\n"
        "    sent = [json.loads(line)]\n"
        "    while not sent[-1]['last']: sent.append(json.loads(sys.stdin.readline()))\n"
        "    for one in reversed(sent):\n"
        "        pay(one['item'])\n"
        "        tell(one['item'])",
        30, 0,
    ),
    "crash mid-way": (EACH + "    if n == 7: os._exit(3)\n    tell(item)", 30, 5),
    "crash at every item": (EACH + "    os._exit(3)", 0, 2),
    "exit code at the end": (EACH + "    tell(item)\nsys.exit(3)", 30, 0),
    "partial line": (
        EACH + "    if n == 7:\n        print('{\"item\": \"', end='', flush=True)\n"
        "        os._exit(0)\n    tell(item)",
        30, 5,
    ),
    "no newline at the end": (
        EACH + "    if n == 7:\n        print(json.dumps({'item': item, 'score': 1}), end='')\n"
        "        break\n    tell(item)",
        30, 0,
    ),
    "huge line": (EACH + "    if n == 7: say('x' * (20 << 20))\n    tell(item)", 30, 0),
    "binary": (
        EACH + "    if n == 7: os.write(1, bytes(range(256)) + b'\\n')\n    tell(item)", 30, 0,
    ),
    "flood on standard error": (EACH + "    sys.stderr.write('x' * 100000)\n    tell(item)", 30, 0),
    "child that holds the output": (
        "child = subprocess.Popen(['sleep', '20'], start_new_session=True)\n"
        "open('child', 'w').write(str(child.pid))\n" + EACH + "    tell(item)",
        30, 0,
    ),
    "closes its input": (
        EACH + "    tell(item)\n    if n == 7: os.close(0); time.sleep(.1); break", 30, 0,
    ),
    "answers in another form": (EACH + "    say(f'{item},1')", 0, 10),
    "leaves an item out": (EACH + "    say('ERROR') if n == 7 else tell(item)", 30, 2),
    "hangs": (EACH + "    if n == 7: time.sleep(60)\n    tell(item)", 30, 5),
}  # fmt: skip


def measure(name, folder, seconds=0.0):
    """Return answers paid, items paid, answers recorded, seconds, and what came of the run."""
    program = folder / "program.py"
    program.write_text(PROGRAM.format(seconds=seconds) + PROGRAMS[name][0])
    timeout = max(3.0, 20 * seconds) if name == "hangs" else None
    runner = CommandRunner([sys.executable, "-S", str(program)], timeout=timeout)
    started = time.monotonic()
    try:
        found = run_with(runner, ITEMS, "random", N, folder=folder / "run", targets=["new"])
    except FewbenchError as error:
        found = error
    took = time.monotonic() - started
    paid = (folder / "paid").read_text().split()
    if (folder / "child").exists():
        os.kill(int((folder / "child").read_text()), 9)
    recorded = len(Evaluation.open(folder / "run").record.answered("new"))
    return len(paid), len(set(paid)), recorded, took, found


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_program_was_paid_for_is_recorded(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fewbench.runners.command.QUIET", 0.5)
    paid, _, recorded, took, found = measure(name, tmp_path)
    _, wanted, more = PROGRAMS[name]
    assert not isinstance(found, FewbenchError), found
    assert recorded == wanted
    assert paid <= recorded + more
    assert found.is_failed == (recorded < N)
    assert took < 45  # the program that hangs sleeps for 60


LEAKS = {
    "a log": "say(f'asking with {key}')\n    tell(item)",
    "an item": "tell(key)\n    tell(item)",
    "a score": "tell(item, 1 if n > N else key)",
    "an error": "tell(item, 1) if n > N else tell(item, None, error=f'no such key: {key}')",
    "two answers": "tell(item, None, error=key)\n    tell(item, 1)",
}


@pytest.mark.parametrize("where", LEAKS)
def test_keys_that_a_program_prints_are_masked(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    does = EACH + f"    N, key = {N}, os.environ['OPENAI_API_KEY']\n    {LEAKS[where]}"
    monkeypatch.setitem(PROGRAMS, where, (does, 30, 60))
    found = measure(where, tmp_path)[-1]
    kept = [path.read_text("utf-8") for path in (tmp_path / "run").glob("*.json*")]
    told = [found.model_dump_json(), str(found), *kept]
    assert any("(the key)" in text for text in told)
    assert not [text for text in told if KEY in text]


if __name__ == "__main__":
    import tempfile

    given = sys.argv[1:] or ["0.1"]
    for each in given[1:] or PROGRAMS:
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            line = measure(each, Path(place), float(given[0]))
            why = line[4] if isinstance(line[4], Exception) else line[4].stopped
            print(f"{each:30}", *line[:3], f"{line[3]:.1f} s", str(why)[:90], sep=" | ", flush=True)
