"""Long work shows a line a minute where there is no terminal."""

import re
import threading
import time
from contextlib import contextmanager

from fewbench.cli import progress


def test_a_line_a_minute_in_a_pipe(monkeypatch):
    said = []
    monkeypatch.setattr(progress, "MINUTE", 0.02)
    monkeypatch.setattr(progress, "say", said.append)

    def heard_twice(line):
        while said.count(line) < 2:
            time.sleep(0.001)
        return True

    started = time.monotonic()
    with progress.progress_bar("comparing") as update:
        update(3, 1200)
        assert heard_twice("comparing: 3 of 1,200, 0 min so far")  # in one long step
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
        (f"start {scores} -m kmedoids-ridge -n 4 -o run", "choosing items: "),
        ("ask run", "opening run: "),
    ):
        heard = cli(*line.split())
        assert heard.code == 0
        assert re.search(rf"^{said}\d+ min so far$", heard.err, re.MULTILINE)
