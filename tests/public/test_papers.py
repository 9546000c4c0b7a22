"""benchmarks/reproduce.py --get: tables of papers from public results, on local sites."""

from pathlib import Path

import numpy as np
import pytest
from published import parquet

import fewbench

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
N_MODELS, N_ITEMS = 16, 120


@pytest.fixture
def reproduce(monkeypatch, site, capsys):
    """Run the script; return the lines that it prints."""
    if not (BENCHMARKS / "papers").is_dir():
        pytest.skip("the benchmarks are not beside the tests")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import reproduce

    def run(*words):
        monkeypatch.setattr("sys.argv", ["reproduce.py", "tables", *words, "-o", "out"])
        reproduce.main()
        return capsys.readouterr().out.splitlines()

    return run


def publish_winogrande(site):
    """Details of models of growing ability, as the leaderboard keeps them."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=N_ITEMS)
    for m in range(N_MODELS):
        margin = rng.normal(m / 8 - difficulty, 1.0)
        rows = [
            {"example": f"Question {n}", "full_prompt": f"Question {n}", "choices": ["a", "b"]}
            | {"gold_index": [n % 2], "predictions": [float(x), 0.0][:: 1 if n % 2 == 0 else -1]}
            | {"gold": ["ab"[n % 2]], "metrics": {"acc": float(x > 0), "acc_norm": float(x > 0)}}
            for n, x in enumerate(margin)
        ]
        time = f"2023-{m % 12 + 1:02}-03T17-58-31.{m:06}"
        name = f"{time}/details_harness|winogrande|5_{time}.parquet"
        site.hub[f"open-llm-leaderboard-old/details_lab__m{m}"] = {name: parquet(rows)}


@pytest.mark.slow
def test_a_paper_s_table_is_fetched_run_and_resumed(site, reproduce):
    publish_winogrande(site)
    words = ("--paper", "disco", "--workers", "1")
    listed = reproduce(*words, "--dry-run")
    assert not site.paths("/resolve/")  # nothing but listings
    assert any(
        line.startswith("winogrande.parquet: open-llm-leaderboard-v1: 16") for line in listed
    )
    assert not Path("tables").exists()
    words += ("--get", "--only", "Table 1", "--cache", "cells")
    lines = reproduce(*words)
    assert "disco: DISCO's Table 1: Winogrande" in lines
    # What could not be fetched or run is said in a line each, and stops nothing.
    unfetched = [line for line in lines if "not fetched: " in line]
    assert [line.split(":")[0] for line in unfetched] == ["mmlu.parquet", "hellaswag.parquet"]
    unrun = [line for line in lines if ": not run: " in line]
    assert [line.split(": ")[3] for line in unrun] == ["MMLU", "HellaSwag", "ARC"]
    scores = fewbench.load_scores("tables/winogrande.parquet")
    assert scores.values.shape == (N_MODELS, N_ITEMS)
    assert scores.probabilities is not None
    assert "date" in scores.models
    page = Path("out/disco.md").read_text(encoding="utf-8")
    assert "| `disco-pds-rf` | paper | 1.00 |\n|  | fewbench | " in page
    assert "fewbench compare FOLDER/winogrande.parquet -m 'random,gp-irt-random," in page
    before = site.paths("/resolve/")
    again = reproduce(*words)
    assert [line for line in again if ".parquet:" not in line] == lines[-4:]
    assert site.paths("/resolve/") == before  # fetched once
    assert Path("out/disco.md").read_text(encoding="utf-8") == page


def test_the_authors_table_takes_the_place_of_the_one_at_hand(site, reproduce):
    lines = reproduce("--paper", "tailoredbench", "--get", "--only", "at 30 items")
    assert lines[0].startswith("gsm8k_150.npz: tailoredbench: 2 files")
    roles = fewbench.load_scores("tables/gsm8k_150.parquet").models["role"]
    assert roles.tolist() == ["source", "source", "target"]
    assert all("not run" in line and "items" in line for line in lines[1:])  # of 6 items
