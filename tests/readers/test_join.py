"""Runs joined: by content, by time, by what the user says of doubtful ones."""

import re
from pathlib import Path

import numpy as np
import pytest

from fewbench.errors import ReaderError
from fewbench.readers import read
from fewbench.readers.join.table import join
from fewbench.readers.run import Rows

LATER = "2026-01-02T10-00-00.000001"


def noted(reading, pattern):
    return any(re.search(pattern, note) for note in reading.notes)


def three(logs, **changes):
    return [logs.choice(i, f"q{i}", (-1.0, -2.0 + i), **changes) for i in range(3)]


class TestSameModelInTwoFolders:
    @pytest.fixture
    def two(self, logs):
        logs.write("org/a", "t", three(logs), folder="june")
        logs.write("org/a", "t", three(logs, right=1)[:2], folder="july", stamp=LATER, original=3)
        return logs.root

    def test_stops_and_says_how_to_go_on(self, two):
        with pytest.raises(ReaderError, match=r"2 of 2 items differ.*--same-model newest.*apart"):
            read(two)

    def test_newest(self, two):
        reading = read(two, same_model="newest")
        assert reading.scores.values.tolist() == [[0, 0, 0]]
        assert noted(reading, "2 of 3 items .* newer run")

    def test_apart(self, two):
        scores = read(two, same_model="apart").scores
        assert scores.model_ids == ["org/a@july", "org/a@june"]
        assert scores.values[1].tolist() == [1, 1, 0]

    def test_apart_leaves_other_models_alone(self, logs, two):
        logs.write("org/b", "t", three(logs), folder="june")
        assert "org/b" in read(two, same_model="apart").scores.model_ids

    def test_an_unknown_way(self, two):
        with pytest.raises(ReaderError, match="--same-model cannot be 'x'"):
            read(two, same_model="x")


class TestKey:
    def keyed(self, logs, i, **changes):
        row = logs.choice(i, f"q{i}", (-1.0, -2.0 + i), **changes)
        return row | {"doc": {"id": f"cap-{i}", "n": i}}

    def test_a_field_of_the_document_identifies_it(self, logs):
        logs.write("a", "t", [self.keyed(logs, i) for i in range(3)])
        # Another wording of the items: joined all the same, as the user says what they are.
        logs.write("b", "t", [self.keyed(logs, i) | {"doc_hash": f"x{i}"} for i in range(3)])
        reading = read(logs.root, key="id")
        assert reading.scores.item_ids.tolist() == ["t/cap-0", "t/cap-1", "t/cap-2"]
        assert not reading.scores.has_missing
        assert read(logs.root, key="n").scores.item_ids.tolist() == ["t/0", "t/1", "t/2"]
        assert read(logs.root).scores.n_items == 6

    def test_a_field_that_it_lacks(self, logs):
        logs.write("a", "t", three(logs))
        with pytest.raises(ReaderError, match=r"line 1: the item has no .*'id' .*'question'"):
            read(logs.root, key="id")


class TestMetricsFromLogLikelihoods:
    def rows(self, logs, **changes):
        # The longer option wins per character, the shorter one by log-likelihood.
        return [
            logs.choice(0, "q", (-2.0, -2.5), options=["ab", "abcdef"], right=1, **changes),
            logs.choice(1, "r", (-2.0, -9.0), options=["ab", "abcdef"], right=1, **changes),
        ]

    def test_computed_where_it_is_not_logged(self, logs):
        logs.write("a", "t", self.rows(logs))
        reading = read(logs.root, metric="acc_norm")
        assert reading.scores.values.tolist() == [[1, 0]]
        assert noted(reading, "'acc_norm' is not logged in 1 run and computed")
        assert read(logs.root, metric="acc").scores.values.tolist() == [[0, 0]]

    def test_refused_where_the_answer_is_not_known(self, logs):
        logs.write("a", "t", self.rows(logs, target="?"))
        with pytest.raises(ReaderError, match="'acc_norm' is not logged, and does not follow"):
            read(logs.root, metric="acc_norm")

    def test_a_logged_score_that_they_contradict_is_named(self, logs):
        rows = self.rows(logs)
        logs.write("a", "t", [rows[0] | {"acc": 1.0}, rows[1]])
        assert noted(read(logs.root), "do not explain 1 score of 'acc'")


def test_groups_of_tasks(logs):
    groups = {"mmlu": ["stem"], "stem": ["t"], "t": []}
    logs.write("a", "t", three(logs), group_subtasks=groups)
    logs.write("a", "u", three(logs), group_subtasks={"u": []}, stamp=LATER)
    items = read(logs.root).scores.items
    assert items["group"].tolist() == ["mmlu/stem"] * 3 + [""] * 3


def test_equal_documents_are_told_apart_by_the_harness_s_own_ids():
    def run(model, rows, total=None):
        filled = Rows(Path(f"{model}.log"))
        for place, (own_id, score) in enumerate(rows, start=1):
            filled.append("same", {"acc": score}, place, own_id=own_id)
        return filled.run(model, "t", total=total)

    # The subset is of the second of two equal documents; nothing but its id says so.
    runs = [run("a", [("x", 1), ("y", 0)], total=2), run("b", [("y", 1)], total=2)]
    scores = join(runs).scores
    assert scores.items["sample_id"].tolist() == ["x", "y"]
    assert np.array_equal(scores.values, [[1, 0], [np.nan, 1]], equal_nan=True)


class TestVersions:
    def test_of_the_task(self, logs):
        logs.write("a", "t", three(logs), versions={"t": 1})
        logs.write("b", "t", three(logs), versions={"t": 2})
        assert noted(read(logs.root), r"task 't' was run in 2 versions \(1: 'a'; 2: 'b'\)")

    def test_of_items(self, logs):
        for model in "abc":
            rows = three(logs)
            if model == "b":
                rows[1] = logs.choice(1, "q1, reworded")
            logs.write(model, "t", rows)
        reading = read(logs.root)
        assert reading.scores.n_items == 4
        assert noted(reading, "whole runs of 'b' have 1 item that most models' lack and lack 1")

    def test_a_run_of_a_part_is_no_other_version(self, logs):
        logs.write("a", "t", three(logs))
        logs.write("b", "t", three(logs)[:2], original=3)
        assert not noted(read(logs.root), "version")


def test_many_notes_of_a_kind_are_cut_and_said_to_be(logs):
    for model in range(9):
        logs.write(f"m{model}", "t", three(logs)[:2], original=3)
    reading = read(logs.root)
    assert sum("ran 2 of 3" in note for note in reading.notes) == 5
    assert noted(reading, "4 more of the like")
    assert np.isnan(reading.scores.values).sum() == 0
