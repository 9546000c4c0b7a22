"""Measured through the command line against a small language model behind a real server.

A run that is killed, and a server that fails, leave the matrix of a run in which nothing happened.
"""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewbench.methods.tasks import Transferability
from fewbench.runners.questions import TEMPLATES
from fewbench.transfer.design import Design
from fewbench.transfer.sources import read_tasks

pytest.importorskip("openai", reason="models behind a server need the package openai")

TINY = Path(__file__).parents[1] / "runners" / "models"
SETTINGS = {"seeds": 2, "exemplars": 3, "questions": 3}
WORDS = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]


@contextmanager
def server(*words):
    """The tiny model's server, in a process of its own; its address."""
    program = [sys.executable, str(TINY / "tiny_server.py"), *map(str, words)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def counts(url):
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts", timeout=10) as reply:
        return {
            key: Counter(value) for key, value in json.load(reply).items() if key != "most_open"
        }


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """At least six small tasks as files."""
    sys.path.insert(0, str(TINY))
    try:
        from tiny_model import tiny_tasks
    finally:
        sys.path.remove(str(TINY))
    folder = tmp_path_factory.mktemp("tasks")
    for path in tiny_tasks(folder):
        if path.name.startswith("open_"):
            path.unlink()
    assert len(list(folder.glob("*.jsonl"))) >= 6
    return folder


@pytest.fixture(scope="module")
def made(tasks):
    return Design(tuple(read_tasks([str(tasks)])), TEMPLATES["mmlu"], **SETTINGS)


def program(tasks, url, folder, *words):
    start = [sys.executable, "-m", "fewbench", "transfer", "measure", str(tasks), "--model", "tiny"]
    return [*start, "--url", url, "-o", str(folder), *WORDS, *map(str, words)]


def measure(tasks, url, folder, *words):
    ran = subprocess.run(
        program(tasks, url, folder, "--json", *words), capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def journalled(folder):
    """What each whole line answers."""
    path = folder / "answers.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    told = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return Counter((t["seed"], t["source"], t["target"], t["question"]) for t in told)


@pytest.fixture(scope="module")
def clean(tasks, made, tmp_path_factory):
    """The matrix of a run in which nothing happened."""
    folder = tmp_path_factory.mktemp("clean") / "ict"
    with server() as url:
        said = measure(tasks, url, folder)
        asked = counts(url)["asked"]
    prompts = Counter(made.prompt(request) for request in made.requests())
    assert {prompt: asked[prompt] for prompt in prompts} == prompts
    assert said["complete"]
    assert said["answers"] == len(made)
    assert said["run"]["asked"] == len(made)
    matrix = Transferability.load(folder)
    assert matrix.values.shape == (2, len(made.tasks), len(made.tasks))
    assert np.isfinite(matrix.values).all()
    assert matrix.values.std() > 0
    assert matrix.about["model"] == "tiny"
    return matrix


def test_examples_of_the_same_task_help_most(clean):
    own = np.diagonal(clean.mean).mean()
    others = clean.mean[~np.eye(len(clean.tasks), dtype=bool)].mean()
    assert own > others


@pytest.mark.parametrize("metric", ["loss", "exact-match"])
def test_other_metrics(made, tmp_path, metric):
    """The right answers' losses, and what is written, differ with the exemplars before them."""
    from fewbench.runners.models.endpoint import Endpoint
    from fewbench.transfer.answers import transferability
    from fewbench.transfer.measuring import measure

    few = replace(made, metric=metric, seeds=1, questions=2)
    with server() as url:
        answers, _ = measure(tmp_path, few, Endpoint(url, "tiny", chat=True))
        prompts = Counter(few.prompt(request) for request in few.requests())
        asked = counts(url)["asked"]
    if metric == "exact-match":
        assert {prompt: asked[prompt] for prompt in prompts} == prompts
    values = transferability(answers).values
    assert np.isfinite(values).all()
    assert values.std() > 0
    assert (values < 0).all() if metric == "loss" else ((values >= 0) & (values <= 1)).all()


def test_killed_again_and_again_it_goes_on_and_asks_nothing_twice(tasks, made, clean, tmp_path):
    folder = tmp_path / "ict"
    prompts = {
        (r.seed, made.names[r.source], made.names[r.target], made.question(r).id): made.prompt(r)
        for r in made.requests()
    }
    kills = 0
    with server() as url:
        for part in (0.3, 0.7):
            before = journalled(folder)
            asked = counts(url)["asked"]
            process = subprocess.Popen(
                program(tasks, url, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            while sum(journalled(folder).values()) < part * len(made) and process.poll() is None:
                time.sleep(0.01)
            kills += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            again = counts(url)["asked"] - asked
            assert not any(again[prompts[key]] for key in before)
        torn = sum(journalled(folder).values())
        before, asked = journalled(folder), counts(url)["asked"]
        said = measure(tasks, url, folder)
        again = counts(url)["asked"] - asked
        assert not any(again[prompts[key]] for key in before)
        assert said["run"]["asked"] == len(made) - torn
        assert journalled(folder) == Counter(prompts.keys())
        np.testing.assert_array_equal(Transferability.load(folder).values, clean.values)
    assert kills == 2


def test_a_server_that_fails_leaves_the_same_matrix_even_if_killed(tasks, made, clean, tmp_path):
    """Every fifth request fails: 429, 500, no reply, a broken connection, malformed JSON."""
    folder = tmp_path / "ict"
    words = ("--timeout", 1.5, "--concurrency", 16)
    with server("--share", 0.2, "--seed", 4, "--hang", 2) as url:
        process = subprocess.Popen(
            program(tasks, url, folder, *words),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while sum(journalled(folder).values()) < len(made) / 3 and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert 0 < sum(journalled(folder).values()) < len(made)
        said = measure(tasks, url, folder, *words)
    assert said["run"]["retries"] > 0.1 * said["run"]["asked"]
    assert journalled(folder).most_common(1)[0][1] == 1
    np.testing.assert_array_equal(Transferability.load(folder).values, clean.values)


def test_the_example_in_the_page_works(tasks, made, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "transfer.md").read_text(encoding="utf-8")
    example = page.partition("## From Python")[2].split("```python\n")[1].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").symlink_to(tasks)
    with server() as url:
        for said, here in (("http://localhost:8000/v1", url), ("my-model", "tiny")):
            assert said in example
            example = example.replace(said, here)
        program = [sys.executable, "-c", example]
        ran = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[0] == str(len(made))
    assert np.isfinite(Transferability.load("ict").values).all()


def test_exact_match_on_a_server_of_chat_only(tasks, made, tmp_path):
    """Whose replies begin with a blank line."""
    settings = ("--metric", "exact-match")
    with server("--chat_only", "--before", "\n\n") as url:
        said = measure(tasks, url, tmp_path / "chat", *settings)
    with server() as url:
        plain = measure(tasks, url, tmp_path / "plain", *settings)
    assert said["complete"]
    assert not any("empty" in note for note in said["notes"])
    assert said["mean"] == plain["mean"] > 0
    values = [Transferability.load(tmp_path / name).values for name in ("chat", "plain")]
    np.testing.assert_array_equal(*values)
