"""fewbench audit: short text, all of it as JSON, a page, and scores without what was found."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewbench.public import load_scores
from fewbench.scores import save_scores
from fewbench.testing import simulate


@pytest.fixture
def dirty(tmp_path):
    """A table with a copy, a constant item and missing cells."""
    clean = simulate(24, 200, seed=4)
    values = clean.values.copy()
    values[1], values[:, 7] = values[0], 1.0
    values[9, :60] = np.nan
    models = clean.models.drop(columns=["family"]).rename(index={"model-01": "model-00#2"})
    return save_scores(replace(clean, values=values, models=models), tmp_path / "dirty.parquet")


def test_the_most_serious_first_with_its_advice(ok, dirty):
    out = ok("audit", dirty.name, "--details")
    lines = out.splitlines()
    assert lines[1].startswith(
        "24 models on 200 items in 3 tasks, right or wrong, 1.2% of the cell"
    )
    assert lines[4].startswith("problem: 1 model listed several times")
    words = [line.split(":")[0] for line in lines if line[:1].isalpha()]
    levels = [word for word in words if word in ("problem", "caution", "fact")]
    assert levels == sorted(levels, key=["problem", "caution", "fact"].index)
    assert len(levels) == len(json.loads(ok("audit", dirty.name, "--json"))["findings"])
    assert "→ keep one of each (fewbench audit dirty.parquet --drop duplicates -o FILE)" in out
    assert out.endswith("Next: fewbench audit dirty.parquet --drop duplicates -o clean.parquet\n")
    assert "SCORES" not in out
    assert "(model-00, model-00#2)" in out
    assert max(map(len, lines)) <= 100
    assert "Use these methods" in out
    assert "methods that can run" in out
    assert "--details" not in out
    ok("audit", dirty.name, "--report", "audit.html")
    assert "--details" not in Path("audit.html").read_text()
    assert f"fewbench audit {dirty.name} --details" in ok("audit", dirty.name)


def test_commands_are_not_broken_between_lines_and_quote_the_path(ok, dirty, tmp_path):
    spaced = tmp_path / "a folder" / "the past results of all of our models.parquet"
    spaced.parent.mkdir()
    spaced.write_bytes(dirty.read_bytes())
    lines = ok("audit", spaced).splitlines()
    command = f"(fewbench audit '{spaced}' --drop duplicates -o FILE)"
    assert sum(command in line for line in lines) == 1
    assert "\0" not in "".join(lines)


def test_what_was_changed_is_told_beside_what_was_found(cli, dirty, tmp_path):
    words = ("--drop", "duplicates", "-o", "clean.parquet", "--report", "audit.html")
    read = json.loads(cli("audit", dirty, *words, "--json").out)
    assert read["changed"] == {
        "said": ["duplicates: 1 model left out: model-00#2"],
        "written": "clean.parquet",
    }
    assert read["table"]["models"] == 23
    page = (tmp_path / "audit.html").read_text()
    assert "This is the audit of clean.parquet, after the changes." in page
    assert "duplicates: 1 model left out: " in page
    assert "--drop duplicates" not in page.split("<main>")[1].split("</main>")[0]
    text = cli("audit", dirty, "--drop", "duplicates", "-o", "clean.parquet", "--force").out
    assert "This is the audit of clean.parquet, after the changes." in text
    assert "duplicates: 1 model left out: " in text
    assert "What was changed" not in cli("audit", dirty, "--report", "audit.html", "--force").out
    assert "What was changed" not in (tmp_path / "audit.html").read_text()


@pytest.mark.parametrize(
    "words",
    [
        "--report dirty.parquet",
        "--report ../{name}/dirty.parquet",
        "--report link.html",
        "--report hard.html",
        "--drop duplicates -o dirty.parquet",
    ],
)
def test_the_scores_are_never_overwritten(cli, dirty, tmp_path, words):
    (tmp_path / "link.html").symlink_to(dirty)
    (tmp_path / "hard.html").hardlink_to(dirty)
    before = dirty.read_bytes()
    said = cli("audit", "dirty.parquet", "--force", *words.format(name=tmp_path.name).split())
    assert said.code == 2
    assert "is part of the input dirty.parquet (hint: name another file" in said.err
    assert said.out == ""
    assert dirty.read_bytes() == before


def test_a_log_is_never_overwritten(cli, dirty, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "a.json").write_text("{}")
    said = cli("audit", "logs", "--report", "logs/a.json", "--force")
    assert said.code == 2
    assert "part of the input logs" in said.err
    assert (logs / "a.json").read_text() == "{}"


def test_two_files_need_two_names(cli, dirty, tmp_path):
    said = cli("audit", dirty, "--drop", "duplicates", "-o", "x.parquet", "--report", "x.parquet")
    assert said.code == 2
    assert said.kind == "conflict"
    assert not (tmp_path / "x.parquet").exists()


def test_scores_without_what_is_named(cli, ok, dirty):
    said = cli("audit", dirty, "--drop", "duplicates,constant", "-o", "clean.parquet")
    assert said.code == 0
    assert (said.out + said.err).count("duplicates: 1 model left out: model-00#2") == 1
    assert (said.out + said.err).count("constant: 4 items left out: item-7, ") == 1
    assert "wrote clean.parquet: 23 models × 196 items" in said.err
    assert load_scores("clean.parquet").n_models == 23
    assert load_scores(dirty).n_models == 24
    assert "have one name" not in ok("audit", "clean.parquet")


def test_groups_named_as_families(cli, ok, dirty):
    said = cli("audit", dirty, "--families", "-o", "named.parquet")
    assert said.code == 0
    assert "families: 1 of more than one model, 22 models in families of one" in said.out
    assert "no families" not in said.out
    assert "--families" not in said.out
    assert load_scores("named.parquet").models["family"]["model-00#2"] == "model-00"
    ok("compare", "named.parquet", "-m", "random", "-n", "5", "--split", "group", "--repeats", "1",
       "--workers", "1", "--no-intervals", "--targets", "0.1")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--drop duplicates", "--output and one of --drop"),
        ("-o x.parquet", "--output and one of --drop"),
        ("--families", "--output and one of --drop"),
        ("--drop dupes -o x.parquet", "cannot drop 'dupes'"),
        ("--drop , -o x.parquet", "no name in"),
        ("--drop duplicates -o x.csv", "saved as Parquet"),
        ("--report .", ". is a folder"),
        ("--drop duplicates -o .", ". is a folder"),
    ],
)
def test_mistakes(cli, dirty, tmp_path, words, said):
    before = sorted(tmp_path.rglob("*"))
    shown = cli("audit", dirty, *words.split())
    assert shown.code == 2
    assert shown.err.startswith("fewbench: error: ")
    assert shown.err.count("\n") == 1
    assert said in shown.err
    assert "(hint: " in shown.err
    assert sorted(tmp_path.rglob("*")) == before


def test_families_that_are_there_are_not_replaced(cli, scores):
    shown = cli("audit", scores, "--families", "-o", "x.parquet")
    assert shown.code == 2
    assert shown.kind == "taken"
