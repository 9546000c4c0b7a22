"""Repeated runs and clusters of items on the command line."""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fewbench import load_scores, save_scores
from fewbench.testing import simulate

RUNS = Path(__file__).parents[3] / "shared" / "data" / "terminal_bench_runs.npz"
COLUMNS = ("--model", "model", "--item", "item", "--score", "score")


def write_runs(path: Path) -> pd.DataFrame:
    """Write a table of three answers of two models to each of 20 items on 5 passages."""
    rng = np.random.default_rng(0)
    cells = itertools.product("ab", range(20), range(3))
    table = pd.DataFrame(cells, columns=["model", "item", "trial"])
    table = table.assign(passage=table["item"] // 4, score=rng.integers(0, 2, len(table)))
    table.to_csv(path, index=False)
    return table


def test_a_table_of_runs_is_imported_when_asked(cli, ok):
    table = write_runs(Path("runs.csv"))
    refused = cli("import", "runs.csv", *COLUMNS, "-o", "s.parquet")
    assert refused.code == 2
    assert "80 rows" in refused.err
    assert "--trials mean" in refused.err
    ok("import", "runs.csv", *COLUMNS, "--trials", "mean", "--by", "passage", "-o", "s.parquet")
    scores = load_scores("s.parquet")
    expected = table.groupby(["model", "item"])["score"].mean().unstack()
    np.testing.assert_allclose(scores.values, expected.to_numpy())
    assert scores.repeats is not None
    assert len(set(scores.cluster_of.tolist())) == 5
    found = json.loads(ok("versus", "a", "b", "--scores", "s.parquet", "--json"))
    assert found["repeats"]["answers_per_item"] == 3
    wide = cli("import", "s.parquet", "--trials", "mean", "-o", "t.parquet")
    assert "--trials" in wide.err


def test_second_answers_are_told_by_number(cli, ok):
    save_scores(simulate(20, 30, seed=1), "s.parquet")
    ok("start", "s.parquet", "-m", "random", "-n", 5, "-o", "run", "-t", "new")
    asked = json.loads(ok("ask", "run", "--json"))["new"]
    for name, score in (("first", 1), ("second", 0)):
        pd.DataFrame({"id": asked, "score": score}).to_csv(f"{name}.csv", index=False)
    ok("tell", "run", "first.csv")
    assert "--repeat 2" in cli("tell", "run", "second.csv").err
    assert "recorded 5 answers" in ok("tell", "run", "second.csv", "--repeat", 2)
    found = json.loads(ok("estimate", "run", "--json"))["new"]
    assert found["answers_mean"] == 0.5
    assert found["repeats"]["answers_per_item"] == 2


@pytest.mark.skipif(not RUNS.exists(), reason="needs the runs of Terminal-Bench in ../shared/data")
def test_five_runs_of_each_agent(ok):
    with np.load(RUNS) as file:
        runs = {name: file[name] for name in file.files}
    rows = [
        (agent, item, score)
        for agent, scores in zip(runs["families"], runs["scores"], strict=True)
        for item, score in zip(runs["items"], scores, strict=True)
    ]
    pd.DataFrame(rows, columns=["model", "item", "score"]).to_csv("runs.csv", index=False)
    ok("import", "runs.csv", *COLUMNS, "--trials", "mean", "-o", "mean.parquet")
    ok("import", "runs.csv", *COLUMNS, "--trials", "pass@3", "-o", "pass.parquet")
    mean, either = load_scores("mean.parquet"), load_scores("pass.parquet")
    assert mean.n_models == 13
    np.testing.assert_allclose(
        mean.full_scores(),
        [runs["scores"][runs["families"] == name].mean() for name in mean.models.index],
    )
    assert (either.full_scores() > mean.full_scores()).all()
    assert "after all items ran, 4 runs" in " ".join(
        ok("plan", "mean.parquet", "-n", 20, "--details").split()
    )
