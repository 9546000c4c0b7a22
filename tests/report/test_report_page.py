from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from fewbench.report import write_report


@pytest.fixture
def page(make_comparison, balanced, tmp_path):
    def written(comparison=None, **options):
        made = comparison or make_comparison(**{"repeats": 2, "targets": 12, **options})
        text = write_report(made, tmp_path / "report.html").read_text("utf-8")
        balanced(text)
        assert "nan" not in re.sub(r"<title>.*?</title>", "", text).lower().split()
        assert "NaN" not in text
        return text

    return written


def test_it_needs_nothing_else(page):
    text = page().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|//[a-z]+\.|\bsrc=|@import|url\(|<script|<link", text)


def test_it_says_what_was_found(page, make_comparison):
    made = make_comparison()
    text = page(made)
    for method in set(made.cells["method"]):
        assert text.count(f"<span>{method}</span>") > 2
    for words in [*made.facts.values(), *made.warnings, "random split", "family split"]:
        assert words in text
    plain = re.sub(r"<[^>]+>", "", text).replace("\u00a0", " ")
    assert re.search(r"At 50 items on the random split, .+ is off by \d\.\d pp on average", plain)
    assert re.search(r"random sampling by \d\.\d pp\.", plain)


def test_names_are_escaped(page, make_comparison):
    bad = "<script>alert('x')</script> & \"co\""
    made = make_comparison(methods=("random", bad), target_name=bad + "{i}{family}", targets=8)
    made.facts = {bad: bad}
    made.warnings = [bad]
    made.task_errors["task"] = bad + made.task_errors["task"]
    made.cells["split"] = made.cells["split"] + bad
    made.estimates["split"] = made.estimates["split"] + bad
    made.task_errors["split"] = made.task_errors["split"] + bad
    text = page(made)
    assert "<script" not in text
    assert "alert(" in text


@pytest.mark.parametrize(
    "options",
    [
        {"methods": ("random",), "budgets": (50,), "splits": ("random",), "tasks": 1},
        {"methods": ("mine alone",), "budgets": (1,), "splits": ("s",), "targets": 5, "tasks": 0},
        {"methods": tuple(f"method {i}" for i in range(14)), "budgets": (5, 10), "tasks": 30},
        {"repeats": 1},
    ],
)
def test_small_and_large_inputs(page, options):
    text = page(**options)
    assert ("There is one task" in text) == (options.get("tasks", 8) < 2)
    several = len(options.get("budgets", (20, 50, 100))) > 1
    assert ("Error against budget" in text) == several
    assert ("Error and its spread" in text) == (not several)


def test_gaps_are_dashes(page, make_comparison):
    made = make_comparison(repeats=2, targets=9)
    numbers = made.cells.columns.difference(["method", "budget", "split", "n_targets"])
    made.cells.loc[made.cells["method"] == "random items, ridge", numbers] = np.nan
    made.estimates[["low", "high"]] = np.nan
    made.estimates["family"] = None
    made.warnings = []
    made.facts = {}
    text = page(made)
    assert "–" in text
    assert "Before you trust" not in text
    assert "Nothing was noted" in text
    made.cells[numbers] = np.nan
    assert "no method has an error to report" in page(made)


def test_missing_metrics_and_an_empty_comparison(page, make_comparison):
    made = make_comparison(repeats=2, targets=9)
    made.cells = made.cells[["method", "budget", "split", "n_targets", "mae"]]
    text = page(made)
    assert "There is no standard error here" in text
    assert "Compared with random sampling" not in text
    for frame in ("cells", "estimates", "task_errors"):
        setattr(made, frame, getattr(made, frame).iloc[:0])
    assert "Nothing was run" in page(made)
    for frame in ("cells", "estimates", "task_errors"):
        setattr(made, frame, pd.DataFrame())
    assert "Nothing was run" in page(made)


def test_the_same_comparison_gives_the_same_bytes(make_comparison, tmp_path):
    first, second = (
        write_report(make_comparison(repeats=2, targets=9), tmp_path / f"{i}.html")
        for i in range(2)
    )
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.html", "1.html"]


def test_a_failed_write_leaves_the_old_page(make_comparison, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError))
    with pytest.raises(OSError):
        write_report(make_comparison(repeats=1, targets=6), path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def _cells(**errors):
    rows = [
        {"method": m, "budget": 50, "split": "s", "n_targets": 9, "mae": e, "mae_se": se}
        for m, (e, se) in errors.items()
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        (
            {"random": (0.046, 0.001), "a": (0.019, 0.001), "b": (0.03, 0.001)},
            "At 50 items, a is off by 1.9 pp on average; random sampling by 4.6 pp.",
        ),
        (
            {"random": (0.046, 0.001), "a": (0.019, 0.001), "b": (0.02, 0.001)},
            "At 50 items, a is off by 1.9 pp on average (level with b); random sampling by 4.6 pp.",
        ),
        (
            {"random": (0.046, 0.001), "a": (0.045, 0.001)},
            "At 50 items, no method is clearly better than random sampling, which is off by "
            "4.6 pp on average; the lowest is a with 4.5 pp.",
        ),
        (
            {"random": (0.046, 0.001), "a": (0.06, 0.001)},
            "At 50 items, no method beats random sampling, which is off by 4.6 pp on average.",
        ),
        ({"a": (0.06, 0.001)}, "At 50 items, a is off by 6.0 pp on average."),
    ],
)
def test_the_answer_does_not_crown_noise(page, make_comparison, errors, said):
    made = make_comparison(repeats=1, targets=5)
    made.cells = _cells(**errors)
    plain = re.sub(r"<[^>]+>", "", page(made)).replace("\u00a0", " ")
    assert said in plain


def test_a_paired_interval_decides_against_random(page, make_comparison):
    made = make_comparison(repeats=1, targets=5)
    made.cells = _cells(random=(0.046, 0.001), a=(0.03, 0.001)).assign(
        ratio_to_random=[1.0, 0.65], ratio_to_random_low=[1.0, 0.4],
        ratio_to_random_high=[1.0, 1.1],
    )  # fmt: skip
    assert "no method is clearly better than" in page(made)
