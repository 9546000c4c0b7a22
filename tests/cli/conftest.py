"""The command line in process, and a scores file to use it on."""

import csv
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fewbench.cli import main
from fewbench.scores import save_scores
from fewbench.testing import simulate

sys.path.insert(0, str(Path(__file__).parent))


@dataclass
class Said:
    code: int
    out: str
    err: str
    kind: str | None
    """Of the error that ended the command."""


@pytest.fixture(autouse=True)
def _inside_tmp_path(monkeypatch, tmp_path):
    """Nothing is written to the home folder or the checkout."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # other workers would import all anew
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cli(monkeypatch, capsys):
    """Run `fewbench WORD…` and return exit code, stdout and stderr."""
    from named_options import check_options

    def run(*words: object) -> Said:
        monkeypatch.setattr("sys.argv", ["fewbench", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        said = capsys.readouterr()
        check_options(words, said.err)
        kind = getattr(exit_.value.__context__, "kind", None)
        return Said(exit_.value.code or 0, said.out, said.err, kind)

    return run


@pytest.fixture
def ok(cli):
    """Run a command that must work, and return its stdout."""

    def run(*words: object) -> str:
        said = cli(*words)
        assert said.code == 0, said.err
        return said.out

    return run


TABLE = simulate(20, 40, seed=2)


@pytest.fixture(scope="session")
def table():
    return TABLE


@pytest.fixture(scope="session")
def scores(tmp_path_factory) -> Path:
    return save_scores(TABLE, tmp_path_factory.mktemp("scores") / "scores.parquet")


@pytest.fixture(scope="session")
def placed(tmp_path_factory) -> Path:
    """Scores that know where their items stand in lm-eval and Inspect."""
    items = TABLE.items.assign(
        doc_id=[1000 + at for at in range(40)], sample_id=[f"s{at}" for at in range(40)]
    )
    path = tmp_path_factory.mktemp("placed") / "placed.parquet"
    return save_scores(replace(TABLE, items=items), path)


@pytest.fixture(scope="session")
def long_csv(tmp_path_factory) -> Path:
    """The table as a long CSV, scores from 0 to 100."""
    path = tmp_path_factory.mktemp("csv") / "results.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["llm", "id", "points", "subject", "released", "lab"])
        for m, model in enumerate(TABLE.model_ids):
            for i, item in enumerate(TABLE.item_ids):
                points, subject = 100 * TABLE.values[m, i], TABLE.items["task"].iloc[i]
                rows.writerow([model, item, points, subject, *TABLE.models.iloc[m]])
    return path


@pytest.fixture
def answers(tmp_path):
    """Write a CSV of answers: item → score, or rows of (model, item, score)."""

    def write(given, name="answers.csv") -> Path:
        rows = [["", *pair] for pair in given.items()] if isinstance(given, dict) else given
        path = tmp_path / name
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([["llm", "id", "points"], *rows])
        return path

    return write


@pytest.fixture
def asked(ok):
    """Return the items that each target is asked for, by --json."""
    return lambda folder="run": json.loads(ok("ask", folder, "--json"))
