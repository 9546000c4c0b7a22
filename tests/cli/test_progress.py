"""Long work shows a line a minute where there is no terminal."""

import re
import time

from fewbench.cli import progress


def test_a_line_a_minute_in_a_pipe(capsys, monkeypatch):
    monkeypatch.setattr(progress, "MINUTE", 0.05)
    with progress.progress_bar("comparing") as update:
        update(3, 1200)
        time.sleep(0.3)  # one long step
    with progress.at_work("choosing items"):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= lines.count("comparing: 3 of 1,200, 0 min so far") <= 6
    assert 2 <= lines.count("choosing items: 0 min so far") <= 6


def test_nothing_is_said_of_short_work(capsys):
    with progress.progress_bar("comparing") as update:
        update(1, 2)
    assert capsys.readouterr().err == ""


def test_commands_say_that_they_are_at_work(cli, scores, monkeypatch):
    """Where a single step of the work takes long: the comparison is the slowest of them."""
    monkeypatch.setattr(progress, "MINUTE", 0.001)
    for line, said in (
        (f"select {scores} -m kmedoids-ridge -n 4", "choosing items: "),
        (f"audit {scores}", "auditing: "),
        (f"start {scores} -m kmedoids-ridge -n 4 -o run", "choosing items: "),
        ("ask run", "opening run: "),
    ):
        heard = cli(*line.split())
        assert heard.code == 0
        assert re.search(rf"^{said}\d+ min so far$", heard.err, re.MULTILINE)
