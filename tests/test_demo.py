"""The demo, from the command line to its page."""

import re
from pathlib import Path

import pytest

from fewbench import study
from fewbench.cli import main
from fewbench.datasets import load_zoo


@pytest.mark.slow
def test_demo(monkeypatch, capsys, tmp_path):
    """As a user runs it, but for fewer source models and items, and one repeat to compare."""
    full, zoo = study.compare, load_zoo()
    few = zoo.take(models=range(0, zoo.n_models, 3))
    monkeypatch.setattr("fewbench.datasets.load_zoo", lambda: few)
    monkeypatch.setattr(study, "compare", lambda *a, **k: full(*a, **{**k, "repeats": 1}))
    monkeypatch.setattr("fewbench.cli.demo.BUDGET", 40)
    monkeypatch.chdir(tmp_path)
    words = ["fewbench", "demo", "--output", "out", "--workers", "1"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as exit_:
        main()
    said = capsys.readouterr()
    assert exit_.value.code == 0
    assert all(line.startswith("comparing: ") for line in said.err.splitlines())  # one a minute
    estimate = float(re.search(r"^newcomer scores ([\d.]+) ", said.out, re.M)[1])
    truth = float(re.search(r"^truth +([\d.]+) ", said.out, re.M)[1])
    assert abs(estimate - truth) < 0.15
    source = re.search(r"^  fewbench pack (\S+) .* -o zoo-50.few$", said.out, re.M)[1]
    assert Path(source).is_file()
    assert "\n  fewbench start zoo-50.few -o run\n" in said.out
    off = re.search(r"^fewbench +([\d.]+) +error ([\d.]+) points", said.out, re.M)
    assert float(off[1]) == estimate
    assert float(off[2]) == pytest.approx(100 * abs(estimate - truth), abs=0.1)
    page = tmp_path / "out" / "report.html"
    assert said.out.endswith(f"Report: {page}\n")
    text = page.read_text()
    for split in ("random", "group"):
        assert f"{split} split, 50 items" in said.out
        assert split in text
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]
