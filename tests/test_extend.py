"""docs/extend.md: its package, installed into an empty folder, is equal to fewbench's own."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fewbench._plugins import Added, Registry
from fewbench.errors import FewbenchError, MethodError
from fewbench.methods import Answers, MethodSet, function_method, parts
from fewbench.methods.selection.random import Random
from fewbench.scores import save_scores
from fewbench.testing import simulate

PAGE = Path(__file__).parents[1] / "docs/extend.md"
BLOCK = re.compile(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def site(tmp_path_factory, install):
    """A folder with the page's package as an installer leaves it, and what its examples need."""
    folder = tmp_path_factory.mktemp("site")
    blocks = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    project = tomllib.loads(blocks.pop("pyproject.toml"))["project"]
    (folder / "acme").mkdir()
    for name, text in blocks.items():
        (folder / name).write_text(text)
    install(project, folder)
    (folder / "logs").mkdir()
    for at, model in enumerate("abc"):
        answers = [{"question": f"{n}?", "correct": (at + n) % 3 > 0} for n in range(9)]
        log = {"acme": 1, "model": model, "task": "sums", "answers": answers}
        (folder / "logs" / f"{model}.json").write_text(json.dumps(log))
    save_scores(simulate(24, 60, 2, seed=1), folder / "scores.parquet")
    return folder


def ran(site, *words):
    path = os.pathsep.join([str(site), os.environ["PYTHONPATH"]])
    env = {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, *words], cwd=site, env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


COMMANDS = {
    "--help": "easiest .*Name the easiest items",
    "methods": "hard-items +The items on which|hard-items",
    "methods hard-items": "source +the package acme-fewbench",
    "compare scores.parquet -m hard-items -n 10 --repeats 2 --no-cache": "hard-items",
    "select scores.parquet -m hard-items -n 5": "item-",
    "import logs -o read.parquet --metric correct --from acme-log": "3 models",
    "import logs -o found.parquet --metric correct": "3 models",
    "get list": "acme-board",
    "run --help": "acme +Run a model of Acme",
    "run acme scores.parquet -n 8 -m hard-items -o run -- small": "small scores",
    "estimate run": "hard-items",
    "easiest scores.parquet --most 2": "Easiest items|item-",
}

CALLS = """
import json, sys
from fewbench.cli import app
for words in json.loads(sys.argv[1]):
    print("\\0", flush=True)
    app(words.split(), standalone_mode=False)
"""


def test_a_package_of_yours_is_equal_to_our_own(site):
    program = (
        "import json, sys\nfrom fewbench.cli import app\nfor words in json.loads(sys.argv[1]):"
    )
    program += "\n  print('\\0', flush=True); app(words.split(), standalone_mode=False)"
    code, out = ran(site, "-c", program, json.dumps(list(COMMANDS)))
    shown = dict(zip(COMMANDS, out.split("\0")[1:], strict=False))
    assert {
        words: text for words, text in shown.items() if not re.search(COMMANDS[words], text)
    } == {}
    assert (code, len(shown)) == (0, len(COMMANDS)), out[-3000:]


def test_its_method_and_its_reader_keep_the_promises(site):
    code, out = ran(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", site, ".")
    assert code == 0, out[-4000:]


def test_an_entry_that_cannot_be_loaded_is_named(site):
    info = site / "acme_fewbench-1.0.dist-info" / "entry_points.txt"
    text = info.read_text()
    info.write_text(text.replace("acme.method:hard_items", "acme.nowhere:hard_items"))
    try:
        code, out = ran(site, "-m", "fewbench", "methods", "hard-items")
        own, _ = ran(site, "-m", "fewbench", "select", "scores.parquet", "-m", "random", "-n", "5")
    finally:
        info.write_text(text)
    assert code == 2
    assert "the package acme-fewbench adds 'hard-items'" in out
    assert own == 0  # our own methods need nobody's package


def test_a_name_that_is_taken_is_refused():
    entry = SimpleNamespace(dist=SimpleNamespace(name="acme"))
    registry = Registry({"random": 1}, lambda: [Added("random", 2, entry)])
    assert registry["random"] == 1
    with pytest.raises(FewbenchError, match="'random'"):
        registry["other"]


@pytest.mark.parametrize(
    ("choose", "predict"),
    [
        (lambda *_: [0, 0], lambda *_: [0.5]),
        (lambda *_: [0, 99], lambda *_: [0.5]),
        (lambda *_: [0.0, 1.0], lambda *_: [0.5]),
        (lambda *_: [0, 1], lambda *_: [0.5, 0.5]),
        (lambda *_: [0, 1], lambda *_: [1.01]),
        (lambda *_: [0, 1], lambda *_: [float("nan")]),
    ],
)
def test_functions_that_give_what_no_method_may_give_are_refused(choose, predict):
    def run(method):
        session = method.start(simulate(8, 20), 2, 0, ["a"])
        session.tell("a", Answers(session.ask()["a"], np.ones((1, 2))))
        session.predict(["a"])

    with pytest.raises(MethodError, match="gave"):
        run(function_method("odd", choose, predict))


def test_parts_of_no_stage_and_parts_with_our_names_are_refused(monkeypatch):
    with pytest.raises(MethodError, match="'selectors'"):
        MethodSet(parts={"selectors": {"mine": Random}})
    entry = SimpleNamespace(dist=SimpleNamespace(name="acme"))
    mine = Added("acme", MethodSet(parts={"selector": {"mean": Random}}), entry)
    monkeypatch.setattr(parts, "added", lambda group: (mine,))
    with pytest.raises(FewbenchError, match="'mean'"):
        list(parts.added_parts("selector"))


OURS = """
import fewbench.cli, fewbench.readers
from fewbench import _plugins, find_method
from fewbench.public import is_source
find_method("fewbench"), find_method("random+mean").describe(), find_method("greedy-ridge")
assert _plugins.added.cache_info().misses == 0
"""


def test_our_own_names_load_no_package():
    assert subprocess.run([sys.executable, "-c", OURS], check=False).returncode == 0
