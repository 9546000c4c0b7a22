"""The workflow of GitHub in the documentation, run as GitHub runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fewbench.scores import save_scores
from fewbench.testing import simulate


def test_the_workflow_of_the_page_on_decisions(tmp_path):
    """The steps of the documentation's workflow, with another number of items and model."""
    yaml = pytest.importorskip("yaml")
    page = (Path(__file__).parents[2] / "docs" / "decide.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    assert workflow[True] == ["pull_request"]  # YAML 1.1 reads `on` as true
    steps = workflow["jobs"]["gate"]["steps"]
    script = steps[-1]["run"].replace("-n 320", "-n 20").replace("released-model", "model-12")
    save_scores(simulate(20, 40, seed=2), tmp_path / "scores.parquet")
    (tmp_path / "my_eval.py").write_text(
        "import sys\nprint('item,score')\n"
        "for line in open(sys.argv[1]):\n    print(line.strip() + ',1')\n"
    )
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, words in (("fewbench", "-m fewbench"), ("python", "")):
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (bin_ / name).chmod(0o755)
    summary = tmp_path / "summary.md"
    own = {"PATH": f"{bin_}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary)}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]  # as GitHub runs it
    done = subprocess.run(bash, env=os.environ | own, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "### fewbench gate: target passes" in summary.read_text()
