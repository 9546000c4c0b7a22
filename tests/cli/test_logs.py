"""Logs of a harness through the command line: imported, stopped, told."""

import csv
import json
import sys

import numpy as np
import pytest

from fewbench._files import only_process
from fewbench.public import load_scores

RIGHT = "import sys\nfor line in sys.stdin: print(line[:-2] + ', \"score\": 1}', flush=True)"
PROGRAM = ("--", sys.executable, "-S", "-c", RIGHT)
STAMP = "2026-01-01T10-00-00"


def write(folder, model, scores, positions=None, filters=("strict", "flexible")):
    """A run of lm-eval of one generation task; its second filter says the opposite."""
    own = folder / model.replace("/", "__")
    own.mkdir(parents=True)
    rows = [
        {
            "doc_id": at,
            "doc": {"question": f"q{at}"},
            "target": "1",
            "filter": name,
            "metrics": ["exact_match"],
            "doc_hash": f"{at:016x}",
            "exact_match": value,
        }
        for flip, name in enumerate(filters)
        for at in (range(len(scores)) if positions is None else positions)
        for value in [float(scores[at] != flip)]
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (own / f"samples_sums_{STAMP}.jsonl").write_text(text)
    counts = {"original": len(scores), "effective": len(rows) // len(filters)}
    results = {"model_name": model, "n-samples": {"sums": counts}}
    (own / f"results_{STAMP}.json").write_text(json.dumps(results))
    return own


@pytest.fixture
def logs(tmp_path):
    """Twelve models' runs, and a folder for more."""
    rng = np.random.default_rng(0)
    for at in range(12):
        write(tmp_path / "logs", f"org/m{at}", rng.random(40) < 0.3 + at / 25)
    return tmp_path


def test_names_are_no_formulas_in_a_spreadsheet(ok, tmp_path):
    names = ["=", "+", "-", "@", "'=", "=1+1", "plain"]
    for at, name in enumerate(names):
        results = write(tmp_path / "logs", f"m{at}", [1, 0, 1]) / f"results_{STAMP}.json"
        results.write_text(results.read_text().replace(f'"m{at}"', json.dumps(name)))
    ok("import", "logs", "-o", "s.parquet", "--filter", "strict")
    assert load_scores("s.parquet").model_ids == names
    with (tmp_path / "s.files.csv").open(newline="") as file:
        cells = [row["model"] for row in csv.DictReader(file) if row["filter"] == "strict"]
    assert cells == ["'=", "'+", "'-", "'@", "''=", "'=1+1", "plain"]
    assert [cell.removeprefix("'") for cell in cells] == names


def test_import_resumes_and_tidies_up(cli, logs, monkeypatch):
    wrong = ("import", "logs", "-o", "s.parquet", "--filter", "loose")
    assert cli(*wrong).code == 2
    assert not (logs / "s.partial").exists()  # reading again takes no time
    monkeypatch.setattr("fewbench.cli.import_.LONG", 0.0)
    refused = cli(*wrong)
    assert refused.code == 2
    assert "s.partial: intermediate results" in refused.err
    assert len(list((logs / "s.partial").glob("*.part"))) == 12
    done = cli("import", "logs", "-o", "s.parquet", "--filter", "strict")
    assert done.code == 0
    assert "12 models × 40 items, 1 task" in done.out
    assert not (logs / "s.partial").exists()
    with (logs / "s.files.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert {(row["filter"], row["taken"]) for row in rows} == {("strict", "40"), ("flexible", "0")}
    assert "12 files" in done.err


def test_two_imports_into_one_file(cli, logs):
    (logs / "s.partial").mkdir()
    with only_process(logs / "s.partial" / "lock", "busy"):
        said = cli("import", "logs", "-o", "s.parquet", "--filter", "strict")
    assert said.code == 2
    assert "another import into s.parquet is running" in said.err


def test_an_output_that_is_a_folder(cli, logs):
    (logs / "s.parquet").mkdir()
    assert "s.parquet is a folder" in cli("import", "logs", "-o", "s.parquet").err
    assert not (logs / "s.partial").exists()


def test_a_folder_of_logs_where_scores_are_wanted(cli, logs):
    said = cli("start", "logs", "-m", "random", "-n", "5", "-o", "run")
    assert (said.code, "random on 12 source models × 40 items" in said.out) == (0, True)
    assert "filter 'strict' of 1 task: 'sums'; there is also 'flexible', see --filter" in said.err


class TestTell:
    @pytest.fixture(params=["scores", "pack"])
    def run(self, ok, logs, request):
        ok("import", "logs", "-o", "s.parquet", "--filter", "strict")
        if request.param == "pack":
            ok("pack", "s.parquet", "-m", "random", "-n", "10", "-o", "s.few", "--no-backtest")
            ok("start", "s.few", "-o", "run")
        else:
            ok("start", "s.parquet", "-m", "random", "-n", "10", "-o", "run")
        items = load_scores("s.parquet").items
        assert set(items["harness"]) == {"lm-eval"}
        ids = json.loads(ok("ask", "run", "--json"))["target"]
        return sorted(items.loc[ids, "doc_id"])

    def test_the_metric_and_filter_are_the_sources(self, ok, cli, run, logs):
        write(logs / "new", "org/new", np.ones(40, bool), run)
        said = cli("tell", "run", "new")
        assert said.code == 0
        assert "recorded 10 answers" in said.out
        assert "warning" not in said.err
        assert json.loads(ok("estimate", "run", "--json"))["target"]["score"] > 0.5

    def test_another_filter_is_warned_of(self, cli, run, logs):
        write(logs / "new", "org/new", np.ones(40, bool), run)
        said = cli("tell", "run", "new", "--filter", "flexible")
        assert "warning: 'sums': the answers have the filter 'flexible', the source models" in (
            said.err
        )

    def test_one_of_several_models(self, cli, run, logs):
        for model in ("org/new", "org/newer"):
            write(logs / "new", model, np.ones(40, bool), run)
        assert "--model" in cli("tell", "run", "new").err
        assert "recorded 10 answers" in cli("tell", "run", "new", "--model", "org/newer").out


def test_notes_on_a_folder_of_logs_are_said_once_and_kept(cli, ok, tmp_path):
    for at in range(12):
        write(tmp_path / "logs", f"m{at}", np.arange(40) % 3 < at % 3, filters=["strict"])
    note = "metric 'exact_match', filter 'strict'"
    assert note in cli("start", "logs", "-m", "random", "-n", 5, "-o", "a").err
    for command in (["ask", "a"], ["estimate", "a"]):
        assert note not in cli(*command).err
    assert note in cli("ask", "a", "--scores", "logs").err
    run = ["run", "command", "logs", "-m", "random", "-n", 5, "-o", "b", *PROGRAM]
    assert [note in cli(*run).err for _ in range(2)] == [True, False]
    assert note in str(json.loads((tmp_path / "b" / "result.json").read_text())["notes"])
