"""The core works without the packages beside it: none is found, and none can be imported."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = (
    "readers/test_tables.py",
    "checks/test_items.py",
    "methods/test_aipw.py",
    "evaluation/test_from_nothing.py",
    "decide/test_two_questions.py",
    "runners/test_runners.py",
)
"""Files that pass through each package of the core."""


def test_the_core_passes_its_tests_alone(tmp_path):
    for name in ("fewbench_papers", "fewbench_logs"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not on this path')\n")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    env = {**os.environ, "PYTHONPATH": path, "FEWBENCH_ALONE": "1"}
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
    done = subprocess.run(
        [sys.executable, *words, *(f"tests/{name}" for name in TESTS)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
