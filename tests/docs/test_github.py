"""Workflows at GitHub run what the Makefile has, on the versions that we name."""

import re
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))


def test_jobs_run_targets_of_the_makefile_on_the_versions_that_we_name():
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for job in WORKFLOW["jobs"].values():
        runs = " ".join(step.get("run", "") for step in job["steps"])
        assert set(re.findall(r"\bmake ([\w-]+)", runs)) <= {*targets}
    include = WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["include"]
    versions = sorted(row["python"] for row in include)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"]))
    assert (versions[0], versions[-1]) == (named[0], named[-1])
    assert {row["os"].split("-")[0] for row in include} == {"ubuntu", "macos", "windows"}
    assert {row["dependencies"] for row in include} >= {"oldest", "newest"}


def test_hooks_run_what_make_lint_runs():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    assert [entry.split()[0] for entry in entries] == [
        f".venv/bin/{name}" for name in ("ruff", "ruff", "mypy")
    ]
