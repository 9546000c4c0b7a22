"""fewbench study native-sources: text, a page and JSON."""

import json
from dataclasses import replace

import pytest

from fewbench.scores import save_scores
from fewbench.testing import simulate


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    scores = simulate(40, 60, seed=2)
    role = ["source", "source", "target", "target"] * 10
    named = replace(scores, models=scores.models.assign(role=role))
    return save_scores(named, tmp_path_factory.mktemp("named") / "named.parquet")


def test_text_has_a_finding_for_each_question(ok, named):
    out = ok("study", "native-sources", named, "--budget", 14, "--repeats", 1)
    lines = out.splitlines()
    assert lines[0].startswith(
        "tailored, 14 items, 20 sources, 20 targets, given split, repeats: 1"
    )
    for title in ("nearness", "number, at random", "number, nearest", "medoids", "families"):
        assert sum(line.startswith(title) for line in lines) == 1
    assert "no family          not made: no family has 3 targets" in out
    assert max(map(len, lines)) <= 100


def test_json_and_the_page_are_of_the_same_run(cli, named, tmp_path):
    words = (
        "study",
        "native-sources",
        named,
        "-n",
        14,
        "--repeats",
        1,
        "-m",
        "tailored(probe=6)",
        "--json",
    )
    said = cli(*words, "-o", "out.html")
    assert said.code == 0
    assert said.err == "wrote out.html\n"
    read = json.loads(said.out)
    assert read["facts"]["method"] == "tailored(probe=6)"
    page = (tmp_path / "out.html").read_text("utf-8")
    assert "Native sources on named.parquet" in page
    assert read["findings"]["nearness"] in page.replace("&#39;", "'")


def test_split_and_seed_are_taken(ok, named):
    words = (
        "study",
        "native-sources",
        named,
        "-n",
        14,
        "--repeats",
        1,
        "--json",
        "--split",
        "random",
    )
    one, same, other = (
        json.loads(ok(*words, "--targets", 0.5, "--seed", seed)) for seed in (1, 1, 2)
    )
    assert one == same
    assert one["facts"]["split"] == "random, 50% targets"
    assert one["counts"] != other["counts"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-n", 61), "budget of 61: the benchmark has 60 items"),
        (("-n", 14, "-m", "random"), "'random' has no native sources"),
        (("-n", 14, "--split", "odd"), "unknown split 'odd'"),
        (("-n", 14, "-o", "."), ". is a folder"),
    ],
)
def test_mistakes_are_one_line(cli, named, words, said):
    found = cli("study", "native-sources", named, *words)
    assert found.code == 2
    assert found.err.startswith(f"fewbench: error: {said}")
    assert found.err.count("\n") == 1


def test_help_has_examples_that_can_be_copied(ok):
    out = ok("study", "native-sources", "--help")
    line = "fewbench study native-sources scores.parquet --budget 30 -o native-sources.html"
    assert line in [row.strip() for row in out.splitlines()]
    assert "\b" not in out
    assert "native-sources" in ok("study", "--help")
