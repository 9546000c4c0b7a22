"""Outages: items that fail for a while, for good, or all at once; programs that die."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .found import LOST, SILENT, Found, estimates_of
from .shell import Said, fewbench, folder
from .worlds import Questions, last_of

ITEMS, BUDGET = 300, 60
PROGRAM = """
import json, os, sys
plan = json.load(open("plan.json"))
for line in sys.stdin:
    item = json.loads(line)["item"]
    with open("asked.txt", "a+") as file:
        file.seek(0)
        before = file.read().split()
        print(item, file=file)
    tries, of_run = before.count(item), len(before)
    if plan["dies"] and of_run % plan["dies"] == plan["dies"] - 1:
        os._exit(3)
    fails = tries < plan["fails"].get(item, 0) or plan["from"] <= of_run < plan["to"]
    if fails:
        print(json.dumps({"item": item, "error": "503"}), flush=True)
    else:
        with open("paid.txt", "a") as file:
            print(item, file=file)
        print(json.dumps({"item": item, "score": plan["scores"][item]}), flush=True)
"""
NEVER = 10**9


def outages(worlds: int) -> Iterator[Found]:
    """Yield estimates after outages, what was paid twice, and what came without a warning."""
    for world in range(worlds):
        rng = np.random.default_rng([70, world])
        questions = Questions.draw(ITEMS, rng)
        (model,) = last_of(rng.permutation(32)[:1])
        scores = model.right[questions.at]
        ids, tasks = np.array(questions.ids), np.array(questions.tasks)
        some = ids[rng.random(ITEMS) < 0.2].tolist()
        hard = ids[(scores == 0) & (rng.random(ITEMS) < 0.6)].tolist()
        of_task = ids[tasks == tasks[0]].tolist()
        plans: dict[str, dict[str, Any]] = {
            "a fifth of the items fails once": {"fails": dict.fromkeys(some, 1)},
            "all items fail for a while": {"from": 20, "to": 80},
            "the program dies after every 25 items": {"dies": 25},
            "a fifth of the items fails for good": {"fails": dict.fromkeys(some, NEVER)},
            "most items that it gets wrong fail for good": {"fails": dict.fromkeys(hard, NEVER)},
            "all items of a task fail for good": {"fails": dict.fromkeys(of_task, NEVER)},
        }
        for case, plan in plans.items():
            with folder():
                questions.items()
                known = dict(zip(questions.ids, scores.tolist(), strict=True))
                parts = {"scores": known, "fails": {}, "from": 0, "to": 0, "dies": 0} | plan
                yield from _one(case, world, parts, scores.mean())


def _run(world: int, *words: object) -> Said:
    given = ("items.csv", "-t", "model", "-n", BUDGET, "--seed", world, "-o", "run", "--json")
    return fewbench("run", "command", *given, *words, "--", sys.executable, "-S", "answer.py")


def _one(case: str, world: int, plan: dict[str, Any], truth: float) -> Iterator[Found]:
    Path("answer.py").write_text(PROGRAM)
    Path("plan.json").write_text(json.dumps(plan))
    for name in ("asked.txt", "paid.txt"):
        Path(name).touch()
    for _ in range(4):  # people run it again until it works
        said = _run(world)
        if said.code == 0:
            break
    target = json.loads(said.out)["targets"]["model"]
    again = fewbench("estimate", "run", "--json")
    paid = Counter(Path("paid.txt").read_text().split())
    kept = target["items_run"]
    yield Found(case, LOST, (sum(paid.values()) - kept) / kept, world)
    is_whole = kept == BUDGET
    if is_whole or "wrong" not in case:
        yield from estimates_of(case, world, target["estimate"], truth)
    if not is_whole:
        silent = not target["estimate"]["warnings"] or not again.json["model"]["warnings"]
        yield Found(case, SILENT, float(silent), world)
