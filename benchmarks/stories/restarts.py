"""The same folder and name again: killed runs, other weights, loops that start anew."""

import csv
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .found import LOST, SILENT, Found, estimates_of
from .shell import Said, fewbench, folder
from .worlds import Questions, last_of, run_of

ITEMS, BUDGET = 300, 60
PACE, KEPT = 0.05, 1.5
"""Seconds that an answer takes; and after which an answer is kept, whatever happens."""
PROGRAM = f"""
import json, os, sys, time
weights = json.load(open("weights.json"))
for line in sys.stdin:
    item = json.loads(line)["item"]
    if os.path.exists("slow"):
        time.sleep({PACE})
    print(json.dumps({{"item": item, "score": weights[item]}}), flush=True)
    with open("paid.txt", "a") as file:
        print(item, time.time(), file=file)
    if os.path.exists("kill") and sum(1 for _ in open("paid.txt")) == 40:
        os.kill(os.getppid(), 9)
        break
"""


def restarts(worlds: int) -> Iterator[Found]:
    """Yield whether a number is of other weights without a word, and what was paid twice."""
    for world in range(worlds):
        rng = np.random.default_rng([50, world])
        questions = Questions.draw(ITEMS, rng)
        new, old = last_of(rng.permutation(32)[:1])[0], run_of(int(rng.integers(32)))[1]
        with folder():
            questions.items()
            Path("answer.py").write_text(PROGRAM)
            yield from _killed(world, questions, new.right[questions.at])
            yield from _other_weights(
                world, questions, *(m.right[questions.at] for m in (old, new))
            )
            yield from _loops(world, questions, *(m.right[questions.at] for m in (old, new)))


def _weights(questions: Questions, scores: np.ndarray) -> None:
    lines = dict(zip(questions.ids, scores.tolist(), strict=True))
    Path("weights.json").write_text(json.dumps(lines))


def _run(place: str, world: int, *words: object) -> Said:
    given = ("items.csv", "-t", "model", "-n", BUDGET, "--seed", world, "-o", place, "--json")
    return fewbench("run", "command", *given, *words, "--", sys.executable, "-S", "answer.py")


def _estimate(said: Said) -> dict[str, Any]:
    return said.json["targets"]["model"]["estimate"]


def _killed(world: int, questions: Questions, scores: np.ndarray) -> Iterator[Found]:
    """Yield what a run is that was killed after 40 answers, beside one that was not."""
    _weights(questions, scores)
    whole = _estimate(_run("whole", world))
    _kill("killed", world)
    paid = _paid()
    resumed = _estimate(_run("killed", world))
    again = _paid()[len(paid) :]
    (until,) = {moment for _, moment in paid[-1:]}
    twice = {item for item, moment in paid if moment < until - KEPT} & {item for item, _ in again}
    yield from estimates_of("killed, and run again", world, resumed, scores.mean())
    yield Found("killed, and run again", SILENT, float(resumed["score"] != whole["score"]), world)
    yield Found("killed, and run again", LOST, len(twice) / len(paid), world)


def _paid() -> list[tuple[str, float]]:
    """Return the answers that the program gave, and when."""
    lines = map(str.split, Path("paid.txt").read_text().splitlines())
    return [(item, float(moment)) for item, moment in lines]


def _kill(place: str, world: int) -> None:
    """Run in a process of its own, which the program kills after 40 answers."""
    Path("paid.txt").write_text("")
    for name in ("slow", "kill"):
        Path(name).touch()
    child = os.fork()
    if child == 0:
        _run(place, world)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    for name in ("slow", "kill"):
        Path(name).unlink()


def _other_weights(
    world: int, questions: Questions, old: np.ndarray, new: np.ndarray
) -> Iterator[Found]:
    _weights(questions, old)
    _run("again", world)
    _weights(questions, new)
    said = _run("again", world)
    yield Found("other weights, run again", SILENT, _silent(said), world)
    fresh = _estimate(_run("again", world, "--fresh"))
    yield from estimates_of("other weights, --fresh", world, fresh, new.mean())
    _weights(questions, old)
    _kill("part", world)
    _weights(questions, new)
    yield Found("other weights after a kill", SILENT, _silent(_run("part", world)), world)
    Path("answer.py").write_text(PROGRAM + "# changed\n")
    said = _run("whole", world)
    yield Found("another program", SILENT, _silent(said), world)
    Path("answer.py").write_text(PROGRAM)


def _silent(said: Said) -> float:
    """Return whether a command printed a number without a warning or an error."""
    return float(said.code == 0 and not said.warnings)


def _loops(world: int, questions: Questions, old: np.ndarray, new: np.ndarray) -> Iterator[Found]:
    """Yield what a loop of start, ask and tell does that is started again with other weights."""
    begin = ("start", "items.csv", "-n", BUDGET, "-t", "model", "-o", "loop", "--seed", world)
    fewbench(*begin)
    asked = fewbench("ask", "loop", "--json").json["model"]
    for name, scores in (("old", old), ("new", new)):
        known = dict(zip(questions.ids, scores.tolist(), strict=True))
        with open(f"{name}.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerows([("item", "score"), *((item, known[item]) for item in asked)])
    tell = ("--item", "item", "--score", "score")
    fewbench("tell", "loop", "old.csv", *tell)
    yield Found("a loop started again: start", SILENT, float(not fewbench(*begin).code), world)
    said = fewbench("tell", "loop", "new.csv", *tell)
    yield Found("a loop started again: tell", SILENT, float(not said.code), world)
    fewbench("tell", "loop", "new.csv", *tell, "--correct")
    corrected = fewbench("estimate", "loop", "--json").json["model"]
    yield from estimates_of("a loop, corrected", world, corrected, new.mean())
