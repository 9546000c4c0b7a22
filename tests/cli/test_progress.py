"""Long work shows a line a minute where there is no terminal."""

import re
import sys
import threading
import time
from contextlib import contextmanager

import fewbench
from fewbench import _progress as progress
from fewbench.evaluation import Stop
from fewbench.evaluation.costs import Cost
from fewbench.runners.command import CommandRunner
from fewbench.runners.driving import run_with
from fewbench.runners.function import FunctionRunner
from fewbench.runners.progress import ProgressLine
from fewbench.runners.result import Progress, Spent
from fewbench.testing import simulate

TABLE = simulate(20, 60, seed=1)


def test_a_line_a_minute_in_a_pipe(monkeypatch):
    said = []
    monkeypatch.setattr(progress, "MINUTE", 0.02)
    monkeypatch.setattr(progress, "say", said.append)

    def heard_twice(line):
        while said.count(line) < 2:
            time.sleep(0.001)
        return True

    assert progress.pace(300, 1200, 600.0) == ", 30 a minute, about 30 min left"
    monkeypatch.setattr(progress, "pace", lambda done, total, _: f", {done} a minute")

    started = time.monotonic()
    with progress.progress_bar("comparing") as update:
        update(3, 1200)
        assert heard_twice("comparing: 3 of 1,200, 3 a minute, 0 min so far")  # in one long step
    with progress.at_work("choosing items"):
        assert heard_twice("choosing items: 0 min so far")
    assert len(said) <= (time.monotonic() - started) / 0.02


def test_nothing_is_said_of_short_work(capsys):
    with progress.progress_bar("comparing") as update:
        update(1, 2)
    assert capsys.readouterr().err == ""


def test_commands_say_that_they_are_at_work(cli, scores, monkeypatch):
    """Where a single step of the work takes long: here none is over before it was spoken of."""
    lines, say = progress._lines, progress.say

    @contextmanager
    def until_said(title):
        spoken = threading.Event()

        def tell(text):
            say(text)
            spoken.set()

        monkeypatch.setattr(progress, "say", tell)
        with lines(title) as update:
            yield update
            assert spoken.wait(60)

    monkeypatch.setattr(progress, "MINUTE", 0.001)
    monkeypatch.setattr(progress, "_lines", until_said)
    for line, said in (
        (f"select {scores} -m kmedoids-ridge -n 4", "choosing items: "),
        (f"audit {scores}", "auditing: "),
        (
            f"start {scores} -m kmedoids-ridge -n 4 -o run",
            r"choosing items \(20 source models × 40 items\): ",
        ),
        (f"start {scores} -m kmedoids-ridge -n 4 -o other", "measuring the method's error .*: "),
        ("ask run", "opening run: "),
    ):
        heard = cli(*line.split())
        assert heard.code == 0
        assert re.search(rf"^{said}\d+ min so far$", heard.err, re.MULTILINE)


def test_the_line_of_a_run_keeps_the_last_interval():
    class Run:
        stop = fewbench.Stop(items=50)
        evaluation = fewbench.Evaluation(TABLE, "random", 50)

        def is_amid_batch(self, target):
            return False

        def progress(self, target, *, interval, score):
            estimate = self.evaluation.estimate(0.9)[target] if interval else None
            clock[0] += 3 * interval
            n = len(self.evaluation.record.answered(target))
            return Progress(
                scale=fewbench.Scale(),
                target=target,
                answered=n,
                budget=50,
                total=60,
                score=0.5 if score else None,
                estimate=estimate,
                spent=Spent(),
                cost=Cost(spent=n / 10, full=6, limit=3, unit="$"),
            )

    said, clock = [], [0.0]
    run, line = Run(), ProgressLine(said.append, lambda: clock[0])
    items = run.evaluation.ask()["target"]
    for at, item in enumerate(items[:4]):
        run.evaluation.tell("target", {item: 1.0})
        clock[0] += (0.1, 5.0, 0.1, 1.5)[at]
        line(run, "target")
    first, second, third = said
    assert first == "target: 1 of 50 items · cost $0.10 of at most $3.00, $6.00 in full"
    assert second.startswith(
        "target: 2 of 50 items, 12 a minute, about 4 min left · score 50.0% · 90% interval "
    )
    assert " at 2 items · cost $0.40 of at most $3.00, $6.00 in full" in third


def test_a_run_from_python_shows_its_progress(monkeypatch, capsys):
    monkeypatch.setattr(progress, "MINUTE", 0.02)

    def answer(item):
        time.sleep(0.02)
        return 1.0

    found = fewbench.run(TABLE, "random", 8, answer, batch=2)
    assert re.search(r"^running a function: .*, 0 min so far$", capsys.readouterr().err, re.M)
    monkeypatch.undo()
    fewbench.run(TABLE, "random", 8, lambda item: 1.0)
    assert capsys.readouterr().err == ""
    assert found.score == 1.0


def test_answers_are_counted_within_a_batch(monkeypatch):
    monkeypatch.setattr("fewbench.runners.driving.SOON", 0.0)
    monkeypatch.setattr("fewbench.runners.progress.OFTEN", 0.0)
    answer = (
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'item': json.loads(line)['item'], 'score': 1}), flush=True)\n"
    )
    for runner in (
        FunctionRunner(lambda item: 1.0),
        CommandRunner([sys.executable, "-S", "-c", answer]),
    ):
        lines = []
        shown = ProgressLine(lines.append)
        run_with(runner, TABLE, "random", 30, targets=["new"], on_progress=shown)
        counts = [int(re.match(r"new: (\d+) of 30 items", line)[1]) for line in lines]
        assert list(dict.fromkeys(counts)) == list(range(1, 31))  # in batches of 10 and 16, or 20
        assert "score 100.0%" in lines[15]


def test_within_a_batch_no_interval_is_made_though_one_ends_the_run(monkeypatch):
    monkeypatch.setattr("fewbench.runners.driving.SOON", 0.0)
    lines, stop = [], Stop(items=30, half_width=0.01)
    shown = ProgressLine(lines.append, clock=lambda: 0.0)  # there is never time for one more
    runner = FunctionRunner(lambda item: 1.0)
    run_with(runner, TABLE, "random", stop, targets=["new"], on_progress=shown)
    fresh = [line.split()[1] for line in lines if "interval" in line and " at " not in line]
    assert sorted(set(fresh)) == ["10", "20", "30"]
