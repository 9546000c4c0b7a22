"""Measured through the command line and lm-eval, with a small language model behind a server.

A run that is killed, and a server that fails, leave the matrix of a run in which nothing happened.
Only what is killed is a process of its own: each imports lm-eval anew.
"""

import io
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from fewbench.cli import main
from fewbench_papers.bento import Transferability
from fewbench_papers.bento.measurement.design import Design
from fewbench_papers.bento.measurement.sources import read_tasks
from fewbench_papers.bento.measurement.templates import TEMPLATES

pytest.importorskip("lm_eval")
pytestmark = pytest.mark.filterwarnings("ignore")  # what lm-eval and its data sets warn of

HERE = Path(__file__).parent
SETTINGS = {"seeds": 2, "exemplars": 3, "questions": 3}
WORDS = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]


@contextmanager
def server(*words):
    """The tiny model's server, in a process of its own; its address."""
    program = [sys.executable, str(HERE / "tiny_server.py"), *map(str, words)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def counts(url):
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts", timeout=10) as reply:
        return Counter(json.load(reply))


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Four small tasks as files, two by two about the same things."""
    from tiny_model import tiny_tasks

    folder = tmp_path_factory.mktemp("tasks")
    tiny_tasks(folder)
    return folder


@pytest.fixture(scope="module")
def made(tasks):
    return Design(tuple(read_tasks([str(tasks)])), TEMPLATES["mmlu"], **SETTINGS)


@pytest.fixture(scope="module")
def prompts(made):
    """What each request asks: its prompt with each of the letters."""
    return {
        (r.seed, made.names[r.source], made.names[r.target], made.question(r).id): [
            made.prompt(r) + end for end in made.template.continuations(made.question(r))
        ]
        for r in made.requests()
    }


def program(tasks, url, folder, *words, kind="local-completions", retries=6):
    path = "chat/completions" if "chat" in kind else "completions"
    args = f"model=tiny,base_url={url}/{path},num_concurrent=4,max_retries={retries}"
    start = [sys.executable, "-m", "fewbench", "transfer", "measure", str(tasks), "--model", kind]
    given = [*start, "--model_args", args, "-o", str(folder), *WORDS, "--batch", "8"]
    return [*given, *map(str, words)]


def run(tasks, url, folder, *words, **more):
    """Run the command in this process; its exit code, output and errors."""
    command = program(tasks, url, folder, "--json", *words, **more)
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.argv", command[2:])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code or 0, out.getvalue(), err.getvalue()


def measure(*given, **more):
    code, out, err = run(*given, **more)
    assert code == 0, err
    return json.loads(out)


def journalled(folder):
    """What each whole line answers."""
    path = folder / "answers.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    told = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return Counter((t["seed"], t["source"], t["target"], t["question"]) for t in told)


def killed(command, folder, n_answers):
    """Start a command, and kill it as soon as the folder has so many answers."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while journalled(folder).total() < n_answers and process.poll() is None:
            time.sleep(0.01)
        was_killed = process.poll() is None
        process.send_signal(signal.SIGKILL)
    return was_killed


@pytest.fixture(scope="module")
def clean(tasks, made, prompts, tmp_path_factory):
    """The matrix of a run in which nothing happened."""
    folder = tmp_path_factory.mktemp("clean") / "ict"
    with server() as url:
        said = measure(tasks, url, folder)
        asked = counts(url)
    assert asked == Counter(text for texts in prompts.values() for text in texts)
    assert said["complete"]
    assert said["answers"] == said["run"]["asked"] == len(made)
    assert said["run"]["estimated"] == 0
    matrix = Transferability.load(folder)
    assert matrix.values.shape == (2, len(made.tasks), len(made.tasks))
    assert np.isfinite(matrix.values).all()
    assert matrix.values.std() > 0
    assert matrix.about["model"] == "tiny"
    assert matrix.about["lm-eval model"] == "local-completions"
    return matrix


def test_answers_are_those_of_the_model_itself(clean, made):
    from tiny_model import TinyModel

    model = TinyModel()
    right = Counter()
    for r in made.requests():
        row = model.next(model.tokens(made.prompt(r)))
        question = made.question(r)
        ends = made.template.continuations(question)
        best = max(range(len(ends)), key=lambda at: row[model.ids[ends[at]]])
        right[r.seed, r.source, r.target] += best == question.answer
    values = np.array([right[at] for at in np.ndindex(clean.values.shape)]) / 3
    np.testing.assert_allclose(clean.values, values.reshape(clean.values.shape))


def test_killed_again_and_again_it_goes_on_and_asks_nothing_twice(
    tasks, made, prompts, clean, tmp_path
):
    folder, kills = tmp_path / "ict", 0
    with server() as url:
        for part in (0.3, 0.7, None):
            before, asked = journalled(folder), counts(url)
            if part is None:
                said = measure(tasks, url, folder)
            else:
                kills += killed(program(tasks, url, folder), folder, part * len(made))
            again = counts(url) - asked
            assert not any(again[text] for key in before for text in prompts[key])
        assert counts(url).total() <= 4 * (len(made) + 2 * 8)  # two batches in flight
    assert said["run"]["asked"] == len(made) - before.total()
    assert journalled(folder) == Counter(prompts.keys())
    np.testing.assert_array_equal(Transferability.load(folder).values, clean.values)
    assert kills == 2


def test_a_server_that_fails_leaves_the_same_matrix_even_if_killed(tasks, made, clean, tmp_path):
    """Every tenth request fails: 429, 500, a broken connection, no JSON, no log-probabilities."""
    folder = tmp_path / "ict"
    words = ("--columns", "home,young", "--use_cache", tmp_path / "cache")
    with server("--share", 0.1, "--seed", 4) as url:
        killed(program(tasks, url, folder, *words), folder, 8)
        assert 0 < journalled(folder).total() < len(made) / 2
        said = measure(tasks, url, folder, *words)
    assert said["complete"]
    assert journalled(folder).most_common(1)[0][1] == 1
    matrix = Transferability.load(folder)
    columns = [clean.targets.index(name) for name in matrix.targets]
    np.testing.assert_array_equal(matrix.values, clean.values[:, :, columns])


def test_exact_match_on_a_server_of_chat_only(tasks, tmp_path):
    """Whose replies begin with a blank line."""
    settings = ("--metric", "exact-match", "--seeds", 1)
    chat = {"kind": "local-chat-completions"}
    with server("--chat_only", "--before", "\n\n") as url:
        said = measure(tasks, url, tmp_path / "chat", *settings, **chat)
        code, _, err = run(tasks, url, tmp_path / "letters", **chat)
        assert code == 2
        assert "the model gives no log-probabilities" in err
        assert "use --metric exact-match" in err
    assert said["complete"]
    assert not any("empty" in note for note in said["notes"])
    assert said["mean"] > 0


def test_the_example_in_the_page_works(tasks, made, tmp_path, monkeypatch, capsys):
    page = (HERE.parents[3] / "docs" / "tasks.md").read_text(encoding="utf-8")
    example = page.partition("## In Python")[2].split("```python\n")[1].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks").symlink_to(tasks)
    with server() as url:
        for said, here in (("http://localhost:8000/v1", url), ("my-model", "tiny")):
            assert said in example
            example = example.replace(said, here)
        exec(example, {})
    assert capsys.readouterr().out.split()[0] == str(len(made))
    assert np.isfinite(Transferability.load("ict").values).all()
