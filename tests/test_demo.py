"""The demo, from the command line to its page."""

import re

import pytest

from fewbench import study
from fewbench.cli import main
from fewbench.datasets import load_zoo
from fewbench.datasets.zoo import EXAMPLE


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
    estimate = float(re.search(r"^The estimate is ([\d.]+)% ", said.out, re.M)[1])
    truth = float(re.search(r"images give ([\d.]+)%:$", said.out, re.M)[1])
    assert abs(estimate - truth) < 15
    off = re.search(r"error of the estimate is ([\d.]+) pp", said.out)
    assert float(off[1]) == pytest.approx(abs(estimate - truth), abs=0.11)
    halves = [float(one) for one in re.findall(r"% +([\d.]+) pp +[\d.]+ pp$", said.out, re.M)]
    assert halves[-1] < halves[0]
    needed = re.search(r"needs (\d+) images for", said.out)
    assert int(needed[1]) > 40
    assert "  cd out\n  fewbench run command scores.parquet -n 40 -t step-1000 -o run" in said.out
    page = tmp_path / "out" / "report.html"
    assert {one.name for one in page.parent.iterdir()} == {page.name, *EXAMPLE}
    assert f"Report of this comparison: {page}\n" in said.out
    text = page.read_text()
    for split in ("random", "group"):
        assert split in text
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]
