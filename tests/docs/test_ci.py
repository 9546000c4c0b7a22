"""The recipes for CI: workflows run as GitHub runs them, pytest as pytest runs it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fewbench
from fewbench.cli import main
from fewbench.cli.app import COMMANDS, load_command
from fewbench.testing import simulate

PAGE = (Path(__file__).parents[2] / "docs/how-to/ci.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.S)
# In place of fewbench: notes its arguments; gates end with the codes of CODES, one after another.
FAKE = """#!/bin/sh
echo "$@" >> calls
[ "$1" = gate ] || exit 0
echo "the verdict" > gate.md
code=$(head -n 1 codes); sed -i 1d codes; exit "$code"
"""


def steps_of(yaml, number):
    content = yaml.safe_load([text for kind, text in BLOCKS if kind == "yaml"][number])
    return content["jobs"]["gate"]["steps"] if isinstance(content, dict) else content


@pytest.mark.parametrize(
    ("number", "codes", "end", "n_calls"),
    [
        (0, (0,), 0, 2),
        (0, (1,), 1, 2),
        (0, (2,), 2, 2),
        (0, (3,), 0, 2),  # accepted, with a warning
        (1, (1,), 1, 2),
        (1, (3, 0), 0, 4),  # more items, then a verdict
        (1, (3, 3), 3, 4),
    ],
)
def test_the_workflows_end_as_the_gate_does(number, codes, end, n_calls, tmp_path):
    yaml = pytest.importorskip("yaml")
    script = steps_of(yaml, number)[-1]["run"]
    (tmp_path / "fewbench").write_text(FAKE)
    (tmp_path / "fewbench").chmod(0o755)
    (tmp_path / "codes").write_text("".join(f"{code}\n" for code in codes))
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": "summary.md"}
    bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]  # as GitHub runs it
    done = subprocess.run(bash, env=os.environ | own, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == end, done.stderr
    assert ("::warning::" in done.stdout) == (number == 0 and codes == (3,))
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == n_calls
    for name, *words in map(shlex.split, calls):  # the command and its options exist
        assert name in COMMANDS
        command = load_command(name)
        context = command.make_context("fewbench", [], resilient_parsing=True)
        while getattr(command, "commands", None):
            _, command, words = command.resolve_command(context, words)
        command.make_parser(context).parse_args(words)


@pytest.mark.parametrize(("right", "outcome"), [(39, "passed"), (10, "failed"), (29, "skipped")])
def test_the_pytest_recipe(right, outcome, tmp_path, monkeypatch, capsys):
    (block,) = [text for kind, text in BLOCKS if kind == "python"]
    scores = simulate(1, 200, seed=1)
    evaluation = fewbench.Evaluation(scores.benchmark, "random", 40, ["model"])
    asked = evaluation.ask()["model"]
    evaluation.tell("model", dict(zip(asked, (np.arange(40) < right) * 1.0, strict=True)))
    evaluation.save(tmp_path / "run")
    monkeypatch.chdir(tmp_path)

    def in_process(words, **_):
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code or 0
        return SimpleNamespace(returncode=code, stdout=printed.out, stderr=printed.err)

    monkeypatch.setattr(subprocess, "run", in_process)
    names: dict = {}
    exec(compile(block, "test_model.py", "exec"), names)
    try:
        names["test_the_model_scores_at_least_70_percent"]()
        found = "passed"
    except AssertionError:
        found = "failed"
    except pytest.skip.Exception:
        found = "skipped"
    assert found == outcome
