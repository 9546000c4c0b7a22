"""Runs that are killed again and again, for test_faults.py.

    python tests/runners/killed_runs.py FOLDER KILLS

prints as JSON what came of it, for each runner. Each life of a run is a fork of this process, so
that it starts at once.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from fewbench.evaluation import Stop
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.runners.function import FunctionRunner
from fewbench.testing import simulate

TABLE = simulate(15, 80, 2, seed=5)
SOURCES, NEW = TABLE.take(models=range(14)), TABLE.take(models=[14])
TRUTH = dict(zip(NEW.item_ids.tolist(), NEW.values[0].tolist(), strict=True))
BATCH, STOP, METHOD = 3, Stop(items=40), "tailored(probe=6)"
PROGRAM = r"""
while read -r line; do
  item=${line#*\"item\": \"}; item=${item%%\"*}
  echo "$item" >> asked
  score=0; case " $RIGHT " in *" $item "*) score=1;; esac
  echo "{\"item\": \"$item\", \"score\": $score, \"cost\": 1}"
done
"""


def note(item):
    with open("asked", "a") as file:
        file.write(f"{item}\n")


def right(item):
    note(item)
    return TRUTH[item]


def runner_of(name):
    if name == "function":
        return FunctionRunner(right)
    return CommandRunner(["sh", "-c", PROGRAM])


def go(name, folder):
    stop = {"folder": folder, "batch": BATCH, "seed": 3}
    return run_with(runner_of(name), SOURCES, METHOD, STOP, **stop)


def recorded(folder):
    path = Path(folder) / "answers.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    told = [json.loads(line) for line in lines if line.endswith("\n") and "scores" in line]
    return {item for one in told for item in one["items"]}


def life(name, n_asked, seconds):
    """Run until killed: so many seconds after n items were asked. Return whether it ended first."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.alarm(60)
        try:
            go(name, "run")
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    until = None
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if until is None and len(Path("asked").read_text().splitlines()) >= n_asked:
            until = time.monotonic() + seconds
        if until is not None and time.monotonic() >= until:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.001)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return not os.WIFSIGNALED(status)


def killed(name, folder, kills):
    folder.mkdir()
    os.chdir(folder)
    os.environ["RIGHT"] = " ".join(item for item, score in TRUTH.items() if score)
    other = go(name, "plain")  # first, so that forks find everything imported
    draw, lives, again, most_lost = random.Random(1), 0, 0, 0
    while lives < kills:
        before = recorded("run")
        Path("asked").write_text("")
        ended = life(name, draw.randrange(5), draw.uniform(0, 0.02))
        time.sleep(0.01)  # the program of a killed run ends by itself
        asked, after = Path("asked").read_text().split(), recorded("run")
        again += len(before & set(asked)) + len(asked) - len(set(asked))
        most_lost = max(most_lost, len(set(asked) - after))
        assert before <= after, "answers were lost"
        lives += 1
        if ended:
            os.rename("run", f"run-{lives}")
    killed_with = len(recorded("run"))
    result = go(name, "run")
    return {
        "recorded": killed_with + 40 * len(list(Path().glob("run-*"))),
        "again": again,
        "most_lost": most_lost,
        "same": [one.estimate.model_dump_json(exclude={"cost"}) for one in result.targets.values()]
        == [one.estimate.model_dump_json(exclude={"cost"}) for one in other.targets.values()],
        "items": next(iter(result.targets.values())).items_run,
    }


if __name__ == "__main__":
    place, kills = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    runners = ("function", "command")
    print(json.dumps({name: killed(name, place / name, kills) for name in runners}))
