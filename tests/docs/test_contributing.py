"""CONTRIBUTING's map of the code, and its ways through it, are as the code is."""

import inspect
import re
import sys
from pathlib import Path

import pytest

import fewbench
from fewbench.scores import save_scores
from fewbench.testing import simulate

PACKAGE = Path(fewbench.__file__).parent
TEXT = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
TABLE = simulate(24, 60, 2, seed=1)
SOURCES, NEW = TABLE.take(models=range(22)), TABLE.take(models=[22, 23])
A, B = NEW.model_ids
ANSWERS = NEW.to_frame()


def entries_of_map(package):
    block = re.search(rf"^src/{package}/\n(.*?)(?:\n\n|```)", TEXT, re.DOTALL | re.MULTILINE)[1]
    parts = re.split(r"^  (\w+)/ ", block + "\n", flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", ["fewbench", "fewbench_papers", "fewbench_logs"])
def test_the_map_names_each_package_and_files_that_exist(name):
    every, top = entries_of_map(name), PACKAGE.with_name(name)
    assert set(every) == {path.parent.name for path in top.glob("*/__init__.py")}
    for package, text in every.items():
        for file in re.findall(r"[\w/]+\.(?:py|js|css|md|csv)\b", text):
            there = any((place / file).exists() for place in (top, PACKAGE.parents[1]))
            assert there or list((top / package).rglob(file)), file
        for folder in re.findall(r"(?<![\w/])(\w+)/", text):
            where = (top / package / folder, PACKAGE.parents[1] / folder)
            assert any(path.is_dir() for path in where), folder


@pytest.fixture
def evaluation():
    """Two targets that answered their items."""
    made = fewbench.Evaluation(SOURCES, "greedy-ridge", 12, [A, B])
    for name in (A, B):
        made.tell(name, ANSWERS.loc[name][made.ask()[name]].to_dict())
    return made


@pytest.fixture
def calls(tmp_path, evaluation):
    """A call of each way."""
    path, folder = tmp_path / "scores.parquet", tmp_path / "saved"
    save_scores(SOURCES, path)
    told = fewbench.Evaluation(SOURCES, "random", 6)
    told.save(folder)
    return {
        "fewbench.load_scores": lambda: fewbench.load_scores(path),
        "fewbench.select_items": lambda: fewbench.select_items(SOURCES, "greedy-ridge", budget=6),
        "Evaluation.tell": lambda: told.tell("target", dict.fromkeys(told.ask()["target"], 1.0)),
        "Evaluation.estimate": lambda: evaluation.estimate(warn=False),
        "fewbench.run": lambda: fewbench.run(SOURCES, "random", 6, ANSWERS.loc[A].get),
        "fewbench.versus": lambda: fewbench.versus((evaluation, A), B, warn=False),
        "fewbench.rank": lambda: fewbench.rank(evaluation),
        "fewbench.compare": lambda: fewbench.compare(
            SOURCES, ["random-ridge"], [5], repeats=2, level=None
        ),
    }


def passed(call):
    """The files of the package whose functions a call enters."""
    files = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED:  # no import
            files.add(code.co_filename)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {Path(name).relative_to(PACKAGE).as_posix() for name in files if str(PACKAGE) in name}


@pytest.mark.filterwarnings("ignore::fewbench.errors.EstimateWarning")
def test_each_way_passes_the_files_that_are_listed(calls):
    ways = dict(re.findall(r"^\| `(\w+\.\w+)` \| (.*) \|$", TEXT, re.MULTILINE))
    assert ways.keys() == calls.keys()
    missing = {
        name: set(re.findall("`(.*?)`", files)) - passed(calls[name])
        for name, files in ways.items()
    }
    assert not any(missing.values()), missing
