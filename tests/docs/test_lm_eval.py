"""The commands for language models, run in order: README's, and those of the page on lm-eval.

Words that a reader fills in are filled in with a tiny model, or lm-eval's `dummy` where torch or
transformers are missing, and with tasks made by `scripts/make_runs.py`: a group, few-shot.
"""

import functools
import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from fewbench.cli import main
from fewbench.evaluation import Evaluation

pytestmark = pytest.mark.filterwarnings("default")  # those of the libraries
ROOT = Path(__file__).parents[2]
OFFLINE = {
    "-n 200": "-n 12",
    "-n 50": "-n 10",
    "mmlu,gsm8k": "made_choice,made_sums",
    "task.py --model openai/gpt-4o": "task.py --model mockllm/model",
    "python my_model.py": f"{sys.executable} my_model.py",
    "toy_sums": "made_choice,made_sums",
}
TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import solver


@solver
def answer():  # mockllm counts tokens by a file from the network
    async def solve(state, generate):
        state.output.completion = "yes"
        return state

    return solve


@task
def quiz():
    samples = [Sample(id=f"q{at}", input=f"{at}?", target="yes") for at in range(20)]
    return Task(dataset=MemoryDataset(samples), solver=answer(), scorer=includes())
"""
PROGRAM = """
import json, sys

for line in sys.stdin:
    print(json.dumps({"item": json.loads(line)["item"], "score": 1}), flush=True)
"""


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["hf", "dummy"])
def model(request, tmp_path, monkeypatch):
    """Arguments of a model; tasks and logs of source models are in the folder."""
    pytest.importorskip("lm_eval", reason="needs the extra lm-eval")
    from lm_eval.tasks import TaskManager

    alone = functools.partialmethod(TaskManager.__init__, include_defaults=False)
    monkeypatch.setattr(TaskManager, "__init__", alone)  # lm-eval's own take seconds to list
    monkeypatch.chdir(tmp_path)
    script("make_runs").run_lm_eval(tmp_path, ["made/a", "made/b"], 15)
    if request.param == "dummy":
        return "--model dummy"
    for library in ("torch", "transformers"):
        pytest.importorskip(library, reason="--model hf needs torch and transformers")
    script("make_tiny_lm").make_tiny_lm(tmp_path / "tiny")
    return "--model hf --model_args pretrained=tiny"


def commands(text, model):
    """Return the commands of a page's part, filled in."""
    text = re.sub(r"--model hf\s+(\\\s+)?--model_args pretrained=(X|ORG/NAME)", model, text)
    for word, offline in OFFLINE.items():
        text = text.replace(word, offline)
    blocks = re.findall(r"```(\w*)\n(.*?)```", text, re.S)
    shell = "".join(block for language, block in blocks if not language)
    lines = shell.replace("\\\n", " ").splitlines()
    for line in lines:
        if line.startswith(("fewbench run lm-eval", "lm_eval")):
            line = line.replace(model, f"{model} --include_path tasks")
        yield line.strip()


def call(line, monkeypatch, capsys):
    """Run a command in this process, and return what it prints."""
    line, _, file = line.partition(" > ")
    program, *words = shlex.split(line)
    monkeypatch.setattr(sys, "argv", [program, *words])
    if program == "lm_eval":
        from lm_eval.__main__ import cli_evaluate

        cli_evaluate()
    else:
        with pytest.raises(SystemExit) as ended:
            main()
    printed = capsys.readouterr()
    assert program == "lm_eval" or not ended.value.code, f"{line}\n{printed.out}{printed.err}"
    if file:
        Path(file).write_text(printed.out)
    return printed.out


def test_the_block_of_the_readme(model, tmp_path, monkeypatch, capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text.split("## Your own model")[1].split("## ")[0]
    Path("task.py").write_text(TASK)
    Path("my_model.py").write_text(PROGRAM)
    Path("items.csv").write_text("\n".join(["id", *(f"i{at}" for at in range(30))]))
    run = []
    for at, line in enumerate(commands(part, model)):
        if "run endpoint" in line:  # needs a server: tests/runners/test_endpoint.py
            continue
        has_inspect = importlib.util.find_spec("inspect_ai") is not None
        if "run inspect" in line and not has_inspect:
            continue
        said = call(line.replace("-o run", f"-o run-{at}"), monkeypatch, capsys)
        assert re.search(r"Estimated from 12 of \d+ items", said)
        run.append(line.split()[2])
    assert run[0] == "lm-eval"
    assert run[-1] == "command"


def test_the_page_on_lm_eval(model, tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs/how-to/lm-eval.md").read_text(encoding="utf-8")
    said = {}
    for line in commands(text, model):
        said[" ".join(line.split()[:3])] = call(line, monkeypatch, capsys)
    assert "fewbench run lm-eval" in said
    assert "Estimated from 4 of " in said["fewbench estimate by-hand"]
    for folder, n in (("run", 12), ("chosen", 10)):
        evaluation = Evaluation.open(Path(folder))
        (target,) = evaluation.targets
        assert len(evaluation.record.answered(target)) == n
        assert bool(evaluation.scores.n_models) == (folder == "chosen")
    (results,) = Path("run/lm_eval").rglob("results_*.json")
    assert "made_choice" in json.loads(results.read_text())["groups"]
