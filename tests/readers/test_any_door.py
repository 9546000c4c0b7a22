"""The same answers through every door: lm-eval logs, Inspect logs, a long table.

The logs were written by the harnesses themselves (scripts/fixtures), which played the answers of
toy.json; the table is written here.
"""

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fewbench.readers import Columns, read

FIXTURES = Path(__file__).parent / "fixtures"
TOY = json.loads((FIXTURES / "lm_eval" / "toy.json").read_text("utf-8"))
RERUN = "2026-11-21T03-53-55.866114"  # of lm-eval only, with another answer


@pytest.fixture
def from_lm_eval():
    files = (FIXTURES / "lm_eval" / "0.4.13" / "out").rglob("samples_*")
    once = [path for path in sorted(files) if RERUN not in path.name]
    return read(
        once, metric="acc,exact_match", filter="none,flexible-extract", key="question"
    ).scores


@pytest.fixture
def from_inspect():
    pytest.importorskip("inspect_ai")
    return read(FIXTURES / "inspect" / "full", metric="choice,match", key="input").scores


@pytest.fixture
def from_a_table(tmp_path):
    rows = []
    for model, answers in TOY["answers"].items():
        for task, items in TOY["tasks"].items():
            met = {}
            for item, answer in zip(items, answers[task], strict=True):
                question = item["question"]
                met[question] = met.get(question, 0) + 1
                again = f"#{met[question]}" if met[question] > 1 else ""
                right = item["gold"] if task == "toy_capitals" else item["answer"]
                rows.append((model, f"{task}/{question}{again}", task, int(answer == right)))
    table = tmp_path / "answers.csv"
    pd.DataFrame(rows, columns=["model", "item", "task", "score"]).to_csv(table, index=False)
    return read(table, columns=Columns("model", "item", "score", task="task")).scores


def bare(scores):
    """Without what only one door knows: where the harness keeps an item, and probabilities."""
    return replace(scores, items=scores.items[["task"]], probabilities=None)


def test_the_table_is_what_the_models_answered(from_a_table):
    assert from_a_table.values.shape == (2, 18)
    assert 0.2 < from_a_table.values.mean() < 0.8


def test_lm_eval_and_a_table(from_lm_eval, from_a_table):
    assert bare(from_lm_eval).equals(bare(from_a_table))


def test_inspect_and_a_table(from_inspect, from_a_table):
    assert bare(from_inspect).equals(bare(from_a_table))


def test_where_the_items_are_in_each_harness_is_kept(from_lm_eval, from_inspect):
    assert from_lm_eval.items["doc_id"].tolist() == [*range(10), *range(8)]
    own = [item["id"] for task in TOY["tasks"].values() for item in task]
    assert from_inspect.items["sample_id"].tolist() == own
